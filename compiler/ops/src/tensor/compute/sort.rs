//! *Rank sort* along an axis (`sort`, `argsort`, `topk`): the number of elements that come before an element is its
//! position.
//!
//! ```text
//! rank[i] = Σ_j (x[j] < x[i] or (x[j] == x[i] and j < i));  out[rank[i]] = x[i]
//! ```
//!
//! Guarantees: the sort is stable and all elements are independent, at a cost that is quadratic in the extent of the
//! axis. A back end may replace the pattern by a faster sort.

use super::{axis, either, with_axis};
use crate::compute::{Lowering, Operand, Unsupported};
use rx_base::DType;
use rx_tir::{BinaryOp, BufferId, CompareOp, Expr, IterKind, Stmt};

/// Emits `sort`.
pub(crate) fn sort(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let along = axis(lowering, "axis", x.ndim(), lowering.call.int("axis").unwrap_or(-1))?;
    let ranks = ranks(lowering, &x, along, lowering.call.bool("descending") == Some(true));
    let out = lowering.output(0);
    write_ranked(lowering, &x, along, ranks, &[(out, Given::Value)], None);
    Ok(())
}

/// Emits `argsort`. Equal elements keep their order.
pub(crate) fn argsort(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let along = axis(lowering, "axis", data.ndim(), lowering.call.int("axis").unwrap_or(-1))?;
    let ranks = ranks(lowering, &data, along, lowering.call.bool("descending") == Some(true));
    let out = lowering.output(0);
    write_ranked(lowering, &data, along, ranks, &[(out, Given::Place)], None);
    Ok(())
}

/// Emits `topk`. Equal elements keep their order.
pub(crate) fn topk(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let data = lowering.tensor("data")?;
    let along = axis(lowering, "axis", data.ndim(), lowering.call.int("axis").unwrap_or(-1))?;
    let ranks = ranks(lowering, &data, along, lowering.call.bool("largest") != Some(false));
    let taken = lowering.builder.shape(lowering.output(0)).get(along).cloned();
    let outputs = match lowering.call.str("ret_type").unwrap_or("both") {
        "values" => vec![(lowering.output(0), Given::Value)],
        "indices" => vec![(lowering.output(0), Given::Place)],
        _ => vec![(lowering.output(0), Given::Value), (lowering.output(1), Given::Place)],
    };
    write_ranked(lowering, &data, along, ranks, &outputs, taken);
    Ok(())
}

/// The data that an output gets for each element: its value or its position.
#[derive(Clone, Copy)]
enum Given {
    Value,
    Place,
}

/// Emits the ranks: the number of elements that come before each element along the axis.
fn ranks(lowering: &mut Lowering<'_>, data: &Operand, along: usize, descending: bool) -> BufferId {
    let ranks = lowering.builder.temporary("ranks", &data.shape, DType::INT64);
    let shape = lowering.builder.shape(ranks);
    let searched = [shape[along].clone()];
    lowering.builder.reduce(ranks, &shape, &searched, Expr::int(0), BinaryOp::Add, |builder, axes, others| {
        let other = others.first().cloned().unwrap_or(Expr::int(0));
        let own = axes[along].clone();
        let (mine, theirs) = (data.at(builder, axes), data.at(builder, &with_axis(axes, along, other.clone())));
        let earlier = theirs_first(theirs.clone(), mine.clone(), descending);
        let later = theirs_first(mine, theirs, descending);
        let before = either(earlier, (!later).and(other.lt(own)));
        (axes.to_vec(), Expr::select(before, Expr::int(1), Expr::int(0)))
    });
    ranks
}

/// Returns whether the value `a` comes before `b`. NaN is greater than any number, as in NumPy and PyTorch.
fn theirs_first(a: Expr, b: Expr, descending: bool) -> Expr {
    let (a, b) = if descending { (b, a) } else { (a, b) };
    let nan_last = super::is_nan(b.clone()).and(!super::is_nan(a.clone()));
    either(Expr::compare(CompareOp::Lt, a, b), nan_last)
}

/// Emits the stores of each element at its rank; only ranks less than `taken`, if given.
fn write_ranked(
    lowering: &mut Lowering<'_>,
    data: &Operand,
    along: usize,
    ranks: BufferId,
    outputs: &[(BufferId, Given)],
    taken: Option<Expr>,
) {
    let extents = lowering.builder.shape(ranks);
    // Ranks along the axis are a permutation, so no two elements have the same target.
    let axes: Vec<(Expr, IterKind)> = extents.into_iter().map(|extent| (extent, IterKind::Spatial)).collect();
    lowering.builder.block(lowering.call.short_name(), &axes, |builder, axes| {
        let rank = builder.load(ranks, axes);
        let place = with_axis(axes, along, rank.clone());
        let stores = outputs.iter().map(|(buffer, given)| {
            let value = match given {
                Given::Value => data.at(builder, axes),
                Given::Place => axes[along].clone().cast(builder.dtype(*buffer)),
            };
            builder.store(*buffer, place.clone(), value)
        });
        let body = Stmt::seq(stores);
        match taken {
            Some(taken) => (None, Stmt::when(rank.lt(taken), body)),
            None => (None, body),
        }
    });
}
