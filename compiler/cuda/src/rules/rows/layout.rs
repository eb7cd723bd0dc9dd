//! - [`Layout`]: the threads that compute a row. The rules `rows`, `columns`, `reduction` and `scan` use it.
//! - [`RowsKernel`]: the kernel in which these threads compute all stages of the rows. Only the rules `rows` and
//!   `columns` use it.

use super::super::row_pipeline::lanes::{Held, Lanes};
use super::super::row_pipeline::print::Printer;
use super::super::row_pipeline::vectors::when;
use super::super::row_pipeline::{Item, Stage, Stages};
use super::{Frame, KernelBody, SHARED_BLOCK};
use crate::printer::Kernel;
use crate::printer::expr::RELATION;
use crate::source::LaunchShape;
use rx_tir::Expr;
use std::rc::Rc;

/// The threads that compute a row, or one part of a split row.
#[derive(Clone, Debug)]
pub(in crate::rules) enum Layout {
    /// `lanes` neighbouring lanes of a warp, a power of two. A block has several rows.
    Warps { lanes: i64 },
    /// A block of `threads` threads.
    Block { threads: i64 },
    /// `parts` threads of a block, with the same `threadIdx.x` and different `threadIdx.y`. A block is 32 by `parts`
    /// threads; along x, each thread has `wide` neighbouring rows. For example, with `wide` 4 and `parts` 8, a block of
    /// 256 threads has 128 rows, each divided among 8 threads.
    Across { parts: i64, wide: i64 },
}

/// The fixed variable names that [`Layout`] and, except for scans, [`Printer`] use in a kernel.
pub(in crate::rules) const WORDS: &[&str] = &["lane", "part", "at", "is_row", "row", "chunk", "v", "by"];

/// The number of threads along x in [`Layout::Across`].
const SIDE_BY_SIDE: i64 = 32;

impl Layout {
    /// Returns the number of rows of a block.
    pub(in crate::rules) fn rows(&self) -> i64 {
        match self {
            Layout::Warps { lanes } => SHARED_BLOCK / lanes,
            Layout::Block { .. } => 1,
            Layout::Across { wide, .. } => SIDE_BY_SIDE * wide,
        }
    }

    /// Returns the dimensions of a block, in threads.
    pub(in crate::rules) fn block(&self) -> [u32; 3] {
        match self {
            Layout::Warps { .. } => [SHARED_BLOCK as u32, 1, 1],
            Layout::Block { threads } => [*threads as u32, 1, 1],
            Layout::Across { parts, .. } => [SIDE_BY_SIDE as u32, *parts as u32, 1],
        }
    }

    /// Returns the number of blocks for `rows` rows.
    pub(in crate::rules) fn blocks(&self, rows: Expr) -> Expr {
        match self.rows() {
            1 => rows,
            side => (rows + Expr::int(side - 1)).floor_div(Expr::int(side)),
        }
    }

    /// Returns the condition for a thread to store its elements, as CUDA text; `None` for [`Layout::Block`], where
    /// every thread has a row.
    pub(in crate::rules) fn guard(&self) -> Option<&'static str> {
        match self {
            Layout::Block { .. } => None,
            _ => Some("is_row"),
        }
    }

    /// Returns the condition that elects one thread of each row, as CUDA text.
    pub(in crate::rules) fn leader(&self) -> &'static str {
        match self {
            Layout::Warps { lanes: 1 } => "is_row",
            Layout::Warps { .. } => "lane == 0 && is_row",
            Layout::Block { .. } => "lane == 0",
            Layout::Across { parts: 1, .. } => "is_row",
            Layout::Across { .. } => "part == 0 && is_row",
        }
    }

    /// Emits a thread's row and its position among the row's threads.
    pub(in crate::rules) fn begin(&self, printer: &mut Printer<'_, '_, '_>, rows: &Expr) -> Result<(), String> {
        let index = printer.index;
        let at = match self {
            Layout::Warps { lanes } => {
                if *lanes > 1 {
                    printer.kernel.line(&format!("const int lane = threadIdx.x % {lanes};"));
                } else {
                    printer.kernel.line("const int lane = 0;");
                }
                let own = if *lanes > 1 { format!("threadIdx.x / {lanes}") } else { "threadIdx.x".to_owned() };
                format!("({index})blockIdx.x * {} + {own}", self.rows())
            }
            Layout::Block { .. } => {
                printer.kernel.line("const int lane = threadIdx.x;");
                printer.kernel.line(&format!("const {index} row = blockIdx.x;"));
                return printer.row_axes("row");
            }
            Layout::Across { wide, .. } => {
                printer.kernel.line("const int part = threadIdx.y;");
                let own = format!("({index})blockIdx.x * {SIDE_BY_SIDE} + threadIdx.x");
                if *wide > 1 { format!("({own}) * {wide}") } else { own }
            }
        };
        self.begin_row(printer, rows, &at)
    }

    /// Emits the thread's row, whose number is the C text `at`, and its axes. Threads beyond the last row compute the
    /// last one (or, with several rows per thread, the last ones) and do not store, so that all threads take part in
    /// barriers and shuffles.
    pub(in crate::rules) fn begin_row(
        &self,
        printer: &mut Printer<'_, '_, '_>,
        rows: &Expr,
        at: &str,
    ) -> Result<(), String> {
        let index = printer.index;
        let count = printer.kernel.operand(rows, RELATION + 1)?;
        printer.kernel.line(&format!("const {index} at = {at};"));
        printer.kernel.line(&format!("const bool is_row = at < {count};"));
        let last = if let Layout::Across { wide, .. } = self { *wide } else { 1 };
        printer.kernel.line(&format!("const {index} row = is_row ? at : {count} - {last};"));
        printer.row_axes("row")
    }

    /// Emits the cross-thread reduction of the partial results of a row's threads.
    pub(in crate::rules) fn join(&self, printer: &mut Printer<'_, '_, '_>, reduction: &[Stage]) -> Result<(), String> {
        match self {
            Layout::Warps { lanes } => printer.join_lanes(reduction, *lanes),
            Layout::Block { threads } => {
                printer.join_lanes(reduction, 32)?;
                printer.join_groups(reduction, ("lane / 32", threads / 32), ("lane % 32 == 0", 1))
            }
            Layout::Across { parts, .. } => {
                printer.join_groups(reduction, ("part", *parts), ("threadIdx.x", SIDE_BY_SIDE))
            }
        }
    }
}

/// A kernel that computes all stages of the rows.
pub(super) struct RowsKernel {
    /// The stages.
    stages: Rc<Stages>,
    /// The threads of a row.
    layout: Layout,
    /// How the elements of a row are divided among the threads.
    lanes: Lanes,
    /// The condition under which the host launches this kernel, otherwise it launches another one for the same rows;
    /// `None`: it always launches this one.
    condition: Option<Expr>,
}

impl RowsKernel {
    pub(super) fn new(stages: &Rc<Stages>, layout: Layout, lanes: Lanes, condition: Option<Expr>) -> RowsKernel {
        RowsKernel { stages: Rc::clone(stages), layout, lanes, condition }
    }
}

impl KernelBody for RowsKernel {
    fn frame(&self) -> Frame<'_> {
        let blocks = when(&self.condition, self.layout.blocks(self.stages.row_count()));
        let shape = LaunchShape { block: self.layout.block(), ..LaunchShape::blocks(blocks, 1) };
        Frame { own_names: WORDS, ..self.stages.frame(shape) }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let items = self.stages.items();
        let held = Held::of(&self.stages, &items);
        let mut printer = Printer::new(kernel, &self.stages, self.lanes.clone(), self.layout.guard());
        self.layout.begin(&mut printer, &self.stages.row_count())?;
        printer.row_reads()?;
        printer.arrays(&held)?;
        let leader = self.layout.leader();
        for item in &items {
            match item {
                Item::Loop(of) => {
                    printer.columns_loop(of)?;
                    for reduction in self.stages.reductions(of) {
                        self.layout.join(&mut printer, reduction)?;
                        reduction.iter().try_for_each(|stage| printer.finish(stage, leader))?;
                    }
                }
                Item::Row(at) => printer.row_stage(*at, leader)?,
            }
        }
        Ok(())
    }
}
