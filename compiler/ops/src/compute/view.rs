//! *Reshape copy.* Copies a tensor to another shape with the same elements in row-major order, for a view that needs a
//! separate kernel.
//!
//! ```text
//! x: [2, 12] → y: [2, 3, 4]
//! for i, j, k in grid(2, 3, 4): y[i, j, k] = x[i, j * 4 + k]
//! ```
//!
//! Requires: both shapes have the same number of elements.
//! Guarantees: index arithmetic is limited to the axes that are split or merged; other axes keep their loop variable,
//! so that later passes recognize them.

use super::{Lowering, Unsupported};
use crate::tensor::compute::{extents, ravel, unravel};
use rx_base::Dim;
use rx_tir::Expr;
use std::ops::Range;

/// Copies the elements of operand `param`, in row-major order, to the shape of the result.
///
/// # Errors
/// Fails if the operand's shape or dtype is unknown.
pub(super) fn copy(lowering: &mut Lowering<'_>, param: &'static str) -> Result<(), Unsupported> {
    let data = lowering.tensor(param)?;
    let result = lowering.output_shape(0).to_vec();
    let from = extents(&mut lowering.builder, &data.shape);
    let to = extents(&mut lowering.builder, &result);
    let parts = parts(&data.shape, &result);
    lowering.compute(|builder, axes| {
        let mut indices = Vec::with_capacity(from.len());
        for (own, theirs) in &parts {
            // INVARIANT: the parts are ranges of the two shapes, and there is an axis for each extent of the result.
            indices.extend(part(&from[own.clone()], &axes[theirs.clone()], &to[theirs.clone()]));
        }
        data.at(builder, &indices)
    });
    Ok(())
}

/// Returns the indices into axes of extents `own` of the element at `axes`, which have the extents `theirs` (both
/// row-major).
fn part(own: &[Expr], axes: &[Expr], theirs: &[Expr]) -> Vec<Expr> {
    match (own, axes) {
        ([_], [axis]) => vec![axis.clone()],
        _ => unravel(ravel(axes, theirs), own),
    }
}

/// Splits the axes of two shapes of equal size into the smallest groups with the same number of elements (the
/// reassociation groups of a reshape). For example, `(2, 3, 4)` and `(6, 1, 4)` give three groups: `2, 3` with `6`,
/// nothing with `1`, `4` with `4`. An extent of 1 without a partner is a separate group.
fn parts(own: &[Dim], theirs: &[Dim]) -> Vec<(Range<usize>, Range<usize>)> {
    let is_one = |dim: Option<&Dim>| dim.and_then(Dim::as_constant) == Some(1);
    let (mut i, mut j) = (0, 0);
    let mut parts = Vec::new();
    while i < own.len() || j < theirs.len() {
        let (a, b) = match (own.get(i), theirs.get(j)) {
            (a, b) if a == b => (i + 1, j + 1),
            (a, _) if is_one(a) => (i + 1, j),
            (_, b) if is_one(b) => (i, j + 1),
            _ => together(own, theirs, i, j),
        };
        parts.push((i..a, j..b));
        (i, j) = (a, b);
    }
    parts
}

/// Returns the ends of the group that begins at axes `i` and `j`: the first axes after which both sides have the same
/// number of elements. Returns the ends of both shapes if no earlier equality can be proved.
fn together(own: &[Dim], theirs: &[Dim], i: usize, j: usize) -> (usize, usize) {
    let ends = (own.len(), theirs.len());
    let (Some(mut left), Some(mut right)) = (own.get(i).cloned(), theirs.get(j).cloned()) else { return ends };
    let (mut a, mut b) = (i + 1, j + 1);
    while left != right {
        // Extends the side with fewer elements; for symbolic products, the side with fewer factors.
        let own_next = match (left.as_constant(), right.as_constant()) {
            (Some(left), Some(right)) => left < right,
            _ => factors(&left) <= factors(&right),
        };
        let next = match own_next {
            true => own.get(a).map(|dim| (&left * dim, right.clone(), a + 1, b)),
            false => theirs.get(b).map(|dim| (left.clone(), &right * dim, a, b + 1)),
        };
        match next {
            Some(next) => (left, right, a, b) = next,
            None => return ends,
        }
    }
    match left.is_error() {
        true => ends,
        false => (a, b),
    }
}

/// Returns the number of factors in a product of symbols, counting powers.
fn factors(dim: &Dim) -> u32 {
    dim.terms().iter().flat_map(|(product, _)| product).map(|(_, exponent)| *exponent).sum()
}

#[cfg(test)]
mod tests {
    use super::parts;
    use rx_base::Dim;
    use rx_base::name::name;

    fn dims(text: &str) -> Vec<Dim> {
        let dim = |word: &str| {
            let factors = word.split('*').map(|factor| match factor.parse() {
                Ok(value) => Dim::constant(value),
                Err(_) => Dim::symbol(name(factor)),
            });
            factors.fold(Dim::constant(1), |product, factor| &product * &factor)
        };
        text.split_whitespace().map(dim).collect()
    }

    fn cut(own: &str, theirs: &str) -> String {
        let parts = parts(&dims(own), &dims(theirs));
        let part = |(a, b): &(std::ops::Range<usize>, std::ops::Range<usize>)| format!("{a:?}={b:?}");
        parts.iter().map(part).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn shapes_are_grouped_at_equal_element_counts() {
        assert_eq!(cut("2 3 4", "6 1 4"), "0..2=0..1 2..2=1..2 2..3=2..3");
        assert_eq!(cut("n 3", "1 n 3"), "0..0=0..1 0..1=1..2 1..2=2..3");
        assert_eq!(cut("n 8 64", "n 512"), "0..1=0..1 1..3=1..2");
        assert_eq!(cut("b n 64", "b*n 64"), "0..2=0..1 2..3=1..2");
        assert_eq!(cut("4 6", "3 8"), "0..2=0..2");
        assert_eq!(cut("1 1", ""), "0..1=0..0 1..2=0..0");
        assert_eq!(cut("n m", "24"), "0..2=0..1");
    }
}
