//! The command line of `rxfmt`, parsed by clap.

use clap::Parser;
use rx_syntax::dialect::Dialect;

/// Formats Relax IR text in the layout of TVM's printer.
///
/// Files are rewritten in place; `-` reads standard input and prints to standard output. In folders, `.rx` and `.py` files are
/// formatted, except hidden files and files that `rx.toml` excludes, as for `rxcheck`. In a `.py` file, only the functions and
/// modules with TVMScript's decorators change. A notebook (`.ipynb`) is formatted only if it is named; its code cells change as `.py`
/// files do. A file with syntax errors is not changed.
///
/// Exit status: 0, success; 1, `--check` found a file that is not formatted; 2, a file could not be read, written or parsed.
#[derive(Debug, Parser)]
#[command(name = "rxfmt", version)]
pub struct Args {
    /// Files and folders to format; `-` is standard input.
    #[arg(required = true, value_name = "PATH")]
    pub files: Vec<String>,
    /// List the files that are not formatted, and write nothing.
    #[arg(long)]
    pub check: bool,
    /// Print the changes as a unified diff, and write nothing.
    #[arg(long)]
    pub diff: bool,
    /// The dialect to print: `tvm-0.27`, `tvm-0.27-py312` or `classic` [default: the dialect of the file].
    #[arg(long, value_name = "NAME")]
    pub dialect: Option<Dialect>,
    /// The path of standard input in messages; if it ends in `.py`, the text is parsed as Python.
    #[arg(long, value_name = "FILE", default_value = "<stdin>")]
    pub stdin_name: String,
}
