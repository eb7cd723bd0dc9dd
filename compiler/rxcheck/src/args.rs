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
  3  a fault of rxcheck itself

Folders are searched for .rx files, and for .py files with a decorated Relax or TIR part; hidden files, folders named
target, node_modules or __pycache__, and links to folders are passed over.

`rxcheck lsp [ARGS]...` starts the language server, the rx-lsp beside rxcheck or in PATH, with these arguments; a file or
folder of that name is `./lsp`.";

/// Checks Relax IR text and reports every mistake.
#[derive(Parser, Debug)]
#[command(name = "rxcheck", version, after_help = EXIT_CODES)]
#[command(group = ArgGroup::new("rewriting").multiple(true))]
pub struct Args {
    /// Files, folders, or `-` for standard input.
    #[arg(value_name = "FILE|DIR|-", required_unless_present_any = ["explain", "completions", "why"])]
    pub paths: Vec<PathBuf>,

    /// How diagnostics are written.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatName::Text)]
    format: FormatName,

    /// Write them into a file, whole or not at all, in place of standard output.
    #[arg(short, long, value_name = "PATH")]
    pub output_file: Option<PathBuf>,

    /// When to colour.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,

    /// Exit with 1 for warnings too.
    #[arg(long)]
    pub error_on_warning: bool,

    /// Print the type of every parameter, binding and return instead of the diagnostics.
    #[arg(long)]
    pub types: bool,

    /// Apply the safe fixes and write the files; with standard input, print the fixed text.
    #[arg(long, group = "rewriting")]
    pub fix: bool,

    /// With --fix or --diff: apply fixes too that may change what a program means.
    #[arg(long, requires = "rewriting")]
    pub unsafe_fixes: bool,

    /// Write every inferred type that is missing into the files; with `=all`, also in place of annotations that say less.
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "missing")]
    pub annotate: Option<Which>,

    /// Print what would change as a unified diff, write nothing, and exit with 1 if anything would.
    #[arg(long, group = "rewriting")]
    pub diff: bool,

    /// Print what each function holds and costs instead of the diagnostics: operators, parameters, arithmetic operations,
    /// bytes, peak memory.
    #[arg(long, conflicts_with = "types")]
    pub stats: bool,

    /// Take the files for the phases of one pipeline: name the first phase, function and binding with a new error, show how
    /// that function changed, and what else each phase changes. In the natural order of names: phase2 before phase10.
    #[arg(long, conflicts_with_all = ["types", "stats", "rewriting", "output_file"])]
    pub sequence: bool,

    /// With --sequence: in the order the files are given.
    #[arg(long, requires = "sequence")]
    pub given_order: bool,

    /// The settings file of all files, in place of the nearest rx.toml above each; its patterns start here.
    #[arg(long, value_name = "PATH", conflicts_with = "isolated")]
    pub config: Option<PathBuf>,

    /// Look at no rx.toml.
    #[arg(long)]
    pub isolated: bool,

    /// Report only these diagnostics (and what cannot be read): RX0651, slice-end-clamped, RX06 for a group, or `all`.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    select: Vec<Selector>,

    /// Do not report these, unless --select names them more closely.
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    ignore: Vec<Selector>,

    /// Pass over what rx.toml excludes even where it is named.
    #[arg(long)]
    pub force_exclude: bool,

    /// Check again whenever a file or rx.toml changes, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["rewriting", "explain", "why", "sequence"])]
    pub watch: bool,

    /// Print hints too (`--format json` always does).
    #[arg(long)]
    pub hints: bool,

    /// Print at most N diagnostics, 0 for all [default: 200 with `--format text`, else all].
    #[arg(long, value_name = "N")]
    max_diagnostics: Option<usize>,

    /// Warn of what this release of TVM (0.25, 0.26 or 0.27) cannot read, lower or build in files without errors.
    #[arg(long, value_name = "VERSION")]
    pub tvm: Option<TvmVersion>,

    /// Print diagnostics and nothing else.
    #[arg(short, long)]
    pub quiet: bool,
    /// Print the tool's own spans with their times on standard error; the environment variable RX_LOG chooses among all of them.
    #[arg(long)]
    pub verbose: bool,

    /// The path standard input is shown under; `.py` at its end makes it Python.
    #[arg(long, value_name = "PATH", default_value = "<stdin>")]
    pub stdin_name: String,

    /// Check N files at once [default: one per processor].
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Say what a diagnostic means, by code (RX0501) or name (call-tir-arg-mismatch).
    #[arg(long, value_name = "CODE")]
    pub explain: Option<String>,

    /// Print what completes rxcheck's options in a shell.
    #[arg(long, value_enum, value_name = "SHELL", exclusive = true)]
    pub completions: Option<Shell>,

    /// Trace the shape of the value at a position back to what fixed it; without a column, of what the line binds.
    #[arg(long, value_name = "FILE:LINE[:COL]", conflicts_with_all = ["paths", "output_file"])]
    pub why: Option<crate::why::Position>,

    /// The part `--why` traces: an axis, `dtype` or `rank`; of a field of a tuple behind its index: `1.0` [default: all].
    #[arg(long, value_name = "PART", requires = "why", allow_hyphen_values = true)]
    pub dim: Option<crate::why::Part>,
}

/// Values of `--format`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum FormatName {
    /// Reports with source lines, for people.
    #[value(alias = "full")]
    Text,
    /// One line each.
    Concise,
    /// One JSON object each, in one line.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Annotations of a pull request on GitHub.
    Github,
    /// A code quality report of GitLab.
    Gitlab,
    /// Test results in JUnit's XML.
    Junit,
}

/// Values of `--annotate`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Annotations that are missing.
    Missing,
    /// Those too that say less than is known.
    All,
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
            let message = format!("{answer} is written with --format text, concise or json");
            Args::command().error(ErrorKind::ArgumentConflict, message).exit();
        }
        let stdin = args.paths.iter().any(|path| path.as_os_str() == "-");
        if args.watch && (stdin || (args.format().is_document() && args.output_file.is_none())) {
            let what = if stdin { "standard input, which never changes" } else { "a document, without --output-file" };
            Args::command().error(ErrorKind::ArgumentConflict, format!("--watch does not go with {what}")).exit();
        }
        if args.format().is_document() && (args.diff || (args.fix && stdin && args.output_file.is_none())) {
            let what = if args.diff { "--diff writes a diff" } else { "--fix prints the text of standard input" };
            let message = format!("{what}, which does not go with a --format that is one document");
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
