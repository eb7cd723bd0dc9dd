//! The command line of `rxopt`, parsed by clap.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Runs passes over a Relax module and prints what they make of it.
///
/// Passes have TVM's names, and take what TVM's constructors take, as JSON: `--pass 'DeadCodeElimination(["main"])'`. After each
/// pass the module is printed and checked; a pass that breaks it is named, and nothing is printed.
///
/// Exit status: 0, done; 1, the program or what a pass made of it has errors, or a pass cannot be applied; 2, the command line
/// is wrong or a file could not be read or written.
#[derive(Debug, Parser)]
#[command(name = "rxopt", version)]
pub struct Args {
    /// The program, in Python where its name ends in `.py`; `-` is standard input.
    #[arg(required_unless_present = "list_passes", value_name = "FILE")]
    pub file: Option<String>,
    /// The module that passes run over, by the name of its class; of several classes of a name `NAME#2` is the second, and `-`
    /// means the functions outside of classes [default: the only module, else the only one with a function `main`].
    #[arg(long, value_name = "NAME", overrides_with = "module", allow_hyphen_values = true)]
    pub module: Option<String>,
    /// Passes in order, separated by commas; may be given again.
    #[arg(long = "pass", value_name = "PASSES")]
    pub passes: Vec<String>,
    /// Passes under one name, in front of those of --pass; --list-passes names them.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// Lower the function --entry after the passes, and run the steps that lead to the kernels of a device, each as a pass: those
    /// that rxrun runs for it.
    #[arg(long, value_enum, value_name = "DEVICE")]
    pub target: Option<Target>,
    /// The function that --target lowers [default: `main`].
    #[arg(long, value_name = "NAME", requires = "target", default_value = "main")]
    pub entry: String,
    /// Constants that the text has no data of: an .npz or .safetensors file whose arrays are called by key and index,
    /// `ir.GenericConst[0]`, as the text calls them behind `metadata`. They go before what its metadata section has.
    #[arg(long, value_name = "FILE")]
    pub constants: Vec<PathBuf>,
    /// Print the module after each pass on standard error.
    #[arg(long)]
    pub print_after_all: bool,
    /// Write the module before the first pass and after each to a folder: `00-input.rx`, `01-FoldConstant.rx`, …, as
    /// `rxcheck --sequence` takes them.
    #[arg(long, value_name = "FOLDER")]
    pub dump: Option<PathBuf>,
    /// Print what each pass changes as a unified diff, in place of the module.
    #[arg(long)]
    pub diff: bool,
    /// Run every public function before and after each pass, on arguments drawn from the seed, and say the worst difference on
    /// standard error. Symbolic dims get small values. A difference beyond 1e-4 + 1e-4·|value| (2e-2 where 16-bit floats are
    /// computed with, 0 of integers) is an error. Weights that a pass has another function prepare are prepared by it. What
    /// cannot be run before the pass is not compared, and named with the reason. A pass that changes nothing is not run for.
    #[arg(long)]
    pub verify_values: bool,
    /// The seed of these arguments.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Where to write; standard output unless given.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the tool's own spans with their times on standard error; the environment variable RX_LOG chooses among all of them.
    #[arg(long)]
    pub verbose: bool,
    /// Name every pass with its arguments, and what it does.
    #[arg(long)]
    pub list_passes: bool,
}

/// Values of `--target`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The CPU.
    Cpu,
    /// CUDA, the architecture sm_80.
    Cuda,
    /// The interpreter, in which each operator stays a kernel.
    Interp,
}
