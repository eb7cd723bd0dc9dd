//! Symbolic evaluation of consecutive statements at one element. Each statement's value is expressed over the loops of
//! the first statement, with the loads of earlier results replaced by their values. [`super::problem`] matches the
//! results.
//!
//! ```text
//! for m, n, d: S[m, n] += Q[m, d] * K[n, d]
//! for i, j:    A[i, j]  = S[i, j] * 0.125
//! for p, q:    B[p, q]  = A[p, q] + mask[q]
//! →
//! B[m, n] is S[m, n] * 0.125 + mask[n]
//! ```
//!
//! Requires: statements that read each known element only at the indices at which it was recorded, up to the names of
//! the loops. Guarantees: rounding to a narrow dtype on the way through a buffer stays in the value, as a cast.

use crate::rules::{Declined, Task};
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_loops::Nest;
use rx_loops::scope::Scope;
use rx_tensor::Element;
use rx_tir::expr::BinaryOp;
use rx_tir::rewrite::{map_expr, map_stmt, substitute};
use rx_tir::{BufferId, Expr, PrimFunc, Stmt, VarId};

/// The maximum size of a recorded value or of the value of a `let`, in nodes.
const MAX_PARTS: usize = 2000;

/// A loop over which values are expressed: of the first statement, or a separate loop of a later one ([`Bound::own`]).
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// The loop's variable.
    pub(super) var: VarId,
    /// The loop's extent.
    pub(super) extent: Expr,
}

/// The value of a buffer's element at the indices `place`. Indices and value are expressions over the axes.
#[derive(Clone, Debug)]
struct Known {
    place: Vec<Expr>,
    value: Expr,
}

/// The symbolic evaluator: the known elements by buffer, and the axes that they are over.
pub(super) struct Reading<'t> {
    task: &'t Task<'t>,
    scope: Scope,
    known: FxHashMap<BufferId, Known>,
    axes: Vec<Axis>,
}

/// The loops of a statement, mapped to axes.
pub(super) struct Bound {
    /// By loop variable: the axis that the loop iterates over, possibly cast.
    values: FxHashMap<VarId, Expr>,
    /// The loops that correspond to no axis.
    pub(super) own: Vec<Axis>,
}

impl<'t> Reading<'t> {
    pub(super) fn new(task: &'t Task<'t>) -> Reading<'t> {
        Reading { task, scope: Scope::new(task.func), known: FxHashMap::default(), axes: Vec::new() }
    }

    pub(super) fn func(&self) -> &'t PrimFunc {
        self.task.func
    }

    /// Starts over with these axes and one known element: `buffer[place]`. Declines unless each axis is exactly one
    /// index of `place` and the other indices are constants.
    pub(super) fn begin(&mut self, buffer: BufferId, place: &[Expr], axes: Vec<Axis>) -> Result<(), Declined> {
        self.known.clear();
        self.axes = axes;
        for index in place {
            let is_axis = |var: VarId| self.axes.iter().any(|axis| axis.var == var);
            if !matches!(index, Expr::Int { .. }) && !matches!(index, Expr::Var { var, .. } if is_axis(*var)) {
                let name = self.func().buffer(buffer).name;
                return Err(Declined::because(format!(
                    "requires loops as indices of `{name}`; found a computed index"
                )));
            }
        }
        for axis in &self.axes {
            if place.iter().filter(|index| index.uses(axis.var)).count() != 1 {
                let name = self.func().buffer(buffer).name;
                return Err(Declined::because(format!(
                    "requires each loop in one index of `{name}`; found another form"
                )));
            }
        }
        self.is(buffer, place);
        Ok(())
    }

    /// Records `buffer[place]` as a known element whose value is a load of itself.
    pub(super) fn is(&mut self, buffer: BufferId, place: &[Expr]) {
        let value = self.func().load(buffer, place.to_vec());
        self.known.insert(buffer, Known { place: place.to_vec(), value });
    }

    /// Records `buffer[place]` as a known element with this value. Declines if the value is too large an expression.
    pub(super) fn has(&mut self, buffer: BufferId, place: &[Expr], value: Expr) -> Result<(), Declined> {
        Declined::when(value.size() > MAX_PARTS, "requires element values of limited size; found a larger expression")?;
        self.known.insert(buffer, Known { place: place.to_vec(), value });
        Ok(())
    }

    pub(super) fn knows(&self, buffer: BufferId) -> bool {
        self.known.contains_key(&buffer)
    }

    /// Whether an expression reads a buffer that has a known element.
    pub(super) fn reads_known(&self, expr: &Expr) -> bool {
        expr.any(&|part| matches!(part, Expr::Load { buffer, .. } if self.knows(*buffer)))
    }

    /// Returns statement number `at` of the task as a loop nest, with the `let`s around its body replaced by their
    /// values. Declines, for example, if it is no loop nest or has a predicate, or if a value is too large.
    pub(super) fn nest(&self, at: usize) -> Result<Nest, Declined> {
        let mut nest = self.task.nest(at)?.clone();
        while let Stmt::Let { var, value, body } = nest.body {
            // Each value may use the previous one several times, so sizes may grow exponentially.
            Declined::when(
                value.size() > MAX_PARTS,
                "requires `let` values of limited size; found a larger expression",
            )?;
            nest.body = map_stmt(&body, &mut |expr| substitute(expr, &|known| (known == var).then(|| value.clone())));
        }
        Declined::when(nest.predicate.is_some(), "requires a block without a predicate; found one with a predicate")?;
        Ok(nest)
    }

    /// Maps the loops of a nest to axes, by comparing the indices of known elements that `expr` reads with their
    /// places. Loops that are no index of one become [`Bound::own`]. Declines if an index does not match its place, if
    /// a loop is mapped to a constant or has another extent than its axis, or if two loops are mapped to one axis.
    pub(super) fn bound(&mut self, nest: &Nest, expr: &Expr) -> Result<Bound, Declined> {
        let mut values: FxHashMap<VarId, Expr> = FxHashMap::default();
        let mut fits = true;
        expr.walk(&mut |part| {
            let Expr::Load { buffer, indices, .. } = part else { return };
            let Some(known) = self.known.get(buffer) else { return };
            for (index, place) in indices.iter().zip(&known.place) {
                match index {
                    Expr::Var { var, dtype } if nest.loops.iter().any(|inner| inner.var == *var) => {
                        let value = place.clone().cast(*dtype);
                        fits &= *values.entry(*var).or_insert_with(|| value.clone()) == value;
                    }
                    index => fits &= index == place,
                }
            }
        });
        let mut own = Vec::new();
        let mut taken = Vec::new();
        for inner in &nest.loops {
            let Some(value) = values.get(&inner.var) else {
                own.push(Axis { var: inner.var, extent: inner.extent.clone() });
                continue;
            };
            let Some(axis) = self.axis_of(value).cloned() else {
                return Err(Declined::because(
                    "requires loops over axes of the product; found a loop with a constant value",
                ));
            };
            fits &= self.scope.dim(&axis.extent) == self.scope.dim(&inner.extent) && !taken.contains(&axis.var);
            taken.push(axis.var);
        }
        match fits {
            true => Ok(Bound { values, own }),
            false => Err(Declined::because("requires elementwise reads; found reads at other indices")),
        }
    }

    fn axis_of(&self, value: &Expr) -> Option<&Axis> {
        let var = match value {
            Expr::Var { var, .. } => *var,
            Expr::Cast { value, .. } => match &**value {
                Expr::Var { var, .. } => *var,
                _ => return None,
            },
            _ => return None,
        };
        self.axes.iter().find(|axis| axis.var == var)
    }

    /// Returns an expression of a nest over the axes, with known elements replaced by their values.
    pub(super) fn here(&self, bound: &Bound, expr: &Expr) -> Expr {
        let over_axes = substitute(expr, &|var| bound.values.get(&var).cloned());
        map_expr(&over_axes, &mut |part| match part {
            Expr::Load { buffer, indices, dtype } => match self.known.get(&buffer) {
                Some(known) => stored(known.value.clone(), dtype),
                None => Expr::Load { buffer, indices, dtype },
            },
            other => other,
        })
    }
}

/// Returns a value as it is after a store: with a cast to the buffer's dtype if that is a float of less than 32 bits.
/// Loads and casts are rounded already.
fn stored(value: Expr, dtype: DType) -> Expr {
    let is_small = dtype.is_float() && dtype.bits < 32;
    match value {
        value @ (Expr::Load { .. } | Expr::Cast { .. }) => value,
        value if is_small => Expr::Cast { dtype, value: Box::new(value) },
        value => value,
    }
}

/// Whether the expression is the floating-point constant 0 or −0. `None` is not.
pub(super) fn is_zero(expr: Option<&Expr>) -> bool {
    matches!(expr, Some(Expr::Float { value, .. }) if *value == 0.0)
}

/// Whether the expression is the constant −∞.
pub(super) fn is_minus_infinity(expr: &Expr) -> bool {
    matches!(expr, Expr::Float { value, .. } if *value == f64::NEG_INFINITY)
}

/// Returns an expression without its casts between floating-point dtypes, that is without rounding.
pub(super) fn unrounded(expr: &Expr) -> Expr {
    map_expr(expr, &mut |part| match part {
        Expr::Cast { dtype, value } if dtype.is_float() && value.dtype().is_float() => *value,
        other => other,
    })
}

/// Removes the outer multiplications and divisions by finite, nonzero constants from a factor, also those inside casts
/// between floating-point dtypes. Returns the rest, and the number by which the sum of products is multiplied instead.
/// For example, `cast(q) * 0.5 / 4.0` gives `cast(q)` and 0.125.
pub(super) fn unscaled(factor: &Expr) -> (Expr, f64) {
    let constant = |expr: &Expr| match expr {
        Expr::Float { value, dtype } => {
            let rounded = Element::of(*dtype)?.round(*value);
            (rounded.is_finite() && rounded != 0.0).then_some(rounded)
        }
        _ => None,
    };
    match factor {
        Expr::Cast { dtype, value } if dtype.is_float() && value.dtype().is_float() => {
            let (value, scale) = unscaled(value);
            (value.cast(*dtype), scale)
        }
        Expr::Binary { op: op @ (BinaryOp::Mul | BinaryOp::Div), left, right } => {
            let (of, by) = match (op, constant(left), constant(right)) {
                (BinaryOp::Div, _, Some(by)) => (left, by.recip()),
                (BinaryOp::Mul, _, Some(by)) => (left, by),
                (BinaryOp::Mul, Some(by), _) => (right, by),
                _ => return (factor.clone(), 1.0),
            };
            let (value, scale) = unscaled(of);
            (value, scale * by)
        }
        other => (other.clone(), 1.0),
    }
}
