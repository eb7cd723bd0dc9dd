//! Reductions of a tuple (a maximum and its index), sums of groups of channels, and maps and sums of values that are
//! bound to a name. The fallback must take none of them.

use crate::case::Case;
use crate::rows::{Ruled, ruled, symbols};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::{BinaryOp, CompareOp, Expr, IterKind, KernelBuilder, PrimFunc, Stmt};

const F32: DType = DType::FLOAT32;

pub fn cases() -> Vec<Ruled> {
    extrema().into_iter().chain(groups()).chain(named()).collect()
}

fn dims(extents: &[i64]) -> Vec<Dim> {
    extents.iter().map(|extent| Dim::from(*extent)).collect()
}

/// Returns the maximum along an axis and its index. Of equal elements the first counts; NaN is larger than every
/// number.
fn extremum(shape: &[Dim], axis: usize, dtype: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("extremum"));
    let x = builder.param("x", shape, dtype);
    let mut kept = shape.to_vec();
    kept.remove(axis);
    let (best, at) = (builder.param("best", &kept, dtype), builder.param("at", &kept, DType::INT64));
    let rows: Vec<Expr> = kept.iter().map(|dim| builder.dim(dim)).collect();
    let of_rows = rows.len();
    let mut loops: Vec<(Expr, IterKind)> = rows.into_iter().map(|extent| (extent, IterKind::Spatial)).collect();
    loops.push((builder.dim(&shape[axis]), IterKind::Reduce));
    builder.block("extremum", &loops, |builder, loops| {
        let (row, place) = (loops[..of_rows].to_vec(), loops[of_rows].clone());
        let mut index = row.clone();
        index.insert(axis, place.clone());
        let lowest = match dtype.is_float() {
            true => Expr::number(f64::NEG_INFINITY, dtype),
            false => Expr::number(-100.0, dtype),
        };
        let stores = |place: Expr, value: Expr| {
            Stmt::seq([builder.store(at, row.clone(), place), builder.store(best, row.clone(), value)])
        };
        let (value, held) = (builder.load(x, &index), builder.load(best, &row));
        let or = |a: Expr, b: Expr| Expr::Binary { op: BinaryOp::Or, left: Box::new(a), right: Box::new(b) };
        let is_nan = |value: &Expr| Expr::compare(CompareOp::Ne, value.clone(), value.clone());
        let mut better = Expr::compare(CompareOp::Gt, value.clone(), held.clone());
        let mut tied = value.clone().eq(held.clone());
        if dtype.is_float() {
            better = or(better, is_nan(&value).and(!is_nan(&held)));
            tied = or(tied, is_nan(&value).and(is_nan(&held)));
        }
        let wins = or(better, tied.and(place.clone().lt(builder.load(at, &row))));
        (Some(stores(Expr::int(0), lowest)), Stmt::when(wins, stores(place, value)))
    });
    builder.finish()
}

fn extrema() -> Vec<Ruled> {
    let mut all = Vec::new();
    let mut add = |title: String, func: PrimFunc, shape: &[i64], axis: usize, rule: &'static str| {
        let mut kept = shape.to_vec();
        kept.remove(axis);
        all.push(ruled(Case::new(&title, func, &[shape, &kept, &kept]), &[rule]));
    };
    for length in [2, 33, 1000, 1030, 4096] {
        let shape = [3, length];
        add(format!("extremum of {length}"), extremum(&dims(&shape), 1, F32), &shape, 1, "rows");
        add(format!("extremum of {length} int8"), extremum(&dims(&shape), 1, DType::INT8), &shape, 1, "rows");
    }
    for shape in [[3i64, 7], [0, 7], [2, 1025]] {
        let title = format!("extremum of {shape:?}, which the call says");
        add(title, extremum(&symbols(&shape), 1, F32), &shape, 1, "rows");
    }
    add("extremum of a long row".to_owned(), extremum(&dims(&[1, 40000]), 1, F32), &[1, 40000], 1, "reduction");
    let shape = [1, 40000];
    add(
        "extremum of a long row of float16".to_owned(),
        extremum(&dims(&shape), 1, DType::FLOAT16),
        &shape,
        1,
        "reduction",
    );
    for (shape, axis) in [([2i64, 37, 5, 7], 1), ([3, 4, 2, 33], 0), ([2, 21, 4, 136], 1)] {
        let title = format!("extremum of {shape:?} along {axis}");
        add(title, extremum(&dims(&shape), axis, F32), &shape, axis, "columns");
    }
    all
}

/// Returns sums over groups of adjacent channels, as in GroupNorm. The groups do not overlap.
fn groups() -> Vec<Ruled> {
    let of = |groups: i64, channels: i64, size: i64, rule: &'static str| {
        let mut builder = KernelBuilder::new(name("groups"));
        let shape = [2, groups * channels, size, size];
        let (x, out) = (builder.param("x", &dims(&shape), F32), builder.param("out", &dims(&[2, groups]), F32));
        let extents = [2, groups].map(Expr::int);
        let reduced = [channels, size, size].map(Expr::int);
        builder.reduce(out, &extents, &reduced, Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
            let channel = at[1].clone() * Expr::int(channels) + k[0].clone();
            (at.to_vec(), builder.load(x, &[at[0].clone(), channel, k[1].clone(), k[2].clone()]))
        });
        let title = format!("sums of {groups} groups of {channels} channels");
        ruled(Case::new(&title, builder.finish(), &[&shape, &[2, groups]]).within(1e-5), &[rule])
    };
    vec![of(4, 3, 9, "rows"), of(4, 16, 4, "rows"), of(32, 2, 24, "rows"), of(3, 2, 2, "window")]
}

/// Returns leaky ReLUs of a value that is bound to a name by a `let`, and a case that sums them.
fn named() -> Vec<Ruled> {
    let shared = |builder: &mut KernelBuilder, value: Expr, store: &dyn Fn(&KernelBuilder, Expr) -> Stmt| {
        let (var, named) = builder.variable("value", F32);
        let negative = named.clone().lt(Expr::number(0.0, F32));
        let leaky = Expr::select(negative, named.clone() * Expr::number(0.1, F32), named);
        Stmt::Let { var, value, body: Box::new(store(builder, leaky)) }
    };
    let map = |shape: &[Dim]| {
        let mut builder = KernelBuilder::new(name("leaky"));
        let [x, y, out] = ["x", "y", "out"].map(|name| builder.param(name, shape, F32));
        let loops: Vec<_> = builder.shape(out).into_iter().map(|extent| (extent, IterKind::Spatial)).collect();
        builder.block("leaky", &loops, |builder, at| {
            let sum = builder.load(x, at) + builder.load(y, at);
            let store = |builder: &KernelBuilder, value| builder.store(out, at.to_vec(), value);
            (None, shared(builder, sum / Expr::number(3.0, F32), &store))
        });
        builder.finish()
    };
    let sum = || {
        let mut builder = KernelBuilder::new(name("leaky_sum"));
        let x = builder.param("x", &dims(&[3, 200]), F32);
        let out = builder.param("out", &dims(&[3]), F32);
        let loops = [(Expr::int(3), IterKind::Spatial), (Expr::int(200), IterKind::Reduce)];
        builder.block("sum", &loops, |builder, at| {
            let row = vec![at[0].clone()];
            let value = builder.load(x, at) / Expr::number(3.0, F32);
            let store =
                |builder: &KernelBuilder, value| builder.store(out, row.clone(), builder.load(out, &row) + value);
            let init = builder.store(out, row.clone(), Expr::number(0.0, F32));
            (Some(init), shared(builder, value, &store))
        });
        builder.finish()
    };
    let mut all = Vec::new();
    for shape in [[2i64, 64], [3, 33], [1, 5]] {
        let title = format!("a shared value of {shape:?}");
        all.push(ruled(
            Case::new(&title, map(&dims(&shape)), &[&shape, &shape, &shape]).within(1e-6),
            &["elementwise"],
        ));
        let title = format!("{title}, which the call says");
        all.push(ruled(
            Case::new(&title, map(&symbols(&shape)), &[&shape, &shape, &shape]).within(1e-6),
            &["elementwise"],
        ));
    }
    all.push(ruled(Case::new("sums of a shared value", sum(), &[&[3, 200], &[3]]).within(1e-5), &["rows"]));
    all
}
