//! Benchmark of runtime checks: the cost of the checks that compiled code performs for facts that could not be proved,
//! such as indices in range and assertions.
//!
//! ```text
//! cargo run --release -p rx-bench --features guards --bin guards -- FOLDER [--runs 15]
//! ```
//! Every kernel of the programs `FOLDER/*.rx`, and of operators whose indices are data, runs alternately with its
//! checks and without them, on the same arguments. The figures are medians of the thread's CPU time. Kernels without a
//! check have the same code both times and count as equal. A model's ratio is that of the sums over its kernels; the
//! geometric mean of the ratios is printed too. The exit status is 1 if it exceeds the limit (issue 6): 1.03.

use rx_base::name::name;
use rx_bench::measure::Samples;
use rx_build::Device;
use rx_cpu::{Arguments, CheckCost};
use rx_db::{FileKind, Workspace};
use rx_tensor::{Scalar, Tensor};
use rx_tir::{Param, PrimFunc, evaluate_index};
use std::process::ExitCode;
use std::time::Duration;

/// The limit for the geometric mean of the ratios: time with checks / time without.
const BAR: f64 = 1.03;

/// The value of every symbol.
const EXTENT: i64 = 16;

/// Indices are less than this if the kernel accepts that; otherwise all are 0.
const INDICES: i64 = 13;

/// Kernels with more bytes of arguments are skipped.
const MOST_BYTES: u64 = 1 << 28;

/// Operators whose indices are data: name, the function's parameters, its result type, its single call.
const INDEXED: [(&str, &str, &str, &str); 9] = [
    (
        "take of rows",
        "x: R.Tensor((4096, 256), \"float32\"), i: R.Tensor((2048,), \"int32\")",
        "R.Tensor((2048, 256), \"float32\")",
        "R.take(x, i, axis=0)",
    ),
    (
        "take of elements",
        "x: R.Tensor((65536,), \"float32\"), i: R.Tensor((65536,), \"int32\")",
        "R.Tensor((65536,), \"float32\")",
        "R.take(x, i, axis=0)",
    ),
    (
        "take of columns",
        "x: R.Tensor((512, 256), \"float32\"), i: R.Tensor((128,), \"int64\")",
        "R.Tensor((512, 128), \"float32\")",
        "R.take(x, i, axis=1)",
    ),
    (
        "gather_elements",
        "x: R.Tensor((512, 256), \"float32\"), i: R.Tensor((512, 256), \"int64\")",
        "R.Tensor((512, 256), \"float32\")",
        "R.gather_elements(x, i, axis=1)",
    ),
    (
        "gather_nd",
        "x: R.Tensor((256, 256, 16), \"float32\"), i: R.Tensor((4096, 2), \"int64\")",
        "R.Tensor((4096, 16), \"float32\")",
        "R.gather_nd(x, i, batch_dims=0)",
    ),
    (
        "scatter_elements",
        "x: R.Tensor((512, 256), \"float32\"), i: R.Tensor((512, 256), \"int64\"), u: R.Tensor((512, 256), \"float32\")",
        "R.Tensor((512, 256), \"float32\")",
        "R.scatter_elements(x, i, u, axis=1, reduction=\"update\")",
    ),
    (
        "scatter_nd",
        "x: R.Tensor((256, 256, 16), \"float32\"), i: R.Tensor((4096, 2), \"int64\"), u: R.Tensor((4096, 16), \"float32\")",
        "R.Tensor((256, 256, 16), \"float32\")",
        "R.scatter_nd(x, i, u, reduction=\"update\")",
    ),
    (
        "strided_slice",
        "x: R.Tensor((512, 512), \"float32\")",
        "R.Tensor((256, 512), \"float32\")",
        "R.strided_slice(x, (0,), (0,), (512,), (2,), assume_inbound=False)",
    ),
    (
        "index_tensor",
        "x: R.Tensor((256, 256), \"float32\"), i: R.Tensor((65536,), \"int64\"), j: R.Tensor((65536,), \"int64\")",
        "R.Tensor((65536,), \"float32\")",
        "R.index_tensor(x, (i, j))",
    ),
];

/// The times of a program's kernels, with checks and without.
#[derive(Default)]
struct Cost {
    kernels: usize,
    checks: usize,
    times: [Duration; 2],
}

impl Cost {
    fn ratio(&self) -> f64 {
        self.times[0].as_secs_f64() / self.times[1].as_secs_f64()
    }
}

fn options() -> Result<(Vec<String>, usize), String> {
    let (mut folders, mut runs) = (Vec::new(), 15);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--runs" => runs = args.next().and_then(|text| text.parse().ok()).ok_or("--runs needs a number")?,
            _ => folders.push(arg),
        }
    }
    Ok((folders, runs))
}

/// Returns the programs to measure: name and text of each.
fn programs(folders: &[String]) -> Result<Vec<(String, String)>, String> {
    let mut programs: Vec<(String, String)> = Vec::new();
    for (title, parameters, result, call) in INDEXED {
        let text = format!(
            "@I.ir_module\nclass Module:\n    @R.function\n    def main({parameters}) -> {result}:\n        y: {result} = {call}\n        return y\n"
        );
        programs.push((title.to_owned(), text));
    }
    for folder in folders {
        let wrong = |error: std::io::Error| format!("{folder}: {error}");
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).map_err(wrong)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "rx"));
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(wrong)?;
            programs.push((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), text));
        }
    }
    Ok(programs)
}

/// Measures the checks of a program's `main`.
fn cost(text: &str, runs: usize) -> Result<Cost, String> {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    let lowered = rx_build::program(&workspace, workspace.first_module(file), name("main"), &Device::Cpu);
    let program = lowered.map_err(|problems| problems.first().map_or("", |problem| &problem.message).to_owned())?;
    let mut cost = Cost::default();
    for kernel in &program.kernels {
        if bytes(&kernel.loops).is_none_or(|bytes| bytes > MOST_BYTES) {
            continue;
        }
        let both = CheckCost::of(&kernel.loops).map_err(|error| error.to_string())?;
        cost.kernels += 1;
        cost.checks += both.checks();
        // If there are no checks, both variants are the same code, so one run suffices.
        let runs = if both.checks() == 0 { 1 } else { runs };
        let times = measure(&kernel.loops, &both, runs, INDICES)
            .or_else(|_| measure(&kernel.loops, &both, runs, 1))
            .map_err(|error| format!("{}: {error}", kernel.name))?;
        let median = |which: usize| Samples::new(times.iter().map(|time| time[which]).collect()).median();
        let without = median(1);
        cost.times[0] += if both.checks() == 0 { without } else { median(0) };
        cost.times[1] += without;
    }
    Ok(cost)
}

/// Returns the size of a kernel's buffers in bytes; `None` if unknown.
fn bytes(func: &PrimFunc) -> Option<u64> {
    func.buffer_params().try_fold(0u64, |sum, buffer| {
        let buffer = func.buffer(buffer);
        let extents = buffer.shape.iter().map(|extent| evaluate_index(extent, &|_| Some(EXTENT)));
        let bytes = extents
            .map(|extent| u64::try_from(extent?).ok())
            .try_fold(buffer.dtype.bytes(), |bytes, extent| bytes.checked_mul(extent?));
        sum.checked_add(bytes?)
    })
}

/// Measures a kernel on arbitrary arguments: integers below `indices`, floats between 0 and 1.
fn measure(func: &PrimFunc, both: &CheckCost, runs: usize, indices: i64) -> Result<Vec<[Duration; 2]>, String> {
    let (mut shapes, mut buffers, mut scalars) = (Vec::new(), Vec::new(), Vec::new());
    for param in &func.params {
        match param {
            Param::Scalar(var) if func.var(*var).dtype.is_float() => scalars.push(Scalar::Float(0.5)),
            Param::Scalar(_) => scalars.push(Scalar::Int(EXTENT)),
            Param::Buffer(buffer) => {
                let buffer = func.buffer(*buffer);
                let extents = buffer.shape.iter().map(|extent| evaluate_index(extent, &|_| Some(EXTENT)));
                let shape: Vec<i64> = extents.collect::<Option<_>>().ok_or("an extent that is not known")?;
                let mut tensor = Tensor::zeros(buffer.dtype, &shape).map_err(|error| error.to_string())?;
                for at in 0..tensor.len() {
                    let number = (at as i64).wrapping_mul(7919) % 1000;
                    tensor.set(
                        at,
                        match buffer.dtype.is_float() {
                            true => Scalar::Float(number as f64 / 1000.0),
                            false => Scalar::Int(number % indices),
                        },
                    );
                }
                shapes.push(shape);
                buffers.push(tensor.bytes().to_vec());
            }
        }
    }
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let arguments = Arguments { buffers: &buffers, shapes: &shapes, scalars: &scalars };
    let start = cpu_time::ThreadTime::now();
    both.measure(&arguments, runs, &|| start.elapsed()).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let programs = options().and_then(|(folders, runs)| Ok((programs(&folders)?, runs)));
    let (programs, runs) = match programs {
        Ok(programs) => programs,
        Err(message) => {
            eprintln!("guards: {message}");
            return ExitCode::from(2);
        }
    };
    println!("{:<24}{:>8}{:>8}{:>12}{:>8}", "program", "kernels", "checks", "checked ms", "ratio");
    let (mut logarithms, mut failed) = (Vec::new(), false);
    for (title, text) in &programs {
        match cost(text, runs) {
            Ok(cost) => {
                let milliseconds = cost.times[0].as_secs_f64() * 1e3;
                println!("{title:<24}{:>8}{:>8}{milliseconds:>12.3}{:>8.3}", cost.kernels, cost.checks, cost.ratio());
                logarithms.push(cost.ratio().ln());
            }
            Err(reason) => {
                println!("{title:<24} not measured: {reason}");
                // The programs of `INDEXED` must run.
                failed |= INDEXED.iter().any(|(own, ..)| own == title);
            }
        }
    }
    let mean = (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp();
    println!("geometric mean of checked/unchecked {mean:.3} (bar {BAR})");
    ExitCode::from(u8::from(failed || mean > BAR))
}
