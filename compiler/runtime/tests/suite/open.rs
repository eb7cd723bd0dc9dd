//! Calls whose types are known only at run time, scalars computed at run time, and limits of a run.

use crate::common::Text;
use rx_base::DType;
use rx_base::name::NameMap;
use rx_runtime::interp::Interpreter;
use rx_runtime::{Backend, Executor, Limits, Value, cpu::Cpu};
use rx_tensor::{Scalar, Tensor};
use std::sync::Arc;

fn floats(shape: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_f32s(shape, values).expect("a tensor")
}

fn values(tensor: &Tensor) -> Vec<f64> {
    (0..tensor.len()).map(|at| tensor.get(at).expect("an element").as_float()).collect()
}

/// Runs `main` with tensors and a scalar as its last argument.
fn with_scalar(text: &Text, backend: impl Backend, scalar: Scalar, tensors: &[Tensor]) -> Result<Tensor, String> {
    let program = text.program(true).expect("a program");
    let mut executor = Executor::new(Arc::new(program), backend, &[], &mut |_| {}).expect("built");
    let mut arguments: Vec<_> = tensors.iter().map(|tensor| executor.upload(tensor).expect("memory")).collect();
    arguments.push(Value::Scalar(scalar));
    let result = executor.run(arguments, &NameMap::default()).map_err(|error| error.to_string())?;
    Ok(executor.download(&result).expect("a result").tensors().swap_remove(0))
}

#[test]
fn shapes_ranks_and_dtypes_may_be_open() {
    let text = Text::module(
        r#"@R.function
def main(x: R.Tensor(ndim=2), y: R.Tensor):
    a = R.add(x, y)
    b = R.sum(a, axis=0)
    c = R.reshape(a, R.shape([3, 2]))
    d = R.concat((b, b), axis=0)
    return c, d"#,
    );
    let x = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (results, _) = text.results(&[x, floats(&[3], &[10.0, 20.0, 30.0])]);
    assert_eq!(results[0].shape(), [3, 2]);
    assert_eq!(values(&results[0]), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
    assert_eq!(values(&results[1]), [25.0, 47.0, 69.0, 25.0, 47.0, 69.0]);
    // The same text also accepts another rank of `y` and another dtype. Each call of `results` compiles it again.
    let ints = |shape: &[i64], values: &[i64]| Tensor::from_i64s(shape, values).expect("a tensor");
    let (results, _) = text.results(&[ints(&[1, 6], &[1, 2, 3, 4, 5, 6]), ints(&[], &[1])]);
    assert_eq!((results[0].dtype(), results[0].shape()), (DType::INT64, &[3, 2][..]));
    assert_eq!(values(&results[0]), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
}

#[test]
fn operands_that_do_not_fit_are_an_error_of_their_statement() {
    let text = Text::module("@R.function\ndef main(x: R.Tensor, y: R.Tensor):\n    a = R.add(x, y)\n    return a");
    let arguments = [floats(&[2], &[0.0; 2]), floats(&[3], &[0.0; 3])];
    for optimized in [false, true] {
        let error = text.run(optimized, Interpreter::default(), &arguments).result.expect_err("shapes");
        assert!(error.to_string().starts_with("R.add: shapes do not broadcast"), "{error}");
        assert_eq!(error.origin.expect("a statement").statement, 2);
    }
}

#[test]
fn a_float_is_an_operand() {
    let text = Text::module(
        r#"@R.function
def main(x: R.Tensor((2,), "float32"), by: T.float32) -> R.Tensor((2,), "float32"):
    y: R.Tensor((2,), "float32") = R.multiply(x, by)
    return y"#,
    );
    let x = [floats(&[2], &[1.0, -4.0])];
    for scalar in [0.5, 3.0] {
        let expected = [scalar, -4.0 * scalar];
        let result = with_scalar(&text, Interpreter::default(), Scalar::Float(scalar), &x).expect("a result");
        assert_eq!((values(&result), result.dtype()), (expected.to_vec(), DType::FLOAT32));
        let result = with_scalar(&text, Cpu::default(), Scalar::Float(scalar), &x).expect("a result");
        assert_eq!(values(&result), expected);
    }
}

#[test]
fn conditions_over_dims_choose_branches_and_are_asserted() {
    let text = Text::module(
        r#"@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    n = T.int64()
    R.assert_op(n % 2 == 0, format="odd")
    if n > 2 and not n == 6:
        y = R.add(x, x)
    else:
        y = R.negative(x)
    return y"#,
    );
    let ones = |n: i64| [floats(&[n], &vec![1.0; n as usize])];
    for (n, expected) in [(2, -1.0), (4, 2.0), (6, -1.0)] {
        assert_eq!(values(&text.results(&ones(n)).0[0])[0], expected, "{n}");
    }
    let error = text.run(true, Interpreter::default(), &ones(3)).result.expect_err("an assertion");
    assert!(error.to_string().contains("odd"), "{error}");
}

#[test]
fn scalars_are_computed_and_every_call_has_its_own() {
    let text = Text::module(
        r#"@R.function
def main(n: T.int64) -> R.Tensor((), "int64"):
    @R.function
    def sum_to(i: T.int64) -> T.int64:
        done: T.bool = R.equal(i, 0)
        if done:
            sum: T.int64 = 0
        else:
            less: T.int64 = R.subtract(i, 1)
            rest: T.int64 = sum_to(less)
            sum: T.int64 = R.add(i, rest)
        return sum

    total: T.int64 = sum_to(n)
    result = R.full(R.shape([]), R.const(0, "int64"), dtype="int64")
    R.assert_op(R.equal(total, 10), format="no sum")
    return result"#
            .replace("@R.function\ndef main", "@R.function(pure=False)\ndef main")
            .as_str(),
    );
    with_scalar(&text, Interpreter::default(), Scalar::Int(4), &[]).expect("a sum");
    let error = with_scalar(&text, Interpreter::default(), Scalar::Int(5), &[]).expect_err("another sum");
    assert!(error.contains("no sum"), "{error}");
}

/// Checks that the interpreter and compiled code both stop at the limits.
fn ends(text: &Text) {
    fn run(text: &Text, backend: impl Backend) -> String {
        let program = text.program(false).expect("a program");
        let mut executor = Executor::new(Arc::new(program), backend, &[], &mut |_| {}).expect("built");
        executor.limit(Limits { iterations: Some(100_000), bytes: Some(1 << 20) });
        let argument = executor.upload(&floats(&[4], &[1.0; 4])).expect("memory");
        let result = executor.run(vec![argument], &NameMap::default());
        result.map(|_| ()).expect_err("an end").to_string()
    }
    for said in [run(text, Interpreter::default()), run(text, Cpu::default())] {
        assert!(said.starts_with("stopped"), "{said}");
    }
}

#[test]
fn a_kernel_without_an_end_is_ended() {
    ends(&Text::module(
        r#"@T.prim_func(private=True)
def spin(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    y[0] = T.float32(0)
    while x[0] > T.float32(0):
        y[0] = y[0] + x[0]
@R.function
def main(x: R.Tensor((4,), "float32")):
    y = R.call_tir(Module.spin, (x,), out_ty=R.Tensor((4,), "float32"))
    return y"#,
    ));
}

#[test]
fn kernel_with_too_many_iterations_is_refused_before_it_runs() {
    ends(&Text::module(
        r#"@T.prim_func(private=True)
def long(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i, j, k in T.grid(4, T.int64(2000000000), T.int64(2000000000)):
        y[i] = x[i]
@R.function
def main(x: R.Tensor((4,), "float32")):
    y = R.call_tir(Module.long, (x,), out_ty=R.Tensor((4,), "float32"))
    return y"#,
    ));
}

#[test]
fn loops_inside_a_while_count_each_time() {
    // 200 iterations of the `while`, each with 1,000 iterations of the inner loop.
    ends(&Text::module(
        r#"@T.prim_func(private=True)
def nested(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    y[0] = T.float32(0)
    while y[0] < T.float32(200):
        for i in range(1000):
            y[1] = x[i % 4]
        y[0] = y[0] + x[0]
@R.function
def main(x: R.Tensor((4,), "float32")):
    y = R.call_tir(Module.nested, (x,), out_ty=R.Tensor((4,), "float32"))
    return y"#,
    ));
}

#[test]
fn a_recursion_that_branches_is_ended() {
    ends(&Text::module(
        r#"@R.function
def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    y: R.Tensor((4,), "float32") = Module.half(x)
    return y
@R.function
def half(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
    c = R.greater(R.max(x), R.const(1e-30, "float32"))
    if c:
        h = R.multiply(x, R.const(0.5, "float32"))
        a: R.Tensor((4,), "float32") = Module.half(h)
        b: R.Tensor((4,), "float32") = Module.half(a)
        y = R.add(h, b)
    else:
        y = x
    return y"#,
    ));
}

#[test]
fn a_run_takes_no_more_memory_than_it_may() {
    ends(&Text::module(
        r#"@R.function
def main(x: R.Tensor((4,), "float32")):
    y = R.broadcast_to(x, R.shape([1000000, 1000000, 4]))
    return y"#,
    ));
}
