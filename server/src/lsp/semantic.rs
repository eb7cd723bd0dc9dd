//! Semantic tokens as the protocol counts them, and what changed since they were sent last.
//!
//! Tokens are sent as differences from the one before, so those of a segment stay as they are when it moves. Nothing is kept of what was
//! sent but, by segment, what it depended on and how many tokens it had: segments that are the same at both ends were sent, and
//! what lies between is made anew.

use crate::reads::Subject;
use rx_base::Span;
use rx_db::Encoding;
use rx_ide::{SegmentKey, SemanticWord, WordKind, segment_keys};
use tower_lsp::ls_types as proto;

/// The kinds of token, in the order of [`number`].
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

/// Their modifiers, in the order of their bits.
const MODIFIERS: [proto::SemanticTokenModifier; 4] = [
    proto::SemanticTokenModifier::DECLARATION,
    proto::SemanticTokenModifier::READONLY,
    proto::SemanticTokenModifier::DEFAULT_LIBRARY,
    proto::SemanticTokenModifier::new("dataflow"),
];

/// What the client is told of the tokens it will get.
pub fn options() -> proto::SemanticTokensOptions {
    proto::SemanticTokensOptions {
        legend: proto::SemanticTokensLegend { token_types: TYPES.to_vec(), token_modifiers: MODIFIERS.to_vec() },
        range: Some(true),
        full: Some(proto::SemanticTokensFullOptions::Delta { delta: Some(true) }),
        ..Default::default()
    }
}

/// What was sent of a document last.
pub struct Sent {
    id: u64,
    rows: Vec<Row>,
}

/// What was sent of a segment.
#[derive(Clone)]
struct Row {
    key: SegmentKey,
    /// How many tokens.
    count: u32,
    /// Lines from the last token before it, or the text's start, to its own start.
    before: u32,
    /// Lines from its last token, or that before it, to its end.
    behind: u32,
}

/// All tokens of a document.
pub fn full(subject: &Subject<'_>) -> proto::SemanticTokens {
    let mut sent = subject.sent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut writer = Writer::new(subject.profile.encoding, 0);
    let rows = segment_keys(&subject.view).into_iter().map(|key| writer.row(key)).collect();
    let id = sent.as_ref().map_or(1, |sent| sent.id.wrapping_add(1));
    *sent = Some(Sent { id, rows });
    proto::SemanticTokens { result_id: Some(id.to_string()), data: writer.tokens }
}

/// What changed since the tokens of this name were sent; all of them if those are not known any more.
pub fn delta(subject: &Subject<'_>, since: &str) -> proto::SemanticTokensFullDeltaResult {
    let mut sent = subject.sent.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let Some(old) = sent.as_mut().filter(|old| old.id.to_string() == since) else {
        drop(sent);
        return full(subject).into();
    };
    let keys = segment_keys(&subject.view);
    let head = old.rows.iter().zip(&keys).take_while(|(row, key)| row.key == **key).count();
    let most = old.rows.len().min(keys.len()) - head;
    let ends = old.rows.iter().rev().zip(keys.iter().rev());
    let mut tail = ends.take(most).take_while(|(row, key)| row.key == **key).count();
    // INVARIANT: `head + tail` is at most the length of either list, so the ranges below lie in them.
    let before = head.checked_sub(1).map_or(0, |last| old.rows[last].behind);
    let mut writer = Writer::new(subject.profile.encoding, before);
    let mut rows: Vec<Row> = keys[head..keys.len() - tail].iter().cloned().map(|key| writer.row(key)).collect();
    // What follows was sent with the lines before it; while those are others, it is sent again.
    while tail > 0 && old.rows[old.rows.len() - tail].before != writer.lines {
        rows.push(writer.row(keys[keys.len() - tail].clone()));
        tail -= 1;
    }
    let count = |rows: &[Row]| rows.iter().map(|row| row.count).sum::<u32>().saturating_mul(5);
    let end = old.rows.len() - tail;
    let edit = proto::SemanticTokensEdit {
        start: count(&old.rows[..head]),
        delete_count: count(&old.rows[head..end]),
        data: Some(writer.tokens),
    };
    old.rows.splice(head..end, rows);
    old.id = old.id.wrapping_add(1);
    let nothing = edit.delete_count == 0 && edit.data.as_ref().is_none_or(Vec::is_empty);
    let edits = if nothing { Vec::new() } else { vec![edit] };
    proto::SemanticTokensDelta { result_id: Some(old.id.to_string()), edits }.into()
}

/// The tokens of a part of a document.
pub fn range(subject: &Subject<'_>, span: Span) -> proto::SemanticTokens {
    let mut writer = Writer::new(subject.profile.encoding, 0);
    let mut start = 0u32;
    for key in segment_keys(&subject.view) {
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
    proto::SemanticTokens { result_id: None, data: writer.tokens }
}

/// Writes tokens one behind the other.
struct Writer {
    encoding: Encoding,
    /// Lines from the last token, or the text's start, to the next segment.
    lines: u32,
    tokens: Vec<proto::SemanticToken>,
}

impl Writer {
    fn new(encoding: Encoding, lines: u32) -> Writer {
        Writer { encoding, lines, tokens: Vec::new() }
    }

    /// Writes a segment's tokens.
    fn row(&mut self, key: SegmentKey) -> Row {
        let (before, had) = (self.lines, self.tokens.len());
        let words = key.words();
        self.words(&key, &words);
        let count = u32::try_from(self.tokens.len() - had).unwrap_or(u32::MAX);
        Row { key, count, before, behind: self.lines }
    }

    fn words(&mut self, key: &SegmentKey, words: &[SemanticWord]) {
        let text = key.segment().text();
        let ascii = key.segment().is_ascii();
        // The line and column of the last token; before the first, those of the last segment's last.
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
                // Over the line's end to the next piece.
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

/// How many bytes of a line's end a text starts with.
fn line_end(text: &str) -> usize {
    match text.as_bytes() {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => 0,
    }
}

/// The line and its start at byte `to`, from those at byte `from`.
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
    // A binding is never changed.
    let readonly = matches!(word.kind, WordKind::SymbolicDim) || word.declaration && word.kind == WordKind::Variable;
    let flags = [word.declaration, readonly, word.library, word.dataflow];
    flags.iter().enumerate().map(|(bit, flag)| u32::from(*flag) << bit).sum()
}
