//! Accesses that are proved in range are in range, simplified arithmetic has the same values, and the usual index forms
//! are proved.

use crate::support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_loops::{guards, simplify};
use rx_tir::KernelBuilder;
use rx_tir::builder::in_range;
use rx_tir::expr::{BinaryOp, CompareOp, Expr};
use rx_tir::func::PrimFunc;

/// Index arithmetic over two loops, `i` in `0..n` and `j` in `0..4`, and the symbol `n`.
#[derive(Clone, Debug)]
enum Index {
    I,
    J,
    N,
    Constant(i64),
    Two(BinaryOp, Box<Index>, Box<Index>),
    /// A quotient or remainder by a positive constant, or by `n`.
    By(BinaryOp, Box<Index>, Option<i64>),
    Choose(CompareOp, Box<Index>, Box<Index>, Box<Index>, Box<Index>),
}

/// The form of the read at an index.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Bare,
    Clamped,
    Modulo,
    Chosen,
    Wrapped,
}

fn index() -> impl Strategy<Value = Index> {
    use BinaryOp::*;
    let leaf = prop_oneof![
        3 => Just(Index::I),
        3 => Just(Index::J),
        1 => Just(Index::N),
        2 => (-3i64..6).prop_map(Index::Constant),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let part = move || inner.clone().prop_map(Box::new);
        let by = prop::option::of(1i64..6);
        let compare = prop::sample::select(vec![CompareOp::Lt, CompareOp::Ge, CompareOp::Eq, CompareOp::Ne]);
        prop_oneof![
            4 => (prop::sample::select(vec![Add, Sub, Mul, Min, Max]), part(), part())
                .prop_map(|(op, a, b)| Index::Two(op, a, b)),
            3 => (prop::sample::select(vec![FloorDiv, FloorMod, TruncDiv, TruncMod]), part(), by)
                .prop_map(|(op, a, by)| Index::By(op, a, by)),
            1 => (compare, part(), part(), part(), part()).prop_map(|(op, a, b, c, d)| Index::Choose(op, a, b, c, d)),
        ]
    })
}

fn expr(index: &Index, i: &Expr, j: &Expr, n: &Expr) -> Expr {
    let part = |index: &Index| expr(index, i, j, n);
    let dtype = i.dtype();
    match index {
        Index::I => i.clone(),
        Index::J => j.clone(),
        Index::N => n.clone(),
        Index::Constant(value) => Expr::Int { value: *value, dtype },
        // No constant folding here, so that the passes see the operations as generated.
        Index::Two(op, a, b) => Expr::Binary { op: *op, left: Box::new(part(a)), right: Box::new(part(b)) },
        Index::By(op, a, by) => {
            let by = by.map_or(n.clone(), |value| Expr::Int { value, dtype });
            Expr::Binary { op: *op, left: Box::new(part(a)), right: Box::new(by) }
        }
        Index::Choose(op, a, b, then, otherwise) => Expr::Select {
            condition: Box::new(Expr::Compare { op: *op, left: Box::new(part(a)), right: Box::new(part(b)) }),
            then: Box::new(part(then)),
            otherwise: Box::new(part(otherwise)),
        },
    }
}

/// Builds `values[i, j] = index` and `out[i, j] = data[index]`, with a read of the form `reading` and arithmetic of a
/// dtype.
fn build(index: &Index, reading: Reading, dtype: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("gather"));
    let n = Dim::symbol(name("n"));
    let extent = &(&n * &Dim::constant(4)) + &Dim::constant(2);
    let data = builder.param("data", std::slice::from_ref(&extent), DType::FLOAT32);
    let _ = builder.param("bare", std::slice::from_ref(&n), DType::FLOAT32);
    let shape = [n.clone(), Dim::constant(4)];
    let values = builder.param("values", &shape, DType::INT64);
    let out = builder.param("out", &shape, DType::FLOAT32);
    let (n, extent) = (builder.dim(&n), builder.dim(&extent));
    let at = |axes: &[Expr]| {
        expr(index, &axes[0].clone().cast(dtype), &axes[1].clone().cast(dtype), &n.clone().cast(dtype))
            .cast(DType::INT64)
    };
    builder.compute(values, |_, axes| at(axes));
    builder.compute(out, |builder, axes| {
        let index = at(axes);
        let (zero, last) = (Expr::int(0), extent.clone() - Expr::int(1));
        let load = |index: Expr| builder.load(data, &[index]);
        match reading {
            Reading::Bare => load(index),
            Reading::Clamped => load(index.max(zero).min(last)),
            Reading::Modulo => load(index.floor_mod(extent.clone())),
            Reading::Chosen => {
                let inside = in_range(index.clone(), zero, extent.clone());
                Expr::select(inside, load(index), Expr::number(0.0, DType::FLOAT32))
            }
            Reading::Wrapped => {
                let below = index.clone().lt(zero);
                load(Expr::select(below, index.clone() + extent.clone(), index))
            }
        }
    });
    builder.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, rng_seed: RngSeed::Fixed(13), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn proved_accesses_are_in_range(
        index in index(),
        reading in prop::sample::select(vec![Reading::Bare, Reading::Clamped, Reading::Modulo, Reading::Chosen, Reading::Wrapped]),
        narrow in any::<bool>(),
        n in 1i64..5,
    ) {
        let dtype = if narrow { DType::parse("int32").expect("a dtype") } else { DType::INT64 };
        let func = build(&index, reading, dtype);
        let dims = [("n", n)];
        let wanted = support::outcome(&func, &dims, 1);
        let (guarded, count) = guards(&func);
        prop_assert!(wanted.is_ok() || count.checked > 0, "{:?}\n{:#?}", wanted, func.body);
        let (simple_guarded, count) = guards(&simplify(&func));
        prop_assert!(wanted.is_ok() || count.checked > 0, "{:?}\n{:#?}", wanted, func.body);
        if !narrow && matches!(reading, Reading::Clamped | Reading::Modulo) {
            prop_assert_eq!(count.checked, 0, "{:#?}", simple_guarded.body);
        }
        for func in [guarded, simplify(&func), simple_guarded] {
            let got = support::outcome(&func, &dims, 1);
            prop_assert_eq!(wanted.is_ok(), got.is_ok(), "{:?} {:?} {:#?}", wanted, got, func.body);
            if wanted.is_ok() {
                prop_assert_eq!(&wanted, &got, "{:#?}", func.body);
            }
        }
    }
}

/// Returns the number of indices of `out[…] = data[index]` that stay checked. `data` has the given extents, and `out`
/// those of the loops.
fn checked(extents: &[&str], loops: &[&str], index: impl Fn(&[Expr], &dyn Fn(&str) -> Expr) -> Vec<Expr>) -> usize {
    let mut builder = KernelBuilder::new(name("read"));
    let dim = |text: &str| match text.parse::<i64>() {
        Ok(value) => Dim::constant(value),
        Err(_) => text.split('*').fold(Dim::constant(1), |product, factor| match factor.parse::<i64>() {
            Ok(value) => &product * &Dim::constant(value),
            Err(_) => &product * &Dim::symbol(name(factor)),
        }),
    };
    let shape = |texts: &[&str]| texts.iter().map(|text| dim(text)).collect::<Vec<_>>();
    for text in ["n", "m", "p"] {
        builder.param(text, &[Dim::symbol(name(text))], DType::FLOAT32);
    }
    let symbols: Vec<(&str, Expr)> = ["n", "m", "p"].map(|text| (text, builder.dim(&Dim::symbol(name(text))))).to_vec();
    let data = builder.param("data", &shape(extents), DType::FLOAT32);
    let out = builder.param("out", &shape(loops), DType::FLOAT32);
    builder.compute(out, |builder, axes| {
        let symbol = |text: &str| {
            symbols.iter().find(|(known, _)| *known == text).map(|(_, expr)| expr.clone()).expect("a symbol")
        };
        builder.load(data, &index(axes, &symbol))
    });
    guards(&builder.finish()).1.checked
}

#[test]
fn usual_index_maps_are_proved() {
    let two = |value: i64| Expr::int(value);
    // Reshapes, in both directions.
    assert_eq!(checked(&["n*m"], &["n", "m"], |v, s| vec![v[0].clone() * s("m") + v[1].clone()]), 0);
    let split =
        |v: &[Expr], s: &dyn Fn(&str) -> Expr| vec![v[0].clone().floor_div(s("m")), v[0].clone().floor_mod(s("m"))];
    assert_eq!(checked(&["n", "m"], &["n*m"], split), 0);
    let three = |v: &[Expr], s: &dyn Fn(&str) -> Expr| {
        let rest = v[0].clone().floor_mod(s("m") * s("p"));
        vec![v[0].clone().floor_div(s("m") * s("p")), rest.clone().floor_div(s("p")), rest.floor_mod(s("p"))]
    };
    assert_eq!(checked(&["n", "m", "p"], &["n*m*p"], three), 0);
    // Repeats and strides.
    assert_eq!(checked(&["n"], &["n*3"], |v, _| vec![v[0].clone().floor_div(two(3))]), 0);
    assert_eq!(checked(&["n*2"], &["n"], |v, _| vec![v[0].clone() * two(2) + two(1)]), 0);
    // Reversed indices.
    assert_eq!(checked(&["n"], &["n"], |v, s| vec![s("n") - two(1) - v[0].clone()]), 0);
    // An index that may be past the end is not proved.
    assert_eq!(checked(&["n"], &["n"], |v, _| vec![v[0].clone() + two(1)]), 1);
    assert_eq!(checked(&["n"], &["m"], |v, _| vec![v[0].clone()]), 1);
}

#[test]
fn indices_from_memory_are_checked_and_name_their_place() {
    let mut builder = KernelBuilder::new(name("take"));
    let n = Dim::symbol(name("n"));
    let data = builder.param("data", std::slice::from_ref(&n), DType::FLOAT32);
    let indices = builder.param("indices", std::slice::from_ref(&n), DType::INT64);
    let out = builder.param("out", std::slice::from_ref(&n), DType::FLOAT32);
    builder.compute(out, |builder, axes| builder.load(data, &[builder.load(indices, axes)]));
    let (guarded, count) = guards(&builder.finish());
    assert_eq!((count.proved, count.checked), (2, 1));
    let mut found = None;
    guarded.body.walk(&mut |stmt| {
        for expr in stmt.expressions() {
            expr.walk(&mut |part| {
                if let Expr::Checked { buffer, axis, site, .. } = part {
                    found = Some((guarded.buffer(*buffer).name.to_string(), *axis, site.operator.to_string()));
                }
            });
        }
    });
    assert_eq!(found, Some(("data".to_owned(), 0, "take".to_owned())));
}
