use super::{Call, Options, Order, Outcome, Simulator, SimulatorError};
use crate::source::{Argument, CudaFunction, CudaSource, KernelInfo, LaunchShape};
use rx_base::DType;
use rx_base::name::name;
use rx_tir::{BufferId, Expr, Param};

/// Returns a source with a kernel `f` over 256 ints, launched with one block of 256 threads.
fn source(body: &str) -> CudaSource {
    let text = format!("extern \"C\" __global__ void f(int* x) {{\n    const int t = threadIdx.x;\n{body}}}\n");
    let shape = LaunchShape::threads(Expr::int(64));
    let kernel = KernelInfo {
        name: "f".to_owned(),
        text: 0..text.len(),
        host_loops: Vec::new(),
        guard: None,
        shape,
        work: Expr::int(64),
        arguments: vec![Argument::Buffer(0)],
        maps: Vec::new(),
    };
    let function = CudaFunction {
        name: name("f"),
        origins: Vec::new(),
        params: vec![Param::Buffer(BufferId(0))],
        kernels: vec![kernel],
        temporaries: Vec::new(),
        vars: Vec::new(),
        buffers: vec![(vec![Expr::int(256)], DType::INT32)],
    };
    CudaSource { text, head_bytes: 0, functions: vec![function], sites: Vec::new(), choices: Vec::new() }
}

/// Returns the result of the kernel for a buffer of zeros, or `None` if there is no compiler.
fn run(body: &str, order: Order) -> Option<Result<Vec<i32>, SimulatorError>> {
    let simulator = match Simulator::build(&source(body), Options { sanitize: true }) {
        Ok(simulator) => simulator,
        Err(SimulatorError::NoCompiler) => {
            println!("skipped: no C++ compiler");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let zeros = vec![0; 1024];
    let call = Call { function: 0, buffers: &[&zeros], values: &[], order };
    let ints = |outcome: &Outcome| {
        let buffers = outcome.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        buffers[0].chunks(4).map(|bytes| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect()
    };
    Some(simulator.run(&[call]).map(|outcomes| ints(&outcomes[0])))
}

#[test]
fn shared_memory_barriers_and_shuffles_behave_as_on_a_device() {
    let body = "
    __shared__ int part[256];
    part[t] = t;
    __syncthreads();
    int sum = part[255 - t];
    for (int by = 16; by > 0; by /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, by);
    x[t] = sum + __shfl_down_sync(0xffffffffu, t, 1);
";
    let warp = |of: i32| (0..32).map(|lane| 255 - (of * 32 + lane)).sum::<i32>();
    let expected: Vec<i32> = (0..256).map(|t| warp(t / 32) + if t % 32 == 31 { t } else { t + 1 }).collect();
    for order in [Order::Ascending, Order::Descending, Order::Shuffled(3)] {
        let Some(result) = run(body, order) else { return };
        assert_eq!(result.unwrap_or_else(|error| panic!("{error}")), expected);
    }
}

#[test]
fn a_race_shows_in_another_order() {
    let body = "    x[0] = t;\n";
    let (Some(Ok(first)), Some(Ok(second))) = (run(body, Order::Ascending), run(body, Order::Descending)) else {
        return;
    };
    assert_eq!((first[0], second[0]), (255, 0));
}

#[test]
fn divergent_barriers_bad_accesses_and_overflows_are_errors() {
    for (body, report) in [
        ("    if (t < 7) __syncthreads();\n", "a thread ended before a barrier"),
        ("    if (t < 7)\n __syncthreads();\n else\n __syncthreads();\n", "different barriers"),
        ("    x[t + 1] = 0;\n", "heap-buffer-overflow"),
        ("    int y = 2147483647 - (t == 0); y += 2 + t; x[t] = y;\n", "signed integer overflow"),
    ] {
        match run(body, Order::Ascending) {
            None => return,
            Some(Err(SimulatorError::Run(text))) => assert!(text.contains(report), "{text}"),
            Some(other) => panic!("{body}: {other:?}"),
        }
    }
}
