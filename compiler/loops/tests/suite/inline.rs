//! Inlining keeps every result to the bit, and expensive values are not computed repeatedly.

use crate::support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_loops::{Nest, explicit_loops, inline, schedule, simplify};
use rx_tir::expr::{BinaryOp, Expr, Intrinsic};
use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::stmt::Stmt;
use rx_tir::{CompareOp, KernelBuilder};

/// An operator of a generated chain. Its operands are chosen among the previous buffers by number.
#[derive(Clone, Copy, Debug)]
enum Operator {
    Exp(usize),
    Relu(usize),
    Add(usize, usize),
    Square(usize),
    Transpose(usize),
    /// Adds a row of one buffer to all rows of another.
    AddRow(usize, usize),
    /// Sums rows, with the sums repeated along them.
    SumRows(usize),
    /// Combines the lower triangle of one buffer with the upper triangle of another.
    Choose(usize, usize),
    /// Multiplies matrices.
    Product(usize, usize),
    /// Shifts the rows down by one, with zeros in the first row.
    Shift(usize),
    /// Sums overlapping windows of rows.
    WindowedSum(usize),
}

fn operator() -> impl Strategy<Value = Operator> {
    use Operator::*;
    let at = || any::<usize>();
    prop_oneof![
        at().prop_map(Exp),
        at().prop_map(Relu),
        (at(), at()).prop_map(|(a, b)| Add(a, b)),
        at().prop_map(Square),
        at().prop_map(Transpose),
        (at(), at()).prop_map(|(a, b)| AddRow(a, b)),
        at().prop_map(SumRows),
        (at(), at()).prop_map(|(a, b)| Choose(a, b)),
        (at(), at()).prop_map(|(a, b)| Product(a, b)),
        at().prop_map(Shift),
        at().prop_map(WindowedSum),
    ]
}

/// Builds a chain over square matrices of extent `n`; the last operator writes the output.
fn build(operators: &[Operator]) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("chain"));
    let shape = [Dim::symbol(name("n")), Dim::symbol(name("n"))];
    let mut buffers = vec![builder.param("x", &shape, DType::FLOAT32), builder.param("y", &shape, DType::FLOAT32)];
    for (at, operator) in operators.iter().enumerate() {
        let target = match at + 1 == operators.len() {
            true => builder.param("out", &shape, DType::FLOAT32),
            false => builder.temporary(&format!("t{at}"), &shape, DType::FLOAT32),
        };
        apply(&mut builder, *operator, &buffers, target);
        buffers.push(target);
    }
    builder.finish()
}

fn apply(builder: &mut KernelBuilder, operator: Operator, buffers: &[BufferId], target: BufferId) {
    let of = |at: usize| buffers[at % buffers.len()];
    let zero = || Expr::number(0.0, DType::FLOAT32);
    let extents = builder.shape(target);
    let swapped = |axes: &[Expr]| [axes[1].clone(), axes[0].clone()];
    match operator {
        Operator::Exp(a) => builder.compute(target, |b, v| Expr::call(Intrinsic::Tanh, vec![b.load(of(a), v)])),
        Operator::Relu(a) => builder.compute(target, |b, v| b.load(of(a), v).max(zero())),
        Operator::Add(x, y) => builder.compute(target, |b, v| b.load(of(x), v) + b.load(of(y), v)),
        Operator::Square(a) => builder.compute(target, |b, v| b.load(of(a), v) * b.load(of(a), v)),
        Operator::Transpose(a) => builder.compute(target, |b, v| b.load(of(a), &swapped(v))),
        Operator::AddRow(x, y) => {
            builder.compute(target, |b, v| b.load(of(x), v) + b.load(of(y), &[Expr::int(0), v[1].clone()]))
        }
        Operator::SumRows(a) => {
            builder.reduce(target, &extents, &extents[..1], zero(), BinaryOp::Add, |b, v, k| {
                (v.to_vec(), b.load(of(a), &[v[0].clone(), k[0].clone()]))
            });
        }
        Operator::WindowedSum(a) => {
            builder.reduce(target, &extents, &[Expr::int(2)], zero(), BinaryOp::Add, |b, v, k| {
                let row = (v[0].clone() + k[0].clone()).floor_div(Expr::int(2));
                (v.to_vec(), b.load(of(a), &[row, v[1].clone()]))
            });
        }
        Operator::Choose(x, y) => builder.compute(target, |b, v| {
            let lower = Expr::compare(CompareOp::Ge, v[0].clone(), v[1].clone());
            Expr::select(lower, b.load(of(x), v), b.load(of(y), v))
        }),
        Operator::Product(x, y) => {
            builder.reduce(target, &extents, &extents[..1], zero(), BinaryOp::Add, |b, v, k| {
                let left = b.load(of(x), &[v[0].clone(), k[0].clone()]);
                (v.to_vec(), left * b.load(of(y), &[k[0].clone(), v[1].clone()]))
            });
        }
        Operator::Shift(a) => builder.compute(target, |b, v| {
            let before = v[0].clone() - Expr::int(1);
            let inside = before.clone().ge(Expr::int(0));
            Expr::select(inside, b.load(of(a), &[before, v[1].clone()]), zero())
        }),
    }
}

fn nests(func: &PrimFunc) -> usize {
    let mut stores = 0;
    func.body.walk(&mut |stmt| stores += usize::from(matches!(stmt, Stmt::Block(block) if !block.iters.is_empty())));
    stores
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(3), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bit_changes(operators in prop::collection::vec(operator(), 1..9), n in 1i64..5) {
        let func = build(&operators);
        let dims = [("n", n)];
        let wanted = support::outcome(&func, &dims, 9);
        prop_assert!(wanted.is_ok(), "{wanted:?}");
        let inlined = inline(&func);
        prop_assert_eq!(&wanted, &support::outcome(&inlined, &dims, 9), "{:#?}", inlined.body);
        prop_assert!(nests(&inlined) <= nests(&func));
        let simple = simplify(&inlined);
        prop_assert_eq!(&wanted, &support::outcome(&simple, &dims, 9), "{:#?}", simple.body);
        prop_assert_eq!(&wanted, &support::outcome(&explicit_loops(&simple), &dims, 9));
        let steps = support::as_func(&schedule(&inlined));
        prop_assert_eq!(&wanted, &support::outcome(&steps, &dims, 9));
    }
}

#[test]
fn a_chain_becomes_one_nest() {
    use Operator::*;
    let func = inline(&build(&[Relu(0), AddRow(2, 1), Transpose(3), Exp(4), Add(5, 0)]));
    assert_eq!(nests(&func), 1);
    assert!(matches!(func.body, Stmt::For { .. }), "no buffer is held");
}

#[test]
fn expensive_values_are_computed_once() {
    use Operator::*;
    // A value that one statement reads twice becomes a `let`.
    let func = inline(&build(&[Exp(0), Square(2)]));
    assert_eq!(nests(&func), 1);
    let mut lets = 0;
    func.body.walk(&mut |stmt| lets += usize::from(matches!(stmt, Stmt::Let { .. })));
    assert_eq!(lets, 1);
    // A value that each column of a product reads stays a buffer.
    assert_eq!(nests(&inline(&build(&[Exp(0), Product(2, 1)]))), 2);
    // A transposed operand is read in place, and the product stays one product.
    let func = inline(&build(&[Transpose(0), Product(2, 1)]));
    assert_eq!(nests(&func), 1);
    assert_eq!(schedule(&func).gemm_count(), 1);
    // A value that overlapping windows read stays a buffer.
    assert_eq!(nests(&inline(&build(&[Exp(0), WindowedSum(2)]))), 2);
    // A sum stays a separate nest.
    assert_eq!(nests(&inline(&build(&[SumRows(0), Relu(2)]))), 2);
    // Each column of the result computes the sums of the rows again. Inlined, the operand would be computed again with
    // them, so it stays a buffer.
    assert_eq!(nests(&inline(&build(&[Exp(0), SumRows(2)]))), 2, "each column of the result sums again");
}

#[test]
fn a_reduction_shows_its_parts() {
    let func = build(&[Operator::SumRows(0)]);
    let reduction = Nest::of(&func.body, &func).and_then(|nest| nest.reduction()).expect("a reduction");
    assert_eq!(reduction.combine, BinaryOp::Add);
    assert_eq!(reduction.init, Some(Expr::number(0.0, DType::FLOAT32)));
    assert!(matches!(reduction.value, Expr::Load { .. }));
}
