//! *Affine access maps*: the linear address of an element as a sum over loops, and fusion of loops that every access
//! traverses as one.
//!
//! For example, `A[i * 2 + 1, j]` in a buffer of shape `[n, 32]` has base 32 and the strides `i: 64`, `j: 1`.

use crate::accumulate::{Loop, mentions};
use crate::multiples::Multiples;
use crate::prove::{inside_atoms, take};
use crate::scope::Scope;
use rustc_hash::FxHashMap;
use rx_base::symbolic::Atom;
use rx_base::{DType, Dim, Name};
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};

/// The linear address of an element in a dense row-major buffer: `base + Σ loop · stride + Σ opaque · stride`, in
/// elements. Only [`Affine::with_opaque`] makes opaque terms.
///
/// The coefficients are [`Dim`]s, normalized with the facts that [`Scope`] has about the indices, so ranges can be
/// proved of them. [`crate::Poly`] in contrast is an index as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    /// The buffer.
    pub buffer: BufferId,
    /// The address where all loops and opaque indices are 0, in elements.
    pub base: Dim,
    /// The stride of each loop, in elements. Loops with stride 0 are left out.
    pub strides: FxHashMap<VarId, Dim>,
    /// Indices that are not affine in the loops, or that contain a bounds check or a load; each with the stride of its
    /// axis in elements.
    opaque: Vec<(Expr, Dim)>,
}

impl Affine {
    /// Returns the address of `buffer[indices]` over loops from 0. Returns `None` if the address is not affine, if its
    /// base or a stride cannot be expressed over variables, or if an index contains a bounds check or a load.
    pub fn of(func: &PrimFunc, loops: &[Loop], buffer: BufferId, indices: &[Expr]) -> Option<Affine> {
        let mut scope = Scope::new(func);
        for inner in loops {
            scope.enter_loop(inner.var, func.var(inner.var).dtype, &Expr::int(0), &inner.extent);
        }
        Affine::sum(&mut scope, func, loops, buffer, indices)
    }

    /// Returns the address of `buffer[indices]`. The loops must have been entered in `scope`. Returns `None` if the
    /// address is not affine, if its base or a stride cannot be expressed over variables, or if an index contains a
    /// bounds check or a load.
    pub(crate) fn sum(
        scope: &mut Scope,
        func: &PrimFunc,
        loops: &[Loop],
        buffer: BufferId,
        indices: &[Expr],
    ) -> Option<Affine> {
        if indices.iter().any(has_access) {
            return None;
        }
        let strides = dense_strides(scope, func, buffer);
        let terms = indices.iter().zip(&strides).map(|(index, stride)| &scope.dim(index) * stride);
        let address = terms.fold(Dim::constant(0), |sum, term| &sum + &term);
        let (base, strides) = linear(scope, loops, address)?;
        Some(Affine { buffer, base, strides, opaque: Vec::new() })
    }

    /// Returns the address of `buffer[indices]`. The loops must have been entered in `scope`. Indices that are not
    /// affine, or that contain a bounds check or a load, become opaque terms. For example, `A[C[i], j]` has the opaque
    /// term `C[i]` and the stride `j: 1`. Returns `None` if the stride of an opaque term cannot be expressed over
    /// variables, or if the sum of the other terms overflows.
    pub fn with_opaque(
        scope: &mut Scope,
        func: &PrimFunc,
        loops: &[Loop],
        buffer: BufferId,
        indices: &[Expr],
    ) -> Option<Affine> {
        let none = Affine { buffer, opaque: Vec::new(), base: Dim::constant(0), strides: FxHashMap::default() };
        let mut place = none.clone();
        for (index, stride) in indices.iter().zip(dense_strides(scope, func, buffer)) {
            let sum = match has_access(index) {
                true => None,
                false => {
                    let dim = &scope.dim(index) * &stride;
                    linear(scope, loops, dim)
                }
            };
            match sum {
                Some(sum) => place.add(sum),
                None if scope.is_expressible(&stride) => place.opaque.push((index.clone(), stride)),
                None => return None,
            }
        }
        // If the indices are the digits of one number, as in `A[x // 8, x % 8]` of shape `[n, 8]`, each index alone is
        // not affine, but the flat address is: `x`.
        if !place.opaque.is_empty()
            && !indices.iter().any(has_access)
            && let Some(flat) = flat(func, buffer, indices).map(|flat| scope.dim(&flat))
            && let Some(sum) = linear(scope, loops, flat)
        {
            place = none;
            place.add(sum);
        }
        place.strides.retain(|_, stride| stride.as_constant() != Some(0));
        let written_down = !place.base.is_error() && place.strides.values().all(|stride| !stride.is_error());
        written_down.then_some(place)
    }

    fn add(&mut self, (base, strides): (Dim, FxHashMap<VarId, Dim>)) {
        self.base = &self.base + &base;
        for (var, stride) in strides {
            let before = self.stride(var);
            self.strides.insert(var, &before + &stride);
        }
    }

    /// Returns the loop's stride in elements. For a loop that also occurs in an opaque index, this is only its share
    /// outside of that index.
    pub fn stride(&self, var: VarId) -> Dim {
        self.strides.get(&var).cloned().unwrap_or(Dim::constant(0))
    }

    /// Whether an opaque index mentions the loop.
    pub fn is_opaque(&self, var: VarId) -> bool {
        self.opaque.iter().any(|(index, _)| mentions(index, &|one| *one == var))
    }

    /// Whether the address depends on the loop, other than by its base.
    pub fn uses(&self, var: VarId) -> bool {
        self.strides.contains_key(&var) || self.is_opaque(var)
    }

    /// Whether no index is opaque. The address is then affine in the loops.
    pub fn is_sum(&self) -> bool {
        self.opaque.is_empty()
    }

    /// Returns the opaque indices: those that are not affine in the loops, or that contain a bounds check or a load.
    pub fn opaque(&self) -> impl Iterator<Item = &Expr> {
        self.opaque.iter().map(|(index, _)| index)
    }

    /// Replaces the opaque indices by the results of `map`.
    ///
    /// # Errors
    /// The first error of `map`.
    pub fn map_opaque<E>(&self, map: &mut dyn FnMut(&Expr) -> Result<Expr, E>) -> Result<Affine, E> {
        let opaque = self.opaque.iter().map(|(index, stride)| Ok((map(index)?, stride.clone())));
        Ok(Affine { opaque: opaque.collect::<Result<_, E>>()?, ..self.clone() })
    }

    /// Whether the access can be vectorized along the loop: the loop has stride 1 and is in no opaque index, and the
    /// base and all other strides are proved to be multiples of the vector width, which is the number of `multiples`.
    pub fn is_vector(&self, along: VarId, multiples: &Multiples) -> bool {
        self.alignment(along).is_some_and(|mut all| all.all(|dim| multiples.has(dim)))
    }

    /// If the loop has stride 1 and is in no opaque index, returns the dims that the vector width must divide so that
    /// vectors along the loop are aligned: the base and all other strides. Otherwise returns `None`.
    pub fn alignment(&self, along: VarId) -> Option<impl Iterator<Item = &Dim>> {
        let strides = self.strides.iter().filter(move |(var, _)| **var != along).map(|(_, stride)| stride);
        let all = [&self.base].into_iter().chain(self.opaque.iter().map(|(_, stride)| stride)).chain(strides);
        (self.stride(along).as_constant() == Some(1) && !self.is_opaque(along)).then_some(all)
    }

    /// Whether the access traverses `outer` and `inner` as one loop: no opaque index mentions them, and the stride of
    /// `outer` is `extent`, the extent of `inner`, times the stride of `inner`.
    fn is_joint(&self, outer: VarId, inner: VarId, extent: &Dim) -> bool {
        !self.is_opaque(outer) && !self.is_opaque(inner) && self.stride(outer) == &self.stride(inner) * extent
    }

    /// Returns the address as an `int64` expression: the opaque terms, the terms of `loops` in their order, and the
    /// base. Returns `None` if a stride or the base cannot be expressed.
    pub fn expr(&self, scope: &Scope, loops: &[VarId], func: &PrimFunc) -> Option<Expr> {
        let mut sum: Option<Expr> = None;
        let mut add = |part: Expr| {
            sum = Some(match sum.take() {
                Some(sum) => sum + part,
                None => part,
            });
        };
        let times = |factor: Expr, stride: &Dim| Some(factor * scope.expr(stride, DType::INT64)?);
        for (index, stride) in &self.opaque {
            add(times(index.clone().cast(DType::INT64), stride)?);
        }
        for var in loops {
            if let Some(stride) = self.strides.get(var) {
                add(times(func.var_expr(*var).cast(DType::INT64), stride)?);
            }
        }
        let base = scope.expr(&self.base, DType::INT64)?;
        Some(match sum {
            Some(sum) => match self.base.as_constant() {
                Some(constant) if constant < 0 => sum - Expr::int(constant.checked_neg()?),
                _ => sum + base,
            },
            None => base,
        })
    }
}

/// Whether a symbolic integer is proved to be a multiple of a constant for all values of its symbols.
pub fn is_multiple(dim: &Dim, of: i64) -> bool {
    Multiples::of(of).has(dim)
}

/// Fuses adjacent loops, outermost first, where every access traverses the pair as one loop. The variable of the inner
/// loop then counts both. `is_used` returns whether a variable occurs elsewhere; such loops are not fused. For example,
/// for `A[i, j]` of shape `[n, 32]`, the loops `i` of `n` and `j` of 32 become one loop `j` of `32 · n`.
pub fn join(loops: &mut Vec<(VarId, Dim)>, accesses: &mut [&mut Affine], is_used: &dyn Fn(VarId) -> bool) {
    let mut at = 1;
    while at < loops.len() {
        let ((outer, count), (inner, extent)) = (loops[at - 1].clone(), loops[at].clone());
        let both = &count * &extent;
        let joint = !is_used(outer)
            && !is_used(inner)
            && !both.is_error()
            && accesses.iter().all(|access| access.is_joint(outer, inner, &extent));
        if !joint {
            at += 1;
            continue;
        }
        accesses.iter_mut().for_each(|access| drop(access.strides.remove(&outer)));
        loops[at].1 = both;
        loops.remove(at - 1);
        at = at.max(2) - 1;
    }
}

/// Splits a dim into `base + Σ stride · loop`. Returns `None` if it is not affine in the loops, or if the base or a
/// stride cannot be expressed over variables. (TVM: `arith::DetectLinearEquation`.)
pub(crate) fn linear(scope: &Scope, loops: &[Loop], dim: Dim) -> Option<(Dim, FxHashMap<VarId, Dim>)> {
    let symbols: Vec<(VarId, Name)> = loops.iter().map(|inner| (inner.var, scope.symbol(inner.var))).collect();
    let (mut base, mut strides) = (dim, FxHashMap::default());
    for (var, symbol) in &symbols {
        let stride = split_linear(&mut base, *symbol)?;
        if stride.as_constant() != Some(0) {
            strides.insert(*var, stride);
        }
    }
    let constant = |dim: &Dim| {
        let mut constant = !dim.is_error();
        dim.for_each_symbol(&mut |name| constant &= symbols.iter().all(|(_, symbol)| *symbol != name));
        constant && scope.is_expressible(dim)
    };
    (constant(&base) && strides.values().all(constant)).then_some((base, strides))
}

/// Removes the symbol's terms from the dim and returns their coefficient, or `None` if the dim is not linear in the
/// symbol.
pub(crate) fn split_linear(dim: &mut Dim, symbol: Name) -> Option<Dim> {
    let squared = |(atom, exponent): &(Atom, u32)| *atom == Atom::Symbol(symbol) && *exponent > 1;
    if inside_atoms(dim, symbol) || dim.terms().iter().any(|(product, _)| product.iter().any(squared)) {
        return None;
    }
    let (coefficient, rest) = take(dim, &Atom::Symbol(symbol));
    *dim = rest;
    Some(coefficient)
}

/// Whether the expression reads memory or contains a checked index.
pub fn has_access(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Load { .. } | Expr::Checked { .. }))
}

/// Returns the flat index of an element in a dense row-major buffer.
fn flat(func: &PrimFunc, buffer: BufferId, indices: &[Expr]) -> Option<Expr> {
    let wide = |expr: &Expr| expr.clone().cast(DType::INT64);
    let next = |all: Expr, (index, extent): (&Expr, &Expr)| all * wide(extent) + wide(index);
    let (first, rest) = indices.split_first()?;
    Some(rest.iter().zip(func.buffer(buffer).shape.get(1..)?).fold(wide(first), next))
}

/// Returns the stride of each axis of a dense row-major buffer, in elements.
fn dense_strides(scope: &mut Scope, func: &PrimFunc, buffer: BufferId) -> Vec<Dim> {
    let shape = &func.buffer(buffer).shape;
    let mut strides = vec![Dim::constant(1); shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = &strides[axis] * &scope.dim(&shape[axis]);
    }
    strides
}
