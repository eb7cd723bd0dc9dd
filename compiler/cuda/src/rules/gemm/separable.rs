//! Separable addresses: splits an element's address, and the conditions under which it is read, into a row part and a K
//! part.
//!
//! ```text
//! select(0 <= oy + ky - 1 < H, x[(oy + ky - 1) * W + ox + kx], 0)        // rows oy, ox; K ky, kx
//! →
//! place = [oy * W + ox - W]  +  [ky * W + kx]                            // row part + K part
//! range = 0 <= [oy - 1] + [ky] <= H - 1
//! ```
//!
//! Requires: no term of the address or of a condition depends on both rows and K; the condition is a conjunction of
//! inequalities; no index is loaded from memory or bounds-checked; the buffer has no explicit strides. Guarantees: the
//! sum of the parts is the address, and the conditions hold for the same elements. A thread keeps the row parts in
//! registers for all K tiles and recomputes the K parts only.

use super::narrow::NarrowIndices;
use super::problem::Axis;
use rx_base::{DType, Dim};
use rx_loops::ProductNest;
use rx_loops::affine::has_access;
use rx_loops::scope::Scope;
use rx_tir::{BufferId, Expr, PrimFunc, VarId};

/// A separable address and the conditions under which the element is read.
#[derive(Clone, Debug)]
pub(crate) struct SeparableAddress {
    pub(crate) buffer: BufferId,
    /// The dtype of the buffer's elements.
    pub(crate) dtype: DType,
    /// The linear index of the element in the buffer.
    pub(crate) place: Split,
    /// The positive constant step by which the address moves with the linear K index, if there is one and the extents
    /// of K are constants. The address then needs no values of the K loops.
    pub(crate) by_index: Option<i64>,
    /// Conditions that do not depend on K.
    pub(crate) of_row: Vec<Expr>,
    /// Conditions that depend on K but not on the row.
    pub(crate) of_sum: Vec<Expr>,
    /// Conditions that depend on both, as a sum of a row part and a K part.
    pub(crate) ranges: Vec<Bounded>,
    /// By how much the row part of the address, then that of each range, grows from one value of the innermost free
    /// loop to the next. `None` if one of them does not grow by a constant.
    pub(crate) steps: Option<Vec<i64>>,
}

/// A separated sum: `sum` has the terms that depend on K, `row` all others (M or N, the batch, constants).
#[derive(Clone, Debug)]
pub(crate) struct Split {
    /// The part that a thread computes once per tile of the result.
    pub(crate) row: Expr,
    /// The part that changes with the K tile.
    pub(crate) sum: Expr,
}

/// A condition on the sum of a row part and a K part: `0 <= row + sum`, and `row + sum <= last` if there is an upper
/// bound.
#[derive(Clone, Debug)]
pub(crate) struct Bounded {
    /// The sum that is compared.
    pub(crate) split: Split,
    /// The inclusive upper bound, which depends neither on the row nor on K; `None` if there is none.
    pub(crate) last: Option<Expr>,
}

/// A separated sum in symbolic form: as in [`Split`], `sum` has the terms that depend on K, `row` all others.
#[derive(Clone)]
struct Parts {
    row: Dim,
    sum: Dim,
}

impl SeparableAddress {
    /// Separates the access `buffer[indices]`, which is read under `condition`, for the free axis and the K axis.
    ///
    /// Returns `None` if, for example, a term depends on both axes, an index contains a load or a bounds check, the
    /// condition is not a conjunction of inequalities ([`Scope::exactly`]), the buffer has explicit strides, or a part
    /// cannot be written as an expression.
    pub(super) fn of(
        found: &mut ProductNest,
        func: &PrimFunc,
        (buffer, indices, condition): (BufferId, &[Expr], Option<&Expr>),
        (free, sum): (&Axis, &Axis),
    ) -> Option<SeparableAddress> {
        let scope = &mut found.scope;
        let shape = &func.buffer(buffer).shape;
        if func.buffer(buffer).strides.is_some() || indices.len() != shape.len() {
            return None;
        }
        let mut number = Dim::constant(0);
        for (index, extent) in indices.iter().zip(shape) {
            if has_access(index) {
                return None;
            }
            number = &(&number * &scope.dim(extent)) + &scope.dim(index);
        }
        let conditions = match condition {
            None => Vec::new(),
            Some(condition) => scope.exactly(condition)?,
        };
        let vars = |axis: &Axis| axis.loops.iter().map(|(var, _)| *var).collect::<Vec<VarId>>();
        let (rows, sums) = (vars(free), vars(sum));
        let splitter = Splitter { scope, rows: &rows, sums: &sums };
        let place = splitter.split(&number)?;
        let by_index = splitter.by_index(&place.sum, sum);
        let (mut of_row, mut of_sum, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for dim in conditions {
            match (splitter.mentions(&dim, &rows), splitter.mentions(&dim, &sums)) {
                (true, true) => both.push((splitter.split(&dim)?, dim)),
                (false, true) => of_sum.push(splitter.expr(&dim)?.ge(Expr::int(0))),
                (_, false) => of_row.push(splitter.expr(&dim)?.ge(Expr::int(0))),
            }
        }
        let last = rows.last().copied();
        let step = |dim: &Dim| match last {
            None => Some(0),
            Some(last) => splitter.step(dim, last),
        };
        let mut steps = step(&place.row).map(|step| vec![step]);
        let mut ranges = Vec::new();
        while let Some((parts, dim)) = both.pop() {
            // If `dim + other` depends on neither rows nor K, the conditions `dim >= 0` and `other >= 0` are the bounds
            // of one range: `0 <= dim <= dim + other`. For example, `oy + ky - 1 >= 0` and `H - oy - ky >= 0` are the
            // range `0 <= oy + ky - 1 <= H - 1`.
            let opposite = both.iter().position(|(_, other)| splitter.is_uniform(&(&dim + other)));
            let (mut parts, mut end) = (parts, None);
            if let Some(at) = opposite {
                let (others, other) = both.remove(at);
                end = Some(splitter.expr(&(&dim + &other))?);
                // If the first row term of `dim` has a negative coefficient, the range is written in terms of `other`.
                if parts.row.terms().first().is_some_and(|(_, coefficient)| *coefficient < 0) {
                    parts = others;
                }
            }
            steps = steps.zip(step(&parts.row)).map(|(mut steps, step)| {
                steps.push(step);
                steps
            });
            ranges.push(Bounded { split: splitter.written(&parts)?, last: end });
        }
        let place = splitter.written(&place)?;
        Some(SeparableAddress {
            buffer,
            dtype: func.buffer(buffer).dtype,
            place,
            by_index,
            of_row,
            of_sum,
            ranges,
            steps,
        })
    }

    /// Rewrites the parts and conditions to 32 bits where they fit. The emitted code adds the two parts, so both keep 64
    /// bits if only their sum does not fit.
    pub(super) fn narrow(&mut self, narrow_indices: &NarrowIndices) {
        let splits = self.ranges.iter_mut().map(|range| &mut range.split).chain([&mut self.place]);
        for split in splits {
            let (row, sum) = (narrow_indices.index(&split.row), narrow_indices.index(&split.sum));
            let both = narrow_indices.index(&(split.row.clone() + split.sum.clone()));
            let is_narrow = |part: &Expr| part.dtype() == DType::INT32;
            if is_narrow(&both) || !(is_narrow(&row) && is_narrow(&sum)) {
                (split.row, split.sum) = (row, sum);
            }
        }
        for condition in self.of_row.iter_mut().chain(&mut self.of_sum) {
            *condition = narrow_indices.narrowed(condition);
        }
    }
}

/// Splits symbolic sums by the loops they depend on.
struct Splitter<'s> {
    scope: &'s Scope,
    rows: &'s [VarId],
    sums: &'s [VarId],
}

impl Splitter<'_> {
    fn expr(&self, dim: &Dim) -> Option<Expr> {
        self.scope.expr(dim, DType::INT64)
    }

    /// Converts symbolic parts to expressions.
    fn written(&self, parts: &Parts) -> Option<Split> {
        Some(Split { row: self.expr(&parts.row)?, sum: self.expr(&parts.sum)? })
    }

    /// Whether the dim depends on one of the variables.
    fn mentions(&self, dim: &Dim, vars: &[VarId]) -> bool {
        let mut found = false;
        dim.for_each_symbol(&mut |name| found |= vars.iter().any(|var| self.scope.symbol(*var) == name));
        found
    }

    /// Whether the dim depends on neither rows nor K.
    fn is_uniform(&self, dim: &Dim) -> bool {
        !dim.is_error() && !self.mentions(dim, self.rows) && !self.mentions(dim, self.sums)
    }

    /// Splits a sum term by term; `None` if a term depends on both rows and K, or if the sum is an error.
    fn split(&self, dim: &Dim) -> Option<Parts> {
        if dim.is_error() {
            return None;
        }
        let mut sum = Dim::constant(0);
        for (product, coefficient) in dim.terms() {
            let mut term = Dim::constant(*coefficient);
            for (atom, exponent) in product {
                for _ in 0..*exponent {
                    term = &term * &Dim::from(atom.clone());
                }
            }
            match (self.mentions(&term, self.rows), self.mentions(&term, self.sums)) {
                (true, true) => return None,
                (false, true) => sum = &sum + &term,
                _ => {}
            }
        }
        Some(Parts { row: dim - &sum, sum })
    }

    /// Returns the positive constant `step` if `dim` is `step` times the linear index of the axis, and all extents of
    /// the axis are constants.
    fn by_index(&self, dim: &Dim, axis: &Axis) -> Option<i64> {
        let step = self.step(dim, axis.loops.last()?.0).filter(|step| *step > 0)?;
        let (mut linear, mut below) = (Dim::constant(0), Dim::constant(step));
        for (var, extent) in axis.loops.iter().rev() {
            linear = &linear + &(&Dim::symbol(self.scope.symbol(*var)) * &below);
            below = &below * &Dim::constant(extent.as_int()?);
        }
        (linear == *dim).then_some(step)
    }

    /// Returns the constant by which `dim` grows from one value of a loop to the next.
    fn step(&self, dim: &Dim, var: VarId) -> Option<i64> {
        let symbol = self.scope.symbol(var);
        let next = dim.substitute(&|name| (name == symbol).then(|| &Dim::symbol(symbol) + &Dim::constant(1)));
        (&next - dim).as_constant()
    }
}
