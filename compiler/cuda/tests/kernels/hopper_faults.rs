//! Kernels of `sm_90a` with one injected fault each, for which the simulator must not give the right result. The first
//! entry of each list changes nothing, and its result must be right. In ascending order of threads, the simulator
//! completes asynchronous copies and products as late as allowed. It reads the layout of a matrix from its descriptor.

use crate::case::{Case, Failure};
use crate::convolutions::large as large_convolution;
use crate::hopper::hopper;
use crate::products::product;
use rx_base::DType;
use rx_cuda::simulator::{Call, Options, Order, Simulator, SimulatorError};
use rx_tensor::Tensor;

/// Returns the simulator's verdict on a case whose kernel has `from` replaced by `to`, or `None` if there is no C++
/// compiler. `expected` is the interpreter's result.
fn says(case: &Case, from: &str, to: &str, expected: &Result<Vec<Tensor>, Failure>) -> Option<String> {
    let mut source = crate::source_for(std::slice::from_ref(case), &hopper(1));
    let (head, kernel) = source.text.split_at(source.head_bytes);
    assert!(kernel.contains(from), "{from} is not in\n{kernel}");
    source.text = format!("{head}{}", kernel.replace(from, to));
    let simulator = match Simulator::build(&source, Options { sanitize: false }) {
        Ok(simulator) => simulator,
        Err(SimulatorError::NoCompiler) => {
            println!("skipped: no C++ compiler");
            return None;
        }
        Err(error) => panic!("{to}: {error}"),
    };
    let (buffers, values) = (case.bytes(), case.values());
    let call = Call { function: 0, buffers: &buffers, values: &values, order: Order::Ascending };
    Some(match simulator.run(&[call]) {
        Ok(outcomes) => match case.judge(&outcomes[0], expected) {
            Ok(()) => "right".to_owned(),
            Err(_) => "wrong numbers".to_owned(),
        },
        Err(error) => error.to_string(),
    })
}

/// Panics if the simulator does not report the expected fault. Each entry is (original text, replacement, report).
fn expect(case: &Case, faults: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    let expected = case.expected();
    for (from, to, report) in faults {
        let Some(said) = says(case, from, to, &expected) else { return };
        if !said.contains(report) {
            wrong.push(format!("{from:?} as {to:?}: {said}, not {report}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "sweep: .ci/full"]
fn faults_of_tma_tiles_are_detected() {
    // The result has one tile, the operands have ten, so each slot of the pipeline is used more than once.
    let case = product(DType::FLOAT16, DType::FLOAT32, [64, 128, 640]).case("ten tiles", [64, 128, 640]);
    expect(
        &case,
        &[
            ("number", "number", "right"),
            // Faults of barriers.
            ("expect(&full[slot], 24576)", "expect(&full[slot], 24592)", "a phase of a barrier that never ends"),
            (
                "rx_barrier_wait(&empty[slot], phase ^ 1)",
                "rx_barrier_wait(&empty[slot], phase)",
                "a phase of a barrier that never ends",
            ),
            ("if (tile > 0 && lane == 0)", "if (false)", "a phase of a barrier that never ends"),
            ("if (tile > 0 && lane == 0)", "if (tile > 0)", "a phase of a barrier that never ends"),
            ("rx_fence_barrier_init();", "", "initialised and not fenced"),
            ("rx_barrier_wait(&empty[slot], phase ^ 1);", "", "more threads arrive at a barrier"),
            ("rx_barrier_wait(&full[slot], phase);", "", "more threads arrive at a barrier"),
            // Faults of the order of reads and writes.
            ("rx_wgmma_fence();", "", "since the last wgmma.fence"),
            ("rx_wgmma_commit();", "", "a thread ended before its products did"),
            ("rx_wgmma_commit();", "sums[0][0][0] = 0;\nrx_wgmma_commit();", "sums were written"),
            ("rx_wgmma_wait_all(sums[0]);", "", "a thread ended before its products did"),
            ("rx_wgmma_wait<1>();", "", "wrong numbers"),
            // Faults of the layouts of matrices and tiles.
            ("16, 1024)", "16, 512)", "wrong numbers"),
            ("8192, 1024)", "4096, 1024)", "wrong numbers"),
            ("8192, 1024)", "8192, 2048)", "a matrix that ends outside shared memory"),
            ("k * 16]", "k * 8]", "wrong numbers"),
            ("from_b[k * 1024]", "from_b[k * 512]", "wrong numbers"),
            ("_128<0, 1>", "_128<0, 0>", "a matrix that ends outside shared memory"),
            ("column0 + 64, sum0", "column0, sum0", "wrong numbers"),
            ("sum0, row0", "sum0 + 8, row0", "wrong numbers"),
            ("tile_a[slot * 4096]", "tile_a[slot * 4096 + 8]", "does not begin at a multiple of 128 bytes"),
        ],
    );
}

#[test]
fn faults_of_tiles_loaded_by_threads_are_detected() {
    let case = large_convolution(DType::BFLOAT16, DType::FLOAT32);
    expect(
        &case,
        &[
            ("rx_fence_async_proxy", "rx_fence_async_proxy", "right"),
            ("rx_fence_async_proxy();", "", "without fence.proxy.async"),
            ("rx_wgmma_wait<0>();", "", "wrong numbers"),
        ],
    );
}
