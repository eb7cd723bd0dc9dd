//! The JSON syntax of tensors in the arguments of `BindParams`.

use rx_base::DType;
use rx_ir::StructInfo;
use rx_tensor::{Scalar, Tensor, in_files, npy, npz, safetensors};
use serde_json::{Map, Value};
use std::path::Path;

/// The largest nesting depth of lists.
const MAX_RANK: usize = 64;

/// Reads a tensor for a parameter of type `ty`. Lists and numbers get the parameter's dtype. An array from a file is
/// converted to that dtype if files represent the dtype by another one, for example `bfloat16` by `uint16`.
///
/// # Errors
/// A message why no tensor can be read.
pub(super) fn read(value: &Value, ty: &StructInfo) -> Result<Tensor, String> {
    let declared = ty.as_tensor().and_then(|tensor| tensor.dtype);
    match value {
        Value::Object(fields) if fields.contains_key("file") => of_file(fields, declared),
        Value::Object(fields) => of_array(fields),
        numbers => {
            let dtype = declared.ok_or("its dtype is not known: give {\"__ndarray__\": dtype, …}")?;
            let (shape, elements) = flattened(numbers)?;
            of_elements(&shape, dtype, &elements)
        }
    }
}

/// Reads `{"__ndarray__": "float32", "shape": [2], "data": [1.0, 2.0]}`. Without `data`, the tensor is filled with
/// zeros; without `shape`, it has the extents of `data`.
fn of_array(fields: &Map<String, Value>) -> Result<Tensor, String> {
    let dtype = fields
        .get("__ndarray__")
        .and_then(Value::as_str)
        .ok_or("a tensor is a list, a number or {\"__ndarray__\": …}")?;
    let dtype = DType::parse(dtype).ok_or_else(|| format!("there is no dtype `{dtype}`"))?;
    let shape = match fields.get("shape") {
        None => None,
        Some(Value::Array(extents)) => {
            let extents: Option<Vec<i64>> = extents.iter().map(Value::as_i64).collect();
            Some(extents.ok_or("its shape is no list of integers")?)
        }
        Some(_) => return Err("its shape is no list of integers".to_owned()),
    };
    let data = fields.get("data").filter(|data| !data.is_null());
    let Some(data) = data else {
        let shape = shape.ok_or("it has neither data nor a shape")?;
        return Tensor::zeros(dtype, &shape).map_err(|error| error.to_string());
    };
    let (own, elements) = flattened(data)?;
    match shape {
        Some(shape) if shape != own && !(elements.is_empty() && shape.contains(&0)) => {
            Err(format!("its data has the extents {own:?}, not {shape:?}"))
        }
        shape => of_elements(&shape.unwrap_or(own), dtype, &elements),
    }
}

/// Returns the extents and the elements, in row-major order, of nested lists.
fn flattened(value: &Value) -> Result<(Vec<i64>, Vec<&Value>), String> {
    let mut shape: Vec<i64> = Vec::new();
    let mut level = vec![value];
    while let Some(Value::Array(first)) = level.first() {
        if shape.len() == MAX_RANK {
            return Err(format!("it has more than {MAX_RANK} dims"));
        }
        let extent = first.len();
        let mut inner = Vec::with_capacity(level.len().saturating_mul(extent));
        for list in level {
            let list = list.as_array().filter(|list| list.len() == extent).ok_or("its lists are of unequal lengths")?;
            inner.extend(list);
        }
        shape.push(i64::try_from(extent).map_err(|_| "it is too large")?);
        level = inner;
    }
    Ok((shape, level))
}

fn of_elements(shape: &[i64], dtype: DType, elements: &[&Value]) -> Result<Tensor, String> {
    let mut tensor = Tensor::zeros(dtype, shape).map_err(|error| error.to_string())?;
    if tensor.len() != elements.len() {
        return Err(format!("it has {} elements, not {}", elements.len(), tensor.len()));
    }
    for (at, element) in elements.iter().enumerate() {
        let scalar = scalar(element, dtype).ok_or_else(|| format!("{element} is no element of {dtype}"))?;
        tensor.set(at, scalar);
        if let Scalar::Int(_) = scalar
            && tensor.get(at) != Some(scalar)
        {
            return Err(format!("{element} is no element of {dtype}"));
        }
    }
    Ok(tensor)
}

fn scalar(element: &Value, dtype: DType) -> Option<Scalar> {
    if dtype.is_float() {
        // JSON has no literals for these numbers.
        let spelled = element.as_str().filter(|text| matches!(*text, "nan" | "inf" | "-inf"));
        return spelled.and_then(|text| text.parse().ok()).or_else(|| element.as_f64()).map(Scalar::Float);
    }
    match element {
        Value::Bool(value) => Some(Scalar::Int(i64::from(*value))),
        // A scalar has the bits of an integer above `i64::MAX`.
        other if dtype == DType::UINT64 => other.as_u64().map(|value| Scalar::Int(value.cast_signed())),
        other => other.as_i64().map(Scalar::Int),
    }
}

/// Reads `{"file": "w.npz", "entry": "w"}`; a `.npy` file holds one tensor and needs no entry.
fn of_file(fields: &Map<String, Value>, declared: Option<DType>) -> Result<Tensor, String> {
    let file = fields.get("file").and_then(Value::as_str).ok_or("`file` is no path")?;
    let path = Path::new(file);
    let is = |extension: &str| path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension));
    let failed = |error: rx_tensor::FileError| format!("{file}: {error}");
    let tensor = if is("npy") {
        npy::read_file(path).map_err(failed)?
    } else {
        let entry = fields.get("entry").and_then(Value::as_str).ok_or("it says no `entry` of the file")?;
        let entries = if is("safetensors") { safetensors::read(path) } else { npz::read(path) };
        let mut entries = entries.map_err(failed)?.into_iter();
        let found = entries.find(|(name, _)| name == entry);
        found.ok_or_else(|| format!("{file} has no entry `{entry}`"))?.1
    };
    let converted = declared
        .map(|dtype| in_files::of_file(&tensor, dtype))
        .transpose()
        .map_err(|error| format!("{file}: {error}"))?;
    Ok(converted.flatten().unwrap_or(tensor))
}
