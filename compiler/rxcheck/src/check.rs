//! Checks one file: from its text to the rendered output.

use crate::args::Args;
use crate::content::read;
use crate::discover::Input;
use crate::output::{Counts, Failure};
use crate::rewrite::{Rewriting, Rewritten, rewrite};
use crate::{panics, stats, types};
use rx_base::{Diagnostic, Severity, Span, TvmVersion};
use rx_db::{Document, FileId, FileKind, Project, Workspace};
use rx_report::load::Place;
use rx_report::{Content, Format, Piece, Source};
use rx_settings::Choice;
use rx_syntax::document::ItemKind;
use std::path::Path;

/// The options that apply to every file.
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
    /// Reads the options from `args`.
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

/// The result for one input.
pub enum Outcome {
    /// The input was checked.
    Checked(Checked),
    /// The input is a settings file with mistakes.
    Settings(Checked),
    /// The input could not be read, or rxcheck panicked on it.
    Failed(Failure),
    /// A Python file without Relax code, found in a folder.
    Skipped,
}

/// The result of a check.
#[derive(Default)]
pub struct Checked {
    /// Numbers of diagnostics by severity, printed or not.
    pub counts: Counts,
    /// Whether the diagnostics make the exit status 1.
    pub fails: bool,
    /// The file's name as shown.
    pub name: String,
    /// The rendered diagnostics, at most [`Args::most_reports`].
    pub pieces: Vec<Piece>,
    /// The lines of `--types` or `--stats`, with their line ends.
    pub types: Vec<String>,
    /// The number of diagnostics that were left out because of that limit.
    pub left_out: usize,
    /// A note about the file for stderr.
    pub remark: Option<String>,
    /// The changes made to the text.
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
    let mut content = match read(input) {
        Ok(content) => content,
        Err(error) => return Outcome::Failed(Failure::new(input.shown.as_ref(), &error)),
    };
    let mut rewritten = Rewritten::default();
    if let (Some(rewriting), None) = (options.rewriting, &content.mistake) {
        rewritten =
            match rewrite(input, &content, rewriting, &mut |text| diagnostics(&content.code(text), input, options)) {
                Ok(rewritten) => rewritten,
                Err(failure) => return Outcome::Failed(failure),
            };
        if rewriting.is_diff() {
            return Outcome::Checked(Checked { rewritten, ..Checked::default() });
        }
        content.text = std::mem::take(&mut rewritten.text);
    }
    let (workspace, file) = workspace(&content.code(&content.text), input, options);
    report(input, options, Text { workspace: &workspace, file, content: &content }, rewritten)
}

/// Creates a database with the parsed text of an input ([`Content::code`]).
pub fn workspace(code: &str, input: &Input, options: &Options) -> (Workspace, FileId) {
    let mut workspace = Workspace::new();
    let file = workspace.add(code, input.kind);
    configure(&mut workspace, file, input, options);
    (workspace, file)
}

/// Sets the options of rx.toml and the command line that the database needs.
pub fn configure(workspace: &mut Workspace, file: FileId, input: &Input, options: &Options) {
    workspace.set_tvm(file, options.tvm.or(input.settings().tvm_version));
    workspace.set_operators(file, input.project.operators.clone());
}

/// A text with the database that contains it.
pub struct Text<'t> {
    /// The database.
    pub workspace: &'t Workspace,
    /// The text's file id in the database.
    pub file: FileId,
    /// The text, with what is known of its file.
    pub content: &'t Content,
}

/// Renders the diagnostics of a text.
pub fn report(input: &Input, options: &Options, text: Text<'_>, rewritten: Rewritten) -> Outcome {
    let Text { workspace, file, content } = text;
    let without_relax = input.kind == FileKind::Python && !has_relax(workspace.document(file));
    if without_relax && !input.named {
        return Outcome::Skipped;
    }
    let name = shown(input, options.format);
    let source = content.source(&name, &content.text);
    // If wrong encoding was replaced on reading, report only that, not the errors of the replaced text.
    let diagnostics = match &content.mistake {
        Some(mistake) => vec![mistake.clone()],
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

/// Checks a parsed text under the settings of an input, without reading its file.
fn diagnostics(code: &str, input: &Input, options: &Options) -> Vec<Diagnostic<Span>> {
    let (workspace, file) = workspace(code, input, options);
    reported(&workspace, file, input, options)
}

/// Returns the diagnostics of a file with the severities of rx.toml and the command line applied.
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

/// Returns the name that an input is shown under: the path as the user wrote it. In the formats for GitHub and GitLab
/// it is the path relative to the project's root, because these servers do not know the working directory.
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
