//! The command line of `rxrun`, parsed by clap.

use clap::{Parser, ValueEnum};
use rx_cuda::rules::{RuleOrder, Target, arch};
use std::io::IsTerminal;
use std::path::PathBuf;

const AFTER: &str = "\
Arrays are matched to parameters by name: exactly, else after every character that no identifier has is replaced by `_`. The fields
of a tuple `t` are `t.0`, `t.1`, …, a shape is a vector of integers. `out0`, `out1`, … are passed over; other arrays that are no
parameters are reported, and a file without any that is one is an error. What NumPy has no dtype of is given and written in another:
bfloat16 and 8-bit floats as their bits (uint16, uint8), int4, uint4 and float4_e2m1fn as their values (int8, uint8, float32).
Parameters without an array are drawn from the seed (docs/random.md). Symbolic dims get their values from the arrays, or from --dim.
What the command line does not say, [run] in rx.toml may.

--profile, --trace and --values observe runs of their own, in which the device finishes one kernel before it begins the next. The
times printed by --profile are sums over one such run, whatever --repeat says. What an observed run fails at is said and is
no failure of the run before it.

Exit status:
  0  it ran (and what --check compares is equal)
  1  the program is wrong, cannot be run, or failed; or a comparison did
  2  wrong usage, inputs that do not fit, a file that cannot be read or written, or a mistake in rx.toml
  3  a fault of rxrun itself";

/// Checks, compiles and runs a function of a Relax module.
#[derive(Parser, Debug)]
#[command(name = "rxrun", version, after_help = AFTER)]
pub struct Args {
    /// The program: Relax text, or `-` for standard input.
    pub file: PathBuf,

    /// The module to run or show, by the name of its class; of several classes of a name `NAME#2` is the second, and `-` means the
    /// functions outside of classes [default: the only module, else the only one with the entry].
    #[arg(long, value_name = "NAME", overrides_with = "module", allow_hyphen_values = true)]
    pub module: Option<String>,

    /// The function of the module to call [default: `main`, else the only public Relax function]; with --emit a prim_func, too.
    #[arg(long, value_name = "NAME")]
    pub entry: Option<String>,

    /// A parameter's value: NAME=FILE.npy.
    #[arg(long = "input", value_name = "NAME=FILE", value_parser = name_and_path)]
    pub input: Vec<(String, PathBuf)>,

    /// Parameters' values, by name: an .npz or .safetensors file.
    #[arg(long, value_name = "FILE")]
    pub inputs: Vec<PathBuf>,

    /// Weights: an .npz or .safetensors file in which every parameter from the function's `num_input` on must have an
    /// array; arrays that are missing, of another type or unused are reported. `raw` or `prepared` says what arrays are of a function
    /// whose weights another prepares (`main_transform_params`), where names and shapes do not tell.
    #[arg(long, value_name = "FILE|raw|prepared", value_parser = weights)]
    pub weights: Vec<Weights>,

    /// Constants that the text has no data of: an .npz or .safetensors file whose arrays are called by key and index,
    /// `ir.GenericConst[0]`, as the text calls them behind `metadata`. They go before what its metadata section has.
    #[arg(long, value_name = "FILE")]
    pub constants: Vec<PathBuf>,

    /// Convert weights of another dtype to the parameter's.
    #[arg(long, requires = "weights")]
    pub convert_weights: bool,

    /// Seed of the values of parameters that have no array [default: 0].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// A symbolic dim's value: n=4. With --emit schedule what threads and work are counted for.
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = dim)]
    pub dims: Vec<(String, i64)>,

    /// Where to write what the function returns: out0, out1, …, tuples flattened.
    #[arg(long, value_name = "FILE.npz", conflicts_with_all = ["emit", "explain_schedule"])]
    pub output: Option<PathBuf>,

    /// Compare what is returned with out0, out1, … of a file.
    #[arg(long, value_name = "FILE.npz", conflicts_with_all = ["emit", "explain_schedule"])]
    pub check: Option<PathBuf>,

    /// What --check allows beyond --rtol.
    #[arg(long, value_name = "X", default_value_t = 1e-4)]
    pub atol: f64,

    /// What --check allows, relative to the value that is expected.
    #[arg(long, value_name = "X", default_value_t = 1e-4)]
    pub rtol: f64,

    /// Where to run [default: auto].
    #[arg(long, value_enum)]
    pub device: Option<Device>,

    /// Run K times; the time printed is the fastest's, beside the median.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat: u32,

    /// In each run call the function N times, one behind the other; the times are of one call, on average. On a GPU the host waits behind
    /// the last, so that the times of small functions are the GPU's and not those of launching. No progress is printed.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: u32,

    /// End a call with an error after N iterations of loops and calls of functions in all, so that a program that never ends
    /// does. Ctrl-C ends it at once.
    #[arg(long, alias = "max-rounds", value_name = "N", default_value_t = 1_000_000_000_000_000)]
    pub max_iterations: u64,

    /// On a GPU, end the run with an error where kernels take longer than S seconds. The GPU is not used again by this process.
    #[arg(long, value_name = "S", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_seconds: u64,

    /// After the runs, run once more and tell how long each kernel took, how much it computed (arithmetic operations)
    /// and moved (the bytes of its arguments, once each), and which statements it computes.
    #[arg(long, overrides_with = "profile", conflicts_with_all = ["emit", "explain_schedule"])]
    pub profile: bool,

    /// After the runs, run once more and write when each kernel ran as a trace for chrome://tracing or Perfetto.
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["emit", "explain_schedule"])]
    pub trace: Option<PathBuf>,

    /// After the runs, run once more without joining kernels and describe what each variable was bound to, the last time
    /// it was.
    #[arg(long, overrides_with = "values", conflicts_with_all = ["emit", "explain_schedule"])]
    pub values: bool,

    /// Print a stage of the program and run nothing.
    #[arg(long, value_enum, value_name = "STAGE")]
    pub emit: Option<Emit>,

    /// The passes of --emit passes, as `rxopt --pass` takes them [default: the steps that lead to the kernels of --device].
    #[arg(long, value_name = "PASSES", requires = "emit")]
    pub passes: Option<String>,

    /// The architecture that kernels are made for with --emit and --device cuda-sim: `sm_80`, `sm_90a`.
    #[arg(long, value_name = "SM", default_value = "sm_80", value_parser = arch)]
    pub arch: u32,

    /// The rules that make CUDA kernels, in the order in which they are asked; the fallback comes last, named or not
    /// [default: all].
    #[arg(long, value_name = "RULE,…", value_parser = rules)]
    pub schedule: Option<RuleOrder>,

    /// Let CUDA kernels multiply float32 on tensor cores, rounded to 10 bits of fraction (tf32): several times as fast, and
    /// less exact than the CPU.
    #[arg(long, overrides_with = "tf32")]
    pub tf32: bool,

    /// With --device cuda-sim: an access out of bounds or undefined behaviour is an error, and every kernel is run in several
    /// orders of its threads, which must give the same. Takes several times as long.
    #[arg(long, overrides_with = "sanitize")]
    pub sanitize: bool,

    /// Print which rule made each CUDA kernel, and why those before it did not; run nothing. As `--emit schedule`.
    #[arg(long, conflicts_with = "emit", overrides_with = "explain_schedule")]
    pub explain_schedule: bool,

    /// The settings file, in place of the nearest rx.toml above the program.
    #[arg(long, value_name = "PATH", conflicts_with = "isolated")]
    pub config: Option<PathBuf>,

    /// Look at no rx.toml.
    #[arg(long)]
    pub isolated: bool,

    /// How results are printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,

    /// When to colour diagnostics.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,

    /// Print the tool's own spans with their times on standard error; the environment variable RX_LOG chooses among all of them.
    #[arg(long)]
    pub verbose: bool,

    /// The path standard input is shown under; `.py` at its end makes it Python.
    #[arg(long, value_name = "PATH", default_value = "<stdin>")]
    pub stdin_name: String,
}

/// Values of `--device`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// A CUDA device where there is one, else the CPU.
    Auto,
    /// Compiled for the CPU.
    Cpu,
    /// On a CUDA device.
    Cuda,
    /// By the reference interpreter: slow, every access checked.
    Interp,
    /// The CUDA C, compiled by a C++ compiler and run on the CPU: slow, to check kernels without a GPU.
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
    /// The module as rx prints it.
    Relax,
    /// The module before the first pass and after each (--passes), one after the other.
    Passes,
    /// The kernels as loops, after fusion.
    Tir,
    /// The kernels as CUDA C.
    Cuda,
    /// Which rule made each CUDA kernel, why those before it did not, its threads and its work (for dims of --dim, or 1), and what it
    /// needs of a device (with NVRTC). With --format json an object for each kernel, too (docs/json.md).
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
    /// For people.
    Text,
    /// One JSON object per line and event (docs/json.md).
    Json,
}

/// Values of `--color`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Even into a file.
    Always,
    /// Not at all.
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
        _ => Err(format!("`{value}` is no extent: an integer of 0 or more")),
    }
}
