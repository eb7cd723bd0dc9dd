//! Programs from text: fusion, memory planning and their results.

use proptest::prelude::*;
use rx_base::Name;
use rx_base::name::{NameMap, name};
use rx_db::{FileId, FileKind, Workspace};
use rx_ir::{Function, Origin};
use rx_lower::{KernelId, Loops, Module, Operation, Program};
use rx_runtime::{Backend, Executor, KernelRun, Observer, Output};
use rx_tensor::{Tensor, compare, random};
use std::fmt::Write;
use std::sync::Arc;

/// A module's text without diagnostics.
struct Text(Workspace, FileId);

impl Text {
    #[track_caller]
    fn new(text: &str) -> Text {
        let mut workspace = Workspace::new();
        let file = workspace.add(text, FileKind::Rx);
        let said = workspace.diagnostics(file);
        assert!(said.is_empty(), "{said:#?}\n{text}");
        Text(workspace, file)
    }

    /// Returns the program of `main`, with fusion if `optimized`.
    #[track_caller]
    fn program(&self, optimized: bool) -> Program {
        let mut program = rx_lower::lower(self, name("main")).unwrap_or_else(|problems| panic!("{problems:#?}"));
        let target_info: &dyn rx_lower::TargetInfo = &rx_lower::DefaultTargetInfo;
        rx_lower::steps::run(&mut program, optimized.then_some(target_info));
        program
    }

    /// Runs `main` with random arguments of a fixed seed, where `n` is the value of the symbol `n`.
    fn run(&self, program: Program, backend: impl Backend, n: i64) -> Vec<Tensor> {
        self.observed(program, backend, n).0
    }

    /// As [`Text::run`], and returns the events that an observer received.
    fn observed(&self, program: Program, backend: impl Backend, n: i64) -> (Vec<Tensor>, Reported) {
        let params = program.procedures[0].params.clone();
        let mut executor =
            Executor::new(Arc::new(program), backend, &[], &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
        let mut arguments = Vec::new();
        for (at, (_, ty)) in params.iter().enumerate() {
            let tensor = ty.as_tensor().expect("a tensor");
            let dims = tensor.shape.dims().expect("a shape");
            let shape: Vec<i64> = dims.iter().map(|dim| dim.as_constant().unwrap_or(n)).collect();
            let dtype = tensor.dtype.expect("a dtype");
            let drawn = random::draw(7, at as u64, dtype, &shape, Some(4)).expect("drawn");
            arguments.push(executor.upload(&drawn).expect("memory"));
        }
        // Run twice: the second run reuses memory, and its observer must not change the result.
        let mut result = |observer: Option<&mut dyn Observer>| {
            let result = match observer {
                None => executor.run(arguments.clone(), &NameMap::default()),
                Some(observer) => executor.run_observed(arguments.clone(), &NameMap::default(), observer),
            };
            executor.download(&result.unwrap_or_else(|error| panic!("{error}"))).expect("a result").tensors()
        };
        let mut reported = Reported::default();
        let (plain, observed) = (result(None), result(Some(&mut reported)));
        assert_eq!(plain.len(), observed.len());
        assert!(plain.iter().zip(&observed).all(|(plain, observed)| plain.bytes() == observed.bytes()));
        (observed, reported)
    }
}

/// The events that an observer received.
#[derive(Default)]
struct Reported {
    /// The kernels, and the statements that they were run for.
    kernels: Vec<(KernelId, Option<Origin>)>,
    bound: Vec<(Origin, Name, Output)>,
}

impl Observer for Reported {
    fn kernel(&mut self, run: &KernelRun<'_>) {
        self.kernels.push((run.kernel, run.origin));
    }

    fn bound(&mut self, origin: Origin, variable: Name, value: Output) {
        self.bound.push((origin, variable, value));
    }
}

impl Module for Text {
    fn function(&self, name: Name) -> Option<Arc<Function>> {
        self.0.function(self.0.first_module(self.1), name)
    }

    fn prim_func(&self, name: Name) -> Option<Result<Loops, String>> {
        let read = self.0.prim_func(self.0.first_module(self.1), name)?;
        Some(read.map(|func| Loops::new(Arc::unwrap_or_clone(func))).map_err(|diagnostics| format!("{diagnostics:?}")))
    }
}

fn module(body: &str) -> String {
    format!(
        "from tvm.script import ir as I\nfrom tvm.script import relax as R\n\n@I.ir_module\nclass Module:\n    @R.function\n    \
         def main(x: R.Tensor((\"n\", 4, 6), \"float32\"), y: R.Tensor((\"n\", 4, 6), \"float32\"), \
         w: R.Tensor((6, 6), \"float32\"), i: R.Tensor((3,), \"int64\")):\n        with R.dataflow():\n{body}"
    )
}

/// Returns a program with a dataflow block of these lines that outputs `results`.
fn block(lines: &[&str], results: &str) -> String {
    let mut body = String::new();
    for line in lines {
        let _ = writeln!(body, "            {line}");
    }
    module(&format!("{body}            R.output({results})\n        return {results}\n"))
}

fn kernel_names(program: &Program) -> Vec<&str> {
    program.kernels.iter().map(|kernel| kernel.name.as_str()).collect()
}

#[test]
fn run_of_a_program_without_procedures_is_an_error() {
    let program = Arc::new(Program::default());
    let interpreter = rx_runtime::interp::Interpreter::default();
    let mut executor = Executor::new(program, interpreter, &[], &mut |_| ()).expect("nothing to build");
    let error = executor.run(Vec::new(), &NameMap::default()).expect_err("nothing to run");
    assert_eq!(error.to_string(), "the program has no function to call");
}

#[test]
fn a_chain_of_elements_is_one_kernel() {
    let text = Text::new(&block(
        &["a = R.add(x, y)", "b = R.nn.relu(a)", "c = R.multiply(b, R.const(2.0, \"float32\"))", "d = R.tanh(c)"],
        "d",
    ));
    assert_eq!(text.program(false).kernels.len(), 4);
    let program = text.program(true);
    assert_eq!(kernel_names(&program), ["fused_add_nn.relu_multiply_tanh".replace("nn.", "")]);
    let mut stores = 0;
    program.kernels[0].loops.body.walk(&mut |stmt| stores += usize::from(matches!(stmt, rx_tir::Stmt::Store { .. })));
    assert_eq!(stores, 1, "no temporary is left");
}

#[test]
fn elementwise_consumers_of_a_reduction_are_its_epilogue() {
    let bodies: [(&[&str], &[&str]); 4] = [
        // The addition is fused into the matmul before it, not into the softmax after it.
        (
            &["a = R.matmul(x, w)", "b = R.add(a, x)", "c = R.nn.relu(b)", "d = R.nn.softmax(c)"],
            &["fused_matmul_add_relu", "softmax"],
        ),
        (&["a = R.nn.softmax(x)", "d = R.multiply(a, R.const(2.0, \"float32\"))"], &["fused_softmax_multiply"]),
        // Not fused: the consumer reads permuted or broadcast elements, so it must read them from memory.
        (&["a = R.matmul(x, w)", "d = R.permute_dims(a)"], &["matmul", "permute_dims"]),
        (&["a = R.sum(x, axis=[0], keepdims=True)", "d = R.add(a, y)"], &["sum", "add"]),
    ];
    for (lines, kernels) in bodies {
        let text = Text::new(&block(lines, "d"));
        let program = text.program(true);
        let names: Vec<String> = kernel_names(&program).iter().map(|name| name.replace("nn.", "")).collect();
        assert_eq!(names, kernels, "{lines:?}");
        let [joined, plain] = [program, text.program(false)]
            .map(|program| text.run(program, rx_runtime::interp::Interpreter::default(), 3));
        assert!(joined.iter().zip(&plain).all(|(a, b)| a.bytes() == b.bytes()), "{lines:?}");
    }
}

#[test]
fn observer_is_notified_of_every_kernel_that_ran() {
    let text =
        Text::new(&block(&["a = R.add(x, y)", "b = R.nn.relu(a)", "c = R.sum(b, axis=[1])", "d = R.tanh(c)"], "d"));
    for optimized in [false, true] {
        let program = text.program(optimized);
        let count = program.kernels.len() as u32;
        let (_, reported) = text.observed(program, rx_runtime::interp::Interpreter::default(), 2);
        let kernels: Vec<u32> = reported.kernels.iter().map(|(kernel, _)| kernel.0).collect();
        assert_eq!(kernels, (0..count).collect::<Vec<_>>());
        assert!(reported.kernels.iter().all(|(_, origin)| origin.is_some_and(|origin| origin.item == name("main"))));
        assert!(reported.bound.is_empty(), "nothing in the program says what is bound");
    }
}

/// Bindings that no kernel computes (aliases, tuples, shapes) are reported as well, and reuse of memory does not change
/// the reported values.
#[test]
fn observer_is_notified_of_every_binding() {
    let lines = [
        "a = R.add(R.multiply(x, y), x)",
        "b = a",
        "pair = R.nn.relu(a), y",
        "c, d = R.split(pair[0], 2, axis=1)",
        "size = R.shape([n, 4])",
        "e = R.tanh(R.add(c, d))",
        "f = R.multiply(R.add(e, d), e)",
    ];
    let text =
        Text::new(&block(&lines, "f").replace("with R.dataflow():", "n = T.int64()\n        with R.dataflow():"));
    let mut program = rx_lower::lower_watched(&text, name("main")).unwrap_or_else(|problems| panic!("{problems:#?}"));
    rx_lower::steps::run(&mut program, None);
    let (result, reported) = text.observed(program, rx_runtime::interp::Interpreter::default(), 2);
    let joined = text.run(text.program(true), rx_runtime::cpu::Cpu::default(), 2);
    assert!(compare(&result[0], &joined[0], 1e-5, 1e-6).is_ok_and(|compared| compared.ok));
    let names: Vec<&str> = reported.bound.iter().map(|(_, variable, _)| variable.as_str()).collect();
    assert_eq!(names, ["a", "b", "pair", "c", "d", "size", "e", "f"]);
    let tensor =
        |of: &str| match &reported.bound.iter().find(|(_, variable, _)| variable.as_str() == of).expect("bound").2 {
            Output::Tensor(tensor) => tensor,
            other => panic!("{other:?}"),
        };
    assert_eq!(tensor("a").bytes(), tensor("b").bytes());
    assert_eq!(tensor("f").bytes(), result[0].bytes());
    assert!(matches!(&reported.bound[2].2, Output::Tuple(fields) if fields.len() == 2));
    assert_eq!(tensor("c").shape(), [2, 2, 6]);
    assert!(matches!(&reported.bound[5].2, Output::Shape(shape) if *shape == [2, 4]));
    // A kernel and the binding that it computes have the same origin.
    let of = |variable: &str| {
        reported.bound.iter().find(|(_, name, _)| name.as_str() == variable).map(|(origin, ..)| *origin)
    };
    assert_eq!(reported.kernels.iter().filter(|(_, origin)| *origin == of("a")).count(), 2);
    assert_eq!(of("c"), of("d"));
}

#[test]
fn values_with_two_consumers_or_returned_stay_kernels() {
    let text = Text::new(&block(&["a = R.add(x, y)", "b = R.nn.relu(a)", "c = R.tanh(a)"], "b, c"));
    assert_eq!(kernel_names(&text.program(true)), ["add", "relu", "tanh"]);
    let text = Text::new(&block(&["a = R.add(x, y)", "b = R.nn.relu(a)"], "a, b"));
    assert_eq!(kernel_names(&text.program(true)), ["add", "relu"]);
}

#[test]
fn unused_values_are_not_computed() {
    let text = Text::new(&block(
        &["a = R.exp(x)", "b = R.split(y, indices_or_sections=2, axis=1)", "c = b[0]", "d = R.nn.relu(c)"],
        "d",
    ));
    let program = text.program(true);
    assert_eq!(program.kernels.len(), 1, "{:?}", kernel_names(&program));
    assert_eq!(program.kernels[0].inputs, 1);
}

#[test]
fn outputs_with_disjoint_lifetimes_share_memory() {
    let lines: Vec<String> = (0..6).map(|at| format!("a{} = R.matmul({}, w)", at + 1, previous(at))).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let program = Text::new(&block(&lines, "a6")).program(true);
    let storages: Vec<Option<u32>> = program.procedures[0]
        .code
        .iter()
        .filter_map(|instruction| match &instruction.operation {
            Operation::Kernel { outputs, .. } => Some(outputs[0].storage.map(|storage| storage.0)),
            _ => None,
        })
        .collect();
    // Two storages alternate. The returned tensor has a separate allocation.
    assert_eq!(storages, [Some(0), Some(1), Some(0), Some(1), Some(0), None]);
    assert_eq!(program.procedures[0].storages.len(), 2);
}

fn previous(at: usize) -> String {
    if at == 0 { "x".to_owned() } else { format!("a{at}") }
}

/// A variable of a random program, and its shape.
#[derive(Clone)]
struct Variable {
    name: String,
    shape: Vec<String>,
}

/// Generates a random program: each step selects an operator and its operands from the variables before it.
fn random_program(steps: &[(u8, u16, u16)]) -> String {
    let shape = |dims: [&str; 3]| dims.map(str::to_owned).to_vec();
    let mut variables = vec![
        Variable { name: "x".to_owned(), shape: shape(["n", "4", "6"]) },
        Variable { name: "y".to_owned(), shape: shape(["n", "4", "6"]) },
    ];
    let mut lines = Vec::new();
    for (step, (operator, a, b)) in steps.iter().enumerate() {
        let name = format!("v{step}");
        let a = variables[usize::from(*a) % variables.len()].clone();
        let alike: Vec<&Variable> = variables.iter().filter(|other| other.shape == a.shape).collect();
        let b = alike[usize::from(*b) % alike.len()].clone();
        let Some((value, shape)) = operation(*operator, &a, &b) else { continue };
        lines.push(format!("{name} = {value}"));
        variables.push(Variable { name, shape });
    }
    let results: Vec<&str> = variables.iter().rev().take(3).map(|variable| variable.name.as_str()).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    // `R.output` takes only variables of the block, not parameters.
    let out: Vec<&str> = results.iter().copied().filter(|name| name.starts_with('v')).collect();
    let text = block(&lines, "RESULTS");
    let returned = format!("return {}\n", results.join(", "));
    let text = text.replace("return RESULTS\n", &returned);
    match out.is_empty() {
        true => {
            text.replace("            R.output(RESULTS)\n", "            u = R.add(x, y)\n            R.output(u)\n")
        }
        false => text.replace("RESULTS", &out.join(", ")),
    }
}

/// Returns a call of an operator on `a` (and `b` of the same shape), and the result's shape. Returns `None` if no call
/// of this operator is generated for this shape.
fn operation(operator: u8, a: &Variable, b: &Variable) -> Option<(String, Vec<String>)> {
    let (x, y) = (&a.name, &b.name);
    let same = a.shape.clone();
    let last = same.last()?.as_str();
    Some(match operator % 16 {
        0 => (format!("R.add({x}, {y})"), same),
        1 => (format!("R.multiply({x}, R.const(0.5, \"float32\"))"), same),
        2 => (format!("R.nn.relu({x})"), same),
        3 => (format!("R.tanh({x})"), same),
        4 => (format!("R.maximum({x}, {y})"), same),
        5 if same.len() == 3 => {
            let shape = vec![same[0].clone(), same[2].clone(), same[1].clone()];
            (format!("R.permute_dims({x}, axes=[0, 2, 1])"), shape)
        }
        6 if last == "6" => (format!("R.matmul({x}, w)"), same),
        7 => (format!("R.nn.softmax({x}, axis=-1)"), same),
        8 => (format!("R.subtract({x}, R.mean({x}, axis=[-1], keepdims=True))"), same),
        9 if same.len() == 3 && same[1] == "4" => {
            (format!("R.take({x}, i, axis=1)"), vec![same[0].clone(), "3".to_owned(), same[2].clone()])
        }
        10 if last == "6" => {
            let mut shape = same.clone();
            *shape.last_mut()? = "12".to_owned();
            (format!("R.concat([{x}, {y}], axis=-1)"), shape)
        }
        11 if last == "12" => {
            let mut shape = same.clone();
            *shape.last_mut()? = "6".to_owned();
            (format!("R.strided_slice({x}, axes=[2], begin=[3], end=[9])"), shape)
        }
        12 if same.len() == 3 && same[1] == "4" && last == "6" => {
            (format!("R.reshape({x}, R.shape([n, 24]))"), vec!["n".to_owned(), "24".to_owned()])
        }
        13 if same.len() == 2 => {
            let shape = ["n", "4", "6"].map(str::to_owned).to_vec();
            (format!("R.reshape({x}, R.shape([n, 4, 6]))"), shape)
        }
        14 => (format!("R.sigmoid(R.negative({x}))"), same),
        15 if last == "6" => (format!("R.nn.layer_norm({x}, R.sum(w, axis=[0]), R.sum(w, axis=[1]), axes=[-1])"), same),
        _ => return None,
    })
}

const HANDLES: &str = "\
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def nothing(a: T.handle, n: T.int64, b: T.handle):
        T.evaluate(a)

    @T.prim_func(private=True, s_tir=True)
    def half(a: T.handle, b: T.handle, c: T.handle):
        A = T.match_buffer(a, (4,))
        B = T.match_buffer(b, (4,))
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @T.prim_func(private=True, s_tir=True)
    def double(a: T.handle(\"float32\", \"global\"), unused: T.handle, b: T.handle(\"float32\", \"global\")):
        A = T.decl_buffer((4,), data=a)
        B = T.Buffer((4,), data=b)
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), \"float32\"), y: R.Tensor((\"n\",), \"float32\")):
        cls = Module
        n = T.int64()
        zeros = R.call_tir(cls.nothing, (x, n), out_ty=R.Tensor((n, 3), \"float32\"))
        same = R.call_tir_inplace(cls.nothing, (x, n, y), out_ty=R.Tensor((n,), \"float32\"), inplace_indices=[2])
        both = R.call_tir(cls.half, (x,), out_ty=[R.Tensor((4,), \"float32\"), R.Tensor((2,), \"int32\")])
        twice = R.call_tir(cls.double, (x, y), out_ty=R.Tensor((4,), \"float32\"))
        return (x, y, zeros, same, both, twice)
";

#[test]
fn memory_that_a_prim_func_does_not_access_is_unchanged() {
    let text = Text::new(HANDLES);
    let results = text.run(text.program(false), rx_runtime::interp::Interpreter::default(), 3);
    let compiled = text.run(text.program(true), rx_runtime::cpu::Cpu::default(), 3);
    assert!(results.iter().zip(&compiled).all(|(a, b)| a.bytes() == b.bytes()));
    let [x, y, zeros, same, double, integers, twice] = &results[..] else { panic!("{} results", results.len()) };
    // New memory is zeroed.
    assert_eq!((zeros.shape(), zeros.as_slice::<f32>().expect("floats")), (&[3, 3][..], &[0.0; 9][..]));
    assert_eq!((integers.shape(), integers.bytes()), (&[2][..], &[0; 8][..]));
    assert_eq!(same.bytes(), y.bytes());
    let doubled: Vec<f32> = x.as_slice::<f32>().expect("floats").iter().map(|value| value * 2.0).collect();
    assert_eq!((double.as_slice::<f32>(), twice.bytes()), (Some(&doubled[..]), double.bytes()));
}

#[test]
fn memory_has_extents_that_are_computed() {
    let text = Text::new(
        "\
@I.ir_module
class Module:
    @R.function
    def main(y: R.Tensor((\"n\",), \"float32\")):
        n = T.int64()
        new = R.builtin.alloc_tensor(R.shape([T.max(16 - T.max(T.if_then_else(n < 2, n + 16, n), 0), 0), 2]), R.dtype(\"float32\"), 0)
        return new
",
    );
    let shape = |n| text.run(text.program(false), rx_runtime::interp::Interpreter::default(), n)[0].shape().to_vec();
    assert_eq!((shape(3), shape(1)), (vec![13, 2], vec![0, 2]));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48),
        rng_seed: proptest::test_runner::RngSeed::Fixed(
            std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(11),
        ),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Fusion, memory planning and compilation do not change the results of the interpreter, up to rounding.
    #[test]
    fn passes_and_devices_change_no_result(
        steps in proptest::collection::vec((any::<u8>(), any::<u16>(), any::<u16>()), 1..14),
        n in 1i64..5,
    ) {
        let source = random_program(&steps);
        let text = Text::new(&source);
        let wanted = text.run(text.program(false), rx_runtime::interp::Interpreter::default(), n);
        let joined = text.run(text.program(true), rx_runtime::interp::Interpreter::default(), n);
        let compiled = text.run(text.program(true), rx_runtime::cpu::Cpu::default(), n);
        for (results, how) in [(joined, "joined"), (compiled, "compiled")] {
            prop_assert_eq!(results.len(), wanted.len());
            for (result, wanted) in results.iter().zip(&wanted) {
                let same = compare(result, wanted, 1e-4, 1e-5).expect("one shape");
                prop_assert!(same.ok, "{}: {}\n{}", how, same, source);
            }
        }
    }
}

#[test]
fn scalars_of_tir_vars_are_the_last_parameters() {
    let program = |scalars_first: bool| {
        let by = "by: T.int64";
        let dst = "dst: T.Buffer((T.int64(8),), \"float32\")";
        let (params, passed) = match scalars_first {
            true => (format!("{by}, {dst}"), "(x, n), out_ty=R.Tensor((8,), \"float32\")"),
            false => (format!("{dst}, {by}"), "(x,), out_ty=R.Tensor((8,), \"float32\"), tir_vars=R.shape([n])"),
        };
        format!(
            "@I.ir_module\nclass Module:\n    @T.prim_func(private=True)\n    \
             def shift(src: T.Buffer((T.int64(8),), \"float32\"), {params}):\n        for i in range(T.int64(8)):\n            \
             dst[i] = src[i] + T.Cast(\"float32\", by)\n\n    @R.function\n    \
             def main(x: R.Tensor((8,), \"float32\"), y: R.Tensor((\"n\",), \"float32\")):\n        n = T.int64()\n        \
             cls = Module\n        return R.call_tir(cls.shift, {passed})\n"
        )
    };
    let [first, last] = [true, false].map(|scalars_first| {
        let text = Text::new(&program(scalars_first));
        let interpreted = text.run(text.program(false), rx_runtime::interp::Interpreter::default(), 5);
        let compiled = text.run(text.program(true), rx_runtime::cpu::Cpu::default(), 5);
        assert_eq!(interpreted[0].bytes(), compiled[0].bytes());
        compiled
    });
    assert_eq!(first[0].bytes(), last[0].bytes());
}

#[test]
fn parameters_of_nested_functions_hide_outer_variables() {
    let text = Text::new(
        "\
@I.ir_module
class Module:
    @R.function
    def main(y: R.Tensor((\"n\",), \"float32\")):
        n = T.int64()
        x = R.add(y, y)
        inner = R.negative(y)

        @R.function
        def inner(y: R.Tensor((\"n\",), \"float32\")) -> R.Tensor((\"n\",), \"float32\"):
            n = T.int64()
            z = R.multiply(y, R.const(10.0, \"float32\"))
            return z

        return y, inner(x)
",
    );
    for optimized in [false, true] {
        let results = text.run(text.program(optimized), rx_runtime::interp::Interpreter::default(), 4);
        let twenty: Vec<f32> = results[0].as_slice::<f32>().expect("floats").iter().map(|value| value * 20.0).collect();
        assert_eq!(results[1].as_slice::<f32>(), Some(&twenty[..]));
    }
}
