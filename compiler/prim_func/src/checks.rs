//! Static checks of kernels, most of which TVM does not make: bounds, races, reductions, regions, conversions, shadowed
//! variables, and loads before any store.
//!
//! The checks walk along the trace of a function (`reader::trace`). Statements that could not be read are not judged.
//! An index is an error if it is proved to be out of bounds for all values of the symbols for which the access happens;
//! the error names an iteration that shows it. An index that is out of bounds for some values only is a warning if the
//! index, its loops or its conditions depend on symbols, and the extent uses all of these; otherwise it is not
//! reported. The other checks give warnings; a race is searched for with a few values of the symbols only.
//!
//! ```text
//! def f(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
//!     for i in range(n):
//!         B[i] = A[i + 1]      # error: index n is out of bounds for axis 0 of `A`, which has extent n
//! ```

mod blocks;
mod bounds;
mod dtypes;
mod evaluate;
mod fixes;
mod path;
mod races;
mod reductions;
mod regions;
mod shadows;
mod symbolic;

use crate::reader::trace::{Access, Event, Trace, trace};
use blocks::{Blocks, Declared};
use evaluate::Intervals;
use fixes::Text;
use path::{Searcher, Step};
use rx_base::{Diagnostic, Name};
use rx_context::{FileContext, ItemPlace, with_uses};
use rx_syntax::Segments;
use rx_tir::{BufferId, Expr, VarId};
use std::cell::Cell;
use std::rc::Rc;
use symbolic::Start;

/// Reports the mistakes of the prim_func `name` that the reader and the checks of this module find; none if the text
/// has syntax errors.
pub fn check(segments: &Segments, context: &FileContext, name: Name) -> Vec<Diagnostic<ItemPlace>> {
    let Some(mut trace) = trace(segments, context, name) else { return Vec::new() };
    let mut found = std::mem::take(&mut trace.mistakes);
    let mut walk = Walk::new(&trace, Text::of(segments), context.spelled_namespace("T"));
    walk.run();
    found.append(&mut walk.found);
    with_uses(found)
}

/// A walk along a trace, with the facts that hold at the current event.
struct Walk<'t> {
    trace: &'t Trace,
    text: Text<'t>,
    /// The name by which the file refers to `T`.
    tir: &'t str,
    /// The loops, axes, values and conditions around the current event.
    path: Vec<Step<'t>>,
    /// The length of the path at each open [`Event::Open`].
    opened: Vec<usize>,
    /// Whether an early exit may have skipped the current event.
    may_have_left: bool,
    intervals: Intervals,
    searcher: Searcher,
    /// Variables that no event binds, such as symbols and scalar parameters.
    symbols: Vec<VarId>,
    start: Start,
    bounds: bounds::Findings<'t>,
    blocks: Blocks<'t>,
    /// The region declarations that have been reported.
    regions_told: Vec<ItemPlace>,
    found: Vec<Diagnostic<ItemPlace>>,
}

impl<'t> Walk<'t> {
    fn new(trace: &'t Trace, text: Text<'t>, tir: &'t str) -> Walk<'t> {
        let vars = trace.func.vars.len();
        let mut start = Start { fuel: Rc::new(Cell::new(path::FUEL)), ..Start::default() };
        start.extents.extend(&trace.func.symbols);
        for buffer in &trace.params {
            start.extents.extend(trace.func.buffer(*buffer).shape.iter().filter_map(|dim| match dim {
                Expr::Var { var, .. } => Some(*var),
                _ => None,
            }));
        }
        start.written.extend(trace.events.iter().filter_map(|event| match event {
            Event::Access(access) if access.write => Some(access.buffer),
            _ => None,
        }));
        // A statement that could not be read may write buffers, so all buffers count as written.
        let unread = trace.events.iter().any(|event| matches!(event, Event::Unread(_)));
        if unread {
            start.written.extend((0..trace.func.buffers.len() as u32).map(BufferId));
        }
        let mut bound = vec![false; vars];
        for event in &trace.events {
            let var = match event {
                Event::Loop(it) => it.var,
                Event::Axis(axis) => axis.iter.var,
                Event::Let { var, .. } => *var,
                _ => continue,
            };
            if let Some(bound) = bound.get_mut(var.0 as usize) {
                *bound = true;
            }
        }
        let free = (0u32..).zip(&bound).filter(|(_, bound)| !**bound).map(|(var, _)| VarId(var));
        Walk {
            trace,
            text,
            tir,
            path: Vec::new(),
            opened: Vec::new(),
            may_have_left: false,
            intervals: Intervals::of(vars),
            searcher: Searcher::new(vars),
            symbols: free.collect(),
            start,
            bounds: bounds::Findings::default(),
            blocks: Blocks::default(),
            regions_told: Vec::new(),
            found: Vec::new(),
        }
    }

    fn run(&mut self) {
        for event in &self.trace.events {
            self.step(event);
        }
        self.tell_unwritten();
        let bounds = std::mem::take(&mut self.bounds);
        self.found.extend(bounds.into_diagnostics());
    }

    fn step(&mut self, event: &'t Event) {
        match event {
            Event::Open => self.opened.push(self.path.len()),
            Event::Close => {
                self.blocks.close(self.opened.len());
                let length = self.opened.pop().unwrap_or_default();
                self.path.truncate(length);
            }
            Event::Loop(it) => {
                self.check_shadow(it.name, Some(it.kind), &it.place);
                let (start, extent) = (self.intervals.interval(&it.start), self.intervals.interval(&it.extent));
                let last = start.zip(extent).and_then(|(start, extent)| start.1.checked_add(extent.1)?.checked_sub(1));
                let interval = start.zip(last).filter(|(start, last)| *last >= start.0);
                self.intervals.set(it.var, interval.map(|(start, last)| (start.0, last)));
                self.path.push(Step::Loop(it));
            }
            Event::Axis(axis) => {
                self.check_shadow(axis.name, None, &axis.place);
                let interval = self.intervals.interval(&axis.iter.binding);
                self.intervals.set(axis.iter.var, interval);
                self.path.push(Step::Axis(axis));
            }
            Event::Let { var, value } => {
                let interval = self.intervals.interval(value);
                self.intervals.set(*var, interval);
                self.path.push(Step::Let(*var, value));
            }
            Event::Assume { condition, holds } => {
                self.blocks.assume(self.opened.len());
                self.path.push(Step::Assume(condition, *holds));
            }
            Event::Leave => self.may_have_left = true,
            Event::Access(access) => self.access(access),
            Event::Block => self.blocks.enter(self.opened.len(), self.path.len()),
            Event::Init => self.blocks.enter_init(self.opened.len()),
            Event::Regions { write, regions, complete, place } => {
                self.blocks.declare(*write, Declared { regions, complete: *complete, place });
            }
            Event::Allocate(buffer) => self.blocks.allocate(*buffer, self.path.len()),
            Event::Unread(names) => self.blocks.unread(names, &self.trace.func),
            Event::Converted { from, constant, into, place } => {
                self.report_converted((*from, *constant), *into, place);
            }
        }
    }

    fn access(&mut self, access: &'t Access) {
        let outside = self.check_bounds(access);
        if !outside {
            self.check_regions(access);
        }
        if !access.write {
            self.blocks.loads.push(access);
        }
        if access.write {
            self.note_unwritten(access);
            self.drop_unwritten(access.buffer);
            self.check_reduction(access);
            self.check_races(access);
            self.blocks.written.insert(access.buffer);
        }
    }
}
