//! The Relax IR: struct info, typed expressions, functions with their bodies, and signatures.
//!
//! - [`struct_info`], [`expr`], [`function`], [`signature`]: a checked function, statement by statement. [`values`]:
//!   the statically known ranges and elements of values.
//! - [`module`]: a module as the input and output of passes, in A-normal form, with prim_funcs as text or as loops.
//!   [`rewrite`]: traversal and renaming.
//! - [`constants`]: the tensors of a module, shared by its copies. [`saved_tensor`]: TVM's serialization of a tensor.
//!   [`pool`]: the allocator of static memory plans.
//!
//! The crate contains only data. Type inference is in `rx-ops` and `rx-analysis`, parsing and printing in `rx-syntax`.
//!
//! # Invariants
//!
//! - All data is compared by value, and equal data may be shared. After an edit, recomputation stops where a new result
//!   equals the old one.
//! - Types, signatures and value facts contain no positions. The span of an expression is relative to its segment.

pub mod constants;
pub mod expr;
pub mod function;
pub mod module;
pub mod pool;
pub mod rewrite;
pub mod saved_tensor;
pub mod signature;
pub mod struct_info;
pub mod values;

pub use constants::{ConstantData, Constants};
pub use expr::{Argument, Attr, Call, Callee, Expr, ExprKind, Literal, Origin, PrimValue};
pub use function::{Binding, BindingKind, Body, Function};
pub use module::{
    Block, BoundValue, Branches, Item, LoopBody, LoopFunction, Module, RelaxFunction, Sequence, VarBinding,
};
pub use pool::Pool;
pub use signature::{BufferParam, FunctionSignature, PrimFuncSignature, PrimParam, PrimParamKind, Signature};
pub use struct_info::{
    DTensorInfo, FunctionInfo, Placement, PrimInfo, Readings, Shape, Spelling, StructInfo, TensorInfo, VDevice,
};
pub use values::{Elements, End, IndexSites, Known, Requirement, Summary, TensorValues, Term, Values};
