//! Fusion of kernels across views, with the results of the interpreter without fusion.

use crate::common::Text;
use rx_runtime::cpu::Cpu;
use rx_runtime::interp::Interpreter;
use rx_tensor::{Tensor, compare, random};

/// Returns a function `main` with these float32 parameters.
fn function(params: &[(&str, &str)], body: &[&str]) -> String {
    let params: Vec<String> =
        params.iter().map(|(name, shape)| format!("{name}: R.Tensor({shape}, \"float32\")")).collect();
    let body: String = body.iter().map(|line| format!("    {line}\n")).collect();
    format!("@R.function\ndef main({}):\n{body}", params.join(", "))
}

fn drawn(shapes: &[&[i64]]) -> Vec<Tensor> {
    let draw = |(at, shape): (usize, &&[i64])| random::draw(3, at as u64, rx_base::DType::FLOAT32, shape, None);
    shapes.iter().enumerate().map(|one| draw(one).expect("a tensor")).collect()
}

/// Checks that the CPU with fusion computes the same as the interpreter without fusion. Returns the names of all
/// kernels after fusion.
#[track_caller]
fn kernels(params: &[(&str, &str)], body: &[&str], shapes: &[&[i64]]) -> Vec<String> {
    let text = Text::module(&function(params, body));
    let [expected, results] =
        [text.run(false, Interpreter::default(), &drawn(shapes)), text.run(true, Cpu::default(), &drawn(shapes))]
            .map(|run| run.result.unwrap_or_else(|error| panic!("{error}")).tensors());
    for (result, expected) in std::iter::zip(&results, &expected) {
        let found = compare(result, expected, 1e-6, 1e-6).unwrap_or_else(|error| panic!("{error}"));
        assert!(found.ok, "{found}");
    }
    assert_eq!(results.len(), expected.len());
    let program = text.program(true).unwrap_or_else(|problems| panic!("{problems:#?}"));
    program.kernels.iter().map(|kernel| kernel.name.to_string()).collect()
}

#[test]
fn elementwise_operators_fuse_through_views() {
    let body = ["a = R.exp(x)", "b = R.reshape(a, (5, 12, 4))", "c = R.permute_dims(b, (1, 0, 2))", "return c"];
    assert_eq!(kernels(&[("x", "(5, 48)")], &body, &[&[5, 48]]), ["fused_exp_permute_dims"], "one dim as two");
    let body = ["a = R.permute_dims(x, (1, 0, 2))", "b = R.reshape(a, (5, 48))", "c = R.exp(b)", "return c"];
    assert_eq!(kernels(&[("x", "(12, 5, 4)")], &body, &[&[12, 5, 4]]), ["fused_permute_dims_exp"], "two dims as one");
    let body = ["a = R.exp(x)", "b = R.reshape(a, (8, 3))", "c = R.permute_dims(b)", "return c"];
    assert_eq!(kernels(&[("x", "(6, 4)")], &body, &[&[6, 4]]).len(), 2, "indices would have to be divided");
    let body = ["a = R.exp(x)", "b = R.reshape(a, (5, 48))", "c = R.strided_slice(b, (1,), (7,), (31,))", "return c"];
    assert_eq!(kernels(&[("x", "(5, 12, 4)")], &body, &[&[5, 12, 4]]).len(), 2, "so they would here");
}

#[test]
fn operators_that_keep_the_element_order_are_views() {
    let body = ["a = R.permute_dims(x, (1, 0, 2))", "b = R.broadcast_to(a, (4, 1, 3))", "return b"];
    assert_eq!(kernels(&[("x", "(1, 4, 3)")], &body, &[&[1, 4, 3]]), Vec::<String>::new());
    let body = ["a = R.permute_dims(x, (1, 0))", "return a"];
    assert_eq!(kernels(&[("x", "(4, 4)")], &body, &[&[4, 4]]), ["permute_dims"]);
    let body = ["a = R.strided_slice(x, (0,), (1,), (5,))", "return a"];
    assert_eq!(kernels(&[("x", "(6, 2)")], &body, &[&[6, 2]]).len(), 1, "not all of them");
}

#[test]
fn data_movement_is_fused_into_each_consumer() {
    let body = [
        "a = R.permute_dims(x, (1, 0, 2))",
        "b = R.reshape(a, (3, 20))",
        "c = R.exp(b)",
        "d = R.negative(b)",
        "e = R.sin(a)",
        "return (c, d, e)",
    ];
    let found = kernels(&[("x", "(5, 3, 4)")], &body, &[&[5, 3, 4]]);
    assert_eq!(found, ["fused_permute_dims_exp", "fused_permute_dims_negative", "fused_permute_dims_sin"]);
}

#[test]
fn elementwise_consumers_of_a_product_through_views_are_its_epilogue() {
    let w = ("w", "(8, 24)");
    let body =
        ["a = R.matmul(x, w)", "b = R.reshape(a, (2, 3, 24))", "c = R.nn.gelu(b)", "d = R.add(c, y)", "return d"];
    let params = [("x", "(6, 8)"), w, ("y", "(2, 3, 24)")];
    assert_eq!(kernels(&params, &body, &[&[6, 8], &[8, 24], &[2, 3, 24]]), ["fused_matmul_gelu_add"]);
    let params = [("x", "(6, 8)"), w, ("y", "(24,)")];
    assert_eq!(kernels(&params, &body, &[&[6, 8], &[8, 24], &[24]]), ["fused_matmul_gelu_add"]);
    let params = [("x", "(6, 8)"), w, ("y", "(3, 24)")];
    assert_eq!(kernels(&params, &body, &[&[6, 8], &[8, 24], &[3, 24]]).len(), 2, "y differs along a part of the rows");
    let params = [("x", "(\"n\", 4, 8)"), w, ("y", "(24,)")];
    let body = [
        "n = T.int64()",
        "a = R.reshape(x, (n * 4, 8))",
        "b = R.matmul(a, w)",
        "c = R.reshape(b, (n, 4, 24))",
        "d = R.add(c, y)",
        "e = R.reshape(d, (n * 4, 24))",
        "f = R.nn.relu(e)",
        "return f",
    ];
    assert_eq!(kernels(&params, &body, &[&[3, 4, 8], &[8, 24], &[24]]), ["fused_matmul_add_relu"]);
    let body = ["a = R.matmul(x, w)", "b = R.reshape(a, (6, 24))", "c = R.nn.relu(b)", "return c"];
    let params = [("x", "(2, 3, 8)"), w];
    assert_eq!(kernels(&params, &body, &[&[2, 3, 8], &[8, 24]]), ["fused_matmul_relu"]);
}

#[test]
fn materialized_operand_keeps_its_computed_layout() {
    let (params, body) = (
        [("x", "(6, 8)"), ("w", "(24, 8)")],
        ["a = R.exp(w)", "b = R.permute_dims(a)", "c = R.matmul(x, b)", "return c"],
    );
    assert_eq!(kernels(&params, &body, &[&[6, 8], &[24, 8]]), ["fused_exp_permute_dims_matmul"]);
    let program = Text::module(&function(&params, &body)).program(true).expect("a program");
    let text = rx_tir::print::script(&program.kernels[0].loops);
    let buffers: Vec<&str> = text.lines().filter(|line| line.contains("alloc_buffer")).map(str::trim).collect();
    let natural = "out_1 = T.sblock_alloc_buffer((T.int64(24), T.int64(8)), \"float32\")";
    assert_eq!(buffers, [natural], "a dequantised weight is read as its words lie, and so is its copy");
}
