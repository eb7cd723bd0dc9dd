//! Execution of kernels, and evaluation of scalars.

use super::frames::bytes_of;
use super::{Executor, Frame, Watch, memory_of};
use crate::backend::{Argument, Backend, KernelCall};
use crate::error::RunError;
use crate::memory::Memory;
use crate::observer::KernelRun;
use crate::types::{evaluate, evaluate_shape};
use crate::value::{DeviceTensor, Place, Value};
use rx_lower::{Instruction, Operation, Procedure, Scalar};
use rx_tensor::Scalar as Number;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl<B: Backend> Executor<B> {
    /// Runs a kernel. Its outputs are new allocations or storages of the frame, as planned.
    pub(super) fn kernel(
        &mut self,
        instruction: &Instruction,
        procedure: &Procedure,
        frame: &mut Frame<B>,
        watch: &mut Watch<'_>,
    ) -> Result<(), RunError> {
        let Operation::Kernel { kernel, inputs, outputs, scalars } = &instruction.operation else { return Ok(()) };
        let scalars: Vec<Number> = scalars.iter().map(|scalar| self.scalar(scalar, frame)).collect::<Result<_, _>>()?;
        // Take the outputs' memory out of the frame while the kernel runs. The plan guarantees that no input uses the
        // same storage.
        let mut written = Vec::with_capacity(outputs.len());
        for output in outputs {
            let shape = evaluate_shape(&output.shape, &frame.symbols)?;
            let bytes = bytes_of(&shape, output.dtype)?;
            self.fuel.take_bytes(bytes)?;
            let (memory, size) = match output.storage {
                Some(storage) => self.storage(storage, bytes, procedure, frame)?,
                None => {
                    frame.bytes = frame.bytes.saturating_add(bytes as u64);
                    (B::Memory::allocate(&mut self.backend, bytes)?, bytes)
                }
            };
            written.push(((memory, shape, output.dtype), size));
        }
        let (mut memory, sizes): (Vec<_>, Vec<usize>) = written.into_iter().unzip();
        let mut arguments = Vec::with_capacity(inputs.len());
        for input in inputs {
            let Value::Tensor(tensor) = &frame.registers[input.0 as usize] else {
                return Err(RunError::other("a kernel takes tensors"));
            };
            let place = memory_of::<B>(tensor, &frame.storages)?;
            arguments.push(Argument { memory: place, shape: &tensor.shape, dtype: tensor.dtype });
        }
        let call = KernelCall { kernel: *kernel, inputs: &arguments, outputs: &mut memory, scalars: &scalars };
        let done = match watch.as_mut().filter(|observer| observer.is_timing()) {
            None => self.backend.run(call, &mut self.fuel),
            Some(observer) => {
                let start = self.started.elapsed();
                let time = self.timed(call);
                let inputs = arguments.iter().map(|argument| argument.shape);
                let shapes: Vec<&[i64]> = inputs.chain(memory.iter().map(|(_, shape, _)| shape.as_slice())).collect();
                let scalars: Vec<i64> = scalars.iter().map(|scalar| scalar.as_int().unwrap_or(0)).collect();
                let (kernel, origin) = (*kernel, instruction.origin);
                time.map(|time| {
                    observer.kernel(&KernelRun { kernel, origin, start, time, shapes: &shapes, scalars: &scalars });
                })
            }
        };
        if let (Some(observer), Ok(())) = (watch, &done) {
            observer.passed();
        }
        for ((output, (memory, shape, dtype)), size) in outputs.iter().zip(memory).zip(sizes) {
            let place = match output.storage {
                Some(storage) => {
                    frame.storages[storage.0 as usize] = Some((memory, size));
                    Place::Storage(storage)
                }
                None => Place::Shared(Arc::new(memory)),
            };
            frame.registers[output.to.0 as usize] = Value::Tensor(DeviceTensor { place, shape: shape.into(), dtype });
        }
        done
    }

    /// Runs a kernel while the device does no other work, and returns its duration.
    fn timed(&mut self, call: KernelCall<'_, B::Memory>) -> Result<Duration, RunError> {
        self.backend.finish()?;
        self.backend.busy();
        let start = Instant::now();
        self.backend.run(call, &mut self.fuel)?;
        self.backend.finish()?;
        let time = start.elapsed();
        // Prefer the device's clock: the host's time includes the overhead of the launch.
        Ok(self.backend.busy().unwrap_or(time))
    }

    /// Evaluates a scalar operand.
    pub(super) fn scalar(&mut self, scalar: &Scalar, frame: &Frame<B>) -> Result<Number, RunError> {
        match scalar {
            Scalar::Int(dim) => match evaluate(dim, &frame.symbols) {
                Some(value) => Ok(Number::Int(value)),
                None => Err(RunError::other(format!("the value of {dim} is not known"))),
            },
            Scalar::Float(value) => Ok(Number::Float(*value)),
            Scalar::Bool(value) => Ok(Number::Int(i64::from(*value))),
            Scalar::Register(register) => self.number(frame.get(*register).clone(), frame),
        }
    }

    /// Returns the number that a value represents: a scalar, or the first element of a tensor.
    fn number(&mut self, value: Value<B::Memory>, frame: &Frame<B>) -> Result<Number, RunError> {
        match &value {
            Value::Scalar(scalar) => Ok(*scalar),
            Value::Tensor(tensor) => {
                let memory = memory_of::<B>(tensor, &frame.storages)?;
                let tensor = memory.download(&mut self.backend, tensor.dtype, &tensor.shape)?;
                tensor.get(0).ok_or_else(|| RunError::other("a tensor without elements has no value"))
            }
            _ => Err(RunError::other(format!("{} is no number", value.shown()))),
        }
    }

    /// Whether a condition is nonzero.
    pub(super) fn truth(&mut self, value: Value<B::Memory>, frame: &Frame<B>) -> Result<bool, RunError> {
        Ok(match self.number(value, frame)? {
            Number::Int(value) => value != 0,
            Number::Float(value) => value != 0.0,
        })
    }
}
