//! The data of Relax: struct info, typed expressions, functions, signatures, origins.
//!
//! Everything here is immutable data without rules: inference stands in `rx-ops` and `rx-analysis`, spelling in
//! `rx-syntax`.

pub mod constants;
pub mod expr;
pub mod function;
pub mod module;
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
pub use signature::{BufferParam, FunctionSignature, PrimFuncSignature, PrimParam, PrimParamKind, Signature};
pub use struct_info::{
    DTensorInfo, FunctionInfo, Placement, PrimInfo, Readings, Shape, Spelling, StructInfo, TensorInfo, VDevice,
};
pub use values::{Elements, End, IndexSites, Known, Requirement, Summary, TensorValues, Term, Values};
