//! Calls whose types are found out when they are made: each becomes a program of its own, on the same device.

use super::{Executor, Frame, memory_of, walked};
use crate::backend::Backend;
use crate::budget::Limits;
use crate::error::RunError;
use crate::memory::Memory;
use crate::value::{DeviceTensor, Output, Place, Value};
use rx_base::name::NameMap;
use rx_lower::Register;
use rx_lower::dynamic::{Actual, DynamicCall, Made, Specialized, specialize};
use rx_tensor::Scalar as Number;
use std::sync::Arc;

/// How many programs of calls are kept: those of the shapes that were met last.
const KEPT: usize = 64;

/// Programs of calls that were made, the latest last.
pub(super) struct Calls<B: Backend>(Vec<(Specialized, Call<B>)>);

struct Call<B: Backend> {
    executor: Box<Executor<B>>,
    /// Whether its result stands for a scalar.
    scalar: bool,
}

impl<B: Backend> Default for Calls<B> {
    fn default() -> Self {
        Calls(Vec::new())
    }
}

impl<B: Backend> Executor<B> {
    /// Makes the call with what its operands are now.
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
            tensors(&values[at], &mut arguments); // INVARIANT: a call reads the operands that stand beside it.
        }
        let mut made: Call<B> = match self.made.0.iter().position(|(known, _)| *known == specialized) {
            Some(at) => self.made.0.remove(at).1,
            None => self.build_alone(&specialized)?,
        };
        let Call { executor, scalar } = &mut made;
        executor.limits = Limits { rounds: Some(self.budget.rounds), bytes: Some(self.budget.bytes) };
        let result = executor.run(arguments, &NameMap::default());
        let result = match scalar {
            true => result.and_then(|value| Ok(Value::Scalar(executor.number_of(&value)?))),
            false => result,
        };
        self.budget = executor.budget;
        if self.made.0.len() >= KEPT {
            self.made.0.remove(0);
        }
        self.made.0.push((specialized, made));
        // Whatever happened, it happened at the call.
        result.map_err(|error| RunError { origin: None, fault: error.fault })
    }

    fn build_alone(&self, call: &Specialized) -> Result<Call<B>, RunError> {
        let Made { program, scalar } = specialize(call, self.backend.preferences()).map_err(RunError::other)?;
        let program = Arc::new(program);
        let constants: Vec<_> = program.constants.iter().map(crate::constant::written).collect::<Result<_, _>>()?;
        let built = Executor::new(program, self.backend.another(), &constants, &mut |_| {});
        let executor = built.map_err(|error| RunError::other(error.to_string()))?;
        Ok(Call { executor: Box::new(executor), scalar })
    }

    /// The number that a returned tensor holds.
    fn number_of(&mut self, value: &Value<B::Memory>) -> Result<Number, RunError> {
        match self.download(value)? {
            Output::Tensor(tensor) => tensor.get(0),
            Output::Scalar(scalar) => Some(scalar),
            _ => None,
        }
        .ok_or_else(|| RunError::other("what should be a scalar is none"))
    }

    /// The value, none of its tensors in the frame's memory.
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

/// What a rule sees of a value.
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

/// The tensors of a value, in order.
fn tensors<M>(value: &Value<M>, into: &mut Vec<Value<M>>) {
    match value {
        Value::Tensor(_) => into.push(value.clone()),
        Value::Tuple(fields) => fields.iter().for_each(|field| tensors(field, into)),
        _ => {}
    }
}
