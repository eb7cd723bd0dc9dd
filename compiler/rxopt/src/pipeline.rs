//! The module while passes transform it, with the checks and remarks after each pass.

use crate::args::Target;
use rx_base::{Code, Diagnostic, Name, Span};
use rx_build::pipeline::{Applied, Unapplied, errors, opened};
use rx_db::{FileKind, Projects};
use rx_driver::modules::choose;
use rx_driver::program::GivenConstants;
use rx_driver::values::{File, Verdict, compare_functions};
use rx_report::load::{Place, load};
use rx_report::{Content, Source};
use rx_settings::Finder;
use rx_settings::files::is_notebook;
use rx_syntax::Document;
use rx_syntax::dialect::Dialect;
use rx_transform::Bound;
use rx_transform::pass::{Step, changed_signatures};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The reason why nothing is printed.
pub struct Failure {
    /// The error message.
    pub message: String,
    /// The exit status.
    pub status: u8,
}

impl Failure {
    /// Creates a failure for a mistake in the command line or in a file.
    pub fn usage(message: &str) -> Failure {
        Failure { message: format!("rxopt: {message}"), status: 2 }
    }

    /// Creates a failure for a mistake in the program, or of a pass.
    fn program(message: String) -> Failure {
        Failure { message, status: 1 }
    }
}

/// The module, with the dialect of its file.
pub struct Pipeline {
    inner: rx_build::pipeline::Pipeline,
    dialect: Dialect,
}

/// A pass that ran.
pub struct Ran<'r> {
    /// The pass's name.
    pub pass: &'r str,
    /// The module's text before the pass.
    pub before: &'r str,
    /// The module's text after the pass.
    pub after: &'r str,
    /// Remarks for the user.
    pub remarks: Remarks,
}

/// Remarks on a pass for the user.
#[derive(Default)]
pub struct Remarks {
    /// Rendered diagnostics.
    pub text: String,
    /// The results of comparing the values of public functions, one line each.
    pub values: Vec<String>,
}

impl Pipeline {
    /// Reads and checks a program.
    pub fn open(file: &str, module: Option<&str>, constants: &GivenConstants) -> Result<Pipeline, Failure> {
        let (name, place) = match file {
            "-" => ("<stdin>", Place::Stdin),
            path => (path, Place::File(PathBuf::from(path))),
        };
        let path = Path::new(name);
        let kind = FileKind::of_path(path);
        let unreadable = |error: &dyn std::fmt::Display| Failure::usage(&format!("{name}: {error}"));
        let content = load(&place).and_then(|loaded| Content::new(loaded, is_notebook(path)));
        let content = content.map_err(|error| unreadable(&error))?;
        let project = Projects::new(Finder::nearest())
            .of_file(path)
            .map_err(|unread| Failure::usage(&format!("{}: {}", unread.path.display(), unread.error)))?;
        let operators = project.operators.clone();
        let (workspace, id) = opened(&content.code(&content.text), kind, operators.clone());
        let errors = content.mistake.as_ref().map_or_else(|| errors(&workspace, id), |mistake| vec![mistake.clone()]);
        if !errors.is_empty() {
            return Err(Failure::program(drawn(&content.source(name, &content.text), &errors)));
        }
        let dialect = Dialect::to_print(workspace.document(id));
        let module = choose(&workspace, id, module, None).map_err(|why| unreadable(&why))?;
        let inner = rx_build::pipeline::Pipeline::new(&workspace, module, operators)
            .map(|pipeline| if dialect == Dialect::Classic { pipeline } else { pipeline.without_tir_vars() })
            .and_then(|pipeline| pipeline.with_constants(constants))
            .map_err(|problem| Failure::program(format!("rxopt: {name}: {problem}")))?;
        Ok(Pipeline { inner, dialect })
    }

    /// The module's text, in the dialect of TVM 0.27.
    pub fn text(&self) -> &str {
        self.inner.text()
    }

    /// The module's text, in the dialect of its file.
    pub fn spelled(&self) -> String {
        match self.dialect {
            Dialect::Tvm027 => self.text().to_owned(),
            other => {
                let document = Document::new(self.text(), FileKind::Rx);
                rx_syntax::printer::print_as(&document, Dialect::Tvm027, other)
            }
        }
    }

    /// Runs a pass and checks the result. With a seed (`--verify-values`), public functions also run before and after
    /// it.
    pub fn apply(&mut self, step: &Step, verify: Option<u64>) -> Result<Remarks, Failure> {
        let name = step.pass.name;
        let before_text = self.text().to_owned();
        let (before, before_file) = self.inner.checked();
        let applied = self.inner.apply(step, rx_driver::evaluate).map_err(|why| unapplied(name, why))?;
        let Applied { before: module, workspace, file } = applied;
        let old = Stage { text: &before_text, file: File { workspace: &before, file: before_file } };
        let new = Stage { text: self.text(), file: File { workspace: &workspace, file } };
        let mut remarks = Remarks::default();
        for function in changed_signatures(&module, self.inner.module()) {
            remarks.text.push_str(&signature_changed(name, function, old, new));
        }
        remarks.values = values(name, old, new, verify, rx_transform::bound(&module, step).as_ref())?;
        Ok(remarks)
    }

    /// Lowers a function and runs the steps that lead to the kernels of a device. Each step is passed to `each` like a
    /// pass.
    pub fn lower(
        &mut self,
        (entry, target): (&str, Target),
        verify: Option<u64>,
        each: &mut dyn FnMut(Ran<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut before_text = self.text().to_owned();
        let (mut before, mut before_file) = self.inner.checked();
        let target = match target {
            Target::Interp => rx_build::Device::Interp,
            Target::Cpu => rx_build::Device::Cpu,
            Target::Cuda => rx_build::Device::Cuda(Default::default()),
        };
        let lowered = self.inner.lower(rx_base::name::name(entry), &target, &mut |step, pipeline, applied| {
            let Applied { workspace, file, .. } = applied.map_err(|why| unapplied(step, why))?;
            let text = pipeline.text().to_owned();
            let old = Stage { text: &before_text, file: File { workspace: &before, file: before_file } };
            let new = Stage { text: &text, file: File { workspace: &workspace, file } };
            let mut values = values(step, old, new, verify, None)?;
            // Other functions do not belong to the lowered program.
            values.retain(|line| line.contains(&format!("`{entry}`")));
            let remarks = Remarks { values, ..Remarks::default() };
            each(Ran { pass: step, before: old.text, after: new.text, remarks })?;
            (before_text, before, before_file) = (text, workspace, file);
            Ok(())
        });
        lowered.map_err(|error| Failure::program(format!("rxopt: `{entry}`: {error}")))?
    }
}

/// Converts the reason why a pass or step has no result to a failure.
fn unapplied(pass: &str, why: Unapplied) -> Failure {
    match why {
        Unapplied::Refused(error) => Failure::program(format!("rxopt: {error}")),
        Unapplied::Broken(text, errors) => {
            let errors = drawn(&Source::new(&format!("after {pass}"), &text), &errors);
            Failure::program(format!("{errors}rxopt: {pass} made a module with errors\n"))
        }
    }
}

/// Compares the values of public functions before and after a pass, if there is a seed.
fn values(
    pass: &str,
    old: Stage<'_>,
    new: Stage<'_>,
    verify: Option<u64>,
    bound: Option<&Bound>,
) -> Result<Vec<String>, Failure> {
    match verify {
        Some(seed) if *old.text != *new.text => {
            let verdicts = compare_functions(old.file, new.file, bound, seed);
            verdicts.into_iter().map(|verdict| said(pass, verdict)).collect()
        }
        Some(_) => Ok(vec![format!("{pass}: the module is as it was")]),
        None => Ok(Vec::new()),
    }
}

/// A module before or after a pass.
#[derive(Clone, Copy)]
struct Stage<'s> {
    text: &'s str,
    file: File<'s>,
}

/// Renders the note that a pass changed the signature of a public function, at the function's name after the pass, or
/// before it if the function is gone.
fn signature_changed(pass: &str, function: Name, before: Stage<'_>, after: Stage<'_>) -> String {
    let found = |File { workspace, file }: File<'_>| {
        workspace.functions(file).into_iter().find(|row| row.name == function).map(|row| row.span)
    };
    let note = |message: String, span| vec![Diagnostic::new(Code::SignatureChanged, span, message)];
    if let Some(span) = found(after.file) {
        let message = format!("{pass} changes the signature of `{function}`");
        return drawn(&Source::new(&format!("after {pass}"), after.text), &note(message, span));
    }
    let span = found(before.file).unwrap_or_default();
    let removed = note(format!("{pass} removes `{function}`"), span);
    drawn(&Source::new(&format!("before {pass}"), before.text), &removed)
}

/// Formats the result of comparing a function's values. For example:
///
/// ```text
/// FoldConstant: `main`: the values agree, the worst difference is 1.192e-7
/// ```
fn said(pass: &str, (function, verdict): (Name, Verdict)) -> Result<String, Failure> {
    match verdict {
        Verdict::Same(worst) => {
            Ok(format!("{pass}: `{function}`: the values agree, the worst difference is {worst:.3e}"))
        }
        Verdict::NotRun(why) => Ok(format!("{pass}: `{function}` is not compared: {why}")),
        Verdict::Differs(message) => {
            Err(Failure::program(format!("rxopt: {pass} changes the values of `{function}`: {message}")))
        }
    }
}

fn drawn(source: &Source<'_>, errors: &[Diagnostic<Span>]) -> String {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    errors.iter().map(|error| rx_report::full(source, error, color) + "\n").collect()
}
