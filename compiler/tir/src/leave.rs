//! *Early-exit elimination*: replaces `continue`, `break` and `return` by flags and predicates.
//!
//! A flag is a local buffer of one element. `continue` keeps the loop, with a flag that each iteration resets:
//!
//! ```text
//! for i in range(n):                  for i in range(n):
//!     if A[i] < 0:                        left[0] = 0
//!         continue                ->      if A[i] < 0: left[0] = 1
//!     B[i] = A[i]                         if left[0] == 0: B[i] = A[i]
//! ```
//!
//! `break` makes the loop a `while` with a counter:
//!
//! ```text
//! for i in range(n):                  left[0] = 0; done[0] = 0
//!     if A[i] < 0:                    while left[0] != 2 and done[0] < n:
//!         break                   ->      let i = done[0]
//!     B[i] = A[i]                         if A[i] < 0: left[0] = 2
//!                                         if left[0] == 0: B[i] = A[i]
//!                                         done[0] = done[0] + 1
//! ```
//!
//! Requires that a loop that `break` or `return` exits is serial, unrolled or a `while`, and that no exit crosses a
//! block with axes, a predicate or an init. A thread that returns skips the rest of its iteration of the loop over
//! threads, so nothing may follow that loop. Guarantees that every statement runs to its end.
//!
//! Reference: `T.continue_loop` and `T.break_loop` of TVM's `builtin.h`. They apply to the innermost loop, also within
//! a `T.grid`.

use crate::expr::{CompareOp, Expr};
use crate::func::{BufferId, PrimFunc, VarId};
use crate::placeholders::{Outcome, Placeholders, Problem, first_placeholder, placeholder_of};
use crate::rewrite::{map_children, try_map_children};
use crate::stmt::{LoopKind, Site, Stmt};
use rx_base::DType;
use rx_base::name::name;

/// The target of an early exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Ends the iteration of the innermost loop: `continue` (`T.continue_loop`).
    Continue,
    /// Exits the innermost loop: `break` (`T.break_loop`).
    Break,
    /// Exits the function: `return`.
    Return,
}

/// The value of a loop's flag after `continue`.
const ROUND: i64 = 1;
/// The value of a flag after `break` or `return`.
const WHOLE: i64 = 2;

/// Eliminates the early exits of a function. `leaves` maps their placeholders to their targets.
///
/// # Errors
/// If `break` or `return` exits a loop that is not sequential, if an exit crosses a block with axes, a predicate or an
/// init, if `break` is outside of all loops, or `continue` is and statements follow it, or if anything is executed
/// after a loop over threads with `return`.
pub fn without_leaves(func: &PrimFunc, leaves: &Placeholders<Leave>) -> Outcome<PrimFunc> {
    let mut made = func.clone();
    let mut leaver = Leaver { func: &mut made, leaves, around: Vec::new(), function: None };
    let (body, _) = leaver.stmt(&func.body, Last { of_round: true, of_function: true })?;
    let function = leaver.function;
    made.body = match function {
        Some(cell) => {
            let begun = state(&made, cell, 0);
            Stmt::holding(name(""), vec![cell], Stmt::seq([begun, body]))
        }
        None => body,
    };
    Ok(made)
}

/// The position of a statement in its loop and function. A block with axes, a predicate or an init resets both fields
/// to false, so that an exit from it sets a flag and is reported as an error.
#[derive(Clone, Copy)]
struct Last {
    /// Whether the iteration is known to end after the statement, so that `continue` needs no flag there.
    of_round: bool,
    /// Whether the function is known to end after the statement, so that `return` needs no flag there.
    of_function: bool,
}

/// A loop around the current statement.
#[derive(Default)]
struct Around {
    cell: Option<BufferId>,
    leaves_rounds: bool,
    is_left: bool,
    /// Whether it is bound to an axis, such as `threadIdx.x` or `blockIdx.x`.
    is_of_threads: bool,
    /// Whether the function is known to execute nothing after it.
    is_last: bool,
}

impl Around {
    fn cell_in(&mut self, func: &mut PrimFunc) -> BufferId {
        *self.cell.get_or_insert_with(|| func.add_cell(name("left"), DType::INT32))
    }
}

/// The flags that a statement may set.
type Cells = Vec<BufferId>;

struct Leaver<'f> {
    func: &'f mut PrimFunc,
    leaves: &'f Placeholders<Leave>,
    around: Vec<Around>,
    /// The flag that the function has returned.
    function: Option<BufferId>,
}

impl Leaver<'_> {
    /// Rewrites a statement. Returns it with the flags that it may set.
    fn stmt(&mut self, stmt: &Stmt, last: Last) -> Outcome<(Stmt, Cells)> {
        if let Some((at, leave)) = placeholder_of(stmt, self.leaves) {
            return self.leave(at, *leave, last);
        }
        match stmt {
            Stmt::Seq(parts) => self.sequence(parts, last),
            Stmt::For { body, .. } | Stmt::While { body, .. } => self.around_body(stmt, body, last),
            Stmt::Block(block) => {
                let own = !block.only_holds();
                let inside = if own { Last { of_round: false, of_function: false } } else { last };
                let (made, cells) = self.children(stmt, inside)?;
                match own && !cells.is_empty() {
                    true => Err(self.problem(stmt, "a block with axes is left from inside")),
                    false => Ok((made, cells)),
                }
            }
            other => self.children(other, last),
        }
    }

    fn children(&mut self, stmt: &Stmt, last: Last) -> Outcome<(Stmt, Cells)> {
        let mut cells = Cells::new();
        let made = try_map_children(stmt, &mut |child| {
            let (made, set) = self.stmt(child, last)?;
            add(&mut cells, &set);
            Ok(made)
        })?;
        Ok((made, cells))
    }

    /// Rewrites a sequence. The statements after one that may exit are executed only if no flag is set.
    fn sequence(&mut self, parts: &[Stmt], last: Last) -> Outcome<(Stmt, Cells)> {
        let mut made = Vec::new();
        let mut cells = Cells::new();
        let mut guarded = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let is_last = at + 1 == parts.len();
            let inside = Last { of_round: is_last && last.of_round, of_function: is_last && last.of_function };
            let is_leave = placeholder_of(part, self.leaves).is_some();
            // Statements after an unconditional exit are unreachable.
            let (part, set) = self.stmt(part, if is_leave { last } else { inside })?;
            guarded.push(part);
            if !set.is_empty() || is_last || is_leave {
                let run = Stmt::seq(std::mem::take(&mut guarded));
                made.push(self.where_nothing_is_left(&cells, run));
                add(&mut cells, &set);
            }
            if is_leave {
                break;
            }
        }
        Ok((Stmt::seq(made), cells))
    }

    fn leave(&mut self, at: VarId, leave: Leave, last: Last) -> Outcome<(Stmt, Cells)> {
        let nothing = (Stmt::nothing(), Cells::new());
        if leave == Leave::Return {
            if last.of_function {
                return Ok(nothing);
            }
            // Inside a loop over threads, the thread returns: it skips the rest of its iteration of that loop.
            if let Some(threads) = self.around.iter_mut().rev().find(|around| around.is_of_threads) {
                if !threads.is_last {
                    return Err(Problem { at, reason: "threads that have returned would execute further statements" });
                }
                threads.leaves_rounds = true;
                let cell = threads.cell_in(self.func);
                return Ok((state(self.func, cell, WHOLE), vec![cell]));
            }
            let cell = *self.function.get_or_insert_with(|| self.func.add_cell(name("left"), DType::INT32));
            return Ok((state(self.func, cell, WHOLE), vec![cell]));
        }
        if leave == Leave::Continue && last.of_round {
            return Ok(nothing);
        }
        let Some(around) = self.around.last_mut() else {
            return Err(Problem { at, reason: "a `break` or `continue` is outside a loop" });
        };
        around.leaves_rounds |= leave == Leave::Continue;
        around.is_left |= leave == Leave::Break;
        let cell = around.cell_in(self.func);
        let value = if leave == Leave::Continue { ROUND } else { WHOLE };
        Ok((state(self.func, cell, value), vec![cell]))
    }

    /// Rewrites a loop, given its statement and its body.
    fn around_body(&mut self, stmt: &Stmt, body: &Stmt, last: Last) -> Outcome<(Stmt, Cells)> {
        let is_of_threads = matches!(stmt, Stmt::For { kind: LoopKind::ThreadBinding(_), .. });
        self.around.push(Around { is_of_threads, is_last: last.of_function, ..Around::default() });
        let inner = self.stmt(body, Last { of_round: true, of_function: is_of_threads && last.of_function });
        let around = self.around.pop().unwrap_or_default();
        let (body, mut cells) = inner?;
        cells.retain(|cell| around.cell != Some(*cell));
        let body = match around.cell {
            Some(cell) if around.leaves_rounds => Stmt::seq([state(self.func, cell, 0), body]),
            _ => body,
        };
        if !around.is_left && cells.is_empty() {
            let mut body = match around.cell {
                Some(cell) => Stmt::holding(name(""), vec![cell], body),
                None => body,
            };
            return Ok((map_children(stmt, &mut |_| std::mem::replace(&mut body, Stmt::nothing())), cells));
        }
        let left: Cells = around.cell.into_iter().chain(cells.iter().copied()).collect();
        let made = match stmt {
            Stmt::While { condition, .. } => {
                // The flags are tested first, since the condition may read memory that is only valid while the loop
                // continues.
                let condition = self.goes_on(&left).and(condition.clone());
                Stmt::While { condition, body: Box::new(body) }
            }
            Stmt::For { var, start, extent, kind: LoopKind::Serial | LoopKind::Unrolled, .. } => {
                self.counted((*var, start, extent), &left, body)
            }
            _ => return Err(self.problem(stmt, "a loop is left whose iterations run at once")),
        };
        let made = match around.cell {
            Some(cell) => Stmt::holding(name(""), vec![cell], Stmt::seq([state(self.func, cell, 0), made])),
            None => made,
        };
        Ok((made, cells))
    }

    /// Builds a `while` for `for var in range(start, start + extent)` that also ends when one of the flags is set to
    /// `WHOLE`.
    fn counted(&mut self, (var, start, extent): (VarId, &Expr, &Expr), left: &Cells, body: Stmt) -> Stmt {
        let of = *self.func.var(var);
        let done = self.func.add_cell(of.name, extent.dtype());
        let rounds = self.func.cell(done);
        // The bounds are evaluated once: they may read buffers that the loop changes.
        let mut named = Vec::new();
        let [start, extent] = [start, extent].map(|bound| match bound {
            Expr::Int { .. } => bound.clone(),
            _ => {
                let var = self.func.add_var(of.name, bound.dtype());
                named.push((var, bound.clone()));
                self.func.var_expr(var)
            }
        });
        let one = Expr::Int { value: 1, dtype: extent.dtype() };
        let next = self.func.set_cell(done, rounds.clone() + one, self.site());
        let value = if start.as_int() == Some(0) { rounds.clone() } else { start + rounds.clone() };
        let round = Stmt::Let { var, value, body: Box::new(Stmt::seq([body, next])) };
        let condition = self.goes_on(left).and(rounds.lt(extent.clone()));
        let zero = Expr::Int { value: 0, dtype: extent.dtype() };
        let begun = self.func.set_cell(done, zero, self.site());
        let loops = Stmt::seq([begun, Stmt::While { condition, body: Box::new(round) }]);
        let named =
            named.into_iter().rev().fold(loops, |body, (var, value)| Stmt::Let { var, value, body: Box::new(body) });
        Stmt::holding(name(""), vec![done], named)
    }

    fn where_nothing_is_left(&self, cells: &Cells, stmt: Stmt) -> Stmt {
        if stmt.is_nothing() {
            return stmt;
        }
        match self.all(cells, CompareOp::Eq, 0) {
            Some(condition) => Stmt::when(condition, stmt),
            None => stmt,
        }
    }

    /// Returns the condition that no flag is set by `break` or `return`. `continue` does not end a loop.
    fn goes_on(&self, cells: &Cells) -> Expr {
        self.all(cells, CompareOp::Ne, WHOLE).unwrap_or(Expr::Int { value: 1, dtype: DType::BOOL })
    }

    fn all(&self, cells: &Cells, op: CompareOp, state: i64) -> Option<Expr> {
        let state = Expr::Int { value: state, dtype: DType::INT32 };
        cells.iter().map(|cell| Expr::compare(op, self.func.cell(*cell), state.clone())).reduce(Expr::and)
    }

    fn site(&self) -> Site {
        Site { origin: None, operator: self.func.name }
    }

    /// Creates a problem at the first placeholder in a statement.
    fn problem(&self, stmt: &Stmt, reason: &'static str) -> Problem {
        Problem { at: first_placeholder(stmt, self.leaves).unwrap_or(VarId(0)), reason }
    }
}

/// Builds the statement that sets a flag to `state`.
fn state(func: &PrimFunc, cell: BufferId, state: i64) -> Stmt {
    let site = Site { origin: None, operator: func.name };
    func.set_cell(cell, Expr::Int { value: state, dtype: DType::INT32 }, site)
}

fn add(cells: &mut Cells, more: &Cells) {
    for cell in more {
        if !cells.contains(cell) {
            cells.push(*cell);
        }
    }
}
