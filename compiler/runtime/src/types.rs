//! Run-time types: evaluates symbolic dims, binds symbols to the extents of values, and compares values with declared
//! types.

use crate::error::{Fault, RunError};
use crate::value::Value;
use rx_base::name::NameMap;
use rx_base::symbolic::Atom;
use rx_base::{DType, Dim};
use rx_ir::{Shape, StructInfo};

/// The values of symbolic variables, by name.
pub(crate) type Symbols = NameMap<i64>;

/// Evaluates a dim. Returns `None`, for example, if a symbol has no value, an operation is unknown, or the arithmetic
/// overflows or divides by zero.
pub(crate) fn evaluate(dim: &Dim, symbols: &Symbols) -> Option<i64> {
    if let Some(value) = dim.as_constant() {
        return Some(value);
    }
    if let Some(symbol) = dim.as_symbol() {
        return symbols.get(&symbol).copied();
    }
    if dim.is_error() {
        return None;
    }
    dim.terms().iter().try_fold(dim.constant_part(), |sum, (product, coefficient)| {
        let term = product.iter().try_fold(*coefficient, |term, (atom, exponent)| {
            term.checked_mul(evaluate_atom(atom, symbols)?.checked_pow(*exponent)?)
        });
        sum.checked_add(term?)
    })
}

/// Evaluates an atom of a dim. Conditions evaluate to 1 or 0.
fn evaluate_atom(atom: &Atom, symbols: &Symbols) -> Option<i64> {
    let value = |dim: &Dim| evaluate(dim, symbols);
    match atom {
        Atom::Symbol(symbol) => symbols.get(symbol).copied(),
        Atom::FloorDiv(a, b) => floor_div(value(a)?, value(b)?),
        Atom::FloorMod(a, b) => {
            let (a, b) = (value(a)?, value(b)?);
            a.checked_sub(floor_div(a, b)?.checked_mul(b)?)
        }
        Atom::Min(a, b) => Some(value(a)?.min(value(b)?)),
        Atom::Max(a, b) => Some(value(a)?.max(value(b)?)),
        Atom::Opaque(function, arguments) => match (function.as_str(), &arguments[..]) {
            ("T.if_then_else", [condition, then, otherwise]) => match value(condition)? {
                0 => value(otherwise),
                _ => value(then),
            },
            ("and", all) => all.iter().try_fold(1, |so_far, one| if so_far == 0 { Some(0) } else { value(one) }),
            ("or", all) => all.iter().try_fold(0, |so_far, one| if so_far != 0 { Some(1) } else { value(one) }),
            (_, [a, b]) => evaluate_binary(function.as_str(), value(a)?, value(b)?),
            // TVM's annotation that all threads have the same value.
            ("T.tvm_thread_invariant", [a]) => value(a),
            _ => None,
        },
    }
}

/// Evaluates `function(a, b)`, where `function` is the name of an opaque term of a dim.
fn evaluate_binary(function: &str, a: i64, b: i64) -> Option<i64> {
    Some(match function {
        "<" => i64::from(a < b),
        "<=" => i64::from(a <= b),
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "T.truncdiv" | "T.Div" => a.checked_div(b)?,
        "T.truncmod" => a.checked_rem(b)?,
        "T.shift_left" => a.checked_mul(1i64.checked_shl(u32::try_from(b).ok()?)?)?,
        "T.shift_right" => a.checked_shr(u32::try_from(b).ok()?)?,
        "T.bitwise_and" => a & b,
        "T.bitwise_or" => a | b,
        "T.bitwise_xor" => a ^ b,
        "T.pow" => a.checked_pow(u32::try_from(b).ok()?)?,
        _ => return None,
    })
}

/// Divides and rounds toward −∞. Returns `None` for division by zero and on overflow.
fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

/// Evaluates the dims of a shape.
///
/// # Errors
/// If a dim is negative or its value is not known.
pub(crate) fn evaluate_shape(dims: &[Dim], symbols: &Symbols) -> Result<Vec<i64>, RunError> {
    let one = |dim: &Dim| match evaluate(dim, symbols) {
        Some(value) if value >= 0 => Ok(value),
        Some(value) => Err(RunError::other(format!("the dim {dim} is {value}"))),
        None => Err(RunError::other(format!("the value of the dim {dim} is not known"))),
    };
    dims.iter().map(one).collect()
}

/// Binds each symbol that is a dim or a scalar value of the type, and has no value yet, to the extent or integer at its
/// position. For example, a tensor of shape `(4, 8)` declared `R.Tensor((n, 8))` binds `n` to 4. The dim `n * 2` binds
/// nothing.
pub(crate) fn bind<M>(value: &Value<M>, ty: &StructInfo, symbols: &mut Symbols) {
    let mut dims = |dims: &[Dim], extents: &[i64]| {
        for (dim, extent) in dims.iter().zip(extents) {
            if let Some(symbol) = dim.as_symbol() {
                symbols.entry(symbol).or_insert(*extent);
            }
        }
    };
    match (value, ty) {
        (Value::Tensor(tensor), ty) => {
            if let Some(declared) = ty.as_tensor().and_then(|declared| declared.shape.dims()) {
                dims(declared, &tensor.shape);
            }
        }
        (Value::Shape(extents), StructInfo::Shape(Shape::Known(declared))) => dims(declared, extents),
        (Value::Scalar(rx_tensor::Scalar::Int(value)), StructInfo::Prim(info)) => {
            if let Some(dim) = &info.value {
                dims(std::slice::from_ref(dim), &[*value]);
            }
        }
        (Value::Tuple(values), StructInfo::Tuple(types)) => {
            values.iter().zip(&**types).for_each(|(value, ty)| bind(value, ty, symbols));
        }
        _ => {}
    }
}

/// Checks a value against its declared type. Not checked are, for example, dims whose value is not known, the dtypes of
/// scalars and the signatures of functions. `subject` names the value in the error message.
///
/// # Errors
/// The first difference between the value and the type.
pub(crate) fn check<M>(value: &Value<M>, ty: &StructInfo, subject: &str, symbols: &Symbols) -> Result<(), RunError> {
    difference(value, ty, symbols).map_or(Ok(()), |detail| {
        let (declared, actual) = (ty.to_string(), value.shown());
        Err(Fault::Mismatch { subject: subject.to_owned(), declared, actual, detail }.into())
    })
}

fn difference<M>(value: &Value<M>, ty: &StructInfo, symbols: &Symbols) -> Option<String> {
    match (value, ty) {
        (_, StructInfo::Object | StructInfo::Error) => None,
        (Value::Tensor(tensor), StructInfo::Tensor(_) | StructInfo::DTensor(_)) => {
            let declared = ty.as_tensor()?;
            dtype_difference(tensor.dtype, declared.dtype).or_else(|| shape(&tensor.shape, &declared.shape, symbols))
        }
        (Value::Shape(extents), StructInfo::Shape(declared)) => shape(extents, declared, symbols),
        (Value::Scalar(value), StructInfo::Prim(info)) => {
            let wanted = info.value.as_ref().and_then(|dim| evaluate(dim, symbols));
            match (wanted, value.as_int()) {
                (Some(wanted), Some(have)) if wanted != have => Some(format!("it is {have}, not {wanted}")),
                _ => None,
            }
        }
        (Value::String(_), StructInfo::String) | (Value::Closure(_), StructInfo::Function(_)) => None,
        (Value::Tuple(values), StructInfo::Tuple(types)) if values.len() == types.len() => values
            .iter()
            .zip(&**types)
            .enumerate()
            .find_map(|(at, (value, ty))| Some(format!("field {at}: {}", difference(value, ty, symbols)?))),
        (Value::Tuple(values), StructInfo::Tuple(types)) => {
            Some(format!("it has {} fields, not {}", values.len(), types.len()))
        }
        _ => Some("it is another kind of value".to_owned()),
    }
}

fn dtype_difference(have: DType, wanted: Option<DType>) -> Option<String> {
    let wanted = wanted.filter(|wanted| *wanted != have)?;
    Some(format!("its dtype is {have}, not {wanted}"))
}

fn shape(extents: &[i64], declared: &Shape, symbols: &Symbols) -> Option<String> {
    if let Some(ndim) = declared.ndim()
        && ndim != extents.len()
    {
        return Some(format!("it has {} dims, not {ndim}", extents.len()));
    }
    let dims = declared.dims()?;
    dims.iter().zip(extents).enumerate().find_map(|(axis, (dim, extent))| {
        let wanted = evaluate(dim, symbols)?;
        let of = if dim.as_constant().is_some() { String::new() } else { format!(", which is {dim}") };
        (wanted != *extent).then(|| format!("axis {axis} is {extent}, not {wanted}{of}"))
    })
}
