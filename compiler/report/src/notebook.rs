//! Jupyter notebooks (`.ipynb`): reading of their code cells, and writing of changed cells.
//!
//! <https://nbformat.readthedocs.io/en/latest/format_description.html>
//!
//! A notebook is JSON. [`Notebook::with_text`] replaces the sources of changed cells in that JSON and copies all other
//! bytes, so outputs, metadata and layout stay as they are.

use rx_base::notebook;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt::Write;
use std::io;
use std::ops::Range;

/// The version of the notebook format that rx reads.
const FORMAT: u64 = 4;

/// A notebook with the text of its Python cells.
#[derive(Clone, Debug)]
pub struct Notebook {
    /// The file's JSON.
    json: String,
    /// The text of the Python cells, [joined](notebook::join).
    text: String,
    /// The place in `json` of the source of each of these cells.
    sources: Vec<Range<usize>>,
    /// The number of each of these cells among all cells, from 1.
    numbers: Vec<u32>,
}

/// The parts of a notebook's JSON that rx reads.
#[derive(Deserialize)]
struct File<'a> {
    nbformat: Option<u64>,
    metadata: Option<Metadata>,
    #[serde(borrow)]
    cells: Option<Vec<Cell<'a>>>,
}

#[derive(Deserialize)]
struct Cell<'a> {
    cell_type: String,
    metadata: Option<CellMetadata>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata {
    language_info: Option<LanguageInfo>,
    kernelspec: Option<KernelSpec>,
}

#[derive(Deserialize)]
struct LanguageInfo {
    name: Option<String>,
}

#[derive(Deserialize)]
struct KernelSpec {
    language: Option<String>,
}

#[derive(Deserialize)]
struct CellMetadata {
    vscode: Option<Vscode>,
}

#[derive(Deserialize)]
struct Vscode {
    #[serde(rename = "languageId")]
    language_id: Option<String>,
}

/// The source of a cell: one string, or a list of its lines with their line ends.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the source is neither a text nor a list of lines")]
enum Lines {
    One(String),
    Many(Vec<String>),
}

impl Notebook {
    /// Reads the JSON of a notebook.
    ///
    /// # Errors
    /// The text is no notebook of format 4, or a cell contains the marks of joined or masked texts.
    pub fn parse(json: String) -> io::Result<Notebook> {
        let wrong = |error: serde_json::Error| invalid(format!("this is no Jupyter notebook: {error}"));
        let start = json.len() - json.trim_start_matches('\u{feff}').len();
        let file: File<'_> = serde_json::from_str(json.get(start..).unwrap_or_default()).map_err(wrong)?;
        let (Some(FORMAT), Some(cells)) = (file.nbformat, file.cells) else {
            let found = file.nbformat.map_or_else(|| "none".to_owned(), |format| format.to_string());
            return Err(invalid(format!("requires a notebook with `cells` of format {FORMAT}; found format {found}")));
        };
        let is_python = file.metadata.as_ref().is_none_or(Metadata::is_python);
        let mut texts = Vec::new();
        let (mut sources, mut numbers) = (Vec::new(), Vec::new());
        for (cell, number) in cells.iter().zip(1..) {
            let Some(source) = cell.source.filter(|_| is_python && cell.is_python()) else { continue };
            let text = lines_of(source.get()).map_err(|error| wrong_cell(number, &error))?.concat();
            // Changes of such a cell would be written to other cells.
            if notebook::split(&text).len() > 1 || text.contains(notebook::MASK) {
                let problem =
                    "a comment begins with U+001C or U+001D, with which rx marks lines; remove this character";
                return Err(invalid(format!("cell {number}: {problem}")));
            }
            texts.push(text);
            // `source` is a part of `json`, so the difference of their addresses is its place.
            let at = source.get().as_ptr().addr().saturating_sub(json.as_ptr().addr());
            sources.push(at..at + source.get().len());
            numbers.push(number);
        }
        let text = notebook::join(texts.iter().map(String::as_str));
        Ok(Notebook { json, text, sources, numbers })
    }

    /// Creates a notebook whose cells are not read.
    pub fn without_cells(json: String) -> Notebook {
        Notebook { json, text: String::new(), sources: Vec::new(), numbers: Vec::new() }
    }

    /// The file's JSON.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// The text of the Python cells, [joined](notebook::join).
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The number of each of these cells among all cells, from 1.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Returns the file's JSON with `text` as the text of its Python cells.
    ///
    /// # Errors
    /// `text` has another number of cells.
    pub fn with_text(&self, text: &str) -> io::Result<String> {
        let (old, new) = (notebook::split(&self.text), notebook::split(text));
        if old.len() != new.len() {
            return Err(invalid("the change joins or splits cells of the notebook; nothing is written".to_owned()));
        }
        let mut json = String::with_capacity(self.json.len() + text.len().saturating_sub(self.text.len()));
        let mut at = 0;
        for ((old, new), source) in old.iter().zip(&new).zip(&self.sources) {
            if old != new {
                json.push_str(self.json.get(at..source.start).unwrap_or_default());
                encode(self.json.get(source.clone()).unwrap_or_default(), old, new, &mut json);
                at = source.end;
            }
        }
        json.push_str(self.json.get(at..).unwrap_or_default());
        Ok(json)
    }
}

impl Cell<'_> {
    /// Whether this is a code cell in the notebook's language. VS Code allows cells of other languages.
    fn is_python(&self) -> bool {
        let vscode = self.metadata.as_ref().and_then(|metadata| metadata.vscode.as_ref());
        let language = vscode.and_then(|vscode| vscode.language_id.as_ref());
        self.cell_type == "code" && language.is_none_or(|language| language == "python")
    }
}

impl Metadata {
    /// Whether the language of the notebook is Python, as it is if none is given.
    fn is_python(&self) -> bool {
        let kernel = self.kernelspec.as_ref().and_then(|kernel| kernel.language.as_ref());
        let language = self.language_info.as_ref().and_then(|info| info.name.as_ref()).or(kernel);
        language.is_none_or(|language| language.eq_ignore_ascii_case("python"))
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Returns the error for the source of a cell. The place at the end of `error` is left out, for its line and column
/// are neither those of the file nor those of the cell's text.
fn wrong_cell(number: u32, error: &serde_json::Error) -> io::Error {
    let error = error.to_string();
    let problem = error.rsplit_once(" at line ").map_or(error.as_str(), |(problem, _)| problem);
    invalid(format!("cell {number}: {problem}"))
}

/// Parses the source of a cell.
fn lines_of(source: &str) -> serde_json::Result<Vec<String>> {
    Ok(match serde_json::from_str::<Lines>(source)? {
        Lines::One(text) => vec![text],
        Lines::Many(lines) => lines,
    })
}

/// Appends the JSON of a cell's new source in the layout of the old one.
fn encode(layout: &str, old: &str, new: &str, json: &mut String) {
    // Some tools write all other characters as escapes. If the old text has none of them, it does not show which.
    let escape = layout.is_ascii() && !old.is_ascii();
    if !layout.starts_with('[') {
        return string(new, escape, json);
    }
    let inside = layout.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or_default();
    let (before, after) = match (inside.find('"'), inside.rfind('"')) {
        (Some(first), Some(last)) => (inside.get(..first), inside.get(last + 1..)),
        _ => (None, None),
    };
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let between = between_first(inside.get(before.len()..).unwrap_or_default());
    let between = between.map_or_else(|| format!(",{}", if before.is_empty() { " " } else { before }), str::to_owned);
    json.push('[');
    for (index, line) in new.split_inclusive('\n').enumerate() {
        json.push_str(if index == 0 { before } else { &between });
        string(line, escape, json);
    }
    json.extend([after, "]"]);
}

/// Returns the text between the first two strings of a list, from the first one on. For example, `"a" , "b"` gives
/// ` , `.
fn between_first(strings: &str) -> Option<&str> {
    let mut values = serde_json::Deserializer::from_str(strings).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let rest = strings.get(values.byte_offset()..)?;
    rest.get(..rest.find('"')?)
}

/// Appends a JSON string; with `escape`, characters that are not ASCII become `\uXXXX`.
fn string(text: &str, escape: bool, json: &mut String) {
    let encoded = Value::from(text).to_string();
    if !escape {
        return json.push_str(&encoded);
    }
    for c in encoded.chars() {
        if c.is_ascii() {
            json.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // INVARIANT: writing to a string does not fail.
            let _ = write!(json, "\\u{unit:04x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Notebook;

    const JSON: &str = r#"{
 "cells": [
  {"cell_type": "markdown", "metadata": {}, "source": ["x = 0"]},
  {
   "cell_type": "code",
   "metadata": {"b": 1, "a": 2.50},
   "outputs": [{"text": "é\u00e9"}],
   "source": [
    "x = 1\n",
    "\"é\""
   ]
  },
  {"cell_type": "code", "source": "y = '\u00e9'\n"},
  {"cell_type": "code", "metadata": {"vscode": {"languageId": "rust"}}, "source": "let z"}
 ],
 "metadata": {"kernelspec": {"language": "python"}},
 "nbformat": 4, "nbformat_minor": 5
}

"#;

    fn notebook(json: &str) -> Notebook {
        Notebook::parse(json.to_owned()).expect("a notebook")
    }

    #[test]
    fn python_cells_are_joined_and_numbered() {
        let notebook = notebook(JSON);
        assert_eq!(notebook.text(), rx_base::notebook::join(["x = 1\n\"é\"", "y = 'é'\n"]));
        assert_eq!(notebook.numbers(), [2, 3]);
        assert_eq!(notebook.with_text(notebook.text()).ok().as_deref(), Some(JSON));
    }

    #[test]
    fn only_changed_sources_are_written_in_their_layout() {
        let notebook = notebook(JSON);
        let text = notebook.text().replace("x = 1", "x = 2\nw = 'ä'").replace("y =", "yy =");
        let expected =
            JSON.replace("    \"x = 1\\n\",\n", "    \"x = 2\\n\",\n    \"w = 'ä'\\n\",\n").replace("y = '", "yy = '");
        assert_eq!(notebook.with_text(&text).ok(), Some(expected));
        assert!(notebook.with_text("x = 1\n").is_err());
    }

    #[test]
    fn lines_are_separated_as_in_the_old_source() {
        for between in [",", ", ", " ,\n  "] {
            let json = |last: &str| {
                let source = format!(r#"["a\" = ,\n"{between}"b\n"{between}"{last}"]"#);
                format!(r#"{{"nbformat": 4, "cells": [{{"cell_type": "code", "source": {source}}}]}}"#)
            };
            let notebook = notebook(&json("c"));
            assert_eq!(notebook.with_text(&notebook.text().replace('c', "d")).ok(), Some(json("d")));
        }
    }

    #[test]
    fn cells_with_marks_of_joined_texts_are_errors() {
        for source in [r"a\n#\u001c\nb", r"#\u001c", r"x = 1  #\u001d"] {
            let json = format!(r#"{{"nbformat": 4, "cells": [{{"cell_type": "code", "source": "{source}"}}]}}"#);
            let problem = Notebook::parse(json).expect_err("an error").to_string();
            assert!(problem.starts_with("cell 1: a comment begins with"), "{problem}");
        }
    }

    #[test]
    fn source_that_is_no_text_is_an_error_with_the_cell() {
        for source in ["3", r#""\ud800""#, r#"["a", 3]"#] {
            let json = format!(r#"{{"nbformat": 4, "cells": [{{"cell_type": "code", "source": {source}}}]}}"#);
            let problem = Notebook::parse(json).expect_err("an error").to_string();
            assert!(problem.starts_with("cell 1: ") && !problem.contains("at line"), "{problem}");
        }
    }

    #[test]
    fn metadata_and_outputs_are_not_limited() {
        let deep = [r#"["\ud800"]"#.to_owned(), "[".repeat(500) + &"]".repeat(500)];
        for other in deep {
            let notebook = notebook(&format!(
                r#"{{"nbformat": 4, "metadata": {{"kernelspec": null, "other": {other}}}, "cells":
                [{{"cell_type": "code", "metadata": {{"other": {other}}}, "outputs": {other}, "source": "x"}}]}}"#
            ));
            assert_eq!(notebook.numbers(), [1]);
        }
    }

    #[test]
    fn other_languages_have_no_cells_and_other_files_are_errors() {
        let other = notebook(
            r#"{"nbformat": 4, "metadata": {"language_info": {"name": "R"}}, "cells":
            [{"cell_type": "code", "source": "x"}]}"#,
        );
        assert!(other.numbers().is_empty());
        for wrong in ["", "{}", "[1]", r#"{"nbformat": 3, "worksheets": []}"#] {
            assert!(Notebook::parse(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
