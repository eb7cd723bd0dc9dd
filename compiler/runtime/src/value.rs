//! Values of a running program: [`Value`] in the executor's registers, [`Output`] on the host.

mod nested;

pub use nested::Nested;
use rx_base::DType;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_lower::{ProcedureId, StorageId};
use rx_tensor::{Scalar, Tensor};
use std::sync::Arc;

/// A value in a register. `M` is the device's memory type.
#[derive(Debug)]
pub enum Value<M> {
    /// The register has not been written yet.
    Unset,
    /// A tensor in the device's memory.
    Tensor(DeviceTensor<M>),
    /// A shape (`R.Shape`).
    Shape(Arc<[i64]>),
    /// A scalar (`R.Prim`), as opposed to a tensor of rank 0.
    Scalar(Scalar),
    /// A string.
    String(Arc<str>),
    /// The absence of a value: `R.null_value()`.
    Null,
    /// A tuple.
    Tuple(Nested<M>),
    /// A function value.
    Closure(Arc<Closure<M>>),
}

/// A tensor in the device's memory: compact and row-major, at offset 0 of its memory.
#[derive(Debug)]
pub struct DeviceTensor<M> {
    pub(crate) place: Place<M>,
    pub(crate) shape: Arc<[i64]>,
    pub(crate) dtype: DType,
}

/// The owner of a tensor's memory.
#[derive(Debug)]
pub(crate) enum Place<M> {
    /// A storage of the frame, assigned by the memory plan. The memory is reused for other tensors.
    Storage(StorageId),
    /// A separate allocation that all copies of the value share.
    Shared(Arc<M>),
}

/// A function value with the values that it captured.
#[derive(Debug)]
pub struct Closure<M> {
    pub(crate) procedure: ProcedureId,
    pub(crate) captured: Nested<M>,
    /// The values of the symbolic variables of the function that created the closure.
    pub(crate) symbols: NameMap<i64>,
}

// Not derived: `derive(Clone)` would require `M: Clone`, but memory is shared, not cloned.
impl<M> Clone for Value<M> {
    fn clone(&self) -> Value<M> {
        match self {
            Value::Unset => Value::Unset,
            Value::Null => Value::Null,
            Value::Tensor(tensor) => Value::Tensor(tensor.clone()),
            Value::Shape(shape) => Value::Shape(shape.clone()),
            Value::Scalar(scalar) => Value::Scalar(*scalar),
            Value::String(text) => Value::String(text.clone()),
            Value::Tuple(fields) => Value::Tuple(fields.clone()),
            Value::Closure(closure) => Value::Closure(closure.clone()),
        }
    }
}

impl<M> Clone for DeviceTensor<M> {
    fn clone(&self) -> DeviceTensor<M> {
        DeviceTensor { place: self.place.clone(), shape: self.shape.clone(), dtype: self.dtype }
    }
}

impl<M> Clone for Place<M> {
    fn clone(&self) -> Place<M> {
        match self {
            Place::Storage(storage) => Place::Storage(*storage),
            Place::Shared(memory) => Place::Shared(memory.clone()),
        }
    }
}

impl<M> Value<M> {
    /// Returns the values that a tuple or a closure contains.
    fn nested(&self) -> Option<&Nested<M>> {
        match self {
            Value::Tuple(fields) => Some(fields),
            Value::Closure(closure) => Some(&closure.captured),
            _ => None,
        }
    }

    /// Formats the value for error messages, for example `R.Tensor((2, 3), dtype="float32")`.
    pub(crate) fn shown(&self) -> String {
        let dims = |shape: &[i64]| shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Value::Unset | Value::Null => "nothing".to_owned(),
            Value::Tensor(tensor) => {
                let comma = if tensor.shape.len() == 1 { "," } else { "" };
                format!("R.Tensor(({}{comma}), dtype=\"{}\")", dims(&tensor.shape), tensor.dtype)
            }
            Value::Shape(shape) => format!("R.Shape([{}])", dims(shape)),
            Value::Scalar(Scalar::Int(value)) => format!("the integer {value}"),
            Value::Scalar(Scalar::Float(value)) => format!("the number {value}"),
            Value::String(text) => format!("the string {text:?}"),
            Value::Tuple(fields) if fields.too_large().is_some() => format!("a tuple of {} fields", fields.len()),
            Value::Tuple(fields) => {
                format!("a tuple of {}", fields.iter().map(Value::shown).collect::<Vec<_>>().join(", "))
            }
            Value::Closure(_) => "a function".to_owned(),
        }
    }
}

/// A value in host memory: for example the result of a program, or an argument or result of a host function.
#[derive(Debug)]
pub enum Output {
    /// A tensor.
    Tensor(Tensor),
    /// A shape.
    Shape(Vec<i64>),
    /// A scalar (`R.Prim`), as opposed to a tensor of rank 0.
    Scalar(Scalar),
    /// A string.
    String(Arc<str>),
    /// The absence of a value: `R.null_value()`.
    Null,
    /// A tuple.
    Tuple(Vec<Output>),
    /// A function, by name: it has no representation outside the program.
    Function(Name),
}

impl Output {
    /// Returns the tensors in the value in order, with tuples flattened. A shape becomes an `int64` tensor of rank 1, a
    /// scalar a tensor of rank 0; strings, nulls and functions are skipped.
    pub fn tensors(self) -> Vec<Tensor> {
        let scalar = |value: Scalar| {
            let dtype = match value {
                Scalar::Int(_) => DType::INT64,
                Scalar::Float(_) => DType::FLOAT64,
            };
            Tensor::from_scalar(dtype, value).ok()
        };
        match self {
            Output::Tensor(tensor) => vec![tensor],
            Output::Shape(shape) => Tensor::from_i64s(&[shape.len() as i64], &shape).into_iter().collect(),
            Output::Scalar(value) => scalar(value).into_iter().collect(),
            Output::Tuple(fields) => fields.into_iter().flat_map(Output::tensors).collect(),
            Output::String(_) | Output::Null | Output::Function(_) => Vec::new(),
        }
    }
}
