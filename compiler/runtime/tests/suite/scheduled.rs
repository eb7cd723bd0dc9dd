//! Programs with functions that bind their loops to threads, as TVM's default GPU schedules generate them, between
//! Relax operators.

use crate::common::Text;
use rx_base::DType;
use rx_runtime::cuda::Simulated;
use rx_runtime::{Backend, Output, cpu::Cpu, interp::Interpreter};
use rx_tensor::{Tensor, compare, random};

/// A file of functions (in compiler/cuda/tests/kernels/scheduled), the parameters of `main`, the arguments of the call,
/// and its result's shape.
const PROGRAMS: &[(&str, &str, &str, &str)] = &[
    (
        include_str!("../../../cuda/tests/kernels/scheduled/softmax.py"),
        "x: R.Tensor((n, 300))",
        "R.nn.relu(x)",
        "(n, 300)",
    ),
    (
        include_str!("../../../cuda/tests/kernels/scheduled/matmul.py"),
        "x: R.Tensor((n, 64)), w: R.Tensor((64, 48))",
        "R.nn.relu(x), w",
        "(n, 48)",
    ),
    (
        include_str!("../../../cuda/tests/kernels/scheduled/rms_norm.py"),
        "x: R.Tensor((n, 200)), g: R.Tensor((200,))",
        "R.nn.relu(x), R.negative(g)",
        "(n, 200)",
    ),
    (include_str!("../../../cuda/tests/kernels/scheduled/columns.py"), "x: R.Tensor((n, 72))", "R.nn.relu(x)", "(72,)"),
];

const ROWS: i64 = 19;

fn program(functions: &str, params: &str, passed: &str, shape: &str, called: &str) -> Text {
    let params = params.replace("))", "), \"float32\")");
    let main = format!(
        "
    @R.function
    def main({params}) -> R.Tensor({shape}, \"float32\"):
        cls = Module
        with R.dataflow():
            made = R.call_tir(cls.{called}, ({passed},), out_ty=R.Tensor({shape}, dtype=\"float32\"))
            out = R.add(R.nn.relu(made), made)
            R.output(out)
        return out
"
    );
    let functions = functions.replace(
        "from tvm.script import tirx as T",
        "from tvm.script import tirx as T\nfrom tvm.script import relax as R",
    );
    Text::new(&format!("{functions}{main}"))
}

fn arguments(params: &str) -> Vec<Tensor> {
    let shape = |part: &str| -> Vec<i64> {
        let dims = part.split_once("((").map_or("", |(_, dims)| dims);
        let dims = dims.split(')').next().unwrap_or_default().split(',');
        dims.map(str::trim).filter(|dim| !dim.is_empty()).map(|dim| dim.parse().unwrap_or(ROWS)).collect()
    };
    let tensors = params.split("R.Tensor").skip(1).enumerate();
    tensors.map(|(at, part)| random::draw(5, at as u64, DType::FLOAT32, &shape(part), None).expect("drawn")).collect()
}

fn run(text: &Text, backend: impl Backend, arguments: &[Tensor]) -> Tensor {
    let output = text.run(true, backend, arguments).result.map(Output::tensors);
    output.unwrap_or_else(|error| panic!("{error}")).remove(0)
}

#[test]
fn scheduled_functions_in_programs_agree_with_their_originals() {
    let has_compiler = rx_cuda::simulator::compiler().is_ok();
    for (functions, params, passed, shape) in PROGRAMS {
        let arguments = arguments(params);
        let expected = run(&program(functions, params, passed, shape, "plain"), Interpreter::default(), &arguments);
        let text = program(functions, params, passed, shape, "scheduled");
        let mut results = vec![run(&text, Interpreter::default(), &arguments), run(&text, Cpu::default(), &arguments)];
        if has_compiler {
            results.push(run(&text, Simulated::default(), &arguments));
        }
        for result in results {
            let judged = compare(&result, &expected, 1e-4, 1e-4).unwrap_or_else(|error| panic!("{error}"));
            assert!(judged.ok, "{params}: {judged}");
        }
    }
}
