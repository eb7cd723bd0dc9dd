//! A sum of products as a matrix product: rows, columns and sums as linear indices, each split into loops' values.

use super::hopper::view::View;
use super::narrow::Twins;
use super::reach::Reach;
use super::source::Source;
use crate::rules::epilogue::Epilogue;
use crate::rules::{Declined, Task};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_schedule::place::is_multiple;
use rx_schedule::{Affine, Product, ProductNest, Role};
use rx_tir::{BufferId, Expr, PrimFunc, Stmt, VarId};

/// `C[batch, m, n] = Σ_k A[batch, m, k] · B[batch, k, n]`, and what follows.
pub(crate) struct Problem {
    /// The task's function, with variables of its own for loops that were cut into digits.
    pub(crate) func: PrimFunc,
    /// Loops of independent products.
    pub(crate) batch: Axis,
    /// Rows of the result.
    pub(crate) m: Axis,
    /// Columns of the result; its contiguous loop, if any, is the last of them.
    pub(crate) n: Axis,
    /// What is summed over.
    pub(crate) k: Axis,
    /// The factor with rows.
    pub(crate) a: Factor,
    /// The factor with columns.
    pub(crate) b: Factor,
    /// What the sum begins with.
    pub(crate) initial: Initial,
    /// The result's buffer and element.
    pub(crate) buffer: BufferId,
    pub(crate) indices: Vec<Expr>,
    /// The result's dtype, that of the sum as the function writes it.
    pub(crate) dtype: DType,
    /// What follows on each element.
    pub(crate) epilogue: Epilogue,
    /// Variables of 32 bits for loops' values, which the factors are written in.
    pub(crate) twins: Twins,
    /// The statements that are taken.
    pub(crate) statements: Vec<Stmt>,
    /// How many of them are the product.
    pub(crate) own: usize,
    /// How many phases of outputs its batch counts: those of a transposed convolution in steps.
    pub(crate) phases: i64,
}

/// What a sum begins with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Initial {
    /// 0.
    Zero,
    /// A value over the result's loops.
    Value(Expr),
    /// What the buffer holds.
    Kept,
}

/// Loops that together are one index, row-major.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axis {
    /// The loops, outermost first, with their `int64` extents.
    pub(crate) loops: Vec<(VarId, Expr)>,
}

impl Axis {
    /// How many values the index takes.
    pub(crate) fn extent(&self) -> Expr {
        // The constants are one factor, behind the others.
        let (constants, others): (Vec<_>, Vec<_>) =
            self.loops.iter().map(|(_, extent)| extent.clone()).partition(|extent| extent.as_int().is_some());
        let constant = constants.into_iter().fold(Expr::int(1), |a, b| a * b);
        others.into_iter().chain([constant]).reduce(|a, b| a * b).unwrap_or(Expr::int(1))
    }

    /// The constant it is.
    pub(crate) fn constant(&self) -> Option<i64> {
        self.extent().as_int()
    }

    /// The innermost loop.
    pub(crate) fn last(&self) -> Option<(VarId, &Expr)> {
        self.loops.last().map(|(var, extent)| (*var, extent))
    }

    /// Makes a loop the innermost.
    fn make_last(&mut self, wanted: impl Fn(VarId) -> bool) {
        if let Some(at) = self.loops.iter().rposition(|(var, _)| wanted(*var)) {
            let found = self.loops.remove(at);
            self.loops.push(found);
        }
    }
}

/// A factor.
pub(crate) struct Factor {
    /// Its value, of the sum's dtype.
    pub(crate) value: Expr,
    /// The same without casts that lose nothing: of the dtype in which it stands in memory, mostly.
    pub(crate) narrow: Expr,
    /// Where its one element stands, where it is one; a choice of that or 0 counts, too.
    pub(crate) element: Option<Element>,
    /// It as a view of memory, or why it is none.
    pub(crate) view: Result<View, String>,
    /// How its place is told by row and summed value, where it is one and both can be told apart.
    pub(crate) reach: Option<Reach>,
}

/// An element that is a factor where a condition holds; elsewhere the factor is 0.
pub(crate) struct Element {
    pub(crate) buffer: BufferId,
    indices: Vec<Expr>,
    condition: Option<Expr>,
    /// The indices and the condition as they are printed.
    pub(crate) read: Vec<Expr>,
    pub(crate) counts: Option<Expr>,
    pub(crate) at: Affine,
}

impl Element {
    /// Whether it counts under a condition.
    pub(crate) fn is_chosen(&self) -> bool {
        self.condition.is_some()
    }

    /// Whether the loop's values are neighbours in memory.
    pub(crate) fn is_contiguous(&self, var: VarId) -> bool {
        self.at.stride(var).as_constant() == Some(1)
    }

    /// Whether `count` values of an axis, from a multiple of it, are neighbours in memory that begin at a multiple of it, and
    /// count all or none. Loops that are walked as one in memory are one here.
    pub(crate) fn is_in_chunks(&self, axis: &Axis, count: i64) -> bool {
        let (mut span, mut within) = (1, Vec::new());
        for (var, extent) in axis.loops.iter().rev() {
            let depends = self.condition.as_ref().is_some_and(|condition| condition.uses(*var));
            let Some(extent) = extent.as_int().filter(|extent| *extent > 0 && !depends) else { return false };
            if self.at.stride(*var).as_constant() != Some(span) {
                return false;
            }
            (span, within) = (span.saturating_mul(extent), [within, vec![*var]].concat());
            if span % count == 0 {
                return is_multiple(&self.at.base, count)
                    && self.at.strides.iter().all(|(var, stride)| within.contains(var) || is_multiple(stride, count));
            }
        }
        false
    }
}

impl Problem {
    /// The product that the task's first statement is, and what may follow it.
    pub(crate) fn of(task: &Task<'_>) -> Result<Problem, Declined> {
        let Source { mut found, mut func, front, phases, elements } = Source::of(task)?;
        let own = front.statements;
        orient(&mut found.product);
        let reduction = found.product.reduction.clone();
        let dtype = func.buffer(reduction.buffer).dtype;
        if dtype.is_bool() {
            return Err(Declined::because("a sum of truth values is no matrix product"));
        }
        let mut axes: [Axis; 4] = Default::default();
        let mut known = Vec::new();
        for (var, extent, role) in &found.product.loops {
            let expr = found
                .scope
                .expr(extent, DType::INT64)
                .ok_or_else(|| Declined::because("an extent cannot be written down"))?;
            known.push((*var, expr, *role));
        }
        for (var, extent, role) in known {
            let axis = match role {
                Role::Batch => &mut axes[0],
                Role::M => &mut axes[1],
                Role::N => &mut axes[2],
                Role::K => &mut axes[3],
            };
            axis.loops.push((var, extent));
        }
        let [batch, mut m, mut n, mut k] = axes;
        let left = found.product.left.clone();
        let right = found.product.right.clone();
        let loops = [&batch, &m, &n, &k].into_iter().flat_map(|axis| &axis.loops);
        let twins = Twins::of(loops, &mut func);
        let (mut a, mut b) = (Factor::of(left, &mut found, &func), Factor::of(right, &mut found, &func));
        let contiguous =
            |factor: &Factor, var: VarId| factor.element.as_ref().is_some_and(|one| one.is_contiguous(var));
        // What is contiguous is innermost: in the result for columns, in the factors for the others.
        let target = &found.product.target;
        n.make_last(|var| target.stride(var).as_constant() == Some(1));
        m.make_last(|var| contiguous(&a, var));
        k.make_last(|var| contiguous(&a, var));
        k.make_last(|var| contiguous(&b, var));
        a.view = View::of(&a, [&m, &k, &batch], &func, &mut found.scope);
        b.view = View::of(&b, [&n, &k, &batch], &func, &mut found.scope);
        for (factor, free) in [(&mut a, &m), (&mut b, &n)] {
            factor.reach = factor.element.as_ref().and_then(|element| {
                let of = (element.buffer, element.indices.as_slice(), element.condition.as_ref());
                Reach::of(&mut found, &func, of, (free, &k))
            });
            factor.narrow_indices(&twins);
        }
        let initial = match &reduction.init {
            None => Initial::Kept,
            Some(Expr::Float { value, .. }) if *value == 0.0 => Initial::Zero,
            Some(Expr::Int { value: 0, .. }) => Initial::Zero,
            Some(value) => Initial::Value(value.clone()),
        };
        let target = (reduction.buffer, reduction.indices.as_slice());
        let mut epilogue = Epilogue::of(task, &func, front, target, &elements);
        epilogue.locate(&mut |buffer, indices| found.affine(&func, buffer, indices));
        let statements = task.statements.iter().take(epilogue.taken).map(|one| one.stmt.clone()).collect();
        let (buffer, indices) = (reduction.buffer, reduction.indices);
        Ok(Problem {
            func,
            batch,
            m,
            n,
            k,
            a,
            b,
            initial,
            buffer,
            indices,
            dtype,
            epilogue,
            twins,
            statements,
            own,
            phases,
        })
    }

    /// Whether a factor has no loops of its own.
    pub(crate) fn is_empty_side(&self) -> bool {
        self.m.loops.is_empty() || self.n.loops.is_empty()
    }
}

impl Factor {
    fn of(value: Expr, found: &mut ProductNest, func: &PrimFunc) -> Factor {
        let mut narrow = value.clone();
        while let Expr::Cast { dtype, value } = &narrow {
            if !is_exact(value.dtype(), *dtype) {
                break;
            }
            narrow = (**value).clone();
        }
        let (load, condition) = match &narrow {
            Expr::Select { condition, then, otherwise } if is_zero(otherwise) => (&**then, Some(condition)),
            other => (other, None),
        };
        let element = match load {
            Expr::Load { buffer, indices, .. } => located(found, func, (*buffer, indices)).map(|at| Element {
                buffer: *buffer,
                indices: indices.clone(),
                condition: condition.map(|condition| (**condition).clone()),
                read: indices.clone(),
                counts: None,
                at,
            }),
            _ => None,
        };
        Factor { value, narrow, element, view: Err(String::new()), reach: None }
    }

    fn narrow_indices(&mut self, twins: &Twins) {
        self.value = twins.narrowed(&self.value);
        self.narrow = twins.narrowed(&self.narrow);
        if let Some(reach) = &mut self.reach {
            reach.narrow(twins);
        }
        if let Some(element) = &mut self.element {
            element.read = element.indices.iter().map(|index| twins.index(index)).collect();
            element.counts = element.condition.as_ref().map(|condition| twins.narrowed(condition));
        }
    }
}

/// Where an element stands; of each product of a batch where only that is evenly spaced, as of phases.
fn located(found: &mut ProductNest, func: &PrimFunc, (buffer, indices): (BufferId, &[Expr])) -> Option<Affine> {
    found.affine(func, buffer, indices).or_else(|| found.affine_in_batch(func, buffer, indices))
}

/// Makes the factor of the loop whose values are nearest to each other in the result the right one.
fn orient(product: &mut Product) {
    let step = |var: VarId| product.target.stride(var).as_constant().map_or(i64::MAX, i64::abs);
    let nearest =
        |wanted: Role| product.loops.iter().filter(|(_, _, role)| *role == wanted).map(|(var, ..)| step(*var)).min();
    if let (Some(rows), Some(columns)) = (nearest(Role::M), nearest(Role::N))
        && rows < columns
    {
        product.turn();
    }
}

fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Float { value, .. } => *value == 0.0 && value.is_sign_positive(),
        Expr::Int { value, .. } => *value == 0,
        _ => false,
    }
}

/// Whether every value of a dtype is one of another.
fn is_exact(from: DType, to: DType) -> bool {
    use TypeCode::{BFloat, Float, Int, UInt};
    match (from.code, to.code) {
        (Int, Int) | (UInt, UInt) => from.bits <= to.bits,
        (UInt, Int) => from.bits < to.bits,
        (Float, Float) => from.bits <= to.bits,
        (BFloat, Float) => to.bits >= 32,
        (a, b) => a == b && from.bits == to.bits,
    }
}
