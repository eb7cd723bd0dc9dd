//! Signatures: the parts of a function that its callers depend on. They are position-free and compared by value.

use crate::struct_info::StructInfo;
use rx_base::{DType, Dim, Name};
use std::sync::Arc;

/// The signature of a module's item.
#[derive(Clone, Debug, PartialEq)]
pub enum Signature {
    /// A Relax function.
    Relax(FunctionSignature),
    /// A `T.prim_func`.
    Prim(PrimFuncSignature),
    /// An external function, with its type if the text gives one.
    Extern(StructInfo),
    /// A function that could not be parsed, or an item that is not a function. Any use of it is accepted.
    Opaque,
}

impl Signature {
    /// Whether it is a function that can be called only inside its module.
    pub fn is_private(&self) -> bool {
        match self {
            Signature::Relax(signature) => signature.private,
            Signature::Prim(signature) => signature.private,
            _ => false,
        }
    }
}

/// A Relax function's signature.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionSignature {
    /// The parameters' names and types, in order.
    pub params: Arc<[(Name, StructInfo)]>,
    /// The declared return type; `None` if the text has none.
    pub ret: Option<StructInfo>,
    /// Whether the function is declared pure, that is, without `pure=False`. A function with the attribute
    /// `relax.force_pure` is declared pure too; only the check of its body is disabled.
    pub pure: bool,
    /// Whether the function can be called only inside its module: `@R.function(private=True)`.
    pub private: bool,
    /// The value of the attribute `num_input`, if the function has it.
    pub num_input: Option<i64>,
}

/// A prim_func's signature.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimFuncSignature {
    /// The parameters, in order.
    pub params: Arc<[PrimParam]>,
    /// The dtype of the returned scalar, if there is one.
    pub ret: Option<DType>,
    /// Whether a direct call, `cls.f(x)`, has no side effect: the body stores to no buffer parameter and calls no
    /// external function.
    pub pure: bool,
    /// Whether the function can be called only inside its module.
    pub private: bool,
}

/// A prim_func's parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimParam {
    /// The name.
    pub name: Name,
    /// The kind of the parameter.
    pub kind: PrimParamKind,
}

/// The kind of a prim_func's parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum PrimParamKind {
    /// A tensor.
    Buffer(BufferParam),
    /// A scalar.
    Scalar(DType),
    /// A handle without a `T.match_buffer` (memory of any shape, or unused), or a type that rx does not support.
    Opaque,
}

/// A tensor parameter of a prim_func: `A: T.Buffer((n, 64), "float32")`, or a handle with its `T.match_buffer`.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferParam {
    /// The dims. Their symbols are local to the prim_func.
    pub shape: Arc<[Dim]>,
    /// The element type.
    pub dtype: DType,
    /// Whether the body may store to it, also by passing it to a call of unknown effect.
    pub written: bool,
    /// Whether the body may load from it.
    pub read: bool,
}
