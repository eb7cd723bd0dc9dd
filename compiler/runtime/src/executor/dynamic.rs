//! Calls whose types are known only at run time: each is specialized to the shapes and dtypes of its tensors and to the
//! values of its other operands, and built as a separate program for the same device.

use super::{Executor, Frame, memory_of, walked};
use crate::backend::Backend;
use crate::error::RunError;
use crate::fuel::Limits;
use crate::memory::Memory;
use crate::value::{DeviceTensor, Output, Place, Value};
use rx_base::name::NameMap;
use rx_lower::Register;
use rx_lower::dynamic::{Actual, DynamicCall, Made, Specialized, specialize};
use rx_tensor::Scalar as Number;
use std::sync::Arc;

/// The maximum number of specialized programs that are cached. The least recently used one is dropped first.
const KEPT: usize = 64;

/// The cached programs, the most recently used last.
pub(super) struct Calls<B: Backend>(Vec<(Specialized, Call<B>)>);

struct Call<B: Backend> {
    executor: Box<Executor<B>>,
    /// Whether the result represents a scalar. It is then returned as a tensor of rank 0.
    scalar: bool,
}

impl<B: Backend> Default for Calls<B> {
    fn default() -> Self {
        Calls(Vec::new())
    }
}

impl<B: Backend> Executor<B> {
    /// Specializes the call to its operands, builds its program unless it is cached, and runs it.
    pub(super) fn dynamic(
        &mut self,
        call: &DynamicCall,
        operands: &[Register],
        frame: &Frame<B>,
    ) -> Result<Value<B::Memory>, RunError> {
        let mut values = Vec::with_capacity(operands.len());
        for operand in operands {
            let value = walked(frame.get(*operand))?.clone();
            values.push(self.shared(value, frame)?);
        }
        let actuals: Vec<Actual> = values.iter().map(actual).collect::<Result<_, _>>()?;
        let specialized = call.with(&actuals, &|symbol| frame.symbols.get(&symbol).copied());
        let mut arguments = Vec::new();
        for at in call.reads() {
            tensors(&values[at], &mut arguments); // INVARIANT: `reads` returns positions in the call's operands.
        }
        let mut made: Call<B> = match self.made.0.iter().position(|(known, _)| *known == specialized) {
            Some(at) => self.made.0.remove(at).1,
            None => self.build_alone(&specialized)?,
        };
        let Call { executor, scalar } = &mut made;
        executor.limits = Limits { iterations: Some(self.fuel.iterations), bytes: Some(self.fuel.bytes) };
        let result = executor.run(arguments, &NameMap::default());
        let result = match scalar {
            true => result.and_then(|value| Ok(Value::Scalar(executor.number_of(&value)?))),
            false => result,
        };
        self.fuel = executor.fuel;
        if self.made.0.len() >= KEPT {
            self.made.0.remove(0);
        }
        self.made.0.push((specialized, made));
        // Origins inside the specialized program mean nothing to the caller, which reports its own statement.
        result.map_err(|error| RunError { origin: None, fault: error.fault })
    }

    fn build_alone(&self, call: &Specialized) -> Result<Call<B>, RunError> {
        let Made { program, scalar } = specialize(call, self.backend.target_info()).map_err(RunError::other)?;
        let program = Arc::new(program);
        let constants: Vec<_> = program.constants.iter().map(crate::constant::written).collect::<Result<_, _>>()?;
        let built = Executor::new(program, self.backend.new_instance(), &constants, &mut |_| {});
        let executor = built.map_err(|error| RunError::other(error.to_string()))?;
        Ok(Call { executor: Box::new(executor), scalar })
    }

    /// Downloads the single number that a returned tensor contains.
    fn number_of(&mut self, value: &Value<B::Memory>) -> Result<Number, RunError> {
        match self.download(value)? {
            Output::Tensor(tensor) => tensor.get(0),
            Output::Scalar(scalar) => Some(scalar),
            _ => None,
        }
        .ok_or_else(|| RunError::other("a value that should be a scalar is not one"))
    }

    /// Returns the value with all tensors in reference-counted allocations ([`Place::Shared`]). Tensors in the frame's
    /// storages are copied.
    fn shared(&mut self, value: Value<B::Memory>, frame: &Frame<B>) -> Result<Value<B::Memory>, RunError> {
        Ok(match value {
            Value::Tensor(DeviceTensor { place: place @ Place::Storage(_), shape, dtype }) => {
                let tensor = DeviceTensor { place, shape, dtype };
                let memory = memory_of::<B>(&tensor, &frame.storages)?;
                let down = memory.download(&mut self.backend, tensor.dtype, &tensor.shape)?;
                self.upload(&down)?
            }
            Value::Tuple(fields) => {
                let fields = fields.iter().map(|field| self.shared(field.clone(), frame));
                Value::Tuple(fields.collect::<Result<Vec<_>, _>>()?.into())
            }
            other => other,
        })
    }
}

/// Reduces a value to the properties that type inference depends on.
fn actual<M>(value: &Value<M>) -> Result<Actual, RunError> {
    Ok(match value {
        Value::Tensor(tensor) => Actual::Tensor(tensor.shape.to_vec(), tensor.dtype),
        Value::Shape(shape) => Actual::Shape(shape.to_vec()),
        Value::Scalar(Number::Int(value)) => Actual::Int(*value),
        Value::Scalar(Number::Float(value)) => Actual::Float(*value),
        Value::String(text) => Actual::String(text.clone()),
        Value::Tuple(fields) => Actual::Tuple(fields.iter().map(actual).collect::<Result<_, _>>()?),
        Value::Null => Actual::Null,
        Value::Closure(_) | Value::Unset => return Err(RunError::other("an operator takes no function")),
    })
}

/// Appends the tensors of a value to `into`, in order, with tuples flattened.
fn tensors<M>(value: &Value<M>, into: &mut Vec<Value<M>>) {
    match value {
        Value::Tensor(_) => into.push(value.clone()),
        Value::Tuple(fields) => fields.iter().for_each(|field| tensors(field, into)),
        _ => {}
    }
}
