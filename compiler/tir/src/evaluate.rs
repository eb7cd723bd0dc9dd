//! What a host knows of a call without the contents of its buffers.

use crate::expr::{BinaryOp, Expr, Intrinsic, UnaryOp};
use crate::func::VarId;
use rx_base::DType;

/// Whether [`evaluate_index`] can find the value of an expression, given those of some variables: no loads, and of floats only what
/// every device computes alike. It may still overflow or divide by zero.
pub fn is_evaluable(expr: &Expr, has_value: &dyn Fn(VarId) -> bool) -> bool {
    let mut evaluable = true;
    expr.walk(&mut |part| {
        evaluable &= match part {
            Expr::Var { var, dtype } => has_value(*var) && (dtype.is_int() || dtype.is_bool()),
            Expr::Load { .. } => false,
            Expr::Call { function, .. } => whole_number(*function).is_some() && is_exact(part.dtype()),
            Expr::Float { dtype, .. } => is_exact(*dtype),
            Expr::Cast { dtype, .. } if dtype.is_float() => is_exact(*dtype),
            _ => true,
        }
    });
    evaluable
}

/// The value of an integer expression without loads; `None` where a variable has none, it overflows or divides by zero.
pub fn evaluate_index(expr: &Expr, value_of: &dyn Fn(VarId) -> Option<i64>) -> Option<i64> {
    let value = |expr: &Expr| evaluate_index(expr, value_of);
    match expr {
        Expr::Int { value, .. } => Some(*value),
        Expr::Var { var, .. } => value_of(*var),
        Expr::Cast { dtype, value: inner } if inner.dtype().is_float() => {
            let value = evaluate_float(inner, value_of)?;
            match dtype.is_bool() {
                true => Some(i64::from(value != 0.0)),
                // Beyond these not every whole number is a float.
                false => (value.abs() < (1_i64 << 53) as f64).then_some(value.trunc() as i64),
            }
        }
        Expr::Cast { dtype, value: inner } if dtype.is_bool() => Some(i64::from(value(inner)? != 0)),
        Expr::Cast { dtype, value: inner } if dtype.is_int() => value(inner),
        Expr::Unary { op: UnaryOp::Neg, value: inner } => value(inner)?.checked_neg(),
        Expr::Unary { op: UnaryOp::BitNot, value: inner } => Some(!value(inner)?),
        Expr::Unary { op: UnaryOp::Not, value: inner } => Some(i64::from(value(inner)? == 0)),
        Expr::Binary { op, left, right } => {
            let (a, b) = (value(left)?, value(right)?);
            match op {
                BinaryOp::Add => a.checked_add(b),
                BinaryOp::Sub => a.checked_sub(b),
                BinaryOp::Mul => a.checked_mul(b),
                BinaryOp::FloorDiv => floor_div(a, b),
                BinaryOp::FloorMod => floor_div(a, b).map(|quotient| a - quotient * b),
                BinaryOp::TruncDiv | BinaryOp::Div => a.checked_div(b),
                BinaryOp::TruncMod => a.checked_rem(b),
                BinaryOp::Min => Some(a.min(b)),
                BinaryOp::Max => Some(a.max(b)),
                BinaryOp::And | BinaryOp::BitAnd => Some(a & b),
                BinaryOp::Or | BinaryOp::BitOr => Some(a | b),
                BinaryOp::BitXor => Some(a ^ b),
                BinaryOp::ShiftLeft => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
                BinaryOp::ShiftRight => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)),
            }
        }
        Expr::Compare { op, left, right } if left.dtype().is_float() => {
            let (a, b) = (evaluate_float(left, value_of)?, evaluate_float(right, value_of)?);
            Some(i64::from(op.holds(a, b)))
        }
        Expr::Compare { left, right, .. } => {
            let (a, b) = (value(left)?, value(right)?);
            let dtype = left.dtype();
            let Expr::Compare { op, .. } = expr else { return None };
            Expr::compare(*op, Expr::Int { value: a, dtype }, Expr::Int { value: b, dtype }).as_int()
        }
        Expr::Select { condition, then, otherwise } => {
            if value(condition)? != 0 {
                value(then)
            } else {
                value(otherwise)
            }
        }
        Expr::Checked { index, extent, .. } => {
            let (index, extent) = (value(index)?, value(extent)?);
            (0..extent).contains(&index).then_some(index)
        }
        _ => None,
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// The value of an expression of `float32` or `float64`, rounded after each operation.
fn evaluate_float(expr: &Expr, value_of: &dyn Fn(VarId) -> Option<i64>) -> Option<f64> {
    let value = |expr: &Expr| evaluate_float(expr, value_of);
    let exact = match expr {
        Expr::Float { value, .. } => *value,
        Expr::Cast { value: inner, .. } if inner.dtype().is_float() => value(inner)?,
        Expr::Cast { value: inner, .. } => evaluate_index(inner, value_of)? as f64,
        Expr::Unary { op: UnaryOp::Neg, value: inner } => -value(inner)?,
        Expr::Binary { op, left, right } => {
            let (a, b) = (value(left)?, value(right)?);
            match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                BinaryOp::Min => a.min(b),
                BinaryOp::Max => a.max(b),
                _ => return None,
            }
        }
        Expr::Select { condition, then, otherwise } => match evaluate_index(condition, value_of)? {
            0 => value(otherwise)?,
            _ => value(then)?,
        },
        Expr::Call { function, args, .. } => whole_number(*function)?(value(args.first()?)?),
        _ => return None,
    };
    match expr.dtype() {
        DType::FLOAT64 => Some(exact),
        DType::FLOAT32 => Some(f64::from(exact as f32)),
        _ => None,
    }
}

/// Whether a host computes in this dtype as devices do.
fn is_exact(dtype: DType) -> bool {
    matches!(dtype, DType::FLOAT32 | DType::FLOAT64)
}

/// The functions that sizes are computed with: of all of them every device gives the nearest value where it is a whole number.
fn whole_number(function: Intrinsic) -> Option<fn(f64) -> f64> {
    Some(match function {
        Intrinsic::Ceil => f64::ceil,
        Intrinsic::Floor => f64::floor,
        Intrinsic::Trunc => f64::trunc,
        Intrinsic::Log2 => f64::log2,
        Intrinsic::Sqrt => f64::sqrt,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{evaluate_index, is_evaluable};
    use crate::{CompareOp, Expr, Intrinsic, VarId};
    use rx_base::DType;

    /// `T.Cast("int64", T.ceil(T.log2(T.Cast(dtype, n))))`.
    fn rounds(dtype: DType) -> Expr {
        let n = Expr::Var { var: VarId(0), dtype: DType::INT64 };
        let log = Expr::call(Intrinsic::Log2, vec![n.cast(dtype)]);
        Expr::call(Intrinsic::Ceil, vec![log]).cast(DType::INT64)
    }

    #[test]
    fn how_often_a_length_is_halved_is_known_where_the_length_is() {
        for dtype in [DType::FLOAT32, DType::FLOAT64] {
            let of = |length: i64| evaluate_index(&rounds(dtype), &|_| Some(length));
            let all = [1, 2, 3, 128, 129, 1 << 40].map(of);
            assert_eq!(all, [0, 1, 2, 7, 8, 40].map(Some));
            assert!(is_evaluable(&rounds(dtype), &|_| true) && !is_evaluable(&rounds(dtype), &|_| false));
            // The logarithm of nothing is no number of rounds.
            assert_eq!(of(0), None);
        }
        assert!(!is_evaluable(&rounds(DType::FLOAT16), &|_| true));
        assert_eq!(evaluate_index(&rounds(DType::FLOAT16), &|_| Some(3)), None);
    }

    #[test]
    fn floats_compare_as_floats() {
        let half = Expr::number(0.5, DType::FLOAT32);
        let smaller = Expr::compare(CompareOp::Lt, half.clone(), Expr::number(0.75, DType::FLOAT32));
        assert_eq!(evaluate_index(&smaller, &|_| None), Some(1));
        let scaled = (half * Expr::number(3.0, DType::FLOAT32)).cast(DType::INT32);
        assert_eq!(evaluate_index(&scaled, &|_| None), Some(1));
    }
}
