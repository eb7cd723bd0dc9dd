//! The module on its way through the passes.

use rx_base::{Code, Diagnostic, Name, Severity, Span};
use rx_db::{FileId, FileKind, Operators, Projects, Workspace};
use rx_execute::values::{File, Verdict, compare_functions};
use rx_report::Source;
use rx_report::load::{Loaded, Place, load};
use rx_settings::Finder;
use rx_syntax::Document;
use rx_syntax::dialect::Dialect;
use rx_transform::Module;
use rx_transform::pass::{Step, changed_signatures};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why nothing is printed.
pub struct Failure {
    /// What is said.
    pub message: String,
    /// The exit status.
    pub status: u8,
}

impl Failure {
    /// The command line or a file is at fault.
    pub fn usage(message: &str) -> Failure {
        Failure { message: format!("rxopt: {message}"), status: 2 }
    }

    /// The program is at fault, or a pass.
    fn program(message: String) -> Failure {
        Failure { message, status: 1 }
    }
}

/// A module, its text, and how its file spells it.
pub struct Pipeline {
    module: Module,
    /// The module in the spelling of TVM 0.27.
    text: String,
    dialect: Dialect,
    operators: Arc<Operators>,
}

/// What a pass did that its user is told.
#[derive(Default)]
pub struct Remarks {
    /// Diagnostics, drawn.
    pub text: String,
    /// What was found of the values of public functions, a line each.
    pub values: Vec<String>,
}

impl Pipeline {
    /// Reads and checks a program.
    pub fn open(file: &str) -> Result<Pipeline, Failure> {
        let (name, place) = match file {
            "-" => ("<stdin>", Place::Stdin),
            path => (path, Place::File(PathBuf::from(path))),
        };
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension == "py") {
            return Err(Failure::usage(&format!("{name}: passes take modules by themselves, `.rx`, not in Python")));
        }
        let unreadable = |error: &dyn std::fmt::Display| Failure::usage(&format!("{name}: {error}"));
        let Loaded { text, mistake } = load(&place).map_err(|error| unreadable(&error))?;
        let project = Projects::new(Finder::nearest())
            .of_file(path)
            .map_err(|unread| Failure::usage(&format!("{}: {}", unread.path.display(), unread.error)))?;
        let operators = project.operators.clone();
        let (workspace, id) = checked(&text, operators.clone());
        let errors = mistake.map_or_else(|| errors(&workspace, id), |mistake| vec![mistake]);
        if !errors.is_empty() {
            return Err(Failure::program(drawn(name, &text, &errors)));
        }
        let document = Document::new(&text, FileKind::Rx);
        let dialect = Dialect::detect(&document);
        let current = rx_syntax::printer::print_as(&document, dialect, Dialect::Tvm027);
        let (workspace, id) = checked(&current, operators.clone());
        let module = workspace.module(id).map_err(|problem| Failure::program(format!("rxopt: {name}: {problem}")))?;
        let text = rx_transform::print(&module);
        Ok(Pipeline { module, text, dialect, operators })
    }

    /// The module's text, in the spelling of TVM 0.27.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The module's text, in the spelling of its file.
    pub fn spelled(&self) -> String {
        match self.dialect {
            Dialect::Tvm027 => self.text.clone(),
            other => {
                let document = Document::new(&self.text, FileKind::Rx);
                rx_syntax::printer::print_as(&document, Dialect::Tvm027, other)
            }
        }
    }

    /// Runs a pass and checks what it made; with a seed, public functions are run before and after, too.
    pub fn apply(&mut self, step: &Step, verify: Option<u64>) -> Result<Remarks, Failure> {
        let name = step.pass.name;
        let made = (step.pass.run)(self.module.clone(), &step.arguments.clone().with_evaluator(rx_execute::evaluate));
        let made = made.map_err(|error| Failure::program(format!("rxopt: {error}")))?;
        let text = rx_transform::print(&made);
        let (workspace, id) = checked(&text, self.operators.clone());
        let errors = errors(&workspace, id);
        if !errors.is_empty() {
            let errors = drawn(&format!("after {name}"), &text, &errors);
            return Err(Failure::program(format!("{errors}rxopt: {name} made a module with errors\n")));
        }
        let mut remarks = Remarks::default();
        for function in changed_signatures(&self.module, &made) {
            remarks.text.push_str(&self.signature_changed(name, function, &workspace, id));
        }
        if let Some(seed) = verify {
            remarks.values = self.verified(step, File { workspace: &workspace, file: id }, seed)?;
        }
        (self.module, self.text) = (made, text);
        Ok(remarks)
    }

    /// The note that a pass gave a public function another signature, at its name in what the pass made; of a function that
    /// is gone, where it was.
    fn signature_changed(&self, pass: &str, function: Name, after: &Workspace, made: FileId) -> String {
        let found = |workspace: &Workspace, file| {
            workspace.functions(file).into_iter().find(|row| row.name == function).map(|row| row.span)
        };
        let note = |what: String, span| vec![Diagnostic::new(Code::SignatureChanged, span, what)];
        if let Some(span) = found(after, made) {
            let what = format!("{pass} changes the signature of `{function}`");
            return drawn(&format!("after {pass}"), &after.document(made).text(), &note(what, span));
        }
        let (before, file) = checked(&self.text, self.operators.clone());
        let span = found(&before, file).unwrap_or_default();
        drawn(&format!("before {pass}"), &self.text, &note(format!("{pass} removes `{function}`"), span))
    }

    /// What running the public functions before and after a pass shows.
    fn verified(&self, step: &Step, after: File<'_>, seed: u64) -> Result<Vec<String>, Failure> {
        let pass = step.pass.name;
        let (before, file) = checked(&self.text, self.operators.clone());
        let bound = rx_transform::bound(&self.module, step);
        let verdicts = compare_functions(File { workspace: &before, file }, after, bound.as_ref(), seed);
        let line = |(function, verdict): (Name, Verdict)| match verdict {
            Verdict::Same(worst) => {
                Ok(format!("{pass}: `{function}`: the values agree, the worst difference is {worst:.3e}"))
            }
            Verdict::NotRun(why) => Ok(format!("{pass}: `{function}` is not verified: {why}")),
            Verdict::Differs(what) => {
                Err(Failure::program(format!("rxopt: {pass} changes the values of `{function}`: {what}")))
            }
        };
        verdicts.into_iter().map(line).collect()
    }
}

fn checked(text: &str, operators: Arc<Operators>) -> (Workspace, FileId) {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, FileKind::Rx);
    workspace.set_operators(file, operators);
    (workspace, file)
}

/// The errors of a file, whatever its comments say.
fn errors(workspace: &Workspace, file: FileId) -> Vec<Diagnostic<Span>> {
    let mut found = workspace.unsuppressed_diagnostics(file);
    found.retain(|diagnostic| diagnostic.severity == Severity::Error);
    found
}

fn drawn(name: &str, text: &str, errors: &[Diagnostic<Span>]) -> String {
    let source = Source::new(name, text);
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    errors.iter().map(|error| rx_report::full(&source, error, color) + "\n").collect()
}
