//! The fix of a call with effects in a dataflow block: moves the statement after the block.
//!
//! ```text
//! with R.dataflow():                 with R.dataflow():
//!     y = R.nn.relu(x)                   y = R.nn.relu(x)
//!     R.print(y)                   →     R.output(y)
//!     R.output()                     R.print(y)
//! ```

use super::memo::State;
use crate::elaborate::{PURITY_ANCHOR, purity_text};
use crate::entry::{Entry, FUNCTION_CONTEXT};
use rx_base::name::name;
use rx_base::{Fix, Name, Span};
use rx_context::ItemPlace;
use rx_ir::{Shape, StructInfo};
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segment, Statement, TokenKind};

/// The maximal number of statements between the call and the end of its block.
const LOOKED_AT: usize = 1024;

/// A statement of the function, with its segment and the segment's index.
#[derive(Clone, Copy)]
struct Found<'s> {
    at: usize,
    segment: &'s Segment,
    statement: &'s Statement,
}

impl State {
    /// Returns the fix that moves the statement at `span` of segment `at` after its dataflow block, if no other
    /// statement of the block uses its value, and declares the function as impure. The fix is safe for operators that
    /// only read their arguments.
    pub(super) fn move_out(&self, at: u32, span: Span) -> Option<Fix<ItemPlace>> {
        let first = at as usize;
        let mut rest = self.statements(first);
        let own = rest.find(|found| found.at > first || span.start < found.statement.span.end)?;
        let bound = own.bound()?;
        let indent = own.statement.indent;
        let is_other = |found: &Found<'_>| {
            indent <= found.statement.indent && bound.is_none_or(|bound| !found.names().contains(&bound))
        };
        let output = rest.by_ref().take(LOOKED_AT).take_while(is_other).find(|found| found.is_output())?;
        let header = self.header_before(first, span, indent)?;
        let next = rest.next().filter(|next| next.statement.indent == header.indent)?;
        let (line, space) = next.line_start()?;
        let lines = own.lines()?;
        // The comment at the end of the line moves, too.
        let text = own.segment.text().get(own.statement.span.start as usize..lines.end as usize)?.trim_end();
        let mut edits = vec![(own.place(lines)?, String::new())];
        edits.push((next.place(Span::empty(line))?, format!("{space}{text}\n")));
        let (outputs, mut local) = (output.names(), own.names());
        local.retain(|name| Some(*name) != bound && self.is_local(*name, at) && !outputs.contains(name));
        if !local.is_empty() {
            edits.push(output.with_outputs(&local)?);
        }
        edits.extend(self.impure_edit(at));
        let callee = own.segment.text().get(span.range())?;
        let safe = callee.ends_with(".print") || callee.ends_with(".assert_op");
        Some(Fix { title: "move the call after the dataflow block".to_owned(), edits, safe })
    }

    /// Returns the statements of the function from segment `from` on.
    fn statements(&self, from: usize) -> impl Iterator<Item = Found<'_>> {
        let segments = self.segments.iter().enumerate().skip(from);
        segments.flat_map(|(at, segment)| {
            segment.tree().statements.iter().map(move |statement| Found { at, segment, statement })
        })
    }

    /// Returns the `with` that opens the block of the statement at `span` of segment `at`, which is in column `indent`.
    fn header_before(&self, at: usize, span: Span, indent: u32) -> Option<&Statement> {
        let segments = self.segments.iter().enumerate().take(at + 1).rev();
        let earlier = segments.flat_map(|(nth, segment)| {
            let is_earlier = move |statement: &&Statement| nth < at || statement.span.end <= span.start;
            segment.tree().statements.iter().rev().filter(is_earlier)
        });
        let header = earlier.take(LOOKED_AT).find(|statement| statement.indent < indent)?;
        matches!(header.tree.kind, StatementKind::With(_)).then_some(header)
    }

    /// Returns the edit that declares the function as impure, if it is declared pure.
    fn impure_edit(&self, at: u32) -> Option<(ItemPlace, String)> {
        let defined = |reserved: &str| self.definitions.lookup(name(reserved), at, &self.results);
        let (Some(Entry::Function(context)), Some(Entry::Value { ty: StructInfo::Shape(Shape::Rank(number)), .. })) =
            (defined(FUNCTION_CONTEXT), defined(PURITY_ANCHOR))
        else {
            return None;
        };
        let (segment, place) = self.definitions.place(name(PURITY_ANCHOR), at, &self.results)?;
        let text = purity_text(*number).filter(|_| context.pure)?;
        Some((ItemPlace::Segment(segment, place), text.to_owned()))
    }

    /// Whether a name in segment `at` is a variable that is local to a dataflow block.
    fn is_local(&self, name: Name, at: u32) -> bool {
        let is_inside = |entry: &Entry| matches!(entry, Entry::Value { dataflow: Some(_), .. });
        let exports = self.results.get(at as usize).map(|result| &result.exports[..]).unwrap_or_default();
        let here = exports.iter().rev().find(|export| export.name == name).map(|export| &export.entry);
        here.or_else(|| self.definitions.lookup(name, at, &self.results)).is_some_and(is_inside)
    }
}

impl<'s> Found<'s> {
    fn cursor(self) -> Cursor<'s> {
        self.segment.cursor(self.statement)
    }

    fn place(self, span: Span) -> Option<ItemPlace> {
        Some(ItemPlace::Segment(u32::try_from(self.at).ok()?, span))
    }

    /// Returns the variable that the statement binds; `None` inside if it binds none, and `None` if it cannot be moved.
    fn bound(self) -> Option<Option<Name>> {
        let target = match &self.statement.tree.kind {
            StatementKind::Expr(_) => return Some(None),
            StatementKind::Assign { targets, .. } => match &targets[..] {
                [target] => target,
                _ => return None,
            },
            StatementKind::AnnAssign { target, .. } => target,
            _ => return None,
        };
        matches!(target.kind, ExprKind::Name).then(|| Some(self.cursor().name(target.tokens.start)))
    }

    /// Returns the names in the statement that may be variables: none after a dot, and no keywords of calls.
    fn names(self) -> Vec<Name> {
        let cursor = self.cursor();
        let mut names = Vec::new();
        for token in 0..self.statement.token_count {
            let before = token.checked_sub(1).and_then(|before| cursor.kind(before));
            if cursor.kind(token) == Some(TokenKind::Name)
                && before != Some(TokenKind::Dot)
                && cursor.kind(token + 1) != Some(TokenKind::Equal)
                && !names.contains(&cursor.name(token))
            {
                names.push(cursor.name(token));
            }
        }
        names
    }

    /// Whether the statement is `R.output(…)`.
    fn is_output(&self) -> bool {
        let StatementKind::Expr(Expr { kind: ExprKind::Call { callee, .. }, .. }) = &self.statement.tree.kind else {
            return false;
        };
        self.cursor().path(callee.tokens).ends_with(".output")
    }

    /// Returns the start of the statement's line and its indentation, if the statement is first on its line.
    fn line_start(self) -> Option<(u32, &'s str)> {
        let before = self.segment.text().get(..self.statement.span.start as usize)?;
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let indent = before.get(line..).filter(|indent| indent.trim().is_empty())?;
        Some((u32::try_from(line).ok()?, indent))
    }

    /// Returns the lines of the statement, if no other statement is on them.
    fn lines(self) -> Option<Span> {
        let (start, _) = self.line_start()?;
        let end = self.statement.span.end;
        let rest = self.segment.text().get(end as usize..)?;
        let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let after = rest.get(..length)?.trim_start();
        let is_alone = after.is_empty() || after.starts_with('#');
        is_alone.then_some(Span::new(start, end + u32::try_from(length).ok()?))
    }

    /// Returns the edit that outputs more variables from the block that the statement ends.
    fn with_outputs(self, names: &[Name]) -> Option<(ItemPlace, String)> {
        let span = self.statement.span;
        let inside = self.segment.text().get(span.range())?.strip_suffix(')')?.trim_end();
        let comma = match inside.chars().next_back()? {
            '(' => "",
            ',' => " ",
            _ => ", ",
        };
        let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
        let place = self.place(Span::empty(span.start + u32::try_from(inside.len()).ok()?))?;
        Some((place, format!("{comma}{}", names.join(", "))))
    }
}
