//! The text to format.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use rx_base::notebook::{Masked, join, split};
use rx_base::{Diagnostic, Span};
use rx_report::Notebook;
use rx_settings::files::is_notebook;
use rx_syntax::format::errors;
use rx_syntax::{Document, Encoding, FileKind};

/// A text and its origin.
pub struct Source {
    /// The name in messages.
    pub name: String,
    /// The path to write to; `None` for standard input.
    pub path: Option<PathBuf>,
    /// The text; of a notebook, its JSON.
    pub text: String,
    kind: FileKind,
    notebook: Option<Cells>,
}

/// The cells of a notebook.
struct Cells {
    notebook: Notebook,
    masked: Masked,
}

impl Source {
    /// Reads a file, or standard input for `-`.
    ///
    /// # Errors
    /// One line with the file's name and the reason.
    pub fn read(file: &str, stdin_name: &str) -> Result<Source, String> {
        let (name, path, bytes) = if file == "-" {
            let mut bytes = Vec::new();
            std::io::stdin().lock().read_to_end(&mut bytes).map_err(|error| format!("{stdin_name}: {error}"))?;
            (stdin_name.to_owned(), None, bytes)
        } else {
            let path = PathBuf::from(file);
            let bytes = fs::read(&path).map_err(|error| format!("{file}: {error}"))?;
            (file.to_owned(), Some(path), bytes)
        };
        if u32::try_from(bytes.len()).is_err() {
            return Err(format!("{name}: larger than 4 GiB"));
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| format!("{name}: not UTF-8 text (byte {})", error.utf8_error().valid_up_to()))?;
        let kind = FileKind::of_path(&name);
        let notebook = match is_notebook(Path::new(&name)) {
            true => Some(Cells::parse(&text).map_err(|error| format!("{name}: {error}"))?),
            false => None,
        };
        Ok(Source { name, path, text, kind, notebook })
    }

    /// Parses the text as a document.
    pub fn document(&self) -> Document {
        Document::new(self.notebook.as_ref().map_or(&self.text, |cells| &cells.masked.text), self.kind)
    }

    /// Returns the text with `formatted` as the text of its document.
    ///
    /// # Errors
    /// One line: formatting changed a line of a notebook that is not Python, or its cells.
    pub fn with_document(&self, formatted: String) -> Result<String, String> {
        match &self.notebook {
            Some(cells) => cells.with_text(&formatted).map_err(|problem| format!("{}: {problem}", self.name)),
            None => Ok(formatted),
        }
    }

    /// Returns the syntax errors of a document of this text, one line each.
    pub fn mistakes(&self, document: &Document) -> Vec<String> {
        let line = |(item, segment, diagnostic): (usize, usize, Diagnostic<Span>)| {
            let start = document.segment_start(item, segment) + diagnostic.primary.start as usize;
            self.mistake(document, start, &diagnostic)
        };
        errors(document).map(line).collect()
    }

    fn mistake(&self, document: &Document, start: usize, diagnostic: &Diagnostic<Span>) -> String {
        let place = match &self.notebook {
            Some(Cells { notebook, .. }) => {
                let source = rx_report::Source::new(&self.name, notebook.text()).with_cells(Some(notebook.numbers()));
                source.position(start).to_string()
            }
            None => {
                let (line, column) = document.line_column(start, Encoding::Utf32);
                format!("{}:{}", line + 1, column + 1)
            }
        };
        format!("{}:{place}: error[{}]: {}", self.name, diagnostic.code, diagnostic.message)
    }
}

impl Cells {
    fn parse(json: &str) -> std::io::Result<Cells> {
        let notebook = Notebook::parse(json.to_owned())?;
        let masked = Masked::new(notebook.text());
        Ok(Cells { notebook, masked })
    }

    /// Returns the notebook's JSON with a formatted version of its masked text.
    fn with_text(&self, formatted: &str) -> Result<String, String> {
        let text = self.masked.restore(formatted).ok_or("left as it is, for formatting changes an IPython command")?;
        let (old, new) = (split(self.notebook.text()), split(&text));
        if old.len() != new.len() {
            return Err("left as it is, for formatting joins or splits cells".to_owned());
        }
        let cells: Vec<String> = old.iter().zip(&new).map(|(old, new)| with_ends(old, new)).collect();
        self.notebook.with_text(&join(cells.iter().map(String::as_str))).map_err(|error| error.to_string())
    }
}

/// Returns a formatted cell with the blank lines at the start and the end of the old one. The formatter separates
/// functions by blank lines, which are not needed between cells.
fn with_ends(old: &str, new: &str) -> String {
    let old_code = old.trim_matches('\n');
    if old_code.is_empty() {
        return old.to_owned();
    }
    let start = old.len() - old.trim_start_matches('\n').len();
    let end = start + old_code.len();
    let (before, after) = (old.get(..start).unwrap_or_default(), old.get(end..).unwrap_or_default());
    [before, new.trim_matches('\n'), after].concat()
}
