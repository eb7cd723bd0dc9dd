//! A sum of products as a matrix product: rows, columns and sums as linear indices, each split into loops' values.

use super::hopper::view::View;
use super::narrow::Twins;
use crate::rules::epilogue::{Epilogue, is_in_chunks};
use crate::rules::{Declined, Task};
use rx_base::dtype::TypeCode;
use rx_base::{DType, Dim};
use rx_schedule::{Affine, ProductNest, Role};
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

    /// Whether `count` values of the innermost loop of an axis, from a multiple of it, are neighbours in memory that begin at
    /// a multiple of it, and count all or none.
    pub(crate) fn is_in_chunks(&self, axis: &Axis, count: i64) -> bool {
        axis.last().is_some_and(|(var, extent)| {
            is_in_chunks(&self.at, var, extent, count)
                && !self.condition.as_ref().is_some_and(|condition| condition.uses(var))
        })
    }
}

impl Problem {
    /// The product that the task's first statement is, and what may follow it.
    pub(crate) fn of(task: &Task<'_>) -> Result<Problem, Declined> {
        let nest = task.nest(0)?;
        let mut func = task.func.clone();
        let mut found = ProductNest::of(&nest, &mut func)?;
        found.product.orient();
        let reduction = found.product.reduction.clone();
        let dtype = func.buffer(reduction.buffer).dtype;
        if dtype.is_bool() {
            return Err(Declined::because("a sum of truth values is no matrix product"));
        }
        let mut axes: [Axis; 4] = Default::default();
        let mut elements = Dim::constant(1);
        let mut known = Vec::new();
        for (var, extent, role) in &found.product.loops {
            let expr = found
                .scope
                .expr(extent, DType::INT64)
                .ok_or_else(|| Declined::because("an extent cannot be written down"))?;
            known.push((*var, expr, *role));
            if *role != Role::K {
                elements = &elements * extent;
            }
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
        a.narrow_indices(&twins);
        b.narrow_indices(&twins);
        let initial = match &reduction.init {
            None => Initial::Kept,
            Some(Expr::Float { value, .. }) if *value == 0.0 => Initial::Zero,
            Some(Expr::Int { value: 0, .. }) => Initial::Zero,
            Some(value) => Initial::Value(value.clone()),
        };
        let mut epilogue = Epilogue::of(task, &func, reduction.buffer, &reduction.indices, &elements);
        epilogue.locate(&mut |buffer, indices| found.affine(&func, buffer, indices));
        let statements = task.statements.iter().take(epilogue.taken).map(|one| one.stmt.clone()).collect();
        let (buffer, indices) = (reduction.buffer, reduction.indices);
        Ok(Problem { func, batch, m, n, k, a, b, initial, buffer, indices, dtype, epilogue, twins, statements })
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
            Expr::Load { buffer, indices, .. } => found.affine(func, *buffer, indices).map(|at| Element {
                buffer: *buffer,
                indices: indices.clone(),
                condition: condition.map(|condition| (**condition).clone()),
                read: indices.clone(),
                counts: None,
                at,
            }),
            _ => None,
        };
        Factor { value, narrow, element, view: Err(String::new()) }
    }

    fn narrow_indices(&mut self, twins: &Twins) {
        self.value = twins.narrowed(&self.value);
        self.narrow = twins.narrowed(&self.narrow);
        if let Some(element) = &mut self.element {
            element.read = element.indices.iter().map(|index| twins.index(index)).collect();
            element.counts = element.condition.as_ref().map(|condition| twins.narrowed(condition));
        }
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
