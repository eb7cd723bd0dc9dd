//! Builds a tree of statements from their indentation.

use crate::functions::{WrongCall, in_order, wrong_call};
use rx_context::FileContext;
use rx_syntax::ast::StatementKind;
use rx_syntax::{Cursor, Segments, Statement};
use std::borrow::Cow;

/// A statement with the statements of its block.
pub(super) struct Node<'s> {
    /// The index of the statement's segment.
    pub(super) segment: u32,
    /// The index of the statement in the function, counting decorators and the header.
    pub(super) index: u32,
    pub(super) cursor: Cursor<'s>,
    /// The statement, with the arguments of `T.` calls in the order of their parameters.
    pub(super) kind: Cow<'s, StatementKind>,
    /// The first mistake in a call of the statement.
    pub(super) wrong: Option<WrongCall>,
    pub(super) children: Vec<Node<'s>>,
    /// The number of tokens of the statement itself, without those of the statements in its block.
    pub(super) token_count: u32,
    indent: u32,
}

/// Returns the statements of a function as a tree; decorators and the header come first.
pub(super) fn read<'s>(segments: &'s Segments, file: &FileContext) -> Vec<Node<'s>> {
    let mut top = Vec::new();
    // The statements whose blocks contain the last statement, outermost first, then the last statement itself. The next
    // statement is a child of one of them, or of none.
    let mut open: Vec<Node<'_>> = Vec::new();
    let mut index = 0;
    for (segment_index, segment) in (0u32..).zip(segments) {
        for statement in &segment.tree().statements {
            // Closes the statements that cannot contain this one. An inline statement follows a colon or a `;` on the
            // same line, as both do in `if c: x = 1; y = 2`. It closes only the statement before the `;`: the header
            // stays open, whatever the indentation.
            while let Some(last) = open.pop_if(|last| closes(last, statement)) {
                close(last, &mut open, &mut top);
            }
            let cursor = segment.cursor(statement);
            open.push(Node {
                segment: segment_index,
                index,
                cursor,
                kind: in_order(cursor, file, &statement.tree.kind),
                wrong: wrong_call(cursor, file, &statement.tree.kind),
                children: Vec::new(),
                token_count: statement.token_count,
                indent: statement.indent,
            });
            index += 1;
        }
    }
    while let Some(last) = open.pop() {
        close(last, &mut open, &mut top);
    }
    top
}

fn closes(last: &Node<'_>, next: &Statement) -> bool {
    match last.kind.opens_block() {
        true => last.indent >= next.indent && !next.inline,
        false => true,
    }
}

fn close<'s>(node: Node<'s>, open: &mut [Node<'s>], top: &mut Vec<Node<'s>>) {
    match open.last_mut() {
        Some(parent) => parent.children.push(node),
        None => top.push(node),
    }
}
