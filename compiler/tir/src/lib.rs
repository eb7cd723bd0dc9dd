//! The loop-level IR: what a `@T.prim_func` and an operator's compute definition both become.
//!
//! A [`PrimFunc`] is a list of parameters (buffers and scalars) and a [`Stmt`] over [`Buffer`]s and [`Var`]s, which it
//! owns and which are named by index. [`Expr`]s know their dtypes. Nothing here runs, schedules or prints for a device.

pub mod bind;
pub mod builder;
pub mod count;
pub mod dim;
pub mod effects;
pub mod empty_reduction;
pub mod evaluate;
pub mod expr;
pub mod func;
pub mod leave;
pub mod marks;
pub mod permute;
pub mod print;
pub mod renumber;
pub mod rewrite;
pub mod spmd;
pub mod stmt;

pub use bind::{BindError, bind_symbols};
pub use builder::KernelBuilder;
pub use count::{Count, count};
pub use dim::{of_dim, to_dim};
pub use effects::Effects;
pub use empty_reduction::{begin_empty_reductions, begin_empty_reductions_of};
pub use evaluate::{evaluate_index, is_evaluable};
pub use expr::{BinaryOp, CompareOp, Expr, Intrinsic, UnaryOp};
pub use func::{Buffer, BufferId, Fragment, Param, PrimFunc, Scope, Var, VarId, WARP};
pub use permute::permuted;
pub use stmt::{Block, Iter, IterKind, LoopKind, Site, Stmt};
