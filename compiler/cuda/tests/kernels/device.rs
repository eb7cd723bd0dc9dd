//! On a GPU.
//!
//! With `RX_GPU_REPORT` naming a file, a line of JSON per case is added to it: what ran, and the milliseconds its kernels
//! needed.

use crate::case::Case;
use rx_cuda::device::{Device, DeviceBuffer, DeviceError, Module};
use rx_cuda::images::Kept;
use rx_cuda::rules::Target;
use serde_json::json;
use std::io::Write as _;

/// A device, or nothing where there is none or NVRTC is missing.
fn device() -> Option<Device> {
    if !crate::nvrtc::is_found() {
        return None;
    }
    match Device::probe() {
        Ok(device) => Some(device),
        Err(error @ (DeviceError::NoDriver | DeviceError::NoDevice | DeviceError::TooOld { .. })) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a case, the kernels' milliseconds beside.
fn run(device: &Device, module: &Module, function: usize, case: &Case) -> (f32, Result<(), String>) {
    let mut milliseconds = 0.0;
    let mut outcome = || {
        let buffers = case.bytes().into_iter().map(|bytes| device.upload(bytes)).collect::<Result<Vec<_>, _>>()?;
        let passed: Vec<&DeviceBuffer> = buffers.iter().collect();
        milliseconds = device.milliseconds(|| module.launch(function, &passed, &case.values()))?;
        module.finish()?;
        buffers.iter().map(|buffer| device.download(buffer)).collect::<Result<Vec<_>, _>>()
    };
    let verdict = match outcome() {
        Ok(buffers) => case.judge(&Ok(buffers)),
        Err(DeviceError::Fault(fault)) => case.judge(&Err(fault)),
        Err(error) => Err(format!("{}: {error}", case.name)),
    };
    (milliseconds, verdict)
}

/// Panics with all cases that do not agree with the interpreter.
fn agree(group: &str, cases: Vec<Case>) {
    agree_for(group, cases, &Target::default());
}

/// The same of what is printed for a target.
fn agree_for(group: &str, mut cases: Vec<Case>, target: &Target) {
    let Some(device) = device() else { return };
    for case in &mut cases {
        // A device multiplies and adds in one rounding, and its functions are within some units of the last place.
        case.tolerance = if case.tolerance == 0.0 { 0.0 } else { case.tolerance.max(1e-5) };
    }
    let module = device
        .load(crate::source_for(&cases, target), &Kept::nothing(), &mut |_, _| ())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut report = String::new();
    let mut failures = Vec::new();
    for (function, case) in cases.iter().enumerate() {
        let (milliseconds, verdict) = run(&device, &module, function, case);
        let line = json!({
            "device": device.name(), "group": group, "case": case.name, "function": case.func.name.as_str(),
            "milliseconds": milliseconds, "ok": verdict.is_ok(), "error": verdict.as_ref().err(),
        });
        report.push_str(&format!("{line}\n"));
        failures.extend(verdict.err());
    }
    if let Some(path) = std::env::var_os("RX_GPU_REPORT") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(report.as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

#[test]
fn kernels_agree_on_a_device() {
    agree("kernels", crate::made());
    agree("rows", crate::rows::cases().into_iter().map(|one| one.case).collect());
}

#[test]
fn products_agree_on_a_device() {
    let Some(arch) = device().map(|device| device.arch()) else { return };
    agree_for("products", crate::products::cases(), &Target { arch, ..crate::small_device() });
    if arch == 90 {
        agree_for("sm_90a", crate::hopper::cases(), &crate::hopper::hopper(1));
    }
}

#[test]
fn operators_agree_on_a_device() {
    for (family, cases) in crate::operators::families() {
        agree(&family, cases);
    }
}
