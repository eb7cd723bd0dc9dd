//! Rows that stand together in memory: softmax, norms, reductions along the last axes, with what is computed before and
//! behind. One kernel, one read of a row: what several loops over it need stays in registers as far as it fits, and is read
//! again behind that.
//!
//! A short row has some lanes of a warp, a longer one a block. Where the host learns the length at the call only, there is a
//! kernel for either, for rows of groups of neighbours and for others (`stages/vectors`), and one of them has blocks.

pub(super) mod layout;
pub(super) mod split;

use super::stages::gather::{Form, gather};
use super::stages::lanes::{Held, Lanes};
use super::stages::vectors::Way;
use super::stages::{Item, Kind, Stages};
use super::{Declined, Frame, KernelBody, Rule, Schedule, Task};
use layout::{Layout, RowsKernel};
use rx_schedule::Multiples;
use rx_tir::{Expr, VarId};
use std::rc::Rc;

/// The rule for rows whose elements stand together.
pub(super) const RULE: Rule = Rule {
    name: "rows",
    summary: "Reductions along rows and what is computed of them, a warp or a block for each; one read of a row.",
    take: take_rows,
};

/// The rule for rows whose elements stand apart.
pub(super) const COLUMNS: Rule = Rule {
    name: "columns",
    summary: "Reductions along leading axes: neighbouring threads have neighbouring rows.",
    take: take_columns,
};

/// Rows of at most so many elements have lanes of a warp.
const MOST_IN_WARP: i64 = 1024;

/// Registers of 32 bits that a thread may keep of a row: of blocks of up to 512 threads, which may have 128 each, and of
/// larger ones, which may have 64.
const MOST_KEPT: (i64, i64) = (64, 32);

/// Threads of a block that has several rows.
const SHARED_BLOCK: i64 = 128;

/// Elements of a thread where the length of a row is not known: a warp then keeps all rows that it is for, and a block rows of
/// 8192.
const USUAL_KEPT: i64 = 32;

/// Threads for a long row of a length that is not known.
const LONG_BLOCK: i64 = 256;

/// Threads that keep a multiprocessor busy where each has several reads on their way.
const THREADS_OF_UNIT: i64 = 512;

/// Elements of a thread of a block for a row of a known length.
const OF_THREAD: i64 = 16;

fn take_rows(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (stages, taken) = gather(task, Form::Rows, usize::MAX)?;
    check(&stages)?;
    Declined::when(stands_apart(&stages), "the elements of a row stand apart in memory")?;
    let items = stages.items();
    let held = Held::of(&stages, &items);
    let stages = Rc::new(stages);
    let ways = stages.ways(stages.rows.is_empty());
    let length = stages.row_length();
    let mut kernels: Vec<Box<dyn KernelBody>> = Vec::new();
    let mut notes = Vec::new();
    for way in &ways {
        if let Some(length) = length.as_int() {
            let (layout, lanes) = of_length(&stages, length.max(1), way, &held);
            notes.push(describe(&layout, &lanes, &held) + &way.when());
            kernels.push(Box::new(RowsKernel::new(&stages, layout, lanes, way.condition.clone())));
            continue;
        }
        notes.push(format!("{} elements at once{}", way.width(), way.when()));
        let chunks = if held.registers == 0 { 0 } else { (USUAL_KEPT / way.width() / held.registers.max(1)).max(1) };
        let short = length.clone().lt(Expr::int(MOST_IN_WARP + 1));
        for (layout, threads, is_own, longest) in [
            (Layout::Warps { lanes: 32 }, 32, short.clone(), Some(MOST_IN_WARP)),
            (Layout::Block { threads: LONG_BLOCK }, LONG_BLOCK, !short, None),
        ] {
            let has_rest = longest.is_none_or(|longest| chunks * threads * way.width() < longest);
            let lanes = Lanes { chunks, has_rest, ..Lanes::together(&stages, way, threads) };
            let condition = match &way.condition {
                Some(condition) => condition.clone().and(is_own),
                None => is_own,
            };
            kernels.push(Box::new(RowsKernel::new(&stages, layout, lanes, Some(condition))));
        }
    }
    let mut note = notes.join(", else ");
    if length.as_int().is_none() {
        note = format!(
            "a warp for each row of up to {MOST_IN_WARP} elements, {LONG_BLOCK} threads for each longer one, {note}"
        );
    }
    Ok(Schedule { taken, kernels, scratch: Vec::new(), note })
}

/// How many groups of a size hold so many.
fn groups_of(count: i64, size: i64) -> i64 {
    count.cast_unsigned().div_ceil(size.cast_unsigned()).cast_signed()
}

/// The threads for rows of a known length.
fn of_length(stages: &Stages, length: i64, way: &Way, held: &Held) -> (Layout, Lanes) {
    let width = way.width();
    let groups = groups_of(length, width);
    let (layout, threads) = match length <= MOST_IN_WARP {
        true => {
            let lanes = groups.clamp(1, 32).cast_unsigned().next_power_of_two().cast_signed();
            (Layout::Warps { lanes }, lanes)
        }
        false => {
            // Wide values and several of them need more registers than threads of the largest block have.
            let most = if held.registers > 1 { 512 } else { 1024 };
            let threads = (length / OF_THREAD).clamp(128, most).cast_unsigned().next_power_of_two().cast_signed();
            (Layout::Block { threads }, threads)
        }
    };
    let all = groups_of(groups, threads);
    let most = if threads > 512 { MOST_KEPT.1 } else { MOST_KEPT.0 };
    let chunks = match held.registers {
        0 if length > MOST_IN_WARP => 0,
        registers => all.min((most / width / registers.max(1)).max(1)),
    };
    let is_exact = chunks == all && length == all * threads * width;
    (layout, Lanes { chunks, has_rest: chunks < all, is_exact, ..Lanes::together(stages, way, threads) })
}

fn describe(layout: &Layout, lanes: &Lanes, held: &Held) -> String {
    let Lanes { width, chunks, has_rest, .. } = lanes;
    let threads = match layout {
        Layout::Warps { lanes: 1 } => "a thread".to_owned(),
        Layout::Warps { lanes } => format!("{lanes} lanes"),
        Layout::Block { threads } => format!("{threads} threads"),
        Layout::Across { parts, .. } => format!("{parts} threads"),
    };
    let kept = match (held.registers, has_rest) {
        (0, _) => "read once",
        (_, false) => "kept in registers",
        (_, true) => "kept in registers as far as it fits",
    };
    match chunks {
        0 => format!("{threads} for a row, {width} elements at once, {kept}"),
        chunks => format!("{threads} for a row, {chunks} times {width} elements each, {kept}"),
    }
}

fn take_columns(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (stages, taken) = gather(task, Form::Rows, usize::MAX)?;
    check(&stages)?;
    Declined::when(!stands_apart(&stages), "the elements of a row stand together in memory")?;
    let held = Held::of(&stages, &stages.items());
    let stages = Rc::new(stages);
    let mut notes = Vec::new();
    let mut kernels: Vec<Box<dyn KernelBody>> = Vec::new();
    for way in ways_of_rows(&stages, i64::from(task.target.units)) {
        let (layout, lanes) = across(&stages, &held, &way);
        notes.push(describe_across(&layout, &lanes, &held) + &way.when());
        kernels.push(Box::new(RowsKernel::new(&stages, layout, lanes, way.condition)));
    }
    let note = format!("neighbouring threads for neighbouring rows, {}", notes.join(", else "));
    Ok(Schedule { taken, kernels, scratch: Vec::new(), note })
}

fn describe_across(layout: &Layout, lanes: &Lanes, held: &Held) -> String {
    // What it says of elements at once is said of rows here.
    let threads = describe(layout, &Lanes { width: 1, ..lanes.clone() }, held);
    match lanes.width {
        1 => threads,
        wide => format!("{wide} each, {threads}"),
    }
}

/// The ways for rows whose neighbours stand together: of so many rows that a thread with several leaves all of the device busy.
fn ways_of_rows(stages: &Stages, units: i64) -> Vec<Way> {
    let plain = Way { multiples: Multiples::of(1), condition: None };
    let Some(last) = stages.rows.last() else { return vec![plain] };
    let ways = stages.ways_along(last, false);
    let (rows, length) = (stages.row_count().as_int(), stages.row_length().as_int());
    // A row's elements are many threads' work, too, but for few of them.
    let parts = length.map_or(8, |length| (length / 4).clamp(1, 32));
    let is_enough = |way: &Way| rows.is_none_or(|rows| rows / way.width() * parts >= units * THREADS_OF_UNIT);
    if ways.iter().all(is_enough) { ways } else { vec![plain] }
}

/// The threads for rows whose neighbours stand together.
fn across(stages: &Stages, held: &Held, way: &Way) -> (Layout, Lanes) {
    let wide = way.width();
    let length = stages.row_length().as_int();
    let few_rows = stages.row_count().as_int().is_some_and(|rows| rows < 32 * 264 * wide);
    // The parts of a block's rows meet in shared memory.
    let most = if few_rows && wide == 1 { 32 } else { 8 };
    let parts = match length {
        Some(length) => (length / 4).clamp(1, most).cast_unsigned().next_power_of_two().cast_signed().min(most),
        None => 8,
    };
    let chunks = match (held.registers, length) {
        (0, _) => 0,
        (registers, Some(length)) => {
            groups_of(length.max(1), parts).min((MOST_KEPT.1 / wide / registers.max(1)).max(1))
        }
        // Sums of several rows need registers, too.
        (registers, None) => (OF_THREAD / if wide > 1 { 2 * wide } else { 1 } / registers.max(1)).max(1),
    };
    let has_rest = length.is_none_or(|length| chunks * parts < length);
    let is_exact = length == Some(chunks * parts);
    (
        Layout::Across { parts, wide },
        Lanes {
            lane: "part",
            threads: parts,
            chunks,
            has_rest,
            is_exact,
            is_of_rows: true,
            ..Lanes::single(way.multiples.clone())
        },
    )
}

/// Declines what is worth other threads than a row's.
fn check(stages: &Stages) -> Result<(), Declined> {
    Declined::when(stages.columns.is_empty(), "a row is one element")?;
    if stages.columns.len() > 1 && stages.row_length().as_int().is_some_and(|length| length <= 64) {
        return Err(Declined::because("a window of few elements is one thread's"));
    }
    let reduced = stages.stages.iter().filter(|stage| matches!(stage.kind, Kind::Reduction { .. }));
    let of = |var: VarId| stages.reads.iter().find(|read| read.var == var && read.is_of_columns);
    for stage in reduced {
        let mut read = Vec::new();
        stage.value.walk(&mut |part| {
            if let Expr::Var { var, .. } = part {
                read.extend(of(*var));
            }
        });
        // Each is read again for other rows than the other one is.
        let misses = |a: &super::stages::Read, b: &super::stages::Read| {
            stages.rows.iter().any(|axis| !a.element.uses(axis.var) && b.element.uses(axis.var))
        };
        let product = read.iter().any(|a| read.iter().any(|b| misses(a, b) && misses(b, a)));
        Declined::when(product, "it is a matrix product")?;
    }
    Ok(())
}

/// Whether neighbouring elements of most that is read belong to neighbouring rows.
fn stands_apart(stages: &Stages) -> bool {
    let (Some(row), Some(column)) = (stages.rows.last(), stages.columns.last()) else { return false };
    let of_both = |element: &rx_schedule::Affine| element.uses(row.var) && element.uses(column.var);
    let (mut together, mut apart) = (0, 0);
    for read in stages.reads.iter().filter(|read| of_both(&read.element)) {
        together += usize::from(read.element.stride(column.var).as_constant() == Some(1));
        apart += usize::from(read.element.stride(row.var).as_constant() == Some(1));
    }
    apart > together
}

/// Whether there is one loop, with a reduction, and then values of the row.
fn is_one_reduction(stages: &Stages, items: &[Item]) -> bool {
    match items {
        [Item::Loop(first), rest @ ..] => {
            stages.reductions(first).next().is_some() && rest.iter().all(|item| matches!(item, Item::Row(_)))
        }
        _ => false,
    }
}
