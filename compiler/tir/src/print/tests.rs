//! Tests of printed functions.

use super::script;
use crate::{BinaryOp, Expr, KernelBuilder, Stmt};
use rx_base::name::name;
use rx_base::{DType, Dim};

#[test]
fn a_kernel_with_symbols_and_a_reduction() {
    let (n, k) = (Dim::symbol(name("n")), Dim::constant(8));
    let mut builder = KernelBuilder::new(name("nn.sum"));
    let input = builder.param("x", &[n.clone(), k], DType::FLOAT32);
    let output = builder.param("out", &[n], DType::FLOAT32);
    let (outer, inner) = (builder.shape(output), builder.shape(input)[1..].to_vec());
    let zero = Expr::number(0.0, DType::FLOAT32);
    builder.reduce(output, &outer, &inner, zero, BinaryOp::Add, |builder, axes, reduced| {
        let indices = [axes, reduced].concat();
        (axes.to_vec(), builder.load(input, &indices))
    });
    let text = script(&builder.finish());
    assert!(text.contains("def nn_sum(x: T.Buffer((\"n\", T.int64(8)), \"float32\"), out: T.Buffer((\"n\",), \"float32\"), n: T.int64):"), "{text}");
    assert!(text.contains("T.axis.remap(\"SR\", ["), "{text}");
    assert!(text.contains("with T.init():\n                out["), "{text}");
}

#[test]
fn operators_of_one_level_keep_their_order() {
    let mut builder = KernelBuilder::new(name("f"));
    let n = builder.scalar(name("n"), DType::INT32);
    let raw = |op, left: &Expr, right: &Expr| Expr::Binary {
        op,
        left: Box::new(left.clone()),
        right: Box::new(right.clone()),
    };
    let one = Expr::Int { value: 1, dtype: DType::INT32 };
    let difference = raw(BinaryOp::Sub, &n, &raw(BinaryOp::Sub, &n, &one));
    let product = raw(BinaryOp::Mul, &raw(BinaryOp::Add, &one, &one), &difference);
    let mut func = builder.finish();
    func.body = Stmt::Evaluate(-product);
    assert!(script(&func).contains("T.evaluate(-((T.int32(1) + 1) * (n - (n - 1))))"), "{}", script(&func));
}
