//! Stage collection: turns the statements at the front of a task into the stages of one kernel.
//!
//! The leading statement, such as the first reduction, determines which loops are rows and columns. `parts` lists the
//! stores of each statement, `unify` maps its loops to the shared ones, and `Builder` replaces loads by variables.
//! Collection ends at the first statement after the leading one that does not fit.

mod parts;
mod unify;

use super::{Axis, Carried, Combine, Kind, Read, Stage, Stages, Target};
use crate::rules::{Declined, Task};
use crate::statements::Statement;
use parts::{Part, parts};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_loops::affine::join;
use rx_loops::scope::Scope;
use rx_loops::{Affine, Loop};
use rx_tir::rewrite::substitute;
use rx_tir::{BinaryOp, BufferId, Expr, IterKind, PrimFunc, VarId};
use unify::Unifier;

/// The kinds of computation that a rule can collect as stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rules) enum Form {
    /// Reductions along the columns of rows, and values of elements and rows before and after them.
    Rows,
    /// Values of elements: all axes are columns.
    Elements,
    /// One scan along the column axis of rows, and values of elements before and after it.
    Scan,
}

/// Collects the stages of at most `most` statements at the front of a task. Stops before the first statement after the
/// leading one that does not fit. Returns the stages, and the number of statements that they compute.
///
/// # Errors
/// There is no leading statement among the first `most`; it or a statement before it does not fit; or an extent or
/// index of the stages is no expression over the loops and the function's scalars.
pub(in crate::rules) fn collect(task: &Task<'_>, form: Form, most: usize) -> Result<(Stages, usize), Declined> {
    let (lead, shared) = leading(task, form)?;
    let unifier = Unifier::new(task, lead, &shared, form)?;
    let mut builder = Builder::new(task, &shared);
    let mut taken = 0;
    Declined::when(most <= lead, "requires a reduction; found none")?;
    for parts in unifier.take(most) {
        let mark = builder.mark();
        let added = parts.iter().try_for_each(|part| builder.add(part, form));
        match added {
            Ok(()) => taken += 1,
            Err(why) if taken <= lead => return Err(why),
            Err(_) => {
                builder.go_back(mark);
                break;
            }
        }
    }
    Ok((builder.finish(task, taken)?, taken))
}

/// The loops that all stages share. Their values begin at 0.
struct Shared {
    /// The loops that select a row, outermost first.
    rows: Vec<Loop>,
    /// The loops over a row's elements, outermost first.
    columns: Vec<Loop>,
}

impl Shared {
    /// Returns the loops of rows, then those of columns.
    fn all(&self) -> Vec<Loop> {
        self.rows.iter().chain(&self.columns).cloned().collect()
    }
}

/// Returns the position of the leading statement, and the shared loops, which are its loops. The leading statement is
/// the first one for [`Form::Elements`], the first reduction for [`Form::Rows`], and the first scan for [`Form::Scan`].
fn leading(task: &Task<'_>, form: Form) -> Result<(usize, Shared), Declined> {
    let is_reduction = |statement: &Statement| statement.nest(task.func).is_some_and(|nest| nest.init.is_some());
    Declined::when(
        form == Form::Rows && !task.statements.iter().any(is_reduction),
        "requires a reduction; found none",
    )?;
    let first = parts(task, 0, form)?;
    if form == Form::Elements {
        let part = first.into_iter().next().ok_or_else(|| Declined::because("requires a store; found none"))?;
        Declined::when(part.is_reduction(), "requires elementwise statements; found a reduction")?;
        Declined::when(part.loops.is_empty(), "requires loops; found none")?;
        return Ok((0, Shared { rows: Vec::new(), columns: part.loops }));
    }
    for at in 0..task.statements.len() {
        let found = parts(task, at, form)?;
        if found.iter().any(Part::is_reduction) && form == Form::Scan {
            break;
        }
        if let Some(part) = found.iter().find(|part| part.goes_along_columns()) {
            let (columns, rows) = part.loops.iter().cloned().partition(|one| one.kind != IterKind::Spatial);
            return Ok((at, Shared { rows, columns }));
        }
    }
    Err(Declined::because(if form == Form::Scan {
        "requires a scan; found none"
    } else {
        "requires a reduction; found none"
    }))
}

/// Returns the identity element of an operation. Returns `None` for operations, such as a subtraction, whose result
/// depends on the order in which values are combined, and for `BitAnd` of unsigned integers.
///
/// For a minimum or maximum, the value is only a placeholder: partial results begin with the initial value
/// ([`Combine::begin`]).
pub(in crate::rules) fn identity(combine: BinaryOp, dtype: DType) -> Option<Expr> {
    let all_ones = |set: bool| Expr::Int { value: if set { -1 } else { 0 }, dtype };
    Some(match combine {
        BinaryOp::Add | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::Or => Expr::number(0.0, dtype),
        BinaryOp::Mul | BinaryOp::And => Expr::number(1.0, dtype),
        BinaryOp::BitAnd if dtype.is_bool() => Expr::bool(true),
        BinaryOp::BitAnd if dtype.code == rx_base::dtype::TypeCode::Int => all_ones(true),
        // Partial results begin with the init, which may be combined any number of times.
        BinaryOp::Min | BinaryOp::Max => Expr::number(0.0, dtype),
        _ => return None,
    })
}

/// Returns the identity element of a scan's operation, also of minima and maxima of integers; `rx_loops::Recurrence`
/// matches no scans of floating-point minima and maxima. For example, the identity of a maximum of `int8` is -128.
pub(in crate::rules) fn scan_identity(combine: BinaryOp, dtype: DType) -> Option<Expr> {
    let is_signed = dtype.code == rx_base::dtype::TypeCode::Int;
    let bits = u32::from(dtype.bits).clamp(1, 64);
    let value = match (combine, is_signed) {
        (BinaryOp::Min, true) => i64::MAX >> (64 - bits),
        (BinaryOp::Min | BinaryOp::BitAnd, false) if !dtype.is_bool() => (u64::MAX >> (64 - bits)).cast_signed(),
        (BinaryOp::Max, true) => i64::MIN >> (64 - bits),
        (BinaryOp::Max, false) => 0,
        _ => return identity(combine, dtype),
    };
    Some(Expr::Int { value, dtype })
}

/// The builder of stages from the parts of statements.
struct Builder<'f> {
    /// The function of the task.
    original: &'f PrimFunc,
    /// Its copy, to which the stages' variables are added.
    func: PrimFunc,
    scope: Scope,
    /// The shared loops: rows, then columns.
    loops: Vec<Loop>,
    /// The number of loops of rows.
    rows: usize,
    stages: Vec<Stage>,
    reads: Vec<Read>,
    /// Elements that remain loads: under a condition, in the index of a load, or at an index that a stage computes.
    others: Vec<Affine>,
    /// Maps the variables of a tuple reduction's sides to those of its stages so far.
    sides: FxHashMap<VarId, VarId>,
}

impl<'f> Builder<'f> {
    fn new(task: &Task<'f>, shared: &Shared) -> Builder<'f> {
        let mut scope = Scope::new(task.func);
        let loops = shared.all();
        for one in &loops {
            scope.enter_loop(one.var, task.func.var(one.var).dtype, &Expr::int(0), &one.extent);
        }
        Builder {
            original: task.func,
            func: task.func.clone(),
            scope,
            loops,
            rows: shared.rows.len(),
            stages: Vec::new(),
            reads: Vec::new(),
            others: Vec::new(),
            sides: FxHashMap::default(),
        }
    }

    /// Returns the current lengths, for [`Builder::go_back`].
    fn mark(&self) -> (usize, usize, usize) {
        (self.stages.len(), self.reads.len(), self.others.len())
    }

    /// Removes the stages, reads and other loads that were added since a mark.
    fn go_back(&mut self, (stages, reads, others): (usize, usize, usize)) {
        self.stages.truncate(stages);
        self.reads.truncate(reads);
        self.others.truncate(others);
    }

    /// Adds the stages of one store and of its let values.
    fn add(&mut self, part: &Part, form: Form) -> Result<(), Declined> {
        let is_of_elements = form == Form::Elements;
        Declined::when(is_of_elements && part.is_reduction(), "requires elementwise statements; found a reduction")?;
        // Every thread would execute it, and none if there are no elements.
        let is_without_loops = is_of_elements && matches!(part.kind, Kind::Row);
        Declined::when(is_without_loops, "requires elementwise statements; found a statement without loops")?;
        if form == Form::Scan {
            let is_second = self.stages.iter().any(|stage| matches!(stage.kind, Kind::Scan { .. }));
            match part.kind {
                Kind::Element => {}
                Kind::Scan { .. } if !is_second => {}
                _ => {
                    return Err(Declined::because(
                        "requires one scan and no reductions; found another scan or a reduction",
                    ));
                }
            }
        }
        let named = part.named.iter().map(|(var, value)| Ok((*var, self.value(value, false)?)));
        let named = named.collect::<Result<Vec<_>, Declined>>()?;
        let value = self.value(&part.value, false)?;
        let init_reads = match &part.kind {
            Kind::Reduction { init, .. } => init.has_load(),
            _ => false,
        };
        let target = self.element(part.buffer, &part.indices)?;
        let stored = self.original.buffer(part.buffer).name;
        let elsewhere = Declined::because(format!("requires one index for all accesses to `{stored}`; found several"));
        Declined::when(!target.is_sum(), "requires affine store indices; found others")?;
        Declined::when(init_reads, "requires inits without loads; found a load")?;
        let before = |element: &Affine| element.buffer == part.buffer && (form == Form::Rows || *element != target);
        if self.reads.iter().any(|read| before(&read.element)) || self.others.iter().any(before) {
            return Err(elsewhere);
        }
        let is_elsewhere = |stage: &Stage| stage.target.element.buffer == part.buffer && stage.target.element != target;
        if self.stages.iter().any(is_elsewhere) {
            return Err(elsewhere);
        }
        // A let value is a stage like the value of an earlier statement, but it is never in memory.
        let kind = if matches!(part.kind, Kind::Row) { Kind::Row } else { Kind::Element };
        for (var, value) in named {
            let dtype = self.func.var(var).dtype;
            let other = self.func.add_var(name("other"), dtype);
            let target = Target { element: target.clone(), index: Expr::int(0), dtype, is_stored: false };
            self.stages.push(Stage { kind: kind.clone(), target, value, var, other });
        }
        let buffer = self.original.buffer(part.buffer);
        let mut value = value;
        if let Kind::Scan { combine, .. } = part.kind {
            let carried = match &part.carried {
                Some(indices) => Some(Carried { element: self.element(part.buffer, indices)?, index: Expr::int(0) }),
                None => None,
            };
            // The scan itself is not stored: the element stage after it stores its value.
            let var = self.func.add_var(buffer.name, buffer.dtype);
            let other = self.func.add_var(name("other"), buffer.dtype);
            let target = Target { element: target.clone(), index: Expr::int(0), dtype: buffer.dtype, is_stored: false };
            let kind = Kind::Scan { combine, carried };
            self.stages.push(Stage { kind, target, value, var, other });
            value = self.func.var_expr(var);
        }
        let kind = if matches!(part.kind, Kind::Scan { .. }) { Kind::Element } else { part.kind.clone() };
        let var = self.func.add_var(buffer.name, buffer.dtype);
        let other = self.func.add_var(name("other"), buffer.dtype);
        let target = Target { element: target, index: Expr::int(0), dtype: buffer.dtype, is_stored: true };
        self.stages.push(Stage { kind, target, value, var, other });
        if let Some((left, right)) = part.sides {
            self.name_sides([(left, var), (right, other)]);
        }
        Ok(())
    }

    /// Records the variables of the stage that was added last, which is part of a tuple reduction. `sides` are pairs of
    /// a variable of the matched tuple, for the value so far or the value that is combined with it, and the stage's
    /// variable for the same value. When all stages of the tuple are added, substitutes the stages' variables in the
    /// choices of all of them.
    fn name_sides(&mut self, sides: [(VarId, VarId); 2]) {
        self.sides.extend(sides);
        let Some(Kind::Reduction { combine: Combine::Choice { place, count, .. }, .. }) =
            self.stages.last().map(|stage| &stage.kind)
        else {
            return;
        };
        if place + 1 < *count {
            return;
        }
        let (sides, func, first) = (std::mem::take(&mut self.sides), &self.func, self.stages.len() - count);
        for stage in self.stages.iter_mut().skip(first) {
            if let Kind::Reduction { combine: Combine::Choice { chosen, .. }, .. } = &mut stage.kind {
                *chosen = substitute(chosen, &|var| sides.get(&var).map(|var| func.var_expr(*var)));
            }
        }
    }

    /// Returns the affine form of an element over the shared loops, with indices that are not affine as opaque terms.
    fn element(&mut self, buffer: BufferId, indices: &[Expr]) -> Result<Affine, Declined> {
        let element = Affine::with_opaque(&mut self.scope, self.original, &self.loops, buffer, indices);
        element.ok_or_else(|| {
            let name = self.original.buffer(buffer).name;
            Declined::because(format!("requires affine indices of `{name}`; found others"))
        })
    }

    /// Replaces the loads in a value by variables of reads and stages. `is_conditional`: the value is evaluated under a
    /// condition only, or is an index of a load, so its loads stay where they are, except those of elements that a
    /// stage computes. For example, in `select(k < n, X[k], 0)` the load of `X[k]` stays.
    fn value(&mut self, expr: &Expr, is_conditional: bool) -> Result<Expr, Declined> {
        let part = |this: &mut Self, expr: &Expr| this.value(expr, is_conditional).map(Box::new);
        Ok(match expr {
            Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } => expr.clone(),
            Expr::Load { buffer, dtype, indices } => self.load(*buffer, *dtype, indices, is_conditional)?,
            Expr::Cast { dtype, value } => Expr::Cast { dtype: *dtype, value: part(self, value)? },
            Expr::Unary { op, value } => Expr::Unary { op: *op, value: part(self, value)? },
            Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
                let left = part(self, left)?;
                Expr::Binary { op: *op, left, right: Box::new(self.value(right, true)?) }
            }
            Expr::Binary { op, left, right } => {
                Expr::Binary { op: *op, left: part(self, left)?, right: part(self, right)? }
            }
            Expr::Compare { op, left, right } => {
                Expr::Compare { op: *op, left: part(self, left)?, right: part(self, right)? }
            }
            Expr::Select { condition, then, otherwise } => {
                let condition = part(self, condition)?;
                let (then, otherwise) = (self.value(then, true)?, self.value(otherwise, true)?);
                Expr::Select { condition, then: Box::new(then), otherwise: Box::new(otherwise) }
            }
            Expr::Call { function, dtype, args } => {
                let args = args.iter().map(|arg| self.value(arg, is_conditional)).collect::<Result<_, _>>()?;
                Expr::Call { function: *function, dtype: *dtype, args }
            }
            Expr::Checked { index, extent, buffer, axis, site } => Expr::Checked {
                index: part(self, index)?,
                extent: part(self, extent)?,
                buffer: *buffer,
                axis: *axis,
                site: *site,
            },
        })
    }

    /// Returns the variable of the stage that computes the loaded element, if there is one. Otherwise returns a load at
    /// a linear index if `is_conditional` or if its index depends on a stage, else the variable of a read.
    ///
    /// # Errors
    /// Stages compute only other elements of the buffer, or the index is no expression over the loops.
    fn load(
        &mut self,
        buffer: BufferId,
        dtype: DType,
        indices: &[Expr],
        is_conditional: bool,
    ) -> Result<Expr, Declined> {
        let element = self.element(buffer, indices)?;
        if let Some(stage) = self.stages.iter().rev().find(|stage| stage.target.element.buffer == buffer) {
            return match stage.target.element == element {
                true => Ok(self.func.var_expr(stage.var)),
                false => {
                    let name = self.original.buffer(buffer).name;
                    Err(Declined::because(format!("requires one index for all accesses to `{name}`; found several")))
                }
            };
        }
        // Loads in an index remain loads, except those of elements that a stage computes.
        let element = element.map_opaque(&mut |index| self.value(index, true))?;
        let vars: Vec<VarId> = self.loops.iter().map(|one| one.var).collect();
        let index = element.expr(&self.scope, &vars, self.original);
        let index = index.ok_or_else(|| {
            let name = self.original.buffer(buffer).name;
            Declined::because(format!("requires indices of `{name}` over the loops; found others"))
        })?;
        if is_conditional || element.opaque().any(|index| self.stages.iter().any(|stage| index.uses(stage.var))) {
            self.others.push(element);
            return Ok(Expr::Load { buffer, dtype, indices: vec![index] });
        }
        if let Some(known) = self.reads.iter().find(|read| read.element == element) {
            return Ok(self.func.var_expr(known.var));
        }
        let is_of_columns = self.loops[self.rows..].iter().any(|one| element.uses(one.var));
        let var = self.func.add_var(self.original.buffer(buffer).name, dtype);
        self.reads.push(Read { element, index, dtype, var, is_of_columns });
        Ok(self.func.var_expr(var))
    }

    /// Joins neighbouring loops where all accesses and values allow it, writes the linear indices, and finds the
    /// buffers that need no memory.
    fn finish(mut self, task: &Task<'_>, taken: usize) -> Result<Stages, Declined> {
        let unwritable =
            || Declined::because("requires indices over the loops and the function's scalars; found others");
        let mut rows = self.axes(0, self.rows);
        let mut columns = self.axes(self.rows, self.loops.len());
        let used: Vec<VarId> = self.loops.iter().map(|one| one.var).filter(|var| self.is_used(*var)).collect();
        let is_used = |var: VarId| used.contains(&var);
        let mut elements: Vec<&mut Affine> = self.reads.iter_mut().map(|read| &mut read.element).collect();
        for stage in &mut self.stages {
            elements.push(&mut stage.target.element);
            if let Kind::Scan { carried: Some(carried), .. } = &mut stage.kind {
                elements.push(&mut carried.element);
            }
        }
        join(&mut rows, &mut elements, &is_used);
        join(&mut columns, &mut elements, &is_used);
        let vars: Vec<VarId> = rows.iter().chain(&columns).map(|(var, _)| *var).collect();
        let axis = |(var, dim): (VarId, Dim)| Some(Axis { var, extent: self.scope.expr(&dim, DType::INT64)?, dim });
        let rows: Vec<Axis> = rows.into_iter().map(axis).collect::<Option<_>>().ok_or_else(unwritable)?;
        let columns: Vec<Axis> = columns.into_iter().map(axis).collect::<Option<_>>().ok_or_else(unwritable)?;
        for read in &mut self.reads {
            read.index = read.element.expr(&self.scope, &vars, self.original).ok_or_else(unwritable)?;
        }
        // Only the last stage that writes a buffer stores, since it would overwrite the element of earlier ones.
        let mut overwritten = FxHashSet::default();
        for stage in self.stages.iter_mut().rev().filter(|stage| stage.target.is_stored) {
            stage.target.is_stored = overwritten.insert(stage.target.element.buffer);
        }
        let mut kept: Vec<BufferId> = Vec::new();
        for stage in &mut self.stages {
            let buffer = stage.target.element.buffer;
            if let Kind::Scan { carried: Some(carried), .. } = &mut stage.kind {
                carried.index = carried.element.expr(&self.scope, &vars, self.original).ok_or_else(unwritable)?;
            }
            stage.target.index = stage.target.element.expr(&self.scope, &vars, self.original).ok_or_else(unwritable)?;
            if task.is_temporary(buffer) && !task.is_used_after(taken, buffer) {
                stage.target.is_stored = false;
                kept.push(buffer);
            }
        }
        let counts = |id: BufferId| {
            let shape = &self.original.buffer(id).shape;
            shape.iter().try_fold(1i64, |all, extent| all.checked_mul(extent.as_int()?))
        };
        let all = rows.iter().chain(&columns).try_fold(1i64, |all, axis| all.checked_mul(axis.dim.as_constant()?));
        let buffers = self.reads.iter().map(|read| read.element.buffer);
        let buffers = buffers.chain(self.stages.iter().map(|stage| stage.target.element.buffer));
        let buffers: Vec<BufferId> = buffers.chain(self.others.iter().map(|element| element.buffer)).collect();
        // Leaves a margin for indices beyond the end, which are compared with the extent.
        let fits = |count: Option<i64>| count.is_some_and(|count| count <= i64::from(i32::MAX) / 2);
        let is_small = fits(all) && buffers.iter().all(|id| fits(counts(*id)));
        let statements = task.statements.iter().take(taken).map(|one| one.stmt.clone()).collect();
        let Builder { func, scope, stages, reads, .. } = self;
        Ok(Stages { func, rows, columns, stages, reads, statements, kept, scope, is_small })
    }

    /// Returns the loops `from..to` of [`Builder::loops`], with their extents as symbolic dims.
    fn axes(&mut self, from: usize, to: usize) -> Vec<(VarId, Dim)> {
        let loops = self.loops[from..to].to_vec();
        loops.iter().map(|one| (one.var, self.scope.dim(&one.extent))).collect()
    }

    /// Whether the value or init of a stage uses a variable. The indices of reads and targets do not count.
    fn is_used(&self, var: VarId) -> bool {
        self.stages
            .iter()
            .any(|stage| stage.value.uses(var) || matches!(&stage.kind, Kind::Reduction { init, .. } if init.uses(var)))
    }
}
