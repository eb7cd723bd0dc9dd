//! The matched sum of products: its axes (batch, M, N, K), factors and epilogue. The rules `gemm` and `gemv` build a
//! [`Problem`] first and emit kernels from it.
//!
//! Each axis is one linear index over its loops, row-major. For example, if the loops of M are `n`, `y`, `x` with
//! extents 2, 8, 16, the axis has 256 values, and index 37 is `n = 0`, `y = 2`, `x = 5`.

use super::choice::UNKNOWN;
use super::hopper::view::View;
use super::narrow::NarrowIndices;
use super::separable::SeparableAddress;
use super::source::Source;
use crate::rules::epilogue::Epilogue;
use crate::rules::{Declined, Task};
use rx_base::DType;
use rx_loops::{Affine, FactorElement, GemmOperand, Product, ProductNest, Role, choose_k_order, without_casts};
use rx_tir::{BufferId, Expr, PrimFunc, Stmt, VarId};

/// A matched product `C[batch, m, n] = Σ_k A[batch, m, k] · B[batch, k, n]` and its epilogue.
pub(crate) struct Problem {
    /// The task's function, with new variables: for loops that were split ([`rx_loops::ProductNest`],
    /// [`rx_loops::by_phases`]), and for the int32 copies of loop variables.
    pub(crate) func: PrimFunc,
    /// The loops of independent products.
    pub(crate) batch: Axis,
    /// The loops of the result's rows.
    pub(crate) m: Axis,
    /// The loops of the result's columns. If one is contiguous in the result, it is the innermost.
    pub(crate) n: Axis,
    /// The reduction loops.
    pub(crate) k: Axis,
    /// The factor that has the M loops.
    pub(crate) a: Factor,
    /// The factor that has the N loops.
    pub(crate) b: Factor,
    /// The initial value of the sum.
    pub(crate) initial: Initial,
    /// The result's buffer.
    pub(crate) buffer: BufferId,
    /// The indices of the result's element, over the loops of batch, M and N.
    pub(crate) indices: Vec<Expr>,
    /// The result's dtype, which is the dtype of the sum in the function. Kernels may accumulate in another.
    pub(crate) dtype: DType,
    /// The elementwise statements that follow and are fused.
    pub(crate) epilogue: Epilogue,
    /// The int32 copies of the loop variables, which the factors use where all values fit.
    pub(crate) narrow_indices: NarrowIndices,
    /// All statements that the schedule replaces: the product, then those of the epilogue.
    pub(crate) statements: Vec<Stmt>,
    /// How many of [`Problem::statements`] are the product: 1, or 2 if the second gathers the first's sums.
    pub(crate) own: usize,
    /// The number of phases: the outputs of a strided transposed convolution that use the same taps are one phase. 1
    /// for every other product.
    pub(crate) phases: i64,
}

/// The initial value of a sum.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Initial {
    /// 0, or -0.0 for floats.
    Zero,
    /// A value that may depend on the loops of the result.
    Value(Expr),
    /// The value that the result's element already has, because the reduction has no init.
    Existing,
}

impl Initial {
    fn of(init: Option<&Expr>) -> Initial {
        match init {
            None => Initial::Existing,
            Some(Expr::Float { value, .. }) if *value == 0.0 => Initial::Zero,
            Some(Expr::Int { value: 0, .. }) => Initial::Zero,
            Some(value) => Initial::Value(value.clone()),
        }
    }
}

/// The loops of one axis, which form one linear row-major index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Axis {
    /// The loops' variables and `int64` extents, outermost first.
    pub(crate) loops: Vec<(VarId, Expr)>,
}

impl Axis {
    /// Returns the extent of the linear index: the product of the loops' extents.
    pub(crate) fn extent(&self) -> Expr {
        // All constant extents are multiplied to one constant, the last factor.
        let (constants, others): (Vec<_>, Vec<_>) =
            self.loops.iter().map(|(_, extent)| extent.clone()).partition(|extent| extent.as_int().is_some());
        let constant = constants.into_iter().fold(Expr::int(1), |a, b| a * b);
        others.into_iter().chain([constant]).reduce(|a, b| a * b).unwrap_or(Expr::int(1))
    }

    /// Returns the extent, if it is a constant.
    pub(crate) fn constant(&self) -> Option<i64> {
        self.extent().as_int()
    }

    /// Returns the innermost loop and its extent.
    pub(crate) fn last(&self) -> Option<(VarId, &Expr)> {
        self.loops.last().map(|(var, extent)| (*var, extent))
    }

    /// Moves the innermost loop that `wanted` accepts to the innermost position.
    fn make_last(&mut self, wanted: impl Fn(VarId) -> bool) {
        if let Some(at) = self.loops.iter().rposition(|(var, _)| wanted(*var)) {
            let found = self.loops.remove(at);
            self.loops.push(found);
        }
    }
}

/// A factor of the product.
pub(crate) struct Factor {
    /// The factor's value in the dtype of the sum, including casts to that dtype.
    pub(crate) value: Expr,
    /// The same value without lossless casts: usually of the dtype in memory. For example, the `float16` element `x`
    /// for a factor `T.Cast("float32", x)`.
    pub(crate) narrow: Expr,
    /// The element of memory that the factor is, possibly under a condition (then 0 elsewhere). `None` for every other
    /// value, such as one computed from several elements, and if the address is not affine.
    pub(crate) element: Option<Element>,
    /// The factor as a dense strided view, from which TMA can copy tiles; otherwise the reason why it is none.
    pub(crate) view: Result<View, String>,
    /// The factor's address as a sum of a row part and a K part, if it separates.
    pub(crate) separable: Option<SeparableAddress>,
}

/// A factor that is one element of memory, possibly selected: `select(condition, element, 0)`.
pub(crate) struct Element {
    /// The buffer of the element.
    pub(crate) buffer: BufferId,
    /// The address as an affine function of the loops, in elements. If only the addresses within one product of the
    /// batch are affine, the batch loops are part of its base.
    pub(crate) at: Affine,
    found: FactorElement,
    /// The indices to emit, in 32 bits where they fit.
    pub(crate) read: Vec<Expr>,
    /// The condition to emit, if there is one; the factor is 0 where it fails.
    pub(crate) counts: Option<Expr>,
}

impl Element {
    /// Whether the element is read under a condition.
    pub(crate) fn is_chosen(&self) -> bool {
        self.found.condition.is_some()
    }

    /// Whether consecutive values of the loop are consecutive in memory.
    pub(crate) fn is_contiguous(&self, var: VarId) -> bool {
        self.found.is_contiguous(var)
    }

    /// Whether the axis is known to split into aligned groups of `count` values that are contiguous in memory, and that
    /// all meet or all fail the condition ([`FactorElement::is_in_chunks`]).
    pub(crate) fn is_in_chunks(&self, axis: &Axis, count: i64) -> bool {
        self.found.is_in_chunks(&axis.loops, count)
    }
}

impl Problem {
    /// Matches the task's first statements as a product, and the statements after them as its epilogue.
    ///
    /// # Errors
    /// The reason why the first statements are no product, the sum is of dtype bool, or an extent cannot be computed
    /// from the function's scalars.
    pub(crate) fn of(task: &Task<'_>) -> Result<Problem, Declined> {
        let Source { mut found, mut func, front, phases, elements } = Source::of(task)?;
        let own = front.statements;
        orient(&mut found.product);
        let reduction = found.product.reduction.clone();
        let dtype = func.buffer(reduction.buffer).dtype;
        Declined::when(dtype.is_bool(), "requires a sum of numbers; found a sum of bool")?;
        let [batch, mut m, mut n, mut k] = axes(&mut found)?;
        let left = found.product.left.clone();
        let right = found.product.right.clone();
        let loops = [&batch, &m, &n, &k].into_iter().flat_map(|axis| &axis.loops);
        let narrow_indices = NarrowIndices::of(loops, &mut func);
        let (mut a, mut b) = (Factor::of(left, &mut found, &func), Factor::of(right, &mut found, &func));
        let contiguous =
            |factor: &Factor, var: VarId| factor.element.as_ref().is_some_and(|one| one.is_contiguous(var));
        // The innermost loop should be contiguous: that of N in the result, that of M in `a`, that of K in `a` or `b`.
        let target = &found.product.target;
        n.make_last(|var| target.stride(var).as_constant() == Some(1));
        m.make_last(|var| contiguous(&a, var));
        k.loops = choose_k_order(&k.loops, [a.weighed(&m), b.weighed(&n)]);
        a.view = View::of(&a, [&m, &k, &batch], &func, &mut found.scope);
        b.view = View::of(&b, [&n, &k, &batch], &func, &mut found.scope);
        for (factor, free) in [(&mut a, &m), (&mut b, &n)] {
            factor.separable = factor.element.as_ref().and_then(|element| {
                let found_at = &element.found;
                let of = (found_at.buffer, found_at.indices.as_slice(), found_at.condition.as_ref());
                SeparableAddress::of(&mut found, &func, of, (free, &k))
            });
            factor.narrow_indices(&narrow_indices);
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
            narrow_indices,
            statements,
            own,
            phases,
        })
    }

    /// Whether M or N has no loop, so that a factor has no rows to tile.
    pub(crate) fn is_empty_side(&self) -> bool {
        self.m.loops.is_empty() || self.n.loops.is_empty()
    }
}

/// Groups the loops of a product by role: batch, M, N, K.
fn axes(found: &mut ProductNest) -> Result<[Axis; 4], Declined> {
    let mut axes: [Axis; 4] = Default::default();
    for (var, extent, role) in &found.product.loops {
        let extent = found.scope.expr(extent, DType::INT64);
        let extent = extent
            .ok_or_else(|| Declined::because("requires extents over the function's scalars; found another extent"))?;
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
    /// Builds a factor without narrowed indices, and without its view and separable address, which need the final order
    /// of the loops.
    fn of(value: Expr, found: &mut ProductNest, func: &PrimFunc) -> Factor {
        let narrow = without_casts(&value).clone();
        let element = FactorElement::of(&narrow, found, func).map(|found| Element {
            buffer: found.buffer,
            at: found.at.clone(),
            read: found.indices.clone(),
            found,
            counts: None,
        });
        Factor { value, narrow, element, view: Err(String::new()), separable: None }
    }

    /// Returns the factor as [`choose_k_order`] compares it, with `free` as its M or N axis.
    fn weighed(&self, free: &Axis) -> GemmOperand<'_> {
        let bytes = self.narrow.dtype().bytes().cast_signed().clamp(1, 16);
        let element = self.element.as_ref().map(|element| &element.found);
        GemmOperand { element, count: free.constant().unwrap_or(UNKNOWN), chunk: 16 / bytes }
    }

    /// Sets [`Element::counts`], and rewrites the indices and conditions to 32 bits where they fit.
    fn narrow_indices(&mut self, narrow_indices: &NarrowIndices) {
        self.value = narrow_indices.narrowed(&self.value);
        self.narrow = narrow_indices.narrowed(&self.narrow);
        if let Some(separable) = &mut self.separable {
            separable.narrow(narrow_indices);
        }
        if let Some(element) = &mut self.element {
            element.read = element.found.indices.iter().map(|index| narrow_indices.index(index)).collect();
            element.counts = element.found.condition.as_ref().map(|condition| narrow_indices.narrowed(condition));
        }
    }
}

/// Swaps the factors, and so M and N, if the result has a smaller constant stride (absolute) along an M loop than along
/// every N loop. Then consecutive columns are nearest in memory. Does nothing without M or N loops.
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
