//! One file, from its text to what is printed about it.

use crate::args::{Args, Format};
use crate::discover::Input;
use crate::output::{Counts, Failure};
use crate::{panics, types};
use rx_base::{Diagnostic, Severity, Span};
use rx_db::{Document, FileKind, Workspace};
use rx_report::Source;
use rx_report::load::{Loaded, load};
use rx_syntax::document::ItemKind;

/// What the command line asks of every file.
pub struct Options {
    format: Format,
    color: bool,
    types: bool,
    hints: bool,
    most: usize,
}

impl Options {
    /// The options of `args`.
    pub fn new(args: &Args) -> Options {
        Options {
            format: args.format,
            color: args.color(),
            types: args.types,
            hints: args.hints || args.format == Format::Json,
            most: args.most_reports(),
        }
    }
}

/// What became of one input.
pub enum Outcome {
    /// It was checked.
    Checked(Checked),
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
    /// Rendered diagnostics or types, each with its line end, [`Args::most_reports`] at most.
    pub reports: Vec<String>,
    /// Diagnostics that would be printed but for that limit.
    pub left_out: usize,
    /// Said about the file on stderr.
    pub remark: Option<String>,
}

/// Reads, checks and renders one input.
pub fn check(input: &Input, options: &Options) -> Outcome {
    match panics::catch(|| checked(input, options)) {
        Ok(outcome) => outcome,
        Err(panic) => Outcome::Failed(Failure::internal(&input.shown, &panic)),
    }
}

fn checked(input: &Input, options: &Options) -> Outcome {
    let Loaded { text, mistake } = match load(&input.place) {
        Ok(loaded) => loaded,
        Err(error) => return Outcome::Failed(Failure::new(input.shown.as_ref(), &error)),
    };
    let mut workspace = Workspace::new();
    let file = workspace.add(&text, input.kind);
    let without_relax = input.kind == FileKind::Python && !has_relax(workspace.document(file));
    if without_relax && !input.named {
        return Outcome::Skipped;
    }
    let source = Source::new(&input.shown, &text);
    // A text that was repaired on reading has one mistake, not those of the repair.
    let diagnostics = match mistake {
        Some(mistake) => vec![mistake],
        None => workspace.diagnostics(file),
    };
    let mut checked = Checked { counts: Counts::of(&diagnostics), ..Checked::default() };
    if without_relax {
        let remark = "no `@I.ir_module`, `@R.function` or `@T.prim_func` in it; nothing to check";
        checked.remark = Some(format!("{}: {remark}", input.shown));
    }
    if options.types {
        checked.reports = types::rows(&source, &workspace.types(file), options.format);
    } else {
        render(&source, &diagnostics, options, &mut checked);
    }
    Outcome::Checked(checked)
}

/// Whether a Python file has a part that rx reads.
fn has_relax(document: &Document) -> bool {
    document.items().iter().any(|item| !matches!(item.kind, ItemKind::Foreign | ItemKind::Prelude))
}

fn render(source: &Source<'_>, diagnostics: &[Diagnostic<Span>], options: &Options, checked: &mut Checked) {
    let visible = || diagnostics.iter().filter(|it| options.hints || it.severity < Severity::Hint);
    checked.reports = visible().take(options.most).map(|it| report(source, it, options)).collect();
    checked.left_out = visible().count() - checked.reports.len();
}

fn report(source: &Source<'_>, diagnostic: &Diagnostic<Span>, options: &Options) -> String {
    let mut report = match options.format {
        Format::Full => rx_report::full(source, diagnostic, options.color),
        Format::Concise => rx_report::concise(source, diagnostic, options.color),
        Format::Json => rx_report::json(source, diagnostic),
    };
    report.push('\n');
    report
}
