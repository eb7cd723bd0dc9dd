//! Schedule rule `elementwise`: maps, broadcasts, selects, casts and gathers, with one or several results, vectorized.
//!
//! ```text
//! for i, j: out[i, j] = f(x[i, j], y[j])
//! →
//! thread t: k = t * width                                     // up to 16 bytes of the narrowest dtype
//!           load x[k .. k + width] as one vector, and y       // for several groups, all loads first
//!           compute, store out[k .. k + width] as one vector
//! ```
//!
//! Requires: elementwise statements (no reductions) over the same loops. Guarantees: axes that all accesses traverse as
//! one, and that no value uses as a number, are one index, so that most maps need no division. If a group of neighbours
//! is aligned only for some arguments of the call, there are usually two kernels, and the host launches the one that
//! fits ([`super::row_pipeline::vectors`]). If there are many elements (or a symbolic number of them) with little data
//! each, a thread processes several groups, and issues their unconditional loads before the first use.
//!
//! Consecutive independent maps, such as the parts of a concatenation, are one launch of up to 32 maps: each map has
//! its range of blocks.
//!
//! Reference: TVM's `python/tvm/s_tir/dlight/gpu/fallback.py` schedules such functions, without vectors.

use super::row_pipeline::Stages;
use super::row_pipeline::lanes::{Held, Lanes};
use super::row_pipeline::print::Printer;
use super::row_pipeline::vectors::{Way, when};
use super::{Declined, Frame, KernelBody, Rule, Schedule, Task};
use crate::printer::Kernel;
use crate::printer::expr::RELATION;
use crate::source::{BLOCK_SIZE, LaunchShape};
use rx_loops::{Nest, are_independent};
use rx_tir::Expr;
use std::rc::Rc;

/// The rule `elementwise`.
pub(super) const RULE: Rule = Rule {
    name: "elementwise",
    summary: "Elementwise statements: neighbouring elements per thread, 16-byte loads and stores where contiguous.",
    take,
};

/// The largest number of maps in one launch.
const MOST_PARTS: usize = 32;

/// Bytes that a thread should load before the first use, which limits the number of vector groups. With 2048 threads
/// this is 128 KB, more than a multiprocessor of an H100 or H200 must have in flight to keep its memory busy: a latency
/// of about 600 ns times 1/132 of 4 TB/s is about 18 KB.
const BYTES_AT_ONCE: i64 = 64;

/// The largest number of vector groups per thread.
const MOST_GROUPS: i64 = 4;

/// The largest number of groups if the number of elements is not a constant, and may be small.
const USUAL_GROUPS: i64 = 2;

/// The maximum number of resident threads of a multiprocessor, as on `sm_80` and `sm_90`.
const THREADS_OF_UNIT: i64 = 2048;

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (first, mut taken) = Part::of(task)?;
    let note = first.note();
    let mut parts = vec![first];
    while let Some((part, more)) = beside(task, &parts, taken) {
        parts.push(part);
        taken += more;
    }
    let note = match parts.len() {
        1 => note,
        count => format!("{note}; {count} independent statements in one launch, each with separate blocks"),
    };
    let parts = Rc::new(parts);
    let kernel = |is_plain, condition| -> Box<dyn KernelBody> {
        Box::new(MapKernel { parts: Rc::clone(&parts), is_plain, condition })
    };
    // If a part's vectorization depends on the call's arguments, there are two kernels, of which the host launches one.
    // In the first, all parts use their first vectorization; in the second, the one that is correct for all arguments.
    let conditions = parts.iter().filter_map(|part| part.ways.first()?.condition.clone());
    let kernels = match conditions.reduce(|all, one| all.and(one)) {
        Some(condition) => vec![kernel(false, Some(condition.clone())), kernel(true, Some(!condition))],
        None => vec![kernel(true, None)],
    };
    Ok(Schedule { taken, kernels, scratch: Vec::new(), note })
}

/// Returns the map after the first `taken` statements and how many statements it has, if it can share their launch: it
/// is independent of them, no earlier rule takes it, and the launch has fewer than [`MOST_PARTS`] maps.
fn beside(task: &Task<'_>, parts: &[Part], taken: usize) -> Option<(Part, usize)> {
    let func = &parts.last()?.stages.func;
    let task = Task { func, ..task.behind(taken).filter(|_| parts.len() < MOST_PARTS)? };
    let before = task.target.rules.rules().take_while(|rule| rule.name != RULE.name);
    if before.into_iter().any(|rule| rule.take(&task).is_ok()) {
        return None;
    }
    let (part, more) = Part::of(&task).ok()?;
    let func = &part.stages.func;
    let own = part.nests.as_ref()?;
    let is_apart = |other: &Part| {
        let others = other.nests.as_ref()?;
        Some(others.iter().all(|other| own.iter().all(|own| are_independent(other, own, func))))
    };
    parts.iter().all(|other| is_apart(other) == Some(true)).then_some((part, more))
}

/// A map: statements over the same elements, with the possible vectorizations.
struct Part {
    stages: Rc<Stages>,
    /// The possible vectorizations. The first may depend on the call's arguments; the last is correct for all of them.
    ways: Vec<Way>,
    /// The number of multiprocessors to occupy.
    units: i64,
    /// The loop nests of the statements; `None` if one is no such nest.
    nests: Option<Vec<Nest>>,
}

impl Part {
    /// Matches the task's first statements as a map, and returns their number.
    fn of(task: &Task<'_>) -> Result<(Part, usize), Declined> {
        let (stages, taken) = task.elements()?;
        let ways = stages.ways(true);
        let nests = stages.statements.iter().map(|stmt| Nest::of(stmt, &stages.func)).collect();
        Ok((Part { stages, ways, units: i64::from(task.target.units.max(1)), nests }, taken))
    }

    fn note(&self) -> String {
        let axes = match self.stages.columns.len() {
            1 => "1 axis".to_owned(),
            axes => format!("{axes} axes"),
        };
        let how = |way: &Way| match (self.groups(way), way.width()) {
            (1, 1) => "1 element per thread".to_owned(),
            (groups, 1) => format!("{groups} elements per thread"),
            (1, width) => format!("{width} elements per thread{}", way.when()),
            (groups, width) => format!("{groups} x {width} elements per thread{}", way.when()),
        };
        let ways: Vec<String> = self.ways.iter().map(how).collect();
        format!("{}, {axes}", ways.join(", otherwise "))
    }

    /// Returns the number of vector groups per thread, a power of two. If there are several, the unconditional loads of
    /// all of them are issued before the first use.
    fn groups(&self, way: &Way) -> i64 {
        let reads = self.stages.reads.iter().filter(|read| read.is_of_columns);
        let bytes: i64 = reads.map(|read| read.dtype.bytes().cast_signed() * way.width()).sum();
        if bytes == 0 {
            return 1;
        }
        let most = match self.stages.row_length().as_int() {
            Some(length) => (length / way.width() / (self.units * THREADS_OF_UNIT)).min(MOST_GROUPS),
            None => USUAL_GROUPS,
        };
        1 << (BYTES_AT_ONCE / bytes).min(most).max(1).ilog2()
    }

    /// Returns the vectorization that a kernel uses: the plain one, which fits all calls, or the first.
    fn way(&self, is_plain: bool) -> Option<&Way> {
        if is_plain { self.ways.last() } else { self.ways.first() }
    }

    /// Returns the number of blocks that the map needs.
    fn blocks(&self, is_plain: bool) -> Expr {
        let own = self.way(is_plain).map_or(1, |way| way.width() * self.groups(way));
        let threads = (self.stages.row_length() + Expr::int(own - 1)).floor_div(Expr::int(own));
        let [blocks, ..] = LaunchShape::threads(threads).grid;
        blocks
    }

    /// Emits the code of the map for one thread. `block` is the text of the block's number among the map's blocks.
    fn print(&self, kernel: &mut Kernel<'_>, block: &str, is_plain: bool) -> Result<(), String> {
        let way = self.way(is_plain).ok_or("requires a vector width; found none")?;
        let (width, groups) = (way.width(), self.groups(way));
        let all: Vec<usize> = (0..self.stages.stages.len()).collect();
        let chunks = if groups > 1 { groups } else { 0 };
        let lanes = Lanes { chunks, ..Lanes::single(way.multiples.clone()) };
        let mut printer = Printer::new(kernel, &self.stages, lanes, None);
        let index = printer.index;
        printer.row_axes("0")?;
        let total = printer.kernel.operand(&self.stages.row_length(), RELATION + 1)?;
        let own = format!("({index}){block} * {} + threadIdx.x", i64::from(BLOCK_SIZE) * groups);
        let own = if width > 1 { format!("({own}) * {width}") } else { own };
        printer.kernel.line(&format!("const {index} i = {own};"));
        printer.kernel.line(&format!("if (i >= {total}) return;"));
        printer.row_reads()?;
        let has_tail = width > 1 && !way.multiples.has(&self.stages.row_dim());
        if groups == 1 {
            return group(&mut printer, (&all, None), ("i", &total), (width, has_tail));
        }
        let reads = (0..self.stages.reads.len()).filter(|at| self.stages.reads[*at].is_of_columns).collect();
        printer.arrays(&Held { reads, stages: Vec::new(), registers: 0 })?;
        let step = i64::from(BLOCK_SIZE) * width;
        let each = |printer: &mut Printer<'_, '_, '_>, is_there: bool| -> Result<(), String> {
            let k = printer.kernel.fresh_name("k");
            printer.kernel.unrolled("chunk", groups);
            printer.kernel.line(&format!("const {index} {k} = i + chunk * {step};"));
            let end =
                if has_tail && !is_there { format!("{k} + {width} <= {total}") } else { format!("{k} < {total}") };
            printer.kernel.open(&format!("if ({end}) {{"));
            match is_there {
                false => printer.load_vectors(&all, &k, "chunk", width)?,
                true => group(printer, (&all, Some("chunk")), (&k, &total), (width, has_tail))?,
            }
            printer.kernel.close();
            printer.kernel.close();
            Ok(())
        };
        printer.kernel.line("// All loads are issued before the first use.");
        each(&mut printer, false)?;
        printer.fill(&all);
        each(&mut printer, true)
    }
}

/// Emits the code for the group of `width` elements that begins at `k`. If `has_tail`, the axis may end within the
/// group; a scalar loop then computes the elements up to the end.
fn group(
    printer: &mut Printer<'_, '_, '_>,
    (stages, chunk): (&[usize], Option<&str>),
    (k, total): (&str, &str),
    (width, has_tail): (i64, bool),
) -> Result<(), String> {
    if !has_tail {
        return printer.body(stages, k, chunk, width);
    }
    printer.kernel.open(&format!("if ({k} + {width} <= {total}) {{"));
    printer.body(stages, k, chunk, width)?;
    printer.kernel.close();
    printer.kernel.open("else {");
    let (index, one) = (printer.index, printer.kernel.fresh_name("k"));
    printer.kernel.open(&format!("for ({index} {one} = {k}; {one} < {total}; ++{one}) {{"));
    printer.body(stages, &one, None, 1)?;
    printer.kernel.close();
    printer.kernel.close();
    Ok(())
}

/// The kernel of one or several maps, each with its range of blocks.
struct MapKernel {
    parts: Rc<Vec<Part>>,
    /// Whether the maps use the plain vectorization, which fits all calls.
    is_plain: bool,
    /// The condition on the call's arguments under which the host launches this kernel; otherwise it launches the other
    /// one. `None` if there is no other.
    condition: Option<Expr>,
}

impl KernelBody for MapKernel {
    fn frame(&self) -> Frame<'_> {
        let blocks = self.parts.iter().map(|part| part.blocks(self.is_plain));
        let blocks = blocks.reduce(|all, more| all + more).unwrap_or(Expr::int(0));
        let shape = LaunchShape::blocks(when(&self.condition, blocks), BLOCK_SIZE);
        Frame {
            // The last part's function has the variables of all parts, because each was built from the one before it.
            func: self.parts.last().map(|part| &part.stages.func),
            kept: self.parts.iter().flat_map(|part| part.stages.kept.clone()).collect(),
            is_cooperative: false,
            own_names: &["i", "v", "chunk"],
            ..Frame::new(shape, self.parts.iter().flat_map(|part| &part.stages.statements))
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let [parts @ .., last] = &self.parts[..] else {
            return Err("requires an elementwise statement; found none".to_owned());
        };
        if parts.is_empty() {
            return last.print(kernel, "blockIdx.x", self.is_plain);
        }
        let block = kernel.fresh_name("block");
        kernel.line(&format!("int {block} = blockIdx.x;"));
        for part in parts {
            let blocks = kernel.operand(&part.blocks(self.is_plain), RELATION + 1)?;
            kernel.open(&format!("if ({block} < {blocks}) {{"));
            part.print(kernel, &block, self.is_plain)?;
            kernel.line("return;");
            kernel.close();
            kernel.line(&format!("{block} -= {blocks};"));
        }
        last.print(kernel, &block, self.is_plain)
    }
}
