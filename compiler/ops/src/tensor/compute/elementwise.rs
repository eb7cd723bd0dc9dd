//! *Elementwise operators* of one tensor, `clip`, `astype`, `ewise_fma` and `where`.
//!
//! ```text
//! exp(x), x: [n, 4]  →  for i, j in grid(n, 4): out[i, j] = exp(x[i, j])
//! ```
//!
//! Reference: TVM include/tvm/topi/elemwise.h.

use super::{greater, truth};
use crate::arguments::{self, Scalar};
use crate::compute::{Lowering, Unsupported};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic, UnaryOp};

/// Emits the operator of table `elementwise` that the call names, except `clip`.
pub(crate) fn unary(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let (name, out) = (lowering.call.schema.name, lowering.output(0));
    // Checks first, on a constant, whether the operator is defined for the dtype.
    element(name, Expr::number(0.0, x.dtype))?;
    lowering.builder.compute(out, |builder, axes| {
        let value = x.at(builder, axes);
        element(name, value.clone()).unwrap_or(value)
    });
    Ok(())
}

/// Returns the operator's value for one element (TVM's include/tvm/topi/elemwise.h).
fn element(name: &str, x: Expr) -> Result<Expr, Unsupported> {
    use Intrinsic::*;
    let dtype = x.dtype();
    let function = match name {
        "abs" => return Ok(absolute(x)),
        "bitwise_not" if dtype.is_bool() => return Ok(!x),
        "bitwise_not" if dtype.is_int() => return Ok(Expr::Unary { op: UnaryOp::BitNot, value: Box::new(x) }),
        "bitwise_not" => return Err(Unsupported::because(format!("{dtype} has no bits to flip"))),
        "logical_not" => return Ok((!truth(x)).cast(dtype)),
        "negative" if dtype.is_bool() => return Ok(x),
        "negative" => return Ok(-x),
        "sign" => return Ok(sign(x)),
        "square" if dtype.is_bool() => return Ok(x),
        "square" => return Ok(x.clone() * x),
        "ceil" | "floor" | "round" | "trunc" if !dtype.is_float() => return Ok(x),
        "isfinite" if !dtype.is_float() => return Ok(Expr::bool(true)),
        "isinf" | "isnan" if !dtype.is_float() => return Ok(Expr::bool(false)),
        "acos" => Acos,
        "acosh" => Acosh,
        "asin" => Asin,
        "asinh" => Asinh,
        "atan" => Atan,
        "atanh" => Atanh,
        "ceil" => Ceil,
        "cos" => Cos,
        "cosh" => Cosh,
        "erf" => Erf,
        "exp" => Exp,
        "floor" => Floor,
        "isfinite" => IsFinite,
        "isinf" => IsInf,
        "isnan" => IsNan,
        "log" => Log,
        "round" => NearbyInt,
        "rsqrt" => Rsqrt,
        "sigmoid" => Sigmoid,
        "sin" => Sin,
        "sinh" => Sinh,
        "sqrt" => Sqrt,
        "tan" => Tan,
        "tanh" => Tanh,
        "trunc" => Trunc,
        _ => return Err(Unsupported::because(format!("R.{name} has no value by element"))),
    };
    Ok(Expr::call(function, vec![x]))
}

fn absolute(x: Expr) -> Expr {
    let dtype = x.dtype();
    match dtype.code {
        TypeCode::UInt | TypeCode::Bool => x,
        TypeCode::Int => {
            let negative = x.clone().lt(Expr::number(0.0, dtype));
            Expr::select(negative, -x.clone(), x)
        }
        _ => Expr::call(Intrinsic::Abs, vec![x]),
    }
}

/// Returns -1, 0 or 1; 0 for NaN, as in TOPI.
fn sign(x: Expr) -> Expr {
    let dtype = x.dtype();
    let (zero, one) = (Expr::number(0.0, dtype), Expr::number(1.0, dtype));
    match dtype.code {
        TypeCode::Bool => x,
        TypeCode::UInt => Expr::select(greater(x, zero.clone()), one, zero),
        _ => {
            let not_positive = Expr::select(x.clone().lt(zero.clone()), Expr::number(-1.0, dtype), zero.clone());
            Expr::select(greater(x, zero), one, not_positive)
        }
    }
}

/// Emits `max(min(x, max), min)`: if the bounds cross, the result is `min`.
pub(crate) fn clip(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let (low, high) = (Bound::of(lowering, "min", x.dtype)?, Bound::of(lowering, "max", x.dtype)?);
    lowering.compute(|builder, axes| {
        let value = high.limit(BinaryOp::Min, x.at(builder, axes));
        low.limit(BinaryOp::Max, value)
    });
    Ok(())
}

/// A bound of `clip`.
enum Bound {
    /// A bound outside the dtype's range, or NaN, which has no effect.
    Open,
    /// A value of the data's dtype, or of `int64` for narrower data and a bound that is known at run time.
    At(Expr),
}

impl Bound {
    fn of(lowering: &mut Lowering<'_>, name: &'static str, dtype: DType) -> Result<Bound, Unsupported> {
        let is_low = name == "min";
        let unknown = || Unsupported::because(format!("the value of `{name}` is not known"));
        let value = match arguments::scalar(lowering.call, name).map_err(|_| unknown())?.ok_or_else(unknown)? {
            Scalar::Unknown(_) => return Err(unknown()),
            Scalar::Float(value) if value.is_nan() => return Ok(Bound::Open),
            Scalar::Float(value) if dtype.is_float() => return Ok(Bound::At(Expr::number(value, dtype))),
            // Rounds a lower bound up and an upper bound down to an integer.
            Scalar::Float(value) => i128::from((if is_low { value.ceil() } else { value.floor() }) as i64),
            Scalar::Int(dim) => match dim.as_constant() {
                Some(value) if dtype.is_float() => return Ok(Bound::At(Expr::number(value as f64, dtype))),
                Some(value) => i128::from(value),
                None if dim.is_error() => return Err(unknown()),
                None => {
                    let value = lowering.builder.dim(&dim);
                    return Ok(Bound::At(if dtype.is_float() { value.cast(dtype) } else { value }));
                }
            },
        };
        let (least, largest) = integer_range(dtype);
        let beyond = if is_low { value <= least } else { value >= largest };
        let value = value.clamp(least, largest);
        Ok(match beyond {
            true => Bound::Open,
            false => Bound::At(Expr::Int { value: value as i64, dtype }),
        })
    }

    fn limit(&self, op: BinaryOp, value: Expr) -> Expr {
        match self {
            Bound::Open => value,
            Bound::At(bound) if bound.dtype() == value.dtype() => Expr::binary(op, value, bound.clone()),
            Bound::At(bound) => {
                let dtype = value.dtype();
                Expr::binary(op, value.cast(bound.dtype()), bound.clone()).cast(dtype)
            }
        }
    }
}

/// Returns the minimum and maximum of an integer dtype or `bool`.
pub(crate) fn integer_range(dtype: DType) -> (i128, i128) {
    match dtype.code {
        TypeCode::Bool => (0, 1),
        TypeCode::UInt => (0, (1i128 << dtype.bits.min(64)) - 1),
        _ => (-(1i128 << (dtype.bits.clamp(1, 64) - 1)), (1i128 << (dtype.bits.clamp(1, 64) - 1)) - 1),
    }
}

/// Emits `astype` and `wrap_param`.
pub(crate) fn astype(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = match lowering.call.schema.name {
        "wrap_param" => lowering.tensor("data")?,
        _ => lowering.tensor("x")?,
    };
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, axes| {
        let dtype = builder.dtype(out);
        let value = x.at(builder, axes);
        if dtype.is_bool() { truth(value) } else { value.cast(dtype) }
    });
    Ok(())
}

/// Emits `x1 * x2 + x3`.
pub(crate) fn ewise_fma(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (a, b, c) = (lowering.tensor("x1")?, lowering.tensor("x2")?, lowering.tensor("x3")?);
    lowering.compute(|builder, axes| {
        let product = super::binary::combine("multiply", a.at(builder, axes), b.at(builder, axes));
        super::binary::combine("add", product, c.at(builder, axes))
    });
    Ok(())
}

/// Emits `where`. Only the chosen operand is loaded.
pub(crate) fn choose(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let (condition, a, b) = (lowering.tensor("condition")?, lowering.tensor("x1")?, lowering.tensor("x2")?);
    let out = lowering.output(0);
    lowering.builder.compute(out, |builder, axes| {
        let dtype = builder.dtype(out);
        let [a, b] = [&a, &b].map(|operand| operand.broadcast_at(builder, axes).cast(dtype));
        Expr::select(truth(condition.broadcast_at(builder, axes)), a, b)
    });
    Ok(())
}

/// Returns `a != b` for two values of the same dtype.
pub(crate) fn differ(a: Expr, b: Expr) -> Expr {
    Expr::compare(CompareOp::Ne, a, b)
}
