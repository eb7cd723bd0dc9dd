//! Element types as C has them: how they lie in memory, and as what they are computed.

use rx_base::DType;
use rx_base::dtype::TypeCode;

/// The type of an element in memory.
pub(crate) fn storage(dtype: DType) -> Option<&'static str> {
    match helper(dtype) {
        // A byte that is 0 or not; C++'s `bool` may not hold another.
        None if dtype.is_bool() => Some("unsigned char"),
        None => value(dtype),
        helper => helper,
    }
}

/// The type of a value in an expression: `float` for every float of less than 32 bits.
pub(crate) fn value(dtype: DType) -> Option<&'static str> {
    if dtype.lanes != 1 {
        return None;
    }
    Some(match (dtype.code, dtype.bits) {
        (TypeCode::Bool, _) => "bool",
        (TypeCode::Int, 8) => "signed char",
        (TypeCode::Int, 16) => "short",
        (TypeCode::Int, 32) => "int",
        (TypeCode::Int, 64) => "long long",
        (TypeCode::UInt, 8) => "unsigned char",
        (TypeCode::UInt, 16) => "unsigned short",
        (TypeCode::UInt, 32) => "unsigned",
        (TypeCode::UInt, 64) => "unsigned long long",
        (TypeCode::Float, 64) => "double",
        (TypeCode::Float, 32) => "float",
        _ if helper(dtype).is_some() => "float",
        _ => return None,
    })
}

/// The struct of a float of less than 32 bits, which is the helper's name too.
pub(crate) fn helper(dtype: DType) -> Option<&'static str> {
    match (dtype.code, dtype.bits, dtype.lanes) {
        (TypeCode::Float, 16, 1) => Some("rx_f16"),
        (TypeCode::BFloat, 16, 1) => Some("rx_bf16"),
        (TypeCode::Float8E4M3Fn, 8, 1) => Some("rx_f8e4m3"),
        (TypeCode::Float8E5M2, 8, 1) => Some("rx_f8e5m2"),
        _ => None,
    }
}

/// What lies in memory, as a value. The text is postfix, the result postfix or unary or, of `bool`, a comparison.
pub(crate) fn from_storage(dtype: DType, text: &str) -> String {
    match helper(dtype) {
        Some(helper) => format!("{helper}_to_float({text})"),
        None if dtype.is_bool() => format!("({text} != 0)"),
        None => text.to_owned(),
    }
}

/// A value as it lies in memory, rounded.
pub(crate) fn to_storage(dtype: DType, value: &str) -> String {
    match helper(dtype) {
        Some(helper) => format!("{}({value})", rounding(helper)),
        None => value.to_owned(),
    }
}

/// A `float` rounded to a smaller type, as a `float` again.
pub(crate) fn rounded(dtype: DType, value: &str) -> String {
    match helper(dtype) {
        Some(helper) => format!("{helper}_to_float({}({value}))", rounding(helper)),
        None => value.to_owned(),
    }
}

fn rounding(helper: &str) -> String {
    format!("rx_float_to_{}", helper.trim_start_matches("rx_"))
}

/// Whether it is a float that is computed as `float`.
pub(crate) fn is_single(dtype: DType) -> bool {
    value(dtype) == Some("float")
}

/// Whether C's own operators compute it and round to it.
pub(crate) fn is_native_float(dtype: DType) -> bool {
    matches!(dtype, DType::FLOAT32 | DType::FLOAT64)
}

/// A float constant, rounded to the dtype's computing type. `None` for what is not finite.
pub(crate) fn float_literal(value: f64, dtype: DType) -> Option<String> {
    if is_single(dtype) {
        let rounded = value as f32;
        return rounded.is_finite().then(|| format!("{rounded:?}f"));
    }
    value.is_finite().then(|| format!("{value:?}"))
}
