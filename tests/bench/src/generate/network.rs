//! A deep chain of convolutions and activations.

use std::fmt::Write;

/// A module of `operators` operators in one function, half `conv2d`, half `relu`, written as people write (no `dtype=`).
///
/// mlir-lsp-server and ruff have figures for the same network in their own languages.
pub fn network(operators: usize) -> String {
    const IMAGE: &str = "R.Tensor((1, 64, 32, 32), \"float32\")";
    const WEIGHT: &str = "R.Tensor((64, 64, 3, 3), \"float32\")";
    const ATTRIBUTES: &str = "strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1]";
    let mut text = format!(
        "from tvm.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n    \
         def main(x: {IMAGE}, w: {WEIGHT}) -> {IMAGE}:\n        with R.dataflow():\n"
    );
    let mut last = "x".to_owned();
    for index in 0..operators / 2 {
        let activated = format!("r{index}");
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "            c{index}: {IMAGE} = R.nn.conv2d({last}, w, {ATTRIBUTES})");
        let _ = writeln!(text, "            {activated}: {IMAGE} = R.nn.relu(c{index})");
        last = activated;
    }
    let _ = writeln!(text, "            R.output({last})\n        return {last}");
    text
}
