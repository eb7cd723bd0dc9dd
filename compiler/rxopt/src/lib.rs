//! `rxopt`: runs passes over a Relax module.
//!
//! `args` parses the command line, and `pipeline` runs the passes one after the other with a check after each. This
//! crate implements no pass and no rule of the language.

mod args;
mod pipeline;

use args::Args;
use clap::Parser;
use pipeline::{Failure, Pipeline, Ran};
use rx_driver::program::{GivenConstants, give_constants};
use rx_settings::files::is_notebook;
use rx_tensor::{npz, safetensors};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Entry point of the binary: parses the process's arguments, runs, and returns the exit status.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return ExitCode::from(rx_report::stdout::usage_status(error.print(), error.exit_code())),
    };
    if let Err(message) = rx_trace::init(args.verbose) {
        eprintln!("rxopt: {message}");
        return ExitCode::from(2);
    }
    rx_report::process::run("rxopt", move || run(&args))
}

/// Returns the definition of the command line, from which the manual page is generated.
pub fn command() -> clap::Command {
    <Args as clap::CommandFactory>::command()
}

fn run(args: &Args) -> u8 {
    let written = if args.list_passes {
        write(&list(), None)
    } else {
        transformed(args).and_then(|text| write(&text, args.output.as_deref()))
    };
    match written {
        Ok(()) => 0,
        Err(failure) => {
            complain(failure.message.trim_end());
            failure.status
        }
    }
}

/// Runs the passes and returns the text to print.
fn transformed(args: &Args) -> Result<String, Failure> {
    if let Some(output) = args.output.as_deref().filter(|output| is_notebook(output)) {
        let message = format!("{}: rxopt writes no notebooks; name a file of Relax text", output.display());
        return Err(Failure::usage(&message));
    }
    let named = args.pipeline.iter().map(|name| rx_transform::pipeline::steps(name));
    let steps = named.chain(args.passes.iter().map(|passes| rx_transform::pass::parse(passes)));
    let steps: Vec<_> = steps.collect::<Result<Vec<_>, _>>().map_err(|error| Failure::usage(&error.0))?;
    let file = args.file.as_deref().unwrap_or("-");
    let mut pipeline = Pipeline::open(file, args.module.as_deref(), &given_constants(&args.constants)?)?;
    let mut shown = Shown::new(args, pipeline.text())?;
    let verify = args.verify_values.then_some(args.seed);
    for step in steps.iter().flatten() {
        let before = pipeline.text().to_owned();
        let remarks = pipeline.apply(step, verify)?;
        shown.pass(Ran { pass: step.pass.name, before: &before, after: pipeline.text(), remarks })?;
    }
    if let Some(target) = args.target {
        pipeline.lower((&args.entry, target), verify, &mut |ran| shown.pass(ran))?;
    }
    Ok(if args.diff { shown.diffs } else { pipeline.spelled() })
}

/// Collects the output about each pass that the options ask for: diffs and dumped modules.
struct Shown<'a> {
    args: &'a Args,
    diffs: String,
    dump: Option<Dump<'a>>,
}

impl Shown<'_> {
    /// Creates the collection for a module with this text before the first pass.
    fn new<'a>(args: &'a Args, text: &str) -> Result<Shown<'a>, Failure> {
        let mut dump = args.dump.as_deref().map(Dump::new).transpose()?;
        if let Some(dump) = &mut dump {
            dump.write("input", text)?;
        }
        Ok(Shown { args, diffs: String::new(), dump })
    }

    fn pass(&mut self, ran: Ran<'_>) -> Result<(), Failure> {
        let Ran { pass, before, after, remarks } = ran;
        if !remarks.text.is_empty() {
            complain(remarks.text.trim_end());
        }
        remarks.values.iter().for_each(|line| complain(&format!("rxopt: {line}")));
        if self.args.print_after_all {
            complain(&format!("# ----- after {pass} -----\n{after}"));
        }
        if let Some(dump) = &mut self.dump {
            dump.write(pass, after)?;
        }
        if self.args.diff {
            let (old, new) = (format!("before {pass}"), format!("after {pass}"));
            let diff = similar::TextDiff::from_lines(before, after);
            self.diffs.push_str(&diff.unified_diff().header(&old, &new).to_string());
        }
        Ok(())
    }
}

/// Reads the constants of the files given by `--constants`.
fn given_constants(files: &[PathBuf]) -> Result<GivenConstants, Failure> {
    let mut given = GivenConstants::new();
    for file in files {
        let failed = |why: String| Failure::usage(&format!("{}: {why}", file.display()));
        let is_safetensors = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"));
        let read = if is_safetensors { safetensors::read(file) } else { npz::read(file) };
        let arrays = read.map_err(|error| failed(error.to_string()))?;
        give_constants(arrays, &mut given).map_err(failed)?;
    }
    Ok(given)
}

/// Writes a numbered file for each pass to a folder (`--dump`). For example,
/// `--passes FoldConstant,DeadCodeElimination` writes `00-input.rx`, `01-FoldConstant.rx` and
/// `02-DeadCodeElimination.rx`.
struct Dump<'a> {
    folder: &'a Path,
    written: usize,
}

impl Dump<'_> {
    fn new(folder: &Path) -> Result<Dump<'_>, Failure> {
        let failed = |error: io::Error| Failure::usage(&format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        Ok(Dump { folder, written: 0 })
    }

    fn write(&mut self, step: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder.join(format!("{:02}-{step}.rx", self.written));
        self.written += 1;
        write(text, Some(&path))
    }
}

/// Lists every pass with its arguments and their defaults.
fn list() -> String {
    let mut text = String::new();
    for pass in rx_transform::pass::ALL {
        let parameter = |parameter: &rx_transform::pass::Parameter| match parameter.default {
            Some(default) => format!("{} = {default}", parameter.name),
            None => parameter.name.to_owned(),
        };
        let parameters: Vec<String> = pass.parameters.iter().map(parameter).collect();
        let brackets = if parameters.is_empty() { String::new() } else { format!("({})", parameters.join(", ")) };
        text.push_str(&format!("{}{brackets}\n    {}\n", pass.name, pass.doc));
        for parameter in pass.parameters {
            text.push_str(&format!("    {}: {}\n", parameter.name, parameter.doc));
        }
    }
    text.push_str("--target DEVICE\n    Lowers a function (LegalizeOps), and leads it to the kernels of a device:\n");
    for step in rx_lower::steps::STEPS {
        text.push_str(&format!("    {}: {}\n", step.name, step.doc));
    }
    for sequence in rx_transform::pipeline::ALL {
        text.push_str(&format!("--pipeline {}\n    {}\n    {}\n", sequence.name, sequence.doc, sequence.passes));
    }
    text
}

/// Writes to a file or prints on standard output. A closed pipe is not an error.
fn write(text: &str, to: Option<&Path>) -> Result<(), Failure> {
    let failed = |name: &str, error: &io::Error| Failure::usage(&format!("{name}: {error}"));
    if let Some(path) = to {
        return rx_report::store::write(path, text).map_err(|error| failed(&path.to_string_lossy(), &error));
    }
    rx_report::stdout::print(text).map_err(|error| failed("standard output", &error))
}

fn complain(text: &str) {
    // If standard error is closed, only the exit status shows the error.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
