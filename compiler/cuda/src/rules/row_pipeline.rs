//! Fused row pipeline: consecutive statements over the same loops as *stages*, which usually one kernel executes for
//! each row.
//!
//! ```text
//! for i, k: M[i] = max(M[i], X[i, k])               for each row i:
//! for i, k: E[i, k] = exp(X[i, k] - M[i])               loop over k: m = max(m, X[i, k])
//! for i, k: S[i] = S[i] + E[i, k]              →        combine m of the row's threads
//! for i, k: Y[i, k] = E[i, k] / S[i]                    loop over k: s = s + exp(X[i, k] - m)
//!                                                       combine s of the row's threads
//!                                                       loop over k: Y[i, k] = exp(X[i, k] - m) / s
//! ```
//!
//! A *row* is selected by some of the axes (`rows`), and its elements by the other axes (`columns`). A stage computes a
//! value of each element (`exp`), scans the elements, reduces them to one value of the row (`max`), or computes a value
//! of the row from others.
//!
//! Requires that each access to a buffer that a stage writes is to the very element that the stage writes: [`collect`]
//! declines other statements. The exception is a scan, which may begin with the element before the row's first one
//! ([`Carried`]). With reductions, a stage also must not write a buffer that it or an earlier stage loads from.
//! Guarantees that values of earlier stages are variables, which are stored only if something outside of the stages may
//! read them.
//!
//! `rows`, `reduction` (few long rows), `columns` (along leading axes), `scan`, `elementwise` and `transpose` map
//! stages to threads in different ways. A tuple reduction (a maximum and its index) is one stage for each of its
//! values; it requires an update that chooses the same values in any order (`rx_loops::commutes`). A let value is a
//! stage that is not stored.

pub(super) mod collect;
pub(super) mod lanes;
pub(super) mod print;
pub(super) mod vectors;

use super::{Frame, Task};
use crate::source::LaunchShape;
use rx_base::{DType, Dim};
use rx_loops::Affine;
use rx_loops::scope::Scope;
use rx_tir::{BinaryOp, BufferId, Expr, PrimFunc, Stmt, VarId};

/// A loop that the stages share, or several such loops joined to one. Its values begin at 0.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The loop variable.
    pub(super) var: VarId,
    /// The number of its values, an `int64` expression over the function's scalars and symbols.
    pub(super) extent: Expr,
    /// The extent as a symbolic integer.
    pub(super) dim: Dim,
}

/// The kind of a stage: whether it computes a value of each element or one of the row, and how.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A value of each element.
    Element,
    /// A value of the row that is not computed from its elements, but from other values of the row, and from loads that
    /// are the same for the whole row.
    Row,
    /// A value of the row: `combine(init, value of every element)`.
    Reduction { combine: Combine, init: Expr },
    /// An inclusive scan, a value of each element: `combine(carried, values of all elements up to it)`. A separate
    /// element stage stores it.
    Scan { combine: BinaryOp, carried: Option<Carried> },
}

/// The operation with which a reduction combines two values.
#[derive(Clone, Debug)]
pub(super) enum Combine {
    /// A binary operation.
    Operation(BinaryOp),
    /// A choice of one side, for a tuple of values at once ([`rx_loops::TupleElement`]): for example, a maximum and its
    /// index.
    ///
    /// `chosen` is an expression over the variables [`Stage::var`] and [`Stage::other`] of all `count` consecutive
    /// stages of the tuple, of which this is number `place`.
    Choice { chosen: Expr, place: usize, count: usize },
}

impl Combine {
    /// Returns the value with which each thread's partial result begins: `init` if combining it several times gives the
    /// same result as combining it once (as for a maximum), otherwise the identity. `None` if no identity is known.
    pub(super) fn begin(&self, init: &Expr, dtype: DType) -> Option<Expr> {
        match self {
            Combine::Operation(combine) => print::begin(*combine, init, dtype),
            Combine::Choice { .. } => Some(init.clone()),
        }
    }
}

/// A stage: one store of a statement, one scan, or one let value.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    /// Whether the value belongs to each element or to the row, and how it is computed.
    pub(super) kind: Kind,
    /// The element of a buffer that the value is stored to, if it is stored.
    pub(super) target: Target,
    /// The value of one element; for a reduction or scan, the value that is combined. Its variables are the axes, the
    /// function's scalars, the elements that are loaded unconditionally ([`Stages::reads`]), and the values of earlier
    /// stages. Only an element that is read under a condition, or at an index that a stage computes, remains a load.
    pub(super) value: Expr,
    /// The variable by which other stages use the value.
    pub(super) var: VarId,
    /// The variable of the value that is combined with the stage's own. In a reduction this is another partial result
    /// (in a tuple reduction also the value of an element), and in a scan the right operand. Other stages do not use
    /// it.
    pub(super) other: VarId,
}

/// The element that a stage computes, and whether the stage stores it.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// The element as an affine form of the loops.
    pub(super) element: Affine,
    /// Its linear index in the buffer, row-major.
    pub(super) index: Expr,
    /// The dtype of the value: that of the buffer, or of the let variable.
    pub(super) dtype: DType,
    /// Whether it is stored: its buffer is a parameter or is used by later kernels, and no later stage overwrites it.
    /// Let values and scans are never stored themselves.
    pub(super) is_stored: bool,
}

/// An element that stages load unconditionally, and the variable by which they use it.
#[derive(Clone, Debug)]
pub(super) struct Read {
    /// The element as an affine form of the loops and of indices that are not affine, such as those that are loaded.
    pub(super) element: Affine,
    /// Its linear index in the buffer, row-major.
    pub(super) index: Expr,
    /// The buffer's dtype.
    pub(super) dtype: DType,
    /// The variable of the loaded value.
    pub(super) var: VarId,
    /// Whether it depends on the columns; otherwise it is the same for the whole row.
    pub(super) is_of_columns: bool,
}

/// The element before the first one of a row, with which a scan begins.
#[derive(Clone, Debug)]
pub(super) struct Carried {
    /// The element's buffer, and its address there as an affine form of the loops.
    pub(super) element: Affine,
    /// Its linear index in the buffer, row-major.
    pub(super) index: Expr,
}

/// The stages of consecutive statements, over shared loops.
pub(super) struct Stages {
    /// The function, with the stages' variables added.
    pub(super) func: PrimFunc,
    /// Axes that select a row, outermost first.
    pub(super) rows: Vec<Axis>,
    /// Axes of a row's elements, outermost first.
    pub(super) columns: Vec<Axis>,
    /// The stages in order: the [`Stage::value`] of each uses only values of earlier ones.
    pub(super) stages: Vec<Stage>,
    /// The elements that stages load unconditionally, at indices that no stage computes. Loads in indices stay loads.
    pub(super) reads: Vec<Read>,
    /// The statements that the stages execute.
    pub(super) statements: Vec<Stmt>,
    /// Temporary buffers whose elements are only variables, so that they take no memory.
    pub(super) kept: Vec<BufferId>,
    /// The analyzer context of the loops, with which extents and indices become expressions.
    pub(super) scope: Scope,
    /// Whether all linear indices are known to fit in a 32-bit `int`, with a margin for indices beyond the end.
    pub(super) is_small: bool,
}

/// A step of a row: a loop over the columns, or a value of the row. A loop contains no stage that needs the result of a
/// reduction or scan in the same loop.
pub(super) enum Item {
    /// One loop over the columns, for the stages of these numbers.
    Loop(Vec<usize>),
    /// A value of the row, by its stage's number.
    Row(usize),
}

impl Stages {
    /// Returns the frame of a kernel that executes stages with this launch.
    pub(super) fn frame(&self, shape: LaunchShape) -> Frame<'_> {
        Frame { func: Some(&self.func), kept: self.kept.clone(), ..Frame::new(shape, &self.statements) }
    }

    /// Returns the number of rows, an `int64` expression.
    pub(super) fn row_count(&self) -> Expr {
        product(&self.rows)
    }

    /// Returns the number of elements of a row, an `int64` expression.
    pub(super) fn row_length(&self) -> Expr {
        product(&self.columns)
    }

    /// Returns the number of elements of a row as a symbolic integer.
    pub(super) fn row_dim(&self) -> Dim {
        self.columns.iter().fold(Dim::constant(1), |all, axis| &all * &axis.dim)
    }

    /// Returns the reductions among the stages of a loop: slices of one stage, or of the stages of a tuple.
    pub(super) fn reductions<'s>(&'s self, of: &'s [usize]) -> impl Iterator<Item = &'s [Stage]> {
        of.iter().filter_map(|at| match &self.stages[*at].kind {
            Kind::Reduction { combine: Combine::Choice { place: 0, count, .. }, .. } => {
                self.stages.get(*at..at + count)
            }
            Kind::Reduction { combine: Combine::Operation(_), .. } => Some(std::slice::from_ref(&self.stages[*at])),
            _ => None,
        })
    }

    /// Groups the stages into loops over the columns and values of the row. A stage of [`Kind::Row`] ends the current
    /// loop. A stage that needs the result of a reduction or scan of the current loop begins a new one.
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

    /// Whether a stage uses another stage's value, directly or through element stages between them.
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

/// Returns the product of the axes' extents; 1 without axes.
pub(super) fn product(axes: &[Axis]) -> Expr {
    axes.iter().fold(Expr::int(1), |all, axis| match all.as_int() {
        Some(1) => axis.extent.clone(),
        _ => all * axis.extent.clone(),
    })
}

/// The maximum number of blocks of a split reduction, of which each has one part of a row (or of some neighbouring
/// rows): enough to occupy a device. Longer rows have longer parts, along which the block loops.
pub(super) const MANY_BLOCKS: i64 = 1024;

/// Whether a statement of a task binds loops to threads or blocks itself. The row pipeline does not take such
/// statements.
pub(super) fn has_threads(task: &Task<'_>, at: usize) -> bool {
    let is_thread = |part: &Stmt| matches!(part, Stmt::For { kind: rx_tir::LoopKind::ThreadBinding(_), .. });
    task.statements.get(at).is_some_and(|statement| statement.stmt.any(&is_thread))
}
