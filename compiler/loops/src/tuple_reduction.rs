//! *Tuple reductions*: nests that reduce one or more elements together, where an update may depend on the old values of
//! the other elements. TVM calls the combiner of several values a `comm_reducer`.
//!
//! For example, argmax keeps a maximum and its index:
//!
//! ```text
//! init:  best[i] = -inf, at[i] = -1
//! for k: if x[i, k] > best[i]: best[i] = x[i, k], at[i] = k
//! ```
//!
//! It becomes two parts ([`TupleElement`]), with placeholders for the two sides of each:
//!
//! ```text
//! best: left b0, right b1, element x[i, k], combined select(b1 > b0, b1, b0)
//! at:   left p0, right p1, element k,       combined select(b1 > b0, p1, p0)
//! ```
//!
//! Requires that each update is an operation with the old value, or a choice between the old and a new value by
//! comparisons. Guarantees that the combiner is associative, for floats except for rounding and NaN (see
//! `is_associative`), so that threads may reduce groups of iterations and combine their results.

use crate::accumulate::{Nest, mentions, reads};
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_base::name::name;
use rx_tir::expr::{BinaryOp, Expr, UnaryOp};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, substitute};
use rx_tir::stmt::{IterKind, Site, Stmt};

/// The maximum number of choices, minima and maxima in a tuple with a choice. All their cases are enumerated.
const MOST_CHOSEN: usize = 3;

/// One part (element) of a tuple reduction. Given the partial results `left` and `right` of all parts, `combined` of
/// each part is the partial result of both. The combiner is associative, for floats except for rounding and NaN. Where
/// a part chooses a side, `init` may be combined in any number of times.
#[derive(Clone, Debug, PartialEq)]
pub struct TupleElement {
    /// The buffer of the reduced element.
    pub buffer: BufferId,
    /// The indices of the element. No reduction loop occurs in them.
    pub indices: Vec<Expr>,
    /// The initial value.
    pub init: Expr,
    /// The value that each iteration contributes. It reads none of the reduced buffers.
    pub element: Expr,
    /// The placeholder for the accumulated value.
    pub left: VarId,
    /// The placeholder for the value to combine with it: an iteration's element, or the partial result of other
    /// iterations.
    pub right: VarId,
    /// The part's value after two partial results are combined. This expression may use the variables `left` (of the
    /// first result) and `right` (of the second) of all parts.
    pub combined: Expr,
    /// The operation that updates the part; `None` if a condition selects a side.
    pub operation: Option<BinaryOp>,
    /// The statement that a run-time error names.
    pub site: Site,
}

impl Nest {
    /// Matches the nest as a tuple reduction and returns its parts. Returns `None` if the init or the body has another
    /// form, or if no associative combiner of two partial results can be derived from them.
    ///
    /// Each element must either be combined with a value by an operation, or keep its value or take a new one,
    /// depending on comparisons of the elements' old and new values. TVM instead matches such bodies against its
    /// registered reducers (`src/s_tir/schedule/primitive/reduction.cc`).
    pub fn tuple_reduction(&self, func: &mut PrimFunc) -> Option<Vec<TupleElement>> {
        let reader = Reader { targets: self.targets(func)? };
        let values = reader.targets.iter().map(|target| func.var_expr(target.left)).collect();
        let mut state = State { names: FxHashMap::default(), values };
        reader.stmt(&self.body, &mut state)?;
        let targets = reader.targets.into_iter().zip(&state.values);
        let mut parts = targets.map(|(target, value)| part(func, target, value)).collect::<Option<Vec<_>>>()?;
        compare_with_right(func, &mut parts)?;
        is_associative(&parts).then_some(parts)
    }

    /// Returns the elements that `init` stores, each with a new variable for its old value. Returns `None`, for
    /// example, if there is no init, or if two of its stores are to one buffer.
    fn targets(&self, func: &mut PrimFunc) -> Option<Vec<Target>> {
        let init = self.init.as_ref()?;
        let stores = match init {
            Stmt::Seq(stores) => stores.iter().collect(),
            one => vec![one],
        };
        let reduced = |var: &VarId| self.loops.iter().any(|l| l.var == *var && l.kind == IterKind::Reduce);
        let mut targets: Vec<Target> = Vec::new();
        for store in stores {
            let Stmt::Store { buffer, indices, value, site } = store else { return None };
            let is_twice = targets.iter().any(|target| target.buffer == *buffer);
            if is_twice || indices.iter().any(|index| mentions(index, &reduced)) {
                return None;
            }
            let of = func.buffer(*buffer);
            let left = func.add_var(of.name, of.dtype);
            targets.push(Target { buffer: *buffer, indices: indices.clone(), init: value.clone(), left, site: *site });
        }
        let is_read = |expr: &Expr| targets.iter().any(|target| reads(expr, target.buffer));
        let is_free = |target: &Target| !is_read(&target.init) && !target.indices.iter().any(is_read);
        targets.iter().all(is_free).then_some(targets)
    }
}

/// A reduced element.
struct Target {
    buffer: BufferId,
    indices: Vec<Expr>,
    init: Expr,
    /// The placeholder for the value before an iteration.
    left: VarId,
    site: Site,
}

/// The values of `let` variables and the current values of the elements, both as expressions over the elements' values
/// before the iteration.
#[derive(Clone)]
struct State {
    names: FxHashMap<VarId, Expr>,
    values: Vec<Expr>,
}

/// Symbolic execution of one iteration.
struct Reader {
    targets: Vec<Target>,
}

impl Reader {
    fn stmt(&self, stmt: &Stmt, state: &mut State) -> Option<()> {
        match stmt {
            Stmt::Seq(parts) => parts.iter().try_for_each(|part| self.stmt(part, state)),
            Stmt::Let { var, value, body } => {
                let value = self.value(value, state)?;
                state.names.insert(*var, value);
                self.stmt(body, state)
            }
            Stmt::Store { buffer, indices, value, .. } => {
                let at = self.targets.iter().position(|target| target.buffer == *buffer)?;
                let indices = indices.iter().map(|index| self.value(index, state)).collect::<Option<Vec<_>>>()?;
                if indices != self.targets[at].indices {
                    return None;
                }
                state.values[at] = self.value(value, state)?; // INVARIANT: a value per target.
                Some(())
            }
            Stmt::If { condition, then, otherwise } => {
                let condition = self.value(condition, state)?;
                let mut other = state.clone();
                self.stmt(then, state)?;
                otherwise.iter().try_for_each(|side| self.stmt(side, &mut other))?;
                for (value, other) in state.values.iter_mut().zip(other.values) {
                    if *value != other {
                        *value = Expr::select(condition.clone(), value.clone(), other);
                    }
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Returns the expression over the elements' values before the iteration, or `None` if it reads another element of
    /// their buffers.
    fn value(&self, expr: &Expr, state: &State) -> Option<Expr> {
        let mut is_known = true;
        let named = substitute(expr, &|var| state.names.get(&var).cloned());
        let value = map_expr(&named, &mut |part| {
            let Expr::Load { buffer, indices, .. } = &part else { return part };
            let Some(at) = self.targets.iter().position(|target| target.buffer == *buffer) else { return part };
            is_known &= *indices == self.targets[at].indices;
            state.values[at].clone()
        });
        is_known.then_some(value)
    }
}

/// Splits a target's new value into the old value, the iteration's element and the operation or choice that combines
/// them.
fn part(func: &mut PrimFunc, target: Target, value: &Expr) -> Option<TupleElement> {
    let Target { buffer, indices, init, left, site } = target;
    let dtype = func.var(left).dtype;
    let right = func.add_var(name("other"), dtype);
    let (own, other) = (func.var_expr(left), func.var_expr(right));
    let (element, operation, combined) = match value {
        Expr::Binary { op, left: a, right: b } => {
            let element = match (**a == own, **b == own) {
                (true, false) => b,
                (false, true) if is_free_in_order(*op, dtype) => a,
                _ => return None,
            };
            let both = Expr::Binary { op: *op, left: Box::new(own), right: Box::new(other) };
            (element.as_ref().clone(), Some(*op), both)
        }
        Expr::Select { condition, then, otherwise } => {
            let (element, then, otherwise) = match (**then == own, **otherwise == own) {
                (true, false) => (otherwise, own, other),
                (false, true) => (then, other, own),
                _ => return None,
            };
            (element.as_ref().clone(), None, Expr::select(condition.as_ref().clone(), then, otherwise))
        }
        _ => return None,
    };
    Some(TupleElement { buffer, indices, init, element, left, right, combined, operation, site })
}

/// Whether the operation is commutative. The minimum and maximum of floats are not: with a number and a NaN, the result
/// depends on the order of the operands.
fn is_free_in_order(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::Min | BinaryOp::Max => !dtype.is_float(),
        BinaryOp::Sub | BinaryOp::Div => false,
        BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => false,
        BinaryOp::ShiftLeft | BinaryOp::ShiftRight => false,
        BinaryOp::Add | BinaryOp::Mul | BinaryOp::And | BinaryOp::Or => true,
        BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => true,
    }
}

/// Replaces each part's `element` by its placeholder `right` in the conditions of choices. For example, `x[i, k] > b0`
/// becomes `b1 > b0`. Afterwards a condition may only consist of comparisons, each of the placeholders of one part that
/// is a choice, a minimum or a maximum ([`is_chosen`]). Returns `None` if one does not, or if an `element` contains a
/// `left`.
fn compare_with_right(func: &PrimFunc, parts: &mut [TupleElement]) -> Option<()> {
    let known: Vec<(VarId, VarId, Expr, bool)> =
        parts.iter().map(|part| (part.left, part.right, part.element.clone(), is_chosen(part))).collect();
    let is_left = |var: &VarId| known.iter().any(|(left, ..)| left == var);
    if known.iter().any(|(_, _, element, _)| mentions(element, &is_left)) {
        return None;
    }
    // One element may be a subexpression of another, so the larger one is replaced first.
    let mut by_size: Vec<_> = known.iter().collect();
    by_size.sort_by_key(|(_, _, element, _)| std::cmp::Reverse(element.size()));
    for part in parts {
        let Expr::Select { condition, then, otherwise } = &part.combined else { continue };
        let condition = by_size.iter().fold(condition.as_ref().clone(), |condition, (_, right, element, _)| {
            map_expr(&condition, &mut |part| if part == *element { func.var_expr(*right) } else { part })
        });
        // Comparing a side with itself is a test for NaN.
        let is_pair = |a: VarId, b: VarId| {
            let one = |(left, right, _, is_chosen): &(VarId, VarId, Expr, bool)| {
                *is_chosen && [a, b].iter().all(|side| side == left || side == right)
            };
            known.iter().any(one)
        };
        if !compares_sides(&condition, &is_pair) {
            return None;
        }
        part.combined = Expr::select(condition, then.as_ref().clone(), otherwise.as_ref().clone());
    }
    Some(())
}

/// Whether the part's result is always one of its two inputs: a choice, a minimum or a maximum.
fn is_chosen(part: &TupleElement) -> bool {
    matches!(part.operation, None | Some(BinaryOp::Min | BinaryOp::Max))
}

/// Whether a condition consists of comparisons between variables that `is_pair` accepts.
fn compares_sides(condition: &Expr, is_pair: &dyn Fn(VarId, VarId) -> bool) -> bool {
    match condition {
        Expr::Compare { left, right, .. } => match (&**left, &**right) {
            (Expr::Var { var: a, .. }, Expr::Var { var: b, .. }) => is_pair(*a, *b),
            _ => false,
        },
        Expr::Binary { op: BinaryOp::And | BinaryOp::Or, left, right } => {
            compares_sides(left, is_pair) && compares_sides(right, is_pair)
        }
        Expr::Unary { op: UnaryOp::Not, value } => compares_sides(value, is_pair),
        _ => false,
    }
}

/// Whether the combiner `∘` is associative. If a part is a choice, `(a ∘ b) ∘ a` must also equal `a ∘ b`: every group
/// of iterations starts from `init`, so `init` is combined several times, which must not change the result.
///
/// - An operation is accepted if it is commutative for integers, such as a sum, and rejected otherwise. For floats, the
///   accepted operations are associative except for rounding and NaN.
/// - Choices are checked by enumerating all cases, together with the minima and maxima. The result of a choice depends
///   only on how the sides compare in each part. Three sides `a`, `b` and `c` have at most three different values in a
///   part, and NaN if a condition tests for it.
fn is_associative(parts: &[TupleElement]) -> bool {
    let is_operation = |part: &&TupleElement| part.operation.is_some();
    if !parts
        .iter()
        .filter(is_operation)
        .all(|part| part.operation.is_some_and(|op| is_free_in_order(op, DType::INT64)))
    {
        return false;
    }
    let chosen: Vec<&TupleElement> = parts.iter().filter(|part| is_chosen(part)).collect();
    if !chosen.iter().any(|part| part.operation.is_none()) {
        return true;
    }
    let Some(Cases { count, table }) = Cases::of(&chosen) else { return false };
    let both = |a: usize, b: usize| table[a * count + b]; // INVARIANT: results are below `count`, too.
    let triples = (0..count * count * count).map(|at| (at / count / count, at / count % count, at % count));
    let mut pairs = (0..count * count).map(|at| (at / count, at % count));
    pairs.all(|(a, b)| both(both(a, b), a) == both(a, b))
        && triples.into_iter().all(|(a, b, c)| both(both(a, b), c) == both(a, both(b, c)))
}

/// Whether all parts choose a side, and the choice does not depend on the order of the sides. Iterations may then be
/// combined in any order. This holds for a maximum with its index if the smaller index wins a tie, and not if the first
/// one that is seen wins.
pub fn commutes(parts: &[TupleElement]) -> bool {
    let chosen: Vec<&TupleElement> = parts.iter().filter(|part| part.operation.is_none()).collect();
    let Some(Cases { count, table }) = Cases::of(&chosen).filter(|_| chosen.len() == parts.len()) else { return false };
    (0..count * count).all(|at| table[at] == table[at % count * count + at / count])
}

/// The combiner of the given parts, each a choice, a minimum or a maximum, as a table over all pairs of sides. A side
/// holds one value of each part. It is encoded as a number with one digit for each part, least significant first. All
/// digits are in base 3 or, if a condition tests for NaN, in base 4, where the digit 3 is NaN in a part of floats.
struct Cases {
    /// The number of different sides: the base of the digits to the power of the number of parts. For example, two
    /// parts with digits in base 3 give `3 * 3 = 9` sides, the numbers 0 to 8.
    count: usize,
    /// The resulting side, at index `left * count + right`.
    table: Vec<usize>,
}

impl Cases {
    fn of(chosen: &[&TupleElement]) -> Option<Cases> {
        if chosen.len() > MOST_CHOSEN {
            return None;
        }
        let values: usize = if chosen.iter().any(|part| asks_for_nan(&part.combined)) { 4 } else { 3 };
        let count = values.pow(chosen.len() as u32);
        let table = (0..count * count).map(|at| both(chosen, values, at / count, at % count)).collect::<Option<_>>()?;
        Some(Cases { count, table })
    }
}

/// Whether an expression compares a variable with itself, which tests for NaN.
fn asks_for_nan(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Compare { left, right, .. } if left == right))
}

/// Evaluates the combiner for two sides, encoded as in [`Cases`].
fn both(parts: &[&TupleElement], values: usize, left: usize, right: usize) -> Option<usize> {
    let digit = |number: usize, at: usize| number / values.pow(at as u32) % values;
    let digit_of = |var: VarId| {
        parts.iter().enumerate().find_map(|(at, part)| match var {
            var if var == part.left => Some(digit(left, at)),
            var if var == part.right => Some(digit(right, at)),
            _ => None,
        })
    };
    parts.iter().enumerate().try_fold(0, |all, (at, part)| {
        let result = match &part.combined {
            Expr::Select { condition, then, otherwise } => {
                let Expr::Var { var, .. } = (if holds(condition, &digit_of)? { &**then } else { &**otherwise }) else {
                    return None;
                };
                digit_of(*var)?
            }
            Expr::Binary { op: BinaryOp::Max, .. } => digit(left, at).max(digit(right, at)),
            Expr::Binary { op: BinaryOp::Min, .. } => digit(left, at).min(digit(right, at)),
            _ => return None,
        };
        Some(all + result * values.pow(at as u32))
    })
}

/// Evaluates a condition of comparisons for the given digits.
fn holds(condition: &Expr, digit_of: &dyn Fn(VarId) -> Option<usize>) -> Option<bool> {
    let value = |expr: &Expr| match expr {
        Expr::Var { var, dtype } => {
            Some(digit_of(*var)?).map(|digit| if digit == 3 && dtype.is_float() { f64::NAN } else { digit as f64 })
        }
        _ => None,
    };
    match condition {
        Expr::Compare { op, left, right } => Some(op.holds(value(left)?, value(right)?)),
        Expr::Binary { op: BinaryOp::And, left, right } => Some(holds(left, digit_of)? && holds(right, digit_of)?),
        Expr::Binary { op: BinaryOp::Or, left, right } => Some(holds(left, digit_of)? || holds(right, digit_of)?),
        Expr::Unary { op: UnaryOp::Not, value } => Some(!holds(value, digit_of)?),
        _ => None,
    }
}
