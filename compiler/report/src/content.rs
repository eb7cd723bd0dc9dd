//! The content of an input: its text, and of a notebook the cells that the text is made of.

use crate::load::Loaded;
use crate::{Notebook, Source};
use rx_base::notebook::{Cells, Masked};
use rx_base::{Diagnostic, Span};
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
    /// Creates the content of a file that was loaded. A notebook that is not UTF-8 is taken as a text, whose wrong
    /// encoding is reported.
    ///
    /// # Errors
    /// [`Notebook::parse`] fails for a notebook.
    pub fn new(loaded: Loaded, is_notebook: bool) -> io::Result<Content> {
        let Loaded { text, mistake } = loaded;
        if mistake.is_some() || !is_notebook {
            return Ok(Content { text, mistake, notebook: None });
        }
        Ok(Content::of_notebook(Notebook::parse(text)?))
    }

    /// Creates the content of a notebook.
    pub fn of_notebook(notebook: Notebook) -> Content {
        Content { text: notebook.text().to_owned(), mistake: None, notebook: Some(notebook) }
    }

    /// Returns `text`, a version of this text, as it is parsed: in a notebook, lines of IPython's syntax are comments.
    pub fn code<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.notebook {
            Some(_) => Masked::new(text).text.into(),
            None => text.into(),
        }
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
