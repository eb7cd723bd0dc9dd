//! What is known of the thing under the cursor.

use crate::queries::{Database, check_item, scope_context, signature};
use crate::sync::Inputs;
use rx_analysis::Entry;
use rx_analysis::elaborate::{SegmentResult, signature_text};
use rx_base::name::name;
use rx_base::{Name, Span};
use rx_ir::{Signature, StructInfo};
use rx_ops::{ParamKind, Schema};
use rx_syntax::Segment;
use rx_syntax::TokenKind;
use rx_syntax::document::Document;

/// What an editor shows beside the pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// What it speaks of, in bytes of the file.
    pub span: Span,
    /// The text, as Markdown.
    pub markdown: String,
}

pub(crate) fn hover_at(db: &Database, document: &Document, inputs: &Inputs, offset: usize) -> Option<Hover> {
    let location = document.locate(offset)?;
    let input = *inputs.items.get(location.item)?;
    let item = document.items().get(location.item)?;
    let segment = item.segments.get(location.segment)?;
    let (word, span) = word_at(segment, u32::try_from(location.offset).ok()?)?;
    let start = document.item_start(location.item) + item.segment_start(location.segment);
    let shifted = span.shift(u32::try_from(start).ok()?);
    let context = scope_context(db, input.scope(db));
    if let Some(schema) = operator_at(segment, span).and_then(|operator| context.operator(operator)) {
        return Some(Hover { span: shifted, markdown: operator_text(schema) });
    }
    let check = check_item(db, input).function;
    let known = check.as_ref().and_then(|check| type_in(check.segments.get(location.segment)?, word, span));
    if let Some(ty) = known {
        return Some(Hover { span: shifted, markdown: format!("```python\n{word}: {ty}\n```") });
    }
    let function = inputs
        .items
        .iter()
        .zip(document.items())
        .find(|(_, other)| other.name == Some(word) && other.module == item.module);
    let text = function.map(|(input, _)| signature_markdown(word, &signature(db, *input)))?;
    Some(Hover { span: shifted, markdown: text })
}

/// The identifier at a byte of a segment.
fn word_at(segment: &Segment, offset: u32) -> Option<(Name, Span)> {
    let tokens = &segment.tree().tokens;
    // The token that holds the offset, or the one that ends at it.
    let at = tokens.at_or_after(offset);
    let span = [at, at.wrapping_sub(1)].into_iter().find_map(|token| {
        let span = tokens.span(token)?;
        (tokens.kind(token) == Some(TokenKind::Name) && span.touches(offset)).then_some(span)
    })?;
    Some((name(segment.text().get(span.range())?), span))
}

/// The operator a dotted name around `span` calls, without `R.`: `nn.relu` from any of its parts.
fn operator_at(segment: &Segment, span: Span) -> Option<Name> {
    let text = segment.text();
    let part = |byte: char| byte.is_alphanumeric() || byte == '_' || byte == '.';
    let before = text.get(..span.start as usize)?;
    let after = text.get(span.end as usize..)?;
    let start =
        before.rfind(|byte| !part(byte)).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let end = span.end as usize + after.find(|byte: char| !part(byte)).unwrap_or(after.len());
    let path = text.get(start..end)?.strip_prefix("R.")?;
    Some(name(path))
}

fn type_in(result: &SegmentResult, word: Name, span: Span) -> Option<StructInfo> {
    let before = result.rows.iter().rev().find(|row| row.name == word && row.span.start <= span.start);
    if let Some(row) = before {
        return Some(row.ty.clone());
    }
    result.imports.iter().find(|(name, _)| *name == word).and_then(|(_, entry)| match entry {
        Some(Entry::Value { ty, .. }) => Some(ty.clone()),
        Some(Entry::Symbol { .. }) => Some(StructInfo::prim(rx_base::DType::INT64)),
        _ => None,
    })
}

fn operator_text(schema: &Schema) -> String {
    let mut text = format!("```python\n{}\n```\n{}\n", signature_text(schema), schema.doc);
    for param in schema.params {
        let kind = if matches!(param.kind, ParamKind::Attr(_)) { "attribute" } else { "operand" };
        text.push_str(&format!("- `{}` ({kind}): {}\n", param.name, param.doc));
    }
    text
}

fn signature_markdown(function: Name, signature: &Signature) -> String {
    match signature {
        Signature::Relax(signature) => {
            let params: Vec<String> = signature.params.iter().map(|(name, ty)| format!("{name}: {ty}")).collect();
            let ret = signature.ret.as_ref().map_or_else(String::new, |ret| format!(" -> {ret}"));
            format!("```python\ndef {function}({}){ret}\n```", params.join(", "))
        }
        Signature::Prim(prim) => {
            let params: Vec<&str> = prim.params.iter().map(|param| param.name.as_str()).collect();
            format!("```python\n@T.prim_func\ndef {function}({})\n```", params.join(", "))
        }
        _ => format!("```python\n{function}\n```"),
    }
}
