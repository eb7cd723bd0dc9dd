//! Finds the tensors of a procedure whose layout in memory may change: tensors that only rewritable kernels write and
//! read, and weights.

use super::reading::Reading;
use crate::program::{Instruction, KernelId, Operation, Procedure, Program, Register, Scalar};
use rx_base::Dim;
use rx_tir::{BufferId, PrimFunc};
use std::sync::Arc;

/// A call of a kernel, identified by its position among the calls of its procedure, branches included.
pub(super) struct Use {
    /// The called kernel.
    pub(super) kernel: KernelId,
    /// The register that is passed for each buffer parameter, inputs first.
    pub(super) buffers: Vec<(Register, BufferId)>,
}

impl Use {
    /// Returns the buffers that a register is passed for.
    pub(super) fn buffers_of(&self, register: Register) -> impl Iterator<Item = BufferId> + '_ {
        self.buffers.iter().filter(move |(own, _)| *own == register).map(|(_, buffer)| *buffer)
    }

    /// Returns the register that is passed for a buffer.
    pub(super) fn register_of(&self, buffer: BufferId) -> Option<Register> {
        self.buffers.iter().find(|(_, own)| *own == buffer).map(|(register, _)| *register)
    }
}

/// The analysis of a procedure's registers.
pub(super) struct Registers {
    /// The procedure's kernel calls, in order.
    pub(super) uses: Vec<Use>,
    /// By register: whether a kernel writes it, and nothing but rewritable kernels reads or writes it.
    inner: Vec<bool>,
    /// By register: whether its value is the same in every call, mainly for weights, constants and memoized results of
    /// them. This is analyzed only in the entry procedure, outside branches; elsewhere it is [`Steady::No`].
    /// Also [`Steady::No`] if a kernel that cannot be rewritten uses the register, or if the kernels that read it do
    /// not all declare the same constant shape.
    steady: Vec<Steady>,
    /// By register: its shape, where it is known. For the output of a kernel it is the output's shape. For a steady
    /// register it is the constant shape that all kernels that read the register declare.
    shapes: Vec<Option<Arc<[Dim]>>>,
}

/// Whether a register's value is the same in every call of its procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Steady {
    /// It may change, or the layout of its tensor must stay.
    No,
    /// Unknown, because the number of input parameters was not declared. It counts as constant where it is used as a
    /// weight.
    Maybe,
    /// It is the same.
    Yes,
}

impl Registers {
    /// Analyzes the registers of `procedure`. `readings` are the analyses of the program's kernels. The parameters of
    /// the entry function may be weights.
    pub(super) fn of(
        procedure: &Procedure,
        program: &Program,
        readings: &[Option<Reading>],
        is_entry: bool,
    ) -> Registers {
        let count = procedure.types.len();
        let mut found = Found {
            program,
            readings,
            uses: Vec::new(),
            made: vec![false; count],
            pinned: vec![false; count],
            fixed: vec![false; count],
            steady: vec![Steady::No; count],
            shapes: vec![None; count],
        };
        if is_entry {
            for (at, steady) in found.steady.iter_mut().enumerate().take(procedure.params.len()) {
                *steady = match procedure.num_input {
                    None => Steady::Maybe,
                    Some(inputs) if i64::try_from(at).is_ok_and(|at| at >= inputs) => Steady::Yes,
                    Some(_) => Steady::No,
                };
            }
        }
        found.pin(procedure.result);
        found.code(&procedure.code, is_entry);
        let Found { uses, made, pinned, fixed, steady, shapes, .. } = found;
        let inner = (0..count).map(|at| made[at] && !pinned[at] && !fixed[at]).collect();
        let steady = (0..count).map(|at| if fixed[at] { Steady::No } else { steady[at] }).collect();
        Registers { uses, inner, steady, shapes }
    }

    /// Whether the register is an intermediate tensor whose layout may change.
    pub(super) fn is_inner(&self, register: Register) -> bool {
        self.inner.get(register.0 as usize).copied().unwrap_or(false)
    }

    /// Returns whether the register's value is the same in every call; [`Steady::No`] also if its layout must stay.
    pub(super) fn steady(&self, register: Register) -> Steady {
        self.steady.get(register.0 as usize).copied().unwrap_or(Steady::No)
    }

    /// Returns the register's shape, where it is known.
    pub(super) fn shape(&self, register: Register) -> Option<&[Dim]> {
        self.shapes.get(register.0 as usize)?.as_deref()
    }
}

/// The analysis in progress. All vectors except `uses` are indexed by register number.
struct Found<'p> {
    program: &'p Program,
    readings: &'p [Option<Reading>],
    uses: Vec<Use>,
    /// Written by a kernel.
    made: Vec<bool>,
    /// Read other than through a buffer of a kernel call: by another instruction, as a scalar argument, as a condition
    /// or as a result.
    pinned: Vec<bool>,
    /// Read or written by a kernel that cannot be rewritten.
    fixed: Vec<bool>,
    steady: Vec<Steady>,
    shapes: Vec<Option<Arc<[Dim]>>>,
}

impl Found<'_> {
    /// Records a read other than through a buffer of a kernel call.
    fn pin(&mut self, register: Register) {
        self.pinned[register.0 as usize] = true;
    }

    /// Returns the least steady state of some registers.
    fn steady_of(&self, registers: &[Register]) -> Steady {
        registers.iter().map(|one| self.steady[one.0 as usize]).min().unwrap_or(Steady::Yes)
    }

    /// Analyzes the instructions of a block. `is_outermost` is whether it is the outermost block of the entry
    /// procedure: only there can a result be steady.
    fn code(&mut self, code: &[Instruction], is_outermost: bool) {
        for instruction in code {
            match &instruction.operation {
                Operation::Kernel { kernel, inputs, outputs, scalars } => {
                    let registers = inputs.iter().copied().chain(outputs.iter().map(|output| output.to));
                    let func = &self.program.kernel(*kernel).loops;
                    let buffers: Vec<_> = registers.zip(func.buffer_params()).collect();
                    for output in outputs {
                        self.made[output.to.0 as usize] = true;
                        self.shapes[output.to.0 as usize] = Some(output.shape.clone());
                    }
                    self.read_shapes(inputs, func);
                    if self.readings.get(kernel.0 as usize).is_none_or(Option::is_none) {
                        buffers.iter().for_each(|(register, _)| self.fixed[register.0 as usize] = true);
                    }
                    for scalar in scalars {
                        if let Scalar::Register(register) = scalar {
                            self.pin(*register);
                        }
                    }
                    self.uses.push(Use { kernel: *kernel, buffers });
                }
                Operation::If { arms, otherwise, .. } => {
                    for (condition, register, branch) in arms {
                        self.code(condition, false);
                        self.pin(*register);
                        self.code(&branch.code, false);
                        self.pin(branch.result);
                    }
                    self.code(&otherwise.code, false);
                    self.pin(otherwise.result);
                }
                operation => {
                    operation.for_each_read(&mut |register| self.pin(register));
                    if is_outermost {
                        self.keeps(operation);
                    }
                }
            }
        }
    }

    /// Records the shapes of the inputs that may be steady, as the kernel declares them. An input becomes
    /// [`Steady::No`] if its shape is symbolic, or differs from the one that an earlier kernel declares.
    fn read_shapes(&mut self, inputs: &[Register], func: &PrimFunc) {
        for (register, buffer) in inputs.iter().zip(func.buffer_params()) {
            let at = register.0 as usize;
            if self.steady[at] == Steady::No || self.made[at] {
                continue;
            }
            let extents = func.buffer(buffer).shape.iter().map(|extent| extent.as_int().map(Dim::constant));
            let extents: Option<Arc<[Dim]>> = extents.collect();
            match &self.shapes[at] {
                None => self.shapes[at] = extents.clone(),
                Some(known) if Some(known) == extents.as_ref() => {}
                Some(_) => self.steady[at] = Steady::No,
            }
            if extents.is_none() {
                self.steady[at] = Steady::No;
            }
        }
    }

    /// Records whether the result of an operation is the same in every call.
    fn keeps(&mut self, operation: &Operation) {
        let (to, steady) = match operation {
            Operation::Constant { to, .. } => (*to, Steady::Yes),
            Operation::Copy { to, from } | Operation::Field { to, from, .. } => (*to, self.steady_of(&[*from])),
            Operation::Tuple { to, fields } => (*to, self.steady_of(fields)),
            Operation::Call { to, procedure, arguments } if self.program.procedure(*procedure).once => {
                (*to, self.steady_of(arguments))
            }
            _ => return,
        };
        self.steady[to.0 as usize] = steady;
    }
}
