//! Tests that declared types stay unless a pass has a reason to change them, and that constants without data do not
//! make a pass fail.

use crate::common::{apply, read};

/// Runs passes on a module with the functions in `function`, and returns the printed output, which must have no errors.
fn printed(passes: &str, function: &str) -> String {
    let lines: String = function.lines().map(|line| format!("    {line}\n")).collect();
    let made = apply(passes, read(&format!("n = TypeVar(\"n\")\n@I.ir_module\nclass Module:\n{lines}")));
    let text = rx_transform::print(&made.expect("a module"));
    read(&text);
    text
}

const RESHAPED: &str = "\
@R.function
def main(x: R.Tensor((4, 6), dtype=\"float32\"), s: R.Tensor((2,), dtype=\"int64\")) -> R.Tensor(dtype=\"float32\", ndim=2):
    with R.dataflow():
        sh: R.Shape(ndim=2) = R.tensor_to_shape(s)
        y: R.Tensor(dtype=\"float32\", ndim=2) = R.reshape(x, sh)
        R.output(y)
    return y
";

#[test]
fn declared_type_that_says_less_than_the_value_stays() {
    for pass in ["FoldConstant", "CanonicalizeBindings", "DecomposeOps", "EliminateCommonSubexpr"] {
        let text = printed(pass, RESHAPED);
        assert!(text.contains("-> R.Tensor(dtype=\"float32\", ndim=2):"), "{pass}\n{text}");
    }
    let folded = printed("FoldConstant", RESHAPED);
    assert!(folded.contains("y: R.Tensor(dtype=\"float32\", ndim=2) = R.reshape(x, sh)"), "{folded}");
}

#[test]
fn declared_type_that_follows_a_folded_value_is_sharper() {
    let known = RESHAPED
        .replace(", s: R.Tensor((2,), dtype=\"int64\")", "")
        .replace("R.tensor_to_shape(s)", "R.tensor_to_shape(R.const([3, 8], \"int64\"))");
    let text = printed("FoldConstant", &known);
    assert!(text.contains("-> R.Tensor((3, 8), dtype=\"float32\"):"), "{text}");
    assert!(text.contains("y: R.Tensor((3, 8), dtype=\"float32\") = R.reshape(x, R.shape([3, 8]))"), "{text}");
}

#[test]
fn slice_dims_are_simplified() {
    let text = printed(
        "FoldConstant",
        "\
@R.function
def pack(x: R.Tensor((n, 64), dtype=\"float32\")) -> R.Tensor((\"n // 4 * 4\", 64), dtype=\"float32\"):
    y = R.strided_slice(x, axes=[0], begin=[0], end=[n // 4 * 4])
    return y

@R.function
def half(x: R.Tensor((n, 64), dtype=\"float32\")) -> R.Tensor((\"n // 2\", 64), dtype=\"float32\"):
    y = R.strided_slice(x, axes=[0], begin=[0], end=[n // 2])
    return y
",
    );
    assert!(!text.contains("T.min"), "{text}");
    assert!(text.contains("y: R.Tensor((n // 2, 64), dtype=\"float32\") = "), "{text}");
}

#[test]
fn constant_without_data_keeps_its_declared_type() {
    let function = "\
@R.function
def main(x: R.Tensor((2, 8), dtype=\"float32\")) -> R.Tensor((2, 8), dtype=\"float32\"):
    with R.dataflow():
        lv: R.Tensor((2, 4), dtype=\"float32\") = R.multiply(R.const(2.0, \"float32\"), metadata[\"ir.GenericConst\"][0])
        lv1: R.Tensor((2, 8), dtype=\"float32\") = R.concat((lv, lv), axis=-1)
        w: R.Tensor((8, 8), dtype=\"float32\") = metadata[\"ir.GenericConst\"][1]
        lv2: R.Tensor((2, 8), dtype=\"float32\") = R.matmul(lv1, w)
        lv3: R.Tensor((2, 8), dtype=\"float32\") = R.matmul(x, w)
        gv: R.Tensor((2, 8), dtype=\"float32\") = R.add(lv3, lv2)
        R.output(gv)
    return gv
";
    let folded = printed("FoldConstant", function);
    let kept = "lv: R.Tensor((2, 4), dtype=\"float32\") = R.multiply(R.const(2.0, \"float32\"), metadata[\"ir.GenericConst\"][0])";
    assert!(folded.contains(kept), "{folded}");
    for step in rx_transform::pipeline::steps("default").expect("passes") {
        printed(step.pass.name, function);
    }
}
