//! The matched sliding-window reduction, and the outputs that each thread computes. [`super::kernel`] prints it.
//!
//! ```text
//! out[x, c] = Σ_k data[x + k, c] · weight[k, c],  x < 51200, c < 32, k < 3, float32
//! →
//! axes:  x with 4 outputs per thread, c with 4 neighbours per thread, so 12800 · 8 threads
//! block: tap k, positions 0 to 5 (6 vector loads of data instead of 12)
//! ```
//!
//! Here the device has 132 multiprocessors: 8 outputs along `x` would leave 51200 threads, fewer than 132 · 512.

use super::packs::Packing;
use crate::rules::epilogue::{Epilogue, Front, is_in_chunks};
use crate::rules::gemm::narrow::NarrowIndices;
use crate::rules::{Declined, Task};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_loops::{Loop, Shared, SlidingWindow, WindowIndex};
use rx_tir::{BinaryOp, Expr, PrimFunc, Stmt, VarId, is_evaluable};

/// The maximum number of taps of a window.
const MOST_TAPS: i64 = 128;

/// The maximum number of iterations per result if no windows overlap and there is no weight. Longer reductions are left
/// to the rules for reductions of rows.
const MOST_APART: i64 = 64;

/// The maximum number of output channels that read the same windows. With more, a matrix product is faster.
const MOST_CHANNELS: i64 = 8;

/// The maximum number of accumulators and window values together, for a thread with several outputs along one axis.
const MOST_VALUES: i64 = 96;

/// The number of threads per multiprocessor that hides memory latency.
const MANY_THREADS: i64 = 512;

/// The assumed value of a symbolic extent.
const UNKNOWN: i64 = 64;

/// A loop of the result, which is divided among threads.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The loop's variable.
    pub(super) var: VarId,
    /// The loop's extent, as an `int64`.
    pub(super) extent: Expr,
    /// The number of neighbouring values of the loop variable whose outputs one thread computes.
    pub(super) own: i64,
}

impl Axis {
    /// Returns the number of threads along the axis: the extent divided by [`Axis::own`], rounded up.
    pub(super) fn parts(&self) -> Expr {
        match self.own {
            1 => self.extent.clone(),
            own => (self.extent.clone() + Expr::int(own - 1)).floor_div(Expr::int(own)),
        }
    }

    /// Whether the last thread may have fewer values than the others.
    pub(super) fn is_ragged(&self) -> bool {
        self.own > 1 && self.extent.as_int().is_none_or(|extent| extent % self.own != 0)
    }
}

/// A block of neighbouring outputs of one thread along an axis whose windows overlap. The values that the windows share
/// are loaded once.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// The position of the axis in [`Problem::axes`].
    pub(super) axis: usize,
    /// The loop over the window along this axis, and its extent.
    pub(super) tap: (VarId, i64),
    /// The values at the positions that the outputs read, each position once.
    pub(super) shared: Shared,
}

/// A matched sliding-window reduction, `out[axes] = combine over taps and sums of data · weight`, and its epilogue.
pub(super) struct Problem {
    /// The task's function, with new variables: for split loops, placeholders, and the int32 copies of loop variables.
    pub(super) func: PrimFunc,
    /// The loops of the result. The last one is contiguous in the result, if any is.
    pub(super) axes: Vec<Axis>,
    /// The axis along which a thread has several outputs with overlapping windows, if there is one.
    pub(super) block: Option<Block>,
    /// The position in `axes` of an axis of output channels. Each thread computes all channels of this axis, because
    /// they read the same windows. The axis has more than one channel, and is not the last one. `None` if there is no
    /// such axis.
    pub(super) channels: Option<usize>,
    /// The loops over the window and their extents, without the block's tap.
    pub(super) taps: Vec<(VarId, i64)>,
    /// The other reduction loops, such as input channels, and their extents.
    pub(super) sums: Vec<(VarId, Expr)>,
    /// The operation that combines values: addition, maximum or minimum.
    pub(super) combine: BinaryOp,
    /// The initial value of the reduction, a constant.
    pub(super) initial: Expr,
    /// The value of the window's element, as a function of the axes, taps and sums. With a block, the placeholders
    /// [`Shared::first`] and [`Shared::position`] replace the block's axis and tap.
    pub(super) data: Expr,
    /// The factor that does not slide: a convolution's weight. `None`: `data` is the whole value.
    pub(super) weight: Option<Expr>,
    /// The vector loads of data and weight.
    pub(super) packing: Packing,
    /// The dtype of the accumulators.
    pub(super) sum: DType,
    /// Placeholders of the dtype [`Problem::sum`] for an accumulator, the data and the weight.
    pub(super) values: [VarId; 3],
    /// The elementwise statements that follow and are fused.
    pub(super) epilogue: Epilogue,
    /// The int32 copies of the loop variables.
    pub(super) narrow_indices: NarrowIndices,
    /// All statements that the schedule replaces.
    pub(super) statements: Vec<Stmt>,
}

/// The factors of the reduced value.
struct Parts {
    /// See [`Problem::data`].
    data: Expr,
    /// See [`Problem::weight`].
    weight: Option<Expr>,
}

impl Problem {
    /// Matches the first statement of a task, collects its epilogue, and chooses the outputs per thread.
    pub(super) fn of(task: &Task<'_>) -> Result<Problem, Declined> {
        let nest = task.nest(0)?;
        nest.update()?;
        let mut func = task.func.clone();
        let mut found = SlidingWindow::of(nest, &mut func)?;
        let uniform = |var: VarId| task.func.scalar_params().any(|one| one == var) || task.func.symbols.contains(&var);
        if !nest.loops.iter().all(|one| is_evaluable(&one.extent, &uniform)) {
            return Err(Declined::because(
                "requires loop extents that the host knows; found one computed in the kernel",
            ));
        }
        let dtype = func.buffer(found.reduction.buffer).dtype;
        let combine = found.reduction.combine;
        if dtype.is_bool() || !matches!(combine, BinaryOp::Add | BinaryOp::Max | BinaryOp::Min) {
            return Err(Declined::because("requires a sum, minimum or maximum of numbers; found another reduction"));
        }
        let taps = found.taps.iter().try_fold(1i64, |count, tap| count.checked_mul(tap.extent.as_int()?));
        Declined::when(
            !taps.is_some_and(|count| (1..=MOST_TAPS).contains(&count)),
            "requires windows of few elements, a constant number; found others",
        )?;
        let initial = found
            .reduction
            .init
            .clone()
            .ok_or_else(|| Declined::because("requires a reduction with an init; found none"))?;
        Declined::when(
            !matches!(initial, Expr::Int { .. } | Expr::Float { .. }),
            "requires a constant init; found a computed one",
        )?;
        let narrow = dtype.is_float() && dtype.bits < 32 || crate::printer::types::helper(dtype).is_some();
        let sum = if combine == BinaryOp::Add && narrow { DType::FLOAT32 } else { dtype };
        let order = thread_order(&found);
        let parts = Parts::of(&mut found, &order, sum)?;
        if parts.weight.is_none() && !found.overlaps() && iterations(&found).is_none_or(|count| count > MOST_APART) {
            return Err(Declined::because(
                "requires overlapping windows; found disjoint ones, as in a reduction of rows",
            ));
        }
        let mut axes: Vec<Axis> = order
            .iter()
            .map(|one| Axis { var: one.var, extent: one.extent.clone().cast(DType::INT64), own: 1 })
            .collect();
        let channels = parts.channels(&mut axes, task)?;
        let packing = Packing::of(&mut found, &mut func, &parts.data, parts.weight.as_ref(), &axes);
        let lane = axes.len() - 1;
        axes[lane].own = packing.width;
        let elements = elements(&mut found);
        let epilogue =
            Epilogue::of(task, &func, Front::plain(), (found.reduction.buffer, &found.reduction.indices), &elements);
        let mut problem = Problem {
            initial,
            data: parts.data,
            weight: parts.weight,
            packing,
            axes,
            channels,
            block: None,
            taps: found.taps.iter().map(|tap| (tap.var, tap.extent.as_int().unwrap_or(1))).collect(),
            sums: found.sums.iter().map(|one| (one.var, one.extent.clone().cast(DType::INT64))).collect(),
            combine,
            sum,
            values: ["sum", "value", "weight"].map(|text| func.add_var(name(text), sum)),
            epilogue,
            narrow_indices: NarrowIndices::default(),
            statements: Vec::new(),
            func,
        };
        problem.share(&mut found, task);
        let epilogue = &mut problem.epilogue;
        let func = &problem.func;
        epilogue.locate(&mut |buffer, indices| found.affine(func, &[], buffer, indices));
        problem.statements = task.statements.iter().take(epilogue.taken).map(|one| one.stmt.clone()).collect();
        problem.narrow();
        Ok(problem)
    }

    /// Gives each thread several outputs along an axis whose windows overlap, if registers and the number of threads
    /// suffice. The axis is neither the last one, nor that of the channels, nor one that the weight uses. Tries inner
    /// axes first, and 8, 4 and 2 outputs.
    fn share(&mut self, found: &mut SlidingWindow, task: &Task<'_>) {
        let lane = self.axes.len() - 1;
        let of_axis = |slide: &WindowIndex| self.axes.iter().position(|axis| axis.var == slide.axis);
        let mut slides: Vec<(usize, WindowIndex)> = found
            .window_indices_in(&self.data)
            .into_iter()
            .filter_map(|slide| Some((of_axis(&slide)?, slide)))
            .collect();
        slides.retain(|(axis, _)| *axis != lane && Some(*axis) != self.channels);
        slides.sort_by_key(|(axis, _)| std::cmp::Reverse(*axis));
        for (axis, slide) in slides {
            if self.weight.as_ref().is_some_and(|weight| weight.uses(slide.axis)) {
                continue;
            }
            let Some(tap) = self.taps.iter().position(|(var, _)| *var == slide.tap) else { continue };
            for outputs in [8, 4, 2] {
                if !self.is_worth(axis, outputs, task) {
                    continue;
                }
                let sums = outputs * self.of_channels() * self.packing.width;
                let (taps, width) = (self.taps[tap].1, self.packing.data_width());
                let fits =
                    |shared: &Shared| shared.count < outputs * taps && sums + shared.count * width <= MOST_VALUES;
                let shared = found.shared(&mut self.func, &self.data, slide, outputs);
                if let Some(shared) = shared.filter(fits) {
                    let packing = self.packing.moved(found, &mut self.func, &shared, &self.axes);
                    let Some(packing) = packing else { continue };
                    self.packing = packing;
                    self.data = shared.value.clone();
                    self.axes[axis].own = outputs;
                    self.block = Some(Block { axis, tap: self.taps.remove(tap), shared });
                    return;
                }
            }
        }
    }

    /// Whether enough threads remain with this number of outputs per thread. Two outputs along a constant extent of at
    /// least 2 are always accepted; more outputs than a constant extent never are.
    fn is_worth(&self, axis: usize, outputs: i64, task: &Task<'_>) -> bool {
        let size = |extent: &Expr| extent.as_int().unwrap_or(UNKNOWN);
        let threads = self.axes.iter().enumerate().map(|(at, one)| {
            let own = if at == axis { outputs } else { one.own };
            (size(&one.extent) + own - 1) / own
        });
        let threads = threads.fold(1i64, i64::saturating_mul);
        let known = self.axes[axis].extent.as_int();
        let few = outputs == 2 && known.is_some_and(|extent| extent >= 2);
        known.is_none_or(|extent| extent >= outputs)
            && (few || threads >= i64::from(task.target.units).saturating_mul(MANY_THREADS))
    }

    /// Returns the number of output channels per thread.
    pub(super) fn of_channels(&self) -> i64 {
        self.channels.map_or(1, |axis| self.axes[axis].own)
    }

    /// Returns the number of adjacent outputs along the last axis that each thread computes.
    pub(super) fn width(&self) -> i64 {
        self.packing.width
    }

    /// Returns the number of outputs per thread along the block's axis.
    pub(super) fn outputs(&self) -> i64 {
        self.block.as_ref().map_or(1, |block| self.axes[block.axis].own)
    }

    /// Replaces the vector loads of data and weight by placeholders, and narrows indices in both to 32 bits where they
    /// fit ([`Packing::narrow`]).
    fn narrow(&mut self) {
        let int = |value: i64| Expr::int(value);
        let mut loops: Vec<(VarId, Expr)> = self.axes.iter().map(|axis| (axis.var, axis.extent.clone())).collect();
        loops.extend(self.taps.iter().map(|(var, extent)| (*var, int(*extent))));
        loops.extend(self.sums.iter().cloned());
        if let Some(block) = &self.block {
            loops.push((block.tap.0, int(block.tap.1)));
            loops.push((block.shared.first, self.axes[block.axis].extent.clone()));
            loops.push((block.shared.position, int(block.shared.count)));
        }
        self.narrow_indices = NarrowIndices::of(loops.iter(), &mut self.func);
        self.packing.narrow(&self.narrow_indices, &mut self.data, self.weight.as_mut());
    }

    /// Describes the outputs per thread, for the scheduling remark.
    pub(super) fn note(&self) -> String {
        let mut parts = Vec::new();
        let name = |axis: usize| self.func.var(self.axes[axis].var).name;
        if let Some(block) = &self.block {
            let Shared { count, .. } = block.shared;
            let (outputs, taps) = (self.outputs(), block.tap.1);
            parts.push(format!(
                "{outputs} outputs per thread along {}: {count} loads instead of {}",
                name(block.axis),
                outputs * taps
            ));
        }
        if let Some(axis) = self.channels {
            parts.push(format!("{} channels along {} share their windows", self.of_channels(), name(axis)));
        }
        if self.width() > 1 {
            parts.push(format!("vectors of {} elements along {}", self.width(), name(self.axes.len() - 1)));
        }
        if parts.is_empty() {
            parts.push("1 output per thread".to_owned());
        }
        format!("{}{}", parts.join("; "), self.epilogue.note())
    }
}

/// Returns the loops of the result, the one that is contiguous in the result last, if there is one.
fn thread_order(found: &SlidingWindow) -> Vec<Loop> {
    let contiguous = |one: &&Loop| found.target.stride(one.var).as_constant() == Some(1);
    let lane = found.axes.iter().rev().find(contiguous).or(found.axes.last()).map(|one| one.var);
    let (last, others): (Vec<Loop>, Vec<Loop>) = found.axes.iter().cloned().partition(|one| Some(one.var) == lane);
    others.into_iter().chain(last).collect()
}

/// Returns the number of reduction iterations per result, or `None` if it is symbolic or overflows.
fn iterations(found: &SlidingWindow) -> Option<i64> {
    found.taps.iter().chain(&found.sums).try_fold(1i64, |count, one| count.checked_mul(one.extent.as_int()?))
}

/// Returns the number of elements that the reduction writes.
fn elements(found: &mut SlidingWindow) -> Dim {
    let extents: Vec<Expr> = found.axes.iter().map(|one| one.extent.clone()).collect();
    extents.iter().fold(Dim::constant(1), |all, extent| &all * &found.dim(extent))
}

impl Parts {
    /// Splits the value of a sum into a factor that slides and one that does not. If the reduction is no sum or the
    /// value no such product, all of it is `data`. Declines if the result has no loops, or if the sum is a matrix
    /// product: both or none of two factors slide, and each uses an axis of the result that the other does not.
    fn of(found: &mut SlidingWindow, order: &[Loop], sum: DType) -> Result<Parts, Declined> {
        let value = found.reduction.value.clone();
        Declined::when(order.is_empty(), "requires several outputs; found one")?;
        if let (BinaryOp::Add, Expr::Binary { op: BinaryOp::Mul, left, right }) = (found.reduction.combine, &value) {
            let slides = [left, right].map(|factor| !found.window_indices_in(factor).is_empty());
            let (left, right) = ((**left).clone().cast(sum), (**right).clone().cast(sum));
            match slides.into() {
                (true, false) => return Ok(Parts { data: left, weight: Some(right) }),
                (false, true) => return Ok(Parts { data: right, weight: Some(left) }),
                _ => {}
            }
            let own = |one: &Expr, other: &Expr| order.iter().any(|axis| one.uses(axis.var) && !other.uses(axis.var));
            if own(&left, &right) && own(&right, &left) {
                return Err(Declined::because("requires a weight that slides with no loop; found a matrix product"));
            }
        }
        Ok(Parts { data: value.cast(sum), weight: None })
    }

    /// Chooses an axis of output channels of which each thread computes all, since they read the same window. An axis
    /// of output channels is one that the weight uses and the data does not. Takes the first that is not the last axis,
    /// and returns its position. Returns `None` if there is no such axis, or if it has at most one channel.
    ///
    /// Declines where a matrix product is faster. Let `count` be the product of the extents of all axes of output
    /// channels, the last axis included. Declines if `count` is symbolic or more than [`MOST_CHANNELS`], and if it is
    /// more than one and the result has too few elements to occupy the device.
    fn channels(&self, axes: &mut [Axis], task: &Task<'_>) -> Result<Option<usize>, Declined> {
        let Some(weight) = &self.weight else { return Ok(None) };
        let is_free = |axis: &Axis| weight.uses(axis.var) && !self.data.uses(axis.var);
        let free: Vec<usize> = (0..axes.len()).filter(|at| is_free(&axes[*at])).collect();
        let count = free.iter().try_fold(1i64, |count, at| count.checked_mul(axes[*at].extent.as_int()?));
        if count.is_none_or(|count| count > MOST_CHANNELS) {
            return Err(Declined::because(
                "requires few output channels per window; found many, as in a matrix product",
            ));
        }
        let size = |axis: &Axis| axis.extent.as_int().unwrap_or(UNKNOWN);
        let outputs = axes.iter().map(size).fold(1i64, i64::saturating_mul);
        if outputs < i64::from(task.target.units) * 32 && count.is_some_and(|count| count > 1) {
            return Err(Declined::because(
                "requires enough outputs to occupy the device; found few, for which split-K is faster",
            ));
        }
        let last = axes.len() - 1;
        let Some(at) = free.into_iter().find(|at| *at != last) else { return Ok(None) };
        axes[at].own = axes[at].extent.as_int().unwrap_or(1).max(1);
        Ok((axes[at].own > 1).then_some(at))
    }
}

/// Whether an axis is known to split into whole groups of `width` neighbours, each contiguous and aligned in the result
/// ([`is_in_chunks`]).
pub(super) fn target_is_in_chunks(found: &SlidingWindow, axis: &Axis, width: i64) -> bool {
    is_in_chunks(&found.target, axis.var, &axis.extent, width)
}
