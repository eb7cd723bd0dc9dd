//! The driver calls of a running program, recorded by a mock CUDA driver that computes nothing.

use crate::common::Text;
use rx_base::name::NameMap;
use rx_cuda::CudaSource;
use rx_cuda::device::Device;
use rx_cuda::device::driver::DriverFailureKind;
use rx_cuda::device::mock_driver::MockDriver;
use rx_cuda::images::Image;
use rx_cuda::nvrtc::NvrtcError;
use rx_cuda::rules::RuleOrder;
use rx_runtime::cuda::Cuda;
use rx_runtime::{Executor, Value};
use rx_tensor::Tensor;
use std::rc::Rc;
use std::sync::Arc;

/// Two matmuls, each followed by a softmax.
const NET: &str = r#"@R.function
def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 64), "float32")) -> R.Tensor(("n", 64), "float32"):
    a = R.matmul(x, w)
    b = R.nn.softmax(a, axis=-1)
    c = R.matmul(b, w)
    d = R.nn.softmax(c, axis=-1)
    return d
"#;

/// Returns one image without code that claims to contain every kernel.
fn empty(source: &CudaSource, _: u32, _: &mut dyn FnMut(usize, usize)) -> Result<Vec<Image>, NvrtcError> {
    let functions = source.functions.iter().enumerate();
    let kernels = functions.flat_map(|(at, function)| (0..function.kernels.len()).map(move |number| (at, number)));
    Ok(vec![Image { code: Vec::new(), kernels: kernels.collect(), was_kept: false }])
}

/// Returns a rule order with which the number of kernels is predictable.
fn plain() -> RuleOrder {
    RuleOrder::of(["fallback"]).unwrap_or_else(|error| panic!("{error}"))
}

fn executor(mock_driver: &MockDriver, text: &str) -> Executor<Cuda> {
    let text = Text::module(text);
    let program = text.program(true).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let backend = Cuda::of(Rc::new(Device::of(mock_driver.clone())), empty).with_rules(plain());
    Executor::new(Arc::new(program), backend, &[], &mut |_| {}).unwrap_or_else(|error| panic!("{error}"))
}

fn arguments(executor: &mut Executor<Cuda>, rows: i64) -> Vec<Value<rx_cuda::device::DeviceBuffer>> {
    [[rows, 64], [64, 64]]
        .map(|shape| Tensor::zeros(rx_base::DType::FLOAT32, &shape).expect("memory"))
        .iter()
        .map(|tensor| executor.upload(tensor).expect("memory"))
        .collect()
}

/// Counts the calls of one kind.
fn count(calls: &[String], kind: &str) -> usize {
    calls.iter().filter(|call| call.split(' ').next() == Some(kind)).count()
}

#[test]
fn a_run_whose_shapes_repeat_becomes_one_graph() {
    let mock_driver = MockDriver::default();
    let mut executor = executor(&mock_driver, NET);
    let (small, large) = (arguments(&mut executor, 3), arguments(&mut executor, 5));
    let mut run = |arguments: &[Value<_>]| {
        mock_driver.calls();
        executor.run(arguments.to_vec(), &NameMap::default()).unwrap_or_else(|error| panic!("{error}"));
        mock_driver.calls()
    };
    let first = run(&small);
    let launches = count(&first, "launch");
    assert!(launches >= 3 && count(&first, "replay") == 0, "{first:?}");
    let second = run(&small);
    assert_eq!((count(&second, "begin_capture"), count(&second, "replay")), (1, 1), "{second:?}");
    assert_eq!(count(&second, "allocate"), 0, "memory of the first run is used again: {second:?}");
    let third = run(&small);
    assert_eq!(third, ["replay 1", "wait", "copy_to_host 24"], "one launch, and what checks say behind it");
    // Other shapes are another graph. The larger shapes allocate larger memory, which the small shapes then use as
    // well, so the small graph is captured again.
    for arguments in [&large, &small, &large, &small] {
        run(arguments);
    }
    for arguments in [&large, &small, &small, &large] {
        let calls = run(arguments);
        assert_eq!((count(&calls, "replay"), count(&calls, "launch"), calls.len()), (1, 0, 3), "{calls:?}");
    }
}

#[test]
fn intermediates_of_a_frame_share_one_allocation() {
    let mock_driver = MockDriver::default();
    let products = ["a = R.matmul(x, w)", "b = R.matmul(a, w)", "c = R.matmul(b, w)", "d = R.matmul(c, w)"];
    let head = NET.lines().next().into_iter().chain(NET.lines().nth(1)).collect::<Vec<_>>().join("\n");
    let text = format!("{head}\n    {}\n    return d\n", products.join("\n    "));
    let mut executor = executor(&mock_driver, &text);
    let arguments = arguments(&mut executor, 3);
    mock_driver.calls();
    executor.run(arguments, &NameMap::default()).unwrap_or_else(|error| panic!("{error}"));
    // One block for the intermediate values, and one for the result, which outlives the run.
    assert_eq!(count(&mock_driver.calls(), "allocate"), 2);
}

#[test]
fn observed_run_reports_each_kernel() {
    struct Names(usize);
    impl rx_runtime::Observer for Names {
        fn kernel(&mut self, _: &rx_runtime::KernelRun<'_>) {
            self.0 += 1;
        }
        fn bound(&mut self, _: rx_ir::Origin, _: rx_base::Name, _: rx_runtime::Output) {}
    }
    let mock_driver = MockDriver::default();
    let mut executor = executor(&mock_driver, NET);
    let arguments = arguments(&mut executor, 3);
    for _ in 0..3 {
        mock_driver.calls();
        let mut names = Names(0);
        executor
            .run_observed(arguments.clone(), &NameMap::default(), &mut names)
            .unwrap_or_else(|error| panic!("{error}"));
        let calls = mock_driver.calls();
        assert_eq!(names.0, 4);
        assert!(count(&calls, "wait") >= 8, "before each and behind it: {calls:?}");
    }
}

#[test]
fn a_kernel_that_fails_has_its_statement() {
    let mock_driver = MockDriver::default();
    let text = NET
        .replace("    d = R.nn.softmax(c, axis=-1)\n    return d", "    return c")
        .replace("    b = R.nn.softmax(a, axis=-1)\n    c = R.matmul(b, w)", "    c = R.negative(a)");
    let mut executor = executor(&mock_driver, &text);
    let arguments = arguments(&mut executor, 3);
    mock_driver.fails_at("wait", DriverFailureKind::Lost, "an illegal memory access was encountered");
    let error = executor.run(arguments.clone(), &NameMap::default()).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("failed on the device: an illegal memory access"), "{error}");
    assert!(error.origin.is_some(), "the only kernel is it: {error}");
    let after = executor.run(arguments, &NameMap::default()).map(|_| ()).unwrap_err();
    assert!(after.to_string().contains("cannot be used any more in this process"), "{after}");
}
