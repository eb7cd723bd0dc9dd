//! Samples between pixels: per axis the pixels that matter and their weights.

use rx_base::DType;
use rx_tir::{Expr, KernelBuilder, Stmt, VarId};

/// The pixels of one axis that a sample is made of.
pub(crate) struct Taps {
    /// Places along the axis, `int64`, in range or not, each with its weight.
    pub(crate) taps: Vec<(Expr, Expr)>,
}

/// Values that are named once and used often: `let`s around what is stored.
#[derive(Default)]
pub(crate) struct Lets {
    bound: Vec<(VarId, Expr)>,
}

impl Lets {
    /// Names a value.
    pub(crate) fn name(&mut self, builder: &mut KernelBuilder, variable: &str, value: Expr) -> Expr {
        if matches!(value, Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. }) {
            return value;
        }
        let (var, named) = builder.variable(variable, value.dtype());
        self.bound.push((var, value));
        named
    }

    /// The statement inside the `let`s of all names.
    pub(crate) fn around(self, statement: Stmt) -> Stmt {
        let bind = |body: Stmt, (var, value)| Stmt::Let { var, value, body: Box::new(body) };
        self.bound.into_iter().rev().fold(statement, bind)
    }
}

/// The two pixels around a coordinate, weighted by nearness.
pub(crate) fn linear(builder: &mut KernelBuilder, lets: &mut Lets, coordinate: Expr) -> Taps {
    let dtype = coordinate.dtype();
    let (place, fraction) = split(builder, lets, coordinate);
    let rest = Expr::number(1.0, dtype) - fraction.clone();
    Taps { taps: vec![(place.clone(), rest), (place + Expr::int(1), fraction)] }
}

/// The four pixels around a coordinate under Keys's cubic kernel with this coefficient.
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

/// The pixel below a coordinate, and how far the coordinate is beyond it.
fn split(builder: &mut KernelBuilder, lets: &mut Lets, coordinate: Expr) -> (Expr, Expr) {
    let coordinate = lets.name(builder, "coordinate", coordinate);
    let below = lets.name(builder, "below", Expr::call(rx_tir::Intrinsic::Floor, vec![coordinate.clone()]));
    let place = lets.name(builder, "place", below.clone().cast(DType::INT64));
    let fraction = lets.name(builder, "fraction", coordinate - below);
    (place, fraction)
}

/// Keys, "Cubic convolution interpolation for digital image processing" (1981), as polynomials in the fraction.
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

/// The sum over all combinations of taps, one of each axis, of the pixel there times the weights. `pixel` takes one place
/// for each axis.
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
