//! Maps dtypes to C types: the storage type of elements in memory, and the type of values in expressions.

use rx_base::DType;
use rx_base::dtype::TypeCode;

/// Returns the C type of an element in memory.
pub(crate) fn storage(dtype: DType) -> Option<&'static str> {
    match helper(dtype) {
        // Every nonzero byte is true. A C++ `bool` with another byte than 0 or 1 would be undefined behaviour.
        None if dtype.is_bool() => Some("unsigned char"),
        None => value(dtype),
        helper => helper,
    }
}

/// Returns the C type of a value in an expression: `float` for `float32` and the dtypes of [`helper`]. Returns `None`
/// for vectors and for other dtypes without a C type.
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

/// Returns the struct of a float of less than 32 bits, which is also the name of the helper that defines it. Returns
/// `None` for all other dtypes.
pub(crate) fn helper(dtype: DType) -> Option<&'static str> {
    match (dtype.code, dtype.bits, dtype.lanes) {
        (TypeCode::Float, 16, 1) => Some("rx_f16"),
        (TypeCode::BFloat, 16, 1) => Some("rx_bf16"),
        (TypeCode::Float8E4M3Fn, 8, 1) => Some("rx_f8e4m3"),
        (TypeCode::Float8E5M2, 8, 1) => Some("rx_f8e5m2"),
        _ => None,
    }
}

/// Converts an element in memory to a value. The text must be a postfix expression; the result is a postfix expression
/// or, for `bool`, in parentheses.
pub(crate) fn from_storage(dtype: DType, text: &str) -> String {
    match helper(dtype) {
        Some(helper) => format!("{helper}_to_float({text})"),
        None if dtype.is_bool() => format!("({text} != 0)"),
        None => text.to_owned(),
    }
}

/// Converts a value to the storage type; floats of less than 32 bits are rounded.
pub(crate) fn to_storage(dtype: DType, value: &str) -> String {
    match helper(dtype) {
        Some(helper) => format!("{}({value})", rounding(helper)),
        None => value.to_owned(),
    }
}

/// Rounds a `float` to a dtype of less than 32 bits; the result is a `float` again. A value of another dtype does not
/// change.
pub(crate) fn rounded(dtype: DType, value: &str) -> String {
    match helper(dtype) {
        Some(helper) => format!("{helper}_to_float({}({value}))", rounding(helper)),
        None => value.to_owned(),
    }
}

fn rounding(helper: &str) -> String {
    format!("rx_float_to_{}", helper.trim_start_matches("rx_"))
}

/// Whether values of the dtype are computed as `float`.
pub(crate) fn is_single(dtype: DType) -> bool {
    value(dtype) == Some("float")
}

/// Whether C's operators compute the dtype directly, with its rounding.
pub(crate) fn is_native_float(dtype: DType) -> bool {
    matches!(dtype, DType::FLOAT32 | DType::FLOAT64)
}

/// Prints a float constant, rounded to the type in which the dtype is computed. Returns `None` for infinities and NaN,
/// and if the value is rounded to infinity.
pub(crate) fn float_literal(value: f64, dtype: DType) -> Option<String> {
    if is_single(dtype) {
        let rounded = value as f32;
        return rounded.is_finite().then(|| format!("{rounded:?}f"));
    }
    value.is_finite().then(|| format!("{value:?}"))
}
