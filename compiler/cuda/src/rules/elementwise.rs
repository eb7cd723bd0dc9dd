//! Values of elements alone: maps, broadcasts, selects, casts, gathers, several results. A thread computes neighbours of the
//! result, as many as 16 bytes hold, and reads and writes them at once where they are neighbours there, too. Axes that all
//! accesses walk as one are one, so most maps need no division.
//!
//! Maps that come one after the other and touch nothing of each other's, as the parts of a concatenation, are one launch.

use super::stages::gather::{Form, gather};
use super::stages::lanes::{Held, Lanes};
use super::stages::print::Printer;
use super::stages::{Item, Stages};
use super::{Declined, KernelBody, Rule, Schedule, Task};
use crate::printer::Kernel;
use crate::printer::expr::RELATION;
use crate::source::{BLOCK_SIZE, LaunchShape};
use rx_schedule::{Nest, are_independent};
use rx_tir::{BufferId, Expr, PrimFunc, Stmt};

/// The rule.
pub(super) const RULE: Rule = Rule {
    name: "elementwise",
    summary: "Maps: a thread has neighbouring elements, read and written 16 bytes at once where they stand together.",
    take,
};

/// The most maps of one launch.
const MOST_PARTS: usize = 32;

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
        count => format!("{note}; {count} independent maps are one launch, each with blocks of its own"),
    };
    Ok(Schedule { note, ..Schedule::single(taken, MapKernel { parts }) })
}

/// The map behind the first `taken` statements, where it may run beside them and no rule before this one is for it.
fn beside(task: &Task<'_>, parts: &[Part], taken: usize) -> Option<(Part, usize)> {
    let rest = task.statements.get(taken..).filter(|rest| !rest.is_empty() && parts.len() < MOST_PARTS)?;
    let func = &parts.last()?.stages.func;
    let task = Task { func, statements: rest, temporaries: task.temporaries, target: task.target };
    let before = task.target.rules.rules().take_while(|rule| rule.name != RULE.name);
    if before.into_iter().any(|rule| rule.take(&task).is_ok()) {
        return None;
    }
    let (part, more) = Part::of(&task).ok()?;
    let func = &part.stages.func;
    let own: Vec<Nest> = part.nests(func)?;
    let others: Vec<Vec<Nest>> = parts.iter().map(|other| other.nests(func)).collect::<Option<_>>()?;
    let is_apart = others.iter().flatten().all(|other| own.iter().all(|own| are_independent(other, own, func)));
    is_apart.then_some((part, more))
}

/// Maps over the same elements, and how many neighbours of the result a thread computes.
struct Part {
    stages: Stages,
    width: i64,
}

impl Part {
    /// What the front of a task is, and of how many statements.
    fn of(task: &Task<'_>) -> Result<(Part, usize), Declined> {
        let (stages, taken) = gather(task, Form::Elements, usize::MAX)?;
        let width = stages.vector_width(true);
        Ok((Part { stages, width }, taken))
    }

    fn note(&self) -> String {
        let axes = match self.stages.columns.len() {
            1 => "one index".to_owned(),
            axes => format!("{axes} axes"),
        };
        match self.width {
            1 => format!("a thread per element, {axes}"),
            width => format!("{width} elements per thread, {axes}"),
        }
    }

    fn nests(&self, func: &PrimFunc) -> Option<Vec<Nest>> {
        self.stages.statements.iter().map(|stmt| Nest::of(stmt, func)).collect()
    }

    /// Whether the last group of elements may be less than a vector.
    fn has_tail(&self) -> bool {
        self.width > 1 && !rx_schedule::place::is_multiple(&self.stages.row_dim(), self.width)
    }

    /// The blocks it needs.
    fn blocks(&self) -> Expr {
        let width = Expr::int(self.width);
        let threads = (self.stages.row_length() + Expr::int(self.width - 1)).floor_div(width);
        let [blocks, ..] = LaunchShape::threads(threads).grid;
        blocks
    }

    /// Prints what the thread of block `block` of the part does.
    fn print(&self, kernel: &mut Kernel<'_>, block: &str) -> Result<(), String> {
        let lanes =
            Lanes { lane: "0", threads: 1, width: self.width, chunks: 0, has_rest: true, is_exact: false, split: None };
        let all: Vec<usize> = (0..self.stages.stages.len()).collect();
        let held = Held::of(&self.stages, &[Item::Loop(all.clone())]);
        let mut printer = Printer::new(kernel, &self.stages, lanes, None);
        let index = printer.index();
        printer.row_axes("0")?;
        let total = printer.kernel.operand(&self.stages.row_length(), RELATION + 1)?;
        let times = if self.width > 1 { format!(" * {}", self.width) } else { String::new() };
        let own = format!("({index}){block} * {BLOCK_SIZE} + threadIdx.x");
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

/// Parts that run beside each other.
struct MapKernel {
    parts: Vec<Part>,
}

impl KernelBody for MapKernel {
    fn func(&self) -> Option<&PrimFunc> {
        // Each part's function has the variables of those before it, too.
        self.parts.last().map(|part| &part.stages.func)
    }

    fn shape(&self) -> LaunchShape {
        let blocks = self.parts.iter().map(Part::blocks).reduce(|all, more| all + more).unwrap_or(Expr::int(0));
        LaunchShape { grid: [blocks, Expr::int(1), Expr::int(1)], block: [BLOCK_SIZE, 1, 1], shared_bytes: 0 }
    }

    fn statements(&self) -> Vec<&Stmt> {
        self.parts.iter().flat_map(|part| &part.stages.statements).collect()
    }

    fn kept(&self) -> Vec<BufferId> {
        self.parts.iter().flat_map(|part| part.stages.kept.clone()).collect()
    }

    fn is_cooperative(&self) -> bool {
        false
    }

    fn own_names(&self) -> &'static [&'static str] {
        &["i", "v"]
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let [parts @ .., last] = &self.parts[..] else { return Err("no map".to_owned()) };
        if parts.is_empty() {
            return last.print(kernel, "blockIdx.x");
        }
        let block = kernel.fresh_name("block");
        kernel.line(&format!("int {block} = blockIdx.x;"));
        for part in parts {
            let blocks = kernel.operand(&part.blocks(), RELATION + 1)?;
            kernel.open(&format!("if ({block} < {blocks}) {{"));
            part.print(kernel, &block)?;
            kernel.line("return;");
            kernel.close();
            kernel.line(&format!("{block} -= {blocks};"));
        }
        last.print(kernel, &block)
    }
}
