//! Generates a deep chain of convolutions and activations.

use std::fmt::Write;

/// The language of the network: Relax, or one that other language servers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// TVMScript as people write it (without `dtype=`).
    Relax,
    /// MLIR's `tosa` dialect, one operation per operator; layouts are NHWC.
    Mlir,
    /// Python with annotations, which calls two nearly empty functions.
    Python,
}

/// Returns a module of `operators` operators in one function, half convolutions, half activations.
pub fn network(operators: usize, language: Language) -> String {
    match language {
        Language::Relax => relax(operators / 2),
        Language::Mlir => mlir(operators / 2),
        Language::Python => python(operators / 2),
    }
}

// Writing to a `String` cannot fail: the results are dropped.

fn relax(pairs: usize) -> String {
    const IMAGE: &str = "R.Tensor((1, 64, 32, 32), \"float32\")";
    const WEIGHT: &str = "R.Tensor((64, 64, 3, 3), \"float32\")";
    const ATTRIBUTES: &str = "strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1]";
    let mut text = format!(
        "from tvm.script import ir as I, relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n    \
         def main(x: {IMAGE}, w: {WEIGHT}) -> {IMAGE}:\n        with R.dataflow():\n"
    );
    let mut last = "x".to_owned();
    for index in 0..pairs {
        let _ = writeln!(text, "            c{index}: {IMAGE} = R.nn.conv2d({last}, w, {ATTRIBUTES})");
        last = format!("r{index}");
        let _ = writeln!(text, "            {last}: {IMAGE} = R.nn.relu(c{index})");
    }
    let _ = writeln!(text, "            R.output({last})\n        return {last}");
    text
}

fn mlir(pairs: usize) -> String {
    const IMAGE: &str = "tensor<1x32x32x64xf32>";
    const WEIGHT: &str = "tensor<64x3x3x64xf32>";
    const BIAS: &str = "tensor<64xf32>";
    const ZERO: &str = "tensor<1xf32>";
    const ATTRIBUTES: &str = "{acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, \
                              stride = array<i64: 1, 1>}";
    let mut text = format!(
        "module {{\n  func.func @main(%x: {IMAGE}, %w: {WEIGHT}, %b: {BIAS}) -> {IMAGE} {{\n    \
         %zp = \"tosa.const\"() {{values = dense<0.0> : {ZERO}}} : () -> {ZERO}\n"
    );
    let mut last = "%x".to_owned();
    for index in 0..pairs {
        let _ = writeln!(
            text,
            "    %c{index} = tosa.conv2d {last}, %w, %b, %zp, %zp {ATTRIBUTES} : \
             ({IMAGE}, {WEIGHT}, {BIAS}, {ZERO}, {ZERO}) -> {IMAGE}"
        );
        last = format!("%r{index}");
        let _ = writeln!(
            text,
            "    {last} = tosa.clamp %c{index} {{min_val = 0.0 : f32, max_val = 3.40282347E+38 : f32}} : \
             ({IMAGE}) -> {IMAGE}"
        );
    }
    let _ = writeln!(text, "    return {last} : {IMAGE}\n  }}\n}}");
    text
}

fn python(pairs: usize) -> String {
    let mut text = "\
from __future__ import annotations
from dataclasses import dataclass

@dataclass
class Tensor:
    shape: tuple[int, ...]
    dtype: str

def conv2d(x: Tensor, w: Tensor, strides: list[int], padding: list[int], dilation: list[int]) -> Tensor:
    return Tensor(x.shape, x.dtype)

def relu(x: Tensor) -> Tensor:
    return x

def main(x: Tensor, w: Tensor) -> Tensor:
"
    .to_owned();
    let mut last = "x".to_owned();
    for index in 0..pairs {
        let _ = writeln!(
            text,
            "    c{index}: Tensor = conv2d({last}, w, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1])"
        );
        last = format!("r{index}");
        let _ = writeln!(text, "    {last}: Tensor = relu(c{index})");
    }
    let _ = writeln!(text, "    return {last}");
    text
}
