//! `cargo xtask TASK`: the developer tasks of CONTRIBUTING.md by name. Each task runs the scripts and commands that do
//! the work, in the repository's folder. Its exit status is that of the first one that fails.

mod sample;

use clap::Parser;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Developer tasks. Each command is printed before it is run.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Task {
    /// Runs all checks that a change must pass: .ci/run
    Check {
        /// Also runs the exhaustive tests: .ci/full
        #[arg(long)]
        full: bool,
    },
    /// Runs the tests: .ci/tests
    Test {
        /// Arguments of `cargo nextest run`, or of `cargo test` if nextest is not installed: `-p rx-ops values`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Rewrites the pages that are derived from data, then builds the API documentation; a rustdoc warning is an error
    Docs,
    /// Measures the figures of conformance and speed: tests/scripts/figures.sh
    Figures,
    /// Runs a benchmark of rx-bench, built with --release
    Bench {
        /// The benchmark: edits, corpus, generate, guards or servers
        #[arg(default_value = "edits")]
        name: String,
        /// Arguments of the benchmark
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Checks the VS Code extension and tests the server in real editors, from the folder that RX_EDITORS names: .ci/editors
    Editors {
        /// Tests only these editors (tests/editors/run.sh): vscode, vscode-run, neovim, emacs, helix
        names: Vec<OsString>,
    },
    /// Samples comments of the back end, each with the code after it, for a readability review
    SampleComments(sample::Options),
    /// Builds, installs and runs the packages of a release on this machine (docs/releasing.md)
    Release,
}

/// Returns the repository's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a program in the repository's folder; on failure returns the exit code for this process.
fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Result<(), ExitCode> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    println!("== {command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
        }
        Err(error) => {
            eprintln!("xtask: {program} cannot be started: {error}");
            Err(ExitCode::FAILURE)
        }
    }
}

/// Runs a script of the repository with bash, which must be named explicitly on Windows.
fn script(path: &str, arguments: &[OsString]) -> Result<(), ExitCode> {
    run("bash", [path.into()].iter().chain(arguments))
}

/// Runs a task. For example, `cargo xtask editors neovim` runs `bash tests/editors/run.sh neovim`.
fn task(task: Task) -> Result<(), ExitCode> {
    match task {
        Task::Check { full: false } => script(".ci/run", &[]),
        Task::Check { full: true } => script(".ci/full", &[]),
        Task::Test { arguments } => script(".ci/tests", &arguments),
        Task::Docs => {
            run("cargo", ["run", "--quiet", "--package", "rx-docs"])?;
            run("cargo", ["doc", "--workspace", "--no-deps", "--config", "build.rustdocflags=['-Dwarnings']"])
        }
        Task::Figures => script("tests/scripts/figures.sh", &[]),
        Task::Bench { name, arguments } => {
            let mut command: Vec<OsString> = ["run", "--release", "--package", "rx-bench"].map(Into::into).into();
            if name == "guards" {
                command.extend(["--features", "guards"].map(Into::into));
            }
            command.extend(["--bin".into(), name.into(), "--".into()]);
            run("cargo", command.iter().chain(&arguments))
        }
        Task::Editors { names } if names.is_empty() => script(".ci/editors", &[]),
        Task::Editors { names } => script("tests/editors/run.sh", &names),
        Task::SampleComments(options) => match sample::sample(&root(), &options) {
            Ok(text) => {
                print!("{text}");
                Ok(())
            }
            Err(error) => {
                eprintln!("xtask: {error}");
                Err(ExitCode::FAILURE)
            }
        },
        Task::Release => release(),
    }
}

/// Builds the archive, the wheel and the VS Code extension for this machine, then installs each and runs it.
fn release() -> Result<(), ExitCode> {
    run("cargo", ["build", "--profile", "dist", "--locked", "--bins"])?;
    script("tests/scripts/wheel.sh", &["dist".into()])?;
    run("npm", ["ci", "--prefix", "editors/vscode", "--no-audit", "--no-fund"])?;
    run("python3", ["tests/packages/make.py", "--programs", "target/dist", "--out", "target/packages"])?;
    // The shell expands the names of the packages.
    run("bash", ["-c", "python3 tests/packages/check.py target/packages/* target/wheels/*.whl"])
}

fn main() -> ExitCode {
    task(Task::parse()).err().unwrap_or(ExitCode::SUCCESS)
}
