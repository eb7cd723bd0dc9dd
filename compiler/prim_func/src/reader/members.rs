//! The Python attributes and methods of TIR scalars and buffers.
//!
//! Source: `dir()` of `tvm.tirx.PrimExpr`, its subclasses and `Buffer` in TVM 0.25 to 0.27, and of `tvm.tir` in TVM
//! 0.13.

use super::value::Value;

/// Members of a scalar: those of `PrimExpr`, of its subclasses (`Add`, `Call`, `IntImm`, `BufferLoad`, …), and of
/// `IterVar`, which is not a subclass.
#[rustfmt::skip]
const OF_SCALARS: &[&str] = &[
    "a", "args", "astype", "attrs", "b", "base", "body", "buffer", "condition", "dom", "dtype", "equal", "expr_ty",
    "false_value", "handle", "id_", "indices", "is_", "iter_type", "lanes", "name", "name_hint", "op", "predicate",
    "same_as", "script", "show", "source", "span", "stride", "thread_tag", "true_value", "ty", "ty_args",
    "type_annotation", "value", "var", "vectors",
];

/// Members of a buffer.
#[rustfmt::skip]
const OF_BUFFERS: &[&str] = &[
    "access_ptr", "allocated_addr", "astype", "axis_separators", "buffer_type", "byte_offset", "byte_offset_of",
    "chunk", "data", "data_alignment", "dtype", "elem_offset", "elem_offset_of", "equal", "expr_ty",
    "get_flattened_buffer", "handle", "id_", "is_", "is_scalar", "layout", "local", "name", "offset_factor",
    "offset_of", "permute", "ptr_to", "rearrange", "same_as", "scope", "script", "shape", "show", "span", "strides",
    "sub", "tile", "ty", "view", "vload", "vstore", "with_allocated_addr", "with_dtype",
];

/// Whether a value has no member of this name in Python. Always false for values whose members are not listed here.
pub(super) fn is_unknown(of: &Value, member: &str) -> bool {
    match of {
        Value::Expr(_) => !OF_SCALARS.contains(&member),
        Value::Buffer(_) => !OF_BUFFERS.contains(&member),
        _ => false,
    }
}
