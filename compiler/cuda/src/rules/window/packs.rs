//! Vector loads: neighbouring elements along the last axis are loaded by one instruction of up to 16 bytes.
//!
//! ```text
//! for v in 0..4: value[v] = inside ? data[(y * 64 + x) * 32 + c + v] : 0
//! →
//! rx_pack<float, 4> elements = {};
//! if (inside) elements = *(const rx_pack<float, 4>*)&data[(y * 64 + x) * 32 + c];
//! for v in 0..4: value[v] = elements.at[v]
//! ```
//!
//! Requires: the result's elements, and all loads that depend on the last axis, are contiguous along it and aligned;
//! the conditions of these loads do not depend on the last axis.

use super::problem::{Axis, target_is_in_chunks};
use crate::printer::{Kernel, types};
use crate::rules::epilogue::is_in_chunks;
use crate::rules::gemm::narrow::NarrowIndices;
use rx_loops::{Shared, SlidingWindow};
use rx_tir::rewrite::map_expr;
use rx_tir::{BinaryOp, Expr, PrimFunc, VarId};

/// A vector load along the last axis.
#[derive(Clone, Debug)]
pub(super) struct Pack {
    /// The load of an element.
    load: Expr,
    /// The conditions under which it is loaded; all must hold.
    conditions: Vec<Expr>,
    /// The placeholder that replaces the load in its factor.
    var: VarId,
}

/// The vector loads of both factors.
#[derive(Clone, Debug, Default)]
pub(super) struct Packing {
    /// The number of neighbours per thread; 1 if there are no vector loads.
    pub(super) width: i64,
    /// The vector loads in the data.
    data: Vec<Pack>,
    /// The vector loads in the weight.
    weight: Vec<Pack>,
    /// Whether data and weight depend on the last axis. It has no meaning if `width` is 1.
    of_lane: [bool; 2],
}

/// A factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The factor that slides, or the whole value if there is no weight.
    Data,
    /// The factor that does not slide.
    Weight,
}

impl Packing {
    /// Chooses the widest vectors, of 8, 4 or 2 elements, such that all loads that depend on the last axis are vector
    /// loads and the result's elements are contiguous and aligned. Other loads remain loads of single elements.
    /// The width is 1 if no vectors fit, or if no load depends on the last axis.
    pub(super) fn of(
        found: &mut SlidingWindow,
        func: &mut PrimFunc,
        data: &Expr,
        weight: Option<&Expr>,
        axes: &[Axis],
    ) -> Packing {
        let none = Packing { width: 1, of_lane: [true, true], ..Packing::default() };
        let Some(lane) = axes.last() else { return none };
        let of_lane = [data.uses(lane.var), weight.is_some_and(|weight| weight.uses(lane.var))];
        for width in [8, 4, 2] {
            let mut packs = |expr: &Expr| packs(found, func, (expr, &[]), lane, width);
            let (Some(data), Some(weight)) = (packs(data), weight.map_or(Some(Vec::new()), &mut packs)) else {
                continue;
            };
            if (data.is_empty() && weight.is_empty()) || !target_is_in_chunks(found, lane, width) {
                continue;
            }
            return Packing { width, data, weight, of_lane };
        }
        none
    }

    /// Returns the packing for data as a function of the position ([`Shared::value`]), or `None` if vectors do not fit
    /// any more.
    pub(super) fn moved(
        &self,
        found: &mut SlidingWindow,
        func: &mut PrimFunc,
        shared: &Shared,
        axes: &[Axis],
    ) -> Option<Packing> {
        let lane = axes.last()?;
        if self.width == 1 {
            return Some(self.clone());
        }
        let data = packs(found, func, (&shared.value, &[shared.first, shared.position]), lane, self.width)?;
        Some(Packing { data, ..self.clone() })
    }

    /// Returns the number of data values per thread and position: 1 if the data does not depend on the last axis.
    pub(super) fn data_width(&self) -> i64 {
        self.width_of(Side::Data)
    }

    /// Returns how many values of a factor a thread has along the last axis: the packing's width, or 1 if the factor
    /// does not depend on this axis.
    pub(super) fn width_of(&self, side: Side) -> i64 {
        if self.of_lane[side as usize] { self.width } else { 1 }
    }

    /// Replaces vector loads in the factors by their placeholders, and narrows indices to 32 bits where they fit.
    pub(super) fn narrow(&mut self, narrow_indices: &NarrowIndices, data: &mut Expr, weight: Option<&mut Expr>) {
        for (packs, factor) in [(&mut self.data, Some(data)), (&mut self.weight, weight)] {
            for pack in packs.iter_mut() {
                pack.load = narrow_indices.narrowed(&pack.load);
                pack.conditions = pack.conditions.iter().map(|condition| narrow_indices.narrowed(condition)).collect();
            }
            let Some(factor) = factor else { continue };
            *factor = map_expr(&narrow_indices.narrowed(factor), &mut |part| match part {
                Expr::Load { dtype, .. } => match packs.iter().find(|pack| pack.load == part) {
                    Some(pack) => Expr::Var { var: pack.var, dtype },
                    None => part,
                },
                // A vector is initialized with 0, so the select is redundant.
                Expr::Select { then, otherwise, .. } if is_zero(&otherwise) && is_read(&then, packs) => *then,
                part => part,
            });
        }
    }

    /// Emits the vector loads of a factor. The last axis's variable must be named with the first neighbour's value. In
    /// the following text, the placeholder of a load is element `v` of its vector.
    pub(super) fn read(&self, kernel: &mut Kernel<'_>, side: Side) -> Result<(), String> {
        let packs = if side == Side::Data { &self.data } else { &self.weight };
        for pack in packs {
            let Expr::Load { buffer, indices, dtype } = &pack.load else { continue };
            let storage = types::storage(*dtype)
                .ok_or_else(|| format!("requires a dtype that has a CUDA type; found {dtype}"))?;
            kernel.need("rx_pack");
            let place = kernel.place(*buffer, indices)?;
            let name = kernel.fresh_name(if side == Side::Data { "elements" } else { "weights" });
            let ctype = format!("rx_pack<{storage}, {}>", self.width);
            match pack.conditions.iter().cloned().reduce(Expr::and) {
                None => kernel.line(&format!("const {ctype} {name} = *(const {ctype}*)&{place};")),
                Some(condition) => {
                    let condition = kernel.operand(&condition, 0)?;
                    kernel.line(&format!("{ctype} {name} = {{}};"));
                    kernel.line(&format!("if ({condition}) {name} = *(const {ctype}*)&{place};"));
                }
            }
            kernel.name_value(pack.var, &types::from_storage(*dtype, &format!("{name}.at[v]")));
        }
        Ok(())
    }
}

/// Collects the vector loads of an expression: all loads that depend on the last axis. Returns `None` if
/// - one of them is no vector of at most 16 bytes, or has a condition that depends on the last axis;
/// - one of them occurs under different conditions;
/// - an operand of `and` or `or`, or the alternative of a select, has a load.
fn packs(
    found: &mut SlidingWindow,
    func: &mut PrimFunc,
    (expr, more): (&Expr, &[VarId]),
    lane: &Axis,
    width: i64,
) -> Option<Vec<Pack>> {
    let mut all = Vec::new();
    let mut at = Place { found, func, more, lane, width, conditions: Vec::new() };
    at.collect(expr, &mut all).then_some(all)
}

/// The state of [`packs`].
struct Place<'p> {
    found: &'p mut SlidingWindow,
    func: &'p mut PrimFunc,
    /// Variables that are loops in addition to those of the nest.
    more: &'p [VarId],
    /// The last axis.
    lane: &'p Axis,
    /// The number of elements per vector.
    width: i64,
    /// The conditions of the selects around the current expression.
    conditions: Vec<Expr>,
}

impl Place<'_> {
    /// Adds the vector loads of an expression to `all`. Returns `false` where [`packs`] returns `None`.
    fn collect(&mut self, expr: &Expr, all: &mut Vec<Pack>) -> bool {
        match expr {
            Expr::Load { buffer, indices, dtype } => {
                if !expr.uses(self.lane.var) {
                    return true;
                }
                let bytes = dtype.bytes().cast_signed() * self.width;
                let at = self.found.affine(self.func, self.more, *buffer, indices);
                let together = at.is_some_and(|at| is_in_chunks(&at, self.lane.var, &self.lane.extent, self.width));
                if let Some(known) = all.iter().find(|one| one.load == *expr) {
                    return known.conditions == self.conditions;
                }
                let var = self.func.add_var(self.func.buffer(*buffer).name, *dtype);
                all.push(Pack { load: expr.clone(), conditions: self.conditions.clone(), var });
                together && bytes <= 16 && !self.conditions.iter().any(|one| one.uses(self.lane.var))
            }
            Expr::Select { condition, then, otherwise } => {
                if !self.collect(condition, all) || otherwise.has_load() {
                    return false;
                }
                self.conditions.push((**condition).clone());
                let fits = self.collect(then, all);
                self.conditions.pop();
                fits
            }
            Expr::Binary { op: BinaryOp::And | BinaryOp::Or, .. } => !expr.has_load(),
            other => other.children().into_iter().all(|child| self.collect(child, all)),
        }
    }
}

/// Whether the expression is the placeholder of a vector load, possibly cast.
fn is_read(expr: &Expr, packs: &[Pack]) -> bool {
    match expr {
        Expr::Cast { value, .. } => is_read(value, packs),
        Expr::Var { var, .. } => packs.iter().any(|pack| pack.var == *var),
        _ => false,
    }
}

/// Whether the expression is the constant 0; −0.0 is not.
fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Float { value, .. } => *value == 0.0 && value.is_sign_positive(),
        Expr::Int { value, .. } => *value == 0,
        _ => false,
    }
}
