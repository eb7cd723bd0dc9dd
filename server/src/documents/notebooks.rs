//! The open notebooks among the documents.

use super::{Documents, Text, catch};
use crate::lsp::{Change, Point, Profile, Uri};
use crate::notebooks::{AskedCell, Cell, Changes, Notebook};
use rx_base::fix::difference;
use rx_db::FileKind;

impl Documents {
    /// Adds a notebook. A notebook that is already open is replaced. Returns the URIs of the replaced cells.
    pub fn open_notebook(&mut self, uri: Uri, version: i32, cells: Vec<Cell>) -> Vec<Uri> {
        let replaced = self.close_notebook(&uri);
        let (notebook, text) = Notebook::new(cells);
        self.open(uri.clone(), FileKind::Python, version, &text);
        self.notebooks.insert(uri.clone(), notebook);
        self.list_cells(&uri);
        replaced
    }

    /// Changes a notebook. Without changes, only its version is set. Returns the URIs of the cells that were removed;
    /// `None` if the notebook is not open.
    pub fn change_notebook(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Changes,
        profile: &Profile,
    ) -> Option<Vec<Uri>> {
        let notebook = self.notebooks.get_mut(uri)?;
        if changes.is_empty() {
            self.open.get_mut(uri)?.version = version;
            return Some(Vec::new());
        }
        let has_new_cells = changes.splice.is_some();
        let (removed, text) = notebook.change(changes, profile.encoding);
        if has_new_cells {
            self.list_cells(uri);
        }
        let changes = self.change_to(uri, text, profile);
        self.change(uri, version, &changes, profile);
        Some(removed)
    }

    /// Removes a notebook. Returns the URIs of its cells.
    pub fn close_notebook(&mut self, uri: &Uri) -> Vec<Uri> {
        let Some(notebook) = self.notebooks.remove(uri) else { return Vec::new() };
        self.owners.retain(|_, owner| owner != uri);
        self.close(uri);
        notebook.layout().documents().iter().map(|(cell, _)| cell.clone()).collect()
    }

    /// Records the notebook of each of its cells.
    fn list_cells(&mut self, uri: &Uri) {
        self.owners.retain(|_, owner| owner != uri);
        let cells = self.notebooks.get(uri).into_iter().flat_map(|notebook| notebook.layout().documents());
        self.owners.extend(cells.map(|(cell, _)| (cell.clone(), uri.clone())));
    }

    /// Returns the changes that make `text` the text of a document: none, or that of the part that differs.
    fn change_to(&self, uri: &Uri, text: String, profile: &Profile) -> Vec<Change> {
        let known = self.open.get(uri).and_then(|open| match open.text {
            Text::Known(file) => catch(|| self.workspace.document(file)),
            Text::Unknown(_) => None,
        });
        let part = known.and_then(|document| {
            let old = document.text();
            // A position cannot be between `\r` and `\n`, but the part that differs may begin there.
            if old.contains('\r') || text.contains('\r') {
                return None;
            }
            let Some((range, new)) = difference(&old, &text) else { return Some(Vec::new()) };
            let point = |offset| {
                let (line, column) = document.line_column(offset, profile.encoding);
                Point { line, column }
            };
            Some(vec![Change { range: Some((point(range.start), point(range.end))), text: new.to_owned() }])
        });
        part.unwrap_or_else(|| vec![Change { range: None, text }])
    }

    /// Returns the notebook of a cell; the document itself if it is not a cell.
    pub fn owner<'u>(&'u self, uri: &'u Uri) -> &'u Uri {
        self.owners.get(uri).unwrap_or(uri)
    }

    /// Returns the cell with this URI, without an index for the URI of a notebook. `None` for other documents.
    pub fn cell(&self, uri: &Uri) -> Option<AskedCell> {
        let layout = self.notebooks.get(self.owner(uri))?.layout();
        Some(AskedCell { layout: layout.clone(), index: layout.index(uri) })
    }
}
