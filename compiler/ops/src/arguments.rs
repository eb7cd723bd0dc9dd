//! Readers of arguments that are not tensors, for struct-info rules: scalars, dtypes, shapes of new tensors.

use crate::call::{Arg, CallInfo, ParamPlace, Problem};
use crate::operands::Element;
use crate::tensor::operands;
use rx_base::{Code, DType, Dim};
use rx_ir::{Attr, ExprKind, PrimInfo, PrimValue, Shape, StructInfo};

/// The maximum rank for which a shape is expanded dim by dim. A program's `ndim=` may state any number.
pub(crate) const MAX_WRITTEN_RANK: usize = 1024;

/// The value of a scalar argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    /// An integer or boolean, possibly symbolic.
    Int(Dim),
    /// A float constant.
    Float(f64),
    /// A value that is unknown until the program runs, with its dtype if known.
    Unknown(Option<DType>),
}

/// Returns the scalar passed for `name`; `None` if it was left out.
///
/// # Errors
/// Propagates error types; reports an argument that is not a scalar.
pub(crate) fn scalar(call: &CallInfo<'_>, name: &'static str) -> Result<Option<Scalar>, Problem> {
    let expr = match call.arg(name) {
        Arg::Operand(expr) => expr,
        Arg::Attr(Attr::Int(value)) => return Ok(Some(Scalar::Int(value.clone()))),
        Arg::Attr(Attr::Float(value)) => return Ok(Some(Scalar::Float(*value))),
        Arg::Attr(Attr::Bool(value)) => return Ok(Some(Scalar::Int(i64::from(*value).into()))),
        _ => return Ok(None),
    };
    match (&expr.kind, &expr.ty) {
        (ExprKind::Prim(PrimValue::Int(value)), _) => Ok(Some(Scalar::Int(value.clone()))),
        (ExprKind::Prim(PrimValue::Float(value)), _) => Ok(Some(Scalar::Float(*value))),
        (ExprKind::Prim(PrimValue::Bool(value)), _) => Ok(Some(Scalar::Int(i64::from(*value).into()))),
        // A float variable also has a symbol as its value, but it is not an integer.
        (_, StructInfo::Prim(PrimInfo { value: Some(value), dtype })) if !dtype.is_some_and(DType::is_float) => {
            Ok(Some(Scalar::Int(value.clone())))
        }
        (_, StructInfo::Prim(prim)) => Ok(Some(Scalar::Unknown(prim.dtype))),
        (_, StructInfo::Error) => Err(Problem::Propagate),
        (_, ty) => Err(call.wrong_kind(ParamPlace::Param(name), name, "a scalar", ty)),
    }
}

/// Returns the integer passed for `name`; `None` if it was left out or is unknown.
///
/// # Errors
/// Fails like [`scalar`]; also reports a float.
pub(crate) fn integer(call: &CallInfo<'_>, name: &'static str) -> Result<Option<Dim>, Problem> {
    match scalar(call, name)? {
        Some(Scalar::Int(value)) => Ok(Some(value)),
        Some(Scalar::Float(value)) => {
            let message = format_args!("`{name}` must be an integer, it is {value}");
            Err(call.error(Code::ArgumentType, ParamPlace::Param(name), message).into())
        }
        Some(Scalar::Unknown(_)) | None => Ok(None),
    }
}

/// Returns the shape passed for `name`, as the shape of a new tensor: its dims if known, otherwise the shape variable.
///
/// # Errors
/// Propagates error types; reports an argument that is not a shape, and a negative dim.
pub(crate) fn new_shape(call: &CallInfo<'_>, name: &'static str) -> Result<Shape, Problem> {
    let shape = operands::shape(call, name)?;
    let negative = |dim: &&Dim| dim.as_constant().is_some_and(|value| value < 0);
    if let Some(dim) = shape.dims().and_then(|dims| dims.iter().find(negative)) {
        return Err(negative_dim(call, name, dim));
    }
    Ok(shape)
}

/// Creates the error that `name` requests a tensor with a negative dim.
pub(crate) fn negative_dim(call: &CallInfo<'_>, name: &'static str, dim: &Dim) -> Problem {
    let message = format_args!("`{name}` makes a dim of {dim}, dims are never negative");
    call.error(Code::AttrOutOfRange, ParamPlace::Param(name), message).into()
}

/// Returns the dtype passed for `name`, as `R.dtype("float32")` or a string; any other value is an unknown dtype.
///
/// # Errors
/// Propagates error types; reports a name that is not a dtype.
pub(crate) fn dtype(call: &CallInfo<'_>, name: &'static str) -> Result<Element, Problem> {
    let text = match call.arg(name) {
        Arg::Attr(Attr::Str(text)) => text,
        Arg::Operand(expr) => match &expr.kind {
            ExprKind::DType(dtype) => return Ok(Element::known(Some(*dtype))),
            ExprKind::Str(text) => text,
            ExprKind::Error => return Err(Problem::Propagate),
            _ => return Ok(Element::known(None)),
        },
        _ => return Ok(Element::known(None)),
    };
    let dtype = DType::parse(text);
    if dtype.is_none() && !text.is_empty() && &**text != "void" {
        let message = format_args!("no dtype is called \"{text}\"");
        return Err(call.error(Code::UnknownDtype, ParamPlace::Param(name), message).into());
    }
    Ok(Element::known(dtype))
}

/// Returns the value of a number attribute, written bare or with a dtype: `2`, `0.5`, `T.float32(0.5)`,
/// `T.float32("inf")`.
pub(crate) fn attr_number(attr: &Attr) -> Option<f64> {
    match attr {
        Attr::Int(value) => value.as_constant().map(|value| value as f64),
        Attr::Float(value) => Some(*value),
        Attr::Bool(value) => Some(f64::from(u8::from(*value))),
        Attr::Opaque(text) => {
            let (_, inner) = text.trim().strip_prefix("T.")?.strip_suffix(')')?.split_once('(')?;
            inner.trim().trim_matches('"').parse().ok()
        }
        _ => None,
    }
}

/// Whether an optional argument is not given: left out, `None`, or the empty tuple that TVM prints for it.
pub(crate) fn is_void(call: &CallInfo<'_>, name: &'static str) -> bool {
    match call.arg(name) {
        Arg::Absent | Arg::Attr(Attr::None) => true,
        Arg::Operand(expr) => expr.ty.as_tuple().is_some_and(<[StructInfo]>::is_empty),
        _ => false,
    }
}
