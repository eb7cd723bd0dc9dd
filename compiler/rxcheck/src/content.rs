//! The content of an input: its text, and of a notebook the cells that the text is made of.

use crate::discover::Input;
use rx_base::notebook::{Cells, Masked};
use rx_base::{Diagnostic, Span};
use rx_report::load::{Loaded, load};
use rx_report::{Notebook, Source};
use std::borrow::Cow;
use std::io;

/// The content of an input.
pub struct Content {
    /// The text; of a notebook, that of its joined cells.
    pub text: String,
    /// The diagnostic for a wrong encoding.
    pub mistake: Option<Diagnostic<Span>>,
    notebook: Option<Notebook>,
}

impl Content {
    /// Reads an input. A notebook that is not UTF-8 is read as a text, whose wrong encoding is reported.
    ///
    /// # Errors
    /// Errors of the system, and a notebook that is not one.
    pub fn read(input: &Input) -> io::Result<Content> {
        let Loaded { text, mistake } = load(&input.place)?;
        if mistake.is_some() || !input.is_notebook() {
            return Ok(Content { text, mistake, notebook: None });
        }
        // A notebook without the word `tvm` cannot import TVMScript's names. It may be of any version.
        let is_read = input.named || text.contains("tvm");
        let notebook = if is_read { Notebook::parse(text)? } else { Notebook::without_cells(text) };
        Ok(Content { text: notebook.text().to_owned(), mistake: None, notebook: Some(notebook) })
    }

    /// The content of the file.
    pub fn file(&self) -> &str {
        self.notebook.as_ref().map_or(self.text.as_str(), Notebook::json)
    }

    /// Returns the content of the file with `text` as the text.
    ///
    /// # Errors
    /// `text` does not have the cells of the notebook.
    pub fn file_with(&self, text: &str) -> io::Result<String> {
        match &self.notebook {
            Some(notebook) => notebook.with_text(text),
            None => Ok(text.to_owned()),
        }
    }

    /// Returns the line of the text for a line of a cell, or of the whole text if there are no cells. Both count
    /// from 0. `None` if a notebook has no such cell of Python, or the cell no such line.
    pub fn line(&self, cell: Option<u32>, line: u32) -> Option<u32> {
        match (&self.notebook, cell) {
            (None, None) => Some(line),
            (Some(notebook), Some(cell)) => {
                let index = notebook.numbers().iter().position(|number| *number == cell)?;
                let cells = Cells::new(&self.text);
                let line = cells.start(index).checked_add(line)?;
                cells.end(index).is_none_or(|end| line < end).then_some(line)
            }
            _ => None,
        }
    }

    /// Returns `text`, a version of this text, with its name, for the places of diagnostics.
    pub fn source<'a>(&'a self, name: &'a str, text: &'a str) -> Source<'a> {
        Source::new(name, text).with_cells(self.notebook.as_ref().map(Notebook::numbers))
    }
}

/// Returns the text that is parsed: in a notebook, lines of IPython's syntax are comments.
pub fn code<'t>(text: &'t str, input: &Input) -> Cow<'t, str> {
    if input.is_notebook() { Masked::new(text).text.into() } else { text.into() }
}
