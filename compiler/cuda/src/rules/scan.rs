//! Schedule rule `scan`: inclusive scans (prefix sums, products, maxima) along rows.
//!
//! ```text
//! for i, k: Y[i, k] = X[i, k] if k == 0 else Y[i, k - 1] + X[i, k]
//!   →  rows of up to 1024 elements: lanes of a warp for each row
//!      longer rows: a block for each row, with a loop along it
//!      strided rows: a block for 32 neighbouring rows, with 1 to 16 threads for each row; neighbouring threads have
//!          neighbouring rows
//!      few long rows (reduce, then scan): kernel 1 reduces each part of a row to one value,
//!          kernel 2 scans each part, beginning with the combined values of the parts before it
//! ```
//!
//! Requires a recurrence (`rx_loops::Recurrence`), whose operation is associative and commutative; of floats, only a
//! sum counts as such. Statements before and after it are element stages. Guarantees one pass over a row (two if it is
//! split), and the same order of combination in every run.

mod kernel;

use super::row_pipeline::collect::{Form, collect};
use super::row_pipeline::print::scan::Scanners;
use super::row_pipeline::vectors::Way;
use super::row_pipeline::{Kind, Stages};
use super::rows::layout::Layout;
use super::{Declined, KernelBody, Rule, Schedule, Scratch, Task};
use kernel::{ScanKernel, Step};
use rx_loops::Multiples;
use rx_tir::Expr;
use std::rc::Rc;

/// The rule, as the table of rules lists it.
pub(super) const RULE: Rule = Rule {
    name: "scan",
    summary: "Scans (prefix sums, products, maxima): a warp or a block per row; few long rows are split among blocks.",
    take,
};

/// Limit of the elements of a row that lanes of a warp scan.
const MOST_IN_WARP: i64 = 1024;

/// With fewer blocks than this, most of a device is idle.
const FEW_BLOCKS: i64 = 64;

/// Minimum length in elements of rows that are split into parts if there are few blocks: 32768 for contiguous rows,
/// 2048 for strided ones.
const LONG_ROW: (i64, i64) = (32_768, 2048);

/// Limit of the number of parts of a row: its length divided by this, rounded up. 4096 elements for contiguous rows,
/// 256 for strided ones.
const LEAST_PART: (i64, i64) = (4096, 256);

/// Number of blocks that keep a device busy.
const ENOUGH_BLOCKS: i64 = 512;

/// Minimum extent of the last row axis, if it is a constant, for which strided rows are scanned side by side, with
/// neighbouring threads for neighbouring rows.
const SIDE_BY_SIDE: i64 = 16;

/// Limit of the 32-bit registers of a thread for scanned values: 16 values of at most 32 bits, or 8 wider ones.
const VALUES: i64 = 16;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (stages, taken) = collect(task, Form::Scan, usize::MAX)?;
    let scan = stages.stages.iter().position(|stage| matches!(stage.kind, Kind::Scan { .. }));
    let scan = scan.ok_or_else(|| Declined::because("requires a scan; found none"))?;
    let ways = match is_apart(&stages, scan) {
        true => vec![Way { multiples: Multiples::of(1), condition: None }],
        false => stages.ways(false),
    };
    let mut plans_of_ways = Vec::new();
    let mut notes = Vec::new();
    for way in &ways {
        let plans = plans(&stages, scan, way);
        let note = plans.iter().map(|plan| plan.describe()).collect::<Vec<_>>().join("; ");
        notes.push(note + &way.when());
        plans_of_ways.extend(plans.into_iter().map(|plan| (plan, way.condition.clone())));
    }
    let note = notes.join(", otherwise ");
    let stages = Rc::new(stages);
    let mut kernels: Vec<Box<dyn KernelBody>> = Vec::new();
    let mut scratch = Vec::new();
    for (Plan { layout, scanners, condition, parts }, way) in plans_of_ways {
        let both = match (&condition, way) {
            (Some(condition), Some(way)) => Some(condition.clone().and(way)),
            (condition, way) => condition.clone().or(way),
        };
        let kernel = |step| ScanKernel {
            stages: Rc::clone(&stages),
            scan,
            layout: layout.clone(),
            scanners: scanners.clone(),
            condition: both.clone(),
            step,
        };
        let Some(parts) = parts else {
            kernels.push(Box::new(kernel(Step::Whole)));
            continue;
        };
        let value = stages.stages[scan].target.dtype;
        let bytes = if value.is_float() { value.bytes().max(4) } else { value.bytes() }.cast_signed();
        let bytes = parts.clone() * stages.row_count() * Expr::int(bytes);
        let bytes = match &condition {
            Some(condition) => Expr::select(condition.clone(), bytes, Expr::int(0)),
            None => bytes,
        };
        // Only the kernels of one vector width are launched, and the number of parts is the same for all widths.
        if scratch.is_empty() {
            scratch.push(Scratch { name: "parts", bytes });
        }
        kernels.push(Box::new(kernel(Step::Parts(parts.clone()))));
        kernels.push(Box::new(kernel(Step::Scan(parts))));
    }
    Ok(Schedule { taken, kernels, scratch, note })
}

/// A way of scanning the rows, and the condition for it.
struct Plan {
    /// The threads of a row, or of a part of it.
    layout: Layout,
    /// The distribution of the elements over these threads.
    scanners: Scanners,
    /// The condition for this plan; where it is false, another plan applies. `None`: no condition.
    condition: Option<Expr>,
    /// The number of parts that a row is split into, an `int64`; `None` if it is not split.
    parts: Option<Expr>,
}

impl Plan {
    /// Returns the plan as text for the schedule's note.
    fn describe(&self) -> String {
        let Scanners { chunks, width, .. } = self.scanners;
        let threads = match self.layout {
            Layout::Warps { lanes: 1 } => "1 thread".to_owned(),
            Layout::Warps { lanes } => format!("{lanes} lanes"),
            Layout::Block { threads } => format!("{threads} threads"),
            Layout::Across { parts, .. } => format!("{parts} threads"),
        };
        let part = if self.parts.is_some() { "part of a row" } else { "row" };
        let rows = match self.layout {
            Layout::Across { .. } => ", neighbouring threads for neighbouring rows",
            _ => "",
        };
        format!("{threads} per {part}, {chunks} x {width} elements per thread at a time{rows}")
    }
}

/// Returns the plans for all lengths and numbers of rows that a call may have. Exactly one plan's condition holds.
fn plans(stages: &Stages, scan: usize, way: &Way) -> Vec<Plan> {
    let is_apart = is_apart(stages, scan);
    let words = if stages.stages[scan].target.dtype.bits > 32 { 2 } else { 1 };
    let values = VALUES / words;
    let length = stages.row_length();
    let (long, least) = if is_apart { (LONG_ROW.1, LEAST_PART.1) } else { (LONG_ROW.0, LEAST_PART.0) };
    let whole = |(layout, scanners): (Layout, Scanners), condition| Plan { layout, scanners, condition, parts: None };
    let (blocks, usual) = match is_apart {
        true => ((stages.row_count() + Expr::int(31)).floor_div(Expr::int(32)), across(stages, values)),
        false => (stages.row_count(), block(stages, values, way)),
    };
    // A symbolic length counts as long here, and a symbolic number of blocks as few; a condition decides at the launch.
    let is_long = length.as_int().is_none_or(|length| length >= long);
    let are_few = blocks.as_int().is_none_or(|blocks| blocks < FEW_BLOCKS);
    let mut plans = Vec::new();
    let mut others: Option<Expr> = None;
    if is_long && are_few {
        let some = blocks.clone().max(Expr::int(1));
        let most = Expr::int(ENOUGH_BLOCKS).floor_div(some).max(Expr::int(1));
        let parts = (length.clone() + Expr::int(least - 1)).floor_div(Expr::int(least)).min(most).max(Expr::int(1));
        let condition = Expr::int(long - 1).lt(length.clone()).and(blocks.lt(Expr::int(FEW_BLOCKS)));
        let is_always = condition.as_int().is_some();
        let (layout, scanners) = usual.clone();
        let condition_of = (!is_always).then(|| condition.clone());
        plans.push(Plan { layout, scanners, condition: condition_of, parts: Some(parts) });
        if is_always {
            return plans;
        }
        others = Some(!condition);
    }
    let both = |condition: Expr| match &others {
        Some(others) => others.clone().and(condition),
        None => condition,
    };
    match length.as_int() {
        _ if is_apart => plans.push(whole(usual, others)),
        Some(length) if length <= MOST_IN_WARP => plans.push(whole(warps(Some(length), values, way), others)),
        Some(_) => plans.push(whole(usual, others)),
        None => {
            let short = length.lt(Expr::int(MOST_IN_WARP + 1));
            plans.push(whole(warps(None, values, way), Some(both(short.clone()))));
            plans.push(whole(usual, Some(both(!short))));
        }
    }
    plans
}

/// Whether rows are strided: neighbouring elements of the result belong to neighbouring rows, and the last row axis has
/// at least [`SIDE_BY_SIDE`] values or a symbolic extent.
fn is_apart(stages: &Stages, scan: usize) -> bool {
    let (Some(row), element) = (stages.rows.last(), &stages.stages[scan].target.element) else { return false };
    let enough = row.dim.as_constant().is_none_or(|extent| extent >= SIDE_BY_SIDE);
    enough && element.stride(row.var).as_constant() == Some(1)
}

/// Returns the threads of a row and the distribution of its elements over them, if lanes of a warp scan each row.
/// `values` is the maximum number of elements that a thread has at once.
fn warps(length: Option<i64>, values: i64, way: &Way) -> (Layout, Scanners) {
    let (width, multiples) = (way.width(), way.multiples.clone());
    let (lanes, chunks) = match length {
        Some(length) => {
            let groups = length.max(1).cast_unsigned().div_ceil(width.cast_unsigned());
            let lanes = groups.clamp(1, 32).next_power_of_two();
            (lanes.cast_signed(), groups.div_ceil(lanes).cast_signed().min((values / width).max(1)))
        }
        None => (32, (values / 2 / width).max(1)),
    };
    (Layout::Warps { lanes }, Scanners { lanes, groups: 1, chunks, width, multiples, side: None })
}

/// Returns the threads of a block that scans one row (or one part of a row), and the distribution of the elements over
/// these threads. `values` is the maximum number of elements that a thread has at once.
fn block(stages: &Stages, values: i64, way: &Way) -> (Layout, Scanners) {
    let (width, multiples) = (way.width(), way.multiples.clone());
    let threads = match stages.row_length().as_int() {
        Some(length) => (length / VALUES).clamp(128, 512).cast_unsigned().next_power_of_two().cast_signed(),
        None => 256,
    };
    let chunks = (values / width).max(1);
    (Layout::Block { threads }, Scanners { lanes: 32, groups: threads / 32, chunks, width, multiples, side: None })
}

/// Returns the threads of a strided row (or of a part of it) and the distribution of its elements over them. Each block
/// has 32 neighbouring rows, with 1 to 16 threads for each.
fn across(stages: &Stages, values: i64) -> (Layout, Scanners) {
    let rows = stages.row_count().as_int();
    let parts = match (rows, stages.row_length().as_int()) {
        (Some(rows), _) if rows >= 32 * ENOUGH_BLOCKS => 1,
        (_, Some(length)) => (length / 8).clamp(1, 16).cast_unsigned().next_power_of_two().cast_signed().min(16),
        _ => 8,
    };
    let side = (parts > 1).then_some((32, "threadIdx.x"));
    (
        Layout::Across { parts, wide: 1 },
        Scanners { lanes: 1, groups: parts, chunks: values / 2, width: 1, multiples: Multiples::of(1), side },
    )
}
