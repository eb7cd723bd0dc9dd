//! View sinking: moves views after the elementwise kernels that read them, so that the kernel that follows a reduction
//! runs over the reduction's shape and can become its epilogue.
//!
//! ```text
//! s: [2, 12] = kernel matmul(...)              s: [2, 12] = kernel matmul(...)
//! v: [2, 3, 4] = view(s)                 →     b': [2, 12] = view(b)
//! y: [2, 3, 4] = kernel add(v, b)              t: [2, 12] = kernel add(s, b')
//!                                              y: [2, 3, 4] = view(t)
//! ```
//!
//! Requires a kernel that computes each element of its outputs from the element of the view at the same indices. The
//! view and the reduction's result must have no other reader. Other inputs of the view's shape that are loaded at the
//! same indices are viewed, too. The rest of the computation must not use the indices of the view's dims that are
//! merged (above, 3 and 4). Guarantees that no index is divided. A kernel that can read the reduction's result directly
//! (each dim of the view is one or several whole dims of the result) is not changed.

use super::block::left;
use super::reshape::{Group, groups, inner, joined, nest_of, split_extents};
use super::{Context, Rewrite};
use crate::program::{Inputs, Instruction, Operation, Output, Outputs, Procedure, Program, Register};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::Dim;
use rx_ir::StructInfo;
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, map_stmt_shallow, substitute};
use rx_tir::{Block, Expr, Iter, IterKind, Stmt};
use std::sync::Arc;

/// Sinks the views of reduction results in the outermost block of a procedure.
pub(super) fn views(procedure: &mut Procedure, reads: &mut Vec<u32>, program: &mut Program, context: &Context<'_>) {
    let mut sinking = Sinking {
        reads,
        program,
        context,
        shapes: vec![None; procedure.types.len()],
        types: &mut procedure.types,
        sums: FxHashSet::default(),
        views: FxHashMap::default(),
        code: Vec::with_capacity(procedure.code.len() * 5 / 4),
    };
    for instruction in std::mem::take(&mut procedure.code) {
        sinking.instruction(instruction);
    }
    procedure.code = left(sinking.code);
}

/// A view instruction in the code that has been emitted.
struct View {
    /// The position of the view in the code.
    at: usize,
    /// The viewed tensor.
    from: Register,
    /// The shape of the viewed tensor, if a kernel of this block computes it.
    before: Option<Arc<[Dim]>>,
    /// The shape of the view.
    shape: Arc<[Dim]>,
}

/// The state of the pass: emits the instructions of a block one by one.
struct Sinking<'p> {
    reads: &'p mut Vec<u32>,
    program: &'p mut Program,
    context: &'p Context<'p>,
    /// By register number: the shape, if a kernel of this block computes the register.
    shapes: Vec<Option<Arc<[Dim]>>>,
    types: &'p mut Vec<StructInfo>,
    /// The outputs of reductions (kernels that are not injective) with one output, and of the kernels that were sunk.
    sums: FxHashSet<Register>,
    /// Views in `code`, by the register that they define.
    views: FxHashMap<Register, View>,
    /// The emitted instructions; `None` where a view became unused.
    code: Vec<Option<Instruction>>,
}

impl Sinking<'_> {
    /// Emits an instruction. A view of a view becomes a view of the original tensor. An injective kernel is emitted by
    /// [`Sinking::sink`] if that succeeds.
    fn instruction(&mut self, mut instruction: Instruction) {
        if let Operation::View { from, .. } = &mut instruction.operation
            && let Some(first) = self.views.get(from).map(|view| view.from)
        {
            self.reread(*from, first);
            *from = first;
        }
        match &instruction.operation {
            Operation::View { to, from, shape } => {
                let before = self.shapes[from.0 as usize].clone();
                let view = View { at: self.code.len(), from: *from, before, shape: shape.clone() };
                self.views.insert(*to, view);
            }
            Operation::Kernel { kernel, outputs, .. } => {
                if !self.program.kernel(*kernel).loops.properties().is_injective {
                    if let [output] = &outputs[..] {
                        self.sums.insert(output.to);
                    }
                } else if self.sink(&instruction).is_some() {
                    return;
                }
            }
            _ => {}
        }
        self.push(instruction);
    }

    fn push(&mut self, instruction: Instruction) {
        if let Operation::Kernel { outputs, .. } = &instruction.operation {
            outputs.iter().for_each(|output| self.shapes[output.to.0 as usize] = Some(output.shape.clone()));
        }
        self.code.push(Some(instruction));
    }

    /// Adds a register that is read once.
    fn fresh(&mut self, ty: StructInfo) -> Register {
        let register = Register(self.types.len() as u32);
        self.types.push(ty);
        self.reads.push(1);
        self.shapes.push(None);
        register
    }

    /// Emits a kernel that reads a view of a reduction's result as a kernel over the reduction's shape, followed by
    /// views of its outputs. Returns `None`, and emits nothing, where that is not possible or not needed.
    fn sink(&mut self, instruction: &Instruction) -> Option<()> {
        let Operation::Kernel { kernel, inputs, outputs, scalars } = &instruction.operation else { return None };
        let own = self.program.kernel(*kernel);
        let once = |register: &Register| self.reads[register.0 as usize] == 1;
        let (at, view) = inputs.iter().enumerate().find_map(|(at, register)| {
            let view = self.views.get(register).filter(|view| self.sums.contains(&view.from))?;
            (once(register) && once(&view.from) && own.follows(at)).then_some((at, view))
        })?;
        let (own, loops) = (own.clone(), own.loops.clone());
        let buffers: Vec<BufferId> = loops.buffer_params().collect();
        let (from, before, shape) = (view.from, view.before.clone()?, view.shape.clone());
        let found = groups(&before, &shape)?;
        // If every dim of the view is one or several whole dims of the result, the kernel can read the result without
        // the view.
        if found.iter().all(|group| group.to.len() == 1) {
            return None;
        }
        let rewrite =
            Rewrite::Sink { loops: loops.clone(), buffer: buffers[at], before: before.clone(), groups: found };
        let made = self.context.queries.rewrite(&rewrite)?;
        let gone = self.views.remove(&inputs[at])?.at;
        self.code[gone] = None;
        let mut read = Inputs::with_capacity(inputs.len());
        for (number, register) in inputs.iter().enumerate() {
            read.push(match made.changed.contains(&buffers[number]) {
                _ if number == at => from,
                false => *register,
                true => self.viewed(*register, &before, instruction),
            });
        }
        let mut sums = Outputs::with_capacity(outputs.len());
        let mut behind = Vec::with_capacity(outputs.len());
        for output in outputs {
            let to = self.fresh(StructInfo::tensor(before.clone(), Some(output.dtype)));
            self.sums.insert(to);
            sums.push(Output { to, shape: before.clone(), ..output.clone() });
            let operation = Operation::View { to: output.to, from: to, shape: output.shape.clone() };
            behind.push(Instruction { origin: instruction.origin, operation });
        }
        let kernel = self.program.add_kernel(own.with(made.loops.clone()));
        let operation = Operation::Kernel { kernel, inputs: read, outputs: sums, scalars: scalars.clone() };
        self.push(Instruction { origin: instruction.origin, operation });
        behind.into_iter().for_each(|view| self.instruction(view));
        Some(())
    }

    /// Moves one read from a view to the viewed tensor. Removes the view if that was its last read.
    fn reread(&mut self, view: Register, from: Register) {
        self.reads[view.0 as usize] -= 1;
        self.reads[from.0 as usize] += 1;
        if self.reads[view.0 as usize] == 0
            && let Some(gone) = self.views.remove(&view)
        {
            self.reads[from.0 as usize] -= 1;
            self.code[gone.at] = None;
        }
    }

    /// Returns a register with the elements of `register` under the given shape, for the kernel that replaces
    /// `instruction`: the tensor that `register` views, if this is known to have the shape, otherwise a new view.
    fn viewed(&mut self, register: Register, shape: &Arc<[Dim]>, instruction: &Instruction) -> Register {
        if let Some(view) = self.views.get(&register)
            && view.before.as_ref() == Some(shape)
        {
            let from = view.from;
            self.reread(register, from);
            return from;
        }
        let dtype = self.types.get(register.0 as usize).and_then(|ty| ty.as_tensor()?.dtype);
        let to = self.fresh(StructInfo::tensor(shape.clone(), dtype));
        let operation = Operation::View { to, from: register, shape: shape.clone() };
        self.code.push(Some(Instruction { origin: instruction.origin, operation }));
        to
    }
}

/// Rewrites an elementwise function to run over `before`, the shape of the tensor that `input` views. Returns the
/// function and the buffers whose shape changed to `before`. Returns `None` where a statement or an extent cannot be
/// rewritten, a changed buffer has strides or is also read at other indices, or a symbol would no longer be an extent
/// of a parameter.
pub(super) fn sunk(
    func: &PrimFunc,
    input: BufferId,
    before: &[Dim],
    groups: &[Group],
) -> Option<(PrimFunc, Vec<BufferId>)> {
    let view = func.buffer(input).shape.clone();
    let mut extents = vec![Expr::int(1); before.len()];
    for group in groups {
        let of_view = &view[group.to.clone()];
        match group.from.len() {
            1 => extents[group.from.start] = of_view.iter().cloned().reduce(|a, b| a * b)?,
            _ => {
                let cut = split_extents(of_view.first()?, of_view.first()?, inner(before, group)?)?;
                extents[group.from.clone()].clone_from_slice(&cut);
            }
        }
    }
    let (changed, elsewhere) = (vec![input], Vec::new());
    let mut sunk = Sunk { func: func.clone(), view, extents, groups, changed, elsewhere, failed: false };
    let body = sunk.statement(&func.body);
    sunk.func.body = body;
    for buffer in &sunk.changed {
        let buffer = &mut sunk.func.buffers[buffer.0 as usize];
        sunk.failed |= buffer.strides.is_some();
        buffer.shape.clone_from(&sunk.extents);
    }
    // A buffer that is also read at other indices would need both shapes. And every symbol must still be an extent of a
    // parameter, from which its value is known.
    let two_ways = sunk.changed.iter().any(|buffer| sunk.elsewhere.contains(buffer));
    let reported = sunk.func.symbols.iter().all(|symbol| sunk.func.is_parameter_extent(*symbol));
    (!sunk.failed && !two_ways && reported).then_some((sunk.func, sunk.changed))
}

/// The rewrite of [`sunk`], in progress.
struct Sunk<'g> {
    func: PrimFunc,
    /// The shape of the view.
    view: Vec<Expr>,
    /// The shape before the view.
    extents: Vec<Expr>,
    groups: &'g [Group],
    /// The buffers whose shape changes from the view's to the one before it.
    changed: Vec<BufferId>,
    /// The buffers of loads that are not moved to the new indices: the load has other indices than the store of its
    /// nest, or the buffer does not have the view's shape. The rewrite fails if one of these buffers is in `changed`.
    elsewhere: Vec<BufferId>,
    failed: bool,
}

impl Sunk<'_> {
    /// Rewrites a statement. Sets `failed` if it is not a nest that [`Sunk::nest`] accepts, or a sequence or block of
    /// such nests.
    fn statement(&mut self, stmt: &Stmt) -> Stmt {
        if let Some((loops, block)) = nest_of(stmt) {
            let loops: Vec<VarId> = loops.iter().map(|(var, _)| *var).collect();
            return self.nest(&loops, block).unwrap_or_else(|| {
                self.failed = true;
                stmt.clone()
            });
        }
        self.failed |= !matches!(stmt, Stmt::Seq(_) | Stmt::Block(_));
        map_stmt_shallow(stmt, &mut Expr::clone, &mut |inner| self.statement(inner))
    }

    /// Rewrites a nest that stores every element of a buffer of the view's shape once. The new loops run over the
    /// extents other than 1 of the shape before the view. Returns `None`, for example, where the block has a predicate
    /// or a reduction axis, and where [`Sunk::value`] does.
    fn nest(&mut self, loops: &[VarId], block: &Block) -> Option<Stmt> {
        let Stmt::Store { buffer, indices, value, site } = &block.body else { return None };
        let is_plain = |iter: &Iter| {
            iter.kind == IterKind::Spatial
                && iter.start.as_int() == Some(0)
                && matches!(iter.binding, Expr::Var { var, .. } if loops.contains(&var))
        };
        if block.init.is_some() || block.predicate.is_some() || !block.iters.iter().all(is_plain) {
            return None;
        }
        if self.func.buffer(*buffer).shape != self.view || loops.len() != block.iters.len() {
            return None;
        }
        let axes: Vec<Option<VarId>> = indices
            .iter()
            .map(|index| match index {
                Expr::Var { var, .. } => Some(*var),
                _ => None,
            })
            .collect();
        let whole = |(axis, extent): (&Option<VarId>, &Expr)| match axis {
            None => extent.as_int() == Some(1),
            Some(var) => block.iters.iter().any(|iter| iter.var == *var && iter.extent == *extent),
        };
        if !axes.iter().zip(&self.view).all(whole) || axes.iter().flatten().count() != block.iters.len() {
            return None;
        }
        let of = block.iters.first().map(|iter| *self.func.var(iter.var))?;
        let (mut new_loops, mut iters, mut place) = (Vec::new(), Vec::new(), Vec::new());
        for extent in &self.extents.clone() {
            if extent.as_int() == Some(1) {
                place.push(Expr::Int { value: 0, dtype: of.dtype });
                continue;
            }
            let (outer, axis) = (self.func.add_var(of.name, of.dtype), self.func.add_var(of.name, of.dtype));
            let start = Expr::Int { value: 0, dtype: of.dtype };
            let binding = self.func.var_expr(outer);
            new_loops.push((outer, extent.clone()));
            iters.push(Iter { var: axis, kind: IterKind::Spatial, start, extent: extent.clone(), binding });
            place.push(self.func.var_expr(axis));
        }
        let value = self.value(value, indices, (&axes, &place))?;
        let known = self.changed.contains(buffer);
        if !known {
            self.changed.push(*buffer);
        }
        let body = Stmt::Store { buffer: *buffer, indices: place, value, site: *site };
        let block = Block { iters, body, ..block.clone() };
        let nest = Stmt::Block(Box::new(block));
        Some(new_loops.into_iter().rev().fold(nest, |body, (var, extent)| Stmt::for_loop(var, extent, body)))
    }

    /// Rewrites a stored value for the new loops. Loads at the store's old indices `at` from buffers of the view's
    /// shape become loads at the new indices `place`. Elsewhere, an old axis that is one or several dims of the shape
    /// before the view is composed of the new axes. Returns `None` where the value then still uses an old axis.
    fn value(&mut self, value: &Expr, at: &[Expr], (axes, place): (&[Option<VarId>], &[Expr])) -> Option<Expr> {
        let mut values: FxHashMap<VarId, Expr> = FxHashMap::default();
        for group in self.groups.iter().filter(|group| group.to.len() == 1) {
            let splits = group.from.clone().map(|dim| (place[dim].clone(), self.extents[dim].clone()));
            if let (Some(var), Some(value)) = (axes[group.to.start], joined(&splits.collect::<Vec<_>>())) {
                values.insert(var, value);
            }
        }
        let (mut changed, mut elsewhere) = (Vec::new(), Vec::new());
        let read = map_expr(value, &mut |part| match part {
            Expr::Load { buffer, indices, dtype } if self.func.buffer(buffer).shape == self.view && indices == at => {
                changed.push(buffer);
                Expr::Load { buffer, indices: place.to_vec(), dtype }
            }
            other => {
                if let Expr::Load { buffer, .. } = &other {
                    elsewhere.push(*buffer);
                }
                other
            }
        });
        self.elsewhere.extend(elsewhere);
        for buffer in changed {
            if !self.changed.contains(&buffer) {
                self.changed.push(buffer);
            }
        }
        let here = substitute(&read, &|var| values.get(&var).cloned());
        let left = axes.iter().flatten().any(|var| here.uses(*var));
        (!left).then_some(here)
    }
}
