//! The module on its way through the passes.

use rx_base::{Diagnostic, Name, Severity, Span};
use rx_db::{FileId, FileKind, Operators, Projects, Workspace};
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
    changed: Vec<Name>,
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
        Ok(Pipeline { module, text, dialect, operators, changed: Vec::new() })
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

    /// Runs a pass and checks what it made.
    pub fn apply(&mut self, step: &Step) -> Result<(), Failure> {
        let name = step.pass.name;
        let made = (step.pass.run)(self.module.clone(), &step.arguments.clone().with_evaluator(rx_evaluate::evaluate));
        let made = made.map_err(|error| Failure::program(format!("rxopt: {error}")))?;
        let text = rx_transform::print(&made);
        let (workspace, id) = checked(&text, self.operators.clone());
        let errors = errors(&workspace, id);
        if !errors.is_empty() {
            let errors = drawn(&format!("after {name}"), &text, &errors);
            return Err(Failure::program(format!("{errors}rxopt: {name} made a module with errors\n")));
        }
        self.changed = changed_signatures(&self.module, &made);
        (self.module, self.text) = (made, text);
        Ok(())
    }

    /// The public functions whose signature the pass run last has changed.
    pub fn changed_signatures(&self) -> &[Name] {
        &self.changed
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
