//! The command line of `rxfmt`, parsed by clap.

use clap::Parser;
use rx_syntax::dialect::Dialect;

/// Formats Relax IR text in the layout TVM prints it in.
///
/// Files are rewritten in place; `-` reads standard input and prints to standard output. Folders are searched for `.rx` and
/// `.py` files as `rxcheck` searches them: hidden files and what `rx.toml` excludes are passed over. In a `.py` file only the
/// functions and modules with TVMScript's decorators change. A file with syntax errors is left as it is.
///
/// Exit status: 0, done; 1, `--check` found a file that is not formatted; 2, a file could not be read, written or
/// understood.
#[derive(Debug, Parser)]
#[command(name = "rxfmt", version)]
pub struct Args {
    /// Files and folders to format; `-` is standard input.
    #[arg(required = true, value_name = "PATH")]
    pub files: Vec<String>,
    /// Write nothing, and name the files that are not formatted.
    #[arg(long)]
    pub check: bool,
    /// Write nothing, and print what would change as a unified diff.
    #[arg(long)]
    pub diff: bool,
    /// The spelling to print: `tvm-0.27`, `tvm-0.27-py312` or `classic`; the file's own unless given.
    #[arg(long, value_name = "NAME")]
    pub dialect: Option<Dialect>,
    /// What to call standard input; a name that ends in `.py` has it read as Python.
    #[arg(long, value_name = "FILE", default_value = "<stdin>")]
    pub stdin_name: String,
}
