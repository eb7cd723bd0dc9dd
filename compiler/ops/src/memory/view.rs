//! `R.memory.view`: struct-info rule (TVM `src/relax/op/memory/view.cc`).

use crate::arguments::{Scalar, dtype, is_void, new_shape, scalar};
use crate::call::{Arg, CallInfo, ParamPlace, Problem};
use crate::operands::{Element, tensor_type};
use crate::tensor::operands::element_count;
use rx_base::{Answer, Code, DType, Dim};
use rx_ir::{Shape, StructInfo, TensorInfo};

/// Infers the type of a view (TVM's `InferTypeView`). For a shape variable with unknown dims, only the rank is known.
pub(super) fn view(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let data = call.tensor("data")?;
    let shape = match is_void(call, "shape") {
        true => match &data.shape {
            Shape::Var { dims: Some(dims), .. } => Shape::Known(dims.clone()),
            Shape::Var { ndim, .. } => Shape::of_rank(*ndim),
            shape => shape.clone(),
        },
        false => match new_shape(call, "shape")? {
            Shape::Var { dims: Some(dims), .. } => Shape::Known(dims),
            Shape::Var { ndim, .. } => Shape::of_rank(ndim),
            shape => shape,
        },
    };
    let offset = if is_void(call, "relative_byte_offset") { Some(Dim::constant(0)) } else { byte_offset(call)? };
    let element = match view_dtype(call)? {
        Some(element) => element,
        None => Element::of(data),
    };
    check_bounds(call, data, &shape, element, offset.as_ref())?;
    Ok(tensor_type(shape, element, data.vdevice))
}

/// Returns the requested dtype; `None` if the dtype of the data is kept. A variable may be `R.null_value()`, so its
/// dtype is unknown.
fn view_dtype(call: &CallInfo<'_>) -> Result<Option<Element>, Problem> {
    if is_void(call, "dtype") {
        return Ok(None);
    }
    match (call.arg("dtype"), call.ty("dtype")) {
        (Arg::Operand(expr), _) if expr.ty.is_error() => Err(Problem::Propagate),
        (Arg::Operand(_), ty @ (StructInfo::Tensor(_) | StructInfo::Shape(_) | StructInfo::Prim(_))) => {
            Err(call.wrong_kind(ParamPlace::Param("dtype"), "dtype", "a dtype", ty))
        }
        _ => dtype(call, "dtype").map(Some),
    }
}

fn byte_offset(call: &CallInfo<'_>) -> Result<Option<Dim>, Problem> {
    if let StructInfo::Prim(prim) = call.ty("relative_byte_offset")
        && let Some(dtype) = prim.dtype.filter(|dtype| *dtype != DType::INT64)
    {
        let place = ParamPlace::Param("relative_byte_offset");
        let message = format_args!("`relative_byte_offset` must be int64, it is {dtype}");
        return Err(call.error(Code::DtypeMismatch, place, message).into());
    }
    Ok(match scalar(call, "relative_byte_offset")? {
        Some(Scalar::Int(offset)) => Some(offset),
        _ => None,
    })
}

/// Returns the size of a tensor in bytes, if known.
fn byte_count(shape: &Shape, element: Element) -> Option<Dim> {
    let bytes = i64::try_from(element.dtype.filter(|dtype| dtype.lanes > 0)?.bytes()).ok()?;
    Some(&element_count(shape.dims()?) * &Dim::constant(bytes))
}

/// Checks that the view ends at or before the end of the data. An unknown offset counts as 0.
fn check_bounds(
    call: &CallInfo<'_>,
    data: &TensorInfo,
    shape: &Shape,
    element: Element,
    offset: Option<&Dim>,
) -> Result<(), Problem> {
    let unknown = Element::known(None);
    let (unit, available, end) = match (byte_count(&data.shape, Element::of(data)), byte_count(shape, element)) {
        (Some(available), Some(view)) => ("bytes", available, offset.map_or(view.clone(), |offset| &view + offset)),
        _ => match (data.shape.dims(), shape.dims()) {
            // If the dtype is unchanged, elements can be counted even if the dtype is unknown.
            (Some(from), Some(to)) if is_void(call, "dtype") && element == unknown => {
                ("elements", element_count(from), element_count(to))
            }
            _ => {
                check_moved(call, offset)?;
                return check_element_size(call, data, element);
            }
        },
    };
    if call.at_least(&available, &end) != Answer::Refuted {
        return Ok(());
    }
    let place = if is_void(call, "shape") { ParamPlace::Call } else { ParamPlace::Param("shape") };
    let message = format_args!("the view ends after {end} {unit}, `data` has {available}");
    let report = call.error(Code::SliceOutOfBounds, place, message);
    let report = report.with_note(format!("the view is {}", tensor_type(shape.clone(), element, None)));
    Err(report.with_label(ParamPlace::Param("data"), call.ty("data").to_string()).into())
}

/// Rejects a positive offset of a view that keeps shape and dtype, since it would end after the data.
fn check_moved(call: &CallInfo<'_>, offset: Option<&Dim>) -> Result<(), Problem> {
    let stays = is_void(call, "shape") && is_void(call, "dtype");
    match offset.filter(|_| stays) {
        Some(offset) if call.at_least(offset, &Dim::constant(1)) == Answer::Proved => {
            let place = ParamPlace::Param("relative_byte_offset");
            let message = format_args!("the view is as large as `data` and begins {offset} bytes after it");
            Err(call.error(Code::SliceOutOfBounds, place, message).into())
        }
        _ => Ok(()),
    }
}

/// Rejects a larger dtype for a view that keeps an unknown shape, since it would end after the data.
fn check_element_size(call: &CallInfo<'_>, data: &TensorInfo, element: Element) -> Result<(), Problem> {
    match (data.dtype, element.dtype) {
        (Some(from), Some(to)) if is_void(call, "shape") && to.bytes() > from.bytes() => {
            let message = format_args!("an element of {to} is larger than one of {from}, and the shape stays");
            Err(call.error(Code::SliceOutOfBounds, ParamPlace::Param("dtype"), message).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Given, infer, int, shape, tensor, text, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn view(data: &str, more: Vec<(&str, Given)>) -> Result<StructInfo, Option<Code>> {
        let mut args = vec![("data", tensor(data))];
        args.extend(more);
        infer("memory.view", &args)
    }

    #[test]
    fn a_view_has_the_shape_and_dtype_asked_for() {
        assert_eq!(view("3 4:float32", vec![]), Ok(ty("3 4:float32")));
        let halves = vec![("shape", shape("24")), ("dtype", text("float16"))];
        assert_eq!(view("3 4:float32", halves), Ok(ty("24:float16")));
        let second = vec![("shape", shape("4")), ("relative_byte_offset", int("16"))];
        assert_eq!(view("3 4:float32", second), Ok(ty("4:float32")));
        assert_eq!(view("n:?", vec![("shape", shape("m"))]), Ok(ty("m:?")));
        assert_eq!(view("$s/2:int8", vec![]), Ok(ty("?2:int8")));
    }

    #[test]
    fn a_view_stays_within_its_tensor() {
        let outside = Err(Some(Code::SliceOutOfBounds));
        assert_eq!(view("3 4:float32", vec![("shape", shape("13"))]), outside);
        assert_eq!(view("3 4:?", vec![("shape", shape("13"))]), outside);
        assert_eq!(view("3 4:float32", vec![("relative_byte_offset", int("4"))]), outside);
        assert_eq!(view("n:float16", vec![("dtype", text("float32")), ("shape", shape("n+1"))]), outside);
        assert_eq!(view("?2:float16", vec![("dtype", text("float32"))]), outside);
        assert_eq!(view("*:?", vec![("relative_byte_offset", int("16"))]), outside);
        assert_eq!(view("*:?", vec![("relative_byte_offset", int("0"))]), Ok(ty("*:?")));
        assert_eq!(
            view("*:float32", vec![("relative_byte_offset", int("4")), ("dtype", text("int8"))]),
            Ok(ty("*:int8"))
        );
    }
}
