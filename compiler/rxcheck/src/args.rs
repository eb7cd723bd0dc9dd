//! The command line.

use clap::{Parser, ValueEnum};
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Reports rendered in full unless asked otherwise.
const MOST_REPORTS: usize = 200;

const EXIT_CODES: &str = "\
Exit status:
  0  no error (warnings allowed unless --error-on-warning)
  1  at least one error
  2  wrong usage, or a file that cannot be read
  3  a fault of rxcheck itself

Folders are searched for .rx files, and for .py files with a decorated Relax or TIR part; hidden files, folders named
target, node_modules or __pycache__, and links to folders are passed over.";

/// Checks Relax IR text and reports every mistake.
#[derive(Parser, Debug)]
#[command(name = "rxcheck", version, after_help = EXIT_CODES)]
pub struct Args {
    /// Files, folders, or `-` for standard input.
    #[arg(value_name = "FILE|DIR|-", required_unless_present = "explain")]
    pub paths: Vec<PathBuf>,

    /// How diagnostics are printed.
    #[arg(long, value_enum, default_value_t = Format::Full)]
    pub format: Format,

    /// When to colour.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,

    /// Exit with 1 for warnings too.
    #[arg(long)]
    pub error_on_warning: bool,

    /// Print the type of every parameter, binding and return instead of the diagnostics.
    #[arg(long)]
    pub types: bool,

    /// Print hints too (`--format json` always does).
    #[arg(long)]
    pub hints: bool,

    /// Print at most N diagnostics, 0 for all [default: 200 with `--format full`, else all].
    #[arg(long, value_name = "N")]
    max_diagnostics: Option<usize>,

    /// Print diagnostics and nothing else.
    #[arg(short, long)]
    pub quiet: bool,

    /// The path standard input is shown under; `.py` at its end makes it Python.
    #[arg(long, value_name = "PATH", default_value = "<stdin>")]
    pub stdin_name: String,

    /// Check N files at once [default: one per processor].
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Say what a diagnostic means, by code (RX0501) or name (call-tir-arg-mismatch).
    #[arg(long, value_name = "CODE")]
    pub explain: Option<String>,
}

/// `--format`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Reports with source lines, for people.
    Full,
    /// One line each.
    Concise,
    /// One JSON object each, in one line.
    Json,
}

/// `--color`.
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
    /// Whether standard output is coloured.
    pub fn color(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => rx_report::colors_by_default(std::io::stdout().is_terminal()),
        }
    }

    /// The most diagnostics to print.
    pub fn most_reports(&self) -> usize {
        match (self.max_diagnostics, self.format) {
            (Some(0), _) | (None, Format::Concise | Format::Json) => usize::MAX,
            (Some(most), _) => most,
            (None, Format::Full) => MOST_REPORTS,
        }
    }

    /// Files checked at once.
    pub fn workers(&self) -> NonZeroUsize {
        self.jobs.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }
}
