//! Which threads a row has, and the kernel that follows from it.

use super::super::stages::lanes::{Held, Lanes};
use super::super::stages::print::Printer;
use super::super::stages::vectors::when;
use super::super::stages::{Item, Stage, Stages};
use super::{Frame, KernelBody, SHARED_BLOCK};
use crate::printer::Kernel;
use crate::printer::expr::RELATION;
use crate::source::LaunchShape;
use rx_tir::Expr;
use std::rc::Rc;

/// The threads of a row.
#[derive(Clone, Debug)]
pub(in crate::rules) enum Layout {
    /// Some lanes of a warp, a power of two.
    Warps { lanes: i64 },
    /// A block.
    Block { threads: i64 },
    /// The threads of a block whose numbers on axis x are the same, `parts` of them; on axis x, 32 threads have `wide` rows each
    /// side by side.
    Across { parts: i64, wide: i64 },
}

/// The names that [`Layout`] and [`Printer`] print.
pub(in crate::rules) const WORDS: &[&str] = &["lane", "part", "at", "is_row", "row", "chunk", "v", "by"];

/// Threads side by side of [`Layout::Across`].
const SIDE_BY_SIDE: i64 = 32;

impl Layout {
    /// Rows of a block.
    pub(in crate::rules) fn rows(&self) -> i64 {
        match self {
            Layout::Warps { lanes } => SHARED_BLOCK / lanes,
            Layout::Block { .. } => 1,
            Layout::Across { wide, .. } => SIDE_BY_SIDE * wide,
        }
    }

    /// Threads of a block.
    pub(in crate::rules) fn block(&self) -> [u32; 3] {
        match self {
            Layout::Warps { .. } => [SHARED_BLOCK as u32, 1, 1],
            Layout::Block { threads } => [*threads as u32, 1, 1],
            Layout::Across { parts, .. } => [SIDE_BY_SIDE as u32, *parts as u32, 1],
        }
    }

    /// Blocks for so many rows.
    pub(in crate::rules) fn blocks(&self, rows: Expr) -> Expr {
        match self.rows() {
            1 => rows,
            side => (rows + Expr::int(side - 1)).floor_div(Expr::int(side)),
        }
    }

    /// What must hold where a thread stores.
    pub(in crate::rules) fn guard(&self) -> Option<&'static str> {
        match self {
            Layout::Block { .. } => None,
            _ => Some("is_row"),
        }
    }

    /// The condition that holds for one thread of the row.
    pub(in crate::rules) fn leader(&self) -> &'static str {
        match self {
            Layout::Warps { lanes: 1 } => "is_row",
            Layout::Warps { .. } => "lane == 0 && is_row",
            Layout::Block { .. } => "lane == 0",
            Layout::Across { parts: 1, .. } => "is_row",
            Layout::Across { .. } => "part == 0 && is_row",
        }
    }

    /// Prints which row and which of its threads a thread is.
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

    /// Prints the row with this number. Threads of no row go along with the last one, so that none is missing where they meet.
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

    /// Brings the parts of a row's threads together.
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

/// All stages of rows.
pub(super) struct RowsKernel {
    stages: Rc<Stages>,
    layout: Layout,
    lanes: Lanes,
    /// Where it does not hold, other threads do it.
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
