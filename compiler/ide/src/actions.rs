//! What can be done about the mistakes of a place, and with the functions there.

use crate::changes::changes;
use rx_analysis::suppression::is_suppressible;
use rx_base::fix::{self, Edit};
use rx_base::{Code, Diagnostic, Span};
use rx_db::{Annotate, Document, FileView, FunctionKind};
use rx_syntax::Segment;
use rx_syntax::directive::{DirectiveKind, Named, Target};
use rx_syntax::document::{Item, ItemKind, Location};
use std::ops::Range;

/// A way out of a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuickFix {
    /// What it does.
    pub title: String,
    /// The mistake, by its index among those given.
    pub diagnostic: usize,
    /// Whether it is the one to take without looking.
    pub preferred: bool,
    /// What it changes.
    pub edits: Vec<Edit>,
}

/// The fixes of those mistakes that touch `range`, the safe ones first; and for each a comment that keeps it from being
/// reported.
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
            edits: vec![edit],
        }));
    }
    found
}

/// The edits that apply all safe fixes of a file together. `check` finds the mistakes of a text.
pub fn fix_all(view: &FileView<'_>, check: &mut dyn FnMut(&str) -> Vec<Diagnostic<Span>>) -> Vec<Edit> {
    let text = view.document().text();
    let fixed = fix::fix_all(&text, false, check);
    changes(&text, &fixed.text)
}

/// The edits that write the inferred types of a file, or of the function at a byte of it, where the text says none.
pub fn annotate(view: &FileView<'_>, function: Option<usize>) -> Vec<Edit> {
    let document = view.document();
    let range: Option<Range<usize>> = match function {
        None => None,
        Some(offset) => {
            let Some(location) = document.locate(offset) else { return Vec::new() };
            let start = document.item_start(location.item);
            // What touches the end belongs to the next item.
            Some(start..document.item_start(location.item + 1).saturating_sub(1).max(start))
        }
    };
    view.workspace().annotations(view.file(), Annotate::Missing, range)
}

/// The Relax function at a byte of a file, and whether the byte stands in its header.
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
    /// What it is.
    pub kind: FunctionKind,
    /// Its module, as [`Item::module`] numbers it.
    pub module: Option<u32>,
}

/// The first function of the module at a byte of a text, otherwise of the text.
pub fn first_function(document: &Document, offset: usize) -> Option<FunctionAt> {
    let module = document.locate(offset).and_then(|location| document.items().get(location.item)?.module);
    let mut all = document.items().iter().filter_map(named_function);
    all.clone().find(|function| module.is_some() && function.module == module).or_else(|| all.next())
}

/// The function of a module at a byte of a text.
pub fn function_in(document: &Document, offset: usize) -> Option<FunctionAt> {
    named_function(document.items().get(document.locate(offset)?.item)?)
}

fn named_function(item: &Item) -> Option<FunctionAt> {
    match item.kind {
        ItemKind::Function(kind) => Some(FunctionAt { name: item.name?, kind, module: item.module }),
        _ => None,
    }
}

/// The edit that keeps a diagnostic from being reported: its code behind those that a comment of its line names already, else
/// a comment at the line's end; in front of the statement where the line cannot have one.
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

/// The line around a byte, without its end and the blanks before that.
fn line_around(segment: &Segment, at: u32) -> Span {
    let text = segment.text();
    let at = text.floor_char_boundary(at as usize);
    let (before, after) = text.split_at(at);
    let start = before.rfind(['\n', '\r']).map_or(0, |found| found + 1);
    let end = at + after.find(['\n', '\r']).unwrap_or(after.len());
    let end = start + text.get(start..end).unwrap_or_default().trim_end().len();
    Span::new(start as u32, end as u32)
}

/// Whether a comment may stand at a line's end: no string goes over it, and nothing continues the line.
fn holds_comment(segment: &Segment, line: Span) -> bool {
    let tokens = &segment.tree().tokens;
    let continued = segment.text().get(line.range()).is_some_and(|line| line.ends_with('\\'));
    let over = tokens.span(tokens.at_or_after(line.end));
    let inside = over.is_some_and(|span| span.start < line.end && line.end < span.end);
    !continued && !inside
}

/// The first line of the statement that a line belongs to.
fn first_line(segment: &Segment, location: Location, line: Span) -> Span {
    let statement = segment.statement_before(u32::try_from(location.offset).unwrap_or(u32::MAX));
    statement.map_or(line, |(_, statement)| line_around(segment, statement.span.start))
}
