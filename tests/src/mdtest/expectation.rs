//! The expectations in the comments of a block.

use crate::check::{Found, TypeFound};
use rx_base::{Code, Severity};
use std::fmt;

/// An expected diagnostic, type, note or help message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The line of the block to which it applies, from 1.
    pub line: usize,
    rewrite: Expected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Expected {
    Diagnostic {
        severity: Severity,
        code: Code,
        column: Option<usize>,
        message: String,
    },
    Type(String),
    /// A note or help message of a diagnostic of the line.
    Remark(String),
}

const SEVERITIES: [(&str, Severity); 4] = [
    ("# error: ", Severity::Error),
    ("# warning: ", Severity::Warning),
    ("# info: ", Severity::Info),
    ("# hint: ", Severity::Hint),
];
const REVEALED: &str = "# revealed: ";
const REMARKS: [&str; 2] = ["# note: \"", "# help: \""];

impl Expectation {
    /// Whether this diagnostic is the expected one.
    pub fn accepts(&self, found: &Found) -> bool {
        match &self.rewrite {
            Expected::Diagnostic { severity, code, column, message } => {
                (self.line, *severity, *code) == (found.line, found.severity, found.code)
                    && column.is_none_or(|column| column == found.column)
                    && found.message.contains(message.as_str())
            }
            Expected::Type(_) | Expected::Remark(_) => false,
        }
    }

    /// Whether this diagnostic has the expected note or help message.
    pub fn is_remark_of(&self, found: &Found) -> bool {
        let Expected::Remark(wanted) = &self.rewrite else { return false };
        let said = |remark: &String| match (remark.split_once(": "), wanted.split_once(": ")) {
            (Some((kind, text)), Some((wanted_kind, part))) => kind == wanted_kind && text.contains(part),
            _ => false,
        };
        self.line == found.line && found.remarks.iter().any(said)
    }

    /// Whether this type is the expected one.
    pub fn reveals(&self, row: &TypeFound) -> bool {
        matches!(&self.rewrite, Expected::Type(ty) if *ty == row.ty && self.line == row.line)
    }

    /// Whether a type is expected.
    pub fn is_type(&self) -> bool {
        matches!(self.rewrite, Expected::Type(_))
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rewrite {
            Expected::Type(ty) => write!(f, "revealed: {ty}"),
            Expected::Remark(text) => f.write_str(text),
            Expected::Diagnostic { severity, code, column, message } => {
                write!(f, "{severity}: [{}]", code.slug())?;
                if let Some(column) = column {
                    write!(f, " {column}")?;
                }
                if message.is_empty() { Ok(()) } else { write!(f, " \"{message}\"") }
            }
        }
    }
}

/// Returns the expectations in the comments of a block, in order.
///
/// # Errors
/// A message about a comment that begins like an expectation but is not a valid one.
pub fn expectations(code: &str) -> Result<Vec<Expectation>, String> {
    let mut found = Vec::new();
    let mut pending = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let Some((before, comments)) = split_comments(line) else {
            found.extend(std::mem::take(&mut pending).into_iter().map(|rewrite| Expectation { line: at + 1, rewrite }));
            continue;
        };
        let here = comments.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        pending.extend(here);
        if !before.trim().is_empty() {
            found.extend(std::mem::take(&mut pending).into_iter().map(|rewrite| Expectation { line: at + 1, rewrite }));
        }
    }
    match pending.is_empty() {
        true => Ok(found),
        false => Err("the last comment speaks of no line".to_owned()),
    }
}

/// Returns the text without the comments that are expectations.
pub fn without_expectations(code: &str) -> String {
    let lines = code.lines().filter_map(|line| match split_comments(line) {
        Some((before, _)) => Some(before.trim_end()).filter(|before| !before.is_empty()),
        None => Some(line),
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Splits a line into its code and its expectations; `None` if it has no expectations.
fn split_comments(line: &str) -> Option<(&str, Vec<&str>)> {
    let heads = SEVERITIES.iter().map(|(head, _)| *head).chain([REVEALED]).chain(REMARKS);
    let mut starts: Vec<usize> = heads.flat_map(|head| line.match_indices(head).map(|(at, _)| at)).collect();
    starts.sort_unstable();
    let first = *starts.first()?;
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    let comments = starts.iter().zip(ends).filter_map(|(start, end)| line.get(*start..end)).map(str::trim).collect();
    Some((line.get(..first)?, comments))
}

fn read(comment: &str) -> Result<Expected, String> {
    if let Some(ty) = comment.strip_prefix(REVEALED) {
        return Ok(Expected::Type(ty.trim().to_owned()));
    }
    if REMARKS.iter().any(|head| comment.starts_with(head)) {
        let text =
            comment.trim_start_matches("# ").strip_suffix('"').ok_or_else(|| format!("`{comment}` has no end"))?;
        return Ok(Expected::Remark(text.replacen(": \"", ": ", 1)));
    }
    let wrong = || format!("`{comment}` is no expectation: `# error: [code] column \"message\"`");
    let (severity, rest) = SEVERITIES
        .iter()
        .find_map(|(head, severity)| Some((*severity, comment.strip_prefix(head)?)))
        .ok_or_else(wrong)?;
    let (code, rest) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).ok_or_else(wrong)?;
    let code = code.parse::<Code>().map_err(|error| error.to_string())?;
    let (column, message) = match rest.split_once('"') {
        Some((column, message)) => (column.trim(), message.strip_suffix('"').ok_or_else(wrong)?),
        None => (rest.trim(), ""),
    };
    let column = match column {
        "" => None,
        digits => Some(digits.parse().map_err(|_| wrong())?),
    };
    Ok(Expected::Diagnostic { severity, code, column, message: message.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_comments_on_one_line() {
        let found = expectations("f(x)  # error: [dtype-mismatch] 3 \"a \\\" b\" # warning: [captured-python-name]\n");
        let shown: Vec<String> = found.unwrap_or_default().iter().map(Expectation::to_string).collect();
        assert_eq!(shown, ["error: [dtype-mismatch] 3 \"a \\\" b\"", "warning: [captured-python-name]"]);
    }

    #[test]
    fn mistakes_in_comments() {
        assert!(expectations("x  # error: dtype-mismatch\n").is_err());
        assert!(expectations("x  # error: [dtype-mismatch] here\n").is_err());
        assert!(expectations("# error: [dtype-mismatch]\n").is_err());
        assert_eq!(expectations("x  # error in the text\n"), Ok(Vec::new()));
    }
}
