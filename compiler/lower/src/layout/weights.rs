//! Transposes weights: adds a call of a memoized procedure for each weight that needs another layout.
//!
//! ```text
//! z = kernel conv2d(y, w)        →        w' = call w_in_order(w)        # memoized
//!                                         z = kernel conv2d'(y, w')
//! ```

use super::Order;
use super::registers::Registers;
use crate::loops::Loops;
use crate::program::{Instruction, Kernel, Operation, Output, Procedure, ProcedureId, Program, Register};
use rustc_hash::FxHashMap;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_ir::StructInfo;
use rx_tir::KernelBuilder;
use rx_tir::permute::reordered;
use smallvec::smallvec;

/// Adds a transposed copy of each weight (a register in `orders` that is no intermediate tensor). Returns the register
/// of each copy. The call that makes the copy is inserted after the definition of the weight; its procedure is memoized
/// ([`Procedure::once`]).
pub(super) fn copies(
    procedure: &mut Procedure,
    registers: &Registers,
    orders: &FxHashMap<Register, Order>,
    program: &mut Program,
) -> FxHashMap<Register, Register> {
    let mut wanted: Vec<(Register, &Order)> =
        orders.iter().filter(|(register, _)| !registers.is_inner(**register)).map(|(a, b)| (*a, b)).collect();
    wanted.sort_unstable();
    let mut copies = FxHashMap::default();
    for (register, order) in wanted {
        let Some((shape, dtype)) = tensor(register, registers, program) else { continue };
        let ty = StructInfo::tensor(reordered(&shape, order), Some(dtype));
        let to = procedure.add_register(ty.clone());
        let called = putting(procedure, register, (shape, dtype), (order, ty), program);
        let operation = Operation::Call { to, procedure: called, arguments: vec![register] };
        let behind = defined_at(procedure, register);
        procedure.code.insert(behind, Instruction { origin: None, operation });
        copies.insert(register, to);
    }
    copies
}

/// Returns the shape and dtype of a register, as the kernels read it.
fn tensor(register: Register, registers: &Registers, program: &Program) -> Option<(Vec<Dim>, DType)> {
    let one = registers.uses.iter().find_map(|one| Some((one.kernel, one.buffers_of(register).next()?)));
    let (kernel, buffer) = one?;
    Some((registers.shape(register)?.to_vec(), program.kernel(kernel).loops.buffer(buffer).dtype))
}

/// Returns the position after the instruction that defines a register; 0 for a parameter.
fn defined_at(procedure: &Procedure, register: Register) -> usize {
    let makes = |instruction: &Instruction| match &instruction.operation {
        Operation::Constant { to, .. }
        | Operation::Copy { to, .. }
        | Operation::Field { to, .. }
        | Operation::Call { to, .. } => *to == register,
        _ => false,
    };
    procedure.code.iter().position(makes).map_or(0, |at| at + 1)
}

/// Adds the procedure that transposes a tensor to `order`, and returns its id.
fn putting(
    of: &Procedure,
    register: Register,
    (dims, dtype): (Vec<Dim>, DType),
    (order, ty): (&Order, StructInfo),
    program: &mut Program,
) -> ProcedureId {
    let param = of.params.get(register.0 as usize).map_or_else(|| name("constant"), |(param, _)| *param);
    let own = name(&format!("{param}_in_order"));
    let mut builder = KernelBuilder::new(name("in_order"));
    let from = builder.param(&param, &dims, dtype);
    let to = builder.param("out", &reordered(&dims, order), dtype);
    builder.compute(to, |builder, axes| {
        let mut indices = axes.to_vec();
        for (axis, at) in axes.iter().zip(order) {
            indices[*at] = axis.clone();
        }
        builder.load(from, &indices)
    });
    let mut func = rx_loops::simplify(&builder.finish());
    func.buffers[to.0 as usize].order = Some(order.clone());
    let kernel = program.add_kernel(Kernel::new(Loops::new(func), 1, None));
    let output = Output { to: Register(1), shape: reordered(&dims, order).into(), dtype, storage: None };
    let operation =
        Operation::Kernel { kernel, inputs: smallvec![Register(0)], outputs: smallvec![output], scalars: Vec::new() };
    let taken = StructInfo::tensor(dims, Some(dtype));
    program.procedures.push(Procedure {
        name: own,
        params: vec![(param, taken.clone())],
        once: true,
        types: vec![taken, ty.clone()],
        ret: ty,
        code: vec![Instruction { origin: None, operation }],
        result: Register(1),
        ..Procedure::empty()
    });
    ProcedureId(program.procedures.len() as u32 - 1)
}
