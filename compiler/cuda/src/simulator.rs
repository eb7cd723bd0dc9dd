//! Runs the CUDA text on the CPU, to test kernels without a GPU. A C++ compiler compiles the unchanged text after a
//! header (`shim/rx_cuda_cpu.h`), and links it with a runtime that executes each CUDA thread as a fiber
//! (`shim/rx_cuda_cpu.cpp`). It is slow, but runs every thread, in a chosen order, and with sanitizers if wanted.
//!
//! The runtime takes the C++ compiler longer than most texts, so its object file is kept in the [`ImageCache`] of the
//! user.

mod process;

use crate::images::{self, ImageCache};
use crate::source::{ArgumentValue, CudaSource, Fault, Plan, PlanError};
use process::Process;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The files of the header and of the runtime, each with its name.
const SHIM: [(&str, &str); 5] = [
    ("rx_cuda_cpu.h", include_str!("../shim/rx_cuda_cpu.h")),
    ("rx_cuda_hopper.h", include_str!("../shim/rx_cuda_hopper.h")),
    ("rx_cuda_cpu.cpp", include_str!("../shim/rx_cuda_cpu.cpp")),
    ("rx_cuda_hopper.cpp", include_str!("../shim/rx_cuda_hopper.cpp")),
    ("rx_cuda_cpu_main.cpp", include_str!("../shim/rx_cuda_cpu_main.cpp")),
];

/// The options of every compilation. Each operation is rounded separately, as in the interpreter: no contraction to
/// fused multiply-adds. NVRTC compiles the text as C++17; as C++14, `<math.h>` includes less, and a short text compiles
/// in half the time.
const OPTIONS: [&str; 3] = ["-std=c++14", "-ffp-contract=off", "-w"];

/// The options of a compilation with sanitizers. `-Og` leaves all their checks in and compiles large texts in half the
/// time of `-O1`.
const SANITIZED: [&str; 4] = ["-Og", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The order in which blocks, and the threads of a block, are executed. A kernel without data races gives the same bits
/// in every order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By ascending index.
    Ascending,
    /// By descending index. Asynchronous copies then complete at once; in the other orders, as late as they may.
    Descending,
    /// Shuffled by a seed.
    Shuffled(u64),
}

/// The options of the compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// Whether accesses out of bounds and undefined behaviour end the run with an error if the sanitizers of the C++
    /// compiler detect them. Compilation takes longer.
    pub sanitize: bool,
}

/// An error of the simulator.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorError {
    /// No C++ compiler is found.
    #[error("no C++ compiler: set CXX, or install g++ or clang++")]
    NoCompiler,
    /// The compiler rejects the text: its messages.
    #[error("the C++ compiler cannot compile the kernels:\n{0}")]
    Compile(String),
    /// A file could not be written, or the compiler or the process could not be started or waited for.
    #[error("simulator: {0}")]
    Io(#[from] std::io::Error),
    /// The process exited early, for example because of a sanitizer's report or a barrier that not all threads reach:
    /// its messages.
    #[error("the simulated kernels ended early:\n{0}")]
    Run(String),
    /// The launches of a call cannot be planned.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// A call names no function of the source, has a wrong number of buffers, or has a buffer of a wrong size; or the
    /// buffers are too large for the host.
    #[error("{0}")]
    Buffer(String),
}

/// A call of a function of the source.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The index of the function.
    pub function: usize,
    /// The contents of its buffer parameters, in order, outputs included.
    pub buffers: &'a [&'a [u8]],
    /// The values of scalars and symbols, as [`crate::CudaFunction::plan`] takes them.
    pub values: &'a [Option<i64>],
    /// The order in which its blocks, and the threads of a block, are executed.
    pub order: Order,
}

/// The contents of the buffers after a call, or the check that failed.
pub type Outcome = Result<Vec<Vec<u8>>, Fault>;

/// Kernels compiled for the CPU.
#[derive(Debug)]
pub struct Simulator {
    source: CudaSource,
    /// The index of each function's first kernel in the executable's table.
    first_kernels: Vec<usize>,
    executable: PathBuf,
    directory: PathBuf,
    /// The process that runs the kernels. `None` before the first call, and after the process has exited early.
    process: Mutex<Option<Process>>,
}

/// The size in bytes of the error cell, to which the first check that fails writes.
const ERROR_CELL: u64 = 24;

impl Drop for Simulator {
    fn drop(&mut self) {
        // A failure only leaves files in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A C++ compiler.
#[derive(Debug)]
pub struct Compiler {
    /// The name or path of its program.
    program: OsString,
    /// The output of `--version`.
    version: String,
}

/// Returns the C++ compiler: the first that can be run of `CXX`, `g++`, `clang++` and `c++`.
///
/// # Errors
/// If none is found.
pub fn compiler() -> Result<Compiler, SimulatorError> {
    let named = std::env::var_os("CXX").filter(|name| !name.is_empty());
    let usual = ["g++", "clang++", "c++"].map(OsString::from);
    let answer = |program: OsString| {
        let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(Compiler { program, version })
    };
    named.into_iter().chain(usual).find_map(answer).ok_or(SimulatorError::NoCompiler)
}

impl Compiler {
    /// Compiles or links `inputs` with [`OPTIONS`] and `flags`.
    fn run(&self, flags: &[&str], output: &Path, inputs: &[&OsStr]) -> Result<(), SimulatorError> {
        let mut command = Command::new(&self.program);
        command.args(OPTIONS).args(flags).arg("-o").arg(output).args(inputs);
        let output = command.stdin(Stdio::null()).output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(SimulatorError::Compile(String::from_utf8_lossy(&output.stderr).into_owned())),
        }
    }
}

impl Simulator {
    /// Compiles a source.
    ///
    /// # Errors
    /// If there is no compiler, if it rejects the text, or if a file cannot be written.
    pub fn build(source: &CudaSource, options: Options) -> Result<Simulator, SimulatorError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let compiler = compiler()?;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("rx-simulator-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let mut first_kernels = Vec::with_capacity(source.functions.len());
        let mut kernels = 0;
        for function in &source.functions {
            first_kernels.push(kernels);
            kernels += function.kernels.len();
        }
        let executable = directory.join("kernels");
        let simulator =
            Simulator { source: source.clone(), first_kernels, executable, directory, process: Mutex::new(None) };
        for (name, text) in SHIM {
            std::fs::write(simulator.directory.join(name), text)?;
        }
        std::fs::write(simulator.directory.join("kernels.cu"), &source.text)?;
        std::fs::write(simulator.directory.join("program.cpp"), simulator.program())?;
        simulator.compile(&compiler, options)?;
        Ok(simulator)
    }

    fn program(&self) -> String {
        let mut text = String::from("#include \"rx_cuda_cpu.h\"\n#include \"kernels.cu\"\n\n");
        text.push_str("void (*const rx_cpu_kernels[])(void**) = {\n");
        for kernel in self.source.functions.iter().flat_map(|function| &function.kernels) {
            let _ = writeln!(text, "    [](void** arguments) {{ rx_cpu_apply({}, arguments); }},", kernel.name);
        }
        // C++ does not allow an array without elements.
        text.push_str("    nullptr,\n};\n");
        text
    }

    fn compile(&self, compiler: &Compiler, options: Options) -> Result<(), SimulatorError> {
        let runtime = self.directory.join("runtime.o");
        let flags: &[&str] = if options.sanitize { &SANITIZED } else { &["-O1"] };
        let cache = ImageCache::of_user();
        let key = images::hash(
            ["rx simulator 1\n", &compiler.version, &OPTIONS.join(" "), &flags.join(" ")]
                .into_iter()
                .chain(SHIM.map(|(_, text)| text)),
        );
        match cache.get(&key) {
            Some(object) => std::fs::write(&runtime, object)?,
            None => {
                compiler.run(flags, &runtime, &["-c".as_ref(), self.directory.join("rx_cuda_cpu.cpp").as_ref()])?;
                cache.put(&key, &std::fs::read(&runtime)?);
            }
        }
        compiler.run(flags, &self.executable, &[self.directory.join("program.cpp").as_ref(), runtime.as_ref()])
    }

    /// Executes the calls in order, each with separate copies of its buffers.
    ///
    /// # Errors
    /// If a call does not match its function, if its launches cannot be planned, or if the process cannot be started or
    /// exits early.
    pub fn run(&self, calls: &[Call<'_>]) -> Result<Vec<Outcome>, SimulatorError> {
        let mut input = Vec::new();
        let plans = calls.iter().map(|call| self.request(call, &mut input)).collect::<Result<Vec<_>, _>>()?;
        // Command 7 flushes the output of the process, so that the results can be read.
        input.push(7);
        let bytes = plans.iter().flat_map(|plan| plan.buffers.iter().chain([&ERROR_CELL])).sum();
        let output = self.process(&input, bytes)?;
        let mut rest = output.as_slice();
        plans.iter().map(|plan| self.answer(plan, &mut rest)).collect()
    }

    /// Writes the commands of a call. Buffer 0 is the error cell; the parameters and the temporaries follow.
    fn request(&self, call: &Call<'_>, input: &mut Vec<u8>) -> Result<Plan, SimulatorError> {
        let function = self.source.functions.get(call.function);
        let function =
            function.ok_or_else(|| SimulatorError::Buffer(format!("there is no function {}", call.function)))?;
        let plan = function.plan(call.values)?;
        let passed: Vec<u64> = call.buffers.iter().map(|buffer| buffer.len() as u64).collect();
        if passed != plan.buffers {
            let wanted = &plan.buffers;
            let message = format!("{} takes buffers of {wanted:?} bytes, {passed:?} are passed", function.name);
            return Err(SimulatorError::Buffer(message));
        }
        let (order, seed) = match call.order {
            Order::Ascending => (0u32, 0),
            Order::Descending => (1, 0),
            Order::Shuffled(seed) => (2, seed),
        };
        input.push(6);
        input.extend(order.to_le_bytes());
        input.extend(seed.to_le_bytes());
        let mut create = |id: usize, bytes: u64, contents: Option<&[u8]>| {
            input.push(if contents.is_some() { 1 } else { 2 });
            input.extend((id as u32).to_le_bytes());
            input.extend(bytes.to_le_bytes());
            input.extend(contents.unwrap_or_default());
        };
        create(0, ERROR_CELL, Some(&[0; ERROR_CELL as usize]));
        for (at, buffer) in call.buffers.iter().enumerate() {
            create(1 + at, buffer.len() as u64, Some(buffer));
        }
        for (at, bytes) in plan.temporaries.iter().enumerate() {
            create(1 + call.buffers.len() + at, *bytes, None);
        }
        for launch in &plan.launches {
            let kernel = self.first_kernels.get(call.function).map_or(0, |first| first + launch.kernel);
            input.push(3);
            let shape = launch.grid.into_iter().chain(launch.block).chain([launch.shared_bytes]);
            let count = launch.arguments.len() + launch.maps.len();
            for number in std::iter::once(kernel as u32).chain(shape).chain([count as u32]) {
                input.extend(number.to_le_bytes());
            }
            let value = |argument: ArgumentValue| match argument {
                ArgumentValue::Error => (1, 0),
                ArgumentValue::Buffer(at) => (1, 1 + at as u64),
                ArgumentValue::Temporary(at) => (1, (1 + call.buffers.len() + at) as u64),
                ArgumentValue::Scalar(value) => (0, value.cast_unsigned()),
            };
            for argument in &launch.arguments {
                let (is_buffer, value) = value(*argument);
                input.push(is_buffer);
                input.extend(value.to_le_bytes());
            }
            for map in &launch.maps {
                let form = &map.form;
                input.push(2);
                let wide = [value(map.buffer).1, map.offset];
                wide.iter().for_each(|number| input.extend(number.to_le_bytes()));
                [form.element_bytes, form.tile.len() as u32]
                    .iter()
                    .for_each(|number| input.extend(number.to_le_bytes()));
                form.extents.iter().chain(&form.strides).for_each(|number| input.extend(number.to_le_bytes()));
                form.tile.iter().for_each(|number| input.extend(number.to_le_bytes()));
            }
        }
        let all = 1 + call.buffers.len() + plan.temporaries.len();
        let read = (0..=call.buffers.len()).map(|id| (4, id));
        for (command, id) in read.chain((0..all).map(|id| (5, id))) {
            input.push(command);
            input.extend((id as u32).to_le_bytes());
        }
        Ok(plan)
    }

    /// Sends commands to the process, which is started if none is running. Returns the `bytes` bytes that the commands
    /// write.
    fn process(&self, commands: &[u8], bytes: u64) -> Result<Vec<u8>, SimulatorError> {
        let too_large = |_| SimulatorError::Buffer("the buffers are too large".to_owned());
        let mut answer = vec![0; usize::try_from(bytes).map_err(too_large)?];
        let mut running = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let mut process = match running.take() {
            Some(process) => process,
            None => Process::start(&self.executable)?,
        };
        match process.ask(commands, &mut answer) {
            Some(()) => {
                *running = Some(process);
                Ok(answer)
            }
            None => Err(SimulatorError::Run(process.end()?)),
        }
    }

    fn answer(&self, plan: &Plan, output: &mut &[u8]) -> Result<Outcome, SimulatorError> {
        let mut take = |bytes: u64| {
            let at = usize::try_from(bytes).ok().filter(|bytes| *bytes <= output.len());
            let at = at.ok_or_else(|| SimulatorError::Run("the output ends too early".to_owned()))?;
            let (taken, rest) = output.split_at(at);
            *output = rest;
            Ok::<_, SimulatorError>(taken.to_vec())
        };
        let cell = take(ERROR_CELL)?;
        let buffers = plan.buffers.iter().map(|bytes| take(*bytes)).collect::<Result<Vec<_>, _>>()?;
        let word = |at: usize| cell[8 * at..][..8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        // The cell has 24 bytes: it was read with that size.
        Ok(match self.source.fault([word(0), word(1), word(2)]) {
            Some(fault) => Err(fault),
            None => Ok(buffers),
        })
    }
}

#[cfg(test)]
mod tests;
