//! The loop-level IR, the counterpart of TVM's TIR. Each `@T.prim_func` and each operator's compute definition becomes
//! a function of it.
//!
//! A [`PrimFunc`] has parameters (buffers and scalars) and a body, a [`Stmt`] over [`Buffer`]s and [`Var`]s. The
//! function owns its buffers and variables in tables, and the body refers to them by index. [`Expr`]s have dtypes. This
//! crate does not execute, schedule or print code for a device.
//!
//! [`builder`] and [`rewrite`] build and change functions; [`dim`] converts between symbolic integers and expressions;
//! [`evaluate`] computes expressions such as extents on the host; [`mod@print`] writes TVMScript.
//! While a text is parsed, [`placeholders`] represent barriers, all-reduces and early exits; [`spmd`] and [`leave`]
//! eliminate them.
//!
//! # Invariants
//!
//! - Variables and buffers are indices into the function's tables; each variable has one binder.
//! - The symbols of extents are variables, and a function is correct for all their values.
//! - A parameter that the body neither reads nor writes (`Param::Handle`, a `T.handle` without `T.match_buffer`) gets
//!   no argument. If it is an output, `rx-lower` returns zeros, or the argument that the output shares memory with.
//! - Printing and reading back gives the same function, up to the names and numbering of variables and buffers, and
//!   without index checks, layout permutations and source positions.
//! - After `spmd`, no statement is a barrier or an all-reduce: the code between two barriers is a loop over all
//!   threads, and the code outside of such loops is uniform, the same for all threads of a block. A body without
//!   barriers gets implied ones, as in TVM, for shared buffers whose stores and loads have different or unknown
//!   strides. Each launch of a function is one body of threads with its own memory. A block with axes has an axis for
//!   each enclosing loop whose variable it uses, as TVMScript requires.
//! - After `leave`, no statement exits an iteration, a loop or the function: the statements after an exit are under a
//!   condition.
//! - A buffer of the scope `Fragment` belongs to a warp. An operation of the whole warp on it is a nest over its
//!   elements, under a loop over threads whose first thread of each warp executes it. Only the device's schedule rule
//!   knows which thread holds an element.
//! - A reduction without iterations yields its initial value, in the forms that [`empty_reduction`] covers. For that,
//!   the interpreter and the CPU schedules call `begin_empty_reductions`, and the CUDA back end calls
//!   `begin_empty_reductions_of` for the reductions that it does not accumulate in a variable. TVM initializes a
//!   reduction in its first iteration.

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
pub mod permute;
pub mod placeholders;
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
