//! Operators that create a tensor of a given shape, and the triangular parts of a matrix: schemas and struct-info
//! rules.

use super::compute::at_most;
use super::compute::create as compute;
use super::elementwise::with_dtype;
use super::values::create as values;
use crate::arguments::{Scalar, integer, negative_dim, new_shape, scalar};
use crate::call::{CallInfo, ParamPlace, Problem, Rule, operand};
use crate::cost::Cost;
use crate::operands::{Element, require_known_ndim, require_ndim, tensor_type};
use crate::schema::{AttrKind, Default, Param, ParamKind, Schema, Traits};
use rx_base::{Answer, Code, DType, Dim};
use rx_ir::{PrimInfo, Shape, StructInfo, TensorInfo};

const SHAPE: Param = Param::operand("shape", ParamKind::Shape, "The shape of the result.");
const DTYPE: Param = Param::required_attr("dtype", AttrKind::DType, "The dtype of the result.");
const LIKE_DTYPE: Param =
    Param::optional_attr("dtype", AttrKind::DType, "The dtype of the result; that of `x` when left out.");
const DIAGONAL: Param = Param {
    name: "k",
    kind: ParamKind::Prim,
    default: Default::Int(0),
    doc: "The diagonal: 0 is the main one, positive ones lie above it, negative ones below.",
};

/// Creates a pure operator of this module.
const fn create(name: &'static str, doc: &'static str, infer: Rule) -> Schema {
    Schema::new(name, doc, infer).costing(Cost::Fill)
}

pub(crate) static OPERATORS: &[Schema] = &[
    create("full", "A tensor of a given shape with one value everywhere.", full)
        .taking(&[
            SHAPE,
            Param::tensor("fill_value", "The value of every element, a tensor without dimensions."),
            Param::optional_attr(
                "dtype",
                AttrKind::DType,
                "The dtype of the result; that of `fill_value` when left out.",
            ),
        ])
        .lowered_by(compute::full)
        .with_traits(Traits::OPAQUE.computing(values::full)),
    create("full_like", "A tensor of the shape of `x` with one value everywhere.", full_like)
        .taking(&[
            Param::tensor("x", "The tensor that gives the shape."),
            Param::tensor("fill_value", "The value of every element, a tensor without dimensions."),
            LIKE_DTYPE,
        ])
        .lowered_by(compute::full)
        .with_traits(Traits::OPAQUE.computing(values::full)),
    create("ones", "A tensor of ones.", filled)
        .taking(&[SHAPE, DTYPE])
        .lowered_by(compute::ones)
        .with_traits(Traits::OPAQUE.computing(values::ones)),
    create("ones_like", ONES_LIKE, like)
        .taking(&[Param::tensor("x", "The tensor that gives the shape."), LIKE_DTYPE])
        .lowered_by(compute::ones)
        .with_traits(Traits::OPAQUE.computing(values::ones)),
    create("zeros", "A tensor of zeros.", filled)
        .taking(&[SHAPE, DTYPE])
        .lowered_by(compute::zeros)
        .with_traits(Traits::OPAQUE.computing(values::zeros)),
    create("zeros_like", ZEROS_LIKE, like)
        .taking(&[Param::tensor("x", "The tensor that gives the shape."), LIKE_DTYPE])
        .lowered_by(compute::zeros)
        .with_traits(Traits::OPAQUE.computing(values::zeros)),
    create("eye", "A matrix with ones on a diagonal and zeros elsewhere.", eye)
        .taking(&[
            Param::operand("n", ParamKind::Prim, "The number of rows."),
            Param::optional("m", ParamKind::Prim, "The number of columns; `n` when left out."),
            DIAGONAL,
            Param::dtype("dtype", "float32", "The dtype of the result."),
        ])
        .lowered_by(compute::eye)
        .with_traits(Traits::OPAQUE.computing(values::eye)),
    create("eye_like", "A matrix of the shape of `x` with ones on a diagonal and zeros elsewhere.", eye_like)
        .taking(&[Param::tensor("x", "The matrix that gives the shape."), DIAGONAL, LIKE_DTYPE])
        .lowered_by(compute::eye)
        .with_traits(Traits::OPAQUE.computing(values::eye)),
    create("arange", "Evenly spaced values: `start`, `start + step`, and so on up to `end`.", arange)
        .taking(&[
            Param::operand(
                "start",
                ParamKind::Prim,
                "The first value; if it is the only argument, the end of a range from 0.",
            ),
            Param::optional("end", ParamKind::Prim, "The end of the range, not included."),
            Param {
                name: "step",
                kind: ParamKind::Prim,
                default: Default::Int(1),
                doc: "The distance of neighbours; not 0.",
            },
            Param::optional_attr(
                "dtype",
                AttrKind::DType,
                "The dtype of the result; when left out `int64` for integer arguments, else `float32`.",
            ),
        ])
        .lowered_by(compute::arange)
        .with_traits(Traits::OPAQUE.computing(values::arange)),
    create(
        "hamming_window",
        "The Hamming window `α - β·cos(2πn / (N - 1))`; a periodic one has N in place of N - 1.",
        hamming_window,
    )
    .taking(&[
        Param::operand("window_size", ParamKind::Prim, "The number of values, at least 1."),
        Param::operand("periodic", ParamKind::Prim, "Whether the window repeats, or is symmetric."),
        Param::operand("alpha", ParamKind::Prim, "The coefficient α, usually 0.54."),
        Param::operand("beta", ParamKind::Prim, "The coefficient β, usually 0.46."),
        Param::required_attr("dtype", AttrKind::DType, "The dtype of the result, no integer."),
    ])
    .lowered_by(compute::hamming_window)
    .costing(Cost::PerOutput(4)),
    create("tril", "The lower triangular part of each matrix: elements above a diagonal become 0.", triangle)
        .taking(&[Param::tensor("x", "Matrices on the last two axes."), DIAGONAL])
        .lowered_by(|lowering| compute::triangle(lowering, |row, column| at_most(column, row)))
        .costing(Cost::PerOutput(0))
        .with_traits(Traits::OPAQUE.computing(values::triangle)),
    create("triu", "The upper triangular part of each matrix: elements below a diagonal become 0.", triangle)
        .taking(&[Param::tensor("x", "Matrices on the last two axes."), DIAGONAL])
        .lowered_by(|lowering| compute::triangle(lowering, |row, column| column.ge(row)))
        .costing(Cost::PerOutput(0))
        .with_traits(Traits::OPAQUE.computing(values::triangle)),
];

const ONES_LIKE: &str = "A tensor of ones of the shape of `x`.";
const ZEROS_LIKE: &str = "A tensor of zeros of the shape of `x`.";

/// Returns the type of the fill value, which must be known to be a scalar tensor, as in TVM.
fn fill_value<'a>(call: &CallInfo<'a>) -> Result<&'a TensorInfo, Problem> {
    require_known_ndim(call, "fill_value", 0, "no dimensions")?;
    call.tensor("fill_value")
}

fn full(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let shape = new_shape(call, "shape")?;
    let fill = fill_value(call)?;
    let element = call.dtype("dtype").map_or(Element::of(fill), |dtype| Element::known(Some(dtype)));
    Ok(tensor_type(shape, element, fill.vdevice))
}

fn full_like(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    call.tensor("x")?;
    fill_value(call)?;
    like(call)
}

/// Infers the type of `x`, with another dtype if one is given.
fn like(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    call.tensor("x")?;
    let data = call.ty("x");
    Ok(call.dtype("dtype").map_or_else(|| data.clone(), |dtype| with_dtype(data, Some(dtype))))
}

fn filled(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    Ok(tensor_type(new_shape(call, "shape")?, Element::known(call.dtype("dtype")), None))
}

/// Returns a dim of the result: the scalar `name`, or `other` if it is left out.
fn dim(call: &CallInfo<'_>, name: &'static str, other: Option<Dim>) -> Result<Option<Dim>, Problem> {
    if scalar(call, name)?.is_none() {
        return Ok(other);
    }
    require_int64(call, name)?;
    let dim = integer(call, name)?;
    match &dim {
        Some(dim) if dim.as_constant().is_some_and(|value| value < 0) => Err(negative_dim(call, name, dim)),
        _ => Ok(dim),
    }
}

/// Rejects a scalar whose dtype is not the dtype of dims (`int64`). A constant is converted instead.
fn require_int64(call: &CallInfo<'_>, name: &'static str) -> Result<(), Problem> {
    if integer(call, name).ok().flatten().is_some_and(|value| value.as_constant().is_some()) {
        return Ok(());
    }
    match call.ty(name) {
        StructInfo::Prim(PrimInfo { dtype: Some(dtype), .. }) if *dtype != DType::INT64 => {
            let message = format_args!("`{name}` is {dtype}, a dim is int64");
            Err(call.error(Code::ArgumentType, ParamPlace::Param(name), message).into())
        }
        _ => Ok(()),
    }
}

fn eye(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    scalar(call, "k")?;
    let rows = dim(call, "n", None)?;
    let columns = dim(call, "m", rows.clone())?;
    let shape = match (rows, columns) {
        (Some(rows), Some(columns)) => Shape::known([rows, columns]),
        _ => Shape::Rank(2),
    };
    Ok(tensor_type(shape, Element::known(call.dtype("dtype")), None))
}

fn eye_like(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    scalar(call, "k")?;
    require_ndim(call, "x", 2, "(rows, columns)")?;
    like(call)
}

/// Infers the type of `arange` (TVM's `InferTypeArange`).
fn arange(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let zero = Scalar::Int(Dim::constant(0));
    let (Some(first), second) = (scalar(call, "start")?, scalar(call, "end")?) else { return Err(Problem::Propagate) };
    let (start, end) = match second {
        Some(end) => (first, end),
        None => (zero, first),
    };
    let step = scalar(call, "step")?.unwrap_or(Scalar::Int(Dim::constant(1)));
    let all_int = [&start, &end, &step].into_iter().all(|scalar| match scalar {
        Scalar::Int(_) => true,
        Scalar::Float(_) => false,
        Scalar::Unknown(dtype) => dtype.is_none_or(DType::is_int),
    });
    let default = if all_int { DType::INT64 } else { DType::FLOAT32 };
    let dtype = if call.attr("dtype").is_some() { call.dtype("dtype") } else { Some(default) };
    let shape = arange_count(call, &start, &end, &step)?.map_or(Shape::Rank(1), |count| Shape::known([count]));
    Ok(tensor_type(shape, Element::known(dtype), None))
}

/// Returns the number of values in a range; `None` if unknown. For integers, TVM computes
/// `(end - start + step - 1) // step`, also for negative steps. For floats, it rounds `(end - start) / step` up.
fn arange_count(call: &CallInfo<'_>, start: &Scalar, end: &Scalar, step: &Scalar) -> Result<Option<Dim>, Problem> {
    let is_zero = match step {
        Scalar::Int(step) => step.as_constant() == Some(0),
        Scalar::Float(step) => *step == 0.0,
        Scalar::Unknown(_) => false,
    };
    if is_zero {
        let message = format_args!("`step` must not be 0");
        return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("step"), message).into());
    }
    let count = match (start, end, step) {
        (Scalar::Int(start), Scalar::Int(end), Scalar::Int(step)) => {
            (&(&(end - start) + step) - &Dim::constant(1)).floor_div(step)
        }
        (start, end, step) => match (float_value(start), float_value(end), float_value(step)) {
            (Some(start), Some(end), Some(step)) => {
                let count = ((end - start) / step).ceil();
                // Above 2^53 a float does not represent every integer; such a tensor would not fit in memory anyway.
                if count.is_nan() || count.abs() > 9_007_199_254_740_992.0 {
                    return Ok(None);
                }
                Dim::constant(count as i64)
            }
            _ => return Ok(None),
        },
    };
    if call.at_least(&count, &Dim::constant(0)) == Answer::Refuted {
        let place = if call.operand("end").is_some() { "end" } else { "start" };
        let message = format_args!("the range ends before it starts, it would have {count} values");
        return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param(place), message).into());
    }
    call.derive(Some(0), || match (start, end, step) {
        (Scalar::Int(start), Scalar::Int(end), Scalar::Int(step)) if step.as_constant() == Some(1) => {
            format!("{} - {} = {count}", operand(end), operand(start))
        }
        (Scalar::Int(start), Scalar::Int(end), Scalar::Int(step)) => {
            let (start, end, step) = (operand(start), operand(end), operand(step));
            format!("({end} - {start} + {step} - 1) // {step} = {count}")
        }
        _ => format!("(end - start) / step, rounded up = {count}"),
    });
    Ok(Some(count))
}

fn float_value(scalar: &Scalar) -> Option<f64> {
    match scalar {
        Scalar::Int(value) => value.as_constant().map(|value| value as f64),
        Scalar::Float(value) => Some(*value),
        Scalar::Unknown(_) => None,
    }
}

fn hamming_window(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    for name in ["periodic", "alpha", "beta"] {
        scalar(call, name)?;
    }
    let dtype = call.dtype("dtype");
    if let Some(dtype) = dtype.filter(|dtype| dtype.is_int()) {
        let message = format_args!("`dtype` must be a float dtype, it is {dtype}");
        return Err(call.error(Code::DtypeMismatch, ParamPlace::Param("dtype"), message).into());
    }
    require_int64(call, "window_size")?;
    let size = integer(call, "window_size")?;
    if let Some(size) = &size
        && call.at_least(size, &Dim::constant(1)) == Answer::Refuted
    {
        let message = format_args!("`window_size` must be at least 1, it is {size}");
        return Err(call.error(Code::AttrOutOfRange, ParamPlace::Param("window_size"), message).into());
    }
    let shape = size.map_or(Shape::Rank(1), |size| Shape::known([size]));
    Ok(tensor_type(shape, Element::known(dtype), None))
}

/// Infers the type of `tril` and `triu` (TVM's `InferTypeTrilTriu`).
fn triangle(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    scalar(call, "k")?;
    match call.tensor("x")?.shape.ndim() {
        Some(ndim) if ndim < 2 => {
            let message = format_args!("`x` must have at least 2 dimensions, it has {ndim}");
            let report = call.error(Code::TensorNdimMismatch, ParamPlace::Param("x"), message);
            Err(report.with_primary_label(call.ty("x").to_string()).into())
        }
        _ => Ok(call.ty("x").clone()),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, float, given, infer, int, shape, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::{Shape, StructInfo};

    #[test]
    fn a_filled_tensor_takes_its_dtype_from_the_attribute_or_the_value() {
        let fill = |value: &str| ("fill_value", tensor(value));
        assert_eq!(infer("full", &[("shape", shape("2 n")), fill(":int8")]), Ok(ty("2 n:int8")));
        let half = [("shape", shape("2")), fill("?0:?"), ("dtype", text("float16"))];
        assert_eq!(infer("full", &half), Ok(ty("2:float16")));
        let vague = given(StructInfo::Shape(Shape::Rank(2)));
        assert_eq!(infer("zeros", &[("shape", vague), ("dtype", text("int8"))]), Ok(ty("$x/2:int8")));
        assert_eq!(infer("ones_like", &[("x", tensor("?2:int8"))]), Ok(ty("?2:int8")));
        for wrong in ["1:int8", "*:int8"] {
            let result = infer("full", &[("shape", shape("2")), fill(wrong)]);
            assert_eq!(result, Err(Some(Code::TensorNdimMismatch)));
        }
        let negative = [("shape", shape("2 -3")), ("dtype", text("int8"))];
        assert_eq!(infer("ones", &negative), Err(Some(Code::AttrOutOfRange)));
        let tensor_shape = [("shape", tensor("2:int64")), ("dtype", text("int8"))];
        assert_eq!(infer("ones", &tensor_shape), Err(Some(Code::ArgumentType)));
    }

    #[test]
    fn a_range_counts_its_values() {
        let range = |args: Vec<(&str, Given)>| infer("arange", &args);
        let all = |start, end, step| range(vec![("start", start), ("end", end), ("step", step)]);
        assert_eq!(range(vec![("start", int("10"))]), Ok(ty("10:int64")));
        assert_eq!(all(int("1"), int("10"), int("2")), Ok(ty("5:int64")));
        assert_eq!(all(int("0"), int("n+1"), int("1")), Ok(ty("n+1:int64")));
        assert_eq!(all(int("1"), int("10"), float(2.3, "float64")), Ok(ty("4:float32")));
        assert_eq!(all(int("0"), float(10.0, "float64"), int("1")), Ok(ty("10:float32")));
        assert_eq!(all(int("10"), int("0"), int("1")), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(all(int("10"), int("0"), int("0")), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(all(int("0"), float(f64::NAN, "float64"), int("1")), Ok(ty("?1:float32")));
    }

    #[test]
    fn matrices() {
        assert_eq!(infer("eye", &[("n", int("3"))]), Ok(ty("3 3:float32")));
        assert_eq!(infer("eye", &[("n", int("3")), ("m", int("n")), ("k", int("-2"))]), Ok(ty("3 n:float32")));
        let window = [("window_size", int("0")), ("periodic", int("1")), ("dtype", text("float32"))];
        assert_eq!(infer("hamming_window", &window), Err(Some(Code::AttrOutOfRange)));
        assert_eq!(infer("tril", &[("x", tensor("2 n 3:int8"))]), Ok(ty("2 n 3:int8")));
        assert_eq!(infer("triu", &[("x", tensor("$s/1:int8"))]), Err(Some(Code::TensorNdimMismatch)));
        assert_eq!(infer("eye_like", &[("x", tensor("2 n 3:int8"))]), Err(Some(Code::TensorNdimMismatch)));
    }
}
