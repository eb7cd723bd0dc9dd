//! One file, from its text to what is printed about it.

use crate::args::Args;
use crate::discover::Input;
use crate::output::{Counts, Failure};
use crate::rewrite::{Rewriting, Rewritten, rewrite};
use crate::{panics, stats, types};
use rx_base::{Diagnostic, Severity, Span, TvmVersion};
use rx_db::{Document, FileId, FileKind, Project, Workspace};
use rx_report::load::{Loaded, Place, load};
use rx_report::{Format, Piece, Source};
use rx_settings::Choice;
use rx_syntax::document::ItemKind;
use std::path::Path;

/// What the command line asks of every file.
pub struct Options {
    format: Format,
    color: bool,
    types: bool,
    stats: bool,
    hints: bool,
    most: usize,
    error_on_warning: bool,
    choice: Choice,
    rewriting: Option<Rewriting>,
    tvm: Option<TvmVersion>,
}

impl Options {
    /// The options of `args`.
    pub fn new(args: &Args) -> Options {
        Options {
            format: args.format(),
            color: args.color(),
            types: args.types,
            stats: args.stats,
            hints: args.hints || args.format() == Format::Json,
            most: args.most_reports(),
            error_on_warning: args.error_on_warning,
            choice: args.choice(),
            rewriting: Rewriting::new(args),
            tvm: args.tvm,
        }
    }
}

/// What became of one input.
pub enum Outcome {
    /// It was checked.
    Checked(Checked),
    /// It is a settings file with mistakes.
    Settings(Checked),
    /// It could not be read, or rxcheck failed on it.
    Failed(Failure),
    /// Python without Relax, found in a folder.
    Skipped,
}

/// A file that was checked.
#[derive(Default)]
pub struct Checked {
    /// Diagnostics by severity, printed or not.
    pub counts: Counts,
    /// Whether what was found sets the exit status.
    pub fails: bool,
    /// The file as it is shown.
    pub name: String,
    /// Its diagnostics as written, [`Args::most_reports`] at most.
    pub pieces: Vec<Piece>,
    /// The lines of `--types` or `--stats`, with their line ends.
    pub types: Vec<String>,
    /// Diagnostics that would be printed but for that limit.
    pub left_out: usize,
    /// Said about the file on stderr.
    pub remark: Option<String>,
    /// What was changed in the text.
    pub rewritten: Rewritten,
}

/// Reads, checks and renders one input.
pub fn check(input: &Input, options: &Options) -> Outcome {
    match panics::catch(|| checked(input, options)) {
        Ok(outcome) => outcome,
        Err(panic) => Outcome::Failed(Failure::internal(&input.shown, &panic)),
    }
}

fn checked(input: &Input, options: &Options) -> Outcome {
    let Loaded { mut text, mistake } = match load(&input.place) {
        Ok(loaded) => loaded,
        Err(error) => return Outcome::Failed(Failure::new(input.shown.as_ref(), &error)),
    };
    let mut rewritten = Rewritten::default();
    if let (Some(rewriting), None) = (options.rewriting, &mistake) {
        rewritten = match rewrite(input, &text, rewriting, &mut |text| diagnostics(text, input, options)) {
            Ok(rewritten) => rewritten,
            Err(failure) => return Outcome::Failed(failure),
        };
        if rewriting.is_diff() {
            return Outcome::Checked(Checked { rewritten, ..Checked::default() });
        }
        text = std::mem::take(&mut rewritten.text);
    }
    let (workspace, file) = workspace(&text, input, options);
    report(input, options, Text { workspace: &workspace, file, text: &text, mistake }, rewritten)
}

/// A database of one text, that of an input.
pub fn workspace(text: &str, input: &Input, options: &Options) -> (Workspace, FileId) {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, input.kind);
    configure(&mut workspace, file, input, options);
    (workspace, file)
}

/// Tells a database what rx.toml and the command line say of an input.
pub fn configure(workspace: &mut Workspace, file: FileId, input: &Input, options: &Options) {
    workspace.set_tvm(file, options.tvm.or(input.settings().tvm_version));
    workspace.set_operators(file, input.project.operators.clone());
}

/// A text that is in a database.
pub struct Text<'t> {
    /// The database.
    pub workspace: &'t Workspace,
    /// Its file there.
    pub file: FileId,
    /// The text.
    pub text: &'t str,
    /// What is wrong with its encoding.
    pub mistake: Option<Diagnostic<Span>>,
}

/// Renders what is found in a text.
pub fn report(input: &Input, options: &Options, text: Text<'_>, rewritten: Rewritten) -> Outcome {
    let Text { workspace, file, text, mistake } = text;
    let without_relax = input.kind == FileKind::Python && !has_relax(workspace.document(file));
    if without_relax && !input.named {
        return Outcome::Skipped;
    }
    let name = shown(input, options.format);
    let source = Source::new(&name, text);
    // A text that was repaired on reading has one mistake, not those of the repair.
    let diagnostics = match mistake {
        Some(mistake) => vec![mistake],
        None => reported(workspace, file, input, options),
    };
    let counts = Counts::of(&diagnostics);
    let strict = options.error_on_warning || input.settings().error_on_warning;
    let mut checked =
        Checked { counts, fails: counts.fails(strict), name: name.clone(), rewritten, ..Checked::default() };
    if without_relax {
        let remark = "no `@I.ir_module`, `@R.function` or `@T.prim_func` in it; nothing to check";
        checked.remark = Some(format!("{}: {remark}", input.shown));
    }
    if options.types {
        checked.types = types::rows(&source, &workspace.types(file), options.format);
    } else if options.stats {
        checked.types = stats::rows(&source, workspace, file, options.format);
    } else {
        let hints = options.hints || input.settings().hints;
        render(&source, &diagnostics, options, hints, &mut checked);
    }
    Outcome::Checked(checked)
}

/// The mistakes of a text that stands in no file but is an input's.
fn diagnostics(text: &str, input: &Input, options: &Options) -> Vec<Diagnostic<Span>> {
    let (workspace, file) = workspace(text, input, options);
    reported(&workspace, file, input, options)
}

/// The diagnostics of a file as rx.toml and the command line want them.
pub fn reported(workspace: &Workspace, file: FileId, input: &Input, options: &Options) -> Vec<Diagnostic<Span>> {
    let severities = input.settings().severities(input.path(), &options.choice);
    severities.apply(workspace.diagnostics(file))
}

/// Renders the mistakes of a settings file.
pub fn settings(project: &Project, options: &Options) -> Outcome {
    let file = &project.file;
    let path = file.path.as_deref().unwrap_or(Path::new(rx_settings::FILE_NAME));
    let here = std::env::current_dir().unwrap_or_default();
    let name = path.strip_prefix(here).unwrap_or(path).to_string_lossy();
    let mut checked = Checked {
        counts: Counts::of(&file.mistakes),
        fails: true,
        name: name.clone().into_owned(),
        ..Checked::default()
    };
    render(&Source::new(&name, &file.text), &file.mistakes, options, false, &mut checked);
    Outcome::Settings(checked)
}

/// Whether a Python file has a part that rx reads.
fn has_relax(document: &Document) -> bool {
    document.items().iter().any(|item| !matches!(item.kind, ItemKind::Foreign | ItemKind::Prelude))
}

fn render(
    source: &Source<'_>,
    diagnostics: &[Diagnostic<Span>],
    options: &Options,
    hints: bool,
    checked: &mut Checked,
) {
    let visible = || diagnostics.iter().filter(|it| hints || it.severity < Severity::Hint);
    checked.pieces = options.format.pieces(source, visible().take(options.most), options.color);
    checked.left_out = visible().count() - checked.pieces.len();
}

/// The name an input is shown under: the path as people wrote it; in the formats of a server, which knows the project and
/// not where rxcheck ran in it, the path below the project's root.
fn shown(input: &Input, format: Format) -> String {
    let root = match format {
        Format::Github => std::env::var_os("GITHUB_WORKSPACE"),
        Format::Gitlab => std::env::var_os("CI_PROJECT_DIR"),
        _ => None,
    };
    let below = || {
        let Place::File(path) = &input.place else { return None };
        let path = std::path::absolute(path).ok()?;
        Some(path.strip_prefix(root?).ok()?.to_string_lossy().into_owned())
    };
    below().unwrap_or_else(|| input.shown.clone())
}
