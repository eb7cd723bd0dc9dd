//! How many neighbours a thread reads and writes at once, and what must hold for it.
//!
//! Every buffer begins at a multiple of 16 bytes, so that a group of neighbours does where some extents are multiples of how
//! many they are. Of an extent that the call says, that is known at the launch: there is a kernel for when they are, and one
//! for when they are not, and the host gives one of them no blocks. Two kernels and not two ways in one, as the plain one
//! needs the fewer registers, and a thread of it has one element instead of a group.
//!
//! Invariant: the conditions of a statement's kernels exclude each other, and one of them holds for any extents.

use super::{Axis, Kind, Stages};
use rx_base::{DType, Dim};
use rx_schedule::{Affine, Multiples};
use rx_tir::Expr;

/// A way to go along an axis.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Way {
    /// Multiples of as many neighbours as a thread has.
    pub(in crate::rules) multiples: Multiples,
    /// When it is the one to go; a condition of the host's. Of all ways, one is.
    pub(in crate::rules) condition: Option<Expr>,
}

impl Way {
    /// Neighbours that a thread has.
    pub(in crate::rules) fn width(&self) -> i64 {
        self.multiples.number()
    }

    /// For the schedule's note: when there are as many neighbours.
    pub(in crate::rules) fn when(&self) -> String {
        match self.multiples.given().count() {
            0 => String::new(),
            _ => format!(" where extents are multiples of {}", self.width()),
        }
    }
}

impl Stages {
    /// The ways to go along the last axis of the columns; the widest first. `has_tail`: an end of the axis that is less than a
    /// group is dealt with apart, where it is the only one.
    pub(in crate::rules) fn ways(&self, has_tail: bool) -> Vec<Way> {
        let Some(last) = self.columns.last() else {
            return vec![Way { multiples: Multiples::of(1), condition: None }];
        };
        self.ways_along(last, has_tail && self.columns.len() == 1)
    }

    /// The ways to go along an axis: as many neighbours as are 16 bytes of the narrowest element that may be read or written
    /// so. `is_cut`: the end of the axis may cut a group.
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

    /// The elements that stand side by side along an axis, those that are written first.
    fn vectors(&self, along: &Axis) -> Vec<(&Affine, DType)> {
        let targets = self.stages.iter().filter(|stage| stage.target.is_stored && matches!(stage.kind, Kind::Element));
        let targets = targets.map(|stage| (&stage.target.element, stage.target.dtype));
        let reads = self.reads.iter().map(|read| (&read.element, read.dtype));
        targets.chain(reads).filter(|(element, _)| element.alignment(along.var).is_some()).collect()
    }

    /// What the host asks for what is given; nothing where nothing is.
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

/// So many blocks where the condition holds, if there is one, and none elsewhere.
pub(in crate::rules) fn when(condition: &Option<Expr>, blocks: Expr) -> Expr {
    match condition {
        Some(condition) => Expr::select(condition.clone(), blocks, Expr::int(0)),
        None => blocks,
    }
}
