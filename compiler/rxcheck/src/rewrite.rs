//! `--fix`, `--annotate` and `--diff`: fixes mistakes and writes missing types, then writes the text or shows it as a
//! diff.

use crate::args::{Args, Which};
use crate::discover::Input;
use crate::output::Failure;
use rx_base::fix::{self, Fixed, TakenBack};
use rx_base::{Diagnostic, Severity, Span};
use rx_db::{Annotate, Workspace};
use rx_report::load::Place;
use rx_report::{Content, store};
use similar::TextDiff;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The most iterations of annotating a text.
const MOST_ITERATIONS: usize = 16;

/// The changes to texts that the command line asks for.
#[derive(Clone, Copy, Debug)]
pub struct Rewriting {
    fix: bool,
    with_unsafe: bool,
    /// Whether to apply the fixes of hints too.
    hints: bool,
    diff: bool,
    annotate: Option<Annotate>,
}

impl Rewriting {
    /// Reads the options from `args`; returns `None` if texts are not to be changed.
    pub fn new(args: &Args) -> Option<Rewriting> {
        let annotate = args.annotate.map(|which| match which {
            Which::Missing => Annotate::Missing,
            Which::All => Annotate::All,
        });
        let fix = args.fix || (args.diff && annotate.is_none());
        let (with_unsafe, hints, diff) = (args.unsafe_fixes, args.hints, args.diff);
        (fix || annotate.is_some()).then_some(Rewriting { fix, with_unsafe, hints, diff, annotate })
    }

    /// Whether to only show the changes.
    pub fn is_diff(self) -> bool {
        self.diff
    }
}

/// The result of rewriting a text.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// The new text.
    pub text: String,
    /// The text for standard output, in place of the diagnostics: a diff, or the rewritten text of standard input.
    pub shown: Option<String>,
    /// Whether the text changed.
    pub changed: bool,
    /// The number of fixed mistakes.
    pub fixed: usize,
    /// The number of written types.
    pub annotated: usize,
    /// The number of mistakes that have only an unsafe fix, if unsafe fixes were not requested.
    pub left: usize,
    /// One line for each fix that was tried and rejected.
    pub remarks: Vec<String>,
}

/// Rewrites a text, and its file unless a diff is wanted. `check` returns the diagnostics of a text.
///
/// # Errors
/// If the file cannot be written. It is unchanged then.
pub fn rewrite(
    input: &Input,
    content: &Content,
    rewriting: Rewriting,
    check: &mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>,
) -> Result<Rewritten, Failure> {
    let mut rewritten = Rewritten { text: content.text.clone(), ..Rewritten::default() };
    if rewriting.fix {
        fix_text(input, content, rewriting, check, &mut rewritten);
    }
    if let Some(which) = rewriting.annotate {
        annotate(input, content, which, check, &mut rewritten)?;
    }
    rewritten.changed = rewritten.text != content.text;
    let old = content.file();
    if !rewritten.changed {
        let is_printed = matches!(input.place, Place::Stdin) && !rewriting.diff;
        rewritten.shown = is_printed.then(|| old.to_owned());
        return Ok(rewritten);
    }
    let failed = |error: io::Error| Failure::new(input.shown.as_ref(), &error);
    let new = content.file_with(&rewritten.text).map_err(failed)?;
    match &input.place {
        _ if rewriting.diff => rewritten.shown = Some(diff(&input.shown, old, &new)),
        Place::Stdin => rewritten.shown = Some(new),
        Place::File(path) => write(path, old, &new).map_err(failed)?,
    }
    Ok(rewritten)
}

fn fix_text(
    input: &Input,
    content: &Content,
    rewriting: Rewriting,
    check: &mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>,
    rewritten: &mut Rewritten,
) {
    let wanted = |it: &Diagnostic<Span>| rewriting.hints || it.severity < Severity::Hint;
    let mut check = |text: &str| check(text).into_iter().filter(wanted).collect::<Vec<_>>();
    let Fixed { text, diagnostics, applied, taken_back } =
        fix::fix_all(&rewritten.text, rewriting.with_unsafe, &mut check);
    rewritten.text = text;
    rewritten.fixed = applied.len();
    rewritten.left = if rewriting.with_unsafe { 0 } else { fix::only_unsafe(&diagnostics) };
    let source = content.source(&input.shown, &rewritten.text);
    let remark = |TakenBack { code, title, line, because }: TakenBack| {
        let line = source.line(line).line_after_path();
        format!("{}:{line}: {code} not fixed: \"{title}\" would leave another mistake: {because}", input.shown)
    };
    rewritten.remarks = taken_back.into_iter().map(remark).collect();
}

/// Writes types into the text.
fn annotate(
    input: &Input,
    content: &Content,
    which: Annotate,
    check: &mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>,
    rewritten: &mut Rewritten,
) -> Result<(), Failure> {
    let mut text = rewritten.text.clone();
    let mut annotated = 0;
    // A new annotation may give more precise types to later values, so repeat.
    for _ in 0..MOST_ITERATIONS {
        let mut workspace = Workspace::new();
        let file = workspace.add(&content.code(&text), input.kind);
        workspace.set_operators(file, input.project.operators.clone());
        let edits = workspace.annotations(file, which, None);
        if edits.is_empty() {
            break;
        }
        annotated += edits.len();
        text = fix::apply(&text, &edits);
    }
    // Written types were inferred, so they should cause no error. If one does, leave the file unchanged.
    let (before, after) = (check(&rewritten.text), check(&text));
    if let Some(mistake) = fix::new_error(&before, &after) {
        let message = format!("left unchanged, because annotating it causes an error: {}", mistake.message);
        return Err(Failure::new(input.shown.as_ref(), &io::Error::other(message)));
    }
    rewritten.text = text;
    rewritten.annotated = annotated;
    Ok(())
}

/// Returns a unified diff, as `patch` and `git apply` read it.
fn diff(shown: &str, old: &str, new: &str) -> String {
    TextDiff::from_lines(old, new).unified_diff().header(shown, shown).to_string()
}

/// Replaces a file's content, which must still be `old`.
fn write(path: &Path, old: &str, new: &str) -> io::Result<()> {
    if std::fs::read(path)? != old.as_bytes() {
        return Err(io::Error::new(ErrorKind::ResourceBusy, "changed while it was checked; nothing is written"));
    }
    store::replace(path, new)
}
