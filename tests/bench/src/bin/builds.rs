//! Benchmark of edits of attributes: the time from a changed text to its loops and its CUDA C, in CPU time of one
//! thread.
//!
//! ```text
//! cargo run --profile dist -p rx-bench --features builds --bin builds -- FILE…
//! ```
//! The numbers after `epsilon=` and `R.const(` and the axes of `softmax` are changed one after another, each to a value
//! that has not occurred before. Limits (issue 29): the loops of all kernels ≤ 10 ms, their CUDA C ≤ 20 ms, memory ≤
//! 400 MB.

use rx_base::name::name;
use rx_bench::measure::{Samples, peak_memory, thread_cpu_time};
use rx_build::Device;
use rx_build::listing;
use rx_db::{FileId, FileKind, Workspace};
use rx_lower::Program;
// The allocator of the server, which runs the same queries.
use rx_memory as _;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most edits of a kind.
const EDITS: usize = 40;

/// The stack size in bytes: lowering recurses as deep as expressions are nested.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    let run = || std::env::args().skip(1).try_for_each(|path| file(&path).map_err(|error| format!("{path}: {error}")));
    let done = std::thread::Builder::new().stack_size(STACK).spawn(run).map(std::thread::JoinHandle::join);
    match done {
        Ok(Ok(Ok(()))) => ExitCode::SUCCESS,
        Ok(Ok(Err(error))) => {
            eprintln!("builds: {error}");
            ExitCode::from(2)
        }
        _ => ExitCode::from(2),
    }
}

fn file(path: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    println!("{path}: {} lines", text.lines().count());
    let mut workspace = Workspace::new();
    let file = workspace.add(&text, FileKind::Rx);
    let cuda = Device::Cuda(Default::default());
    let (first, checked) = thread_cpu_time(|| workspace.diagnostics(file).len());
    let (loops, lowered) = thread_cpu_time(|| loops(&workspace, file, &Device::Cpu));
    let (listed, printed) = thread_cpu_time(|| cuda_c(&workspace, file, &cuda));
    println!(
        "  first: check {} ms ({first} diagnostics), loops {} ms ({} bytes), CUDA C {} ms ({} bytes)",
        millis(checked),
        millis(lowered),
        loops?,
        millis(printed),
        listed?
    );
    for (kind, place) in [("epsilon", "epsilon="), ("constant", "R.const("), ("axis of softmax", "softmax(")] {
        let text = workspace.document(file).text();
        edits(&mut workspace, file, kind, &places(&text, place), &cuda)?;
    }
    println!("  an edit waits for the lowering that it ends: {}", figures(cancelled(&workspace.document(file).text())));
    if let Some(bytes) = peak_memory() {
        println!("  peak memory: {} MB", bytes / 1_000_000);
    }
    Ok(())
}

/// Measures how long an edit waits for a running lowering that it cancels, in wall time. The edits come at different
/// times of the first lowering.
fn cancelled(text: &str) -> Vec<Duration> {
    let moments = (0..20u32).map(|number| Duration::from_millis(3) * number);
    moments
        .map(|moment| {
            let mut workspace = Workspace::new();
            let file = workspace.add(text, FileKind::Rx);
            workspace.diagnostics(file);
            let snapshot = workspace.snapshot();
            let read = move || {
                let _ = snapshot.catch(|snapshot| {
                    let view = snapshot.view(file)?;
                    cuda_c(view.workspace(), file, &Device::Cuda(Default::default())).ok()
                });
            };
            let reader = std::thread::Builder::new().stack_size(STACK).spawn(read);
            std::thread::sleep(moment);
            let start = Instant::now();
            workspace.edit(file, 0..0, "\n");
            let waited = start.elapsed();
            drop(reader.map(std::thread::JoinHandle::join));
            waited
        })
        .collect()
}

/// Returns the positions of the numbers directly after a word; for `softmax` those of the axes.
fn places(text: &str, word: &str) -> Vec<Range<usize>> {
    let number = |(at, _): (usize, &str)| {
        let start = match word {
            "softmax(" => at + text.get(at..)?.find("axis=")? + "axis=".len(),
            _ => at + word.len(),
        };
        let length =
            text.get(start..)?.find(|letter: char| !(letter.is_ascii_alphanumeric() || "+-.".contains(letter)))?;
        let written = text.get(start..start + length)?;
        let fits = if word == "softmax(" { written == "-1" } else { written.contains('.') && written.contains('e') };
        fits.then_some(start..start + length)
    };
    let all: Vec<_> = text.match_indices(word).filter_map(number).collect();
    let step = all.len().div_ceil(EDITS).max(1);
    all.into_iter().step_by(step).collect()
}

/// Changes the text at each place, from last to first, so that earlier places stay valid. After every second edit the
/// loops are computed, after the others the CUDA C.
fn edits(
    workspace: &mut Workspace,
    file: FileId,
    kind: &str,
    places: &[Range<usize>],
    cuda: &Device,
) -> Result<(), String> {
    let (mut to_loops, mut to_cuda) = (Vec::new(), Vec::new());
    for (number, place) in places.iter().enumerate().rev() {
        let value = if kind == "axis of softmax" { "2".to_owned() } else { format!("1.{number:03}e-04") };
        let is_for_loops = number % 2 == 0;
        let (made, time) = thread_cpu_time(|| {
            workspace.edit(file, place.clone(), &value);
            workspace.diagnostics(file);
            if is_for_loops { loops(workspace, file, &Device::Cpu) } else { cuda_c(workspace, file, cuda) }
        });
        made?;
        if is_for_loops { to_loops.push(time) } else { to_cuda.push(time) }
    }
    if !to_loops.is_empty() {
        println!("  {kind}, {} edits: loops {}; CUDA C {}", places.len(), figures(to_loops), figures(to_cuda));
    }
    Ok(())
}

fn figures(times: Vec<Duration>) -> String {
    let first = times.first().copied().unwrap_or_default();
    let samples = Samples::new(times);
    let [median, most] = [50, 100].map(|percent| millis(samples.percentile(percent)));
    format!("first {}, median {median}, most {most} ms", millis(first))
}

fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

fn program(workspace: &Workspace, file: FileId, target: &Device) -> Result<Arc<Program>, String> {
    rx_build::program(workspace, workspace.first_module(file), name("main"), target)
        .map_err(|problems| problems.first().map_or_else(String::new, |problem| problem.message.clone()))
}

fn loops(workspace: &Workspace, file: FileId, target: &Device) -> Result<usize, String> {
    let program = program(workspace, file, target)?;
    Ok(listing::loops(workspace, workspace.first_module(file), &program).text.len())
}

fn cuda_c(workspace: &Workspace, file: FileId, target: &Device) -> Result<usize, String> {
    let program = program(workspace, file, target)?;
    let Device::Cuda(cuda) = target else { return Err("not for CUDA".to_owned()) };
    Ok(listing::cuda(workspace, workspace.first_module(file), &program, cuda).text.len())
}
