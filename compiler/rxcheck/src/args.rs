//! The command line of `rxcheck`, parsed by clap.

use clap::error::ErrorKind;
use clap::{ArgGroup, CommandFactory, Parser, ValueEnum};
use clap_complete::Shell;
use rx_base::TvmVersion;
use rx_db::Projects;
use rx_report::Format;
use rx_settings::{Choice, Finder, Selector, Unreadable};
use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The most diagnostics printed in full, if `--max-diagnostics` is not given.
const MOST_REPORTS: usize = 200;

const EXIT_CODES: &str = "\
Exit status:
  0  no error (warnings allowed unless --error-on-warning)
  1  at least one error; with --diff, at least one change
  2  wrong usage, a file that cannot be read, or a mistake in rx.toml
  3  a bug in rxcheck itself

In folders, rxcheck checks .rx files, and .py files and .ipynb notebooks that contain decorated Relax or TIR functions or
modules. It skips hidden files, folders named target, node_modules or __pycache__, and links to folders.

`rxcheck lsp [ARGS]...` starts the language server with these arguments: the rx-lsp in the folder of rxcheck, otherwise the
one in PATH. To check a file or folder named `lsp`, write `./lsp`.";

/// Checks Relax IR text and reports every mistake.
#[derive(Parser, Debug)]
#[command(name = "rxcheck", version, after_help = EXIT_CODES)]
#[command(group = ArgGroup::new("rewriting").multiple(true))]
pub struct Args {
    /// Files and folders to check; `-` is standard input.
    #[arg(value_name = "FILE|DIR|-", required_unless_present_any = ["explain", "completions", "why"])]
    pub paths: Vec<PathBuf>,

    /// The format of diagnostics.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatName::Text)]
    format: FormatName,

    /// Write the diagnostics to a file instead of standard output. The file is replaced in one step, so it is never incomplete.
    #[arg(short, long, value_name = "PATH")]
    pub output_file: Option<PathBuf>,

    /// When to color the output.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,

    /// Exit with 1 if there are warnings, as for errors.
    #[arg(long)]
    pub error_on_warning: bool,

    /// Print the type of every parameter, named binding and return instead of the diagnostics.
    #[arg(long)]
    pub types: bool,

    /// Apply the safe fixes and write the files; with standard input, print the fixed text.
    #[arg(long, group = "rewriting")]
    pub fix: bool,

    /// With --fix or --diff: also apply fixes that may change the meaning of a program.
    #[arg(long, requires = "rewriting")]
    pub unsafe_fixes: bool,

    /// Write the inferred type into the files wherever an annotation is missing; with `=all`, also replace annotations that are less
    /// precise than the inferred type.
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "missing")]
    pub annotate: Option<Which>,

    /// Print the changes as a unified diff instead of writing the files, and exit with 1 if there are any.
    #[arg(long, group = "rewriting")]
    pub diff: bool,

    /// Print the statistics of each function instead of the diagnostics: operators, parameters, arithmetic operations, bytes, peak
    /// memory.
    #[arg(long, conflicts_with = "types")]
    pub stats: bool,

    /// Treat the files as dumps of one module after successive passes. Report the first file, function and binding with a new error,
    /// the diff of that function, and a summary of the other changes of each file. Files are sorted by name, with numbers by value:
    /// phase2 before phase10.
    #[arg(long, conflicts_with_all = ["types", "stats", "rewriting", "output_file"])]
    pub sequence: bool,

    /// With --sequence: keep the order of the command line.
    #[arg(long, requires = "sequence")]
    pub given_order: bool,

    /// Use this settings file for all files, instead of the nearest rx.toml above each file. Its patterns are relative to the current
    /// folder.
    #[arg(long, value_name = "PATH", conflicts_with = "isolated")]
    pub config: Option<PathBuf>,

    /// Ignore every rx.toml.
    #[arg(long)]
    pub isolated: bool,

    /// Report only these diagnostics, by code (RX0651), name (slice-end-clamped), group (RX06) or `all`. Syntax errors are always
    /// reported.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    select: Vec<Selector>,

    /// Do not report these diagnostics, unless --select names them more specifically.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    ignore: Vec<Selector>,

    /// Skip files that rx.toml excludes even if the command line names them.
    #[arg(long)]
    pub force_exclude: bool,

    /// Check again whenever a file or rx.toml changes, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["rewriting", "explain", "why", "sequence"])]
    pub watch: bool,

    /// Also print hints (`--format json` always does).
    #[arg(long)]
    pub hints: bool,

    /// Print at most N diagnostics, 0 for all [default: 200 with `--format text`, otherwise all].
    #[arg(long, value_name = "N")]
    max_diagnostics: Option<usize>,

    /// In files without errors, warn of constructs that this release of TVM (0.25, 0.26 or 0.27) cannot parse, lower or build.
    #[arg(long, value_name = "VERSION")]
    pub tvm: Option<TvmVersion>,

    /// Print only diagnostics: no remarks and no summary.
    #[arg(short, long)]
    pub quiet: bool,
    /// Log the steps of rxcheck with their times to standard error; the environment variable RX_LOG filters them.
    #[arg(long)]
    pub verbose: bool,

    /// The path of standard input in diagnostics; if it ends in `.py`, the text is parsed as Python.
    #[arg(long, value_name = "PATH", default_value = "<stdin>")]
    pub stdin_name: String,

    /// Check N files in parallel [default: the number of processors].
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Explain a diagnostic, given by code (RX0501) or name (call-tir-arg-mismatch).
    #[arg(long, value_name = "CODE")]
    pub explain: Option<String>,

    /// Print the completion script of rxcheck for a shell.
    #[arg(long, value_enum, value_name = "SHELL", exclusive = true)]
    pub completions: Option<Shell>,

    /// Trace the shape of the value at a position back to the bindings and annotations that determine it. Without a column, trace
    /// the variable that the line binds.
    #[arg(long, value_name = "FILE:LINE[:COL]", conflicts_with_all = ["paths", "output_file"])]
    pub why: Option<crate::why::Position>,

    /// The part of the type that `--why` traces: an axis, `dtype` or `rank`. For a field of a tuple, write the field's index first:
    /// `1.0` is axis 0 of field 1 [default: all].
    #[arg(long, value_name = "PART", requires = "why", allow_hyphen_values = true)]
    pub dim: Option<crate::why::Part>,
}

/// Values of `--format`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum FormatName {
    /// Human-readable, with source lines.
    #[value(alias = "full")]
    Text,
    /// One line per diagnostic.
    Concise,
    /// One JSON object per line.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands of GitHub Actions, which annotate a pull request.
    Github,
    /// A GitLab code quality report.
    Gitlab,
    /// Test results in JUnit's XML format.
    Junit,
}

/// Values of `--annotate`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Only missing annotations.
    Missing,
    /// Also annotations that are less precise than the inferred type.
    All,
}

/// Values of `--color`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum ColorChoice {
    /// If the output is a terminal and NO_COLOR is not set.
    Auto,
    /// Always, also in files.
    Always,
    /// Never.
    Never,
}

impl Args {
    /// Parses the process's arguments. Ends the process, as clap does, if they are wrong or help was requested.
    pub fn of_process() -> Args {
        let args = Args::try_parse().unwrap_or_else(|error| {
            let status = rx_report::stdout::usage_status(error.print(), error.exit_code());
            std::process::exit(i32::from(status))
        });
        let answers = [
            ("--types", args.types),
            ("--stats", args.stats),
            ("--sequence", args.sequence),
            ("--why", args.why.is_some()),
        ];
        let plain = matches!(args.format(), Format::Text | Format::Concise | Format::Json);
        if let (Some((answer, _)), false) = (answers.iter().find(|(_, asked)| *asked), plain) {
            let message = format!("{answer} requires --format text, concise or json");
            Args::command().error(ErrorKind::ArgumentConflict, message).exit();
        }
        let stdin = args.paths.iter().any(|path| path.as_os_str() == "-");
        if args.watch && (stdin || (args.format().is_document() && args.output_file.is_none())) {
            let message = match stdin {
                true => "--watch cannot watch standard input, which never changes",
                false => "--watch with a --format that is one document requires --output-file",
            };
            Args::command().error(ErrorKind::ArgumentConflict, message).exit();
        }
        if args.format().is_document() && (args.diff || (args.fix && stdin && args.output_file.is_none())) {
            let output = if args.diff { "--diff prints a diff" } else { "--fix prints the text of standard input" };
            let message = format!("{output}, which cannot be combined with a --format that is one document");
            Args::command().error(ErrorKind::ArgumentConflict, message).exit();
        }
        args
    }

    /// The severities chosen by `--select` and `--ignore`.
    pub fn choice(&self) -> Choice {
        Choice { select: self.select.clone(), ignore: self.ignore.clone() }
    }

    /// Returns a finder of the settings and declarations that apply to a file.
    ///
    /// # Errors
    /// If `--config` names a file that cannot be read.
    pub fn projects(&self) -> Result<Projects, Unreadable> {
        let finder = match &self.config {
            Some(path) => Finder::given(path)?,
            None if self.isolated => Finder::isolated(),
            None => Finder::nearest(),
        };
        Ok(Projects::new(finder))
    }

    /// The format of diagnostics.
    pub fn format(&self) -> Format {
        match self.format {
            FormatName::Text => Format::Text,
            FormatName::Concise => Format::Concise,
            FormatName::Json => Format::Json,
            FormatName::Sarif => Format::Sarif,
            FormatName::Github => Format::Github,
            FormatName::Gitlab => Format::Gitlab,
            FormatName::Junit => Format::Junit,
        }
    }

    /// Whether to colour the output.
    pub fn color(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if self.output_file.is_some() => false,
            ColorChoice::Auto => rx_report::colors_by_default(std::io::stdout().is_terminal()),
        }
    }

    /// The most diagnostics to print.
    pub fn most_reports(&self) -> usize {
        match (self.max_diagnostics, self.format) {
            (Some(0), _) => usize::MAX,
            (Some(most), _) => most,
            (None, FormatName::Text) => MOST_REPORTS,
            (None, _) => usize::MAX,
        }
    }

    /// The number of files to check at once.
    pub fn workers(&self) -> NonZeroUsize {
        self.jobs.or_else(|| std::thread::available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN)
    }
}
