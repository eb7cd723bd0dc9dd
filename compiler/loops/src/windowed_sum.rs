//! *Windowed sums*: depthwise convolutions, and other sums of few products along a contiguous axis.
//!
//! ```text
//! for c, y, x: C[c, y, x] = Σ_(u, v) select(in bounds, A[c, y + u - 1, x + v - 1], 0) * B[c, u, v]
//! ```
//!
//! It becomes a [`WindowedSum`] with the axes `c, y, x`, the taps `u, v`, and conditions of the form `y + u - 1 >= 0`.
//! Requires `float32`, a constant number of at most 128 taps, and an axis that is contiguous in `C`, has stride 1 or 2
//! in `A` and stride 0 or 1 in `B`. Guarantees that an out-of-bounds tap is not loaded and contributes `0 * B`.
//! [`mod@crate::nests`] matches it after the matrix product has declined. The CPU back end vectorizes the last axis.

use crate::accumulate::Nest;
use crate::affine::{Affine, linear};
use crate::roles::{Declined, Product, Role};
use crate::scope::Scope;
use crate::simplify::simplify_in;
use rustc_hash::FxHashMap;
use rx_base::{DType, Dim};
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::stmt::Site;

/// The maximum number of terms of a windowed sum. Larger ones stay loop nests.
const MOST_TAPS: i64 = 128;

/// The sum `C[…] = Σ A[…] · B[…]` or `C[…] += Σ A[…] · B[…]` over the taps, for each value of the axes. Where a
/// condition is false, `A` counts as 0 and is not loaded.
///
/// All expressions are `int64` over the function's scalars and symbols. All elements that are read or written are
/// proved to be in their buffers, except from [`crate::schedule_unguarded`]. All three buffers have the dtype
/// `float32`.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowedSum {
    /// The axes of independent sums, outermost first. The last one has stride 1 in `C`, stride 0 or 1 in `B`, and
    /// stride 1 or 2 in `A`.
    pub axes: Vec<WindowAxis>,
    /// The loops over the terms of a sum, outermost first, of constant extents.
    pub taps: Vec<WindowAxis>,
    /// For each condition, its value at the first values of all axes and taps. `A` is loaded where the values of all
    /// conditions are not negative.
    pub conditions: Vec<Expr>,
    /// The factor that the conditions apply to.
    pub a: Place,
    /// The other factor.
    pub b: Place,
    /// The result.
    pub c: Place,
    /// Whether the sum is added to the values in `C`.
    pub accumulate: bool,
    /// The statement that a run-time error names.
    pub site: Site,
}

/// The address of the element at the first values of all axes and taps.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The buffer.
    pub buffer: BufferId,
    /// The flat index of the element, in elements.
    pub offset: Expr,
}

/// A loop with the stride of each address, and of each condition's value.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowAxis {
    /// The trip count.
    pub extent: Expr,
    /// The stride in `A`, in elements.
    pub a: Expr,
    /// The stride in `B`, in elements.
    pub b: Expr,
    /// The stride in `C`, in elements; 0 for a tap.
    pub c: Expr,
    /// The stride of each condition's value.
    pub conditions: Vec<Expr>,
}

/// A factor: its address, and the dims that are not negative where it is loaded, each as a base with its strides.
struct Factor {
    at: Affine,
    conditions: Vec<(Dim, FxHashMap<VarId, Dim>)>,
}

/// Matches the nest as a windowed sum.
///
/// # Errors
/// If the nest has another form.
pub(crate) fn windowed_sum(nest: &Nest, func: &PrimFunc) -> Result<WindowedSum, Declined> {
    let mut nest = nest.clone();
    let mut scope = Scope::new(func);
    for inner in &nest.loops {
        scope.enter_loop(inner.var, func.var(inner.var).dtype, &Expr::int(0), &inner.extent);
    }
    nest.body = simplify_in(&mut scope, func, &nest.body);
    let product = Product::of(&nest, &mut scope, func)?;
    Declined::when(
        func.buffer(product.reduction.buffer).dtype != DType::FLOAT32,
        "requires a windowed sum of float32; found another dtype",
    )?;
    let zero = |init: &Expr| matches!(init, Expr::Float { value, .. } if *value == 0.0 && value.is_sign_positive());
    Declined::when(
        product.reduction.init.as_ref().is_some_and(|init| !zero(init)),
        "requires a windowed sum that begins at 0; found another init",
    )?;
    let (taps, axes): (Vec<_>, Vec<_>) = product.loops.iter().partition(|(_, _, role)| *role == Role::K);
    let count = taps.iter().try_fold(1i64, |count, (_, extent, _)| count.checked_mul(extent.as_constant()?));
    if !count.is_some_and(|count| (1..=MOST_TAPS).contains(&count)) {
        return Err(Declined("requires a small constant number of taps; found more or a symbolic number"));
    }
    let mut factor = |expr: &Expr| factor(expr, &nest, &mut scope, func);
    let no_factor = Declined("requires factors that are elements of buffers; found a computed factor");
    let (left, right) = (factor(&product.left).ok_or(no_factor)?, factor(&product.right).ok_or(no_factor)?);
    let (lane, a, b) = axes
        .iter()
        .rev()
        .find_map(|(lane, ..)| arrange(*lane, &product.target, &left, &right).map(|(a, b)| (*lane, a, b)))
        .ok_or(Declined("requires a contiguous axis of the windowed sum; found none"))?;
    let site = product.reduction.site;
    let parts = Parts { scope: &scope, a, b, c: &product.target };
    let ordered = axes.iter().filter(|(var, ..)| *var != lane).chain(axes.iter().filter(|(var, ..)| *var == lane));
    let build = || {
        Some(WindowedSum {
            axes: ordered.map(|(var, extent, _)| parts.axis(*var, extent)).collect::<Option<_>>()?,
            taps: taps.iter().map(|(var, extent, _)| parts.axis(*var, extent)).collect::<Option<_>>()?,
            conditions: a.conditions.iter().map(|(base, _)| parts.expr(base)).collect::<Option<_>>()?,
            a: parts.place(&a.at)?,
            b: parts.place(&b.at)?,
            c: parts.place(&product.target)?,
            accumulate: product.reduction.init.is_none(),
            site,
        })
    };
    build().ok_or(Declined("requires strides over the function's scalars; found another stride"))
}

/// Matches an element of `float32`, or `select(condition, element, 0)` with a conjunction of affine inequalities.
fn factor(expr: &Expr, nest: &Nest, scope: &mut Scope, func: &PrimFunc) -> Option<Factor> {
    let (element, dims) = match expr {
        Expr::Select { condition, then, otherwise } => {
            let zero = matches!(&**otherwise, Expr::Float { value, .. } if *value == 0.0 && value.is_sign_positive());
            (&**then, if zero { scope.exactly(condition)? } else { return None })
        }
        element => (element, Vec::new()),
    };
    let Expr::Load { buffer, indices, dtype: DType::FLOAT32 } = element else { return None };
    let at = Affine::sum(scope, func, &nest.loops, *buffer, indices)?;
    let conditions = dims.into_iter().map(|dim| linear(scope, &nest.loops, dim)).collect::<Option<_>>()?;
    Some(Factor { at, conditions })
}

/// Orders the factors as `A` and `B` such that `lane` can be the last axis; `None` if it cannot.
fn arrange<'f>(lane: VarId, target: &Affine, left: &'f Factor, right: &'f Factor) -> Option<(&'f Factor, &'f Factor)> {
    let stride = |at: &Affine| at.stride(lane).as_constant();
    let fits = |a: &Factor, b: &Factor| {
        b.conditions.is_empty() && matches!(stride(&a.at), Some(1 | 2)) && matches!(stride(&b.at), Some(0 | 1))
    };
    match () {
        () if stride(target) != Some(1) => None,
        () if fits(left, right) => Some((left, right)),
        () if fits(right, left) => Some((right, left)),
        () => None,
    }
}

/// The sources of a window's expressions.
struct Parts<'p> {
    scope: &'p Scope,
    a: &'p Factor,
    b: &'p Factor,
    c: &'p Affine,
}

impl Parts<'_> {
    fn expr(&self, dim: &Dim) -> Option<Expr> {
        self.scope.expr(dim, DType::INT64)
    }

    fn place(&self, at: &Affine) -> Option<Place> {
        Some(Place { buffer: at.buffer, offset: self.expr(&at.base)? })
    }

    fn axis(&self, var: VarId, extent: &Dim) -> Option<WindowAxis> {
        let zero = Dim::constant(0);
        let conditions = self.a.conditions.iter().map(|(_, strides)| self.expr(strides.get(&var).unwrap_or(&zero)));
        Some(WindowAxis {
            extent: self.expr(extent)?,
            a: self.expr(&self.a.at.stride(var))?,
            b: self.expr(&self.b.at.stride(var))?,
            c: self.expr(&self.c.stride(var))?,
            conditions: conditions.collect::<Option<_>>()?,
        })
    }
}
