//! The Relax IR: struct info, typed expressions, functions with their bodies, signatures.
//!
//! - [`struct_info`], [`expr`], [`function`], [`signature`]: a checked function, statement by statement. [`values`]: ranges and
//!   elements that are known of a value before the program runs.
//! - [`module`]: a module as passes take and return it, in A-normal form, with prim_funcs as text or as loops. [`rewrite`] walks
//!   and renames.
//! - [`constants`]: the tensors of a module, shared by its copies; [`saved_tensor`]: TVM's serialization of a tensor.
//!
//! The crate has data only: inference is in `rx-ops` and `rx-analysis`, spelling in `rx-syntax`.
//!
//! # Invariants
//!
//! - All data is immutable, compared by value and free of positions. Equal data may be shared, and equality is what ends
//!   recomputation after an edit.

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
