//! The program: loading, checking and lowering.

use crate::args::Args;
use crate::choices::Choices;
use crate::failure::Failure;
use crate::report::Report;
use rx_base::{Diagnostic, Name, Severity, Span};
use rx_db::{FileId, FileKind, FunctionRow, ModuleId, Operators, Project, Projects, Workspace};
use rx_driver::modules::{Unchosen, choose};
use rx_driver::program::GivenConstants;
use rx_ir::{Function, Origin};
use rx_lower::Program;
use rx_report::load::{Place, load};
use rx_report::{Content, Source};
use rx_settings::files::is_notebook;
use rx_settings::{Choice, Finder, Severities, Unreadable};
use rx_syntax::document::FunctionKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A program that was loaded and has no errors.
pub struct Session {
    pub name: String,
    content: Arc<Content>,
    pub workspace: Workspace,
    pub file: FileId,
    /// The module to run or show.
    pub module: ModuleId,
    /// The custom operators that the project declares in `rx.toml`.
    pub operators: Arc<Operators>,
    /// The options of the run.
    pub choices: Choices,
    /// Constants given by `--constants`, for which the text has no data.
    pub constants: GivenConstants,
}

impl Session {
    /// Loads and checks the program. Warnings are reported; errors are reported and returned as a failure.
    pub fn open(args: &Args, report: &mut Report) -> Result<Session, Failure> {
        let standard_input = args.file.as_os_str() == "-";
        let (name, place) = match standard_input {
            true => (args.stdin_name.clone(), Place::Stdin),
            false => (args.file.to_string_lossy().into_owned(), Place::File(args.file.clone())),
        };
        let start = Instant::now();
        let path = Path::new(&name);
        // The language server passes the masked text of a notebook's cells, under the notebook's name.
        let has_cells = is_notebook(path) && !standard_input;
        let content = load(&place).and_then(|loaded| Content::new(loaded, has_cells));
        let content =
            content.map_err(|error| Failure::usage(format!("{name}: {}", crate::report::io_message(&error))))?;
        let project = project(path, args, report)?;
        let mut workspace = Workspace::new();
        let file = workspace.add(&content.code(&content.text), FileKind::of_path(path));
        workspace.set_operators(file, project.operators.clone());
        let severities = project.file.settings.severities(path, &Choice::default());
        let diagnostics = match &content.mistake {
            Some(mistake) => vec![mistake.clone()],
            None => found(&workspace, file, &severities),
        };
        let checked = start.elapsed();
        let content = Arc::new(content);
        report.about(&name, content.clone());
        let source = content.source(&name, &content.text);
        let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
        for diagnostic in diagnostics.iter().filter(|diagnostic| diagnostic.severity <= Severity::Warning) {
            report.diagnostic(&source, diagnostic);
        }
        if errors > 0 {
            report.line(&format!("{errors} error{}; nothing is run", if errors == 1 { "" } else { "s" }));
            return Err(Failure::Reported(1));
        }
        report.checked(&name, checked);
        let choices = Choices::new(args, &project.file, path);
        let constants = crate::constants::given(args, report)?;
        let module = choose(&workspace, file, args.module.as_deref(), args.entry.as_deref());
        let module = module.map_err(|why| Failure::Module(format!("{name}: {why}"), labels(&why)))?;
        Ok(Session { workspace, file, module, operators: project.operators.clone(), choices, constants, name, content })
    }

    /// The text with its name, for positions.
    pub fn source(&self) -> Source<'_> {
        self.content.source(&self.name, &self.content.text)
    }

    /// The functions of the module, in order.
    pub fn functions(&self) -> Vec<FunctionRow> {
        let mut functions = self.workspace.functions(self.file);
        functions.retain(|function| function.module == self.module.module);
        functions
    }

    /// The Relax function of the module with this name.
    pub fn function(&self, name: Name) -> Option<Arc<Function>> {
        self.workspace.function(self.module, name)
    }

    /// The function to call: the one named by `wanted`, otherwise `main`, otherwise the only public Relax function.
    pub fn entry(&self, wanted: Option<&str>) -> Result<Name, Failure> {
        let functions = self.functions();
        let relax: Vec<_> = functions.iter().filter(|function| function.kind == FunctionKind::Relax).collect();
        let names = || relax.iter().map(|function| format!("`{}`", function.name)).collect::<Vec<_>>().join(", ");
        if let Some(wanted) = wanted {
            let found = relax.iter().find(|function| function.name.as_str() == wanted);
            return match (found, relax.is_empty()) {
                (Some(function), _) => Ok(function.name),
                (None, true) => Err(Failure::usage(format!("{}: there is no Relax function in it", self.name))),
                (None, false) => {
                    Err(Failure::usage(format!("{}: no Relax function `{wanted}`; it has {}", self.name, names())))
                }
            };
        }
        if let Some(main) = relax.iter().find(|function| function.name.as_str() == "main") {
            return Ok(main.name);
        }
        let mut public = relax.iter().filter(|function| !function.private);
        match (public.next(), public.next()) {
            (Some(only), None) => Ok(only.name),
            (None, _) if relax.is_empty() => {
                Err(Failure::usage(format!("{}: there is no Relax function in it", self.name)))
            }
            _ => Err(Failure::usage(format!(
                "{}: no function is called `main`; say which with --entry: {}",
                self.name,
                names()
            ))),
        }
    }

    /// Lowers `entry` for a device.
    pub fn lower(&self, entry: Name, device: &rx_build::Device) -> Result<Arc<Program>, Failure> {
        rx_build::program(&self.workspace, self.module, entry, device).map_err(Failure::Program)
    }

    /// Lowers `entry` to a program that reports the values of variables (`--values`).
    pub fn lower_watched(&self, entry: Name) -> Result<Arc<Program>, Failure> {
        rx_build::watched_program(&self.workspace, self.module, entry).map_err(Failure::Program)
    }

    /// The position of a statement in the text.
    pub fn span(&self, origin: Origin) -> Option<Span> {
        self.workspace.origin_span(self.module, origin)
    }

    /// The position in the text where a statement binds a variable.
    pub fn binding_span(&self, origin: Origin, variable: Name) -> Option<Span> {
        self.workspace.binding_span(self.module, origin, variable).or_else(|| self.span(origin))
    }
}

/// The names of the candidate modules, as `--module` takes them.
fn labels(why: &Unchosen) -> Vec<String> {
    why.modules().iter().map(|row| row.label.clone()).collect()
}

/// Finds and reads the settings that apply to the program.
fn project(program: &Path, args: &Args, report: &mut Report) -> Result<Arc<Project>, Failure> {
    let finder = match &args.config {
        Some(path) => Finder::given(path),
        None if args.isolated => Ok(Finder::isolated()),
        None => Ok(Finder::nearest()),
    };
    let unreadable = |Unreadable { path, error }| {
        Failure::usage(format!("{}: {}", path.display(), crate::report::io_message(&error)))
    };
    let project = finder.and_then(|finder| Projects::new(finder).of_file(program)).map_err(unreadable)?;
    if !project.is_wrong() {
        return Ok(project);
    }
    let path = project.file.path.as_deref().unwrap_or(Path::new(rx_settings::FILE_NAME));
    let name = path.to_string_lossy();
    let source = Source::new(&name, &project.file.text);
    project.file.mistakes.iter().for_each(|mistake| report.diagnostic(&source, mistake));
    report.line(&format!("{name} is wrong; nothing is run"));
    Err(Failure::Reported(2))
}

/// Returns the diagnostics of a program with the severities of `rx.toml` and suppression comments applied. Errors are
/// exempt: a program with an error does not run, even if the error is suppressed.
fn found(workspace: &Workspace, file: FileId, severities: &Severities) -> Vec<Diagnostic<Span>> {
    let is_error = |diagnostic: &Diagnostic<Span>| diagnostic.severity == Severity::Error;
    let mut rest = workspace.diagnostics(file);
    rest.retain(|diagnostic| !is_error(diagnostic));
    let mut found = workspace.unsuppressed_diagnostics(file);
    found.retain(is_error);
    found.extend(severities.apply(rest));
    found.sort_by_key(|diagnostic| diagnostic.primary);
    found
}
