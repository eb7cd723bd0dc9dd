//! Positions in the client's encoding, and edits applied as an editor applies them.

use serde_json::{Value, json};
use std::ops::Range;

/// The position encodings.
pub const ENCODINGS: [&str; 3] = ["utf-8", "utf-16", "utf-32"];

/// Returns the width of a character in an encoding.
fn width(character: char, encoding: &str) -> usize {
    match encoding {
        "utf-8" => character.len_utf8(),
        "utf-16" => character.len_utf16(),
        _ => 1,
    }
}

/// Returns the position of a byte offset.
pub fn position(text: &str, byte: usize, encoding: &str) -> Value {
    let before = &text[..byte];
    let start = before.rfind('\n').map_or(0, |found| found + 1);
    let column: usize = before[start..].chars().map(|it| width(it, encoding)).sum();
    json!({"line": before.matches('\n').count(), "character": column})
}

/// Returns the range of some bytes.
pub fn range(text: &str, bytes: Range<usize>, encoding: &str) -> Value {
    json!({"start": position(text, bytes.start, encoding), "end": position(text, bytes.end, encoding)})
}

/// Returns the byte offset of a position, which must be inside the text and between characters.
pub fn byte(text: &str, line: usize, column: usize, encoding: &str) -> usize {
    let lines: Vec<&str> = text.split('\n').collect();
    assert!(line < lines.len(), "line {line} is outside the text");
    let start: usize = lines[..line].iter().map(|line| line.len() + 1).sum();
    let mut left = column;
    let mut end = start;
    for character in lines[line].trim_end_matches('\r').chars() {
        if left == 0 {
            break;
        }
        let width = width(character, encoding);
        assert!(width <= left, "column {column} of line {line} is inside a character");
        left -= width;
        end += character.len_utf8();
    }
    assert_eq!(left, 0, "column {column} is outside line {line}");
    end
}

/// Replaces every position in a response by its byte offset.
pub fn in_bytes(value: &Value, text: &str, encoding: &str) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| in_bytes(item, text, encoding)).collect(),
        Value::Object(fields) => match (fields.get("line"), fields.get("character")) {
            (Some(line), Some(column)) => {
                let number = |it: &Value| it.as_u64().expect("a number") as usize;
                json!(byte(text, number(line), number(column), encoding))
            }
            _ => fields.iter().map(|(key, value)| (key.clone(), in_bytes(value, text, encoding))).collect(),
        },
        other => other.clone(),
    }
}

/// Applies edits whose positions are byte offsets.
pub fn edited(text: &str, edits: &Value) -> String {
    let mut edits: Vec<(usize, usize, String)> = edits
        .as_array()
        .expect("edits")
        .iter()
        .map(|edit| {
            let place = |end: &str| edit["range"][end].as_u64().expect("a byte") as usize;
            (place("start"), place("end"), edit["newText"].as_str().expect("a text").to_owned())
        })
        .collect();
    edits.sort();
    assert!(edits.windows(2).all(|pair| pair[0].1 <= pair[1].0), "edits overlap: {edits:?}");
    let mut text = text.to_owned();
    edits.into_iter().rev().for_each(|(from, to, new)| text.replace_range(from..to, &new));
    text
}

/// Applies edits in the protocol's form.
pub fn apply(text: &str, edits: &Value, encoding: &str) -> String {
    edited(text, &in_bytes(edits, text, encoding))
}

/// Returns the integers of encoded semantic tokens.
pub fn numbers(data: &Value) -> Vec<u64> {
    data.as_array().expect("numbers").iter().filter_map(Value::as_u64).collect()
}

/// Applies a delta of semantic tokens to `known`, or replaces all tokens if the response is not a delta.
pub fn change_tokens(known: &mut Vec<u64>, answer: &Value) {
    if answer["edits"].is_null() {
        *known = numbers(&answer["data"]);
        return;
    }
    for edit in answer["edits"].as_array().expect("edits") {
        let start = edit["start"].as_u64().expect("a number") as usize;
        let end = start + edit["deleteCount"].as_u64().expect("a number") as usize;
        known.splice(start..end, numbers(&edit["data"]));
    }
}
