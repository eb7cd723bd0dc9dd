//! What follows a sum element by element: statements behind it that read its result where they write theirs, done while the
//! element is in a register.

use super::{Task, buffers_of, uses};
use crate::printer::{Kernel, types};
use rustc_hash::FxHashMap;
use rx_base::Dim;
use rx_schedule::Affine;
use rx_schedule::scope::Scope;
use rx_tir::rewrite::substitute;
use rx_tir::{BufferId, Expr, IterKind, PrimFunc, Stmt, VarId};

/// The statements behind a first one that are done with it.
#[derive(Clone, Debug)]
pub(crate) struct Epilogue {
    /// How many statements are taken, from the task's front.
    pub(crate) taken: usize,
    /// What is computed of each element, in order; the first step's value is the element itself.
    steps: Vec<Step>,
    /// What holds of elements that are some; none where all are.
    condition: Option<Expr>,
    /// Buffers between the first statements that never reach memory.
    pub(crate) within: Vec<BufferId>,
}

/// What makes the element that an epilogue is behind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    /// How many statements it is.
    pub(crate) statements: usize,
    /// Buffers between them that never reach memory.
    pub(crate) within: Vec<BufferId>,
    /// What holds of elements that are some; none where all are.
    pub(crate) condition: Option<Expr>,
}

impl Front {
    /// One statement, all of whose elements are some.
    pub(crate) fn plain() -> Front {
        Front { statements: 1, ..Front::default() }
    }
}

/// `buffer[indices] = value`, over the loops of the first statement.
#[derive(Clone, Debug)]
struct Step {
    buffer: BufferId,
    indices: Vec<Expr>,
    /// Reads elements of steps before it, which are held in registers. None of the first.
    value: Option<Expr>,
    /// Whether anybody else sees it.
    is_stored: bool,
    /// Whether a step behind it reads it.
    is_held: bool,
    /// Where its elements stand.
    at: Option<Affine>,
}

/// Elements of one thread that are stored as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packs {
    /// How many elements of a row stand together, and the text that says which of them is printed.
    width: i64,
    which: String,
    /// For each step, the pack that its value goes to.
    names: Vec<Option<String>>,
}

/// Whether `count` values of a loop, from a multiple of it, are neighbours in memory that begin at a multiple of it.
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
    /// What follows the task's first statements, which write `buffer[indices]`, over their own loops, of
    /// `elements` elements, each once.
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
        // Elements that nothing has written yet belong to nobody.
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
            step.is_stored = !task.is_temporary(step.buffer) || task.is_used_behind(epilogue.taken, step.buffer);
        }
        epilogue
    }

    /// The next statement as a step; `None` where it is none.
    fn next(&self, task: &Task<'_>, func: &PrimFunc, scope: &mut Scope) -> Option<Step> {
        let nest = task.nest(self.taken).ok()?;
        let Stmt::Store { buffer, indices, value, .. } = &nest.body else { return None };
        if nest.predicate.is_some() || nest.init.is_some() {
            return None;
        }
        let knows = |buffer: BufferId| self.steps.iter().any(|step| step.buffer == buffer);
        // What another block may still read is not written to.
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

    /// The values of loops that a load's indices are, and the axis each loop is the index of: the load is of the element
    /// that a step has in a register.
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

    /// Finds where the steps' elements stand.
    pub(crate) fn locate(&mut self, affine: &mut dyn FnMut(BufferId, &[Expr]) -> Option<Affine>) {
        for step in self.steps.iter_mut().filter(|step| step.is_stored) {
            step.at = affine(step.buffer, &step.indices);
        }
    }

    /// Declares packs for `width` neighbours along a loop, of those steps whose elements stand together there. `which` is the
    /// text that says which neighbour is printed. None where there are no such steps.
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

    /// Stores the packs, where the loops have the values of the first neighbour.
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

    /// Opens what is done of elements that are some, where others are counted, too.
    fn open(&self, kernel: &mut Kernel<'_>) -> Result<bool, String> {
        if let Some(condition) = &self.condition {
            let condition = kernel.operand(condition, 0)?;
            kernel.open(&format!("if ({condition}) {{"));
        }
        Ok(self.condition.is_some())
    }

    /// Prints what is done with an element, whose value is this text.
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

    /// The buffers that never reach memory.
    pub(crate) fn kept(&self) -> Vec<BufferId> {
        let kept = self.steps.iter().filter(|step| !step.is_stored).map(|step| step.buffer);
        kept.chain(self.within.iter().copied()).collect()
    }

    /// The buffers that are not passed to a second kernel, which has the sums that the first `own` statements make and does what
    /// follows: those that never reach memory, and what only the first statements use.
    pub(crate) fn kept_behind(&self, statements: &[Stmt], own: usize) -> Vec<BufferId> {
        let mut kept = self.kept();
        let is_result = |id: BufferId| self.steps.first().is_some_and(|step| step.buffer == id);
        let (own, behind) = statements.split_at(own.min(statements.len()));
        let used = own.iter().flat_map(buffers_of);
        kept.extend(used.filter(|id| !is_result(*id) && !behind.iter().any(|stmt| uses(stmt, *id))));
        kept
    }

    /// How many statements are fused behind the first, for a schedule's note.
    pub(crate) fn note(&self) -> String {
        match self.steps.len() {
            1 => String::new(),
            2 => "; the statement behind it on its elements".to_owned(),
            steps => format!("; the {} statements behind it on its elements", steps - 1),
        }
    }
}

/// The elements of a buffer.
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

/// The first load of a buffer that is wanted.
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
