//! The command line of `rxopt`, parsed by clap.

use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Runs passes over a Relax module and prints the result.
///
/// Passes have the names of TVM's passes and take the arguments of TVM's constructors, as JSON:
/// `--pass 'DeadCodeElimination(["main"])'`. The module is checked after each pass. If a pass produces an invalid module, the pass is
/// reported and no module is printed.
///
/// Exit status: 0, success; 1, the program or the result of a pass has errors, or a pass cannot be applied; 2, the command line
/// is wrong or a file could not be read or written.
#[derive(Debug, Parser)]
#[command(name = "rxopt", version)]
pub struct Args {
    /// The program; a file whose name ends in `.py` is parsed as Python, one in `.ipynb` as a Jupyter notebook, and `-` is standard
    /// input.
    #[arg(required_unless_present = "list_passes", value_name = "FILE")]
    pub file: Option<String>,
    /// The module to run the passes on, by the name of its class. `NAME#2` is the second class of that name; `-` is the functions
    /// outside of classes [default: the only module, otherwise the only one with a function `main`].
    #[arg(long, value_name = "NAME", overrides_with = "module", allow_hyphen_values = true)]
    pub module: Option<String>,
    /// Passes to run, in order, separated by commas; may be repeated.
    #[arg(long = "pass", value_name = "PASSES")]
    pub passes: Vec<String>,
    /// A named sequence of passes to run before those of --pass; --list-passes lists the names.
    #[arg(long, value_name = "NAME")]
    pub pipeline: Option<String>,
    /// After the passes, lower the function --entry to kernels of a device. The steps are those of rxrun, each run as a pass.
    #[arg(long, value_enum, value_name = "DEVICE")]
    pub target: Option<Target>,
    /// The function that --target lowers.
    #[arg(long, value_name = "NAME", requires = "target", default_value = "main")]
    pub entry: String,
    /// Values of constants whose data is not in the text: an .npz or .safetensors file. An array's name is the key and index after
    /// `metadata` in the text, such as `ir.GenericConst[0]`. These arrays take precedence over the text's metadata section.
    #[arg(long, value_name = "FILE")]
    pub constants: Vec<PathBuf>,
    /// Print the module after each pass to standard error.
    #[arg(long)]
    pub print_after_all: bool,
    /// Write the module before the first pass and after each pass to a folder: `00-input.rx`, `01-FoldConstant.rx`, …. These files
    /// can be given to `rxcheck --sequence`.
    #[arg(long, value_name = "FOLDER")]
    pub dump: Option<PathBuf>,
    /// Print the changes of each pass as a unified diff instead of the module.
    #[arg(long)]
    pub diff: bool,
    /// Run every public function before and after each pass, on random arguments drawn from the seed, and print the largest
    /// difference of the results to standard error. Symbolic dims get small values. A difference above 1e-4 + 1e-4·|value| (2e-2
    /// instead of 1e-4 if 16-bit floats are used; 0 for integers) is an error. If a pass moves the preparation of weights to another
    /// function, that function prepares the weights. A function that cannot be run before the pass is not compared, and the reason
    /// is printed. Nothing is run for a pass that changes nothing.
    #[arg(long)]
    pub verify_values: bool,
    /// The seed of the arguments of --verify-values.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// The file to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Log the steps of rxopt with their times to standard error; the environment variable RX_LOG filters them.
    #[arg(long)]
    pub verbose: bool,
    /// List every pass with its arguments and a description.
    #[arg(long)]
    pub list_passes: bool,
}

/// Values of `--target`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The CPU.
    Cpu,
    /// CUDA, for the architecture sm_80.
    Cuda,
    /// The interpreter: operators are not fused, so each one is a separate kernel.
    Interp,
}
