//! Code actions: fixes of diagnostics, and runs and rewrites of functions.

use super::edits::{are_allowed, workspace_edit};
use super::{Point, Uri, from_proto, lenses, to_proto};
use crate::documents;
use crate::reads::Subject;
use crate::run::COMMAND;
use rx_base::fix::Edit;
use rx_base::{Diagnostic, Span};
use rx_db::{FileId, Workspace};
use rx_ide::{Checked, FunctionAt, QuickFix, RefactorKind};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tower_lsp::ls_types as proto;

/// The kind of the actions that run a function.
pub const RUN: &str = "run.rx";
/// The kind of the action that applies all safe fixes of a file.
pub const FIX_ALL: &str = "source.fixAll.rx";
/// The kind of the action that writes the inferred types of a file.
pub const ANNOTATE: &str = "source.annotate.rx";
/// The kind of the action that writes the inferred types of a function.
pub const ANNOTATE_FUNCTION: &str = "refactor.rewrite.annotate.rx";
/// The kind of the action for a function that takes prepared weights: it adds an entry that takes raw weights and
/// prepares them once.
pub const RAW_ENTRY: &str = "refactor.rewrite.rawEntry.rx";

/// The kind of the actions that make a variable or a function of a part of a function.
pub const EXTRACT: &str = "refactor.extract";
/// The kind of the actions that replace a variable or a call by its definition.
pub const INLINE: &str = "refactor.inline";
/// The kind of the actions that write a function in another form.
pub const REWRITE: &str = "refactor.rewrite";

/// The `data` of an action whose edit is computed by `codeAction/resolve`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Late {
    /// The document.
    pub uri: Uri,
    what: EditKind,
}

/// The edit that an action makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum EditKind {
    FixAll,
    Annotate,
    /// Of the function at this position (line, column).
    AnnotateFunction(u32, u32),
    /// Of the function at this position (line, column).
    RawEntry(u32, u32),
}

/// Returns the actions for a range. If the context requests some kinds only, actions are limited to kinds equal to or
/// below one of them.
pub fn actions(
    subject: &Subject<'_>,
    (from, to): (Point, Point),
    context: &proto::CodeActionContext,
) -> proto::CodeActionResponse {
    let writing = &subject.profile.writing;
    let only = context.only.as_deref();
    let wanted = |kind: &str| only.is_none_or(|only| only.iter().any(|only| is_under(kind, only.as_str())));
    let mut found: proto::CodeActionResponse = Vec::new();
    let range = subject.span(from, to);
    let function = rx_ide::function_around(&subject.view, range.start as usize);
    if let (Some((FunctionAt { name, module, .. }, true)), true) = (function, wanted(RUN)) {
        let modules = subject.view.workspace().modules(subject.view.file());
        let call = |arguments| lenses::run_arguments(subject, (name.as_str(), module), arguments, &modules);
        let mut runs = vec![(format!("Compile and run `{name}`"), call(None))];
        if subject.preferences.gpu {
            runs.push((format!("Compile and run `{name}` on the GPU"), call(Some(json!(["--device", "cuda"])))));
        }
        found.extend(runs.into_iter().map(|(title, arguments)| {
            let command = proto::Command { title, command: COMMAND.to_owned(), arguments: Some(arguments) };
            match writing.actions {
                true => action(command.title.clone(), Some(RUN), |it| it.command = Some(command)),
                false => command.into(),
            }
        }));
    }
    if !writing.actions {
        return found;
    }
    let diagnostics = subject.diagnostics();
    // Some actions are offered only after a check of the text with their edits. Editors ask at every move of the cursor
    // and change of the selection, which is not worth it.
    let is_automatic = context.trigger_kind == Some(proto::CodeActionTriggerKind::AUTOMATIC);
    let is_requested = only.is_some() || !is_automatic;
    if wanted("quickfix") {
        let mut fixes = rx_ide::quick_fixes(&subject.view, &diagnostics, range);
        if is_requested {
            let mut check = |text: &str| check(subject, text);
            let symbolic = rx_ide::symbolic_kernel_fixes(&subject.view, &diagnostics, range, &mut check);
            fixes.splice(0..0, symbolic);
        }
        fixes.retain(|fix| are_allowed(subject, &fix.edits));
        fixes.sort_by_key(|fix| (!fix.preferred, fix.effect));
        found.splice(0..0, fixes.into_iter().map(|fix| quick_fix(subject, &diagnostics, fix)));
    }
    // Actions on a whole file or function are expensive to compute. They are offered only if the client requests their
    // kind, or if it resolves their edits later.
    let asked = |kind: &str| wanted(kind) && (only.is_some() || writing.late_actions);
    let fixable = || diagnostics.iter().any(|it| rx_base::fix::preferred(it, false).is_some());
    if asked(FIX_ALL) && fixable() {
        found.extend(whole(subject, "Apply all safe fixes".to_owned(), FIX_ALL, EditKind::FixAll));
    }
    if asked(ANNOTATE) {
        found.extend(whole(subject, "Write all inferred types".to_owned(), ANNOTATE, EditKind::Annotate));
    }
    if let (Some((FunctionAt { name, .. }, _)), true) = (function, asked(ANNOTATE_FUNCTION)) {
        let what = EditKind::AnnotateFunction(from.line, from.column);
        found.extend(whole(subject, format!("Write the inferred types of `{name}`"), ANNOTATE_FUNCTION, what));
    }
    if asked(RAW_ENTRY)
        && let Some((_, true)) = function
        && let Some(name) = rx_ide::takes_prepared_weights(&subject.view, range.start as usize)
    {
        let title = format!("Make `{name}` take raw weights, and prepare them once");
        found.extend(whole(subject, title, RAW_ENTRY, EditKind::RawEntry(from.line, from.column)));
    }
    if is_requested {
        found.extend(refactorings(subject, range, &diagnostics, &wanted));
    }
    found
}

/// Returns the refactorings of the kinds that `wanted` accepts.
fn refactorings(
    subject: &Subject<'_>,
    range: Span,
    diagnostics: &[Diagnostic<Span>],
    wanted: &dyn Fn(&str) -> bool,
) -> Vec<proto::CodeActionOrCommand> {
    let is_wanted = |kind: RefactorKind| wanted(refactor_kind(kind));
    let check = &mut |text: &str| with_text(subject, text, checked);
    let found = rx_ide::refactorings(&subject.view, range, diagnostics, &is_wanted, check);
    let offered = found.into_iter().filter(|found| are_allowed(subject, &found.edits)).map(|found| {
        let edit = workspace_edit(subject, found.edits);
        action(found.title, Some(refactor_kind(found.kind)), |it| it.edit = Some(edit))
    });
    offered.collect()
}

fn refactor_kind(kind: RefactorKind) -> &'static str {
    match kind {
        RefactorKind::Extract => EXTRACT,
        RefactorKind::Inline => INLINE,
        RefactorKind::Rewrite => REWRITE,
    }
}

/// Returns the data for resolving an action; `None` if the action needs no resolving.
pub fn late(action: &proto::CodeAction) -> Option<Late> {
    serde_json::from_value(action.data.clone()?).ok()
}

/// Returns the edit of an action that the user chose.
pub fn resolved(subject: &Subject<'_>, late: &Late) -> proto::WorkspaceEdit {
    workspace_edit(subject, edits(subject, late.what))
}

/// Whether a kind is `of` or below it. For example, `source.fixAll.rx` is below `source.fixAll`.
fn is_under(kind: &str, of: &str) -> bool {
    of.is_empty() || kind.strip_prefix(of).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Capitalizes a fix's title for the menu.
fn headline(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn action(title: String, kind: Option<&str>, fill: impl FnOnce(&mut proto::CodeAction)) -> proto::CodeActionOrCommand {
    let kind = kind.map(|kind| proto::CodeActionKind::from(kind.to_owned()));
    let mut action = proto::CodeAction { title, kind, ..Default::default() };
    fill(&mut action);
    action.into()
}

fn quick_fix(subject: &Subject<'_>, diagnostics: &[Diagnostic<Span>], fix: QuickFix) -> proto::CodeActionOrCommand {
    let of = diagnostics.get(fix.diagnostic).map(std::slice::from_ref).unwrap_or_default();
    let document = subject.view.document();
    let layout = subject.cell.map(|cell| &*cell.layout);
    let linked = to_proto::diagnostics(document, (subject.uri, layout), of, subject.profile);
    let linked = linked.into_iter().filter(|(uri, _)| uri == subject.uri).map(|(_, diagnostic)| diagnostic).collect();
    action(headline(&fix.title), Some("quickfix"), |it| {
        it.diagnostics = Some(linked);
        it.is_preferred = (fix.preferred && subject.profile.writing.preferred).then_some(true);
        it.edit = Some(workspace_edit(subject, fix.edits));
    })
}

/// Returns an action on a whole file or function. If the edit is computed now and is empty, there is no action.
fn whole(subject: &Subject<'_>, title: String, kind: &str, what: EditKind) -> Option<proto::CodeActionOrCommand> {
    if subject.profile.writing.late_actions {
        let data = serde_json::to_value(Late { uri: subject.uri.clone(), what }).ok();
        return Some(action(title, Some(kind), |it| it.data = data));
    }
    let edits = edits(subject, what);
    (!edits.is_empty()).then(|| action(title, Some(kind), |it| it.edit = Some(workspace_edit(subject, edits))))
}

fn edits(subject: &Subject<'_>, what: EditKind) -> Vec<Edit> {
    match what {
        EditKind::FixAll => rx_ide::fix_all(&subject.view, &mut |text| check(subject, text)),
        EditKind::Annotate => rx_ide::annotate(&subject.view, None),
        EditKind::AnnotateFunction(line, column) => {
            rx_ide::annotate(&subject.view, Some(subject.offset(Point { line, column })))
        }
        EditKind::RawEntry(line, column) => {
            rx_ide::raw_entry(&subject.view, subject.offset(Point { line, column })).unwrap_or_default()
        }
    }
}

/// Returns the diagnostics of a changed version of the subject's text. Hints are omitted, as by `rxcheck --fix`.
fn check(subject: &Subject<'_>, text: &str) -> Vec<Diagnostic<Span>> {
    with_text(subject, text, diagnostics)
}

fn diagnostics(subject: &Subject<'_>, workspace: &Workspace, file: FileId) -> Vec<Diagnostic<Span>> {
    let found = subject.said.apply(workspace.diagnostics(file));
    found.into_iter().filter(|it| it.severity < rx_base::Severity::Hint).collect()
}

/// Returns the diagnostics and the types of a changed version of the subject's text.
fn checked(subject: &Subject<'_>, workspace: &Workspace, file: FileId) -> Checked {
    Checked { diagnostics: diagnostics(subject, workspace, file), types: workspace.types(file) }
}

/// Checks a changed version of the subject's text with the subject's settings, and returns what `ask` reads of it.
fn with_text<T>(subject: &Subject<'_>, text: &str, ask: impl FnOnce(&Subject<'_>, &Workspace, FileId) -> T) -> T {
    // This query of the snapshot exists for cancellation: if an edit waits for the snapshot, the query unwinds here.
    let _ = subject.view.context(0);
    let mut workspace = Workspace::new();
    let file = documents::add(&mut workspace, text, subject.view.document().kind(), subject.said);
    ask(subject, &workspace, file)
}

/// Returns the start and end of a range.
pub fn points(range: proto::Range) -> (Point, Point) {
    (from_proto::point(range.start), from_proto::point(range.end))
}
