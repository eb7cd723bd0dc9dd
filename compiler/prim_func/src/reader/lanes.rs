//! Vector stores: converts a store of several lanes to a vectorized loop over the lanes.
//!
//! ```text
//! C[a:a + 8] = A[T.Ramp(b, 1, 8)] + T.Broadcast(x, 8)
//!
//! ->  for lane in T.vectorized(8):
//!         C[a + lane] = A[b + lane] + x
//! ```
//!
//! Requires a constant number of lanes, the same for all vectors in the statement. A vector store loads all lanes
//! before it stores one, so the value may load an element of the stored buffer only at the stored indices.

use super::expr::{exprs, index_items};
use super::trace::{Event, TracedLoop};
use super::value::{Value, View};
use super::{Outcome, Reader};
use rx_base::name::name;
use rx_base::{Code, DType, Dim};
use rx_syntax::ast::{Argument, Expr as Tree, ExprKind, TokenRange};
use rx_syntax::{At, Cursor};
use rx_tir::dim::to_dim;
use rx_tir::{BufferId, Expr, LoopKind, Stmt, VarId};

/// The lanes of the current vector store.
#[derive(Clone)]
pub(super) struct Lanes {
    count: i64,
    /// The index of the lane: the variable of the loop.
    lane: Expr,
}

impl Reader<'_> {
    /// Returns the number of lanes that an index stores to; `None` for a scalar store.
    pub(super) fn store_lanes(&mut self, cursor: Cursor<'_>, index: &Tree) -> Outcome<Option<i64>> {
        for item in index_items(index) {
            let count = match &item.kind {
                ExprKind::Slice { lower, upper, step } => {
                    let at = cursor.at(item.tokens);
                    let bounds = self.slice_bounds(at, lower.as_deref(), upper.as_deref())?;
                    slice_length(&bounds, self.slice_step(cursor, step.as_deref())?)
                }
                ExprKind::Call { callee, arguments } if self.tir_member(cursor, callee).is_some_and(is_ramp) => {
                    let lanes = arguments.get(2).map(|argument| self.value(cursor, &argument.value)).transpose()?;
                    match lanes {
                        Some(Value::Int(lanes)) => i64::try_from(lanes).ok(),
                        _ => None,
                    }
                }
                _ => continue,
            };
            return match count {
                Some(count) if count > 0 => Ok(Some(count)),
                _ => self.unsupported(cursor.at(item.tokens), "a number of lanes that is not a constant"),
            };
        }
        Ok(None)
    }

    /// Reads `view[index] = value` as a loop over the lanes. Reports the store as unsupported if the value loads the
    /// stored buffer at other indices than the stored ones.
    pub(super) fn vector_store(
        &mut self,
        cursor: Cursor<'_>,
        (label, view): (TokenRange, &View),
        index: &Tree,
        value: &Tree,
        count: i64,
    ) -> Outcome<Stmt> {
        let var = self.func.add_var(name("lane"), DType::INT32);
        let lane = self.func.var_expr(var);
        let before = self.lanes.replace(Lanes { count, lane: lane.clone() });
        let both = self.noted(|reader| {
            reader.note(|reader| {
                let extent = Expr::int(count).cast(DType::INT32);
                let (start, place) = (Expr::int(0).cast(DType::INT32), reader.place(cursor.at(index.tokens)));
                let (kind, name) = (LoopKind::Serial, name("lane"));
                Event::Loop(Box::new(TracedLoop { var, start, extent, kind, name, value: lane, place }))
            });
            reader.stored(cursor, (label, view), index, value)
        });
        self.lanes = before;
        let (indices, stored) = both?;
        let (buffer, indices) = self.element(view, exprs(indices));
        if reads_elsewhere(&stored, buffer, &indices) {
            return self.unsupported(cursor.at(value.tokens), "a vector store whose value reads the same buffer");
        }
        let extent = Expr::int(count).cast(DType::INT32);
        let body = Box::new(Stmt::Store { buffer, indices, value: stored, site: self.site() });
        let start = Expr::int(0).cast(DType::INT32);
        Ok(Stmt::For { var, start, extent, kind: LoopKind::Vectorized, body })
    }

    /// Returns the index of a slice in the current lane: `lower + lane * step`.
    pub(super) fn lane_slice(
        &mut self,
        at: At<'_>,
        (lower, upper, step): (Option<&Tree>, Option<&Tree>, Option<&Tree>),
    ) -> Outcome<Expr> {
        let bounds = self.slice_bounds(at, lower, upper)?;
        let step = self.slice_step(at.cursor, step)?;
        self.check_lanes(at, slice_length(&bounds, step))?;
        self.at_lane(at, bounds.0, Expr::int(step).cast(DType::INT32))
    }

    fn slice_bounds(&mut self, at: At<'_>, lower: Option<&Tree>, upper: Option<&Tree>) -> Outcome<(Expr, Expr)> {
        let (Some(lower), Some(upper)) = (lower, upper) else {
            return self.unsupported(at, "a slice without bounds");
        };
        Ok((self.integer_of(at.cursor, lower)?, self.integer_of(at.cursor, upper)?))
    }

    fn slice_step(&mut self, cursor: Cursor<'_>, step: Option<&Tree>) -> Outcome<i64> {
        let Some(step) = step else { return Ok(1) };
        match self.integer_of(cursor, step)?.as_int() {
            Some(value) if value > 0 => Ok(value),
            _ => self.unsupported(cursor.at(step.tokens), "a step that is not a positive constant"),
        }
    }

    fn at_lane(&mut self, at: At<'_>, base: Expr, stride: Expr) -> Outcome<Expr> {
        let Some(lanes) = self.lanes.clone() else {
            return self.unsupported(at, "a vector outside a vector store");
        };
        let (lane, stride) = self.promoted(at, lanes.lane, stride)?;
        let (base, offset) = self.promoted(at, base, lane * stride)?;
        Ok(base + offset)
    }

    /// Reads `T.Ramp(base, stride, lanes)` as `base + lane * stride`.
    pub(super) fn ramp(&mut self, at: At<'_>, arguments: &[Argument]) -> Outcome<Value> {
        let [base, stride, lanes] = arguments else {
            return self.mistake(at, Code::MissingArgument, "`T.Ramp` requires a base, a stride and a number of lanes");
        };
        let (base, stride) = (self.integer_of(at.cursor, &base.value)?, self.integer_of(at.cursor, &stride.value)?);
        self.same_lanes(at.cursor, &lanes.value)?;
        self.at_lane(at, base, stride).map(Value::Expr)
    }

    /// Reads `T.Broadcast(value, lanes)` as the value itself, which is the same in every lane.
    pub(super) fn spread(&mut self, at: At<'_>, arguments: &[Argument]) -> Outcome<Value> {
        let [value, lanes] = arguments else {
            return self.mistake(at, Code::MissingArgument, "`T.Broadcast` requires a value and a number of lanes");
        };
        self.same_lanes(at.cursor, &lanes.value)?;
        self.value(at.cursor, &value.value)
    }

    fn same_lanes(&mut self, cursor: Cursor<'_>, tree: &Tree) -> Outcome<()> {
        let count = match self.value(cursor, tree)? {
            Value::Int(count) => i64::try_from(count).ok(),
            _ => None,
        };
        self.check_lanes(cursor.at(tree.tokens), count)
    }

    /// Checks that a vector has a constant number of lanes and, in a vector store, as many as the store.
    fn check_lanes(&mut self, at: At<'_>, count: Option<i64>) -> Outcome<()> {
        match (count, self.lanes.as_ref().map(|lanes| lanes.count)) {
            (Some(count), Some(stored)) if count != stored => {
                let message = format!("the store requires vectors of {stored} lanes; found {count}");
                self.mistake(at, Code::ShapeMismatch, message)
            }
            (Some(_), _) => Ok(()),
            (None, _) => self.unsupported(at, "a number of lanes that is not a constant"),
        }
    }
}

fn is_ramp(member: &str) -> bool {
    matches!(member, "Ramp" | "ramp")
}

/// Whether a value loads an element of the stored buffer at indices that are not the same expressions as `at`.
fn reads_elsewhere(value: &Expr, stored: BufferId, at: &[Expr]) -> bool {
    let mut found = false;
    value.walk(&mut |part| {
        if let Expr::Load { buffer, indices, .. } = part {
            found |= *buffer == stored && indices != at;
        }
    });
    found
}

/// Returns the number of indices of a slice, with its bounds and step; `None` if it is not a constant.
fn slice_length((lower, upper): &(Expr, Expr), step: i64) -> Option<i64> {
    constant_difference(upper, lower).map(|extent| extent.saturating_add(step - 1) / step)
}

/// Returns `a - b` if it is known to be the same for all values of the variables.
fn constant_difference(a: &Expr, b: &Expr) -> Option<i64> {
    let symbol = |var: VarId| Some(Dim::symbol(name(&format!("v{}", var.0))));
    (&to_dim(a, &symbol)? - &to_dim(b, &symbol)?).as_constant()
}
