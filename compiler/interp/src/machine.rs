//! Execution of a [`Program`].

use crate::Limits;
use crate::arithmetic::{float_binary, int_binary, int_pow};
use crate::error::{Limit, RunError};
use crate::intrinsics::{ldexp, next_after};
use crate::memory::Memory;
use crate::program::{Access, BlockStep, CheckedIndex, Float, Int, IntBinary, IntOp, Program, SiteId, Step};
use rx_tensor::{Element, Scalar, Tensor, float_of_int, int_of_float};
use rx_tir::{PrimFunc, bind_symbols, evaluate_index};
use std::sync::atomic::Ordering;

/// The error is boxed, so that a value or an error fits in two registers.
type Result<T> = std::result::Result<T, Box<RunError>>;

/// The maximum number of iterations between two checks of the limits.
const ITERATIONS_PER_CHECK: u64 = 1 << 14;

impl Program {
    /// Runs the program and returns the number of loop iterations. The arguments are one tensor for each buffer
    /// parameter and one scalar for each scalar parameter, both in order.
    ///
    /// # Errors
    /// If the arguments do not match the parameters, memory for a local buffer is missing, a limit is reached, or the
    /// function performs an invalid operation. The contents of the buffers are then unspecified.
    pub fn run(
        &self,
        buffers: &mut [Tensor],
        scalars: &[Scalar],
        limits: Limits<'_>,
    ) -> std::result::Result<u64, RunError> {
        let func = &self.func;
        let vars = bind(func, buffers, scalars)?;
        let mut allocated = self.allocate(&vars, limits.bytes)?;
        let mut memory: Vec<Memory<'_>> = func.buffers.iter().map(|_| Memory::unused()).collect();
        let malformed = |reason| RunError::Malformed { func: func.name, reason };
        for (id, tensor) in func.buffer_params().zip(buffers) {
            let slot = memory.get_mut(id.0 as usize).ok_or_else(|| malformed("a buffer is not in its table"))?;
            *slot = Memory::over(tensor).ok_or_else(|| malformed("a tensor has not its dtype's elements"))?;
        }
        for (slot, tensor) in memory.iter_mut().zip(&mut allocated) {
            if let Some(tensor) = tensor {
                *slot = Memory::over(tensor).ok_or_else(|| malformed("a tensor has not its dtype's elements"))?;
                if !limits.zeroed {
                    slot.poison();
                }
            }
        }
        let ints = vars.iter().map(|value| value.and_then(Scalar::as_int).unwrap_or(0)).collect();
        let floats = vars.iter().map(|value| value.map_or(f64::NAN, Scalar::as_float)).collect();
        let given = limits.iterations.unwrap_or(u64::MAX);
        let mut machine = Machine { program: self, ints, floats, memory, limits, left: given, countdown: 1 };
        machine.step(&self.body).map_err(|fault| *fault)?;
        // The iterations granted so far, minus those of the last batch that were not executed. The latter are
        // `countdown - 1`, since `countdown` starts at 1 with nothing granted.
        Ok((given - machine.left).saturating_sub(machine.countdown.saturating_sub(1)))
    }

    /// Allocates tensors for the local buffers that are accessed.
    fn allocate(
        &self,
        vars: &[Option<Scalar>],
        limit: Option<u64>,
    ) -> std::result::Result<Vec<Option<Tensor>>, RunError> {
        let mut left = limit.unwrap_or(u64::MAX);
        let mut wanted = self.used.clone();
        for id in self.func.buffer_params() {
            if let Some(wanted) = wanted.get_mut(id.0 as usize) {
                *wanted = false;
            }
        }
        let mut allocated = Vec::with_capacity(wanted.len());
        for (buffer, wanted) in self.func.buffers.iter().zip(wanted) {
            if !wanted {
                allocated.push(None);
                continue;
            }
            let value_of = |var: rx_tir::VarId| vars.get(var.0 as usize).copied().flatten().and_then(Scalar::as_int);
            let mut shape = Vec::with_capacity(buffer.shape.len());
            for (axis, extent) in buffer.shape.iter().enumerate() {
                let extent = evaluate_index(extent, &value_of);
                shape.push(extent.ok_or(RunError::UnknownExtent { buffer: buffer.name, axis })?);
            }
            let bytes = shape
                .iter()
                .fold(buffer.dtype.bytes(), |bytes, extent| bytes.saturating_mul(extent.max(&0).unsigned_abs()));
            left = left.checked_sub(bytes).ok_or(RunError::Stopped(Limit::Bytes))?;
            let tensor = Tensor::zeros(buffer.dtype, &shape)
                .map_err(|error| RunError::Allocation { buffer: buffer.name, error })?;
            allocated.push(Some(tensor));
        }
        Ok(allocated)
    }
}

/// Returns the values of scalar parameters and symbols, by variable.
fn bind(func: &PrimFunc, buffers: &[Tensor], scalars: &[Scalar]) -> std::result::Result<Vec<Option<Scalar>>, RunError> {
    let mut integers = Vec::with_capacity(scalars.len());
    let mut floats = Vec::new();
    for (id, scalar) in func.scalar_params().zip(scalars) {
        let malformed = RunError::Malformed { func: func.name, reason: "a variable is not in its table" };
        let var = func.vars.get(id.0 as usize).ok_or(malformed)?;
        let element = Element::of(var.dtype).ok_or(RunError::UnsupportedDType(var.dtype))?;
        match *scalar {
            Scalar::Int(value) if !element.is_float() && element.wrap(value) == value => integers.push(value),
            scalar if element.is_float() => {
                floats.push((id, Scalar::Float(element.round(scalar.as_float()))));
                integers.push(0);
            }
            _ => return Err(RunError::ArgumentScalar { param: var.name, dtype: var.dtype }),
        }
    }
    // Too many scalars are reported by `bind_symbols`.
    integers.resize(scalars.len(), 0);
    for (id, tensor) in func.buffer_params().zip(buffers) {
        let buffer = func.buffer(id);
        if buffer.dtype != tensor.dtype() {
            let (wanted, passed) = (buffer.dtype, tensor.dtype());
            return Err(RunError::ArgumentDType { buffer: buffer.name, wanted, passed });
        }
    }
    let shapes: Vec<&[i64]> = buffers.iter().map(Tensor::shape).collect();
    let values = bind_symbols(func, &shapes, &integers).map_err(|error| RunError::call(func, error))?;
    let mut values: Vec<Option<Scalar>> = values.into_iter().map(|value| value.map(Scalar::Int)).collect();
    for (var, value) in floats {
        // INVARIANT: the lookup in `func.vars` above succeeded.
        values[var.0 as usize] = Some(value);
    }
    Ok(values)
}

/// The state of a run.
///
/// INVARIANT: the program's variables and buffers are valid indices into `ints`, `floats` and `memory`; an [`Access`]
/// has as many indices as its buffer has dims.
struct Machine<'a> {
    program: &'a Program,
    ints: Vec<i64>,
    floats: Vec<f64>,
    memory: Vec<Memory<'a>>,
    limits: Limits<'a>,
    /// The iterations that are not granted yet.
    left: u64,
    /// The iterations until the next check of the limits.
    countdown: u64,
}

impl Machine<'_> {
    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Seq(steps) => steps.iter().try_for_each(|step| self.step(step)),
            Step::For { var, element, start, extent, body } => {
                let (start, extent) = (self.int(start)?, self.int(extent)?);
                for iteration in 0..extent.max(0) {
                    self.count_iteration()?;
                    self.ints[*var] = element.wrap(start.wrapping_add(iteration));
                    self.step(body)?;
                }
                Ok(())
            }
            Step::Once(body) => {
                self.count_iteration()?;
                self.step(body)
            }
            Step::Block(block) => self.block(block),
            Step::StoreInt(access, value) => {
                let value = self.int(value)?;
                let at = self.offset(access)?;
                self.memory[access.buffer].set_int(at, value);
                Ok(())
            }
            Step::StoreFloat(access, value) => {
                let value = self.float(value)?;
                let at = self.offset(access)?;
                self.memory[access.buffer].set_float(at, value);
                Ok(())
            }
            Step::LetInt { var, value, body } => {
                self.ints[*var] = self.int(value)?;
                self.step(body)
            }
            Step::LetFloat { var, value, body } => {
                self.floats[*var] = self.float(value)?;
                self.step(body)
            }
            Step::If { condition, then, otherwise } => match (self.int(condition)? != 0, otherwise) {
                (true, _) => self.step(then),
                (false, Some(otherwise)) => self.step(otherwise),
                (false, None) => Ok(()),
            },
            Step::While { condition, body } => {
                while self.int(condition)? != 0 {
                    self.count_iteration()?;
                    self.step(body)?;
                }
                Ok(())
            }
            Step::Assert { condition, message, site } => match self.int(condition)? {
                0 => Err(Box::new(RunError::Assertion { site: self.program.sites[*site as usize], message: *message })),
                _ => Ok(()),
            },
            Step::EvaluateInt(value) => self.int(value).map(drop),
            Step::EvaluateFloat(value) => self.float(value).map(drop),
        }
    }

    fn block(&mut self, block: &BlockStep) -> Result<()> {
        for (var, value) in &block.bindings {
            self.ints[*var] = self.int(value)?;
        }
        if let Some(predicate) = &block.predicate
            && self.int(predicate)? == 0
        {
            return Ok(());
        }
        for buffer in &block.allocations {
            if self.limits.zeroed { self.memory[*buffer].clear() } else { self.memory[*buffer].poison() }
        }
        if let Some((firsts, init)) = &block.init
            && self.all_equal(firsts)?
        {
            self.step(init)?;
        }
        self.step(&block.body)
    }

    /// Whether the two values of each pair are equal.
    fn all_equal(&self, pairs: &[(Int, Int)]) -> Result<bool> {
        for (left, right) in pairs {
            if self.int(left)? != self.int(right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts an iteration of a loop.
    #[inline]
    fn count_iteration(&mut self) -> Result<()> {
        self.countdown -= 1;
        if self.countdown == 0 { self.look_at_limits() } else { Ok(()) }
    }

    #[cold]
    fn look_at_limits(&mut self) -> Result<()> {
        if self.limits.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
            return Err(Box::new(RunError::Stopped(Limit::Cancelled)));
        }
        if self.left == 0 {
            return Err(Box::new(RunError::Stopped(Limit::Iterations)));
        }
        self.countdown = ITERATIONS_PER_CHECK.min(self.left);
        self.left -= self.countdown;
        Ok(())
    }

    /// Returns the row-major offset of an element, after checking its indices.
    #[inline]
    fn offset(&self, access: &Access) -> Result<usize> {
        let shape = &self.memory[access.buffer].shape;
        let mut offset = 0;
        for (axis, (index, extent)) in access.indices.iter().zip(shape).enumerate() {
            let index = match index {
                Int::Var(var) => self.ints[*var],
                index => self.int(index)?,
            };
            if !(0..*extent).contains(&index) {
                return Err(self.out_of_bounds(access.buffer, access.site, axis, index, *extent));
            }
            offset = offset * *extent + index;
        }
        Ok(offset as usize)
    }

    #[cold]
    fn out_of_bounds(&self, buffer: usize, site: SiteId, axis: usize, index: i64, extent: i64) -> Box<RunError> {
        let site = self.program.sites[site as usize];
        let buffer = self.program.func.buffers[buffer].name;
        Box::new(RunError::OutOfBounds { site, buffer, axis, index, extent })
    }

    #[cold]
    fn division_by_zero(&self, site: SiteId) -> Box<RunError> {
        Box::new(RunError::DivisionByZero { site: self.program.sites[site as usize] })
    }

    fn int(&self, expr: &Int) -> Result<i64> {
        Ok(match expr {
            Int::Constant(value) => *value,
            Int::Var(var) => self.ints[*var],
            Int::Load(access) => self.memory[access.buffer].int(self.offset(access)?),
            Int::Binary(binary) => return self.int_binary(binary),
            Int::And(pair) => i64::from(self.int(&pair.0)? != 0 && self.int(&pair.1)? != 0),
            Int::Or(pair) => i64::from(self.int(&pair.0)? != 0 || self.int(&pair.1)? != 0),
            Int::Not(value) => i64::from(self.int(value)? == 0),
            Int::Compare(parts) => {
                let (a, b) = (self.int(&parts.left)?, self.int(&parts.right)?);
                i64::from(if parts.unsigned { parts.op.holds(a as u64, b as u64) } else { parts.op.holds(a, b) })
            }
            Int::CompareFloat(parts) => {
                let (op, left, right) = &**parts;
                i64::from(op.holds(self.float(left)?, self.float(right)?))
            }
            Int::Select(parts) => {
                let (condition, then, otherwise) = &**parts;
                return self.int(if self.int(condition)? != 0 { then } else { otherwise });
            }
            Int::Wrap(element, value) => element.wrap(self.int(value)?),
            Int::Unary(apply, element, value) => element.wrap(apply(self.int(value)?)),
            Int::FromFloat(element, value) => int_of_float(self.float(value)?, *element),
            Int::FloatBits(from, to, value) => to.wrap(from.bits_of_float(self.float(value)?) as i64),
            Int::TestFloat(test, value) => i64::from(test(self.float(value)?)),
            Int::Checked(checked) => return self.checked(checked),
        })
    }

    #[inline]
    fn int_binary(&self, binary: &IntBinary) -> Result<i64> {
        let (a, b) = (self.int(&binary.left)?, self.int(&binary.right)?);
        let value = match binary.op {
            IntOp::Binary(op) => int_binary(op, binary.element, a, b),
            IntOp::Pow => int_pow(binary.element, a, b),
        };
        value.ok_or_else(|| self.division_by_zero(binary.site))
    }

    fn checked(&self, checked: &CheckedIndex) -> Result<i64> {
        let (index, extent) = (self.int(&checked.index)?, self.int(&checked.extent)?);
        match (0..extent).contains(&index) {
            true => Ok(index),
            false => Err(self.out_of_bounds(checked.buffer, checked.site, checked.axis, index, extent)),
        }
    }

    fn float(&self, expr: &Float) -> Result<f64> {
        Ok(match expr {
            Float::Constant(value) => *value,
            Float::Var(var) => self.floats[*var],
            Float::Load(access) => self.memory[access.buffer].float(self.offset(access)?),
            Float::Negate(value) => -self.float(value)?,
            Float::Binary(binary) => {
                let (a, b) = (self.float(&binary.left)?, self.float(&binary.right)?);
                float_binary(binary.op, binary.element, a, b)
            }
            Float::Select(parts) => {
                let (condition, then, otherwise) = &**parts;
                return self.float(if self.int(condition)? != 0 { then } else { otherwise });
            }
            Float::Round(element, value) => element.round(self.float(value)?),
            Float::FromInt(from, to, value) => float_of_int(self.int(value)?, *from, *to),
            Float::FromBits(element, bits) => element.float_of_bits(self.int(bits)? as u64),
            Float::Call1(apply, element, value) => element.round(apply(self.float(value)?)),
            Float::Call2(apply, element, pair) => element.round(apply(self.float(&pair.0)?, self.float(&pair.1)?)),
            Float::Ldexp(element, pair) => element.round(ldexp(self.float(&pair.0)?, self.int(&pair.1)?)),
            Float::NextAfter(element, pair) => next_after(*element, self.float(&pair.0)?, self.float(&pair.1)?),
        })
    }
}
