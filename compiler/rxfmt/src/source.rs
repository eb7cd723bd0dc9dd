//! The text to format.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use rx_base::{Diagnostic, Span};
use rx_syntax::format::errors;
use rx_syntax::{Document, Encoding, FileKind};

/// A text and its origin.
pub struct Source {
    /// The name in messages.
    pub name: String,
    /// The path to write to; `None` for standard input.
    pub path: Option<PathBuf>,
    /// The text.
    pub text: String,
    kind: FileKind,
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
        Ok(Source { name, path, text, kind })
    }

    /// Parses the text as a document.
    pub fn document(&self) -> Document {
        Document::new(&self.text, self.kind)
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
        let (line, column) = document.line_column(start, Encoding::Utf32);
        format!("{}:{}:{}: error[{}]: {}", self.name, line + 1, column + 1, diagnostic.code, diagnostic.message)
    }
}
