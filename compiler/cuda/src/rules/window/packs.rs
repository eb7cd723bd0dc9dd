//! Elements of neighbouring channels that are read as one.

use super::problem::{Axis, target_is_in_chunks};
use crate::printer::{Kernel, types};
use crate::rules::epilogue::is_in_chunks;
use crate::rules::gemm::narrow::Twins;
use rx_schedule::{Shared, Sliding};
use rx_tir::rewrite::map_expr;
use rx_tir::{BinaryOp, Expr, PrimFunc, VarId};

/// An element whose neighbours along the last axis are read with it.
#[derive(Clone, Debug)]
pub(super) struct Pack {
    load: Expr,
    /// What must hold where it is read.
    conditions: Vec<Expr>,
    /// Stands for it in its factor.
    var: VarId,
}

/// How the factors are read.
#[derive(Clone, Debug, Default)]
pub(super) struct Packing {
    /// Neighbours that a thread has; 1: elements are read one by one.
    pub(super) width: i64,
    data: Vec<Pack>,
    weight: Vec<Pack>,
    /// Whether each depends on the last axis.
    of_lane: [bool; 2],
}

/// Which factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Data,
    Weight,
}

impl Packing {
    /// The widest there is.
    pub(super) fn of(
        found: &mut Sliding,
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

    /// The same where the data is told by position.
    pub(super) fn moved(
        &self,
        found: &mut Sliding,
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

    /// Neighbours of the data that a thread has: one where all channels read the same.
    pub(super) fn data_width(&self) -> i64 {
        self.width_of(Side::Data)
    }

    pub(super) fn width_of(&self, side: Side) -> i64 {
        if self.of_lane[side as usize] { self.width } else { 1 }
    }

    /// The factors with variables in the place of what is read in packs, all of it in 32 bits where that fits.
    pub(super) fn narrow(&mut self, twins: &Twins, data: &mut Expr, weight: Option<&mut Expr>) {
        for (packs, factor) in [(&mut self.data, Some(data)), (&mut self.weight, weight)] {
            for pack in packs.iter_mut() {
                pack.load = twins.narrowed(&pack.load);
                pack.conditions = pack.conditions.iter().map(|condition| twins.narrowed(condition)).collect();
            }
            let Some(factor) = factor else { continue };
            *factor = map_expr(&twins.narrowed(factor), &mut |part| match part {
                Expr::Load { dtype, .. } => match packs.iter().find(|pack| pack.load == part) {
                    Some(pack) => Expr::Var { var: pack.var, dtype },
                    None => part,
                },
                // What was not read is 0 already.
                Expr::Select { then, otherwise, .. } if is_zero(&otherwise) && is_read(&then, packs) => *then,
                part => part,
            });
        }
    }

    /// Prints the reads of a factor's packs, where the last axis has the value of the first neighbour. From here on `v` says in
    /// the factor's text which of the neighbours is meant.
    pub(super) fn read(&self, kernel: &mut Kernel<'_>, side: Side) -> Result<(), String> {
        let packs = if side == Side::Data { &self.data } else { &self.weight };
        for pack in packs {
            let Expr::Load { buffer, indices, dtype } = &pack.load else { continue };
            let storage = types::storage(*dtype).ok_or_else(|| format!("a buffer of dtype {dtype}"))?;
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

/// The packs an expression is made of: every element that depends on the last axis, each read under one condition, which does
/// not depend on it. `None` where there are others.
fn packs(
    found: &mut Sliding,
    func: &mut PrimFunc,
    (expr, more): (&Expr, &[VarId]),
    lane: &Axis,
    width: i64,
) -> Option<Vec<Pack>> {
    let mut all = Vec::new();
    let mut at = Place { found, func, more, lane, width, conditions: Vec::new() };
    at.collect(expr, &mut all).then_some(all)
}

struct Place<'p> {
    found: &'p mut Sliding,
    func: &'p mut PrimFunc,
    more: &'p [VarId],
    lane: &'p Axis,
    width: i64,
    conditions: Vec<Expr>,
}

impl Place<'_> {
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

/// Whether it is an element that was read, or a cast of it.
fn is_read(expr: &Expr, packs: &[Pack]) -> bool {
    match expr {
        Expr::Cast { value, .. } => is_read(value, packs),
        Expr::Var { var, .. } => packs.iter().any(|pack| pack.var == *var),
        _ => false,
    }
}

fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Float { value, .. } => *value == 0.0 && value.is_sign_positive(),
        Expr::Int { value, .. } => *value == 0,
        _ => false,
    }
}
