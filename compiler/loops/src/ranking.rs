//! *Ranking by counting*: nests that count, for each element of a row, the elements that precede it in sorted order.
//! This is how argsort and top-k are defined as loops. For example, for a row `x` of integers:
//!
//! ```text
//! for i, j: ranks[i] += select(x[j] < x[i] or x[j] == x[i] and j < i, 1, 0)
//! ```
//!
//! Requires one reduction loop over the same extent as one loop of the result. Guarantees that each rank is
//! the position of its element in a stable sort of the row by `key`, so that a kernel may sort instead of counting.

use crate::accumulate::Nest;
use crate::roles::Declined;
use crate::scope::Scope;
use rx_tir::expr::{BinaryOp, CompareOp, Expr, Intrinsic, UnaryOp};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::substitute;
use rx_tir::stmt::IterKind;
use std::cmp::Ordering;

/// A ranking `ranks[…, i, …] = Σ_j select(key(j) precedes key(i), 1, 0)`: the position of each element in a stable sort
/// of its row. The ranks of a row are a permutation.
///
/// The condition may combine comparisons, logical operations, selections and tests for NaN in any way, because it is
/// evaluated for every possible case of two keys and positions. The order is by value. A NaN is larger than all
/// numbers, and -0 equals 0. Equal keys, and two NaNs, keep the order of their positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The buffer of the ranks.
    pub buffer: BufferId,
    /// The indices of the rank, over all loops but the reduction loop.
    pub indices: Vec<Expr>,
    /// The loop over the elements of a row.
    pub along: VarId,
    /// The number of elements of a row.
    pub length: Expr,
    /// The loops over rows with their extents, outermost first.
    pub rows: Vec<(VarId, Expr)>,
    /// The sort key of the element at `along`.
    pub key: Expr,
    /// Whether the largest key comes first.
    pub is_descending: bool,
}

/// The order of the other element's key relative to the own key. The own element is the ranked one, and
/// the other element is the one at the reduction loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// Both keys are numbers.
    Numbers(Ordering),
    /// Only the other key is a NaN.
    OtherNan,
    /// Only the own key is a NaN.
    OwnNan,
    /// Both keys are NaNs.
    Nans,
}

/// A case of two elements of a row: the order of their keys, and the order of the other element's position relative to
/// the own position.
#[derive(Clone, Copy, Debug)]
struct Case {
    keys: Keys,
    places: Ordering,
}

impl Case {
    /// Enumerates the possible cases. Positions are only equal where the keys are, and keys are only NaN if they are
    /// floats.
    fn all(is_float: bool) -> impl Iterator<Item = Case> {
        let numbers = [Ordering::Less, Ordering::Equal, Ordering::Greater].map(Keys::Numbers);
        let nans = [Keys::OtherNan, Keys::OwnNan, Keys::Nans];
        let keys = numbers.into_iter().chain(nans.into_iter().filter(move |_| is_float));
        keys.flat_map(|keys| {
            let is_equal = matches!(keys, Keys::Numbers(Ordering::Equal) | Keys::Nans);
            let places = [Ordering::Less, Ordering::Greater, Ordering::Equal];
            places
                .into_iter()
                .filter(move |at| is_equal || *at != Ordering::Equal)
                .map(move |places| Case { keys, places })
        })
    }

    /// Whether the other element precedes the own one.
    fn is_before(self, is_descending: bool) -> bool {
        let by_value = match self.keys {
            Keys::Numbers(Ordering::Equal) | Keys::Nans => return self.places == Ordering::Less,
            Keys::Numbers(order) => order == Ordering::Less,
            Keys::OtherNan => false,
            Keys::OwnNan => true,
        };
        by_value != is_descending
    }
}

impl Ranking {
    /// Matches the nest as a ranking.
    ///
    /// # Errors
    /// If the nest has another form.
    pub fn of(nest: &Nest, func: &PrimFunc) -> Result<Ranking, Declined> {
        let none = Declined("requires a ranking, which counts the elements before each element; found none");
        let reduction = nest.reduction().ok_or(none)?;
        let counts = reduction.combine == BinaryOp::Add
            && reduction.init.as_ref().and_then(Expr::as_int) == Some(0)
            && func.buffer(reduction.buffer).dtype.bits >= 32
            && nest.predicate.is_none();
        let (over, own): (Vec<_>, Vec<_>) = nest.loops.iter().partition(|inner| inner.kind == IterKind::Reduce);
        let ([other], true) = (&over[..], counts && own.iter().all(|inner| inner.kind == IterKind::Spatial)) else {
            return Err(none);
        };
        let mut scope = Scope::new(func);
        for along in &own {
            if scope.dim(&along.extent) != scope.dim(&other.extent) {
                continue;
            }
            let other_var = func.var_expr(other.var).cast(func.var(along.var).dtype);
            let found = key(&reduction.value, along.var, &other_var).filter(|key| !key.uses(other.var));
            let Some(key) = found else { continue };
            let theirs = put(&key, along.var, &other_var);
            let reader = Reader { own: &key, other: &theirs, along: along.var, over: other.var };
            let is = |is_descending: bool| {
                Case::all(key.dtype().is_float())
                    .all(|case| reader.value(&reduction.value, case) == Some(i64::from(case.is_before(is_descending))))
            };
            let is_descending = is(true);
            if is_descending || is(false) {
                let rows = own.iter().filter(|inner| inner.var != along.var);
                return Ok(Ranking {
                    buffer: reduction.buffer,
                    indices: reduction.indices,
                    along: along.var,
                    length: along.extent.clone(),
                    rows: rows.map(|inner| (inner.var, inner.extent.clone())).collect(),
                    key,
                    is_descending,
                });
            }
        }
        Err(none)
    }
}

/// Finds the key: an expression of the own element that is compared with the same expression of the other element.
fn key(value: &Expr, along: VarId, other: &Expr) -> Option<Expr> {
    let mut found = None;
    value.walk(&mut |part| {
        if let Expr::Compare { left, right, .. } = part
            && found.is_none()
        {
            let own = [(left, right), (right, left)]
                .into_iter()
                .find(|(own, theirs)| own.uses(along) && place(own).is_none() && put(own, along, other) == ***theirs);
            found = own.map(|(own, _)| (**own).clone());
        }
    });
    found
}

fn put(expr: &Expr, var: VarId, value: &Expr) -> Expr {
    substitute(expr, &|one| (one == var).then(|| value.clone()))
}

/// Returns the variable if the expression is a variable, up to casts to integers of at least the same width.
fn place(expr: &Expr) -> Option<VarId> {
    match expr {
        Expr::Var { var, .. } => Some(*var),
        Expr::Cast { dtype, value } if dtype.is_int() && dtype.bits >= value.dtype().bits => place(value),
        _ => None,
    }
}

/// The evaluator of the counted expression in a [`Case`].
struct Reader<'e> {
    own: &'e Expr,
    other: &'e Expr,
    along: VarId,
    over: VarId,
}

impl Reader<'_> {
    /// Evaluates an expression in a case; a `bool` is 0 or 1. Returns `None` if the case does not determine the value,
    /// or if the evaluator does not handle the expression.
    fn value(&self, expr: &Expr, case: Case) -> Option<i64> {
        let truth = |expr: &Expr| self.value(expr, case).map(|value| value != 0);
        match expr {
            Expr::Int { value, .. } => Some(*value),
            Expr::Cast { dtype, value } if dtype.is_bool() => truth(value).map(i64::from),
            Expr::Cast { dtype, value } if dtype.is_int() => {
                // 0 and 1 fit into every dtype.
                self.value(value, case).filter(|value| (0..=1).contains(value))
            }
            Expr::Unary { op: UnaryOp::Not, value } => truth(value).map(|value| i64::from(!value)),
            Expr::Binary { op: BinaryOp::And, left, right } => {
                if truth(left)? {
                    truth(right).map(i64::from)
                } else {
                    Some(0)
                }
            }
            Expr::Binary { op: BinaryOp::Or, left, right } => {
                if truth(left)? {
                    Some(1)
                } else {
                    truth(right).map(i64::from)
                }
            }
            Expr::Binary { op, left, right } => {
                let (left, right) = (self.value(left, case)?, self.value(right, case)?);
                match op {
                    BinaryOp::BitAnd => Some(left & right),
                    BinaryOp::BitOr => Some(left | right),
                    BinaryOp::BitXor => Some(left ^ right),
                    BinaryOp::Add if !expr.dtype().is_bool() => {
                        left.checked_add(right).filter(|sum| (0..=1).contains(sum))
                    }
                    BinaryOp::Mul if !expr.dtype().is_bool() => left.checked_mul(right),
                    _ => None,
                }
            }
            Expr::Select { condition, then, otherwise } => {
                if truth(condition)? {
                    self.value(then, case)
                } else {
                    self.value(otherwise, case)
                }
            }
            Expr::Compare { op, left, right } => self.compared(*op, left, right, case).map(i64::from),
            Expr::Call { function: Intrinsic::IsNan, args, .. } => match &args[..] {
                [arg] => {
                    let is_other = self.side(arg)?;
                    Some(i64::from(is_nan(case.keys, is_other)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn compared(&self, op: CompareOp, left: &Expr, right: &Expr, case: Case) -> Option<bool> {
        if let (Some(left), Some(right)) = (self.side(left), self.side(right)) {
            let order = match (left, right) {
                (true, false) => order(case.keys),
                (false, true) => order(case.keys).map(Ordering::reverse),
                (side, _) => (!is_nan(case.keys, side)).then_some(Ordering::Equal),
            };
            // With a NaN, all comparisons but `!=` are false.
            return Some(order.map_or(op == CompareOp::Ne, |order| op.holds(order as i64, 0)));
        }
        let at = |var: VarId| (var == self.over || var == self.along).then_some(var == self.over);
        if let (Some(left), Some(right)) = (place(left).and_then(at), place(right).and_then(at)) {
            let order = match (left, right) {
                (true, false) => case.places,
                (false, true) => case.places.reverse(),
                _ => Ordering::Equal,
            };
            return Some(op.holds(order as i64, 0));
        }
        let (left, right) = (self.value(left, case)?, self.value(right, case)?);
        Some(op.holds(left, right))
    }

    /// Returns whether the expression is the other key (`true`) or the own key (`false`), or `None` if it is neither.
    fn side(&self, expr: &Expr) -> Option<bool> {
        match () {
            () if expr == self.other => Some(true),
            () if expr == self.own => Some(false),
            () => None,
        }
    }
}

fn is_nan(keys: Keys, other: bool) -> bool {
    match keys {
        Keys::Numbers(_) => false,
        Keys::OtherNan => other,
        Keys::OwnNan => !other,
        Keys::Nans => true,
    }
}

/// Returns the order of the other key relative to the own one, or `None` if at least one is a NaN.
fn order(keys: Keys) -> Option<Ordering> {
    match keys {
        Keys::Numbers(order) => Some(order),
        _ => None,
    }
}
