//! Evaluation of scalar expressions on the host: extents and sizes that do not depend on the contents of buffers.

use crate::expr::{BinaryOp, Expr, Intrinsic, UnaryOp};
use crate::func::VarId;
use rx_base::DType;

/// Whether [`evaluate_index`] can evaluate an integer or `bool` expression, given values of the variables that
/// `has_value` accepts. Each of its variables must be one of them, and an integer or `bool`. The expression must have
/// no loads, no `uint64`, and no calls but `ceil`, `floor`, `trunc`, `log2` and `sqrt`. Its float operations must be of
/// `float32` or `float64`, and ones that the host computes as devices do: these calls, negation, `+`, `-`, `*`, `/`,
/// minimum, maximum, casts, comparisons and selections. The evaluation may still return `None`, for example if it
/// overflows, divides by zero or fails an index check.
pub fn is_evaluable(expr: &Expr, has_value: &dyn Fn(VarId) -> bool) -> bool {
    expr.all(&|part| {
        let dtype = part.dtype();
        dtype != DType::UINT64
            && match part {
                Expr::Var { var, .. } => has_value(*var) && (dtype.is_int() || dtype.is_bool()),
                Expr::Load { .. } => false,
                Expr::Call { function, .. } => whole_number(*function).is_some() && is_exact(dtype),
                Expr::Binary { op, .. } if dtype.is_float() => float_operation(*op).is_some() && is_exact(dtype),
                _ => !dtype.is_float() || is_exact(dtype),
            }
    })
}

/// Evaluates an integer or `bool` expression. Results wrap in dtypes narrower than 64 bits. Returns `None` if a
/// variable has no value, on overflow in 64 bits other than of a left shift, on division by zero, for an index that
/// fails its check, for a cast to an integer of a NaN or of a float of magnitude 2⁵³ or more, for operations on a
/// `uint64` of 2⁶³ or more whose results depend on its sign, and for operations that the host does not compute, such as
/// loads. `and`, `or` and selections short-circuit: a right operand or branch that does not matter is not evaluated.
pub fn evaluate_index(expr: &Expr, value_of: &dyn Fn(VarId) -> Option<i64>) -> Option<i64> {
    let value = |expr: &Expr| evaluate_index(expr, value_of);
    let exact = match expr {
        Expr::Int { value, .. } => *value,
        Expr::Var { var, .. } => return value_of(*var),
        Expr::Cast { dtype, value: inner } if inner.dtype().is_float() => {
            let value = evaluate_float(inner, value_of)?;
            match dtype.is_bool() {
                true => i64::from(value != 0.0),
                // Beyond 2⁵³, not every whole number is an `f64`.
                false => (value.abs() < (1_i64 << 53) as f64).then_some(value.trunc() as i64)?,
            }
        }
        Expr::Cast { dtype, value: inner } if dtype.is_int() || dtype.is_bool() => value(inner)?,
        Expr::Unary { op: UnaryOp::Neg, value: inner } => value(inner)?.checked_neg()?,
        Expr::Unary { op: UnaryOp::BitNot, value: inner } if !inner.dtype().is_bool() => !value(inner)?,
        Expr::Unary { op: UnaryOp::Not | UnaryOp::BitNot, value: inner } => i64::from(value(inner)? == 0),
        Expr::Binary { op: BinaryOp::And, left, right } => i64::from(value(left)? != 0 && value(right)? != 0),
        Expr::Binary { op: BinaryOp::Or, left, right } => i64::from(value(left)? != 0 || value(right)? != 0),
        Expr::Binary { op, left, right } => {
            let (a, b) = (value(left)?, value(right)?);
            // A `uint64` of 2⁶³ or more is a negative `i64` with the same bits.
            let is_large = left.dtype() == DType::UINT64 && (a < 0 || b < 0);
            if is_large && !ignores_sign(*op) {
                return None;
            }
            integer_operation(*op, a, b)?
        }
        Expr::Compare { op, left, right } if left.dtype().is_float() => {
            i64::from(op.holds(evaluate_float(left, value_of)?, evaluate_float(right, value_of)?))
        }
        Expr::Compare { left, .. } if left.dtype() == DType::UINT64 => return None,
        Expr::Compare { op, left, right } => i64::from(op.holds(value(left)?, value(right)?)),
        Expr::Select { condition, then, otherwise } => {
            return value(if value(condition)? != 0 { then } else { otherwise });
        }
        Expr::Checked { index, extent, .. } => {
            let (index, extent) = (value(index)?, value(extent)?);
            return (0..extent).contains(&index).then_some(index);
        }
        _ => return None,
    };
    Some(expr.dtype().wrap(exact))
}

/// Whether an operation has the same bits for signed and unsigned operands.
fn ignores_sign(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::ShiftLeft
    )
}

/// Computes an operation on two integers, before wrapping. Returns `None` on division by zero, and on overflow in 64
/// bits, except of a left shift.
fn integer_operation(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
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
        BinaryOp::And => Some(i64::from(a != 0 && b != 0)),
        BinaryOp::Or => Some(i64::from(a != 0 || b != 0)),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::BitOr => Some(a | b),
        BinaryOp::BitXor => Some(a ^ b),
        // Shifting by 64 or more, or by a negative amount, leaves 0, or the sign for a right shift.
        BinaryOp::ShiftLeft => Some(u32::try_from(b).ok().and_then(|by| a.checked_shl(by)).unwrap_or(0)),
        BinaryOp::ShiftRight => Some(a >> u32::try_from(b).unwrap_or(63).min(63)),
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// Evaluates an expression of `float32` or `float64`, and rounds after each operation.
fn evaluate_float(expr: &Expr, value_of: &dyn Fn(VarId) -> Option<i64>) -> Option<f64> {
    let value = |expr: &Expr| evaluate_float(expr, value_of);
    let exact = match expr {
        Expr::Float { value, .. } => *value,
        Expr::Cast { value: inner, .. } if inner.dtype().is_float() => value(inner)?,
        Expr::Cast { value: inner, .. } => {
            let value = evaluate_index(inner, value_of)?;
            (inner.dtype() != DType::UINT64 || value >= 0).then_some(value as f64)?
        }
        Expr::Unary { op: UnaryOp::Neg, value: inner } => -value(inner)?,
        Expr::Binary { op, left, right } => float_operation(*op)?(value(left)?, value(right)?),
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

/// Returns the operation if all devices round it alike.
fn float_operation(op: BinaryOp) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        BinaryOp::Add => |a, b| a + b,
        BinaryOp::Sub => |a, b| a - b,
        BinaryOp::Mul => |a, b| a * b,
        BinaryOp::Div => |a, b| a / b,
        // Unlike `f64::min`, returns the right operand if one is NaN.
        BinaryOp::Min => |a, b| if a < b { a } else { b },
        BinaryOp::Max => |a, b| if a > b { a } else { b },
        _ => return None,
    })
}

/// Whether the host computes in this dtype as devices do.
fn is_exact(dtype: DType) -> bool {
    matches!(dtype, DType::FLOAT32 | DType::FLOAT64)
}

/// Returns the function if it occurs in computations of sizes. All devices are assumed to compute it exactly where the
/// result is a whole number.
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
    use crate::{BinaryOp, CompareOp, Expr, Intrinsic, VarId};
    use rx_base::DType;

    /// Builds `T.Cast("int64", T.ceil(T.log2(T.Cast(dtype, n))))`.
    fn rounds(dtype: DType) -> Expr {
        let n = Expr::Var { var: VarId(0), dtype: DType::INT64 };
        let log = Expr::call(Intrinsic::Log2, vec![n.cast(dtype)]);
        Expr::call(Intrinsic::Ceil, vec![log]).cast(DType::INT64)
    }

    #[test]
    fn log2_of_a_known_length_is_evaluated() {
        for dtype in [DType::FLOAT32, DType::FLOAT64] {
            let of = |length: i64| evaluate_index(&rounds(dtype), &|_| Some(length));
            let all = [1, 2, 3, 128, 129, 1 << 40].map(of);
            assert_eq!(all, [0, 1, 2, 7, 8, 40].map(Some));
            assert!(is_evaluable(&rounds(dtype), &|_| true) && !is_evaluable(&rounds(dtype), &|_| false));
            // The logarithm of 0 is −∞, which is no integer.
            assert_eq!(of(0), None);
        }
        assert!(!is_evaluable(&rounds(DType::FLOAT16), &|_| true));
        assert_eq!(evaluate_index(&rounds(DType::FLOAT16), &|_| Some(3)), None);
    }

    #[test]
    fn narrow_integers_wrap_as_on_devices() {
        let n = |dtype: DType| Expr::Var { var: VarId(0), dtype: DType::INT64 }.cast(dtype);
        let value = |expr: &Expr, n: i64| evaluate_index(expr, &|_| Some(n));
        assert_eq!(value(&n(DType::INT8), 200), Some(-56));
        assert_eq!(value(&n(DType::UINT8), 260), Some(4));
        let shifted = Expr::binary(BinaryOp::ShiftLeft, n(DType::INT32), Expr::int(30));
        assert_eq!([1, 2, 4].map(|n| value(&shifted, n)), [1 << 30, -(1 << 31), 0].map(Some));
        let added = n(DType::UINT8) + Expr::Int { value: 250, dtype: DType::UINT8 };
        assert_eq!(value(&added, 10), Some(4));
        assert!(!is_evaluable(&n(DType::UINT64), &|_| true));
    }

    #[test]
    fn large_uint64_has_no_value_where_its_sign_matters() {
        let n = Expr::Var { var: VarId(0), dtype: DType::INT64 }.cast(DType::UINT64);
        let two = Expr::Int { value: 2, dtype: DType::UINT64 };
        let value =
            |op: BinaryOp, n_is: i64| evaluate_index(&Expr::binary(op, n.clone(), two.clone()), &|_| Some(n_is));
        for op in [BinaryOp::FloorDiv, BinaryOp::TruncMod, BinaryOp::Min, BinaryOp::Max, BinaryOp::ShiftRight] {
            assert_eq!(value(op, -8), None, "{op:?}");
            assert!(value(op, 8).is_some(), "{op:?}");
        }
        assert_eq!(value(BinaryOp::Add, -8), Some(-6));
    }

    #[test]
    fn short_circuited_operands_are_not_evaluated() {
        let n = Expr::Var { var: VarId(0), dtype: DType::INT64 };
        let divided = Expr::compare(CompareOp::Gt, Expr::int(64).floor_div(n.clone()), Expr::int(3));
        let holds = |expr: &Expr, n: i64| evaluate_index(expr, &|_| Some(n));
        assert_eq!(holds(&divided, 0), None);
        let both = Expr::compare(CompareOp::Gt, n.clone(), Expr::int(0)).and(divided.clone());
        assert_eq!([0, 8, 60].map(|n| holds(&both, n)), [0, 1, 0].map(Some));
        let either = Expr::binary(BinaryOp::Or, n.eq(Expr::int(0)), divided);
        assert_eq!([0, 8, 60].map(|n| holds(&either, n)), [1, 1, 0].map(Some));
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
