//! *Elementwise binary operators* with broadcasting.
//!
//! ```text
//! add(x1: [n, 4], x2: [4])  →  for i, j in grid(n, 4): out[i, j] = x1[i, j] + x2[j]
//! ```
//!
//! Reference: TVM include/tvm/topi/broadcast.h.

use super::elementwise::differ;
use super::{common_dtype, either, greater, truth};
use crate::compute::{Lowering, Operand, Unsupported};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_ir::{ExprKind, PrimValue, StructInfo};
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic, IterKind, KernelBuilder};

/// The largest constant exponent that is expanded into a product.
const MAX_WRITTEN_POWER: i64 = 8;

/// An operand: a tensor, or a scalar.
enum Side {
    Tensor(Operand),
    Scalar(Expr),
}

impl Side {
    fn of(lowering: &mut Lowering<'_>, name: &'static str) -> Result<Side, Unsupported> {
        let StructInfo::Prim(prim) = lowering.call.ty(name) else { return lowering.tensor(name).map(Side::Tensor) };
        let literal = match lowering.call.operand(name).map(|expr| &expr.kind) {
            // A bare integer is `int32`, as in the struct-info rule. Combined with an `int64` operand, it is converted
            // to `int64`.
            Some(ExprKind::Prim(PrimValue::Int(_))) => Some(DType::INT32),
            Some(ExprKind::Prim(PrimValue::Float(_))) => Some(DType::FLOAT32),
            _ => None,
        };
        let value = lowering.scalar(name)?;
        let dtype = prim.dtype.or(literal).unwrap_or_else(|| value.dtype());
        Ok(Side::Scalar(super::number_as(value, dtype)))
    }

    fn dtype(&self) -> DType {
        match self {
            Side::Tensor(operand) => operand.dtype,
            Side::Scalar(value) => value.dtype(),
        }
    }

    /// Returns the operand's value at result index `axes`, converted to `dtype`.
    fn at(&self, builder: &KernelBuilder, axes: &[Expr], dtype: DType) -> Expr {
        let value = match self {
            Side::Tensor(operand) => operand.broadcast_at(builder, axes),
            Side::Scalar(value) => value.clone(),
        };
        value.cast(dtype)
    }
}

/// Emits the operator of table `binary` that the call names. Operands of different dtypes are combined in
/// [`common_dtype`], and the result has the dtype of the struct-info rule.
pub(crate) fn binary(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (left, right) = (Side::of(lowering, "x1")?, Side::of(lowering, "x2")?);
    let (name, out) = (lowering.call.schema.name, lowering.output(0));
    let dtype = common_dtype(left.dtype(), right.dtype());
    check_dtype(name, dtype)?;
    if name == "power" && dtype.is_int() {
        return integer_power(lowering, &left, &right, dtype);
    }
    lowering.builder.compute(out, |builder, axes| {
        let (a, b) = (left.at(builder, axes, dtype), right.at(builder, axes, dtype));
        let value = combine(name, a, b);
        let wanted = builder.dtype(out);
        if wanted.is_bool() { truth(value) } else { value.cast(wanted) }
    });
    Ok(())
}

fn check_dtype(name: &str, dtype: DType) -> Result<(), Unsupported> {
    let fits = match name {
        "bitwise_and" | "bitwise_or" | "bitwise_xor" => !dtype.is_float(),
        "left_shift" | "right_shift" => dtype.is_int(),
        "divide" | "floor_divide" | "mod" | "floor_mod" => !dtype.is_bool(),
        _ => true,
    };
    match fits {
        true => Ok(()),
        false => Err(Unsupported::because(format!("R.{name} is not defined for {dtype}"))),
    }
}

/// Returns the operator's value for two elements of the same dtype (TVM's include/tvm/topi/broadcast.h). For `bool`,
/// addition and multiplication are `or` and `and`, and subtraction is `xor`.
pub(crate) fn combine(name: &str, a: Expr, b: Expr) -> Expr {
    use BinaryOp::*;
    let dtype = a.dtype();
    let compare = |op, a, b| Expr::compare(op, a, b);
    match (name, dtype.is_bool()) {
        ("add" | "maximum" | "bitwise_or", true) => either(a, b),
        ("multiply" | "minimum" | "bitwise_and", true) => a.and(b),
        ("subtract" | "bitwise_xor", true) => differ(a, b),
        ("power", true) => either(a, !b),
        ("add", _) => a + b,
        ("subtract", _) => a - b,
        ("multiply", _) => a * b,
        ("divide", _) if dtype.is_int() => Expr::binary(TruncDiv, a, b),
        ("divide", _) => a / b,
        ("floor_divide", _) => a.floor_div(b),
        ("floor_mod", _) => a.floor_mod(b),
        ("mod", _) if dtype.is_int() => Expr::binary(TruncMod, a, b),
        ("mod", _) => Expr::call(Intrinsic::Fmod, vec![a, b]),
        ("maximum", _) => a.max(b),
        ("minimum", _) => a.min(b),
        ("power", _) => float_power(a, b),
        ("atan2", _) => float_function(Intrinsic::Atan2, a, b),
        ("log_add_exp", _) => log_add_exp(a, b),
        ("bitwise_and", _) => Expr::binary(BitAnd, a, b),
        ("bitwise_or", _) => Expr::binary(BitOr, a, b),
        ("bitwise_xor", _) => Expr::binary(BitXor, a, b),
        ("left_shift", _) => Expr::binary(ShiftLeft, a, b),
        ("right_shift", _) => Expr::binary(ShiftRight, a, b),
        ("logical_and", _) => truth(a).and(truth(b)),
        ("logical_or", _) => either(truth(a), truth(b)),
        ("logical_xor", _) => differ(truth(a), truth(b)),
        ("equal", _) => compare(CompareOp::Eq, a, b),
        ("not_equal", _) => compare(CompareOp::Ne, a, b),
        ("less", _) => compare(CompareOp::Lt, a, b),
        ("less_equal", _) => compare(CompareOp::Le, a, b),
        ("greater", _) => compare(CompareOp::Gt, a, b),
        _ => compare(CompareOp::Ge, a, b),
    }
}

/// Applies a float function; integers are converted to `float64` and back.
fn float_function(function: Intrinsic, a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype();
    match dtype.is_float() {
        true => Expr::call(function, vec![a, b]),
        false => Expr::call(function, vec![a.cast(DType::FLOAT64), b.cast(DType::FLOAT64)]).cast(dtype),
    }
}

/// Returns `a^b`. Squares and cubes, the most frequent powers in networks, become products: at most one more rounding,
/// and many times faster than `pow`.
fn float_power(a: Expr, b: Expr) -> Expr {
    match b {
        Expr::Float { value: 2.0, .. } => a.clone() * a,
        Expr::Float { value: 3.0, .. } => a.clone() * a.clone() * a,
        b => Expr::call(Intrinsic::Pow, vec![a, b]),
    }
}

/// Returns `max + log1p(exp(-|a - b|))`, or `a + log 2` for equal operands, including infinite ones.
fn log_add_exp(a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype();
    if !dtype.is_float() {
        return log_add_exp(a.cast(DType::FLOAT64), b.cast(DType::FLOAT64)).cast(dtype);
    }
    let equal = a.clone().eq(b.clone());
    let distance = Expr::call(Intrinsic::Abs, vec![a.clone() - b.clone()]);
    let rest = Expr::call(Intrinsic::Log1p, vec![Expr::call(Intrinsic::Exp, vec![-distance])]);
    let larger = Expr::select(greater(a.clone(), b.clone()), a.clone(), b);
    Expr::select(equal, a + Expr::number(std::f64::consts::LN_2, dtype), larger + rest)
}

/// Emits `x1^x2` of integers, exact modulo the range of the dtype. A negative exponent gives `1 / x1^-x2`, truncated,
/// and 0 for the base 0.
fn integer_power(lowering: &mut Lowering<'_>, left: &Side, right: &Side, dtype: DType) -> Result<(), Unsupported> {
    let out = lowering.output(0);
    let wanted = lowering.builder.dtype(out);
    let one = Expr::number(1.0, dtype);
    if let Side::Scalar(exponent) = right
        && let Some(exponent @ 0..=MAX_WRITTEN_POWER) = exponent.as_int()
    {
        lowering.builder.compute(out, |builder, axes| {
            let base = left.at(builder, axes, dtype);
            number_cast((0..exponent).fold(one, |power, _| power * base.clone()), wanted)
        });
        return Ok(());
    }
    if wanted.is_bool() {
        // A boolean base: the power is true if the base is true or the exponent is 0.
        lowering.builder.compute(out, |builder, axes| {
            let zero = right.at(builder, axes, dtype).eq(Expr::number(0.0, dtype));
            either(truth(left.at(builder, axes, dtype)), zero)
        });
        return Ok(());
    }
    lowering.builder.compute(out, |_, _| Expr::number(1.0, wanted));
    let bits = i64::from(dtype.bits);
    let shape = lowering.builder.shape(out);
    let mut extents: Vec<(Expr, IterKind)> = shape.into_iter().map(|extent| (extent, IterKind::Spatial)).collect();
    extents.push((Expr::int(bits), IterKind::Ordered));
    lowering.builder.block("power", &extents, |builder, axes| {
        // INVARIANT: the axes are those of the output and then one for the exponent's bits, highest bit first.
        let (bit, axes) = axes.split_last().map_or((Expr::int(0), axes), |(bit, axes)| (bit.clone(), axes));
        let (base, exponent) = (left.at(builder, axes, dtype), right.at(builder, axes, dtype));
        let power = builder.load(out, axes).cast(dtype);
        let shifted = Expr::binary(BinaryOp::ShiftRight, exponent.clone(), (Expr::int(bits - 1) - bit).cast(dtype));
        let set = Expr::binary(BinaryOp::BitAnd, shifted, one.clone()).eq(one.clone());
        let next = power.clone() * power * Expr::select(set, base.clone(), one.clone());
        let value = match dtype.code {
            TypeCode::UInt => next,
            _ => {
                let negative = exponent.clone().lt(Expr::number(0.0, dtype));
                Expr::select(negative, reciprocal_power(base, exponent), next)
            }
        };
        (None, builder.store(out, axes.to_vec(), value.cast(wanted)))
    });
    Ok(())
}

/// Returns `base^exponent` for a negative exponent, truncated to an integer.
fn reciprocal_power(base: Expr, exponent: Expr) -> Expr {
    let dtype = base.dtype();
    let [minus_one, zero, one] = [-1.0, 0.0, 1.0].map(|value| Expr::number(value, dtype));
    let odd = Expr::binary(BinaryOp::BitAnd, exponent, one.clone()).eq(one.clone());
    let alternating = Expr::select(odd, minus_one.clone(), one.clone());
    let of_minus_one = Expr::select(base.clone().eq(minus_one), alternating, zero);
    Expr::select(base.eq(one.clone()), one, of_minus_one)
}

fn number_cast(value: Expr, dtype: DType) -> Expr {
    if dtype.is_bool() { truth(value) } else { value.cast(dtype) }
}
