//! Implementations of [`Intrinsic`]s, in `f64` for floats and in `i64` for integers. Except for [`next_after`], the
//! caller rounds or wraps the results to the dtype.

use rx_tensor::Element;
use rx_tir::Intrinsic;

/// Returns the implementation of an intrinsic with one float argument.
pub(crate) fn of_one(function: Intrinsic) -> Option<fn(f64) -> f64> {
    Some(match function {
        Intrinsic::Abs => f64::abs,
        Intrinsic::Acos => f64::acos,
        Intrinsic::Acosh => libm::acosh,
        Intrinsic::Asin => f64::asin,
        Intrinsic::Asinh => libm::asinh,
        Intrinsic::Atan => f64::atan,
        Intrinsic::Atanh => libm::atanh,
        Intrinsic::Ceil => f64::ceil,
        Intrinsic::Cos => f64::cos,
        Intrinsic::Cosh => f64::cosh,
        Intrinsic::Erf => libm::erf,
        Intrinsic::Exp => f64::exp,
        Intrinsic::Exp10 => libm::exp10,
        Intrinsic::Exp2 => f64::exp2,
        Intrinsic::Floor => f64::floor,
        Intrinsic::Log => f64::ln,
        Intrinsic::Log10 => f64::log10,
        Intrinsic::Log1p => f64::ln_1p,
        Intrinsic::Log2 => f64::log2,
        Intrinsic::NearbyInt | Intrinsic::Round => f64::round_ties_even,
        Intrinsic::Rsqrt => |x| 1.0 / x.sqrt(),
        Intrinsic::Sigmoid => |x| 1.0 / (1.0 + (-x).exp()),
        Intrinsic::Sin => f64::sin,
        Intrinsic::Sinh => f64::sinh,
        Intrinsic::Sqrt => f64::sqrt,
        Intrinsic::Tan => f64::tan,
        Intrinsic::Tanh => f64::tanh,
        Intrinsic::Trunc => f64::trunc,
        _ => return None,
    })
}

/// Returns the implementation of an intrinsic with two float arguments.
pub(crate) fn of_two(function: Intrinsic) -> Option<fn(f64, f64) -> f64> {
    Some(match function {
        Intrinsic::Atan2 => f64::atan2,
        Intrinsic::CopySign => f64::copysign,
        Intrinsic::Fmod => |a, b| a % b,
        Intrinsic::Hypot => f64::hypot,
        Intrinsic::Pow => f64::powf,
        _ => return None,
    })
}

/// Returns the implementation of a predicate on one float.
pub(crate) fn test(function: Intrinsic) -> Option<fn(f64) -> bool> {
    Some(match function {
        Intrinsic::IsFinite => f64::is_finite,
        Intrinsic::IsInf => f64::is_infinite,
        Intrinsic::IsNan => f64::is_nan,
        _ => return None,
    })
}

/// Returns the implementation of an intrinsic with one integer argument of this dtype.
pub(crate) fn of_int(function: Intrinsic, element: Element) -> Option<fn(i64) -> i64> {
    Some(match (function, element) {
        (Intrinsic::Abs, Element::U64) => |x| x,
        (Intrinsic::Abs, _) => i64::wrapping_abs,
        (Intrinsic::Ceil | Intrinsic::Floor | Intrinsic::NearbyInt | Intrinsic::Round | Intrinsic::Trunc, _) => |x| x,
        (Intrinsic::Clz, _) => match element.bytes() {
            _ if element == Element::Bool => |x| i64::from(x == 0),
            _ if element.bits() == 4 => |x| i64::from((x as u8 & 15).leading_zeros() - 4),
            1 => |x| i64::from((x as u8).leading_zeros()),
            2 => |x| i64::from((x as u16).leading_zeros()),
            4 => |x| i64::from((x as u32).leading_zeros()),
            _ => |x| i64::from(x.leading_zeros()),
        },
        (Intrinsic::Popcount, _) => match element.bytes() {
            _ if element.bits() == 4 => |x| i64::from((x as u8 & 15).count_ones()),
            1 => |x| i64::from((x as u8).count_ones()),
            2 => |x| i64::from((x as u16).count_ones()),
            4 => |x| i64::from((x as u32).count_ones()),
            _ => |x| i64::from(x.count_ones()),
        },
        (Intrinsic::IsFinite, _) => |_| 1,
        (Intrinsic::IsInf | Intrinsic::IsNan, _) => |_| 0,
        _ => return None,
    })
}

/// Returns the value of this dtype that is adjacent to `from` in the direction of `to`, or `to` if they are equal.
/// Returns NaN if one of the two is NaN.
pub(crate) fn next_after(element: Element, from: f64, to: f64) -> f64 {
    if from.is_nan() || to.is_nan() {
        return f64::NAN;
    }
    if from == to {
        return to;
    }
    if from == 0.0 {
        return element.float_of_bits(1).copysign(to);
    }
    // The bit pattern of a positive float increases with its value, so the adjacent value is one bit pattern away.
    let bits = element.bits_of_float(from);
    let away = (to > from) == (from > 0.0);
    element.float_of_bits(if away { bits + 1 } else { bits - 1 })
}

/// Computes `value * 2^exponent`. For dtypes narrower than `f64`, the only rounding is the caller's.
pub(crate) fn ldexp(value: f64, exponent: i64) -> f64 {
    // The result is infinite or zero for all exponents outside this range.
    libm::scalbn(value, exponent.clamp(-5000, 5000) as i32)
}
