//! Helpers of the tensor-manipulation rules: read operands as lists of tensors, shapes and integers, check dtypes and
//! ranks, and build result types that keep an operand's dtype and device.

use crate::call::{CallInfo, ParamPlace, Problem};
use rx_base::{Answer, Code, DType, Dim};
use rx_ir::{Attr, Expr, ExprKind, PrimInfo, PrimValue, Shape, StructInfo, TensorInfo, VDevice};

/// Creates a tensor type on the device of `tensor`, with another shape and dtype.
pub(crate) fn retyped(tensor: &TensorInfo, shape: Shape, dtype: Option<DType>) -> StructInfo {
    TensorInfo { shape, dtype, vdevice: tensor.vdevice, dtype_error: false, readings: None }.into()
}

/// Returns the number of elements of a tensor with these dims.
pub(crate) fn element_count(dims: &[Dim]) -> Dim {
    dims.iter().fold(Dim::constant(1), |count, dim| &count * dim)
}

/// Returns `a / b` rounded up, for positive `b`.
pub(crate) fn ceil_div(a: &Dim, b: &Dim) -> Dim {
    (&(a + b) - &Dim::constant(1)).floor_div(b)
}

/// Whether the two dims differ for all values of the symbols.
pub(crate) fn differ(call: &CallInfo<'_>, a: &Dim, b: &Dim) -> bool {
    call.equal(a, b) == Answer::Refuted
}

/// Whether the two dims are equal for all values of the symbols.
pub(crate) fn agree(call: &CallInfo<'_>, a: &Dim, b: &Dim) -> bool {
    call.equal(a, b) == Answer::Proved
}

/// Prints dims as a Python tuple: `(2, n, 4)`.
pub(crate) fn tuple_text(dims: &[Dim]) -> String {
    let texts: Vec<String> = dims.iter().map(Dim::to_string).collect();
    format!("({}{})", texts.join(", "), if dims.len() == 1 { "," } else { "" })
}

/// Returns the tensors of the tuple passed for `name` (TVM's `GetTensorTypeFromTuple`).
///
/// # Errors
/// Propagates error types; reports an argument that is not a tuple, or an element that is not a tensor.
pub(crate) fn tensors<'a>(call: &CallInfo<'a>, name: &'static str) -> Result<Vec<&'a TensorInfo>, Problem> {
    let fields = match call.ty(name) {
        StructInfo::Tuple(fields) => fields,
        StructInfo::Error => return Err(Problem::Propagate),
        ty => return Err(call.wrong_kind(ParamPlace::Param(name), name, "a tuple of tensors", ty)),
    };
    fields.iter().enumerate().map(|(at, field)| element_tensor(call, name, at, field)).collect()
}

/// Returns the tensors of the tuple passed for `name`; a single tensor counts as a tuple of one.
///
/// # Errors
/// Fails like [`tensors`].
pub(crate) fn tensor_or_tensors<'a>(call: &CallInfo<'a>, name: &'static str) -> Result<Vec<&'a TensorInfo>, Problem> {
    match call.ty(name).as_tensor() {
        Some(tensor) => Ok(vec![tensor]),
        None => tensors(call, name),
    }
}

fn element_tensor<'a>(
    call: &CallInfo<'a>,
    name: &'static str,
    at: usize,
    field: &'a StructInfo,
) -> Result<&'a TensorInfo, Problem> {
    match field {
        StructInfo::Error => Err(Problem::Propagate),
        _ => field.as_tensor().ok_or_else(|| {
            let message = format_args!("`{name}[{at}]` must be a tensor, it is {field}");
            call.error(Code::ArgumentType, ParamPlace::Element(name, at), message).into()
        }),
    }
}

/// Returns the shape passed for `name`. A shape variable whose dims are unknown is kept as that variable.
///
/// # Errors
/// Propagates error types; reports an argument that is not a shape.
pub(crate) fn shape(call: &CallInfo<'_>, name: &'static str) -> Result<Shape, Problem> {
    match call.ty(name) {
        StructInfo::Shape(Shape::Error) => Ok(Shape::Error),
        StructInfo::Shape(shape) => Ok(match call.operand(name).map(|expr| &expr.kind) {
            Some(ExprKind::Var(variable)) => Shape::variable(*variable, shape),
            _ => shape.clone(),
        }),
        StructInfo::Error => Err(Problem::Propagate),
        ty => Err(call.wrong_kind(ParamPlace::Param(name), name, "a shape", ty)),
    }
}

/// Returns the integer value of `expr`, if it is known before the program runs.
pub(crate) fn integer_value(expr: &Expr) -> Option<Dim> {
    match (&expr.kind, &expr.ty) {
        (ExprKind::Prim(PrimValue::Int(value)), _) => Some(value.clone()),
        (ExprKind::Prim(PrimValue::Bool(value)), _) => Some(Dim::constant(i64::from(*value))),
        (_, StructInfo::Prim(PrimInfo { value, .. })) => value.clone(),
        _ => None,
    }
}

/// Returns the dtype of a scalar. An untyped literal has the dtype that TVM gives to a Python number.
pub(crate) fn scalar_dtype(expr: &Expr, prim: &PrimInfo) -> Option<DType> {
    prim.dtype.or(match &expr.kind {
        ExprKind::Prim(PrimValue::Int(_)) => Some(DType::INT64),
        ExprKind::Prim(PrimValue::Float(_)) => Some(DType::FLOAT64),
        ExprKind::Prim(PrimValue::Bool(_)) => Some(DType::BOOL),
        _ => None,
    })
}

/// Returns the scalar passed for `name`, with its dtype if known.
///
/// # Errors
/// Propagates error types; reports an argument that is not a scalar.
pub(crate) fn scalar<'a>(call: &CallInfo<'a>, name: &'static str) -> Result<(&'a Expr, Option<DType>), Problem> {
    match call.operand(name) {
        Some(expr) => match &expr.ty {
            StructInfo::Prim(prim) => Ok((expr, scalar_dtype(expr, prim))),
            StructInfo::Error => Err(Problem::Propagate),
            ty => Err(call.wrong_kind(ParamPlace::Param(name), name, "a scalar", ty)),
        },
        None => Err(Problem::Propagate),
    }
}

/// Returns the integer attribute `name`; `None` if it is absent or Python's `None`.
///
/// # Errors
/// Reports a symbolic integer. Propagates a value that is not an integer, which was reported when the call was parsed.
pub(crate) fn int_attr(call: &CallInfo<'_>, name: &'static str) -> Result<Option<i64>, Problem> {
    call.attr(name).map(|attr| constant(call, name, attr)).transpose()
}

/// Returns the attribute `name` as a list of integers; a single integer is a list of one.
///
/// # Errors
/// Fails like [`int_attr`].
pub(crate) fn ints_attr(call: &CallInfo<'_>, name: &'static str) -> Result<Option<Vec<i64>>, Problem> {
    match call.attr(name) {
        None => Ok(None),
        Some(Attr::List(items)) => {
            items.iter().map(|item| constant(call, name, item)).collect::<Result<_, _>>().map(Some)
        }
        Some(attr) => constant(call, name, attr).map(|value| Some(vec![value])),
    }
}

fn constant(call: &CallInfo<'_>, name: &'static str, attr: &Attr) -> Result<i64, Problem> {
    match attr {
        Attr::Bool(value) => Ok(i64::from(*value)),
        Attr::Int(value) if !value.is_error() => value.as_constant().ok_or_else(|| {
            let message = format_args!("`{name}` must be known when the program is written, {value} is symbolic");
            call.error(Code::AttrType, ParamPlace::Param(name), message).into()
        }),
        _ => Err(Problem::Propagate),
    }
}

/// The dtypes that an operator accepts for indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexKind {
    /// Signed or unsigned integers.
    Integer,
    /// Signed integers.
    Signed,
    /// Only `int64`.
    Int64,
    /// `int32` or `int64`.
    Int32Or64,
}

impl IndexKind {
    fn accepts(self, dtype: DType) -> bool {
        let signed = dtype.is_int() && dtype.code == rx_base::dtype::TypeCode::Int;
        match self {
            IndexKind::Integer => dtype.is_int(),
            IndexKind::Signed => signed,
            IndexKind::Int64 => dtype == DType::INT64,
            IndexKind::Int32Or64 => dtype == DType::INT32 || dtype == DType::INT64,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            IndexKind::Integer => "integers",
            IndexKind::Signed => "signed integers",
            IndexKind::Int64 => "int64",
            IndexKind::Int32Or64 => "int32 or int64",
        }
    }
}

/// Checks the dtype of indices. An unknown dtype passes.
///
/// # Errors
/// Reports at `place` a dtype that `kind` does not accept.
pub(crate) fn check_index_dtype(
    call: &CallInfo<'_>,
    place: ParamPlace,
    name: &str,
    dtype: Option<DType>,
    kind: IndexKind,
) -> Result<(), Problem> {
    match dtype {
        Some(dtype) if !kind.accepts(dtype) => {
            let message = format_args!("`{name}` must be {}, it is {dtype}", kind.words());
            let help = format!("convert it: `R.astype({}, \"int64\")`", call.written(name));
            Err(call.error(Code::IndexDtype, place, message).with_help(help).into())
        }
        _ => Ok(()),
    }
}

/// Checks that two operands have the same dtype. An unknown dtype passes.
///
/// # Errors
/// Reports the second operand.
pub(crate) fn check_same_dtype(
    call: &CallInfo<'_>,
    (first, a): (&'static str, &TensorInfo),
    (second, b): (&'static str, &TensorInfo),
) -> Result<(), Problem> {
    match (a.dtype, b.dtype) {
        (Some(x), Some(y)) if x != y => {
            let message = format_args!("`{first}` is {x}, `{second}` is {y}; they must have one dtype");
            let report = call.error(Code::DtypeMismatch, ParamPlace::Param(second), message);
            let report = report.with_label(ParamPlace::Param(first), call.ty(first).to_string());
            Err(report.with_help(format!("convert one: `R.astype({}, \"{x}\")`", call.written(second))).into())
        }
        _ => Ok(()),
    }
}

/// Checks that two operands have the same rank. An unknown rank passes.
///
/// # Errors
/// Reports the second operand.
pub(crate) fn check_same_rank(
    call: &CallInfo<'_>,
    (first, a): (&'static str, &TensorInfo),
    (second, b): (&'static str, &TensorInfo),
) -> Result<(), Problem> {
    match (a.shape.ndim(), b.shape.ndim()) {
        (Some(x), Some(y)) if x != y => {
            let message = format_args!("`{first}` has {x} dimensions, `{second}` has {y}; they must agree");
            Err(call
                .operand_error(Code::TensorNdimMismatch, second, message)
                .with_label(ParamPlace::Param(first), call.ty(first).to_string())
                .into())
        }
        _ => Ok(()),
    }
}

/// Returns the device of a result made of several tensors: their common device, or `None` if two differ.
pub(crate) fn common_vdevice<'a>(tensors: impl IntoIterator<Item = &'a TensorInfo>) -> Option<VDevice> {
    let mut devices = tensors.into_iter().filter_map(|tensor| tensor.vdevice);
    let first = devices.next()?;
    devices.all(|device| device == first).then_some(first)
}
