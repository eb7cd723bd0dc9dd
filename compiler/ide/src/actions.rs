//! Code actions: quick fixes of diagnostics, and lookup of the function at a position.

use crate::changes::changes;
use rx_analysis::suppression::is_suppressible;
use rx_base::fix::{self, Edit};
use rx_base::{Code, Diagnostic, Span};
use rx_db::{Annotate, Document, FileView, FunctionKind};
use rx_syntax::Segment;
use rx_syntax::directive::{DirectiveKind, Named, Target};
use rx_syntax::document::{Item, ItemKind, Location};
use std::ops::Range;

/// A fix of a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuickFix {
    /// The title.
    pub title: String,
    /// The index of the diagnostic in the given list.
    pub diagnostic: usize,
    /// Whether it is the preferred fix, which can be applied without a review.
    pub preferred: bool,
    /// Its effect.
    pub effect: Effect,
    /// The edits.
    pub edits: Vec<Edit>,
}

/// The effect of a [`QuickFix`], in the order in which fixes are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It fixes the mistake.
    Fixes,
    /// It fixes the mistake, but leaves another one that follows from the change.
    Moves,
    /// It adds a comment that suppresses the diagnostic.
    Suppresses,
}

/// Returns the fixes of the diagnostics that touch `range`, safe ones first. For each diagnostic, a further fix adds a
/// comment that suppresses it.
pub fn quick_fixes(view: &FileView<'_>, diagnostics: &[Diagnostic<Span>], range: Span) -> Vec<QuickFix> {
    let touched = |it: &&(usize, &Diagnostic<Span>)| it.1.primary.start <= range.end && range.start <= it.1.primary.end;
    let touched: Vec<(usize, &Diagnostic<Span>)> = diagnostics.iter().enumerate().filter(|it| touched(&it)).collect();
    let mut found = Vec::new();
    if touched.iter().any(|(_, it)| !it.fixes.is_empty()) {
        let text = view.document().text();
        for (at, diagnostic) in &touched {
            let preferred = fix::preferred(diagnostic, false);
            let edits = diagnostic.fixes.iter().filter_map(|fix| Some((fix, fix::edits(&text, fix)?)));
            found.extend(edits.map(|(fix, edits)| QuickFix {
                title: fix.title.clone(),
                diagnostic: *at,
                preferred: preferred.is_some_and(|preferred| std::ptr::eq(preferred, fix)),
                effect: Effect::Fixes,
                edits,
            }));
        }
        found.sort_by_key(|fix| !fix.preferred);
    }
    let mut silenced: Vec<(Code, u32)> = Vec::new();
    for (at, diagnostic) in touched {
        let line = view.document().line_column(diagnostic.primary.start as usize, rx_db::Encoding::Utf8).0;
        if silenced.contains(&(diagnostic.code, line)) {
            continue;
        }
        silenced.push((diagnostic.code, line));
        let edit = if is_suppressible(diagnostic.code) { suppression(view, diagnostic) } else { None };
        found.extend(edit.map(|edit| QuickFix {
            title: format!("ignore {} here", diagnostic.code),
            diagnostic: at,
            preferred: false,
            effect: Effect::Suppresses,
            edits: vec![edit],
        }));
    }
    found
}

/// Returns the edits that apply all safe fixes of a file together. `check` returns the diagnostics of a text.
pub fn fix_all(view: &FileView<'_>, check: &mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>) -> Vec<Edit> {
    let text = view.document().text();
    let fixed = fix::fix_all(&text, false, check);
    changes(&text, &fixed.text)
}

/// Returns the edits that write the missing type annotations of a file, or of the function at the byte offset
/// `function`.
pub fn annotate(view: &FileView<'_>, function: Option<usize>) -> Vec<Edit> {
    let document = view.document();
    let range: Option<Range<usize>> = match function {
        None => None,
        Some(offset) => {
            let Some(location) = document.locate(offset) else { return Vec::new() };
            let start = document.item_start(location.item);
            // An annotation at the end of the item would belong to the next item.
            Some(start..document.item_start(location.item + 1).saturating_sub(1).max(start))
        }
    };
    view.workspace().annotations(view.file(), Annotate::Missing, range)
}

/// Returns the Relax function at a byte offset, and whether the offset is in its header.
pub fn function_around(view: &FileView<'_>, offset: usize) -> Option<(FunctionAt, bool)> {
    let function = function_in(view.document(), offset)?;
    let location = view.document().locate(offset)?;
    (function.kind == FunctionKind::Relax).then_some((function, location.segment == 0))
}

/// A function of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionAt {
    /// Its name.
    pub name: rx_base::Name,
    /// Its kind.
    pub kind: FunctionKind,
    /// The index of its module, as in [`Item::module`].
    pub module: Option<u32>,
}

/// Returns the first function of the module at a byte offset. If there is none, the first function of the text.
pub fn first_function(document: &Document, offset: usize) -> Option<FunctionAt> {
    let module = document.locate(offset).and_then(|location| document.items().get(location.item)?.module);
    let mut all = document.items().iter().filter_map(named_function);
    all.clone().find(|function| module.is_some() && function.module == module).or_else(|| all.next())
}

/// Returns the function at a byte offset.
pub fn function_in(document: &Document, offset: usize) -> Option<FunctionAt> {
    named_function(document.items().get(document.locate(offset)?.item)?)
}

fn named_function(item: &Item) -> Option<FunctionAt> {
    match item.kind {
        ItemKind::Function(kind) => Some(FunctionAt { name: item.name?, kind, module: item.module }),
        _ => None,
    }
}

/// Returns the edit that suppresses a diagnostic. If the line has an `ignore` comment, the code is appended to its
/// list. Otherwise a comment is added at the end of the line or, if the line cannot have a comment, before the
/// statement.
fn suppression(view: &FileView<'_>, diagnostic: &Diagnostic<Span>) -> Option<Edit> {
    let document = view.document();
    let location = document.locate(diagnostic.primary.start as usize)?;
    let segment = document.segment(location)?;
    let base = u32::try_from(document.segment_start(location.item, location.segment)).ok()?;
    let at = u32::try_from(location.offset).ok()?;
    let (text, line) = (segment.text(), line_around(segment, at));
    let named = segment.directives().iter().find_map(|directive| match (&directive.kind, directive.target) {
        (DirectiveKind::Ignore(Named::Codes(codes)), Target::Here { line: of, .. }) if of.start == line.start => {
            codes.last().copied()
        }
        _ => None,
    });
    if let Some(last) = named {
        return Some((Span::empty(last.end).shift(base), format!(", {}", diagnostic.code)));
    }
    let comment = format!("# rx: ignore[{}]", diagnostic.code);
    if holds_comment(segment, line) {
        return Some((Span::empty(line.end).shift(base), format!("  {comment}")));
    }
    let first = first_line(segment, location, line);
    let indent: String = text.get(first.range())?.chars().take_while(|it| matches!(it, ' ' | '\t')).collect();
    let end = document.line_end();
    Some((Span::empty(first.start).shift(base), format!("{indent}{comment}{end}")))
}

/// Returns the line that contains a byte, without its line end and trailing blanks.
fn line_around(segment: &Segment, at: u32) -> Span {
    let text = segment.text();
    let at = text.floor_char_boundary(at as usize);
    let (before, after) = text.split_at(at);
    let start = before.rfind(['\n', '\r']).map_or(0, |found| found + 1);
    let end = at + after.find(['\n', '\r']).unwrap_or(after.len());
    let end = start + text.get(start..end).unwrap_or_default().trim_end().len();
    Span::new(start as u32, end as u32)
}

/// Whether a comment can be added at the end of a line: no string extends beyond it, and no backslash continues it.
fn holds_comment(segment: &Segment, line: Span) -> bool {
    let tokens = &segment.tree().tokens;
    let continued = segment.text().get(line.range()).is_some_and(|line| line.ends_with('\\'));
    let over = tokens.span(tokens.at_or_after(line.end));
    let inside = over.is_some_and(|span| span.start < line.end && line.end < span.end);
    !continued && !inside
}

/// Returns the first line of the statement that a line belongs to.
fn first_line(segment: &Segment, location: Location, line: Span) -> Span {
    let statement = segment.statement_before(u32::try_from(location.offset).unwrap_or(u32::MAX));
    statement.map_or(line, |(_, statement)| line_around(segment, statement.span.start))
}
