//! Several elements that a nest reduces at once, where an update reads the others: a maximum and where it is.

use crate::accumulate::{Nest, mentions, reads};
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_base::name::name;
use rx_tir::expr::{BinaryOp, Expr, UnaryOp};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, substitute};
use rx_tir::stmt::{IterKind, Site, Stmt};

/// Elements that end up with one of the values they are given, at most: all cases of these are tried.
const MOST_CHOSEN: usize = 3;

/// One of the elements that are reduced at once. What all parts of the reduction have in `left` and in `right` come, combined, to
/// their `combined`. That is associative, and where a side is chosen `init` may come in any number of times.
#[derive(Clone, Debug, PartialEq)]
pub struct JointPart {
    /// The buffer.
    pub buffer: BufferId,
    /// The element; no loop that is reduced over occurs in it.
    pub indices: Vec<Expr>,
    /// Its first value.
    pub init: Expr,
    /// What each iteration brings; reads none of the buffers.
    pub element: Expr,
    /// Stands for what is there.
    pub left: VarId,
    /// Stands for what comes to it: an iteration's element, or what other iterations come to.
    pub right: VarId,
    /// What both come to.
    pub combined: Expr,
    /// The operation, where it is one of this element alone; else one side is chosen.
    pub operation: Option<BinaryOp>,
    /// What a run-time error names.
    pub site: Site,
}

impl Nest {
    /// The reduction of several elements at once that its body is; `None` where it is of another form, or where what several
    /// iterations come to cannot be read out of it.
    ///
    /// Each element is either combined with a value by an operation, or keeps what it has or gets a value, as comparisons
    /// of what the elements have with what they would get say. (TVM matches such bodies against its registered reducers,
    /// `src/s_tir/schedule/primitive/reduction.cc`.)
    pub fn joint_reduction(&self, func: &mut PrimFunc) -> Option<Vec<JointPart>> {
        let reader = Reader { targets: self.targets(func)? };
        let values = reader.targets.iter().map(|target| func.var_expr(target.left)).collect();
        let mut state = State { names: FxHashMap::default(), values };
        reader.stmt(&self.body, &mut state)?;
        let targets = reader.targets.into_iter().zip(&state.values);
        let mut parts = targets.map(|(target, value)| part(func, target, value)).collect::<Option<Vec<_>>>()?;
        compare_with_right(func, &mut parts)?;
        is_associative(&parts).then_some(parts)
    }

    /// The elements that its init stores.
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

/// An element that is reduced.
struct Target {
    buffer: BufferId,
    indices: Vec<Expr>,
    init: Expr,
    /// Stands for what is there before an iteration.
    left: VarId,
    site: Site,
}

/// What names stand for, and what the elements hold, in terms of what they held before.
#[derive(Clone)]
struct State {
    names: FxHashMap<VarId, Expr>,
    values: Vec<Expr>,
}

/// Follows one iteration.
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

    /// An expression in terms of what the elements held before; `None` where it reads another element of their buffers.
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

/// The part that an element's new value is.
fn part(func: &mut PrimFunc, target: Target, value: &Expr) -> Option<JointPart> {
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
    Some(JointPart { buffer, indices, init, element, left, right, combined, operation, site })
}

/// Whether `a` with `b` is `b` with `a`; of floats, the smaller and the larger of a number and a NaN hang on which comes first.
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

/// Puts the right sides' variables where choices compare with an iteration's elements; `None` where a choice hangs on
/// something else than comparisons of an element's two sides, or an iteration's element on what is there.
fn compare_with_right(func: &PrimFunc, parts: &mut [JointPart]) -> Option<()> {
    let known: Vec<(VarId, VarId, Expr, bool)> =
        parts.iter().map(|part| (part.left, part.right, part.element.clone(), is_chosen(part))).collect();
    let is_left = |var: &VarId| known.iter().any(|(left, ..)| left == var);
    if known.iter().any(|(_, _, element, _)| mentions(element, &is_left)) {
        return None;
    }
    // An element may stand in another: the larger is found first.
    let mut by_size: Vec<_> = known.iter().collect();
    by_size.sort_by_key(|(_, _, element, _)| std::cmp::Reverse(element.size()));
    for part in parts {
        let Expr::Select { condition, then, otherwise } = &part.combined else { continue };
        let condition = by_size.iter().fold(condition.as_ref().clone(), |condition, (_, right, element, _)| {
            map_expr(&condition, &mut |part| if part == *element { func.var_expr(*right) } else { part })
        });
        // A side that is compared with itself is asked whether it is a NaN.
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

/// Whether an element ends up with one of the values that it is given.
fn is_chosen(part: &JointPart) -> bool {
    matches!(part.operation, None | Some(BinaryOp::Min | BinaryOp::Max))
}

/// Whether a condition is made of comparisons of variables that `is_pair` allows.
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

/// Whether it is one how iterations are grouped, and how often the first values of what is chosen come in: each group begins
/// with them, and they must not take the place of what equals them. Operations are, but for rounding. What is chosen depends on how an
/// element's two sides compare, and three sides have no more than three values, and NaN where it is asked for: all there are of these are tried.
fn is_associative(parts: &[JointPart]) -> bool {
    let is_operation = |part: &&JointPart| part.operation.is_some();
    if !parts
        .iter()
        .filter(is_operation)
        .all(|part| part.operation.is_some_and(|op| is_free_in_order(op, DType::INT64)))
    {
        return false;
    }
    let chosen: Vec<&JointPart> = parts.iter().filter(|part| is_chosen(part)).collect();
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

/// Whether all parts choose a side, and the same one whichever side comes first: iterations may then be combined in any order. So it is with a
/// maximum and its index where the smaller index of equal values is kept, and not where the first that comes is.
pub fn commutes(parts: &[JointPart]) -> bool {
    let chosen: Vec<&JointPart> = parts.iter().filter(|part| part.operation.is_none()).collect();
    let Some(Cases { count, table }) = Cases::of(&chosen).filter(|_| chosen.len() == parts.len()) else { return false };
    (0..count * count).all(|at| table[at] == table[at % count * count + at / count])
}

/// The result of each pair of sides. A side has a digit for each part, which is its value; the digit 3 is NaN.
struct Cases {
    /// How many sides there are.
    count: usize,
    /// By the left side times `count` plus the right side.
    table: Vec<usize>,
}

impl Cases {
    fn of(chosen: &[&JointPart]) -> Option<Cases> {
        if chosen.len() > MOST_CHOSEN {
            return None;
        }
        let values: usize = if chosen.iter().any(|part| asks_for_nan(&part.combined)) { 4 } else { 3 };
        let count = values.pow(chosen.len() as u32);
        let table = (0..count * count).map(|at| both(chosen, values, at / count, at % count)).collect::<Option<_>>()?;
        Some(Cases { count, table })
    }
}

/// Whether an expression compares a variable with itself.
fn asks_for_nan(expr: &Expr) -> bool {
    expr.any(&|part| matches!(part, Expr::Compare { left, right, .. } if left == right))
}

/// The result of two sides whose elements' values are digits.
fn both(parts: &[&JointPart], values: usize, left: usize, right: usize) -> Option<usize> {
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

/// Whether a condition of comparisons holds.
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
