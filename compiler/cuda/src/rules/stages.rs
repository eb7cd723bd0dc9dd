//! Statements over the same loops, as stages that one kernel does in turn for each row.
//!
//! A *row* is what some outer axes select; its elements are counted by *columns*. A stage computes a value for every
//! element, combines such values to one of the row, or computes one of the row from others. Values of earlier stages are
//! variables of later ones, so they need no memory unless something behind reads them. That holds because every access to a
//! buffer that a stage writes is at the place it writes: [`gather`] takes no statement for which this is not so.
//!
//! `rows`, `reduction` (few long rows), `columns` (along leading axes), `elementwise` and `transpose` are stages under different
//! threads. A tuple reduction (a maximum and its index) is one stage for each value; it is taken if the update chooses the same side in
//! any order (`rx_schedule::commutes`). A let value of a statement is a stage that is not stored.

pub(super) mod gather;
pub(super) mod lanes;
pub(super) mod print;
pub(super) mod vectors;

use super::{Frame, Task};
use crate::source::LaunchShape;
use rx_base::{DType, Dim};
use rx_schedule::Affine;
use rx_schedule::scope::Scope;
use rx_tir::{BinaryOp, BufferId, Expr, PrimFunc, Stmt, VarId};

/// A loop that stages share, from 0.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) var: VarId,
    /// Its values, an `int64` of the function's scalars.
    pub(super) extent: Expr,
    /// The same.
    pub(super) dim: Dim,
}

/// What a stage's value is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// One of each element.
    Element,
    /// One of the row, of values of the row.
    Row,
    /// One of the row: `combine(init, value of every element)`.
    Reduction { combine: Combine, init: Expr },
    /// One of each element: `combine(carried, values of all elements up to it)`. It is stored by a stage of its own.
    Scan { combine: BinaryOp, carried: Option<Carried> },
}

/// How a reduction combines two values.
#[derive(Clone, Debug)]
pub(super) enum Combine {
    /// By an operation.
    Operation(BinaryOp),
    /// By choosing one of them ([`rx_schedule::JointPart`]), for a tuple of values at once: a maximum and its index. `chosen` is over the
    /// variables [`Stage::var`] and [`Stage::other`] of all `count` stages of the tuple, which follow each other; this is number `place`.
    Choice { chosen: Expr, place: usize, count: usize },
}

impl Combine {
    /// The first value of each thread's part: one that may be combined any number of times.
    pub(super) fn begin(&self, init: &Expr, dtype: DType) -> Option<Expr> {
        match self {
            Combine::Operation(combine) => print::begin(*combine, init, dtype),
            Combine::Choice { .. } => Some(init.clone()),
        }
    }
}

/// A statement's part in a kernel.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) kind: Kind,
    /// Where the value lies in memory, if it does: its number in the buffer.
    pub(super) target: Target,
    /// The value; what it reads is variables, of [`Stages::reads`] and of other stages, but for elements that are read
    /// only under a condition.
    pub(super) value: Expr,
    /// The variable its value is to other stages.
    pub(super) var: VarId,
    /// A value of another thread that is combined with its own.
    pub(super) other: VarId,
}

/// Where a stage's value lies.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) element: Affine,
    pub(super) index: Expr,
    pub(super) dtype: DType,
    /// Whether anything but these stages sees it.
    pub(super) is_stored: bool,
}

/// An element that stages read in any case, and the variable it is to them.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) element: Affine,
    pub(super) index: Expr,
    pub(super) dtype: DType,
    pub(super) var: VarId,
    /// Whether it is one of the row's elements, not the same for all of them.
    pub(super) is_of_columns: bool,
}

/// The element of a row that a scan goes on from.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    pub(super) element: Affine,
    pub(super) index: Expr,
}

/// Stages over shared loops.
pub(super) struct Stages {
    /// The function with the stages' variables.
    pub(super) func: PrimFunc,
    /// Axes that tell rows apart, outermost first.
    pub(super) rows: Vec<Axis>,
    /// Axes of a row, outermost first.
    pub(super) columns: Vec<Axis>,
    pub(super) stages: Vec<Stage>,
    pub(super) reads: Vec<Read>,
    /// The statements they are.
    pub(super) statements: Vec<Stmt>,
    /// Buffers that are not in memory.
    pub(super) kept: Vec<BufferId>,
    /// What is known of the function's symbols, for writing down extents.
    pub(super) scope: Scope,
    /// Whether all places are within 32 bits.
    pub(super) is_small: bool,
}

/// Stages in an order in which each loop over the columns needs no value that it makes itself of a whole row.
pub(super) enum Item {
    /// One loop over the columns for these stages.
    Loop(Vec<usize>),
    /// A value of the row.
    Row(usize),
}

impl Stages {
    /// A kernel of all stages.
    pub(super) fn frame(&self, shape: LaunchShape) -> Frame<'_> {
        Frame { func: Some(&self.func), kept: self.kept.clone(), ..Frame::new(shape, &self.statements) }
    }

    /// How many rows there are; an `int64`.
    pub(super) fn row_count(&self) -> Expr {
        product(&self.rows)
    }

    /// How many elements a row has; an `int64`.
    pub(super) fn row_length(&self) -> Expr {
        product(&self.columns)
    }

    /// As [`Stages::row_length`].
    pub(super) fn row_dim(&self) -> Dim {
        self.columns.iter().fold(Dim::constant(1), |all, axis| &all * &axis.dim)
    }

    /// The reductions among the stages of a loop: one each, or those of a tuple.
    pub(super) fn reductions<'s>(&'s self, of: &'s [usize]) -> impl Iterator<Item = &'s [Stage]> {
        of.iter().filter_map(|at| match &self.stages[*at].kind {
            Kind::Reduction { combine: Combine::Choice { place: 0, count, .. }, .. } => {
                self.stages.get(*at..at + count)
            }
            Kind::Reduction { combine: Combine::Operation(_), .. } => Some(std::slice::from_ref(&self.stages[*at])),
            _ => None,
        })
    }

    /// The stages in loops over the columns.
    pub(super) fn items(&self) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (at, stage) in self.stages.iter().enumerate() {
            let of_rows = |number: &usize| !matches!(self.stages[*number].kind, Kind::Element);
            let needs_whole = open.iter().filter(|number| of_rows(number)).any(|number| self.needs(at, *number));
            if (matches!(stage.kind, Kind::Row) || needs_whole) && !open.is_empty() {
                items.push(Item::Loop(std::mem::take(&mut open)));
            }
            match stage.kind {
                Kind::Row => items.push(Item::Row(at)),
                _ => open.push(at),
            }
        }
        if !open.is_empty() {
            items.push(Item::Loop(open));
        }
        items
    }

    /// Whether a stage uses another's value, itself or through values of elements.
    pub(super) fn needs(&self, stage: usize, other: usize) -> bool {
        let uses = |at: usize, var: VarId| self.stages[at].value.uses(var);
        uses(stage, self.stages[other].var)
            || (other + 1..stage).any(|between| {
                matches!(self.stages[between].kind, Kind::Element)
                    && uses(stage, self.stages[between].var)
                    && self.needs(between, other)
            })
    }
}

/// The product of extents.
pub(super) fn product(axes: &[Axis]) -> Expr {
    axes.iter().fold(Expr::int(1), |all, axis| match all.as_int() {
        Some(1) => axis.extent.clone(),
        _ => all * axis.extent.clone(),
    })
}

/// The most blocks that are worth launching for a part that loops over the rest: enough to fill any device.
pub(super) const MANY_BLOCKS: i64 = 1024;

/// Whether a task's statement uses the block's own schedule, which rules leave alone.
pub(super) fn has_threads(task: &Task<'_>, at: usize) -> bool {
    let is_thread = |part: &Stmt| matches!(part, Stmt::For { kind: rx_tir::LoopKind::ThreadBinding(_), .. });
    task.statements.get(at).is_some_and(|statement| statement.stmt.any(&is_thread))
}
