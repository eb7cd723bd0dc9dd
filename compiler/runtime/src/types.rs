//! Values against types: symbols get their values, everything else is compared.

use crate::error::{Fault, RunError};
use crate::value::Value;
use rx_base::name::NameMap;
use rx_base::{DType, Dim};
use rx_ir::{Shape, StructInfo};

/// Values of symbols.
pub(crate) type Symbols = NameMap<i64>;

/// The value of a dim; `None` where a symbol has none or it overflows.
pub(crate) fn evaluate(dim: &Dim, symbols: &Symbols) -> Option<i64> {
    if let Some(value) = dim.as_constant() {
        return Some(value);
    }
    if let Some(symbol) = dim.as_symbol() {
        return symbols.get(&symbol).copied();
    }
    dim.substitute(&|symbol| symbols.get(&symbol).copied().map(Dim::constant)).as_constant()
}

/// The values of dims.
///
/// # Errors
/// Where one is not known or negative.
pub(crate) fn evaluate_shape(dims: &[Dim], symbols: &Symbols) -> Result<Vec<i64>, RunError> {
    let one = |dim: &Dim| match evaluate(dim, symbols) {
        Some(value) if value >= 0 => Ok(value),
        Some(value) => Err(RunError::other(format!("the dim {dim} is {value}"))),
        None => Err(RunError::other(format!("the value of the dim {dim} is not known"))),
    };
    dims.iter().map(one).collect()
}

/// Gives symbols without a value the extents that stand at their places.
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

/// Checks that the value is of the type.
///
/// # Errors
/// The first difference.
pub(crate) fn check<M>(value: &Value<M>, ty: &StructInfo, what: &str, symbols: &Symbols) -> Result<(), RunError> {
    difference(value, ty, symbols).map_or(Ok(()), |detail| {
        let (declared, actual) = (ty.to_string(), value.shown());
        Err(Fault::Mismatch { what: what.to_owned(), declared, actual, detail }.into())
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
