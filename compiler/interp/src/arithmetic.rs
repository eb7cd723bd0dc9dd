//! Binary operations on integers and floats.

use rx_tensor::Element;
use rx_tir::BinaryOp;

/// Computes an operation on two integers of this dtype and wraps the result to its width. Returns `None` for a division
/// by zero.
#[inline]
pub(crate) fn int_binary(op: BinaryOp, element: Element, a: i64, b: i64) -> Option<i64> {
    let value = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::And => i64::from(a != 0 && b != 0),
        BinaryOp::Or => i64::from(a != 0 || b != 0),
        BinaryOp::Min => return Some(if less(element, a, b) { a } else { b }),
        BinaryOp::Max => return Some(if less(element, b, a) { a } else { b }),
        BinaryOp::ShiftLeft => match u32::try_from(b) {
            Ok(by) if by < 64 => a << by,
            _ => 0,
        },
        BinaryOp::ShiftRight => shift_right(element, a, b),
        BinaryOp::Div | BinaryOp::TruncDiv | BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod => {
            return divide(op, element, a, b).map(|value| element.wrap(value));
        }
    };
    Some(element.wrap(value))
}

fn less(element: Element, a: i64, b: i64) -> bool {
    if element == Element::U64 { (a as u64) < b as u64 } else { a < b }
}

fn shift_right(element: Element, a: i64, b: i64) -> i64 {
    let by = u32::try_from(b).unwrap_or(64);
    match element {
        Element::U64 => (a as u64).checked_shr(by).unwrap_or(0) as i64,
        // A shift by 63 leaves copies of the sign bit only.
        _ => a >> by.min(63),
    }
}

fn divide(op: BinaryOp, element: Element, a: i64, b: i64) -> Option<i64> {
    if b == 0 {
        return None;
    }
    if element == Element::U64 {
        let (a, b) = (a as u64, b as u64);
        let modulo = matches!(op, BinaryOp::TruncMod | BinaryOp::FloorMod);
        return Some(if modulo { a % b } else { a / b } as i64);
    }
    let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
    // Floor division differs from truncating division if the remainder is nonzero and has the opposite sign of the
    // divisor.
    let below = rest != 0 && (rest < 0) != (b < 0);
    Some(match op {
        BinaryOp::TruncMod => rest,
        BinaryOp::FloorMod if below => rest + b,
        BinaryOp::FloorMod => rest,
        BinaryOp::FloorDiv if below => quotient - 1,
        _ => quotient,
    })
}

/// Computes `base` to the power of `exponent`, wrapped. With a negative exponent the result is truncated toward 0: for
/// example, 2 to the power of −1 is 0. Returns `None` for 0 to a negative power.
pub(crate) fn int_pow(element: Element, base: i64, exponent: i64) -> Option<i64> {
    if exponent < 0 && element != Element::U64 {
        return match base {
            0 => None,
            1 => Some(1),
            -1 => Some(if exponent % 2 == 0 { 1 } else { -1 }),
            _ => Some(0),
        };
    }
    let (mut result, mut square, mut rest) = (1i64, base, exponent as u64);
    while rest != 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    Some(element.wrap(result))
}

/// Computes an operation on two floats and rounds each step to the dtype. Returns NaN for operations that are defined
/// for integers only.
#[inline]
pub(crate) fn float_binary(op: BinaryOp, element: Element, a: f64, b: f64) -> f64 {
    match op {
        BinaryOp::Add => element.round(a + b),
        BinaryOp::Sub => element.round(a - b),
        BinaryOp::Mul => element.round(a * b),
        BinaryOp::Div => element.round(a / b),
        BinaryOp::Min => {
            if a < b {
                a
            } else {
                b
            }
        }
        BinaryOp::Max => {
            if a > b {
                a
            } else {
                b
            }
        }
        BinaryOp::TruncDiv => element.round(a / b).trunc(),
        BinaryOp::TruncMod => element.round(a % b),
        BinaryOp::FloorDiv => element.round(a / b).floor(),
        BinaryOp::FloorMod => {
            let multiple = element.round(element.round(a / b).floor() * b);
            element.round(a - multiple)
        }
        BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use BinaryOp::*;
    use rx_tensor::Element::*;
    use rx_tir::CompareOp;

    #[test]
    fn integers_divide_by_rounding_down_or_toward_zero() {
        for (a, b, floor, floor_mod, trunc, trunc_mod) in [
            (7, 2, 3, 1, 3, 1),
            (-7, 2, -4, 1, -3, -1),
            (7, -2, -4, -1, -3, 1),
            (-7, -2, 3, -1, 3, -1),
            (6, 3, 2, 0, 2, 0),
        ] {
            assert_eq!(int_binary(FloorDiv, I64, a, b), Some(floor), "{a} // {b}");
            assert_eq!(int_binary(FloorMod, I64, a, b), Some(floor_mod), "{a} % {b}");
            assert_eq!(int_binary(TruncDiv, I32, a, b), Some(trunc));
            assert_eq!(int_binary(Div, I32, a, b), Some(trunc));
            assert_eq!(int_binary(TruncMod, I32, a, b), Some(trunc_mod));
        }
        for op in [Div, TruncDiv, TruncMod, FloorDiv, FloorMod] {
            assert_eq!(int_binary(op, I32, 1, 0), None);
        }
        assert_eq!(int_binary(Div, I64, i64::MIN, -1), Some(i64::MIN));
        assert_eq!(int_binary(FloorMod, I64, i64::MIN, -1), Some(0));
        assert_eq!(int_binary(Div, I8, -128, -1), Some(-128));
        assert_eq!(int_binary(FloorDiv, U64, -1, 2), Some(i64::MAX));
    }

    #[test]
    fn integers_wrap_to_their_width() {
        assert_eq!(int_binary(Add, I32, i32::MAX.into(), 1), Some(i32::MIN.into()));
        assert_eq!(int_binary(Sub, U8, 0, 1), Some(255));
        assert_eq!(int_binary(Mul, I64, i64::MAX, 2), Some(-2));
        assert_eq!(int_binary(ShiftLeft, I8, 1, 7), Some(-128));
        assert_eq!(int_binary(ShiftLeft, I32, 1, 200), Some(0));
        assert_eq!(int_binary(ShiftRight, I32, -8, 1), Some(-4));
        assert_eq!(int_binary(ShiftRight, I32, -8, 64), Some(-1));
        assert_eq!(int_binary(ShiftRight, U64, -1, 63), Some(1));
        assert_eq!(int_binary(ShiftRight, U64, -1, 64), Some(0));
        assert_eq!(int_binary(Max, U64, -1, 5), Some(-1));
        assert_eq!(int_binary(Min, I64, -1, 5), Some(-1));
        assert_eq!(int_pow(I32, 3, 4), Some(81));
        assert_eq!(int_pow(I8, 2, 7), Some(-128));
        assert_eq!(int_pow(I32, 0, -1), None);
        assert_eq!(int_pow(I32, -1, -3), Some(-1));
    }

    #[test]
    fn floats_round_after_each_step() {
        assert_eq!(float_binary(Add, F32, 16_777_216.0, 1.0), 16_777_216.0);
        assert_eq!(float_binary(Add, F16, 2048.0, 1.0), 2048.0);
        assert_eq!(float_binary(Mul, BF16, 1.0078125, 1.0078125), 1.015625);
        assert_eq!(float_binary(FloorDiv, F32, -7.0, 2.0), -4.0);
        assert_eq!(float_binary(FloorMod, F32, -7.0, 2.0), 1.0);
        assert_eq!(float_binary(TruncMod, F32, -7.0, 2.0), -1.0);
        assert_eq!(float_binary(Min, F32, f64::NAN, 1.0), 1.0);
        assert!(float_binary(Min, F32, 1.0, f64::NAN).is_nan());
        assert_eq!(float_binary(Div, F32, 1.0, 0.0), f64::INFINITY);
    }

    #[test]
    fn nothing_but_ne_holds_of_nan() {
        for op in [CompareOp::Eq, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge] {
            assert!(!op.holds(f64::NAN, f64::NAN));
        }
        assert!(CompareOp::Ne.holds(f64::NAN, 1.0));
    }
}
