//! Epilogue fusion: the elementwise statements after a reduction or product are computed in its kernel, from the
//! element in a register.
//!
//! ```text
//! for m, n, k: C[m, n] += A[m, k] * B[k, n]        // the front, which a rule schedules
//! for i, j:    D[i, j]  = C[i, j] + bias[j]
//! for i, j:    E[i, j]  = max(D[i, j], 0)
//! →
//! const float C_value = sum;
//! const float D_value = C_value + bias[n];
//! E[m * N + n] = max(D_value, 0);                  // C and D are stored only if they are used elsewhere
//! ```
//!
//! Requires: a front that writes every element of its buffer exactly once; statements that read of each earlier result
//! only the element that the thread has in a register, and write no buffer that the kernel reads or writes otherwise.
//! The element that a statement writes may have other indices, as in a transpose. Guarantees: each value is rounded to
//! its buffer's dtype, as if it were stored. The rules `gemm`, `gemv`, `attention` and `window` use this module.
//!
//! Reference: TVM's primitive `reverse_compute_inline` (`src/s_tir/schedule/primitive/compute_inline.cc`).

use super::{Task, buffers_of, uses};
use crate::printer::{Kernel, types};
use rustc_hash::FxHashMap;
use rx_base::Dim;
use rx_loops::Affine;
use rx_loops::scope::Scope;
use rx_tir::rewrite::substitute;
use rx_tir::{BinaryOp, BufferId, Expr, IterKind, PrimFunc, Stmt, VarId};

/// A front and the elementwise statements that are fused into its kernel.
#[derive(Clone, Debug)]
pub(crate) struct Epilogue {
    /// The number of statements of the task that the kernel replaces: those of the front and the fused ones.
    pub(crate) taken: usize,
    /// The store of the front's result, then those of the fused statements, in order.
    steps: Vec<Step>,
    /// See [`Front::condition`].
    condition: Option<Expr>,
    /// See [`Front::within`].
    pub(crate) within: Vec<BufferId>,
}

/// The statements before an epilogue, which compute the element that it reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    /// The number of statements.
    pub(crate) statements: usize,
    /// Intermediate buffers of these statements, which never reach memory. Empty for the rule `attention`, which has a
    /// separate list.
    pub(crate) within: Vec<BufferId>,
    /// The condition under which an iteration is an element of the result; `None` if all are known to be. The phases of
    /// a strided transposed convolution may have more iterations than elements.
    pub(crate) condition: Option<Expr>,
}

impl Front {
    /// Returns a front of one statement without intermediate buffers or a condition: every iteration of its loops over
    /// the result is an element of the result.
    pub(crate) fn plain() -> Front {
        Front { statements: 1, ..Front::default() }
    }
}

/// The store `buffer[indices] = value`, over the loops of the front.
#[derive(Clone, Debug)]
struct Step {
    /// The buffer.
    buffer: BufferId,
    /// The indices of the element.
    indices: Vec<Expr>,
    /// The value, which reads elements of earlier steps from registers. `None` for the first step: the kernel computes
    /// it.
    value: Option<Expr>,
    /// Whether the buffer is used outside of the kernel, so that the element must be stored.
    is_stored: bool,
    /// Whether a later step reads the element.
    is_held: bool,
    /// The address of the element, if it is affine and [`Epilogue::locate`] has computed it.
    at: Option<Affine>,
}

/// Registers that collect neighbouring elements of one thread for vector stores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packs {
    /// The number of elements per vector.
    width: i64,
    /// The CUDA text of the current element's position in its vector.
    which: String,
    /// By step: the name of its vector register, if it is stored by vectors.
    names: Vec<Option<String>>,
}

/// Whether a loop is known to split into whole groups of `count` values that are contiguous in memory, where each group
/// begins at an address that is a multiple of `count` elements. For example, with an extent of 32 for `x`, the address
/// `64 * y + x` is in chunks of 2, 4, 8, 16 and 32 along `x`; `33 * y + x` is in chunks of 1 only.
pub(crate) fn is_in_chunks(at: &Affine, var: VarId, extent: &Expr, count: i64) -> bool {
    let even = |dim: &Dim| {
        dim.constant_part() % count == 0 && dim.terms().iter().all(|(_, coefficient)| coefficient % count == 0)
    };
    at.stride(var).as_constant() == Some(1)
        && extent.as_int().is_some_and(|extent| extent % count == 0)
        && even(&at.base)
        && at.strides.iter().all(|(other, stride)| *other == var || even(stride))
}

impl Epilogue {
    /// Collects the elementwise statements of the task that follow the front, up to the first that cannot be fused, or
    /// up to and including one that writes only some elements of its buffer. The loops of the front write
    /// `buffer[indices]`: `elements` different elements, each once.
    pub(crate) fn of(
        task: &Task<'_>,
        func: &PrimFunc,
        front: Front,
        (buffer, indices): (BufferId, &[Expr]),
        elements: &Dim,
    ) -> Epilogue {
        let mut scope = Scope::new(func);
        let first = Step { buffer, indices: indices.to_vec(), value: None, is_stored: true, is_held: false, at: None };
        let Front { statements, within, condition } = front;
        let mut epilogue = Epilogue { taken: statements, steps: vec![first], condition, within };
        // If the front writes only some elements of the buffer, no statement is fused: it could read the others.
        let is_whole = |scope: &mut Scope, buffer: BufferId| size(scope, func, buffer) == *elements;
        if is_whole(&mut scope, buffer) {
            while let Some(step) = epilogue.next(task, func, &mut scope) {
                let may_go_on = is_whole(&mut scope, step.buffer);
                epilogue.steps.push(step);
                epilogue.taken += 1;
                if !may_go_on {
                    break;
                }
            }
        }
        for at in 0..epilogue.steps.len() {
            let (before, behind) = epilogue.steps.split_at_mut(at + 1);
            let step = &mut before[at];
            let reads = |later: &Step| later.value.as_ref().is_some_and(|value| reads(value, step.buffer));
            step.is_held = behind.iter().any(reads);
            step.is_stored = !task.is_temporary(step.buffer) || task.is_used_after(epilogue.taken, step.buffer);
        }
        epilogue
    }

    /// Matches the next statement as a step. Returns `None` if it cannot be fused.
    fn next(&self, task: &Task<'_>, func: &PrimFunc, scope: &mut Scope) -> Option<Step> {
        let nest = task.nest(self.taken).ok()?;
        let Stmt::Store { buffer, indices, value, .. } = &nest.body else { return None };
        if nest.predicate.is_some() || nest.init.is_some() {
            return None;
        }
        let knows = |buffer: BufferId| self.steps.iter().any(|step| step.buffer == buffer);
        // Blocks run in any order, so a step must not write a buffer that another block may still read.
        if task.statements.iter().take(self.taken).any(|before| uses(&before.stmt, *buffer)) || reads(value, *buffer) {
            return None;
        }
        let element = first_load(value, &knows)?;
        let values = self.values_of(element, func)?;
        for inner in &nest.loops {
            let (_, axis) = values.get(&inner.var)?;
            if scope.dim(&inner.extent) != scope.dim(&func.buffer(element.0).shape[*axis]) {
                return None;
            }
        }
        let declared = nest.loops.iter().all(|inner| inner.kind == IterKind::Spatial);
        let is_index =
            |var: VarId| indices.iter().any(|index| matches!(index, Expr::Var { var: own, .. } if *own == var));
        if !declared && !nest.loops.iter().all(|inner| is_index(inner.var)) {
            return None;
        }
        let here = |expr: &Expr| substitute(expr, &|var| values.get(&var).map(|(value, _)| value.clone()));
        let (indices, value) = (indices.iter().map(here).collect(), here(value));
        let is_element = value.all(&|part| match part {
            Expr::Load { buffer, indices, .. } => {
                self.steps.iter().find(|step| step.buffer == *buffer).is_none_or(|step| step.indices == *indices)
            }
            _ => true,
        });
        is_element.then_some(Step {
            buffer: *buffer,
            indices,
            value: Some(value),
            is_stored: true,
            is_held: false,
            at: None,
        })
    }

    /// Matches a load of an earlier step's element. Returns, for each loop variable that is an index of the load, its
    /// value over the loops of the front, and the position of the index. For example, if a step stores `C[m, n]`, the
    /// load `C[i, j]` gives `i = (m, 0)` and `j = (n, 1)`.
    fn values_of(
        &self,
        (buffer, indices): (BufferId, &[Expr]),
        func: &PrimFunc,
    ) -> Option<FxHashMap<VarId, (Expr, usize)>> {
        let step = self.steps.iter().find(|step| step.buffer == buffer)?;
        let mut values: FxHashMap<VarId, (Expr, usize)> = FxHashMap::default();
        for (axis, (index, value)) in indices.iter().zip(&step.indices).enumerate() {
            match index {
                Expr::Var { var, .. } if !is_scalar(func, *var) => {
                    let value = value.clone().cast(func.var(*var).dtype);
                    if values.insert(*var, (value, axis)).is_some() {
                        return None;
                    }
                }
                index if index == value => {}
                _ => return None,
            }
        }
        Some(values)
    }

    /// Computes the addresses of the stored steps.
    pub(crate) fn locate(&mut self, affine: &mut dyn FnMut(BufferId, &[Expr]) -> Option<Affine>) {
        for step in self.steps.iter_mut().filter(|step| step.is_stored) {
            step.at = affine(step.buffer, &step.indices);
        }
    }

    /// Estimates the instructions of a thread for one element, without those of the stores. For example, `C + bias[n]`
    /// takes 4: the address, load and conversion of the bias, and the sum.
    pub(crate) fn instructions(&self) -> i64 {
        let mut count = 0;
        for value in self.steps.iter().filter_map(|step| step.value.as_ref()) {
            value.walk(&mut |part| {
                count += match part {
                    // The elements of steps are in registers.
                    Expr::Load { buffer, .. } if self.steps.iter().any(|step| step.buffer == *buffer) => 0,
                    Expr::Load { .. } => 3,
                    Expr::Call { .. } | Expr::Binary { op: BinaryOp::Div, .. } => 12,
                    Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } | Expr::Checked { .. } => 0,
                    _ => 1,
                };
            });
        }
        count
    }

    /// Declares vector registers of `width` elements along the loop `last`, for the stored steps that are in chunks of
    /// `width` elements along it ([`is_in_chunks`]). `which` is the CUDA text of the current element's position.
    /// Returns `None` if there are no such steps, if `last` is `None`, or if the front's condition depends on that
    /// loop.
    pub(crate) fn packs(
        &self,
        kernel: &mut Kernel<'_>,
        func: &PrimFunc,
        last: Option<(VarId, &Expr)>,
        (width, which): (i64, &str),
    ) -> Option<Packs> {
        let (var, extent) = last?;
        if self.condition.as_ref().is_some_and(|condition| condition.uses(var)) {
            return None;
        }
        let mut names = Vec::new();
        for step in &self.steps {
            let together = step.at.as_ref().is_some_and(|at| is_in_chunks(at, var, extent, width));
            let storage = types::storage(func.buffer(step.buffer).dtype).filter(|_| together);
            names.push(storage.map(|storage| {
                kernel.need("rx_pack");
                let name = kernel.fresh_name(&format!("{}_pack", func.buffer(step.buffer).name));
                kernel.line(&format!("rx_pack<{storage}, {width}> {name};"));
                name
            }));
        }
        let found = names.iter().any(Option::is_some);
        found.then(|| Packs { width, which: which.to_owned(), names })
    }

    /// Emits a vector store for each step that has a vector register in `packs`. [`Epilogue::print`] emits the stores
    /// of the other steps. At this position of the CUDA text, the loop variables must have their values for the
    /// vector's first element.
    pub(crate) fn store(&self, kernel: &mut Kernel<'_>, func: &PrimFunc, packs: &Packs) -> Result<(), String> {
        let is_open = self.open(kernel)?;
        for (step, name) in self.steps.iter().zip(&packs.names) {
            let (Some(name), Some(storage)) = (name, types::storage(func.buffer(step.buffer).dtype)) else { continue };
            let place = kernel.place(step.buffer, &step.indices)?;
            kernel.line(&format!("*(rx_pack<{storage}, {}>*)&{place} = {name};", packs.width));
        }
        if is_open {
            kernel.close();
        }
        Ok(())
    }

    /// Opens `if (condition) {` if the front has a condition. Returns whether it did.
    fn open(&self, kernel: &mut Kernel<'_>) -> Result<bool, String> {
        if let Some(condition) = &self.condition {
            let condition = kernel.operand(condition, 0)?;
            kernel.open(&format!("if ({condition}) {{"));
        }
        Ok(self.condition.is_some())
    }

    /// Emits all steps for one element, whose value is the CUDA text `element`. Steps that have a vector register are
    /// written to it; [`Epilogue::store`] stores them.
    pub(crate) fn print(
        &self,
        kernel: &mut Kernel<'_>,
        func: &PrimFunc,
        element: &str,
        packs: Option<&Packs>,
    ) -> Result<(), String> {
        let is_open = self.open(kernel)?;
        for (at, step) in self.steps.iter().enumerate() {
            let pack = packs.and_then(|packs| Some(format!("{}.at[{}]", packs.names[at].as_ref()?, packs.which)));
            let dtype = func.buffer(step.buffer).dtype;
            let value = match &step.value {
                None => types::rounded(dtype, element),
                Some(value) if step.is_held => kernel.assigned(value, dtype)?,
                Some(value) => {
                    let place = match pack {
                        Some(pack) => pack,
                        None => kernel.place(step.buffer, &step.indices)?,
                    };
                    let value = kernel.stored(value, dtype)?;
                    kernel.line(&format!("{place} = {value};"));
                    continue;
                }
            };
            let ctype = kernel.ctype(dtype)?;
            let name = kernel.fresh_name(&format!("{}_value", func.buffer(step.buffer).name));
            kernel.line(&format!("const {ctype} {name} = {value};"));
            kernel.hold(step.buffer, &name);
            if step.is_stored {
                let place = match pack {
                    Some(pack) => pack,
                    None => kernel.place(step.buffer, &step.indices)?,
                };
                kernel.line(&format!("{place} = {};", types::to_storage(dtype, &name)));
            }
        }
        if is_open {
            kernel.close();
        }
        Ok(())
    }

    /// Returns the buffers that never reach memory: those of [`Front::within`] and of steps that are not stored.
    pub(crate) fn kept(&self) -> Vec<BufferId> {
        let kept = self.steps.iter().filter(|step| !step.is_stored).map(|step| step.buffer);
        kept.chain(self.within.iter().copied()).collect()
    }

    /// Returns the buffers of `statements` that are not parameters of the second kernel of a split reduction. The first
    /// kernel computes partial results of the first `own` statements. The second kernel combines these, and computes
    /// the other statements, which are the epilogue. So it needs no buffer that never reaches memory, and none that
    /// only the first `own` statements use, except the front's result. If the initial value of the reduction reads such
    /// a buffer, the buffer becomes a parameter when that read is printed.
    pub(crate) fn kept_after(&self, statements: &[Stmt], own: usize) -> Vec<BufferId> {
        let mut kept = self.kept();
        let is_result = |id: BufferId| self.steps.first().is_some_and(|step| step.buffer == id);
        let (own, behind) = statements.split_at(own.min(statements.len()));
        let used = own.iter().flat_map(buffers_of);
        kept.extend(used.filter(|id| !is_result(*id) && !behind.iter().any(|stmt| uses(stmt, *id))));
        kept
    }

    /// Describes how many statements are fused, for the scheduling remark.
    pub(crate) fn note(&self) -> String {
        match self.steps.len() {
            1 => String::new(),
            2 => "; epilogue: 1 elementwise statement".to_owned(),
            steps => format!("; epilogue: {} elementwise statements", steps - 1),
        }
    }
}

/// Returns the number of elements of a buffer.
fn size(scope: &mut Scope, func: &PrimFunc, buffer: BufferId) -> Dim {
    func.buffer(buffer).shape.iter().fold(Dim::constant(1), |size, extent| &size * &scope.dim(extent))
}

fn is_scalar(func: &PrimFunc, var: VarId) -> bool {
    func.symbols.contains(&var) || func.scalar_params().any(|one| one == var)
}

/// Whether an expression reads a buffer.
pub(crate) fn reads(expr: &Expr, wanted: BufferId) -> bool {
    first_load(expr, &|buffer| buffer == wanted).is_some()
}

/// Returns the first load whose buffer is wanted.
fn first_load<'e>(expr: &'e Expr, wanted: &dyn Fn(BufferId) -> bool) -> Option<(BufferId, &'e [Expr])> {
    let mut found = None;
    expr.walk(&mut |part| {
        if let Expr::Load { buffer, indices, .. } = part
            && wanted(*buffer)
            && found.is_none()
        {
            found = Some((*buffer, indices.as_slice()));
        }
    });
    found
}
