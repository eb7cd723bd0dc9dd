//! Recursive functions: a tail call runs as a loop, and other calls suspend the caller on the heap.

use crate::common::Text;
use rx_runtime::cpu::Cpu;
use rx_runtime::cuda::Simulated;
use rx_runtime::interp::Interpreter;
use rx_runtime::{Limits, Output};
use rx_tensor::{Scalar, Tensor};

/// A recursion depth that would overflow the native stack.
const MANY: i64 = 20_000;

/// Returns a program that counts `n` down to 0 and adds 1 to `x` at each step. The step ends with the lines `tail`,
/// which use `n1` and `x1`.
fn counting(tail: &str) -> Text {
    let body = tail.lines().map(|line| format!("        {line}\n")).collect::<String>();
    Text::module(&format!(
        r#"@R.function
def main(n: R.Tensor((), "int32"), x: R.Tensor((2,), "int32")) -> R.Tensor((2,), "int32"):
    r: R.Tensor((2,), "int32") = Module.step(n, x)
    return r
@R.function(private=True)
def step(n: R.Tensor((), "int32"), x: R.Tensor((2,), "int32")) -> R.Tensor((2,), "int32"):
    more: R.Tensor((), "bool") = R.greater(n, R.const(0, "int32"))
    if more:
        n1: R.Tensor((), "int32") = R.subtract(n, R.const(1, "int32"))
        x1: R.Tensor((2,), "int32") = R.add(x, R.const(1, "int32"))
{body}    else:
        out: R.Tensor((2,), "int32") = x
    return out
@R.function(private=True)
def other(n: R.Tensor((), "int32"), x: R.Tensor((2,), "int32")) -> R.Tensor((2,), "int32"):
    r: R.Tensor((2,), "int32") = Module.step(n, x)
    return r"#
    ))
}

fn arguments(n: i64) -> [Tensor; 2] {
    let count = Tensor::from_scalar(rx_base::DType::INT32, Scalar::Int(n)).expect("a scalar");
    let x = Tensor::zeros(rx_base::DType::INT32, &[2]).expect("a tensor");
    [count, x]
}

#[track_caller]
fn first(output: Output) -> i64 {
    let tensors = output.tensors();
    tensors.first().and_then(|tensor| tensor.get(0)).and_then(|value| value.as_int()).expect("an integer")
}

#[test]
fn tail_call_of_itself_runs_without_limit() {
    let text = counting("y: R.Tensor((2,), \"int32\") = Module.step(n1, x1)\nout: R.Tensor((2,), \"int32\") = y");
    let (results, _) = text.results(&arguments(MANY));
    assert_eq!(results[0].get(0), Some(Scalar::Int(MANY)));
}

#[test]
fn tail_call_of_a_function_that_calls_back_runs_without_limit() {
    let text = counting("out: R.Tensor((2,), \"int32\") = Module.other(n1, x1)");
    let (results, _) = text.results(&arguments(MANY));
    assert_eq!(results[0].get(0), Some(Scalar::Int(MANY)));
}

#[test]
fn tail_call_runs_on_simulated_cuda() {
    let text = counting("out: R.Tensor((2,), \"int32\") = Module.step(n1, x1)");
    // Few calls, since simulated launches are slow.
    let ran = text.run(true, Simulated::default(), &arguments(1_200));
    let output = ran.result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(first(output), 1_200);
}

#[test]
fn tail_calls_count_toward_the_limit_of_a_run() {
    let text = counting("out: R.Tensor((2,), \"int32\") = Module.step(n1, x1)");
    let limits = Limits { iterations: Some(10_000), bytes: None };
    let ran = text.run_within(limits, false, Interpreter::default(), &arguments(i64::from(i32::MAX)));
    let error = ran.result.expect_err("more than is allowed");
    assert!(error.to_string().starts_with("stopped: it needs more iterations"), "{error}");
}

#[test]
fn call_that_waits_runs_as_deep_as_memory_allows() {
    let text =
        counting("y: R.Tensor((2,), \"int32\") = Module.step(n1, x)\nout: R.Tensor((2,), \"int32\") = R.add(y, x1)");
    let (results, _) = text.results(&arguments(MANY));
    assert_eq!(results[0].get(0), Some(Scalar::Int(MANY)));
}

#[test]
fn call_that_waits_for_ever_is_an_error() {
    let text = Text::module(
        r#"@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    y: R.Tensor((4,), "float32") = R.add(x, x)
    z: R.Tensor((4,), "float32") = Module.main(y)
    r: R.Tensor((4,), "float32") = R.add(y, z)
    return r"#,
    );
    let x = Tensor::zeros(rx_base::DType::FLOAT32, &[4]).expect("a tensor");
    let error = text.run(true, Cpu::default(), &[x]).result.expect_err("it never ends");
    assert!(error.to_string().starts_with("out of memory: `main` is called "), "{error}");
}

#[test]
fn recursively_nested_tuples_have_no_depth_limit() {
    let text = Text::module(
        r#"@R.function
def main(n: R.Tensor((), "int32"), x: R.Tensor((2,), "int32")) -> R.Tensor((2,), "int32"):
    r: R.Tensor((2,), "int32") = Module.step(n, x, x)
    return r
@R.function(private=True)
def step(n: R.Tensor((), "int32"), x: R.Tensor((2,), "int32"), held: R.Object) -> R.Tensor((2,), "int32"):
    more: R.Tensor((), "bool") = R.greater(n, R.const(0, "int32"))
    if more:
        n1: R.Tensor((), "int32") = R.subtract(n, R.const(1, "int32"))
        out: R.Tensor((2,), "int32") = Module.step(n1, x, (x, held))
    else:
        out: R.Tensor((2,), "int32") = x
    return out"#,
    );
    let (results, _) = text.results(&arguments(MANY));
    assert_eq!(results[0].get(0), Some(Scalar::Int(0)));
}
