//! Vectorization: chooses how many contiguous elements a thread loads and stores at once, and the condition for it.
//!
//! ```text
//! rows of n elements, float32   →   n % 4 == 0: a kernel with vectors of 4 elements
//!                                   n % 4 != 0: a kernel with single elements
//! ```
//!
//! Every buffer begins at a multiple of 16 bytes, so vectors are aligned if certain extents and strides are multiples
//! of the vector width. A symbolic extent is known at the launch: there are usually kernels for both cases, and the
//! host gives those of the other case no blocks. Separate kernels are better than a branch in one, as the scalar kernel
//! needs fewer registers, and may have one thread per element instead of one per vector.
//!
//! Invariant: the conditions of a statement's variants exclude each other, and one of them holds for any extents.

use super::{Axis, Kind, Stages};
use rx_base::{DType, Dim};
use rx_loops::{Affine, Multiples};
use rx_tir::Expr;

/// A vector width, and the condition for it.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Way {
    /// The vector width in elements, with the integers that are assumed to be multiples of it.
    pub(in crate::rules) multiples: Multiples,
    /// The condition for this variant, which the host evaluates; `None` if it is the only variant. Exactly one of the
    /// conditions of a statement's variants holds.
    pub(in crate::rules) condition: Option<Expr>,
}

impl Way {
    /// Returns the vector width in elements.
    pub(in crate::rules) fn width(&self) -> i64 {
        self.multiples.number()
    }

    /// Returns the assumptions as text for the schedule's note; empty if there are none.
    pub(in crate::rules) fn when(&self) -> String {
        match self.multiples.given().count() {
            0 => String::new(),
            _ => format!(" if extents are multiples of {}", self.width()),
        }
    }
}

impl Stages {
    /// Returns the variants of vectors along the last column axis, the widest first. `has_tail`: the kernel has a
    /// scalar loop for a last group that is not whole; this only applies if the axis is the only column axis.
    pub(in crate::rules) fn ways(&self, has_tail: bool) -> Vec<Way> {
        let Some(last) = self.columns.last() else {
            return vec![Way { multiples: Multiples::of(1), condition: None }];
        };
        self.ways_along(last, has_tail && self.columns.len() == 1)
    }

    /// Returns the variants of vectors along an axis. The widest vector has 16 bytes of the narrowest element that is
    /// contiguous along the axis, and at most 8 elements; it is halved as long as the extent is known not to be a
    /// multiple of it, unless `is_cut`: the extent need not be a multiple. If it relies on assumptions, a second
    /// variant without them follows, or is the only one if the host cannot test them.
    pub(in crate::rules) fn ways_along(&self, along: &Axis, is_cut: bool) -> Vec<Way> {
        let elements: Vec<(&Affine, DType)> = self.vectors(along);
        let bytes = elements.iter().map(|(_, dtype)| dtype.bytes().cast_signed()).min();
        let wanted = bytes.map_or(1, |bytes| (16 / bytes.max(1)).clamp(1, 8));
        let mut width = wanted;
        while width > 1 && !is_cut && !Multiples::of(width).has(&along.dim) {
            width /= 2;
        }
        let plain = Way { multiples: Multiples::of(width), condition: None };
        let widths = std::iter::successors(Some(wanted), |width| Some(width / 2));
        let of = |width: i64| {
            let mut wide = Multiples::of(width);
            (is_cut || wide.assume(&along.dim)).then_some(wide)
        };
        let Some(mut wide) = widths.take_while(|width| *width > 1).find_map(of) else { return vec![plain] };
        for (element, _) in &elements {
            let mut with = wide.clone();
            if element.alignment(along.var).is_some_and(|mut dims| dims.all(|dim| with.assume(dim))) {
                wide = with;
            }
        }
        let Some(condition) = self.are_multiples(&wide) else { return vec![plain] };
        let others = Way { condition: Some(!condition.clone()), ..plain };
        vec![Way { multiples: wide, condition: Some(condition) }, others]
    }

    /// Returns the elements that element stages store, then those that are loaded unconditionally ([`Stages::reads`]);
    /// both only if they are contiguous along the axis.
    fn vectors(&self, along: &Axis) -> Vec<(&Affine, DType)> {
        let targets = self.stages.iter().filter(|stage| stage.target.is_stored && matches!(stage.kind, Kind::Element));
        let targets = targets.map(|stage| (&stage.target.element, stage.target.dtype));
        let reads = self.reads.iter().map(|read| (&read.element, read.dtype));
        targets.chain(reads).filter(|(element, _)| element.alignment(along.var).is_some()).collect()
    }

    /// Returns the condition under which all assumptions hold, for example `n % 4 == 0`; `None` if nothing is assumed,
    /// or if an assumed multiple is no expression over the function's scalars.
    fn are_multiples(&self, multiples: &Multiples) -> Option<Expr> {
        let number = Expr::int(multiples.number());
        let is_one = |dim: &Dim| {
            let value = self.scope.expr(dim, DType::INT64)?;
            Some(value.floor_mod(number.clone()).eq(Expr::int(0)))
        };
        let all: Vec<Expr> = multiples.given().map(is_one).collect::<Option<_>>()?;
        all.into_iter().reduce(|all, one| all.and(one))
    }
}

/// Returns `blocks` if the condition holds or there is none, otherwise 0 blocks: the kernel is not launched.
pub(in crate::rules) fn when(condition: &Option<Expr>, blocks: Expr) -> Expr {
    match condition {
        Some(condition) => Expr::select(condition.clone(), blocks, Expr::int(0)),
        None => blocks,
    }
}
