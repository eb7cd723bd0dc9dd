//! *Sliding-window reductions*: convolutions, poolings and similar nests. The taps of a window are found in the
//! indices: a reduction loop of constant extent is a tap if it occurs in an index together with a loop of the result.
//! There is one exception: if the windows of a loop do not overlap, but those of another loop do, the first loop is not
//! a tap but an ordinary reduction loop.
//!
//! For example, `out[o] = max over k of x[2 * o + k - 1]` slides with stride 2 and dilation 1. Windows of `k < 3`
//! overlap, so neighbouring outputs share loads. Requires an unpredicated reduction with an initial value, and affine
//! indices for a [`WindowIndex`]. Guarantees that different values of the axes write different elements.

use crate::accumulate::{Loop, Nest, Reduction, mentions};
use crate::affine::{Affine, has_access, linear};
use crate::roles::{Declined, Role, is_injective};
use crate::scope::Scope;
use crate::simplify::simplify_in;
use rx_base::Dim;
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::substitute;
use rx_tir::stmt::{IterKind, Stmt};

/// A reduction over sliding windows.
#[derive(Debug)]
pub struct SlidingWindow {
    /// The reduction, with simplified indices.
    pub reduction: Reduction,
    /// The loops of the result, outermost first.
    pub axes: Vec<Loop>,
    /// The loops over a window, of constant extents.
    pub taps: Vec<Loop>,
    /// The other reduction loops, such as input channels.
    pub sums: Vec<Loop>,
    /// The address of the result.
    pub target: Affine,
    nest: Nest,
    scope: Scope,
}

/// An index of the form `stride · axis + dilation · tap + rest`, where the rest does not depend on the two loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowIndex {
    /// The loop of the result.
    pub axis: VarId,
    /// The loop of the window.
    pub tap: VarId,
    /// The increase of the index from one window to the next; positive.
    pub stride: i64,
    /// The increase of the index from one tap to the next; negative if the window is reversed.
    pub dilation: i64,
}

impl WindowIndex {
    /// Whether neighbouring windows overlap: the window, with its tap in `loops`, is longer than the stride.
    fn overlaps(&self, loops: &[Loop]) -> bool {
        let extent = loops.iter().find(|one| one.var == self.tap).and_then(|one| one.extent.as_int());
        extent.is_some_and(|extent| self.stride <= (extent - 1).saturating_mul(self.dilation.abs()))
    }
}

/// The values that neighbouring windows along an axis read, as a function of their position, so that values that
/// windows share are loaded once.
///
/// For example, 4 outputs of 3 taps with stride 1 read 6 positions, not 12 values. Output `o` (counted from the first
/// of the neighbours) and tap `t` read position `o · of_output + t · of_tap + offset`.
#[derive(Clone, Debug, PartialEq)]
pub struct Shared {
    /// The placeholder for the first of the neighbouring outputs.
    pub first: VarId,
    /// The variable by which `value` refers to the position. Positions are counted from 0.
    pub position: VarId,
    /// The value at a position.
    pub value: Expr,
    /// The number of positions.
    pub count: i64,
    /// The number of positions from one output to the next.
    pub of_output: i64,
    /// The number of positions from one tap to the next; negative if the window is reversed.
    pub of_tap: i64,
    /// The position of tap 0 of the first output: not 0 only if `of_tap` is negative.
    pub offset: i64,
}

impl SlidingWindow {
    /// Matches the nest as a reduction over sliding windows. Loops that are split get new variables of `func`.
    ///
    /// # Errors
    /// If the nest has another form.
    pub fn of(nest: &Nest, func: &mut PrimFunc) -> Result<SlidingWindow, Declined> {
        Declined::when(
            nest.reduction().is_none() || nest.init.is_none(),
            "requires a reduction that updates one element; found none",
        )?;
        Declined::when(nest.predicate.is_some(), "requires a block without a predicate; found one with a predicate")?;
        let mut nest = nest.clone().with_split_loops(func);
        let of_loops = |var: &VarId| nest.loops.iter().any(|inner| inner.var == *var);
        if nest.loops.iter().any(|inner| mentions(&inner.extent, &of_loops)) {
            return Err(Declined("requires independent loop extents; found an extent that uses another loop"));
        }
        let mut scope = Scope::new(func);
        for inner in &nest.loops {
            scope.enter_loop(inner.var, func.var(inner.var).dtype, &Expr::int(0), &inner.extent);
        }
        nest.body = simplify_in(&mut scope, func, &nest.body);
        nest.init = nest.init.map(|init| simplify_in(&mut scope, func, &init));
        let reduction = nest.update()?;
        let target = Affine::sum(&mut scope, func, &nest.loops, reduction.buffer, &reduction.indices)
            .ok_or(Declined("requires affine indices of the result; found others"))?;
        let mut roles = Vec::new();
        for inner in &nest.loops {
            let role = match inner.kind {
                IterKind::Spatial => Role::Batch,
                IterKind::Reduce => Role::K,
                _ => return Err(Declined("requires spatial and reduction axes; found an axis of another kind")),
            };
            roles.push((inner.var, scope.dim(&inner.extent), role));
        }
        if !is_injective(&mut scope, &roles, &reduction.indices) {
            return Err(Declined(
                "requires an element of the result for each iteration of its loops; found loops that may share one",
            ));
        }
        let (axes, reduced): (Vec<Loop>, Vec<Loop>) =
            nest.loops.iter().cloned().partition(|inner| inner.kind == IterKind::Spatial);
        let mut sliding = SlidingWindow { reduction, axes, taps: Vec::new(), sums: Vec::new(), target, nest, scope };
        let value = sliding.reduction.value.clone();
        let (joined, slides) = sliding.joined(&value);
        // If some windows overlap, a reduction loop whose own windows do not overlap is no tap. It belongs to the other
        // reduction loops.
        let overlapping: Vec<WindowIndex> = slides.iter().filter(|slide| slide.overlaps(&reduced)).copied().collect();
        let counts_within = |var: VarId| {
            let mut own = slides.iter().filter(|slide| slide.tap == var).peekable();
            own.peek().is_some() && !overlapping.is_empty() && !overlapping.iter().any(|slide| slide.tap == var)
        };
        let is_tap =
            |inner: &Loop| joined.contains(&inner.var) && inner.extent.as_int().is_some() && !counts_within(inner.var);
        let (taps, sums): (Vec<Loop>, Vec<Loop>) = reduced.iter().cloned().partition(is_tap);
        Declined::when(taps.is_empty(), "requires a window that slides over an operand; found none")?;
        (sliding.taps, sliding.sums) = (taps, sums);
        Ok(sliding)
    }

    /// Whether, for any [`WindowIndex`] of the reduction, the next window begins at or before the last position of a
    /// window. With a dilation the two windows may still share no element: for example, the positions 0, 2 and 1, 3.
    pub fn overlaps(&mut self) -> bool {
        let (value, taps) = (self.reduction.value.clone(), self.taps.clone());
        self.window_indices_in(&value).iter().any(|slide| slide.overlaps(&taps))
    }

    /// Returns the window indices in an expression's loads whose tap is one of `taps`.
    pub fn window_indices_in(&mut self, expr: &Expr) -> Vec<WindowIndex> {
        let (_, slides) = self.joined(expr);
        slides.into_iter().filter(|slide| self.taps.iter().any(|tap| tap.var == slide.tap)).collect()
    }

    /// Returns the reduction loops that occur in an index of a load together with a loop of the result, and the window
    /// indices: those of affine indices with constant coefficients of magnitudes below 2²⁰ for both loops, positive for
    /// the loop of the result. Indices that contain a load, or a checked index as an operand, are ignored.
    fn joined(&mut self, expr: &Expr) -> (Vec<VarId>, Vec<WindowIndex>) {
        let mut indices: Vec<Expr> = Vec::new();
        expr.walk(&mut |part| {
            if let Expr::Load { indices: of, .. } = part {
                indices.extend(of.iter().map(|index| match index {
                    Expr::Checked { index, .. } => (**index).clone(),
                    index => index.clone(),
                }));
            }
        });
        let (mut joined, mut slides) = (Vec::new(), Vec::new());
        let of_kind = |kind: IterKind| self.nest.loops.iter().filter(move |inner| inner.kind == kind);
        for index in indices.iter().filter(|index| !has_access(index)) {
            let axes = of_kind(IterKind::Spatial).filter(|inner| index.uses(inner.var));
            let taps: Vec<VarId> =
                of_kind(IterKind::Reduce).filter(|inner| index.uses(inner.var)).map(|inner| inner.var).collect();
            let dim = self.scope.dim(index);
            let steps = linear(&self.scope, &self.nest.loops, dim).map(|(_, steps)| steps);
            for axis in axes {
                joined.extend(&taps);
                let Some(steps) = &steps else { continue };
                let step = |var: VarId| steps.get(&var).and_then(Dim::as_constant).filter(|step| step.abs() < 1 << 20);
                for tap in &taps {
                    if let (Some(stride @ 1..), Some(dilation)) = (step(axis.var), step(*tap)) {
                        let slide = WindowIndex { axis: axis.var, tap: *tap, stride, dilation };
                        if !slides.contains(&slide) {
                            slides.push(slide);
                        }
                    }
                }
            }
        }
        (joined, slides)
    }

    /// Expresses `expr` by the position in place of the slide's axis and tap, for `outputs` neighbours along the axis.
    /// Returns `None` if it is not proved that the value depends on the axis and tap by their position only, if they
    /// have different dtypes, or if neither an output nor a tap moves the position by 1.
    pub fn shared(&mut self, func: &mut PrimFunc, expr: &Expr, slide: WindowIndex, outputs: i64) -> Option<Shared> {
        let extent = |loops: &[Loop], var: VarId| loops.iter().find(|one| one.var == var).map(|one| one.extent.clone());
        let (taps, axis_extent) = (extent(&self.taps, slide.tap)?.as_int()?, extent(&self.axes, slide.axis)?);
        let common = gcd(slide.stride, slide.dilation.abs());
        let (of_output, of_tap) = (slide.stride / common, slide.dilation / common);
        let offset = if of_tap < 0 { -of_tap * (taps - 1) } else { 0 };
        let count = (outputs - 1) * of_output + (taps - 1) * of_tap.abs() + 1;
        let dtype = func.var(slide.axis).dtype;
        if func.var(slide.tap).dtype != dtype {
            return None;
        }
        let axis_name = func.var(slide.axis).name;
        let (first, position) = (func.add_var(axis_name, dtype), func.add_var(axis_name, dtype));
        let output = func.add_var(axis_name, dtype);
        let int = |value: i64| Expr::Int { value, dtype };
        let mark = self.scope.mark();
        for (var, extent) in [(first, axis_extent), (position, int(count)), (output, int(outputs))] {
            self.scope.enter_loop(var, dtype, &int(0), &extent);
        }
        let [at_first, at_position, at_output] = [first, position, output].map(|var| func.var_expr(var));
        // The position and one of axis and tap determine the other one. The value must not depend on the one that is
        // chosen freely.
        let (axis, tap, other) = match (of_output, of_tap) {
            (_, 1 | -1) => {
                let rest = at_position - at_output.clone() * int(of_output) - int(offset);
                (at_first + at_output, rest * int(of_tap), output)
            }
            (1, _) => {
                let tap = func.var_expr(slide.tap);
                (at_first + at_position - tap.clone() * int(of_tap) - int(offset), tap, slide.tap)
            }
            _ => return None,
        };
        let of = |var: VarId| match var {
            var if var == slide.axis => Some(axis.clone()),
            var if var == slide.tap => Some(tap.clone()),
            _ => None,
        };
        let moved = substitute(expr, &of);
        let value = self.simplified(func, moved);
        self.scope.leave(mark);
        let value = value.filter(|value| !value.uses(other) && !value.uses(slide.axis) && !value.uses(slide.tap))?;
        Some(Shared { first, position, value, count, of_output, of_tap, offset })
    }

    fn simplified(&mut self, func: &PrimFunc, expr: Expr) -> Option<Expr> {
        let Reduction { buffer, site, .. } = self.reduction;
        let stmt = Stmt::Store { buffer, indices: Vec::new(), value: expr, site };
        match simplify_in(&mut self.scope, func, &stmt) {
            Stmt::Store { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Returns the affine address of the access over the nest's loops and the variables `more`. Returns `None` if it is
    /// not affine, for example if an index is checked or read from memory.
    pub fn affine(&mut self, func: &PrimFunc, more: &[VarId], buffer: BufferId, indices: &[Expr]) -> Option<Affine> {
        let new = more.iter().map(|var| Loop { var: *var, extent: Expr::int(1), kind: IterKind::Spatial });
        let loops: Vec<Loop> = self.nest.loops.iter().cloned().chain(new).collect();
        Affine::sum(&mut self.scope, func, &loops, buffer, indices)
    }

    /// Returns a loop's extent as a symbolic integer.
    pub fn dim(&mut self, extent: &Expr) -> Dim {
        self.scope.dim(extent)
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}
