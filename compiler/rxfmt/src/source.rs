//! The text to format.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use rx_base::notebook::{Masked, join, split};
use rx_base::{Diagnostic, Span};
use rx_report::Notebook;
use rx_settings::files::is_notebook;
use rx_syntax::format::errors;
use rx_syntax::{Document, FileKind};

/// A text and its origin.
pub struct Source {
    /// The name in messages.
    pub name: String,
    /// The path to write to; `None` for standard input.
    pub path: Option<PathBuf>,
    kind: FileKind,
    content: Content,
}

enum Content {
    Text(String),
    Notebook { notebook: Notebook, masked: Masked },
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
        let content = if is_notebook(Path::new(&name)) {
            let notebook = Notebook::parse(text).map_err(|error| format!("{name}: {error}"))?;
            let masked = Masked::new(notebook.text());
            Content::Notebook { notebook, masked }
        } else {
            Content::Text(text)
        };
        Ok(Source { name, path, kind, content })
    }

    /// The text; of a notebook, its JSON.
    pub fn text(&self) -> &str {
        match &self.content {
            Content::Text(text) => text,
            Content::Notebook { notebook, .. } => notebook.json(),
        }
    }

    /// Parses the text as a document.
    pub fn document(&self) -> Document {
        let (Content::Text(text) | Content::Notebook { masked: Masked { text, .. }, .. }) = &self.content;
        Document::new(text, self.kind)
    }

    /// Returns the text with `formatted` as the text of its document.
    ///
    /// # Errors
    /// One line: formatting changed a line of a notebook that is not Python, or its cells.
    pub fn with_document(&self, formatted: String) -> Result<String, String> {
        match &self.content {
            Content::Text(_) => Ok(formatted),
            Content::Notebook { notebook, masked } => {
                with_cells(notebook, masked, &formatted).map_err(|problem| format!("{}: {problem}", self.name))
            }
        }
    }

    /// Returns the syntax errors of a document of this text, one line each.
    pub fn mistakes(&self, document: &Document) -> Vec<String> {
        let (text, numbers) = match &self.content {
            Content::Text(text) => (text.as_str(), None),
            Content::Notebook { notebook, .. } => (notebook.text(), Some(notebook.numbers())),
        };
        let source = rx_report::Source::new(&self.name, text).with_cells(numbers);
        let line = |(item, segment, diagnostic): (usize, usize, Diagnostic<Span>)| {
            let start = document.segment_start(item, segment) + diagnostic.primary.start as usize;
            let position = source.position(start);
            format!("{}:{position}: error[{}]: {}", self.name, diagnostic.code, diagnostic.message)
        };
        errors(document).map(line).collect()
    }
}

/// Returns a notebook's JSON with a formatted version of its masked text.
fn with_cells(notebook: &Notebook, masked: &Masked, formatted: &str) -> Result<String, String> {
    let text = masked.restore(formatted).ok_or("left as it is, for formatting changes an IPython command")?;
    let mut old = split(notebook.text()).into_iter();
    let cell = |new: &str| old.next().map_or_else(|| new.to_owned(), |old| with_ends(old, new));
    let cells: Vec<String> = split(&text).into_iter().map(cell).collect();
    notebook.with_text(&join(cells.iter().map(String::as_str))).map_err(|error| error.to_string())
}

/// Returns a formatted cell with the line ends of the old one, and its blank lines at the start and the end. The
/// formatter uses one kind of line end for all cells, and separates functions by blank lines, which are not needed
/// between cells.
fn with_ends(old: &str, new: &str) -> String {
    let ends = ['\n', '\r'];
    let old_code = old.trim_matches(ends);
    let code = new.trim_matches(ends).replace("\r\n", "\n");
    if old_code.is_empty() || old_code.replace("\r\n", "\n") == code {
        return old.to_owned();
    }
    let code = if old.contains("\r\n") { code.replace('\n', "\r\n") } else { code };
    let start = old.len() - old.trim_start_matches(ends).len();
    let end = start + old_code.len();
    let (before, after) = (old.get(..start).unwrap_or_default(), old.get(end..).unwrap_or_default());
    [before, &code, after].concat()
}
