//! Scheduled functions compute the same results as the originals: matrix products in several layouts.

use crate::support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_loops::schedule;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::PrimFunc;
use rx_tir::{CompareOp, KernelBuilder};

/// A generated matrix product with its layouts.
#[derive(Clone, Debug)]
struct Matmul {
    /// The batch axes: extent, whether the left factor has this extent, whether the right factor has it. Otherwise the
    /// factor's extent is 1.
    batch: Vec<(i64, bool, bool)>,
    m: i64,
    n: i64,
    k: i64,
    /// Whether each factor is stored with its last two axes exchanged.
    transposed: (bool, bool),
    /// Whether the result is stored with its last two axes exchanged.
    result_transposed: bool,
    /// Whether each of m, n, k is a symbol.
    symbolic: [bool; 3],
    /// The operation on the factors' elements.
    prologue: (Prologue, Prologue),
    /// The initial value of the sum.
    initial: i64,
}

#[derive(Clone, Copy, Debug)]
enum Prologue {
    Nothing,
    Relu,
    FromHalf,
    FromInt,
}

fn matmul() -> impl Strategy<Value = Matmul> {
    let extent = || prop::sample::select(vec![1, 2, 3, 5]);
    let prologue = || {
        use Prologue::*;
        prop::sample::select(vec![Nothing, Nothing, Nothing, Relu, FromHalf, FromInt])
    };
    (
        prop::collection::vec((extent(), any::<bool>(), any::<bool>()), 0..3),
        (extent(), extent(), extent()),
        any::<(bool, bool, bool)>(),
        any::<[bool; 3]>(),
        (prologue(), prologue()),
        prop::sample::select(vec![0, 0, 3]),
    )
        .prop_map(|(batch, (m, n, k), (left, right, result), symbolic, prologue, initial)| Matmul {
            batch,
            m,
            n,
            k,
            transposed: (left, right),
            result_transposed: result,
            symbolic,
            prologue,
            initial,
        })
}

fn build(spec: &Matmul) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("matmul"));
    let dim = |at: usize, text: &str, value: i64| match spec.symbolic[at] {
        true => Dim::symbol(name(text)),
        false => Dim::constant(value),
    };
    let (m, n, k) = (dim(0, "m", spec.m), dim(1, "n", spec.n), dim(2, "k", spec.k));
    let shape = |keep: &dyn Fn(&(i64, bool, bool)) -> bool, rows: &Dim, columns: &Dim, transposed: bool| {
        let kept = |axis: &(i64, bool, bool)| Dim::constant(if keep(axis) { axis.0 } else { 1 });
        let mut shape: Vec<Dim> = spec.batch.iter().map(kept).collect();
        shape.extend(if transposed { [columns.clone(), rows.clone()] } else { [rows.clone(), columns.clone()] });
        shape
    };
    let dtype = |prologue: Prologue| match prologue {
        Prologue::Nothing | Prologue::Relu => DType::FLOAT32,
        Prologue::FromHalf => DType::FLOAT16,
        Prologue::FromInt => DType::parse("int8").expect("a dtype"),
    };
    let a = builder.param("a", &shape(&|axis| axis.1, &m, &k, spec.transposed.0), dtype(spec.prologue.0));
    let b = builder.param("b", &shape(&|axis| axis.2, &k, &n, spec.transposed.1), dtype(spec.prologue.1));
    let c = builder.param("c", &shape(&|_| true, &m, &n, spec.result_transposed), DType::FLOAT32);
    let mut extents: Vec<Expr> = spec.batch.iter().map(|axis| Expr::int(axis.0)).collect();
    extents.extend([builder.dim(&m), builder.dim(&n)]);
    let depth = builder.dim(&k);
    let batch = spec.batch.clone();
    let spec = spec.clone();
    let initial = Expr::number(spec.initial as f64, DType::FLOAT32);
    builder.reduce(c, &extents, &[depth], initial, BinaryOp::Add, move |builder, axes, reduced| {
        let (outer, inner) = axes.split_at(batch.len());
        let [row, column] = inner else { unreachable!("two axes") };
        let at = |keep: &dyn Fn(&(i64, bool, bool)) -> bool, row: &Expr, column: &Expr, transposed: bool| {
            let index =
                |(axis, spec): (&Expr, &(i64, bool, bool))| if keep(spec) { axis.clone() } else { Expr::int(0) };
            let mut indices: Vec<Expr> = outer.iter().zip(&batch).map(index).collect();
            indices.extend(if transposed { [column.clone(), row.clone()] } else { [row.clone(), column.clone()] });
            indices
        };
        let element = |load: Expr, prologue: Prologue| match prologue {
            Prologue::Nothing | Prologue::FromHalf | Prologue::FromInt => load.cast(DType::FLOAT32),
            Prologue::Relu => {
                let zero = Expr::number(0.0, DType::FLOAT32);
                Expr::select(Expr::compare(CompareOp::Gt, load.clone(), zero.clone()), load, zero)
            }
        };
        let left = builder.load(a, &at(&|axis| axis.1, row, &reduced[0], spec.transposed.0));
        let right = builder.load(b, &at(&|axis| axis.2, &reduced[0], column, spec.transposed.1));
        let value = element(left, spec.prologue.0) * element(right, spec.prologue.1);
        (at(&|_| true, row, column, spec.result_transposed), value)
    });
    builder.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn steps_keep_the_values_of_the_function(spec in matmul()) {
        let func = build(&spec);
        let dims = [("m", spec.m), ("n", spec.n), ("k", spec.k)];
        let scheduled = schedule(&func);
        let steps = support::as_func(&scheduled);
        prop_assert_eq!(support::outcome(&func, &dims, 5), support::outcome(&steps, &dims, 5), "{:#?}", scheduled.steps);
        // Factors that are matrices in memory are scheduled as one product if M or N, and K, may have several
        // iterations, and if each batch axis of several iterations occurs in a factor.
        let plain = matches!(spec.prologue, (Prologue::Nothing, Prologue::Nothing));
        let repeated = spec.batch.iter().any(|axis| axis.0 > 1 && !axis.1 && !axis.2);
        let longer = |at: usize, extent: i64| extent > 1 || spec.symbolic[at];
        let rows = longer(0, spec.m) || longer(1, spec.n);
        if plain && !repeated && rows && longer(2, spec.k) {
            prop_assert_eq!(scheduled.gemm_count(), 1, "{:?}", scheduled.declined);
        }
    }
}

/// Builds `out[b, h, s, t] = Σ query[b, s, h, d] * key[b, t, h // 3, d]`.
#[test]
fn heads_that_share_a_key_are_rows_of_one_product() {
    let mut builder = KernelBuilder::new(name("scores"));
    let (s, t) = (Dim::symbol(name("s")), Dim::symbol(name("t")));
    let constant = Dim::constant;
    let query = builder.param("query", &[constant(2), s.clone(), constant(6), constant(5)], DType::FLOAT32);
    let key = builder.param("key", &[constant(2), t.clone(), constant(2), constant(5)], DType::FLOAT32);
    let out = builder.param("out", &[constant(2), constant(6), s, t], DType::FLOAT32);
    let extents = builder.shape(out);
    builder.reduce(out, &extents, &[Expr::int(5)], Expr::number(0.0, DType::FLOAT32), BinaryOp::Add, |b, v, k| {
        let left = b.load(query, &[v[0].clone(), v[2].clone(), v[1].clone(), k[0].clone()]);
        let shared = v[1].clone().floor_div(Expr::int(3));
        (v.to_vec(), left * b.load(key, &[v[0].clone(), v[3].clone(), shared, k[0].clone()]))
    });
    let func = builder.finish();
    let scheduled = schedule(&func);
    assert_eq!((scheduled.gemm_count(), scheduled.temporaries.len()), (1, 0), "{:#?}", scheduled.steps);
    let dims = [("s", 3), ("t", 4)];
    assert_eq!(support::outcome(&func, &dims, 5), support::outcome(&support::as_func(&scheduled), &dims, 5));
}

/// Builds `out[b, s, e] = Σ (weight[b, s, k] - sum[b, s]) * value[b, k, e]`.
#[test]
fn a_factor_that_is_computed_is_packed_once_for_each_batch() {
    let mut builder = KernelBuilder::new(name("weighted"));
    let s = Dim::symbol(name("s"));
    let constant = Dim::constant;
    let weight = builder.param("weight", &[constant(2), s.clone(), s.clone()], DType::FLOAT32);
    let sum = builder.param("sum", &[constant(2), s.clone()], DType::FLOAT32);
    let value = builder.param("value", &[constant(2), s.clone(), constant(4)], DType::FLOAT32);
    let out = builder.param("out", &[constant(2), s, constant(4)], DType::FLOAT32);
    let (extents, keys) = (builder.shape(out), builder.shape(weight)[2].clone());
    builder.reduce(out, &extents, &[keys], Expr::number(0.0, DType::FLOAT32), BinaryOp::Add, |b, v, k| {
        let left = b.load(weight, &[v[0].clone(), v[1].clone(), k[0].clone()]) - b.load(sum, &v[..2]);
        (v.to_vec(), left * b.load(value, &[v[0].clone(), k[0].clone(), v[2].clone()]))
    });
    let func = builder.finish();
    let scheduled = schedule(&func);
    assert_eq!((scheduled.gemm_count(), scheduled.temporaries.len()), (1, 1), "{:#?}", scheduled.steps);
    let dims = [("s", 3)];
    assert_eq!(support::outcome(&func, &dims, 5), support::outcome(&support::as_func(&scheduled), &dims, 5));
}
