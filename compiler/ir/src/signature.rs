//! What callers see of a function: position-free, compared by value.

use crate::struct_info::StructInfo;
use rx_base::{DType, Dim, Name};
use std::sync::Arc;

/// What callers see of a module's item.
#[derive(Clone, Debug, PartialEq)]
pub enum Signature {
    /// A Relax function.
    Relax(FunctionSignature),
    /// A `T.prim_func`.
    Prim(PrimFuncSignature),
    /// An external function, with its type where given.
    Extern(StructInfo),
    /// A function that could not be read, or an item that is no function; anything may be done with it.
    Opaque,
}

impl Signature {
    /// Whether it is a function that only its module may call.
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
    /// Parameter names and types, in order.
    pub params: Arc<[(Name, StructInfo)]>,
    /// The declared return type; `None` when not written.
    pub ret: Option<StructInfo>,
    /// Whether the function is declared pure (`pure=False` is not, `relax.force_pure` is).
    pub pure: bool,
    /// `@R.function(private=True)`.
    pub private: bool,
    /// `num_input`, where the function states it.
    pub num_input: Option<i64>,
}

/// A prim_func's signature.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimFuncSignature {
    /// Parameters, in order.
    pub params: Arc<[PrimParam]>,
    /// The scalar it returns, if any.
    pub ret: Option<DType>,
    /// Whether a direct call, `cls.f(x)`, has no effect: no buffer parameter is stored to and nothing outside is called.
    pub pure: bool,
    /// Whether the function is private.
    pub private: bool,
}

/// A prim_func's parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct PrimParam {
    /// Its name.
    pub name: Name,
    /// What it takes.
    pub kind: PrimParamKind,
}

/// What a prim_func's parameter takes.
#[derive(Clone, Debug, PartialEq)]
pub enum PrimParamKind {
    /// A tensor.
    Buffer(BufferParam),
    /// A scalar.
    Scalar(DType),
    /// A handle that no `T.match_buffer` opens (memory of any shape, or nothing to the body), or a type rx does not read.
    Opaque,
}

/// A tensor parameter of a prim_func: `A: T.Buffer((n, 64), "float32")`, or a handle with its `T.match_buffer`.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferParam {
    /// Its dims; symbols are the prim_func's own.
    pub shape: Arc<[Dim]>,
    /// Its dtype.
    pub dtype: DType,
    /// Whether the body stores to it, or may: a call of unknown effect takes it.
    pub written: bool,
    /// Whether the body loads from it, or may.
    pub read: bool,
}
