//! Semantic tokens in the protocol's encoding, and deltas against the tokens that were sent last.
//!
//! In the protocol, the position of each token is relative to the previous token, so the tokens of a segment do not
//! change when the segment moves. The server does not keep the tokens that it sent. For each item it keeps the key
//! (everything that the tokens depend on), and for each segment the number of tokens and the numbers of lines to the
//! tokens around it. For a delta, the segments with equal keys at the start and at the end of the document need no new
//! tokens, and the segments between them are encoded again.

use crate::notebooks::AskedCell;
use crate::reads::Subject;
use rx_base::Span;
use rx_db::Encoding;
use rx_ide::{ItemKey, SegmentKey, SemanticWord, WordKind, changed_segments, item_keys};
use tower_lsp::ls_types as proto;

/// The token types of the legend, in the order of [`number`].
const TYPES: [proto::SemanticTokenType; 14] = [
    proto::SemanticTokenType::NAMESPACE,
    proto::SemanticTokenType::CLASS,
    proto::SemanticTokenType::TYPE,
    proto::SemanticTokenType::FUNCTION,
    proto::SemanticTokenType::METHOD,
    proto::SemanticTokenType::PARAMETER,
    proto::SemanticTokenType::VARIABLE,
    proto::SemanticTokenType::PROPERTY,
    proto::SemanticTokenType::KEYWORD,
    proto::SemanticTokenType::NUMBER,
    proto::SemanticTokenType::STRING,
    proto::SemanticTokenType::COMMENT,
    proto::SemanticTokenType::new("symbolicDim"),
    proto::SemanticTokenType::new("dtype"),
];

/// The token modifiers of the legend, in the order of their bits.
const MODIFIERS: [proto::SemanticTokenModifier; 4] = [
    proto::SemanticTokenModifier::DECLARATION,
    proto::SemanticTokenModifier::READONLY,
    proto::SemanticTokenModifier::DEFAULT_LIBRARY,
    proto::SemanticTokenModifier::new("dataflow"),
];

/// Returns the server's options for semantic tokens.
pub fn options() -> proto::SemanticTokensOptions {
    proto::SemanticTokensOptions {
        legend: proto::SemanticTokensLegend { token_types: TYPES.to_vec(), token_modifiers: MODIFIERS.to_vec() },
        range: Some(true),
        full: Some(proto::SemanticTokensFullOptions::Delta { delta: Some(true) }),
        ..Default::default()
    }
}

/// The tokens of a document that the client has.
pub struct Sent {
    id: u64,
    items: Vec<ItemKey>,
    /// By segment, over all items.
    rows: Vec<Row>,
}

/// The tokens of a segment that the client has.
struct Row {
    /// The number of tokens.
    count: u32,
    /// The number of lines from the last token before the segment (or from the start of the text) to the start of the
    /// segment.
    before: u32,
    /// The number of lines from the last token in or before the segment to the end of the segment.
    behind: u32,
}

/// Returns all tokens of a document.
pub fn full(subject: &Subject<'_>) -> proto::SemanticTokens {
    if subject.cell.is_some() {
        // Cells are short, so there are no deltas.
        return range(subject, subject.whole());
    }
    let mut sent = subject.sent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut writer = Writer::new(subject.profile.encoding, 0);
    let items = item_keys(&subject.view);
    let rows = items.iter().flat_map(ItemKey::segments).map(|key| writer.row(&key)).collect();
    let id = sent.as_ref().map_or(1, |sent| sent.id.wrapping_add(1));
    *sent = Some(Sent { id, items, rows });
    proto::SemanticTokens { result_id: Some(id.to_string()), data: writer.tokens }
}

/// Returns the changes since the tokens with the result id `since` were sent; all tokens if those are no longer known.
pub fn delta(subject: &Subject<'_>, since: &str) -> proto::SemanticTokensFullDeltaResult {
    if subject.cell.is_some() {
        return full(subject).into();
    }
    let mut sent = subject.sent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(old) = sent.as_mut().filter(|old| old.id.to_string() == since) else {
        drop(sent);
        return full(subject).into();
    };
    let items = item_keys(&subject.view);
    let (replaced, by) = changed_segments(&old.items, &items);
    // INVARIANT: there is a row for each segment of the old items, so the ranges below are in bounds.
    let (head, mut end) = (replaced.start, replaced.end);
    let before = head.checked_sub(1).map_or(0, |last| old.rows[last].behind);
    let mut writer = Writer::new(subject.profile.encoding, before);
    let mut keys = items.iter().flat_map(ItemKey::segments).skip(by.start);
    let mut rows: Vec<Row> = keys.by_ref().take(by.len()).map(|key| writer.row(&key)).collect();
    // The first token of an unchanged segment is encoded relative to the token before it. If that distance changed, the
    // segment is encoded again.
    for key in keys {
        if old.rows.get(end).is_none_or(|row| row.before == writer.lines) {
            break;
        }
        rows.push(writer.row(&key));
        end += 1;
    }
    let count = |rows: &[Row]| rows.iter().map(|row| row.count).sum::<u32>().saturating_mul(5);
    let edit = proto::SemanticTokensEdit {
        start: count(&old.rows[..head]),
        delete_count: count(&old.rows[head..end]),
        data: Some(writer.tokens),
    };
    old.rows.splice(head..end, rows);
    old.items = items;
    old.id = old.id.wrapping_add(1);
    let nothing = edit.delete_count == 0 && edit.data.as_ref().is_none_or(Vec::is_empty);
    let edits = if nothing { Vec::new() } else { vec![edit] };
    proto::SemanticTokensDelta { result_id: Some(old.id.to_string()), edits }.into()
}

/// Returns the tokens of a part of a document.
pub fn range(subject: &Subject<'_>, span: Span) -> proto::SemanticTokens {
    let mut writer = Writer::new(subject.profile.encoding, 0);
    let mut start = 0u32;
    let items = item_keys(&subject.view);
    for key in items.iter().flat_map(ItemKey::segments) {
        let end = start.saturating_add(u32::try_from(key.segment().text().len()).unwrap_or(u32::MAX));
        if end <= span.start || span.end < start {
            writer.lines += key.segment().line_count();
        } else {
            let inside = |word: &SemanticWord| {
                let word = Span::new(start.saturating_add(word.span.start), start.saturating_add(word.span.end));
                word.start < span.end && span.start < word.end
            };
            let words = key.words().into_iter().filter(inside).collect::<Vec<_>>();
            writer.words(&key, &words);
        }
        start = end;
    }
    // The first token's line counts from the start of the text; in a notebook, from the start of the cell.
    if let (Some(AskedCell { layout, index: Some(index) }), Some(first)) = (subject.cell, writer.tokens.first_mut()) {
        first.delta_line = first.delta_line.saturating_sub(layout.lines(*index).0);
    }
    proto::SemanticTokens { result_id: None, data: writer.tokens }
}

/// An encoder of consecutive tokens.
struct Writer {
    encoding: Encoding,
    /// The number of lines from the last token (or from the start of the text) to the next segment.
    lines: u32,
    tokens: Vec<proto::SemanticToken>,
}

impl Writer {
    fn new(encoding: Encoding, lines: u32) -> Writer {
        Writer { encoding, lines, tokens: Vec::new() }
    }

    /// Encodes a segment's tokens.
    fn row(&mut self, key: &SegmentKey<'_>) -> Row {
        let (before, had) = (self.lines, self.tokens.len());
        let words = key.words();
        self.words(key, &words);
        let count = u32::try_from(self.tokens.len() - had).unwrap_or(u32::MAX);
        Row { count, before, behind: self.lines }
    }

    fn words(&mut self, key: &SegmentKey<'_>, words: &[SemanticWord]) {
        let text = key.segment().text();
        let ascii = key.segment().is_ascii();
        // The line and column of the last token. Before the first token of this segment, the last token is in an
        // earlier segment.
        let (mut line, mut line_start) = (0u32, 0usize);
        let (mut last_line, mut last_column) = (None, 0u32);
        let mut at = 0;
        for word in words {
            let span = word.span.range();
            (line, line_start) = lines(text, at, span.start, line, line_start);
            at = span.start;
            let mut piece = span.start;
            while piece < span.end {
                let rest = text.get(piece..span.end).unwrap_or_default();
                let end = piece + rest.find(['\n', '\r']).unwrap_or(rest.len());
                if piece < end {
                    let column = self.width(text.get(line_start..piece).unwrap_or_default(), ascii);
                    let (delta_line, delta_start) = match last_line {
                        Some(last) if last == line => (0, column - last_column),
                        Some(last) => (line - last, column),
                        None => (self.lines + line, column),
                    };
                    self.tokens.push(proto::SemanticToken {
                        delta_line,
                        delta_start,
                        length: self.width(text.get(piece..end).unwrap_or_default(), ascii),
                        token_type: number(word.kind),
                        token_modifiers_bitset: bits(word),
                    });
                    (last_line, last_column) = (Some(line), column);
                }
                // Skip the line end before the next line of a token with several lines. For example, a string in triple
                // quotes is sent as one token per line.
                let next = end + text.get(end..span.end).map_or(0, line_end);
                (line, line_start) = lines(text, end, next, line, line_start);
                piece = next.max(end + usize::from(next == end));
                at = piece.min(span.end);
            }
        }
        let count = key.segment().line_count();
        self.lines = match last_line {
            Some(last) => count.saturating_sub(last),
            None => self.lines + count,
        };
    }

    fn width(&self, text: &str, ascii: bool) -> u32 {
        let width = match self.encoding {
            Encoding::Utf8 => text.len(),
            _ if ascii => text.len(),
            Encoding::Utf16 => text.chars().map(char::len_utf16).sum(),
            Encoding::Utf32 => text.chars().count(),
        };
        u32::try_from(width).unwrap_or(u32::MAX)
    }
}

/// Returns the length in bytes of the line end at the start of `text`; 0 if there is none.
fn line_end(text: &str) -> usize {
    match text.as_bytes() {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => 0,
    }
}

/// Returns the line number and the offset of the line's start at byte `to`, from those at byte `from`.
fn lines(text: &str, from: usize, to: usize, mut line: u32, mut start: usize) -> (u32, usize) {
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate().take(to).skip(from) {
        let ends = *byte == b'\n' || *byte == b'\r' && bytes.get(at + 1) != Some(&b'\n');
        if ends {
            (line, start) = (line + 1, at + 1);
        }
    }
    (line, start)
}

fn number(kind: WordKind) -> u32 {
    match kind {
        WordKind::Namespace => 0,
        WordKind::Class => 1,
        WordKind::Type => 2,
        WordKind::Function => 3,
        WordKind::Operator => 4,
        WordKind::Parameter => 5,
        WordKind::Variable => 6,
        WordKind::Property => 7,
        WordKind::Keyword => 8,
        WordKind::Number => 9,
        WordKind::Text => 10,
        WordKind::Comment => 11,
        WordKind::SymbolicDim => 12,
        WordKind::Dtype => 13,
    }
}

fn bits(word: &SemanticWord) -> u32 {
    // A binding is immutable.
    let readonly = matches!(word.kind, WordKind::SymbolicDim) || word.declaration && word.kind == WordKind::Variable;
    let flags = [word.declaration, readonly, word.library, word.dataflow];
    flags.iter().enumerate().map(|(bit, flag)| u32::from(*flag) << bit).sum()
}
