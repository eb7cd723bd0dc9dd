//! Schedule rule `reduction`: splits reductions of few long rows. Several blocks each reduce one part of a row, and a
//! second kernel combines their results.
//!
//! ```text
//! for i, k: s[i] += x[i, k]                        // few rows i, many elements k
//! →
//! kernel 1, block (i, p): parts[p, i] = sum of the elements of part p of row i     // 32 or more rows, if strided
//! kernel 2, warp i:       s[i] = sum of parts[p, i] over p          // thread i, if rows are strided
//! ```
//!
//! Requires: rows that `check` accepts, as for `rows`; one loop with a reduction, followed only by values of the row; a
//! constant number of rows, too few to occupy the device; rows that are long enough for two parts, or of symbolic
//! length. If a row is needed again after its reduction, as in a softmax, only the statements up to the first reduction
//! are taken, and only for very few and very long rows. Guarantees: no atomics, so the order of a sum is the same in
//! every run. In the second kernel, a thread combines the parts of a strided row one after the other; lane `l` of a
//! warp combines the parts `l`, `l + 32`, … of a contiguous row, and then shuffles combine the lanes.
//!
//! Reference: TVM's primitive `rfactor` splits a reduction in the same way.

use super::super::row_pipeline::collect::{Form, collect};
use super::super::row_pipeline::lanes::{Held, Lanes};
use super::super::row_pipeline::print::Printer;
use super::super::row_pipeline::vectors::{Way, when};
use super::super::row_pipeline::{Item, Kind, MANY_BLOCKS, Stages};
use super::layout::{Layout, WORDS};
use super::{Declined, Frame, KernelBody, Rule, Schedule, Task, across, check, is_one_reduction, is_strided};
use crate::printer::Kernel;
use crate::rules::Scratch;
use crate::source::LaunchShape;
use rx_base::DType;
use rx_loops::Multiples;
use rx_tir::Expr;
use std::rc::Rc;

/// The rule `reduction`.
pub(in crate::rules) const RULE: Rule = Rule {
    name: "reduction",
    summary: "Reductions of few long rows: several blocks per row, then a second kernel that combines their results.",
    take,
};

/// The number of blocks that are enough to occupy a device: two per multiprocessor of an H100.
const ENOUGH_BLOCKS: i64 = 264;

/// The number of rows below which one block per row leaves most of a device idle.
const FEW_ROWS: i64 = 64;

/// The row length from which on one block per row is slow.
const LONG_ROW: i64 = 32_768;

/// The targeted minimum number of elements per part of a contiguous row. For strided rows it is a 32nd of this.
/// Rounding up the number of parts can make them shorter.
const LEAST_PART: i64 = 4096;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (stages, taken) = of_one_reduction(task)?;
    let items = stages.items();
    let held = Held::of(&stages, &items);
    let is_apart = is_strided(&stages);
    let rows = stages
        .row_count()
        .as_int()
        .ok_or_else(|| Declined::because("requires a constant number of rows; found a symbolic one"))?;
    let (layout, ways, least) = match is_apart {
        true => {
            let plain = Way { multiples: Multiples::of(1), condition: None };
            // With vectors along the rows (several neighbouring rows per thread), fewer blocks cover all rows, but a
            // row may have more parts. So the vectors usually cost no parallelism.
            let way = stages.rows.last().and_then(|last| stages.ways_along(last, false).pop()).unwrap_or(plain);
            let (_, lanes) = across(&stages, &held, &way);
            let parts = 8;
            let layout = Layout::Across { parts, wide: way.width() };
            (layout, vec![(Lanes { threads: parts, ..lanes }, None)], LEAST_PART / 32)
        }
        false => {
            let ways = stages.ways(stages.rows.is_empty());
            let lanes = ways.iter().map(|way| (Lanes::together(&stages, way, 256), way.condition.clone()));
            (Layout::Block { threads: 256 }, lanes.collect(), LEAST_PART)
        }
    };
    let blocks = layout.blocks(Expr::int(rows)).as_int().unwrap_or(rows);
    if blocks >= ENOUGH_BLOCKS {
        return Err(Declined::because(format!("requires rows for fewer than {ENOUGH_BLOCKS} blocks; found {blocks}")));
    }
    let length = stages.row_length();
    Declined::when(length.as_int().is_some_and(|length| length < 2 * least), "requires long rows; found short ones")?;
    let most = Expr::int((MANY_BLOCKS / blocks.max(1)).max(1));
    let parts = (length + Expr::int(least - 1)).floor_div(Expr::int(least)).min(most).max(Expr::int(1));
    let note = match parts.as_int() {
        Some(parts) => format!("{parts} blocks per row; a second kernel combines their results"),
        None => format!("a block for {least} or more elements of a row; a second kernel combines their results"),
    };
    let stages = Rc::new(stages);
    let Some(Item::Loop(first)) = items.into_iter().next() else {
        return Err(Declined::because("requires a reduction; found none"));
    };
    let scratch = stages.reductions(&first).flatten().map(|stage| {
        let bytes = value_bytes(stage.target.dtype);
        Scratch { name: "parts", bytes: parts.clone() * Expr::int(rows.max(1)) * Expr::int(bytes) }
    });
    let scratch: Vec<Scratch> = scratch.collect();
    let split = Some(("(int)blockIdx.y".to_owned(), "(int)gridDim.y".to_owned()));
    let kernel = |lanes: Lanes, condition, step| -> Box<dyn KernelBody> {
        Box::new(SplitKernel {
            stages: Rc::clone(&stages),
            first: first.clone(),
            layout: layout.clone(),
            lanes: Lanes { split: split.clone(), chunks: 0, has_rest: true, is_exact: false, ..lanes },
            parts: parts.clone(),
            rows,
            condition,
            step,
        })
    };
    let join = kernel(Lanes::single(Multiples::of(1)), None, Step::Join);
    let parts_of = ways.into_iter().map(|(lanes, condition)| kernel(lanes, condition, Step::Parts));
    let kernels: Vec<Box<dyn KernelBody>> = parts_of.chain([join]).collect();
    Ok(Schedule { taken, kernels, scratch, note })
}

/// Collects the stages of one loop with a reduction, and the values of the row after it. If later stages loop over the
/// row again, collects only the statements up to the first reduction. This pays only if the rows are so few and long
/// that one block per row would leave most of a device idle; otherwise the rule declines.
fn of_one_reduction(task: &Task<'_>) -> Result<(Stages, usize), Declined> {
    let (stages, taken) = collect(task, Form::Rows, usize::MAX)?;
    check(&stages)?;
    if is_one_reduction(&stages, &stages.items()) {
        return Ok((stages, taken));
    }
    let again = || Declined::because("requires rows that are read only up to the reduction; found a later use");
    let (rows, length) =
        (stages.row_count().as_int().ok_or_else(again)?, stages.row_length().as_int().ok_or_else(again)?);
    if rows >= FEW_ROWS || length < LONG_ROW {
        return Err(again());
    }
    let (stages, taken) = (1..=taken).find_map(|most| collect(task, Form::Rows, most).ok()).ok_or_else(again)?;
    if is_one_reduction(&stages, &stages.items()) { Ok((stages, taken)) } else { Err(again()) }
}

/// Returns the size of a value in registers, in bytes. Narrow floats are computed as `float`.
fn value_bytes(dtype: DType) -> i64 {
    if dtype.is_float() { dtype.bytes().cast_signed().max(4) } else { dtype.bytes().cast_signed() }
}

/// The part of the work that a kernel does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Reduces parts of rows. There is a kernel for each vector width, of which the host launches one.
    Parts,
    /// Combines the results of the parts, and computes the values of the row. There is one such kernel.
    Join,
}

/// One of the kernels of a split reduction.
struct SplitKernel {
    /// All stages.
    stages: Rc<Stages>,
    /// The stages of the loop that reduces the row, as positions in `stages`.
    first: Vec<usize>,
    /// The threads of a part of a row, in a kernel of [`Step::Parts`].
    layout: Layout,
    /// How the elements of a part are divided among the threads, in a kernel of [`Step::Parts`].
    lanes: Lanes,
    /// The number of parts of a row.
    parts: Expr,
    /// The number of rows.
    rows: i64,
    /// The condition under which the host launches this kernel, otherwise it launches another one for the same parts;
    /// `None`: it always launches this one.
    condition: Option<Expr>,
    /// The part of the work that it does.
    step: Step,
}

impl SplitKernel {
    /// Returns the threads that combine the parts of a row.
    fn join_layout(&self) -> Layout {
        match self.layout {
            Layout::Across { .. } => Layout::Warps { lanes: 1 },
            _ => Layout::Warps { lanes: 32 },
        }
    }
}

impl KernelBody for SplitKernel {
    fn frame(&self) -> Frame<'_> {
        let rows = Expr::int(self.rows);
        let (layout, work) = match self.step {
            Step::Parts => (self.layout.clone(), None),
            Step::Join => (self.join_layout(), Some(rows.clone() * self.parts.clone())),
        };
        let blocks = layout.blocks(rows);
        let grid = match self.step {
            Step::Parts => [when(&self.condition, blocks), self.parts.clone(), Expr::int(1)],
            Step::Join => [blocks, Expr::int(1), Expr::int(1)],
        };
        let shape = LaunchShape { grid, block: layout.block(), shared_bytes: 0 };
        Frame { work, own_names: WORDS, ..self.stages.frame(shape) }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let rows = self.stages.row_count();
        let layout = if self.step == Step::Parts { self.layout.clone() } else { self.join_layout() };
        let mut printer = Printer::new(kernel, &self.stages, self.lanes.clone(), layout.guard());
        let mut scratch = Vec::new();
        for (number, stage) in self.stages.reductions(&self.first).flatten().enumerate() {
            let ctype = printer.kernel.ctype(stage.target.dtype)?;
            let wanted = format!("{}_parts", self.stages.func.var(stage.var).name);
            scratch.push(printer.kernel.scratch_buffer(number, &wanted, ctype));
        }
        layout.begin(&mut printer, &rows)?;
        printer.row_reads()?;
        let leader = layout.leader();
        let place = |part: &str| match self.rows {
            1 => part.to_owned(),
            rows => format!("{part} * {rows}LL + row"),
        };
        if self.step == Step::Parts {
            printer.columns_loop(&self.first)?;
            let mut scratch = scratch.iter();
            for reduction in self.stages.reductions(&self.first) {
                layout.join(&mut printer, reduction)?;
                for (stage, parts) in reduction.iter().zip(&mut scratch) {
                    printer.each_row(|printer| {
                        let own = printer.kernel.operand(&self.stages.func.var_expr(stage.var), 0)?;
                        let row = if printer.side() > 1 { " + v" } else { "" };
                        printer.kernel.line(&format!("if ({leader}) {parts}[{}{row}] = {own};", place("blockIdx.y")));
                        Ok(())
                    })?;
                }
            }
            return Ok(());
        }
        let step = if matches!(layout, Layout::Warps { lanes: 1 }) { 1 } else { 32 };
        let mut scratch = scratch.iter();
        for reduction in self.stages.reductions(&self.first) {
            reduction.iter().try_for_each(|stage| printer.begin(stage))?;
            let count = printer.kernel.operand(&self.parts, crate::printer::expr::RELATION + 1)?;
            printer.kernel.open(&format!("for (int part = lane; part < {count}; part += {step}) {{"));
            for (stage, parts) in reduction.iter().zip(&mut scratch) {
                printer.kernel.name_value(stage.other, &format!("{parts}[{}]", place("part")));
            }
            printer.combine_others(reduction)?;
            printer.kernel.close();
            layout.join(&mut printer, reduction)?;
            reduction.iter().try_for_each(|stage| printer.finish(stage, leader))?;
        }
        for (at, stage) in self.stages.stages.iter().enumerate() {
            if matches!(stage.kind, Kind::Row) {
                printer.row_stage(at, leader)?;
            }
        }
        Ok(())
    }
}
