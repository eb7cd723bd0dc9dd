//! A sum of products as a matrix product: rows, columns and sums as linear indices, each split into loops' values.

use super::hopper::view::View;
use super::narrow::Twins;
use super::reach::Reach;
use super::source::Source;
use super::tiles::UNKNOWN;
use crate::rules::epilogue::Epilogue;
use crate::rules::{Declined, Task};
use rx_base::DType;
use rx_schedule::{Affine, FactorElement, Product, ProductNest, Role, Weighed, order_sums, without_casts};
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

impl Initial {
    fn of(init: Option<&Expr>) -> Initial {
        match init {
            None => Initial::Kept,
            Some(Expr::Float { value, .. }) if *value == 0.0 => Initial::Zero,
            Some(Expr::Int { value: 0, .. }) => Initial::Zero,
            Some(value) => Initial::Value(value.clone()),
        }
    }
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

/// A factor that is one element of memory, or 0.
pub(crate) struct Element {
    pub(crate) buffer: BufferId,
    pub(crate) at: Affine,
    found: FactorElement,
    /// The indices and the condition as they are printed.
    pub(crate) read: Vec<Expr>,
    pub(crate) counts: Option<Expr>,
}

impl Element {
    /// Whether it counts under a condition.
    pub(crate) fn is_chosen(&self) -> bool {
        self.found.condition.is_some()
    }

    /// Whether the loop's values are neighbours in memory.
    pub(crate) fn is_contiguous(&self, var: VarId) -> bool {
        self.found.is_contiguous(var)
    }

    /// Whether `count` values of an axis are read at once ([`FactorElement::is_in_chunks`]).
    pub(crate) fn is_in_chunks(&self, axis: &Axis, count: i64) -> bool {
        self.found.is_in_chunks(&axis.loops, count)
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
        Declined::when(dtype.is_bool(), "a sum of truth values is no matrix product")?;
        let [batch, mut m, mut n, mut k] = axes(&mut found)?;
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
        k.loops = order_sums(&k.loops, [a.weighed(&m), b.weighed(&n)]);
        a.view = View::of(&a, [&m, &k, &batch], &func, &mut found.scope);
        b.view = View::of(&b, [&n, &k, &batch], &func, &mut found.scope);
        for (factor, free) in [(&mut a, &m), (&mut b, &n)] {
            factor.reach = factor.element.as_ref().and_then(|element| {
                let found_at = &element.found;
                let of = (found_at.buffer, found_at.indices.as_slice(), found_at.condition.as_ref());
                Reach::of(&mut found, &func, of, (free, &k))
            });
            factor.narrow_indices(&twins);
        }
        let initial = Initial::of(reduction.init.as_ref());
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

/// Batch, rows, columns and sums of a product as it was found.
fn axes(found: &mut ProductNest) -> Result<[Axis; 4], Declined> {
    let mut axes: [Axis; 4] = Default::default();
    for (var, extent, role) in &found.product.loops {
        let extent = found.scope.expr(extent, DType::INT64);
        let extent = extent.ok_or_else(|| Declined::because("an extent cannot be written down"))?;
        let axis = match role {
            Role::Batch => &mut axes[0],
            Role::M => &mut axes[1],
            Role::N => &mut axes[2],
            Role::K => &mut axes[3],
        };
        axis.loops.push((*var, extent));
    }
    Ok(axes)
}

impl Factor {
    fn of(value: Expr, found: &mut ProductNest, func: &PrimFunc) -> Factor {
        let narrow = without_casts(&value).clone();
        let element = FactorElement::of(&narrow, found, func).map(|found| Element {
            buffer: found.buffer,
            at: found.at.clone(),
            read: found.indices.clone(),
            found,
            counts: None,
        });
        Factor { value, narrow, element, view: Err(String::new()), reach: None }
    }

    /// As the order of sums weighs it.
    fn weighed(&self, free: &Axis) -> Weighed<'_> {
        let bytes = self.narrow.dtype().bytes().cast_signed().clamp(1, 16);
        let element = self.element.as_ref().map(|element| &element.found);
        Weighed { element, count: free.constant().unwrap_or(UNKNOWN), chunk: 16 / bytes }
    }

    fn narrow_indices(&mut self, twins: &Twins) {
        self.value = twins.narrowed(&self.value);
        self.narrow = twins.narrowed(&self.narrow);
        if let Some(reach) = &mut self.reach {
            reach.narrow(twins);
        }
        if let Some(element) = &mut self.element {
            element.read = element.found.indices.iter().map(|index| twins.index(index)).collect();
            element.counts = element.found.condition.as_ref().map(|condition| twins.narrowed(condition));
        }
    }
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
