//! Elements by their number in memory, as sums over loops; and neighbouring loops that every access walks as one.

use crate::accumulate::{Loop, mentions};
use crate::multiples::Multiples;
use crate::roles::{has_access, linear};
use crate::scope::Scope;
use rustc_hash::FxHashMap;
use rx_base::{DType, Dim};
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};

/// An element of a dense, row-major buffer: `base + Σ opaque · stride + Σ loop · stride`, counted in elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// The buffer.
    pub buffer: BufferId,
    /// Indices that are no sums over the loops, each with the elements between its neighbours.
    opaque: Vec<(Expr, Dim)>,
    base: Dim,
    strides: FxHashMap<VarId, Dim>,
}

impl Element {
    /// The element that indices name. `scope` has the loops entered. `None` where its number cannot be written down.
    pub fn of(scope: &mut Scope, func: &PrimFunc, loops: &[Loop], buffer: BufferId, indices: &[Expr]) -> Option<Self> {
        let strides = dense_strides(scope, func, buffer);
        let mut element = Element { buffer, opaque: Vec::new(), base: Dim::constant(0), strides: FxHashMap::default() };
        for (index, stride) in indices.iter().zip(strides) {
            let sum = match has_access(index) {
                true => None,
                false => {
                    let dim = &scope.dim(index) * &stride;
                    linear(scope, loops, dim)
                }
            };
            match sum {
                Some(sum) => element.add(sum),
                None if scope.is_expressible(&stride) => element.opaque.push((index.clone(), stride)),
                None => return None,
            }
        }
        // The digits of a number, each on an axis of its own, may be that number.
        if !element.opaque.is_empty()
            && !indices.iter().any(has_access)
            && let Some(flat) = flat(func, buffer, indices).map(|flat| scope.dim(&flat))
            && let Some(sum) = linear(scope, loops, flat)
        {
            element = Element { buffer, opaque: Vec::new(), base: Dim::constant(0), strides: FxHashMap::default() };
            element.add(sum);
        }
        element.strides.retain(|_, stride| stride.as_constant() != Some(0));
        let written_down = !element.base.is_error() && element.strides.values().all(|stride| !stride.is_error());
        written_down.then_some(element)
    }

    fn add(&mut self, (base, strides): (Dim, FxHashMap<VarId, Dim>)) {
        self.base = &self.base + &base;
        for (var, stride) in strides {
            let before = self.stride(var);
            self.strides.insert(var, &before + &stride);
        }
    }

    /// Elements from one value of a loop to the next, where the loop occurs in no opaque index.
    pub fn stride(&self, var: VarId) -> Dim {
        self.strides.get(&var).cloned().unwrap_or(Dim::constant(0))
    }

    /// Whether an index that is no sum over the loops mentions the loop.
    pub fn is_opaque(&self, var: VarId) -> bool {
        self.opaque.iter().any(|(index, _)| mentions(index, &|one| *one == var))
    }

    /// Whether the element depends on the loop.
    pub fn uses(&self, var: VarId) -> bool {
        self.strides.contains_key(&var) || self.is_opaque(var)
    }

    /// Whether all indices are sums over the loops.
    pub fn is_sum(&self) -> bool {
        self.opaque.is_empty()
    }

    /// Indices that are no sums over the loops.
    pub fn opaque(&self) -> impl Iterator<Item = &Expr> {
        self.opaque.iter().map(|(index, _)| index)
    }

    /// As it is with the opaque indices replaced.
    pub fn map_opaque<E>(&self, map: &mut dyn FnMut(&Expr) -> Result<Expr, E>) -> Result<Element, E> {
        let opaque = self.opaque.iter().map(|(index, stride)| Ok((map(index)?, stride.clone())));
        Ok(Element { opaque: opaque.collect::<Result<_, E>>()?, ..self.clone() })
    }

    /// Whether neighbours along the loop are neighbours in memory, and every group of as many as `multiples` are of, counted
    /// from 0, begins at a multiple.
    pub fn is_vector(&self, along: VarId, multiples: &Multiples) -> bool {
        self.alignment(along).is_some_and(|mut all| all.all(|dim| multiples.has(dim)))
    }

    /// Where neighbours along the loop are neighbours in memory, what must be multiples of a number so that groups of so many
    /// begin at multiples.
    pub fn alignment(&self, along: VarId) -> Option<impl Iterator<Item = &Dim>> {
        let strides = self.strides.iter().filter(move |(var, _)| **var != along).map(|(_, stride)| stride);
        let all = [&self.base].into_iter().chain(self.opaque.iter().map(|(_, stride)| stride)).chain(strides);
        (self.stride(along).as_constant() == Some(1) && !self.is_opaque(along)).then_some(all)
    }

    /// Whether `outer` and `inner`, `extent` values of it, are walked as one loop by the name of `inner`.
    fn is_joint(&self, outer: VarId, inner: VarId, extent: &Dim) -> bool {
        !self.is_opaque(outer) && !self.is_opaque(inner) && self.stride(outer) == &self.stride(inner) * extent
    }

    /// Its number, an `int64`.
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

/// Whether every value of a symbolic integer is a multiple of a constant.
pub fn is_multiple(dim: &Dim, of: i64) -> bool {
    Multiples::of(of).has(dim)
}

/// Joins neighbouring loops, outermost first, that all elements walk as one: the inner one's variable then counts both.
/// `is_used` says which variables occur elsewhere, so that they must stay.
pub fn join(loops: &mut Vec<(VarId, Dim)>, elements: &mut [&mut Element], is_used: &dyn Fn(VarId) -> bool) {
    let mut at = 1;
    while at < loops.len() {
        let ((outer, count), (inner, extent)) = (loops[at - 1].clone(), loops[at].clone());
        let both = &count * &extent;
        let joint = !is_used(outer)
            && !is_used(inner)
            && !both.is_error()
            && elements.iter().all(|element| element.is_joint(outer, inner, &extent));
        if !joint {
            at += 1;
            continue;
        }
        elements.iter_mut().for_each(|element| drop(element.strides.remove(&outer)));
        loops[at].1 = both;
        loops.remove(at - 1);
        at = at.max(2) - 1;
    }
}

/// The number of an element in a dense, row-major buffer.
fn flat(func: &PrimFunc, buffer: BufferId, indices: &[Expr]) -> Option<Expr> {
    let wide = |expr: &Expr| expr.clone().cast(DType::INT64);
    let next = |all: Expr, (index, extent): (&Expr, &Expr)| all * wide(extent) + wide(index);
    let (first, rest) = indices.split_first()?;
    Some(rest.iter().zip(func.buffer(buffer).shape.get(1..)?).fold(wide(first), next))
}

/// Elements between neighbours along each axis of a dense, row-major buffer.
fn dense_strides(scope: &mut Scope, func: &PrimFunc, buffer: BufferId) -> Vec<Dim> {
    let shape = &func.buffer(buffer).shape;
    let mut strides = vec![Dim::constant(1); shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = &strides[axis] * &scope.dim(&shape[axis]);
    }
    strides
}
