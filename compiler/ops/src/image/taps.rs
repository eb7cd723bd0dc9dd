//! Separable interpolation: for each axis the contributing pixels (taps) with their weights. For example, linear
//! interpolation at coordinate 2.25 has the taps 2 with weight 0.75 and 3 with weight 0.25.

use rx_base::DType;
use rx_tir::{Expr, KernelBuilder, Stmt, VarId};

/// The pixels of one axis that contribute to a sample.
pub(crate) struct Taps {
    /// The positions along the axis (`int64`, possibly out of range), each with its weight.
    pub(crate) taps: Vec<(Expr, Expr)>,
}

/// Let-bindings around a statement, for values that are used several times.
#[derive(Default)]
pub(crate) struct Lets {
    bound: Vec<(VarId, Expr)>,
}

impl Lets {
    /// Binds a value to a new variable and returns the variable; constants and variables are returned unchanged.
    pub(crate) fn name(&mut self, builder: &mut KernelBuilder, variable: &str, value: Expr) -> Expr {
        if matches!(value, Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. }) {
            return value;
        }
        let (var, named) = builder.variable(variable, value.dtype());
        self.bound.push((var, value));
        named
    }

    /// Wraps the statement in all bindings.
    pub(crate) fn around(self, statement: Stmt) -> Stmt {
        let bind = |body: Stmt, (var, value)| Stmt::Let { var, value, body: Box::new(body) };
        self.bound.into_iter().rev().fold(statement, bind)
    }
}

/// Returns the two pixels around a coordinate, with linear weights.
pub(crate) fn linear(builder: &mut KernelBuilder, lets: &mut Lets, coordinate: Expr) -> Taps {
    let dtype = coordinate.dtype();
    let (place, fraction) = split(builder, lets, coordinate);
    let rest = Expr::number(1.0, dtype) - fraction.clone();
    Taps { taps: vec![(place.clone(), rest), (place + Expr::int(1), fraction)] }
}

/// Returns the four pixels around a coordinate, with the weights of Keys's cubic kernel for coefficient `alpha`.
pub(crate) fn cubic(builder: &mut KernelBuilder, lets: &mut Lets, coordinate: Expr, alpha: f64) -> Taps {
    let dtype = coordinate.dtype();
    let (place, fraction) = split(builder, lets, coordinate);
    let weights = cubic_weights(fraction, alpha, dtype);
    let taps = weights.into_iter().enumerate().map(|(at, weight)| {
        let weight = lets.name(builder, "weight", weight);
        (place.clone() + Expr::int(at as i64 - 1), weight)
    });
    Taps { taps: taps.collect() }
}

/// Returns the floor of a coordinate as a pixel position, and the fraction.
fn split(builder: &mut KernelBuilder, lets: &mut Lets, coordinate: Expr) -> (Expr, Expr) {
    let coordinate = lets.name(builder, "coordinate", coordinate);
    let below = lets.name(builder, "below", Expr::call(rx_tir::Intrinsic::Floor, vec![coordinate.clone()]));
    let place = lets.name(builder, "place", below.clone().cast(DType::INT64));
    let fraction = lets.name(builder, "fraction", coordinate - below);
    (place, fraction)
}

/// Returns Keys's weights as polynomials in the fraction `t` (Keys, "Cubic convolution interpolation for digital image
/// processing", 1981).
fn cubic_weights(t: Expr, alpha: f64, dtype: DType) -> [Expr; 4] {
    let number = |value: f64| Expr::number(value, dtype);
    // c0 + t (c1 + t (c2 + t c3))
    let polynomial = |[c0, c1, c2, c3]: [f64; 4]| {
        let inner = t.clone() * number(c3) + number(c2);
        t.clone() * (t.clone() * inner + number(c1)) + number(c0)
    };
    [
        polynomial([0.0, alpha, -2.0 * alpha, alpha]),
        polynomial([1.0, 0.0, -(alpha + 3.0), alpha + 2.0]),
        polynomial([0.0, -alpha, 2.0 * alpha + 3.0, -(alpha + 2.0)]),
        polynomial([0.0, 0.0, alpha, -alpha]),
    ]
}

/// Returns the sum over all combinations of taps (one per axis) of the pixel times the product of the weights. `pixel`
/// takes one position per axis.
pub(crate) fn weighted(axes: &[Taps], dtype: DType, pixel: &dyn Fn(&[Expr]) -> Expr) -> Expr {
    sum_from(axes, dtype, &mut Vec::new(), pixel)
}

fn sum_from(axes: &[Taps], dtype: DType, places: &mut Vec<Expr>, pixel: &dyn Fn(&[Expr]) -> Expr) -> Expr {
    let Some((first, rest)) = axes.split_first() else { return pixel(places) };
    let mut sum: Option<Expr> = None;
    for (place, weight) in &first.taps {
        places.push(place.clone());
        let term = sum_from(rest, dtype, places, pixel) * weight.clone();
        places.pop();
        sum = Some(match sum {
            Some(sum) => sum + term,
            None => term,
        });
    }
    sum.unwrap_or(Expr::number(0.0, dtype))
}
