//! Values of elements alone: maps, broadcasts, selects, casts, gathers, several results. A thread computes neighbours of the
//! result, as many as 16 bytes hold, and reads and writes them at once where they are neighbours there, too. Axes that all
//! accesses walk as one are one, so most maps need no division.

use super::stages::gather::{Form, gather};
use super::stages::lanes::{Held, Lanes};
use super::stages::print::Printer;
use super::stages::{Item, Stages};
use super::{Declined, KernelBody, Rule, Schedule, Task};
use crate::printer::Kernel;
use crate::printer::expr::RELATION;
use crate::source::{BLOCK_SIZE, LaunchShape};
use rx_tir::{BufferId, Expr, PrimFunc, Stmt};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "elementwise",
    summary: "Maps: a thread has neighbouring elements, read and written 16 bytes at once where they stand together.",
    take,
};

fn take(task: &Task<'_>) -> Result<Schedule, Declined> {
    let (stages, taken) = gather(task, Form::Elements, usize::MAX)?;
    let width = stages.vector_width(true);
    let axes = match stages.columns.len() {
        1 => "one index".to_owned(),
        axes => format!("{axes} axes"),
    };
    let note = match width {
        1 => format!("a thread per element, {axes}"),
        width => format!("{width} elements per thread, {axes}"),
    };
    Ok(Schedule { note, ..Schedule::single(taken, MapKernel { stages, width }) })
}

struct MapKernel {
    stages: Stages,
    width: i64,
}

impl MapKernel {
    /// Whether the last group of elements may be less than a vector.
    fn has_tail(&self) -> bool {
        self.width > 1 && !rx_schedule::place::is_multiple(&self.stages.row_dim(), self.width)
    }
}

impl KernelBody for MapKernel {
    fn func(&self) -> Option<&PrimFunc> {
        Some(&self.stages.func)
    }

    fn shape(&self) -> LaunchShape {
        let width = Expr::int(self.width);
        let threads = (self.stages.row_length() + Expr::int(self.width - 1)).floor_div(width);
        LaunchShape::threads(threads)
    }

    fn statements(&self) -> Vec<&Stmt> {
        self.stages.statements.iter().collect()
    }

    fn kept(&self) -> Vec<BufferId> {
        self.stages.kept.clone()
    }

    fn is_cooperative(&self) -> bool {
        false
    }

    fn own_names(&self) -> &'static [&'static str] {
        &["i", "v"]
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let lanes =
            Lanes { lane: "0", threads: 1, width: self.width, chunks: 0, has_rest: true, is_exact: false, split: None };
        let all: Vec<usize> = (0..self.stages.stages.len()).collect();
        let held = Held::of(&self.stages, &[Item::Loop(all.clone())]);
        let mut printer = Printer::new(kernel, &self.stages, lanes, None);
        let index = printer.index();
        printer.row_axes("0")?;
        let total = printer.kernel.operand(&self.stages.row_length(), RELATION + 1)?;
        let times = if self.width > 1 { format!(" * {}", self.width) } else { String::new() };
        let own = format!("({index})blockIdx.x * {BLOCK_SIZE} + threadIdx.x");
        let own = if self.width > 1 { format!("({own}){times}") } else { own };
        printer.kernel.line(&format!("const {index} i = {own};"));
        printer.kernel.line(&format!("if (i >= {total}) return;"));
        printer.row_reads()?;
        printer.arrays(&held)?;
        if !self.has_tail() {
            return printer.body(&all, "i", None, self.width);
        }
        printer.kernel.open(&format!("if (i + {} <= {total}) {{", self.width));
        printer.body(&all, "i", None, self.width)?;
        printer.kernel.close();
        printer.kernel.open("else {");
        let k = printer.kernel.fresh_name("k");
        printer.kernel.open(&format!("for ({index} {k} = i; {k} < {total}; ++{k}) {{"));
        printer.body(&all, &k, None, 1)?;
        printer.kernel.close();
        printer.kernel.close();
        Ok(())
    }
}
