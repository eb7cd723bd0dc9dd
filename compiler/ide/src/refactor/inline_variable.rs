//! Inline variable: replaces the uses of a variable by its value, and removes the binding.
//!
//! ```text
//! y = R.exp(x)                # before
//! z = R.add(y, x)
//!
//! z = R.add(R.exp(x), x)      # after
//! ```
//!
//! Requires a value without side effects, and that no name in it is bound again before the last use.

use super::site::{Site, names, operand};
use super::{Proposal, RefactorKind};
use crate::names::{Access, File, Occurrence, Role, SymbolKind, read, symbol_at};
use rx_base::Span;
use rx_base::fix::Edit;
use rx_db::FileView;
use rx_syntax::ast::{Expr, ExprKind};
use std::collections::HashSet;

/// Returns the inlining of the variable whose name is at `offset`.
pub(super) fn proposal(view: &FileView<'_>, offset: u32) -> Option<Proposal> {
    let symbol = symbol_at(view, offset as usize).filter(|symbol| symbol.kind == SymbolKind::Variable)?;
    let &[declaration] = symbol.declarations.as_slice() else { return None };
    let site = Site::at(view, declaration.start)?;
    let (_, value) = site.binding().filter(|(target, _)| *target == declaration)?;
    let uses: Vec<&Occurrence> = symbol.occurrences.iter().filter(|found| found.span != declaration).collect();
    let last = uses.iter().map(|found| found.span.start).max()?;
    let is_use = |found: &&Occurrence| {
        found.access == Access::Read && found.literal.is_none() && site.span().end <= found.span.start
    };
    if !uses.iter().all(is_use) || is_rebound(view, &site, value, last) || binds_symbols(&site, value) {
        return None;
    }
    let cursor = site.cursor();
    if !site.is_pure(view, cursor.source(value.tokens)) {
        return None;
    }
    let mut edits: Vec<Edit> = vec![site.removal()?];
    for found in uses {
        edits.push((found.span, inserted(view, &site, value, found.span)?));
    }
    edits.sort();
    let (title, touched) = (format!("Inline `{}`", symbol.name), HashSet::from([symbol.name.to_string()]));
    let edited = site.function(view)?;
    Some(Proposal { title, kind: RefactorKind::Inline, edits, edited, touched, added: None, value: None })
}

/// Returns the text of the value in place of a use: in parentheses, unless the use is a whole argument or value. `None`
/// if the use is no expression.
fn inserted(view: &FileView<'_>, site: &Site<'_>, value: &Expr, place: Span) -> Option<String> {
    let user = Site::at(view, place.start)?;
    let (_, path) = user.path(place.start)?;
    let [around @ .., used] = &path[..] else { return None };
    let is_name = matches!(used.kind, ExprKind::Name);
    let text = site.cursor().source(value.tokens);
    let is_whole = match around.last().map(|around| &around.kind) {
        Some(ExprKind::Call { callee, .. }) => !std::ptr::eq(&**callee, *used),
        Some(_) => false,
        None => user.value().is_some_and(|value| std::ptr::eq(value, *used)),
    };
    let is_tuple = matches!(value.kind, ExprKind::Tuple(_));
    let is_short = is_whole && !is_tuple && !text.contains(['\n', '\r']);
    is_name.then(|| if is_short { text.to_owned() } else { operand(site.cursor(), value) })
}

/// Whether a name of the value is bound again between the statement and the byte `last` of the file.
fn is_rebound(view: &FileView<'_>, site: &Site<'_>, value: &Expr, last: u32) -> bool {
    let Some(item) = view.document().items().get(site.item) else { return true };
    let names = names([(site, value.tokens)]);
    let reading = read(item, &names, site.number..item.segments.len());
    let after = site.span().end;
    reading.mentions.iter().any(|mention| {
        let Some(wanted) = names.get(mention.which).copied() else { return true };
        let file = File { view, wanted };
        let is_between = file.span(site.item, mention).is_none_or(|it| after <= it.start && it.start < last);
        matches!(mention.role, Role::Bind(_)) && is_between
    })
}

/// Whether the value may bind symbolic dims, which later statements use.
fn binds_symbols(site: &Site<'_>, value: &Expr) -> bool {
    let cursor = site.cursor();
    (value.tokens.start..value.tokens.end).any(|token| cursor.text(token) == "match_cast")
}
