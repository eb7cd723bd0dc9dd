//! Open notebooks: their cells, which the client syncs as separate documents, and the text that they are joined to.
//!
//! The database holds the joined text as one Python document ([`rx_base::notebook`]). A [`Layout`] converts between
//! places in that text and places in cells.

use crate::lsp::{Change, Point, Range, Uri};
use rx_base::notebook::{Cells, Masked, join};
use rx_db::{Document, Encoding, FileKind};
use std::borrow::Cow;
use std::sync::Arc;

/// A cell of a notebook.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The URI of its document.
    pub uri: Uri,
    /// Whether it contains Python, not text or another language.
    pub is_python: bool,
    /// The version of its text.
    pub version: i32,
    /// Its text.
    pub text: String,
}

/// A change of the list of cells: `count` cells from `start` on are replaced.
#[derive(Clone, Debug, PartialEq)]
pub struct Splice {
    /// The index of the first replaced cell.
    pub start: usize,
    /// The number of replaced cells.
    pub count: usize,
    /// The URIs of the cells in their place. Those that are not in `opened` are moved.
    pub cells: Vec<Uri>,
    /// The new cells.
    pub opened: Vec<Cell>,
}

/// The changes of one `notebookDocument/didChange`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// The change of the list of cells, which comes first.
    pub splice: Option<Splice>,
    /// The changes of texts: URI and new version of the cell, and its changes in order.
    pub texts: Vec<(Uri, i32, Vec<Change>)>,
}

impl Changes {
    /// Whether neither the cells nor their texts change: for example, if only metadata of the notebook changes.
    pub fn is_empty(&self) -> bool {
        self.splice.is_none() && self.texts.is_empty()
    }
}

/// An open notebook.
#[derive(Debug)]
pub struct Notebook {
    cells: Vec<Cell>,
    layout: Arc<Layout>,
}

impl Notebook {
    /// Creates a notebook of these cells, and returns it with its text for the database.
    pub fn new(cells: Vec<Cell>) -> (Notebook, String) {
        let (layout, text) = laid_out(&cells);
        (Notebook { cells, layout }, text)
    }

    /// The places of the cells in the text.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Applies changes. Returns the URIs of the cells that were removed, and the new text for the database.
    pub fn change(&mut self, changes: Changes, encoding: Encoding) -> (Vec<Uri>, String) {
        let removed = changes.splice.map(|splice| self.splice(splice)).unwrap_or_default();
        for (uri, version, changes) in changes.texts {
            let Some(cell) = self.cells.iter_mut().find(|cell| cell.uri == uri) else { continue };
            cell.version = version;
            for change in changes {
                cell.apply(change, encoding);
            }
        }
        let (layout, text) = laid_out(&self.cells);
        self.layout = layout;
        (removed, text)
    }

    fn splice(&mut self, Splice { start, count, cells, mut opened }: Splice) -> Vec<Uri> {
        let start = start.min(self.cells.len());
        let end = start.saturating_add(count).min(self.cells.len());
        let mut replaced: Vec<Cell> = self.cells.drain(start..end).collect();
        let mut take = |uri: &Uri| {
            let of = |cells: &mut Vec<Cell>| cells.iter().position(|cell| cell.uri == *uri).map(|at| cells.remove(at));
            of(&mut opened).or_else(|| of(&mut replaced))
        };
        let new: Vec<Cell> = cells.iter().filter_map(&mut take).collect();
        self.cells.splice(start..start, new);
        replaced.into_iter().map(|cell| cell.uri).collect()
    }
}

/// Returns the places of the Python cells in their joined text, and that text with IPython's syntax as comments.
fn laid_out(cells: &[Cell]) -> (Arc<Layout>, String) {
    let python = || cells.iter().filter(|cell| cell.is_python);
    let joined = join(python().map(|cell| cell.text.as_str()));
    // Positions count a lone `\r` as a line end.
    let lines = match joined.contains('\r') {
        true => Cow::Owned(joined.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(&*joined),
    };
    let documents = python().map(|cell| (cell.uri.clone(), cell.version)).collect();
    (Arc::new(Layout { cells: Cells::new(&lines), documents }), Masked::new(&joined).text)
}

impl Cell {
    /// Applies one change to the text.
    fn apply(&mut self, change: Change, encoding: Encoding) {
        let Some((from, to)) = change.range else {
            self.text = change.text;
            return;
        };
        let document = Document::new(&self.text, FileKind::Python);
        let offset = |at: Point| document.offset_of(at.line, at.column, encoding);
        let range = offset(from)..offset(to).max(offset(from));
        if self.text.get(range.clone()).is_some() {
            self.text.replace_range(range, &change.text);
        }
    }
}

/// The places of a notebook's Python cells in the joined text.
#[derive(Debug)]
pub struct Layout {
    cells: Cells,
    /// The document of each cell, with its version; in the order of the text.
    documents: Vec<(Uri, i32)>,
}

impl Layout {
    /// The document of each cell, with the version of its text.
    pub fn documents(&self) -> &[(Uri, i32)] {
        &self.documents
    }

    /// Returns the index of a cell.
    pub fn index(&self, uri: &Uri) -> Option<usize> {
        self.documents.iter().position(|(cell, _)| cell == uri)
    }

    /// Returns the position in the text of a position in a cell, at most at the end of the cell.
    pub fn point(&self, index: usize, at: Point) -> Point {
        let line = self.cells.start(index).saturating_add(at.line);
        match self.cells.end(index) {
            // A position after the cell is that of its separator, not of the next cell.
            Some(end) if line >= end => Point { line: end, column: 0 },
            _ => Point { line, column: at.column },
        }
    }

    /// Returns the cell in which a range of the text begins, and the range in that cell. A range that ends in a later
    /// cell ends with the lines of the first.
    pub fn range(&self, range: Range) -> (usize, Range) {
        let (index, line) = self.cells.locate(range.start.line);
        let mut end = range.end;
        if let Some(last) = self.cells.end(index)
            && last < end.line
        {
            (end.line, end.character) = (last, 0);
        }
        let first = range.start.line - line;
        let mut start = range.start;
        start.line = line;
        end.line = end.line.saturating_sub(first);
        (index, Range::new(start, end))
    }

    /// Returns the lines of a cell in the text; the end is exclusive, `None` for the last cell.
    pub fn lines(&self, index: usize) -> (u32, Option<u32>) {
        (self.cells.start(index), self.cells.end(index))
    }
}

/// A cell that a request is about.
#[derive(Clone, Debug)]
pub struct AskedCell {
    /// The places of all cells of its notebook.
    pub layout: Arc<Layout>,
    /// The index of the cell; `None` if the request is about the whole notebook.
    pub index: Option<usize>,
}

impl AskedCell {
    /// Returns the position in the text of a position in the client's document.
    pub fn point(&self, at: Point) -> Point {
        self.index.map_or(at, |index| self.layout.point(index, at))
    }
}

/// Converts a range of the text in the database to one of the client's document: the range itself, or in a notebook,
/// the range in the cell. `None` if it begins in another cell.
pub fn in_document(range: Range, cell: Option<&AskedCell>) -> Option<Range> {
    let Some(AskedCell { layout, index }) = cell else { return Some(range) };
    let (found, range) = layout.range(range);
    (*index == Some(found)).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::{Cell, Changes, Notebook, Splice};
    use crate::lsp::{Change, Point, Range, Uri};
    use rx_db::{Document, Encoding, FileKind};
    use tower_lsp::ls_types::Position;

    fn uri(name: &str) -> Uri {
        format!("vscode-notebook-cell:/net.ipynb#{name}").parse().unwrap()
    }

    fn cell(name: &str, text: &str) -> Cell {
        Cell { uri: uri(name), is_python: name != "markdown", version: 1, text: text.into() }
    }

    fn notebook() -> (Notebook, String) {
        Notebook::new(vec![cell("a", "x = 1\n%time f()"), cell("markdown", "text"), cell("b", "y = '🦀' + z")])
    }

    #[test]
    fn python_cells_are_joined() {
        let (_, text) = notebook();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines[1].starts_with('#') && lines[1].ends_with("ime f()"), "{lines:?}");
        assert_eq!((lines[0], lines[3]), ("x = 1", "y = '🦀' + z"));
    }

    #[test]
    fn lone_carriage_returns_end_lines() {
        for (first, start) in [("a\rb", 3), ("a\r\nb", 3), ("a\rb\r", 3), ("a\r\rb\nc", 5)] {
            let (notebook, text) = Notebook::new(vec![cell("a", first), cell("b", "y")]);
            let document = Document::new(&text, FileKind::Python);
            let line = document.line_column(text.find('y').unwrap(), Encoding::Utf8).0;
            assert_eq!((line, notebook.layout().lines(1)), (start, (start, None)), "{first:?}");
        }
    }

    #[test]
    fn places_are_converted_both_ways() {
        let layout = notebook().0.layout().clone();
        let index = layout.index(&uri("b")).unwrap();
        assert_eq!((index, layout.index(&uri("markdown"))), (1, None));
        assert_eq!(layout.point(index, Point { line: 0, column: 4 }), Point { line: 3, column: 4 });
        assert_eq!(layout.point(0, Point { line: 9, column: 4 }), Point { line: 2, column: 0 });
        let range = |from, to| Range::new(Position::new(from, 1), Position::new(to, 2));
        assert_eq!(layout.range(range(3, 3)), (1, range(0, 0)));
        assert_eq!(layout.range(range(1, 3)), (0, Range::new(Position::new(1, 1), Position::new(2, 0))));
    }

    #[test]
    fn cells_are_changed_moved_and_removed() {
        let (mut notebook, _) = notebook();
        let at = |column| Point { line: 0, column };
        let change = Change { range: Some((at(9), at(10))), text: "w".into() };
        let texts = vec![(uri("b"), 2, vec![change])];
        let (removed, text) = notebook.change(Changes { splice: None, texts }, Encoding::Utf16);
        assert!(removed.is_empty() && text.ends_with("y = '🦀' w z\n"), "{text}");
        assert_eq!(notebook.layout().documents()[1], (uri("b"), 2));
        let cells = vec![uri("c"), uri("b"), uri("markdown")];
        let splice = Some(Splice { start: 0, count: 3, cells, opened: vec![cell("c", "v = 2")] });
        let (removed, text) = notebook.change(Changes { splice, texts: Vec::new() }, Encoding::Utf16);
        assert_eq!(removed, [uri("a")]);
        assert!(text.starts_with("v = 2\n") && text.ends_with("y = '🦀' w z\n"), "{text}");
    }
}
