//! Refactorings: edits at a selection that change the form of a Relax function and not its meaning.
//!
//! Each module proposes one refactoring from the text and the scopes of names. A proposal is offered only if the
//! changed text has no new errors and every variable that it does not touch keeps its type. For example, with the
//! cursor on `R.exp`:
//!
//! ```text
//! y = R.add(R.exp(x), x)       # before
//!
//! exp = R.exp(x)               # after: "Extract `exp` into a variable"
//! y = R.add(exp, x)
//! ```
//!
//! Comments stay: those of moved statements move with them, and that of a removed statement keeps its line.

mod drop_types;
mod extract_function;
mod extract_variable;
mod fresh;
mod inline_function;
mod inline_variable;
mod site;

use rx_base::fix::{self, Edit};
use rx_base::{Diagnostic, Name, Span};
use rx_db::{FileView, RowKind, TypeRow};
use std::collections::HashSet;

/// The kind of a refactoring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefactorKind {
    /// Part of a function becomes a variable or a function.
    Extract,
    /// A variable or a call is replaced by its definition.
    Inline,
    /// A function is written in another form.
    Rewrite,
}

/// A refactoring that can be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refactoring {
    /// The title.
    pub title: String,
    /// The kind.
    pub kind: RefactorKind,
    /// The edits, in order.
    pub edits: Vec<Edit>,
}

/// The result of checking a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checked {
    /// The diagnostics.
    pub diagnostics: Vec<Diagnostic<Span>>,
    /// The types of its variables.
    pub types: Vec<TypeRow>,
}

/// A refactoring before its result is checked.
struct Proposal {
    title: String,
    kind: RefactorKind,
    edits: Vec<Edit>,
    /// The function that contains the edits.
    edited: Name,
    /// The variables of that function whose types are not compared, because the edits remove, add or move them.
    touched: HashSet<String>,
    /// The function that the edits add.
    added: Option<String>,
    /// The variable that must be a value in the result, and not a scalar: a dim, an index or an attribute is no value.
    value: Option<String>,
}

/// Returns the refactorings of the kinds that `wanted` accepts for a selection, or for a cursor if `range` is empty.
/// `before` are the diagnostics of the text, and `check` checks a changed text.
pub fn refactorings(
    view: &FileView<'_>,
    range: Span,
    before: &[Diagnostic<Span>],
    wanted: &dyn Fn(RefactorKind) -> bool,
    check: &mut dyn FnMut(&str) -> Checked,
) -> Vec<Refactoring> {
    let text = &*view.document().text();
    let Some(range) = trimmed(text, range) else { return Vec::new() };
    let mut proposals = Vec::new();
    if wanted(RefactorKind::Extract) {
        proposals.extend(extract_variable::proposal(view, text, range));
        proposals.extend(extract_function::proposals(view, text, range));
    }
    if wanted(RefactorKind::Inline) {
        proposals.extend(inline_variable::proposal(view, range.start));
        proposals.extend(inline_function::proposal(view, text, range.start));
    }
    let mut trial = Trial { view, before, check, text, types: None };
    let mut found: Vec<Refactoring> = Vec::new();
    for proposal in proposals {
        // Of the variants of one refactoring, the first one that succeeds is offered.
        if found.iter().all(|found| found.title != proposal.title) && trial.succeeds(&proposal) {
            let Proposal { title, kind, edits, .. } = proposal;
            found.push(Refactoring { title, kind, edits });
        }
    }
    if wanted(RefactorKind::Rewrite) {
        found.extend(drop_types::refactoring(view, range.start, &mut trial));
    }
    found
}

/// Returns a selection without the blanks around it. A selection of blanks is the cursor at its start.
fn trimmed(text: &str, range: Span) -> Option<Span> {
    if range.is_empty() {
        return Some(range);
    }
    let selected = text.get(range.range())?;
    let blank = selected.len() - selected.trim_start().len();
    let start = range.start.checked_add(u32::try_from(blank).ok()?)?;
    let len = u32::try_from(selected.trim().len()).ok()?;
    Some(if len == 0 { Span::empty(range.start) } else { Span::new(start, start + len) })
}

/// Checks texts with the edits of proposals.
struct Trial<'t, 'v> {
    view: &'t FileView<'v>,
    before: &'t [Diagnostic<Span>],
    check: &'t mut dyn FnMut(&str) -> Checked,
    /// The text before the edits.
    text: &'t str,
    /// The types before the edits, once a proposal has needed them.
    types: Option<Vec<TypeRow>>,
}

impl Trial<'_, '_> {
    /// Whether the text with the edits has no new errors, and the variables that are not touched have their types.
    fn succeeds(&mut self, proposal: &Proposal) -> bool {
        let Some(after) = self.checked(&proposal.edits) else { return false };
        if !self.is_sound(&after) {
            return false;
        }
        let is_value = |row: &TypeRow| {
            row.kind == RowKind::Binding
                && Some(&row.name) == proposal.value.as_ref()
                && !row.struct_info.starts_with("T.")
        };
        let has_value = proposal.value.is_none() || after.types.iter().any(is_value);
        has_value && compared(&after.types, proposal).eq(compared(self.types(), proposal))
    }

    /// Returns the check of the text with these edits; `None` if they overlap or are outside the text.
    fn checked(&mut self, edits: &[Edit]) -> Option<Checked> {
        let in_order = edits.windows(2).all(|pair| matches!(pair, [(a, _), (b, _)] if a.end <= b.start));
        let inside = edits.iter().all(|(span, _)| self.text.get(span.range()).is_some());
        (in_order && inside && !edits.is_empty()).then(|| (self.check)(&fix::apply(self.text, edits)))
    }

    /// Whether a changed text has no error that the text does not have.
    fn is_sound(&self, after: &Checked) -> bool {
        fix::is_better(self.before, &after.diagnostics, 0)
    }

    /// Returns the types before the edits.
    fn types(&mut self) -> &[TypeRow] {
        self.types.get_or_insert_with(|| self.view.workspace().types(self.view.file()))
    }
}

/// Returns the function, name, kind and type of the rows that a proposal does not touch.
fn compared<'r>(
    rows: &'r [TypeRow],
    proposal: &'r Proposal,
) -> impl Iterator<Item = (&'r str, &'r str, RowKind, &'r str)> {
    let kept = move |row: &&TypeRow| {
        let is_edited = row.function == proposal.edited.as_str();
        let touched = is_edited && row.kind != RowKind::Return && proposal.touched.contains(&row.name);
        !touched && Some(&row.function) != proposal.added.as_ref()
    };
    rows.iter().filter(kept).map(|row| (&*row.function, &*row.name, row.kind, &*row.struct_info))
}
