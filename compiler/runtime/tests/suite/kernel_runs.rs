//! The static count of kernel launches.

use crate::common::Text;
use rx_base::name::NameMap;
use rx_base::{DType, Name};
use rx_ir::Origin;
use rx_lower::Program;
use rx_runtime::interp::Interpreter;
use rx_runtime::{Executor, KernelRun, Observer, Output, kernel_runs};
use rx_tensor::Tensor;
use std::sync::Arc;

/// Returns the program of `main(x: float32 (2,), c: bool ())` with this body, in a module with the functions `beside`.
fn program(body: &str, beside: &str) -> Program {
    let head = "@R.function\ndef main(x: R.Tensor((2,), \"float32\"), c: R.Tensor((), \"bool\")):\n    cls = Module\n";
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    Text::module(&format!("{beside}\n\n{head}{body}")).program(false).expect("a program")
}

/// An observer that counts kernels without timing them.
#[derive(Default)]
struct Counter(u64);

impl Observer for Counter {
    fn is_timing(&self) -> bool {
        false
    }

    fn kernel(&mut self, _: &KernelRun<'_>) {
        panic!("nobody asked for times");
    }

    fn passed(&mut self) {
        self.0 += 1;
    }

    fn bound(&mut self, _: Origin, _: Name, _: Output) {}
}

/// Returns how many kernels each of three runs executes. The condition is true in the second and third run.
fn counted(program: &Program) -> [u64; 3] {
    let mut executor =
        Executor::new(Arc::new(program.clone()), Interpreter::default(), &[], &mut |_| {}).expect("built");
    let x = executor.upload(&Tensor::from_f32s(&[2], [1.0, 2.0]).expect("a tensor")).expect("memory");
    [false, true, true].map(|holds| {
        let condition = Tensor::from_bytes(DType::BOOL, &[], &[u8::from(holds)]).expect("a tensor");
        let condition = executor.upload(&condition).expect("memory");
        let mut counter = Counter::default();
        executor.run_observed(vec![x.clone(), condition], &NameMap::default(), &mut counter).expect("a result");
        counter.0
    })
}

const TWICE: &str = "@R.function(private=True)
def twice(x: R.Tensor((2,), \"float32\")) -> R.Tensor((2,), \"float32\"):
    y = R.add(x, x)
    z = R.nn.relu(y)
    return z";

#[test]
fn kernel_counts_of_calls_and_equal_branches_are_known() {
    for (body, expected) in [
        ("return x", 0),
        ("y = R.add(x, x)\nreturn y", 1),
        ("y = cls.twice(x)\nz = cls.twice(y)\nw = R.exp(z)\nreturn w", 5),
        ("if c:\n    y = R.exp(x)\nelse:\n    y = R.tanh(x)\nreturn y", 1),
    ] {
        let program = program(body, TWICE);
        assert_eq!(
            (kernel_runs(&program, false), kernel_runs(&program, true)),
            (Some(expected), Some(expected)),
            "{body}"
        );
        assert_eq!(counted(&program), [expected; 3], "{body}");
    }
}

#[test]
fn kernel_count_that_depends_on_values_is_unknown() {
    let branches = program("if c:\n    y = cls.twice(x)\nelse:\n    y = R.tanh(x)\nreturn y", TWICE);
    assert_eq!(kernel_runs(&branches, false), None);
    assert_eq!(counted(&branches), [1, 2, 2]);
    let recursion = "@R.function(private=True)
def down(x: R.Tensor((2,), \"float32\"), c: R.Tensor((), \"bool\")) -> R.Tensor((2,), \"float32\"):
    cls = Module
    if c:
        y = R.add(x, x)
    else:
        holds = R.logical_not(c)
        y = cls.down(x, holds)
    return y";
    let recursion = program("y = cls.down(x, c)\nreturn y", recursion);
    assert_eq!(kernel_runs(&recursion, false), None);
    assert_eq!(counted(&recursion), [2, 1, 1]);
}

#[test]
fn runs_of_a_memoized_function_are_unknown_when_repeated() {
    let once = TWICE.replace("    y = R.add", "    R.func_attr({\"rx.once\": True})\n    y = R.add");
    let program = program("y = cls.twice(x)\nz = R.exp(y)\nreturn z", &once);
    assert_eq!((kernel_runs(&program, false), kernel_runs(&program, true)), (Some(3), None));
    assert_eq!(counted(&program), [3, 1, 1]);
}
