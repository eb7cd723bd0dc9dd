//! Schedule rules `rows` and `columns`: softmax, norms and other reductions of rows, together with the elementwise
//! statements around them, in one kernel.
//!
//! ```text
//! for i, k: m[i]    = max(m[i], x[i, k])
//! for i, k: s[i]   += exp(x[i, k] - m[i])
//! for i, k: y[i, k] = exp(x[i, k] - m[i]) / s[i]
//! →
//! warp or block: one row i
//!     xs = x[i, :]                          // registers, divided among the threads: one read of the row
//!     m = reduce(max, xs)                   // shuffles, and shared memory between warps
//!     s = reduce(+, exp(xs - m))
//!     y[i, :] = exp(xs - m) / s
//! ```
//!
//! Requires: statements that the fused row pipeline can take ([`super::row_pipeline`]), at least one of them a
//! reduction over a loop; no reduction of two reads that are both read again for other rows, as in a matrix product;
//! and no small windows (rows of at most 64 elements over several axes). `columns` schedules strided rows, such as
//! those of reductions along leading axes: more reads are contiguous from row to row than along a row, so neighbouring
//! threads have neighbouring rows. `rows` schedules the others.
//!
//! Guarantees: values that several loops over a row need stay in registers as far as they fit; only the others are read
//! or computed again.
//!
//! In `rows`, a row of at most 1024 elements is computed by 1 to 32 lanes of a warp, a longer one by a block. If the
//! length is symbolic, the schedule has a kernel for each of the two and for each vector width
//! ([`super::row_pipeline::vectors`]). At the call, the host gives blocks to exactly one of them.
//!
//! Reference: TVM's `python/tvm/s_tir/dlight/gpu/general_reduction.py`.

pub(super) mod layout;
pub(super) mod split;

use super::row_pipeline::collect::{Form, collect};
use super::row_pipeline::lanes::{Held, Lanes};
use super::row_pipeline::vectors::Way;
use super::row_pipeline::{Item, Kind, Stages};
use super::{Declined, Frame, KernelBody, Rule, Schedule, Task, groups_of};
use layout::{Layout, RowsKernel};
use rx_loops::Multiples;
use rx_tir::{Expr, VarId};
use std::rc::Rc;

/// The rule `rows`: rows that are not strided (`is_strided`); usually their elements are contiguous in memory.
pub(super) const RULE: Rule = Rule {
    name: "rows",
    summary: "Reductions along contiguous rows, with elementwise statements: a warp or a block reads a row once.",
    take: take_rows,
};

/// The rule `columns`: rows that are strided (`is_strided`); usually the elements of neighbouring rows are contiguous.
pub(super) const COLUMNS: Rule = Rule {
    name: "columns",
    summary: "Reductions along leading axes: neighbouring threads have neighbouring rows.",
    take: take_columns,
};

/// The maximum length of a row that one warp, or some of its lanes, reduces.
const MOST_IN_WARP: i64 = 1024;

/// The targeted maximum of 32-bit registers per thread that hold elements of a row of constant length: in blocks of up
/// to 512 threads, where a thread may have 128 registers, and in larger blocks, where it may have 64. `columns` uses
/// the second number.
const MOST_KEPT: (i64, i64) = (64, 32);

/// The number of threads of a block whose rows each have some lanes of a warp ([`Layout::Warps`]).
const SHARED_BLOCK: i64 = 128;

/// The targeted number of 32-bit registers per thread that hold elements in `rows` if the row length is symbolic. If an
/// element needs one register, a warp holds all rows that it is used for (32 · 32 = 1024 elements), and a block of 256
/// threads holds rows of up to 8192 elements.
const USUAL_KEPT: i64 = 32;

/// The number of threads in `rows` for a row of symbolic length that has more than [`MOST_IN_WARP`] elements.
const LONG_BLOCK: i64 = 256;

/// The number of threads per multiprocessor that hides memory latency if each has several loads in flight.
const THREADS_OF_UNIT: i64 = 512;

/// The targeted number of elements per thread in a block that computes one row of constant length. In the rule
/// `columns`, if the length is symbolic: the targeted number of 32-bit registers per thread that hold elements; half of
/// it if a thread has several rows.
const OF_THREAD: i64 = 16;

fn take_rows(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (stages, taken) = collect(task, Form::Rows, usize::MAX)?;
    check(&stages)?;
    Declined::when(is_strided(&stages), "requires contiguous rows; found strided rows")?;
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
        let vectors = match way.width() {
            1 => "single elements".to_owned(),
            width => format!("vectors of {width} elements"),
        };
        notes.push(vectors + &way.when());
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
    let mut note = notes.join(", otherwise ");
    if length.as_int().is_none() {
        note = format!("a warp per row of up to {MOST_IN_WARP} elements, {LONG_BLOCK} threads per longer row; {note}");
    }
    Ok(Schedule { taken, kernels, scratch: Vec::new(), note })
}

/// Chooses the threads for rows of a constant length in the rule `rows`, and the distribution of elements over them.
fn of_length(stages: &Stages, length: i64, way: &Way, held: &Held) -> (Layout, Lanes) {
    let width = way.width();
    let groups = groups_of(length, width);
    let (layout, threads) = match length <= MOST_IN_WARP {
        true => {
            let lanes = groups.clamp(1, 32).cast_unsigned().next_power_of_two().cast_signed();
            (Layout::Warps { lanes }, lanes)
        }
        false => {
            // Values wider than 32 bits, or several values per element, may need more registers than a thread of the
            // largest block has.
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
        Layout::Warps { lanes: 1 } => "1 thread".to_owned(),
        Layout::Warps { lanes } => format!("{lanes} lanes"),
        Layout::Block { threads } => format!("{threads} threads"),
        Layout::Across { parts, .. } => format!("{parts} threads"),
    };
    let kept = match (held.registers, has_rest) {
        (0, _) => "read once",
        (_, false) => "kept in registers",
        (_, true) => "partly kept in registers",
    };
    match chunks {
        0 => format!("{threads} per row, {width} elements at a time, {kept}"),
        chunks => format!("{threads} per row, {chunks} x {width} elements per thread, {kept}"),
    }
}

fn take_columns(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (stages, taken) = collect(task, Form::Rows, usize::MAX)?;
    check(&stages)?;
    Declined::when(!is_strided(&stages), "requires strided rows; found contiguous rows")?;
    let held = Held::of(&stages, &stages.items());
    let stages = Rc::new(stages);
    let mut notes = Vec::new();
    let mut kernels: Vec<Box<dyn KernelBody>> = Vec::new();
    for way in ways_of_rows(&stages, i64::from(task.target.units)) {
        let (layout, lanes) = across(&stages, &held, &way);
        notes.push(describe_across(&layout, &lanes, &held) + &way.when());
        kernels.push(Box::new(RowsKernel::new(&stages, layout, lanes, way.condition)));
    }
    let note = format!("neighbouring threads for neighbouring rows; {}", notes.join(", otherwise "));
    Ok(Schedule { taken, kernels, scratch: Vec::new(), note })
}

fn describe_across(layout: &Layout, lanes: &Lanes, held: &Held) -> String {
    // `width` counts neighbouring rows here, but `describe` would report it as elements of a row.
    let threads = describe(layout, &Lanes { width: 1, ..lanes.clone() }, held);
    match lanes.width {
        1 => threads,
        wide => format!("{wide} rows per thread, {threads}"),
    }
}

/// Returns the vector widths along the rows for the rule `columns`. The width is the number of neighbouring rows of a
/// thread. It is more than 1 only if this leaves enough threads to occupy the device, or if the number of rows is
/// symbolic.
fn ways_of_rows(stages: &Stages, units: i64) -> Vec<Way> {
    let plain = Way { multiples: Multiples::of(1), condition: None };
    let Some(last) = stages.rows.last() else { return vec![plain] };
    let ways = stages.ways_along(last, false);
    let (rows, length) = (stages.row_count().as_int(), stages.row_length().as_int());
    // An estimate of the threads of a row: one for 4 elements, 1 to 32 in all; 8 if the length is symbolic.
    let parts = length.map_or(8, |length| (length / 4).clamp(1, 32));
    let is_enough = |way: &Way| rows.is_none_or(|rows| rows / way.width() * parts >= units * THREADS_OF_UNIT);
    if ways.iter().all(is_enough) { ways } else { vec![plain] }
}

/// Chooses the threads for strided rows, and the distribution of elements over them.
fn across(stages: &Stages, held: &Held, way: &Way) -> (Layout, Lanes) {
    let wide = way.width();
    let length = stages.row_length().as_int();
    let few_rows = stages.row_count().as_int().is_some_and(|rows| rows < 32 * 264 * wide);
    // The partial results of a row's threads are combined through shared memory, so more than 8 threads per row pay
    // only if there are few rows.
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
        // With several rows per thread, their accumulators need registers too.
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

/// Declines stages that other rules schedule better: rows without a loop over elements, small windows, and reductions
/// with two reads of which each uses a row axis that the other does not. For example, in the matrix product
/// `c[i, j] += a[i, k] * b[k, j]`, only `a` uses `i` and only `b` uses `j`.
fn check(stages: &Stages) -> Result<(), Declined> {
    Declined::when(stages.columns.is_empty(), "requires rows of several elements; found rows of one")?;
    if stages.columns.len() > 1 && stages.row_length().as_int().is_some_and(|length| length <= 64) {
        return Err(Declined::because("requires rows of more than 64 elements over several axes; found small windows"));
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
        // A matrix product: each of two reads uses a row axis that the other does not, so each reads elements that
        // several rows use.
        let misses = |a: &super::row_pipeline::Read, b: &super::row_pipeline::Read| {
            stages.rows.iter().any(|axis| !a.element.uses(axis.var) && b.element.uses(axis.var))
        };
        let product = read.iter().any(|a| read.iter().any(|b| misses(a, b) && misses(b, a)));
        Declined::when(product, "requires elements that one row uses; found a matrix product")?;
    }
    Ok(())
}

/// Whether more reads are contiguous along the last row axis than along the last column axis. Only reads that use both
/// axes count. For example, a sum over the leading axis, `s[j] += x[i, j]`, reads `x` contiguously along the rows `j`.
fn is_strided(stages: &Stages) -> bool {
    let (Some(row), Some(column)) = (stages.rows.last(), stages.columns.last()) else { return false };
    let of_both = |element: &rx_loops::Affine| element.uses(row.var) && element.uses(column.var);
    let (mut together, mut apart) = (0, 0);
    for read in stages.reads.iter().filter(|read| of_both(&read.element)) {
        together += usize::from(read.element.stride(column.var).as_constant() == Some(1));
        apart += usize::from(read.element.stride(row.var).as_constant() == Some(1));
    }
    apart > together
}

/// Whether the stages are one loop with a reduction, followed only by values of the row.
fn is_one_reduction(stages: &Stages, items: &[Item]) -> bool {
    match items {
        [Item::Loop(first), rest @ ..] => {
            stages.reductions(first).next().is_some() && rest.iter().all(|item| matches!(item, Item::Row(_)))
        }
        _ => false,
    }
}
