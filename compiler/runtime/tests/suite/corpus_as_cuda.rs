//! Kernels of a corpus of programs, fused as for a GPU: simulated CUDA gives the results of the interpreter. `RX_CASES`
//! is the folder of the corpus; the tests are skipped without it or without a C++ compiler.

use crate::common::Text;
use rx_base::Severity;
use rx_cuda::rules::Target;
use rx_cuda::simulator::compiler;
use rx_db::{FileKind, Workspace};
use rx_lower::{Kernel, KernelId, Program};
use rx_runtime::cuda::Simulated;
use rx_runtime::interp::Interpreter;
use rx_runtime::{Argument, Backend, Fuel, KernelCall, Limits, Memory, RunError};
use rx_tensor::{Scalar, Tensor, compare, random};
use rx_tir::PrimFunc;
use std::path::PathBuf;

/// The maximal size in bytes of a kernel's arguments together. Kernels with larger arguments are not run.
const MOST_BYTES: i64 = 1 << 24;

/// The maximal number of loop iterations of a kernel.
const MOST_ITERATIONS: u64 = 1 << 21;

/// The maximal number of kernels that are compiled together by the C++ compiler.
const AT_ONCE: usize = 64;

/// A kernel, its arguments, and the result of the interpreter.
struct Case {
    kernel: Kernel,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    scalars: Vec<Scalar>,
    expected: Result<Vec<Tensor>, RunError>,
}

/// Appends the kernels of every Relax function of a text that can be lowered, unless the text has errors.
fn kernels_of(text: &str, into: &mut Vec<Kernel>) {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    if workspace.diagnostics(file).iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return;
    }
    let names: Vec<_> = workspace.functions(file).iter().map(|function| function.name).collect();
    let text = Text(workspace, file);
    for name in names.into_iter().filter(|name| text.0.function(text.0.first_module(file), *name).is_some()) {
        if let Ok(mut program) = rx_lower::lower(&text, name) {
            rx_lower::steps::run(&mut program, Some(Simulated::default().target_info()));
            into.extend(program.kernels);
        }
    }
}

/// Returns the distinct kernels of the texts in a JSONL file.
fn kernels_of_rows(file: &str) -> Option<Vec<Kernel>> {
    let Some(folder) = std::env::var_os("RX_CASES").map(PathBuf::from) else {
        println!("skipped: RX_CASES is not set");
        return None;
    };
    if compiler().is_err() {
        println!("skipped: no C++ compiler");
        return None;
    }
    let rows = std::fs::read_to_string(folder.join("cases").join(file)).expect("readable");
    let mut kernels = Vec::new();
    for row in rows.lines() {
        let row: serde_json::Value = serde_json::from_str(row).expect("a row");
        if let Some(text) = row["text_meta"].as_str().or(row["text"].as_str()) {
            kernels_of(text, &mut kernels);
        }
    }
    let program = Program { kernels, ..Program::default() };
    let (index, _) = program.distinct();
    let mut kept = Vec::new();
    let mut next = 0;
    for (kernel, at) in program.kernels.into_iter().zip(index) {
        if at == next {
            kept.push(kernel);
            next += 1;
        }
    }
    Some(kept)
}

/// Creates a case with random tensors, where every symbol has the value `extent`. Returns `None` if the tensors are
/// too large or cannot be drawn, or the interpreter does not accept the kernel or exceeds its limits.
fn case(kernel: Kernel, extent: i64) -> Option<Case> {
    let func: &PrimFunc = &kernel.loops;
    let mut bytes = 0i64;
    let mut tensors = Vec::new();
    for (at, buffer) in func.buffer_params().enumerate() {
        let buffer = func.buffer(buffer);
        let extents = buffer.shape.iter().map(|dim| rx_tir::evaluate_index(dim, &|_| Some(extent)));
        let shape: Vec<i64> = extents.collect::<Option<_>>()?;
        let size = buffer.dtype.bytes() as i64;
        bytes = bytes.saturating_add(shape.iter().fold(size, |bytes, extent| bytes.saturating_mul((*extent).max(0))));
        if bytes > MOST_BYTES {
            return None;
        }
        tensors.push(random::draw(7, at as u64, buffer.dtype, &shape, Some(2)).ok()?);
    }
    let outputs = tensors.split_off(kernel.inputs);
    let scalars = func.scalar_params().map(|var| match func.var(var).dtype {
        dtype if dtype.is_float() => Scalar::Float(extent as f64),
        dtype if dtype.is_bool() => Scalar::Int(1),
        _ => Scalar::Int(extent),
    });
    let scalars: Vec<Scalar> = scalars.collect();
    let mut interpreter = Interpreter::default();
    let program = Program { kernels: vec![kernel.clone()], ..Program::default() };
    interpreter.build(&program, &mut |_| {}).ok()?;
    let expected = run(&mut interpreter, KernelId(0), &tensors, &outputs, &scalars);
    // The interpreter exceeded its limits.
    if let Err(error) = &expected
        && error.to_string().starts_with("stopped")
    {
        return None;
    }
    Some(Case { kernel, inputs: tensors, outputs, scalars, expected })
}

/// Runs a kernel and returns its outputs.
fn run<B: Backend<Memory = Tensor>>(
    backend: &mut B,
    kernel: KernelId,
    inputs: &[Tensor],
    outputs: &[Tensor],
    scalars: &[Scalar],
) -> Result<Vec<Tensor>, RunError> {
    let mut fuel = Fuel::of(Limits { iterations: Some(MOST_ITERATIONS), bytes: None });
    let inputs: Vec<Argument<'_, Tensor>> =
        inputs.iter().map(|tensor| Argument { memory: tensor, shape: tensor.shape(), dtype: tensor.dtype() }).collect();
    let mut written: Vec<(Tensor, Vec<i64>, rx_base::DType)> = outputs
        .iter()
        .map(|tensor| (tensor.duplicate().expect("a small tensor"), tensor.shape().to_vec(), tensor.dtype()))
        .collect();
    let call = KernelCall { kernel, inputs: &inputs, outputs: &mut written, scalars };
    backend.run(call, &mut fuel)?;
    written.into_iter().map(|(memory, shape, dtype)| memory.download(backend, dtype, &shape)).collect()
}

/// Appends a message for each case where simulated CUDA differs from the interpreter. If the kernels do not compile
/// together, halves of the cases are tried separately.
fn disagreements(cases: &[Case], found: &mut Vec<String>) {
    let kernels = cases.iter().map(|case| case.kernel.clone()).collect();
    let program = Program { kernels, ..Program::default() };
    let mut simulated = Simulated::of(Target::default());
    if let Err(error) = simulated.build(&program, &mut |_| {}) {
        match cases {
            [only] => found.push(format!("{} is not built: {error}\n{}", only.kernel.name, script(only))),
            _ => cases.chunks(cases.len().div_ceil(2)).for_each(|half| disagreements(half, found)),
        }
        return;
    }
    for (at, case) in cases.iter().enumerate() {
        let actual = run(&mut simulated, KernelId(at as u32), &case.inputs, &case.outputs, &case.scalars);
        if let Some(why) = differs(&actual, &case.expected) {
            found.push(format!("{}: {why}\n{}", case.kernel.name, script(case)));
        }
    }
}

fn script(case: &Case) -> String {
    rx_tir::print::script(&case.kernel.loops)
}

fn differs(actual: &Result<Vec<Tensor>, RunError>, expected: &Result<Vec<Tensor>, RunError>) -> Option<String> {
    match (actual, expected) {
        (Ok(actual), Ok(expected)) => actual.iter().zip(expected).find_map(|(actual, expected)| {
            let narrow = expected.dtype().is_float() && expected.dtype().bits < 32;
            let tolerance = if narrow { 2e-2 } else { 1e-4 };
            match compare(actual, expected, tolerance, tolerance) {
                Ok(result) if result.ok => None,
                Ok(result) => Some(result.to_string()),
                Err(error) => Some(error.to_string()),
            }
        }),
        (Err(_), Err(_)) => None,
        (Ok(_), Err(error)) => Some(format!("no failure; the interpreter says: {error}")),
        (Err(error), Ok(_)) => Some(format!("{error}; the interpreter has values")),
    }
}

/// Checks the kernels of a file with each of these values for the symbols.
fn all_agree(file: &str, extents: &[i64]) {
    let Some(kernels) = kernels_of_rows(file) else { return };
    let mut found = Vec::new();
    for extent in extents {
        let cases: Vec<Case> = kernels.iter().filter_map(|kernel| case(kernel.clone(), *extent)).collect();
        let before = found.len();
        cases.chunks(AT_ONCE).for_each(|some| disagreements(some, &mut found));
        let differ = found.len() - before;
        println!("{file}, symbols {extent}: {} kernels, {} run, {differ} differ", kernels.len(), cases.len());
        assert!(cases.len() * 10 >= kernels.len() * 9, "too few kernels are run");
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
#[ignore = "sweep: .ci/full"]
fn kernels_of_modules_agree() {
    all_agree("modules.jsonl", &[5]);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn kernels_of_inferred_calls_agree() {
    // With rows of 16 elements, kernels can use vectorized loads.
    all_agree("op_inference.jsonl", &[5, 16]);
}
