//! Prints the kernels of a scan. In each iteration, a row's threads load their elements, scan them, and execute the
//! stages after the scan. The first kernel of split rows only reduces the elements.

use super::super::row_pipeline::lanes::{Held, Lanes};
use super::super::row_pipeline::print::Printer;
use super::super::row_pipeline::print::scan::{Scan, Scanners};
use super::super::row_pipeline::vectors::when;
use super::super::row_pipeline::{Item, Stages};
use super::super::rows::layout::Layout;
use crate::printer::Kernel;
use crate::printer::expr::RELATION;
use crate::rules::{Frame, KernelBody};
use crate::source::LaunchShape;
use rx_tir::Expr;
use std::rc::Rc;

/// Returns the condition that holds for one thread of the row, as C text.
fn leader(layout: &Layout) -> &'static str {
    match layout {
        Layout::Warps { lanes: 1 } | Layout::Across { parts: 1, .. } => "is_row",
        Layout::Warps { .. } => "lane == 0 && is_row",
        Layout::Block { .. } => "threadIdx.x == 0",
        Layout::Across { .. } => "group == 0 && is_row",
    }
}

/// Prints the thread's row, and its position among the threads of the row.
fn begin(layout: &Layout, printer: &mut Printer<'_, '_, '_>, rows: &Expr) -> Result<(), String> {
    let (index, of_block) = (printer.index, layout.rows());
    let at = match layout {
        Layout::Warps { lanes: 1 } => format!("({index})blockIdx.x * {of_block} + threadIdx.x"),
        Layout::Warps { lanes } => {
            printer.kernel.line(&format!("const int lane = threadIdx.x % {lanes};"));
            format!("({index})blockIdx.x * {of_block} + threadIdx.x / {lanes}")
        }
        Layout::Block { .. } => {
            printer.kernel.line("const int lane = threadIdx.x % 32, group = threadIdx.x / 32;");
            printer.kernel.line(&format!("const {index} row = blockIdx.x;"));
            return printer.row_axes("row");
        }
        Layout::Across { parts, .. } => {
            if *parts > 1 {
                printer.kernel.line("const int group = threadIdx.y;");
            }
            format!("({index})blockIdx.x * {of_block} + threadIdx.x")
        }
    };
    layout.begin_row(printer, rows, &at)
}

/// The part of the work that a kernel does. If rows are split among blocks, it has the number of parts of a row.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Scans whole rows.
    Whole,
    /// Reduces each part of a row to one value, in scratch memory.
    Parts(Expr),
    /// Scans each part of a row. The scan of a part begins with the combination of the values that [`Step::Parts`]
    /// computed for the parts before it.
    Scan(Expr),
}

/// A kernel of a scan.
pub(super) struct ScanKernel {
    /// The stages: the scan, and those before and after it.
    pub(super) stages: Rc<Stages>,
    /// The scan's number among the stages.
    pub(super) scan: usize,
    /// The threads of a row, or of a part of it.
    pub(super) layout: Layout,
    /// How the elements of a row, or of a part of it, are divided among these threads.
    pub(super) scanners: Scanners,
    /// The condition for launching it; where it is false, another kernel scans the rows. `None`: it is always launched.
    pub(super) condition: Option<Expr>,
    /// The part of the work that it does.
    pub(super) step: Step,
}

impl ScanKernel {
    /// Returns the column of the thread's first element of a chunk, in an iteration that begins at column `start`, as C
    /// text.
    fn first_of(&self, start: Option<&str>, chunk: &str) -> String {
        let Scanners { lanes, groups, chunks, width, .. } = self.scanners;
        let number = match (groups, chunks) {
            (1, 1) => String::new(),
            (1, _) => chunk.to_owned(),
            (_, 1) => "group".to_owned(),
            _ => format!("(group * {chunks} + {chunk})"),
        };
        let number = match (number.as_str(), lanes) {
            ("", 1) => "0".to_owned(),
            ("", _) => "lane".to_owned(),
            (_, 1) => number,
            _ => format!("({number} * {lanes} + lane)"),
        };
        let number = if width > 1 { format!("{number} * {width}") } else { number };
        match start {
            Some(start) => format!("{start} + {number}"),
            None => number,
        }
    }

    /// Whether the kernel scans whole rows of a constant length, each in one iteration.
    fn is_one_round(&self) -> bool {
        let length = self.stages.row_length().as_int();
        matches!(self.step, Step::Whole) && length.is_some_and(|length| length <= self.scanners.at_once())
    }

    /// Opens the loop along the row, or along the block's part of it; none if [`Self::is_one_round`]. Returns the C
    /// texts of an iteration's first column (`None` without a loop) and of the exclusive end of the row or part.
    fn open_iterations(&self, printer: &mut Printer<'_, '_, '_>) -> Result<(Option<&'static str>, String), String> {
        let length = printer.kernel.operand(&self.stages.row_length(), RELATION + 1)?;
        if self.is_one_round() {
            return Ok((None, length));
        }
        let (index, step) = (printer.index, self.scanners.at_once());
        let (first, end) = match &self.step {
            Step::Whole => ("0", length),
            Step::Parts(_) | Step::Scan(_) => {
                let all = format!("(int)gridDim.y * {step}");
                let trips = printer.kernel.fresh_name("trips");
                // All parts have the same number of iterations, except that the last ones may have fewer or none.
                printer.kernel.line(&format!("const {index} {trips} = ({length} + {all} - 1) / ({all});"));
                printer.kernel.line(&format!("const {index} first = (int)blockIdx.y * {trips} * {step};"));
                let last = format!("first + {trips} * {step}");
                printer.kernel.line(&format!("const {index} end = {last} < {length} ? {last} : {length};"));
                ("first", "end".to_owned())
            }
        };
        printer.kernel.open(&format!("for ({index} start = {first}; start < {end}; start += {step}) {{"));
        Ok((Some("start"), end))
    }

    /// Prints the given stages for a thread's elements of one iteration.
    fn elements(
        &self,
        printer: &mut Printer<'_, '_, '_>,
        (stages, scan): (&[usize], Option<&Scan<'_>>),
        (start, end): (Option<&str>, &str),
    ) -> Result<(), String> {
        let Scanners { chunks, width, .. } = self.scanners;
        let is_exact = self.is_one_round() && self.stages.row_length().as_int() == Some(self.scanners.at_once());
        let chunk = printer.open_chunks(chunks);
        let k = printer.kernel.fresh_name("k");
        let index = printer.index;
        printer.kernel.line(&format!("const {index} {k} = {};", self.first_of(start, chunk)));
        if !is_exact {
            if let Some(scan) = scan {
                printer.leave_out(scan, chunk, width)?;
            }
            printer.kernel.open(&format!("if ({k} < {end}) {{"));
        }
        printer.body(stages, &k, Some(chunk), width)?;
        if !is_exact {
            printer.kernel.close();
        }
        printer.close_chunks(chunks);
        Ok(())
    }
}

impl KernelBody for ScanKernel {
    fn frame(&self) -> Frame<'_> {
        let blocks = when(&self.condition, self.layout.blocks(self.stages.row_count()));
        let parts = match &self.step {
            Step::Whole => Expr::int(1),
            Step::Parts(parts) | Step::Scan(parts) => parts.clone(),
        };
        let shape = LaunchShape { grid: [blocks, parts, Expr::int(1)], block: self.layout.block(), shared_bytes: 0 };
        let own_names = &["lane", "group", "at", "is_row", "row", "chunk", "v", "by", "start", "first", "end"];
        Frame { own_names, ..self.stages.frame(shape) }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let Scanners { lanes, groups, chunks, width, .. } = self.scanners;
        let before: Vec<usize> = (0..=self.scan).collect();
        let behind: Vec<usize> = (self.scan + 1..self.stages.stages.len()).collect();
        let held = match self.step {
            Step::Parts(_) => Held { reads: Vec::new(), stages: Vec::new(), registers: 0 },
            _ => Held::of(&self.stages, &[Item::Loop(before.clone()), Item::Loop(behind.clone())]),
        };
        let threads = lanes * groups;
        let is_exact = self.is_one_round();
        let multiples = self.scanners.multiples.clone();
        let of =
            Lanes { lane: "lane", threads, width, chunks, has_rest: !is_exact, is_exact, ..Lanes::single(multiples) };
        let mut printer = Printer::new(kernel, &self.stages, of, self.layout.guard());
        let parts = match &self.step {
            Step::Whole => None,
            Step::Parts(_) | Step::Scan(_) => {
                let ctype = printer.kernel.ctype(self.stages.stages[self.scan].target.dtype)?;
                Some(printer.kernel.scratch_buffer(0, "parts", ctype))
            }
        };
        let rows = self.stages.row_count();
        begin(&self.layout, &mut printer, &rows)?;
        printer.row_reads()?;
        printer.arrays(&held)?;
        let rows = printer.kernel.operand(&rows, crate::printer::expr::PRODUCT + 1)?;
        let place = |part: &str| match rows.as_str() {
            "1" => part.to_owned(),
            rows => format!("(long long){part} * {rows} + row"),
        };
        let goes_on = !matches!(self.step, Step::Parts(_));
        let scan = printer.begin_scan(self.scan, &self.scanners, goes_on)?;
        if let (Step::Scan(_), Some(parts)) = (&self.step, &parts) {
            let value = |part: &str| format!("{parts}[{}]", place(part));
            printer.carry_parts(&scan, &self.scanners, (&value, "(int)blockIdx.y"))?;
        }
        let (start, end) = self.open_iterations(&mut printer)?;
        let own: Vec<usize> = match self.step {
            Step::Parts(_) => vec![self.scan],
            _ => before.clone(),
        };
        self.elements(&mut printer, (&own, Some(&scan)), (start, &end))?;
        match self.step {
            Step::Parts(_) => printer.sum_up(&scan, &self.scanners)?,
            _ => {
                printer.scan(&scan, &self.scanners)?;
                printer.fill(&before);
                self.elements(&mut printer, (&behind, None), (start, &end))?;
                printer.read_anew();
            }
        }
        if start.is_some() {
            printer.kernel.close();
        }
        if let (Step::Parts(_), Some(parts)) = (&self.step, &parts) {
            printer.join_carries(&scan, &self.scanners)?;
            let (leader, carry) = (leader(&self.layout), &scan.carry);
            printer.kernel.line(&format!("if ({leader}) {parts}[{}] = {carry};", place("blockIdx.y")));
        }
        Ok(())
    }
}
