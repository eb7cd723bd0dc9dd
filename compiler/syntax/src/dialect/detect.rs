//! Detection of the dialect of a file from the names that occur in it.

use super::Dialect;
use crate::ast::StatementKind;
use crate::document::{Document, ItemKind};
use crate::printer::signature::{Signature, has_quoted_name};
use crate::{Cursor, Segment, TokenKind};

/// The number of occurrences that indicate each dialect. `weak` counts classic spellings that 0.27 still accepts; they
/// count only if there is no other evidence.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    current: u32,
    classic: u32,
    weak: u32,
    type_params: bool,
}

impl Dialect {
    /// Returns the dialect of `document`; [`Dialect::Tvm027`] if there is no evidence.
    pub fn detect(document: &Document) -> Dialect {
        Evidence::of_document(document).verdict()
    }

    /// Returns the dialect in which to print: as [`Dialect::detect`], except that a text that is valid in every
    /// dialect, such as `R.Tensor(("n",))` with `n = T.int64()`, is printed as TVM 0.27.
    pub fn to_print(document: &Document) -> Dialect {
        Evidence { weak: 0, ..Evidence::of_document(document) }.verdict()
    }
}

impl Evidence {
    fn of_document(document: &Document) -> Evidence {
        let mut evidence = Evidence::default();
        for item in document.items() {
            if item.kind == ItemKind::Foreign {
                continue;
            }
            for segment in item.segments.iter() {
                evidence.join(segment.evidence());
            }
        }
        evidence
    }

    /// Counts the evidence in one segment.
    pub(crate) fn of(segment: &Segment) -> Evidence {
        let mut evidence = Evidence::default();
        evidence.look_at(segment);
        evidence
    }

    fn join(&mut self, other: &Evidence) {
        self.current = self.current.saturating_add(other.current);
        self.classic = self.classic.saturating_add(other.classic);
        self.weak = self.weak.saturating_add(other.weak);
        self.type_params |= other.type_params;
    }

    fn verdict(&self) -> Dialect {
        if self.type_params && self.current >= self.classic {
            Dialect::Tvm027Py312
        } else if self.classic > self.current || (self.weak > 0 && self.current == 0) {
            Dialect::Classic
        } else {
            Dialect::Tvm027
        }
    }

    fn look_at(&mut self, segment: &Segment) {
        for comment in segment.comments() {
            self.comment(segment.text().get(comment.range()).unwrap_or(""));
        }
        for statement in segment.tree().statements.iter() {
            let cursor = segment.cursor(statement);
            match &statement.tree.kind {
                StatementKind::Def { type_params, params, ret, .. } => {
                    self.type_params |= !type_params.is_empty();
                    self.weak += u32::from(has_quoted_name(&Signature { params, ret: ret.as_ref(), cursor }));
                }
                StatementKind::FromImport { module, .. } if cursor.source(*module) == "__future__" => {
                    self.type_params = true;
                }
                _ => {}
            }
            self.tokens(cursor, statement.token_count);
        }
    }

    fn comment(&mut self, comment: &str) {
        let words = comment.trim_start_matches('#').trim();
        match words {
            "from typing import TypeVar" => self.current += 1,
            _ => {
                if let Some(imported) = words.strip_prefix("from tvm.script import ") {
                    self.word(imported.split_whitespace().next().unwrap_or(""));
                }
            }
        }
    }

    /// Counts evidence in a statement's tokens. This is cheaper than walking trees, and these words have the same
    /// meaning wherever they occur. Only the text of names and strings is read: other tokens are no evidence.
    fn tokens(&mut self, cursor: Cursor<'_>, count: u32) {
        // 1 after `T`, 2 after `T.`.
        let mut member_of_t = 0u8;
        for token in 0..count {
            member_of_t = match cursor.kind(token) {
                Some(TokenKind::Dot) if member_of_t == 1 => 2,
                Some(TokenKind::Name) => {
                    let text = cursor.text(token);
                    if may_be_evidence(text) {
                        self.name(text, member_of_t == 2, || cursor.kind(token + 1) == Some(TokenKind::LeftParen));
                    }
                    u8::from(text == "T")
                }
                Some(TokenKind::String | TokenKind::UnclosedString) => {
                    self.word(cursor.text(token));
                    0
                }
                _ => 0,
            };
        }
    }

    /// Counts the evidence of a name. `of_t` is whether it follows `T.`; `is_called` returns whether `(` follows it.
    fn name(&mut self, name: &str, of_t: bool, is_called: impl FnOnce() -> bool) {
        match name {
            "block" | "block_attr" if of_t => self.classic += 1,
            "bool" if of_t && is_called() => self.weak += 1,
            _ => self.word(name),
        }
    }

    fn word(&mut self, word: &str) {
        match word {
            "TypeVar"
            | "out_ty"
            | "ty_args"
            | "sblock"
            | "sblock_alloc_buffer"
            | "sblock_attr"
            | "tirx"
            | "\"ir.GenericConst\"" => self.current += 1,
            "out_sinfo" | "sinfo_args" | "tir_vars" | "tir" | "\"relax.expr.Constant\"" => self.classic += 1,
            "Object" | "Prim" | "\"void\"" => self.weak += 1,
            _ if word.starts_with("\"tirx.") => self.current += 1,
            _ if word.starts_with("\"tir.") => self.classic += 1,
            _ => {}
        }
    }
}

/// Whether a name may be evidence, by its first letter. Most names of a program fail this test, which is cheaper than the
/// comparison with each name that is evidence.
fn may_be_evidence(name: &str) -> bool {
    matches!(name.as_bytes().first(), Some(b'O' | b'P' | b'T' | b'b' | b'o' | b's' | b't'))
}
