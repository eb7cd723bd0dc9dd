//! The command line of `rxrun`, parsed by clap.

use clap::{Parser, ValueEnum};
use rx_cuda::rules::{RuleOrder, Target, arch};
use std::io::IsTerminal;
use std::path::PathBuf;

const AFTER: &str = "\
Arrays are matched to parameters by name. If no name is equal, names are compared with every character that an identifier cannot have
replaced by `_`. The fields of a tuple `t` are `t.0`, `t.1`, …; a shape is a vector of integers. `out0`, `out1`, … are ignored. Other
arrays that match no parameter are reported, and a file in which no array matches is an error. Dtypes that NumPy does not have are
read and written as others: bfloat16 and 8-bit floats as their bits (uint16, uint8); int4, uint4 and float4_e2m1fn as their values
(int8, uint8, float32). Parameters without an array get random values drawn from the seed (docs/random.md). Symbolic dims get their
values from the arrays or from --dim. The defaults of these options can be set in the table [run] of rx.toml.

--profile, --trace and --values each use an additional run, in which the device finishes each kernel before it starts the next. The
times printed by --profile are sums over one such run and do not depend on --repeat. If an additional run fails, the failure is
reported, but the runs before it still count as successful.

Exit status:
  0  the function ran (and with --check, the results are equal)
  1  the program has errors, cannot be run, or failed; or the results of --check differ
  2  wrong usage, inputs that do not match the parameters, a file that cannot be read or written, or a mistake in rx.toml
  3  a bug in rxrun itself";

/// Checks, compiles and runs a function of a Relax module.
#[derive(Parser, Debug)]
#[command(name = "rxrun", version, after_help = AFTER)]
pub struct Args {
    /// The program: Relax text, a Python file (`.py`) or a Jupyter notebook (`.ipynb`), or `-` for standard input, which is not read as
    /// a notebook.
    pub file: PathBuf,

    /// The module to run or print, by the name of its class. `NAME#2` is the second class of that name; `-` is the functions outside
    /// of classes [default: the only module, otherwise the only one with the function of --entry].
    #[arg(long, value_name = "NAME", overrides_with = "module", allow_hyphen_values = true)]
    pub module: Option<String>,

    /// The Relax function to call; with --emit, also a prim_func [default: `main`, otherwise the only public Relax function].
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,

    /// The value of one parameter: NAME=FILE.npy.
    #[arg(long = "input", value_name = "NAME=FILE", value_parser = name_and_path)]
    pub input: Vec<(String, PathBuf)>,

    /// The values of parameters by name: an .npz or .safetensors file.
    #[arg(long, value_name = "FILE")]
    pub inputs: Vec<PathBuf>,

    /// Weights: an .npz or .safetensors file with an array for every parameter at or after the function's `num_input`. Missing,
    /// unused and mistyped arrays are reported. If another function prepares the weights (`main_transform_params`), and names and
    /// shapes do not show whether the arrays are the weights before or after that preparation, give `raw` or `prepared`.
    #[arg(long, value_name = "FILE|raw|prepared", value_parser = weights)]
    pub weights: Vec<Weights>,

    /// Values of constants whose data is not in the text: an .npz or .safetensors file. An array's name is the key and index after
    /// `metadata` in the text, such as `ir.GenericConst[0]`. These arrays take precedence over the text's metadata section.
    #[arg(long, value_name = "FILE")]
    pub constants: Vec<PathBuf>,

    /// Convert weights of another dtype to the parameter's dtype.
    #[arg(long, requires = "weights")]
    pub convert_weights: bool,

    /// The seed of the random values of parameters that have no array [default: 0].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// The value of a symbolic dim: n=4. With --emit schedule, threads and work are counted for these values.
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = dim)]
    pub dims: Vec<(String, i64)>,

    /// Write the results to this file as arrays out0, out1, …, with tuples flattened.
    #[arg(long, value_name = "FILE.npz", conflicts_with_all = ["emit", "explain_schedule"])]
    pub output: Option<PathBuf>,

    /// Compare the results with the arrays out0, out1, … of a file.
    #[arg(long, value_name = "FILE.npz", conflicts_with_all = ["emit", "explain_schedule"])]
    pub check: Option<PathBuf>,

    /// The absolute tolerance of --check: |result - expected| <= atol + rtol * |expected|.
    #[arg(long, value_name = "X", default_value_t = 1e-4)]
    pub atol: f64,

    /// The relative tolerance of --check.
    #[arg(long, value_name = "X", default_value_t = 1e-4)]
    pub rtol: f64,

    /// The device to run on [default: auto].
    #[arg(long, value_enum)]
    pub device: Option<Device>,

    /// Run K times and print the fastest and the median time.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat: u32,

    /// Call the function N times in each run, and report the average time of one call. On a GPU, the host waits only after the last
    /// call, so that the time of a small function does not include the launch latency. No progress is printed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: u32,

    /// Stop a call with an error after a total of N loop iterations and function calls, in case the program does not terminate.
    /// Ctrl-C stops it at once.
    #[arg(long, alias = "max-rounds", value_name = "N", default_value_t = 1_000_000_000_000_000)]
    pub max_iterations: u64,

    /// On a GPU, stop the run with an error if its kernels take longer than S seconds. This process then no longer uses the GPU.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_seconds: u64,

    /// After the runs, run once more and print for each kernel its time, its arithmetic operations, the bytes of its arguments (each
    /// argument counted once) and the statements that it computes.
    #[arg(long, overrides_with = "profile", conflicts_with_all = ["emit", "explain_schedule"])]
    pub profile: bool,

    /// After the runs, run once more and write a trace of the kernels for chrome://tracing or Perfetto.
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["emit", "explain_schedule"])]
    pub trace: Option<PathBuf>,

    /// After the runs, run once more without fusion and describe the last value of each variable.
    #[arg(long, overrides_with = "values", conflicts_with_all = ["emit", "explain_schedule"])]
    pub values: bool,

    /// Print a stage of the program, and run nothing.
    #[arg(long, value_enum, value_name = "STAGE")]
    pub emit: Option<Emit>,

    /// The passes of --emit passes, in the syntax of `rxopt --pass` [default: the steps that produce the kernels of --device].
    #[arg(long, value_name = "PASSES", requires = "emit")]
    pub passes: Option<String>,

    /// The GPU architecture that --emit and --device cuda-sim generate kernels for, such as `sm_80` or `sm_90a`.
    #[arg(long, value_name = "SM", default_value = "sm_80", value_parser = arch)]
    pub arch: u32,

    /// The schedule rules to try for CUDA kernels, in this order; the fallback is always tried last [default: all].
    #[arg(long, value_name = "RULE,…", value_parser = rules)]
    pub schedule: Option<RuleOrder>,

    /// Let CUDA kernels multiply float32 on tensor cores in tf32 (10 bits of fraction): several times as fast, and less exact than
    /// on the CPU.
    #[arg(long, overrides_with = "tf32")]
    pub tf32: bool,

    /// With --device cuda-sim: report out-of-bounds accesses and undefined behavior as errors, and run every kernel with several
    /// orders of its threads, whose results must be equal. Takes several times as long.
    #[arg(long, overrides_with = "sanitize")]
    pub sanitize: bool,

    /// Print the schedule rule of each CUDA kernel and why earlier rules were not used, and run nothing; the same as `--emit schedule`.
    #[arg(long, conflicts_with = "emit", overrides_with = "explain_schedule")]
    pub explain_schedule: bool,

    /// Use this settings file instead of the nearest rx.toml above the program.
    #[arg(long, value_name = "PATH", conflicts_with = "isolated")]
    pub config: Option<PathBuf>,

    /// Ignore every rx.toml.
    #[arg(long)]
    pub isolated: bool,

    /// The format of the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// When to color diagnostics.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,

    /// Log the steps of rxrun with their times to standard error; the environment variable RX_LOG filters them.
    #[arg(long)]
    pub verbose: bool,

    /// The path of standard input in diagnostics; if it ends in `.py`, the text is parsed as Python.
    #[arg(long, value_name = "PATH", default_value = "<stdin>")]
    pub stdin_name: String,
}

/// Values of `--device`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// A CUDA device if there is one, otherwise the CPU.
    Auto,
    /// The CPU, with compiled kernels.
    Cpu,
    /// A CUDA device.
    Cuda,
    /// The reference interpreter: slow, with every access checked.
    Interp,
    /// A simulator, which compiles the CUDA C with a C++ compiler and runs it on the CPU: slow, to check kernels without a GPU.
    CudaSim,
}

/// A value of `--weights`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weights {
    /// `raw` or `prepared`: the kind of all weight arrays.
    Are(Kind),
    /// A file of weight arrays.
    File(PathBuf),
}

/// Whether the weights given for a function are raw or prepared, where another function of the module prepares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// As the model defines them, to be passed to `…transform_params`.
    Raw,
    /// As the function takes them, already transformed.
    Prepared,
}

/// Values of `--emit`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emit {
    /// The Relax module, as parsed and printed by rx.
    Relax,
    /// The module before the first pass and after each pass of --passes.
    Passes,
    /// The kernels as TIR loops, after fusion.
    Tir,
    /// The kernels as CUDA C.
    Cuda,
    /// The schedule rule of each CUDA kernel and why earlier rules were not used, the kernel's threads and work (for the dims of --dim,
    /// otherwise 1) and, with NVRTC, its registers and memory. With --format json also an object per kernel (docs/json.md).
    Schedule,
    /// The kernels as PTX; needs NVRTC.
    Ptx,
    /// The kernels as machine code of the architecture; needs NVRTC and nvdisasm.
    Sass,
    /// The kernels as scheduled for the CPU.
    Cpu,
}

/// Values of `--format`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Human-readable.
    Text,
    /// One JSON object per event, each on its own line (docs/json.md).
    Json,
}

/// Values of `--color`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ColorChoice {
    /// If standard error is a terminal and NO_COLOR is not set.
    Auto,
    /// Always, also in files.
    Always,
    /// Never.
    Never,
}

impl Args {
    /// The kind of weights given by `--weights raw` or `--weights prepared`; the last one on the command line applies.
    pub fn kind_of_weights(&self) -> Option<Kind> {
        self.weights.iter().rev().find_map(|weights| match weights {
            Weights::Are(kind) => Some(*kind),
            Weights::File(_) => None,
        })
    }

    /// The files given by `--weights FILE`.
    pub fn weight_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.weights.iter().filter_map(|weights| match weights {
            Weights::File(path) => Some(path),
            Weights::Are(_) => None,
        })
    }

    /// The stage to print instead of running; `--explain-schedule` is short for `--emit schedule`.
    pub fn stage(&self) -> Option<Emit> {
        self.emit.or(self.explain_schedule.then_some(Emit::Schedule))
    }

    /// The target of CUDA kernels where there is no actual device (`--emit`, `--device cuda-sim`).
    pub fn target(&self) -> Target {
        Target { arch: self.arch, rules: self.rules(), tf32: self.tf32, ..Target::default() }
    }

    /// The schedule rules to try for CUDA kernels, in order (`--schedule`).
    pub fn rules(&self) -> RuleOrder {
        self.schedule.clone().unwrap_or_default()
    }

    /// Whether to colour standard error, where diagnostics are printed.
    pub fn color(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => rx_report::colors_by_default(std::io::stderr().is_terminal()),
        }
    }
}

fn name_and_path(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        _ => Err("write NAME=FILE.npy".to_owned()),
    }
}

/// Parses a value of `--weights`. A file that is called `raw` or `prepared` must be written `./raw`.
fn weights(text: &str) -> Result<Weights, String> {
    match text {
        "raw" => Ok(Weights::Are(Kind::Raw)),
        "prepared" => Ok(Weights::Are(Kind::Prepared)),
        "" => Err("write a file, raw or prepared".to_owned()),
        path => Ok(Weights::File(path.into())),
    }
}

/// Parses a value of `--schedule`: comma-separated names of rules.
fn rules(text: &str) -> Result<RuleOrder, String> {
    RuleOrder::of(text.split(',').map(str::trim)).map_err(|error| error.to_string())
}

fn dim(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    match value.trim().parse::<i64>() {
        Ok(value) if value >= 0 => Ok((name.trim().to_owned(), value)),
        _ => Err(format!("`{value}` is not a valid extent: write an integer of 0 or more")),
    }
}
