//! Elementwise operators of two operands, with broadcasting: schemas and struct-info rules.

use super::compute::binary as compute;
use super::values::binary as values;
use crate::broadcast::broadcast_shapes;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::cost::Cost;
use crate::infer_layout::{Laid, LaidOut, LayoutCall, with_new_last_axes};
use crate::layout::Layout;
use crate::operands::{Element, clash, tensor_type};
use crate::schema::{Param, ParamKind, Schema, Traits};
use rx_base::{Code, DType, Dim};
use rx_ir::{ExprKind, PrimInfo, PrimValue, Shape, StructInfo, VDevice};

const PARAMS: &[Param] = &[
    Param::operand("x1", ParamKind::Any, "The left operand, a tensor or a scalar."),
    Param::operand("x2", ParamKind::Any, "The right operand, a tensor or a scalar."),
];

/// Creates an operator whose result has the dtype of its operands.
const fn arithmetic(name: &'static str, doc: &'static str) -> Schema {
    Schema::new(name, doc, infer_arithmetic)
        .taking(PARAMS)
        .lowered_by(compute::binary)
        .costing(Cost::PerOutput(1))
        .with_traits(Traits::OPAQUE.computing(values::binary).laid_out(layouts))
}

/// Creates an operator with a boolean result.
const fn comparison(name: &'static str, doc: &'static str) -> Schema {
    Schema { infer: infer_comparison, ..arithmetic(name, doc) }
}

pub(crate) static OPERATORS: &[Schema] = &[
    arithmetic("add", "The sum of the operands, element by element, with broadcasting."),
    arithmetic("atan2", "The angle of the point `(x2, x1)` in radians, from -π to π, with broadcasting."),
    arithmetic("bitwise_and", "The bitwise and of the operands, with broadcasting."),
    arithmetic("bitwise_or", "The bitwise or of the operands, with broadcasting."),
    arithmetic("bitwise_xor", "The bitwise exclusive or of the operands, with broadcasting."),
    arithmetic(
        "divide",
        "The quotient `x1 / x2`, element by element, with broadcasting. Integers are rounded toward zero.",
    ),
    comparison("equal", "Whether the operands are equal, element by element, with broadcasting."),
    arithmetic("floor_divide", "The quotient `x1 / x2` rounded toward -∞, with broadcasting."),
    arithmetic("floor_mod", "The remainder of `floor_divide`, of the sign of `x2`, with broadcasting."),
    comparison("greater", "Whether `x1 > x2`, element by element, with broadcasting."),
    comparison("greater_equal", "Whether `x1 >= x2`, element by element, with broadcasting."),
    arithmetic("left_shift", "The bits of `x1` shifted left by `x2` places, with broadcasting."),
    comparison("less", "Whether `x1 < x2`, element by element, with broadcasting."),
    comparison("less_equal", "Whether `x1 <= x2`, element by element, with broadcasting."),
    arithmetic("log_add_exp", "`log(exp(x1) + exp(x2))`, computed without overflow, with broadcasting."),
    arithmetic("logical_and", "The logical and of the operands, with broadcasting."),
    arithmetic("logical_or", "The logical or of the operands, with broadcasting."),
    arithmetic("logical_xor", "The logical exclusive or of the operands, with broadcasting."),
    arithmetic("maximum", "The larger of the operands, element by element, with broadcasting."),
    arithmetic("minimum", "The smaller of the operands, element by element, with broadcasting."),
    arithmetic("mod", "The remainder of the division rounded toward zero, of the sign of `x1`, with broadcasting."),
    arithmetic("multiply", "The product of the operands, element by element, with broadcasting."),
    comparison("not_equal", "Whether the operands differ, element by element, with broadcasting."),
    arithmetic("power", "`x1` raised to the power `x2`, element by element, with broadcasting."),
    arithmetic("right_shift", "The bits of `x1` shifted right by `x2` places, with broadcasting."),
    arithmetic("subtract", "The difference `x1 - x2`, element by element, with broadcasting."),
];

/// An operand: a tensor, or a scalar, which broadcasts like a tensor of shape `(1,)`.
struct Side {
    name: &'static str,
    shape: Shape,
    element: Element,
    vdevice: Option<VDevice>,
    scalar: bool,
    /// Whether it is a bare integer such as `1`. TVM's parser reads it as `int32`, but its printer also writes `int64`
    /// integers bare.
    bare_integer: bool,
}

fn side(call: &CallInfo<'_>, name: &'static str) -> Result<Side, Problem> {
    let ty = call.ty(name);
    if let Some(tensor) = ty.as_tensor() {
        let (shape, element) = (tensor.shape.clone(), Element::of(tensor));
        return Ok(Side { name, shape, element, vdevice: tensor.vdevice, scalar: false, bare_integer: false });
    }
    let prim = match ty {
        StructInfo::Prim(prim) => prim,
        StructInfo::Error => return Err(Problem::Propagate),
        ty => return Err(call.wrong_kind(ParamPlace::Param(name), name, "a tensor or a scalar", ty)),
    };
    let literal = match call.operand(name).map(|expr| &expr.kind) {
        Some(ExprKind::Prim(PrimValue::Int(value))) if value.as_constant().is_some() => Some(DType::INT32),
        Some(ExprKind::Prim(PrimValue::Int(_))) => Some(DType::INT64),
        Some(ExprKind::Prim(PrimValue::Float(_))) => Some(DType::FLOAT32),
        Some(ExprKind::Prim(PrimValue::Bool(_))) => Some(DType::BOOL),
        _ => None,
    };
    let bare_integer = literal == Some(DType::INT32) && prim.dtype.is_none_or(|dtype| dtype == DType::INT64);
    Ok(Side {
        name,
        shape: Shape::known([Dim::constant(1)]),
        element: Element::known(prim.dtype.filter(|_| !bare_integer).or(literal)),
        vdevice: None,
        scalar: true,
        bare_integer,
    })
}

/// Infers the type of an arithmetic operator (TVM's `InferTypeBroadcastArith`).
fn infer_arithmetic(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (left, right) = (side(call, "x1")?, side(call, "x2")?);
    let element = arithmetic_element(call, &left, &right)?;
    infer_broadcast(call, &left, &right, element)
}

/// Infers the type of a comparison, whose operands may have different dtypes (TVM's `InferTypeBroadcastCMP`).
fn infer_comparison(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let (left, right) = (side(call, "x1")?, side(call, "x2")?);
    infer_broadcast(call, &left, &right, Element::known(Some(DType::BOOL)))
}

/// Layout rule of binary operators (TVM's `InferLayoutBinaryEwise`). The operand of lower rank (the left one, if the
/// ranks are equal) determines the order of the last axes, and the other operand gets that layout with its additional
/// axes first. For equal ranks, a layout that splits axes is used if the other operand can also have it. In all other
/// cases axes are not split. A scalar has no layout.
///
/// For example, `x1` of rank 4 and `x2` of rank 2 in layout `BA` give `x1` and the result the layout `ABDC`.
fn layouts(call: &LayoutCall<'_>) -> Option<LaidOut> {
    let (left, right) = match (call.layout("x1"), call.layout("x2")) {
        (Some(left), Some(right)) => (left, right),
        (Some(only), None) => return Some(LaidOut::result(Laid::Tensor(only.clone())).of("x1", only)),
        (None, Some(only)) => return Some(LaidOut::result(Laid::Tensor(only.clone())).of("x2", only)),
        (None, None) => return None,
    };
    let [left_ndim, right_ndim] = [left, right].map(|layout| layout.letters().count());
    let alike = |layout: &Layout| LaidOut::result(Laid::Tensor(layout.clone())).of("x1", layout).of("x2", layout);
    if left_ndim == right_ndim && !(left.is_plain() && right.is_plain()) {
        let (layout, other) = if left.ndim() >= right.ndim() { (left, "x2") } else { (right, "x1") };
        if call.fits(other, layout) {
            return Some(alike(layout));
        }
    }
    let (few, many, of_few) = if left_ndim <= right_ndim { ("x1", "x2", left) } else { ("x2", "x1", right) };
    if left_ndim.min(right_ndim) == 0 {
        let layout = call.layout(many)?;
        return Some(LaidOut::result(Laid::Tensor(layout.clone())).of(many, layout));
    }
    let own = if of_few.is_plain() { of_few.clone() } else { call.whole(few)? };
    let all = with_new_last_axes(&own, left_ndim.max(right_ndim))?;
    Some(LaidOut::result(Laid::Tensor(all.clone())).of(few, &own).of(many, &all))
}

fn infer_broadcast(call: &CallInfo<'_>, left: &Side, right: &Side, element: Element) -> Result<StructInfo, Problem> {
    if left.scalar && right.scalar {
        return Ok(StructInfo::Prim(PrimInfo { dtype: element.dtype, value: None }));
    }
    let vdevice = match (left.vdevice, right.vdevice) {
        (Some(a), Some(b)) if a != b => {
            let message = format_args!("`{}` lives on \"{}\", `{}` on \"{}\"", left.name, a.0, right.name, b.0);
            let report = clash(call, Code::VDeviceMismatch, right.name, left.name, message);
            return Err(report.with_help(format!("move one of them: `R.to_vdevice(…, \"{}\")`", a.0)).into());
        }
        (a, b) => a.or(b),
    };
    let shape = broadcast_shapes(call, &left.shape, &right.shape)
        .map_err(|conflict| conflict.report(call, left.name, right.name))?;
    Ok(tensor_type(shape, element, vdevice))
}

/// Returns the dtype of the left operand. The right operand must have the same dtype, unless one of them is `bool`
/// (TVM's `InferBinaryArithOpOutDtype`).
fn arithmetic_element(call: &CallInfo<'_>, left: &Side, right: &Side) -> Result<Element, Problem> {
    if left.element.error || right.element.error {
        return Ok(Element { dtype: None, error: true });
    }
    let (Some(a), Some(b)) = (left.element.dtype, right.element.dtype) else { return Ok(Element::known(None)) };
    let a = if left.bare_integer && b == DType::INT64 { b } else { a };
    let b = if right.bare_integer && a == DType::INT64 { a } else { b };
    if a == b || a.is_bool() || b.is_bool() {
        return Ok(Element::known(Some(a)));
    }
    let message = format_args!("`{}` has dtype {a}, `{}` has dtype {b}", left.name, right.name);
    let help = match (left.scalar, right.scalar) {
        (_, true) => format!("write the scalar as `T.{a}(…)`"),
        (true, _) => format!("write the scalar as `T.{b}(…)`"),
        _ => format!("convert one of them: `R.astype(…, \"{a}\")`"),
    };
    Err(clash(call, Code::DtypeMismatch, right.name, left.name, message).with_help(help).into())
}

#[cfg(test)]
mod tests {
    use crate::tests::{float, given, infer, int, prim, tensor, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn add(left: &str, right: &str) -> Result<StructInfo, Option<Code>> {
        infer("add", &[("x1", tensor(left)), ("x2", tensor(right))])
    }

    #[test]
    fn tensors_broadcast_and_share_a_dtype() {
        for (left, right, wanted) in [
            ("1 3:float32", "4 3 2 1:float32", "4 3 2 3:float32"),
            ("m n:float32", "m n+2:float32", "?2:float32"),
            ("3 2 3:float32", "?2:float32", "?3:float32"),
            ("*:?", "2 3:float32", "*:?"),
            ("$s/2:float32", "$s/2:float32", "$s/2:float32"),
            ("$s/2:float32", "$t/1:float32", "?2:float32"),
            ("2:bool", "2:float32", "2:bool"),
            ("2:float32", "2:float32@cuda:0:global", "2:float32@cuda:0:global"),
        ] {
            assert_eq!(add(left, right), Ok(ty(wanted)), "{left} {right}");
        }
    }

    #[test]
    fn scalars_broadcast_as_shape_one() {
        let with = |input: &str, scalar| infer("add", &[("x1", tensor(input)), ("x2", scalar)]);
        assert_eq!(with("2 3:float32", float(1.0, "float32")), Ok(ty("2 3:float32")));
        assert_eq!(with(":float32", given(prim("float32"))), Ok(ty("1:float32")));
        assert_eq!(with("2:float32", int("1")), Err(Some(Code::DtypeMismatch)));
        assert_eq!(with("2:int64", int("n")), Ok(ty("2:int64")));
        let scalars = [("x1", given(prim("float32"))), ("x2", given(prim("float32")))];
        assert_eq!(infer("add", &scalars), Ok(prim("float32")));
        assert_eq!(infer("less", &scalars), Ok(prim("bool")));
    }

    #[test]
    fn clashes_are_reported() {
        assert_eq!(add("2 3:float32", "2 4:float32"), Err(Some(Code::BroadcastMismatch)));
        assert_eq!(add("2:float32", "2:int32"), Err(Some(Code::DtypeMismatch)));
        assert_eq!(add("2:int8@cuda:0:global", "2:int8@llvm:0:global"), Err(Some(Code::VDeviceMismatch)));
        let equal = infer("equal", &[("x1", tensor("2:float32")), ("x2", tensor("2:int32"))]);
        assert_eq!(equal, Ok(ty("2:bool")));
        let any = [("x1", given(StructInfo::Object)), ("x2", tensor("2:int8"))];
        assert_eq!(infer("add", &any), Err(Some(Code::ArgumentType)));
    }
}
