//! Loops that give a tensor another shape: for where a view has to be a kernel.

use super::{Lowering, Unsupported};
use crate::tensor::loops::{extents, ravel, unravel};
use rx_base::Dim;
use rx_tir::Expr;
use std::ops::Range;

/// The elements of the operand `param`, in order, under the shape of the result.
///
/// # Errors
/// Where the operand's shape or dtype is not known.
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

/// Indices into axes of extents `own`, of the element that stands at `axes` of extents `theirs`.
fn part(own: &[Expr], axes: &[Expr], theirs: &[Expr]) -> Vec<Expr> {
    match (own, axes) {
        ([_], [axis]) => vec![axis.clone()],
        _ => unravel(ravel(axes, theirs), own),
    }
}

/// The axes of two shapes with as many elements, cut where both have come through as many: `(2, 3, 4)` and `(6, 1, 4)` into
/// `2, 3` with `6`, nothing with `1`, `4` with `4`. An extent of 1 that has no partner is a part by itself.
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

/// Where the axes from `i` and `j` on have come through as many elements; the ends, where nothing says so before.
fn together(own: &[Dim], theirs: &[Dim], i: usize, j: usize) -> (usize, usize) {
    let ends = (own.len(), theirs.len());
    let (Some(mut left), Some(mut right)) = (own.get(i).cloned(), theirs.get(j).cloned()) else { return ends };
    let (mut a, mut b) = (i + 1, j + 1);
    while left != right {
        // The side with fewer elements goes on; of symbolic ones, the side with fewer factors.
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

/// How many factors a product of symbols has.
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
    fn shapes_are_cut_where_they_have_come_through_as_many_elements() {
        assert_eq!(cut("2 3 4", "6 1 4"), "0..2=0..1 2..2=1..2 2..3=2..3");
        assert_eq!(cut("n 3", "1 n 3"), "0..0=0..1 0..1=1..2 1..2=2..3");
        assert_eq!(cut("n 8 64", "n 512"), "0..1=0..1 1..3=1..2");
        assert_eq!(cut("b n 64", "b*n 64"), "0..2=0..1 2..3=1..2");
        assert_eq!(cut("4 6", "3 8"), "0..2=0..2");
        assert_eq!(cut("1 1", ""), "0..1=0..0 1..2=0..0");
        assert_eq!(cut("n m", "24"), "0..2=0..1");
    }
}
