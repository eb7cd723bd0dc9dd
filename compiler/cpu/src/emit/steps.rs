//! Emission of a function's steps: loop nests, calls for matrix products and windowed sums, and loops around them.

use super::{BindingValue, Emitted, Emitter};
use crate::error::CompileError;
use crate::prepare::PreparedStep;
use crate::runtime::Routine;
use crate::{product, window};
use cranelift_codegen::ir::{
    BlockArg, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Value, condcodes::IntCC, types,
};
use rx_base::DType;
use rx_loops::{Gemm, Matrix, WindowedSum};
use rx_tir::{BufferId, Expr};

impl Emitter<'_> {
    /// Emits the steps in order.
    pub(crate) fn steps(&mut self, steps: &[PreparedStep]) -> Emitted<()> {
        for step in steps {
            match step {
                PreparedStep::Nest(body) => self.stmt(body)?,
                PreparedStep::Gemm(gemm) => self.product(gemm)?,
                PreparedStep::WindowedSum(window) => self.window(window)?,
                PreparedStep::Loop { var, extent, body } => {
                    let zero = self.builder.ins().iconst(types::I64, 0);
                    let end = self.index(extent)?;
                    let [round, exit] = [(); 2].map(|()| self.builder.create_block());
                    let at = self.builder.append_block_param(round, types::I64);
                    let any = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, end, 0);
                    self.builder.ins().brif(any, round, &[BlockArg::from(zero)], exit, &[]);
                    self.builder.switch_to_block(round);
                    self.depth += 1;
                    self.bind(*var, BindingValue::Index(at));
                    self.steps(body)?;
                    self.depth -= 1;
                    let next = self.builder.ins().iadd_imm_s(at, 1);
                    let more = self.builder.ins().icmp(IntCC::SignedLessThan, next, end);
                    self.builder.ins().brif(more, round, &[BlockArg::from(next)], exit, &[]);
                    self.builder.seal_block(round);
                    self.begin(exit);
                }
            }
        }
        Ok(())
    }

    /// Emits a call for a matrix product. Its arguments are written to the stack, as a [`product::Product`] and its
    /// axes.
    fn product(&mut self, gemm: &Gemm) -> Emitted<()> {
        let routine = product::routine(gemm.dtype).ok_or(CompileError::Dtype(gemm.dtype))?;
        let mut words = Vec::with_capacity(product::WORDS + 4 * gemm.batch.len());
        for matrix in [&gemm.a, &gemm.b, &gemm.c] {
            words.push(self.first_element(matrix, gemm.dtype.bytes())?);
            words.push(self.index(&matrix.row)?);
            words.push(self.index(&matrix.column)?);
        }
        for extent in [&gemm.m, &gemm.n, &gemm.k] {
            words.push(self.index(extent)?);
        }
        for constant in [i64::from(gemm.accumulate), gemm.batch.len() as i64] {
            words.push(self.builder.ins().iconst(types::I64, constant));
        }
        for axis in &gemm.batch {
            for part in [&axis.extent, &axis.a, &axis.b, &axis.c] {
                words.push(self.index(part)?);
            }
        }
        self.call_with(routine, words)
    }

    /// Emits a call for windowed sums. Its arguments are written to the stack, as a [`window::Head`] and the words that
    /// follow it.
    fn window(&mut self, of: &WindowedSum) -> Emitted<()> {
        let mut words = Vec::with_capacity(window::WORDS);
        for place in [&of.a, &of.b, &of.c] {
            words.push(self.element_at(place.buffer, &place.offset, DType::FLOAT32.bytes())?);
        }
        let counts = [of.axes.len(), of.taps.len(), of.conditions.len()].map(|count| count as i64);
        for constant in [i64::from(of.accumulate)].into_iter().chain(counts) {
            words.push(self.builder.ins().iconst(types::I64, constant));
        }
        for axis in of.axes.iter().chain(&of.taps) {
            for part in [&axis.extent, &axis.a, &axis.b, &axis.c].into_iter().chain(&axis.conditions) {
                words.push(self.index(part)?);
            }
        }
        for condition in &of.conditions {
            words.push(self.index(condition)?);
        }
        self.call_with(window::routine(), words)
    }

    /// Emits a call of a routine with the address of these 8-byte words, which are written to the stack.
    fn call_with(&mut self, routine: Routine, words: Vec<Value>) -> Emitted<()> {
        let size = u32::try_from(words.len() * 8).map_err(|_| CompileError::Unsupported("too many axes".into()))?;
        let slot = self.builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3));
        let pointer = self.builder.ins().stack_addr(types::I64, slot, 0);
        for (at, word) in words.into_iter().enumerate() {
            self.builder.ins().store(MemFlagsData::trusted(), word, pointer, at as i32 * 8);
        }
        let reference = self.routine(routine, &[types::I64], types::I64)?;
        self.builder.ins().call(reference, &[pointer]);
        Ok(())
    }

    fn first_element(&mut self, matrix: &Matrix, bytes: u64) -> Emitted<Value> {
        self.element_at(matrix.buffer, &matrix.offset, bytes)
    }

    /// Returns the address of an element, given its offset in elements.
    fn element_at(&mut self, buffer: BufferId, offset: &Expr, bytes: u64) -> Emitted<Value> {
        let offset = self.index(offset)?;
        let offset = self.builder.ins().imul_imm_s(offset, bytes as i64);
        let base = self.bases[buffer.0 as usize];
        Ok(self.builder.ins().iadd(base, offset))
    }
}
