use super::mock_driver::MockDriver;
use super::{Device, DeviceBuffer, DeviceError, Driver, Module};
use crate::device::driver::DriverFailureKind;
use crate::images::Image;
use crate::printer::module;
use crate::rules::Target;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::{Expr, KernelBuilder, PrimFunc};
use std::time::Duration;

/// Returns a kernel function `out = x + number`, over `n` floats.
fn add(number: usize) -> PrimFunc {
    let mut builder = KernelBuilder::new(name(&format!("add_{number}")));
    let dims = [Dim::symbol(name("n"))];
    let x = builder.param("x", &dims, DType::FLOAT32);
    let out = builder.param("out", &dims, DType::FLOAT32);
    builder.compute(out, |builder, at| builder.load(x, at) + Expr::number(number as f64, DType::FLOAT32));
    builder.finish()
}

/// Returns the mock driver's device and a module with functions `add_0`, `add_1` and `add_2`, and discards the recorded
/// calls.
fn device(mock_driver: &MockDriver) -> (Device, Module) {
    let funcs: Vec<PrimFunc> = (0..3).map(add).collect();
    let source = module(&funcs.iter().collect::<Vec<_>>(), &Target::default());
    let source = source.unwrap_or_else(|error| panic!("{error}"));
    let kernels = (0..3).map(|function| (function, 0)).collect();
    let device = Device::of(mock_driver.clone());
    let images = [Image { code: Vec::new(), kernels, was_kept: false }];
    let module = device.load_images(source, &images).unwrap_or_else(|error| panic!("{error}"));
    mock_driver.calls();
    (device, module)
}

/// Launches functions one after the other on the same buffers, and waits.
fn launch(module: &Module, functions: &[usize], buffers: [&DeviceBuffer; 2]) -> Result<(), DeviceError> {
    let floats = (buffers[0].bytes() / 4) as i64;
    for function in functions {
        let values = vec![Some(floats); module.source().functions[*function].vars.len()];
        module.launch(*function, &buffers, &values)?;
    }
    module.finish()
}

fn memory(device: &Device, bytes: usize) -> DeviceBuffer {
    device.allocate(bytes).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn probing_returns_a_device_or_a_reason() {
    match Device::probe() {
        Ok(device) => assert!(device.arch() >= 80, "{}", device.name()),
        Err(
            error @ (DeviceError::NoDriver
            | DeviceError::NoDevice
            | DeviceError::TooOld { .. }
            | DeviceError::Driver { .. }),
        ) => {
            assert!(error.to_string().len() > 10);
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_sequence_that_repeats_is_captured_once_and_replayed() {
    let mock_driver = MockDriver::default();
    let (device, module) = device(&mock_driver);
    let (x, y) = (memory(&device, 64), memory(&device, 64));
    mock_driver.calls();
    let run = |functions: &[usize], buffers| {
        launch(&module, functions, buffers).unwrap_or_else(|error| panic!("{error}"));
        mock_driver.calls().join(", ")
    };
    let read = "wait, copy_to_host 24";
    let both = "launch add_0_kernel, launch add_1_kernel";
    // The first run submits the launches one by one, the second captures them as a graph; the error cell is read after
    // the replay.
    assert_eq!(run(&[0, 1], [&x, &y]), format!("{both}, {read}"));
    assert_eq!(run(&[0, 1], [&x, &y]), format!("begin_capture, {both}, end_capture, replay 1, {read}"));
    assert_eq!(run(&[0, 1], [&x, &y]), format!("replay 1, {read}"));
    // Other addresses, another order and a longer list are other sequences.
    assert_eq!(run(&[0, 1], [&y, &x]), format!("{both}, {read}"));
    assert_eq!(run(&[1, 0], [&x, &y]), format!("launch add_1_kernel, launch add_0_kernel, {read}"));
    assert_eq!(run(&[0, 1, 2], [&x, &y]), format!("{both}, launch add_2_kernel, {read}"));
    assert_eq!(run(&[0, 1], [&x, &y]), format!("replay 1, {read}"));
    assert!(run(&[0, 1, 2], [&x, &y]).contains("replay 2"));
    // A sequence of one launch is not captured, since a graph would be no faster.
    for _ in 0..3 {
        assert_eq!(run(&[2], [&x, &y]), format!("launch add_2_kernel, {read}"));
    }
}

#[test]
fn deferred_launches_precede_host_operations() {
    let mock_driver = MockDriver::default();
    let (device, module) = device(&mock_driver);
    let (x, y) = (memory(&device, 64), memory(&device, 64));
    launch(&module, &[0, 1], [&x, &y]).unwrap_or_else(|error| panic!("{error}"));
    mock_driver.calls();
    let values = vec![Some(16); module.source().functions[0].vars.len()];
    module.launch(0, &[&x, &y], &values).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(mock_driver.calls(), Vec::<String>::new(), "it may be the known sequence");
    device.upload(&[1, 2, 3]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        mock_driver.calls(),
        ["allocate 512", "launch add_0_kernel", "pin 65536", "write_pinned 1", "copy_pinned_to_device 1 3"]
    );
}

#[test]
fn launches_are_direct_without_capture() {
    let mock_driver = MockDriver::default();
    let (device, module) = device(&mock_driver);
    let (x, y) = (memory(&device, 64), memory(&device, 64));
    mock_driver.fails_at("begin_capture", DriverFailureKind::Call, "not supported");
    for _ in 0..3 {
        mock_driver.calls();
        launch(&module, &[0, 1], [&x, &y]).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(mock_driver.calls()[..2], ["launch add_0_kernel", "launch add_1_kernel"]);
}

#[test]
fn memory_is_reused_and_freed_before_an_allocation_fails() {
    let mock_driver = MockDriver::with_memory(4096);
    let (device, _module) = device(&mock_driver);
    let first = memory(&device, 1000);
    drop(first);
    let second = memory(&device, 900);
    assert_eq!(mock_driver.calls(), ["allocate 1024"], "sizes that differ little share a block");
    drop(second);
    // The error cell takes 512 bytes.
    let all = memory(&device, 3500);
    assert_eq!(mock_driver.calls(), ["allocate 3584", "wait", "free", "wait", "allocate 3584"]);
    let error = device.allocate(1 << 20).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "the device has not enough memory: 1.0 MiB are needed, 0 bytes of 4.0 KiB are free");
    drop(all);
    assert_eq!(device.peak_bytes(), 512 + 3584);
    let parts = device.allocate_together(&[100, 0, 513]).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(parts.iter().map(DeviceBuffer::bytes).collect::<Vec<_>>(), [100, 0, 513]);
    drop((parts, _module, device));
    assert_eq!(mock_driver.allocated(), 0, "nothing is left");
}

#[test]
fn large_copies_go_through_pinned_memory_in_pieces() {
    let mock_driver = MockDriver::default();
    let (device, _module) = device(&mock_driver);
    let bytes: Vec<u8> = (0..9usize << 20).map(|at| (at % 251) as u8).collect();
    let buffer = device.upload(&bytes).unwrap_or_else(|error| panic!("{error}"));
    let calls = mock_driver.calls();
    let copies: Vec<&String> = calls.iter().filter(|call| call.starts_with("copy")).collect();
    assert_eq!(
        copies,
        ["copy_pinned_to_device 1 4194304", "copy_pinned_to_device 2 4194304", "copy_pinned_to_device 1 1048576"]
    );
    // The third piece waits until the device has read the first.
    assert_eq!(calls.iter().filter(|call| *call == "wait").count(), 1, "{calls:?}");
    let back = device.download(&buffer).unwrap_or_else(|error| panic!("{error}"));
    assert!(back == bytes, "the same bytes come back");
    assert!(mock_driver.calls().contains(&"copy_to_pinned 1 4194304".to_owned()));
}

#[test]
fn failed_kernel_is_named_and_ends_only_its_device() {
    let mock_driver = MockDriver::default();
    let (device, module) = device(&mock_driver);
    let (x, y) = (memory(&device, 64), memory(&device, 64));
    mock_driver.fails_at("wait", DriverFailureKind::Lost, "an illegal memory access was encountered");
    let error = launch(&module, &[2], [&x, &y]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `add_2_kernel` failed on the device: an illegal memory access was encountered"
    );
    assert!(error.is_lasting());
    mock_driver.calls();
    let after = launch(&module, &[0], [&x, &y]).unwrap_err().to_string();
    assert_eq!(after, format!("the device cannot be used any more in this process: {error}"));
    assert!(device.upload(&[1]).is_err() && device.download(&x).is_err() && device.allocate(1).is_err());
    assert_eq!(mock_driver.calls(), Vec::<String>::new(), "the driver is not asked again");
}

#[test]
fn failure_among_several_kernels_names_all_of_them() {
    let mock_driver = MockDriver::default();
    let (device, module) = device(&mock_driver);
    let (x, y) = (memory(&device, 64), memory(&device, 64));
    mock_driver.fails_at("wait", DriverFailureKind::Lost, "unspecified launch failure");
    let error = launch(&module, &[0, 1], [&x, &y]).unwrap_err();
    let said = "one of the kernels `add_0_kernel`, `add_1_kernel` failed on the device: unspecified launch failure";
    assert_eq!((error.to_string().as_str(), error.kernel()), (said, None));
}

#[test]
fn refused_launch_leaves_the_device_usable() {
    let mock_driver = MockDriver::default();
    let (device, module) = device(&mock_driver);
    let (x, y) = (memory(&device, 64), memory(&device, 64));
    mock_driver.fails_at("launch", DriverFailureKind::Call, "too many resources requested for launch");
    let error = launch(&module, &[0], [&x, &y]).unwrap_err();
    assert_eq!(error.to_string(), "kernel `add_0_kernel` cannot be launched: too many resources requested for launch");
    assert!(!error.is_lasting());
    launch(&module, &[0], [&x, &y]).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn endless_kernels_time_out() {
    let mock_driver = MockDriver::default();
    let (device, module) = device(&mock_driver);
    let (x, y) = (memory(&device, 64), memory(&device, 64));
    device.limit(Some(Duration::from_secs(7)));
    mock_driver.hangs();
    let error = launch(&module, &[1], [&x, &y]).unwrap_err();
    assert_eq!(error.to_string(), "kernel `add_1_kernel` did not end in 7 s and is given up");
    assert!(error.is_lasting() && device.synchronize().is_err());
}

#[test]
fn a_copy_does_not_wait_for_a_kernel_that_does_not_end() {
    let mock_driver = MockDriver::default();
    let (device, module) = device(&mock_driver);
    let (x, y) = (memory(&device, 64), memory(&device, 64));
    device.limit(Some(Duration::from_secs(7)));
    mock_driver.hangs();
    let values = vec![Some(16); module.source().functions[1].vars.len()];
    module.launch(1, &[&x, &y], &values).unwrap();
    // The third piece reuses the memory of the first, whose copy waits for the kernel that does not end.
    let error = device.upload(&vec![0; 9 << 20]).unwrap_err();
    assert_eq!(error.to_string(), "kernel `add_1_kernel` did not end in 7 s and is given up");
    assert!(error.is_lasting() && device.synchronize().is_err());
}

#[test]
fn small_copies_wait_for_the_slot_they_take() {
    let mock_driver = MockDriver::default();
    let (device, _module) = device(&mock_driver);
    device.limit(Some(Duration::from_secs(7)));
    // The error cell was uploaded through the first slot.
    for _ in 1..16 {
        device.upload(&[1, 2, 3]).unwrap();
    }
    let calls = mock_driver.calls();
    assert!(!calls.contains(&"wait".to_owned()), "{calls:?}");
    device.upload(&[4]).unwrap();
    assert_eq!(mock_driver.calls(), ["wait", "write_pinned 0", "copy_pinned_to_device 0 1"]);
    mock_driver.hangs();
    assert!(device.upload(&[5]).is_err_and(|error| error.is_lasting()));
}

#[test]
fn copies_are_direct_without_pinned_memory() {
    let mock_driver = MockDriver::default();
    mock_driver.fails_at("pin", DriverFailureKind::Memory, "no more memory of the host");
    let (device, _module) = device(&mock_driver);
    device.upload(&[1, 2, 3]).unwrap();
    assert_eq!(mock_driver.calls(), ["allocate 512", "copy_to_device 3"]);
}

#[test]
fn nothing_is_copied_of_a_buffer_without_bytes() {
    let mock_driver = MockDriver::default();
    let (device, _) = device(&mock_driver);
    let empty = memory(&device, 0);
    mock_driver.calls();
    assert!(device.download(&empty).is_ok_and(|bytes| bytes.is_empty()));
    assert_eq!(mock_driver.calls(), ["wait"]);
}

#[test]
fn recorder_rejects_memory_that_was_not_allocated() {
    let mock_driver = MockDriver::default();
    assert!(mock_driver.copy_to_device(&[1], 7).is_err_and(|refused| refused.kind == DriverFailureKind::Lost));
}
