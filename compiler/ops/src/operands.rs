//! Checks of operands that several operator families share: equal dtypes and devices, ranks, equal extents.

use crate::call::{CallInfo, ParamPlace, Problem};
use rx_base::dtype::TypeCode;
use rx_base::{Answer, Code, DType, Diagnostic, Dim, counted};
use rx_ir::{Shape, StructInfo, TensorInfo, VDevice};
use std::fmt;

/// The dtype of an operand, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    /// The dtype; `None` if unknown.
    pub dtype: Option<DType>,
    /// Whether a dtype contradiction was already reported. Such a dtype agrees with every other.
    pub error: bool,
}

impl Element {
    /// Returns the dtype of `tensor`.
    pub(crate) fn of(tensor: &TensorInfo) -> Element {
        Element { dtype: tensor.dtype, error: tensor.dtype_error }
    }

    /// Creates the dtype `dtype`, which is unknown for `None`.
    pub(crate) fn known(dtype: Option<DType>) -> Element {
        Element { dtype, error: false }
    }
}

/// Creates a tensor type of these parts.
pub(crate) fn tensor_type(shape: Shape, element: Element, vdevice: Option<VDevice>) -> StructInfo {
    TensorInfo { shape, dtype: element.dtype, vdevice, dtype_error: element.error, readings: None }.into()
}

/// Creates a tensor type with the dtype and device of `tensor`.
pub(crate) fn tensor_like(tensor: &TensorInfo, shape: Shape) -> StructInfo {
    tensor_type(shape, Element::of(tensor), tensor.vdevice)
}

/// Returns the shape that has rank `ndim` and unknown dims; keeps an error shape an error.
pub(crate) fn rank_like(shape: &Shape, ndim: Option<usize>) -> Shape {
    match shape {
        Shape::Error => Shape::Error,
        _ => Shape::of_rank(ndim),
    }
}

/// Returns `shape`, computed from the dims of `sources`. If the shape of a source is a variable, returns only the rank:
/// as in TVM, dims of a result are only computed from dims that are written in the types, although the rule also checks
/// dims known through the variable.
pub(crate) fn computed_from(sources: &[&TensorInfo], shape: Shape) -> Shape {
    match sources.iter().any(|source| source.shape.written_dims().is_none()) {
        true => rank_like(&shape, shape.ndim()),
        false => shape,
    }
}

/// Creates an error at argument `at` about its conflict with argument `against`, with the types of both as labels.
pub(crate) fn clash(
    call: &CallInfo<'_>,
    code: Code,
    at: &'static str,
    against: &'static str,
    message: fmt::Arguments<'_>,
) -> Diagnostic<ParamPlace> {
    call.error(code, ParamPlace::Param(at), message)
        .with_primary_label(format!("`{at}` is {}", call.ty(at)))
        .with_label(ParamPlace::Param(against), format!("`{against}` is {}", call.ty(against)))
}

/// Returns the common dtype of two tensor arguments: the left dtype if either is boolean, unknown if either is unknown
/// (TVM's `InferBinaryArithOpOutDtype`).
///
/// # Errors
/// Reports different dtypes at `right`.
pub(crate) fn joined_element(call: &CallInfo<'_>, left: &'static str, right: &'static str) -> Result<Element, Problem> {
    let (a, b) = (call.tensor(left)?, call.tensor(right)?);
    if a.dtype_error || b.dtype_error {
        return Ok(Element { dtype: None, error: true });
    }
    match (a.dtype, b.dtype) {
        (Some(x), Some(y)) if x != y && !x.is_bool() && !y.is_bool() => {
            let message = format_args!("`{left}` has dtype {x}, `{right}` has dtype {y}");
            Err(clash(call, Code::DtypeMismatch, right, left, message)
                .with_help(format!("convert one of them: `R.astype({}, \"{x}\")`", call.written(right)))
                .into())
        }
        (Some(x), Some(_)) => Ok(Element::known(Some(x))),
        _ => Ok(Element::known(None)),
    }
}

/// Returns the common device of two tensor arguments. An argument without a device takes the device of the other (TVM's
/// `InferBinaryArithOpOutVDevice`).
///
/// # Errors
/// Reports different devices at `right`.
pub(crate) fn joined_vdevice(
    call: &CallInfo<'_>,
    left: &'static str,
    right: &'static str,
) -> Result<Option<VDevice>, Problem> {
    match (call.tensor(left)?.vdevice, call.tensor(right)?.vdevice) {
        (Some(a), Some(b)) if a != b => {
            let message = format_args!("`{left}` lives on \"{}\", `{right}` on \"{}\"", a.0, b.0);
            Err(clash(call, Code::VDeviceMismatch, right, left, message)
                .with_help(format!("move one of them: `R.to_vdevice({}, \"{}\")`", call.written(right), a.0))
                .into())
        }
        (a, b) => Ok(a.or(b)),
    }
}

/// Rejects a tensor whose rank is known and is not `ndim`. The text `axes` completes the message: it describes the
/// dimensions.
///
/// # Errors
/// Reports the tensor at `name`.
pub(crate) fn require_ndim(call: &CallInfo<'_>, name: &'static str, ndim: usize, axes: &str) -> Result<(), Problem> {
    match call.tensor(name)?.shape.ndim() {
        Some(given) if given != ndim => Err(call
            .operand_error(
                Code::TensorNdimMismatch,
                name,
                format_args!("`{name}` must have {} {axes}, it has {given}", counted(ndim, "dimension")),
            )
            .into()),
        _ => Ok(()),
    }
}

/// Rejects a tensor of unknown rank, for operators whose TVM rule does not infer a type then.
///
/// # Errors
/// Reports the tensor at `name`.
pub(crate) fn require_rank(call: &CallInfo<'_>, name: &'static str) -> Result<(), Problem> {
    let shape = &call.tensor(name)?.shape;
    if *shape == Shape::Error || shape.ndim().is_some() {
        return Ok(());
    }
    let message = format_args!("the rank of `{name}` must be known, it is {}", call.ty(name));
    let report = call.error(Code::TensorNdimMismatch, ParamPlace::Param(name), message);
    Err(report.with_help("a match_cast states a fact that is known when the program runs").into())
}

/// Rejects a tensor that is not known to have rank `ndim`. The text `wanted` describes the requirement:
/// `one dimension`.
///
/// # Errors
/// Reports the tensor at `name`.
pub(crate) fn require_known_ndim(
    call: &CallInfo<'_>,
    name: &'static str,
    ndim: usize,
    wanted: &str,
) -> Result<(), Problem> {
    let shape = &call.tensor(name)?.shape;
    if *shape == Shape::Error || shape.ndim() == Some(ndim) {
        return Ok(());
    }
    let given = shape.ndim().map_or_else(|| "an unknown number".to_owned(), |given| given.to_string());
    let message = format_args!("`{name}` must have {wanted}, it has {given}");
    let report = call.operand_error(Code::TensorNdimMismatch, name, message);
    Err(match shape.ndim() {
        None => report.with_help("a match_cast states a fact that is known when the program runs").into(),
        Some(_) => report.into(),
    })
}

/// Whether bfloat16 counts as a float dtype. TVM's checks differ from operator to operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floats {
    /// `float16`, `float32`, `float64`.
    Ieee,
    /// IEEE floats and `bfloat16`.
    IeeeAndBfloat,
}

/// Rejects a tensor whose dtype is known and is not a float.
///
/// # Errors
/// Reports the tensor at `name`.
pub(crate) fn require_float(call: &CallInfo<'_>, name: &'static str, floats: Floats) -> Result<(), Problem> {
    let Some(dtype) = call.tensor(name)?.dtype else { return Ok(()) };
    match dtype.code {
        TypeCode::Float => Ok(()),
        TypeCode::BFloat if floats == Floats::IeeeAndBfloat => Ok(()),
        _ => Err(call
            .operand_error(Code::DtypeMismatch, name, format_args!("`{name}` must have a float dtype, it has {dtype}"))
            .with_help(format!("convert it: `R.astype({}, \"float32\")`", call.written(name)))
            .into()),
    }
}

/// An axis of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisOf {
    /// The argument.
    pub param: &'static str,
    /// The axis, counted from 0.
    pub axis: usize,
}

impl AxisOf {
    /// Creates the reference to axis `axis` of `param`.
    pub(crate) fn new(param: &'static str, axis: usize) -> AxisOf {
        AxisOf { param, axis }
    }

    /// Returns its extent, if known.
    pub(crate) fn dim<'a>(self, call: &CallInfo<'a>) -> Option<&'a Dim> {
        call.ty(self.param).as_tensor()?.shape.dims()?.get(self.axis)
    }
}

/// Rejects two extents that can never be equal. `subject` is the subject of the message, such as `the batch size`.
///
/// # Errors
/// Reports both extents at the second argument.
pub(crate) fn require_equal(call: &CallInfo<'_>, a: AxisOf, b: AxisOf, subject: &str) -> Result<(), Problem> {
    let (Some(x), Some(y)) = (a.dim(call), b.dim(call)) else { return Ok(()) };
    match call.equal(x, y) {
        Answer::Refuted => Err(unequal(call, (a, x), (b, y), subject).into()),
        _ => Ok(()),
    }
}

/// Checks like [`require_equal`], and also rejects extents that are not proved equal, for operators whose TVM rule
/// requires a proof.
///
/// # Errors
/// Fails like [`require_equal`].
pub(crate) fn require_proved_equal(call: &CallInfo<'_>, a: AxisOf, b: AxisOf, subject: &str) -> Result<(), Problem> {
    let (Some(x), Some(y)) = (a.dim(call), b.dim(call)) else { return Ok(()) };
    let report = match call.equal(x, y) {
        Answer::Proved => return Ok(()),
        Answer::Refuted => unequal(call, (a, x), (b, y), subject),
        Answer::Open => unequal(call, (a, x), (b, y), subject)
            .with_help("if they are equal, say so with R.match_cast before the call"),
    };
    Err(report.into())
}

fn unequal(
    call: &CallInfo<'_>,
    (a, x): (AxisOf, &Dim),
    (b, y): (AxisOf, &Dim),
    subject: &str,
) -> Diagnostic<ParamPlace> {
    let message = format_args!("{subject} is {x} in `{}` and {y} in `{}`", a.param, b.param);
    let label = |side: AxisOf, dim: &Dim| format!("{}: axis {} is {dim}", call.ty(side.param), side.axis);
    call.error(Code::ShapeMismatch, ParamPlace::Param(b.param), message)
        .with_primary_label(label(b, y))
        .with_label(ParamPlace::Param(a.param), label(a, x))
}

/// Rejects an extent that can never be `wanted`. The text `why` explains the number: `(batch index, x1, y1, x2, y2)`.
///
/// # Errors
/// Reports the extent at the argument.
pub(crate) fn require_extent(call: &CallInfo<'_>, of: AxisOf, wanted: i64, why: &str) -> Result<(), Problem> {
    let Some(dim) = of.dim(call) else { return Ok(()) };
    if call.equal(dim, &Dim::constant(wanted)) != Answer::Refuted {
        return Ok(());
    }
    let message = format_args!("axis {} of `{}` must be {wanted} {why}, it is {dim}", of.axis, of.param);
    Err(call.operand_error(Code::ShapeMismatch, of.param, message).into())
}
