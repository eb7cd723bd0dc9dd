//! The fix of a call with effects in a dataflow block: moves the statement after the block.
//!
//! ```text
//! with R.dataflow():                 with R.dataflow():
//!     y = R.nn.relu(x)                   y = R.nn.relu(x)
//!     R.print(y)                   →     R.output(y)
//!     R.output()                     R.print(y)
//! ```

use super::memo::State;
use crate::elaborate::{PURITY_ANCHOR, before_end, purity_text};
use crate::entry::{Entry, FUNCTION_CONTEXT, Place};
use rx_base::name::name;
use rx_base::{Code, Fix, Name, Span};
use rx_context::ItemPlace;
use rx_ir::{Shape, StructInfo};
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Cursor, Segment, Statement, TokenKind};

/// The maximal number of statements between the call and the end of its block.
const LOOKED_AT: usize = 1024;

/// A statement of the function, with its segment and the segment's index.
#[derive(Clone, Copy)]
pub(super) struct Found<'s> {
    pub(super) at: usize,
    pub(super) segment: &'s Segment,
    pub(super) statement: &'s Statement,
}

impl State {
    /// Returns the fix that moves the statement at `span` of segment `at` after its dataflow block, if no other
    /// statement of the block uses its value, and declares the function as impure. The fix is safe for operators that
    /// only read their arguments.
    ///
    /// Of several calls with effects in a block, the last one moves first, so that they keep their order. A statement
    /// is not moved past one that assigns a name that it uses. `moves` is the number of fixes that may still be
    /// created; it does not count searches that end at the next call with effects, which are short.
    pub(super) fn move_out(&self, at: u32, span: Span, moves: &mut usize) -> Option<Fix<ItemPlace>> {
        let first = at as usize;
        let mut rest = self.statements(first);
        let own = rest.find(|found| found.at > first || span.start < found.statement.span.end)?;
        let bound = own.bound()?;
        let moved = own.statement.span;
        let indent = own.statement.indent;
        let names = own.names();
        let next_impure = self.next_impure(at, moved.end);
        let is_other = |found: &Found<'_>| {
            indent <= found.statement.indent
                && next_impure.is_none_or(|(at, position)| !found.contains(at, position))
                && bound.is_none_or(|bound| !found.mentions(bound))
                && !found.may_assign(&names)
        };
        let output = rest.by_ref().take(LOOKED_AT).take_while(is_other).find(|found| found.calls(".output"))?;
        *moves = moves.checked_sub(1)?;
        let header = self.header_before(first, span, indent)?;
        let next = rest.next().filter(|next| next.statement.indent == header.indent)?;
        let (line, space) = next.line_start()?;
        let lines = own.lines()?;
        // The comment at the end of the line moves, too.
        let text = own.segment.text().get(moved.start as usize..lines.end as usize)?.trim_end();
        let mut edits = vec![(own.place(lines)?, String::new())];
        edits.push((next.place(Span::empty(line))?, format!("{space}{text}\n")));
        let exports = &self.results.get(first)?.exports;
        let is_before = |defined: Span| defined.start < moved.start;
        let defined = exports.iter().take_while(|export| export.span.is_none_or(is_before)).count();
        let is_local =
            |name: Name| matches!(self.entry_before(name, at, defined), Some(Entry::Value { dataflow: Some(_), .. }));
        let outputs = output.names();
        let is_missing = |name: &&Name| Some(**name) != bound && !outputs.contains(*name) && is_local(**name);
        let missing: Vec<&str> = names.iter().filter(is_missing).map(|name| name.as_str()).collect();
        if !missing.is_empty() {
            let (place, comma) = before_end(output.segment.text(), output.statement.span)?;
            edits.push((output.place(place)?, format!("{comma}{}", missing.join(", "))));
        }
        edits.extend(self.impure_edit(at));
        let callee = own.segment.text().get(span.range())?;
        let safe = callee.ends_with(".print") || callee.ends_with(".assert_op");
        Some(Fix { title: "move the call after the dataflow block".to_owned(), edits, safe })
    }

    /// Returns the statements of the function from segment `from` on.
    pub(super) fn statements(&self, from: usize) -> impl Iterator<Item = Found<'_>> {
        let segments = self.segments.iter().enumerate().skip(from);
        segments.flat_map(|(at, segment)| {
            segment.tree().statements.iter().map(move |statement| Found { at, segment, statement })
        })
    }

    /// Returns the next call with effects in a dataflow block, at or after byte `from` of segment `at`: its segment and
    /// the position of its diagnostic.
    fn next_impure(&self, at: u32, from: u32) -> Option<(u32, u32)> {
        let segments =
            self.with_diagnostics.range(at..).filter_map(|nth| Some((*nth, self.results.get(*nth as usize)?)));
        let mut calls = segments.flat_map(|(nth, result)| {
            result.diagnostics.iter().filter_map(move |diagnostic| match diagnostic.primary {
                Place::Here(span) if diagnostic.code == Code::ImpureInDataflow => Some((nth, span.start)),
                _ => None,
            })
        });
        calls.find(|call| *call >= (at, from))
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
}

impl<'s> Found<'s> {
    fn cursor(self) -> Cursor<'s> {
        self.segment.cursor(self.statement)
    }

    pub(super) fn place(self, span: Span) -> Option<ItemPlace> {
        Some(ItemPlace::Segment(u32::try_from(self.at).ok()?, span))
    }

    /// Returns the variable that the statement binds; `None` inside if it binds none, and `None` if it cannot be moved.
    fn bound(self) -> Option<Option<Name>> {
        match self.targets()? {
            [] => Some(None),
            [Expr { kind: ExprKind::Name, tokens }] => Some(Some(self.cursor().name(tokens.start))),
            _ => None,
        }
    }

    /// Returns the targets of an assignment: none for an expression, and `None` for any other statement.
    fn targets(self) -> Option<&'s [Expr]> {
        match &self.statement.tree.kind {
            StatementKind::Expr(_) => Some(&[]),
            StatementKind::Assign { targets, .. } => Some(targets),
            StatementKind::AnnAssign { target, .. } => Some(std::slice::from_ref(target)),
            _ => None,
        }
    }

    /// Whether the statement may assign one of the names: it does, or is neither an assignment nor an expression.
    fn may_assign(self, names: &[Name]) -> bool {
        let Some(targets) = self.targets() else { return true };
        let cursor = self.cursor();
        let mut tokens = targets.iter().flat_map(|target| target.tokens.start..target.tokens.end);
        tokens.any(|token| names.iter().any(|name| name.as_str() == cursor.text(token)))
    }

    /// Returns the texts of the names in the statement that may be variables: none after a dot, and no keywords of
    /// calls.
    fn variables(self) -> impl Iterator<Item = &'s str> {
        let cursor = self.cursor();
        let is_variable = move |token: &u32| {
            let before = token.checked_sub(1).and_then(|before| cursor.kind(before));
            // A name that begins the statement is the target of an assignment.
            let is_keyword = before.is_some() && cursor.kind(token + 1) == Some(TokenKind::Equal);
            cursor.kind(*token) == Some(TokenKind::Name) && before != Some(TokenKind::Dot) && !is_keyword
        };
        (0..self.statement.token_count).filter(is_variable).map(move |token| cursor.text(token))
    }

    /// Returns the names in the statement that may be variables, each once.
    fn names(self) -> Vec<Name> {
        let mut names = Vec::new();
        for variable in self.variables().map(name) {
            if !names.contains(&variable) {
                names.push(variable);
            }
        }
        names
    }

    /// Whether the name occurs in the statement as a variable.
    fn mentions(self, name: Name) -> bool {
        self.variables().any(|variable| variable == name.as_str())
    }

    /// Whether byte `position` of segment `at` is in the statement.
    fn contains(self, at: u32, position: u32) -> bool {
        let span = self.statement.span;
        self.at == at as usize && span.start <= position && position < span.end
    }

    /// Whether the statement is a call of a function whose path ends with `suffix`, such as `.output`.
    pub(super) fn calls(self, suffix: &str) -> bool {
        let StatementKind::Expr(Expr { kind: ExprKind::Call { callee, .. }, .. }) = &self.statement.tree.kind else {
            return false;
        };
        self.cursor().path(callee.tokens).ends_with(suffix)
    }

    /// Returns the start of the statement's line and its indentation, if the statement is first on its line.
    pub(super) fn line_start(self) -> Option<(u32, &'s str)> {
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
}
