//! Conversions of the messages that sync notebooks.

use super::{Uri, from_proto};
use crate::event::Event;
use crate::notebooks::{Cell, Changes, Splice};
use tower_lsp::ls_types as proto;

/// The type of Jupyter notebooks in VS Code and in clients that follow it.
const JUPYTER: &str = "jupyter-notebook";
/// The language of cells that the client syncs.
const PYTHON: &str = "python";

/// Returns the server's options for notebooks: the client syncs the Python cells of Jupyter notebooks.
pub fn options() -> proto::NotebookDocumentSyncOptions {
    proto::NotebookDocumentSyncOptions {
        notebook_selector: vec![proto::NotebookSelector::ByNotebook {
            notebook: proto::Notebook::String(JUPYTER.to_owned()),
            cells: Some(vec![proto::NotebookCellSelector { language: PYTHON.to_owned() }]),
        }],
        save: Some(true),
    }
}

/// Converts `notebookDocument/didOpen`.
pub fn opened(params: proto::DidOpenNotebookDocumentParams) -> Event {
    let proto::NotebookDocument { uri, version, cells, .. } = params.notebook_document;
    let mut opened: Vec<Cell> = params.cell_text_documents.into_iter().map(cell).collect();
    // The texts come in any order.
    opened.sort_by_key(|open| cells.iter().position(|cell| cell.document == open.uri));
    for (open, listed) in listed(&mut opened, &cells) {
        open.is_python &= listed.kind == proto::NotebookCellKind::CODE;
    }
    Event::OpenNotebook { uri, version, cells: opened }
}

/// Converts `notebookDocument/didChange`.
pub fn changed(params: proto::DidChangeNotebookDocumentParams) -> Event {
    let proto::VersionedNotebookDocumentIdentifier { version, uri } = params.notebook_document;
    let cells = params.change.cells;
    let (structure, texts) = cells.map(|cells| (cells.structure, cells.text_content)).unwrap_or_default();
    let text = |proto::NotebookDocumentChangeTextContent { document, changes }| {
        (document.uri, document.version, changes.into_iter().map(from_proto::change).collect())
    };
    let texts = texts.into_iter().flatten().map(text).collect();
    Event::ChangeNotebook { uri, version, changes: Changes { splice: structure.map(splice), texts } }
}

fn splice(structure: proto::NotebookDocumentCellChangeStructure) -> Splice {
    let proto::NotebookCellArrayChange { start, delete_count, cells } = structure.array;
    let cells = cells.unwrap_or_default();
    let mut opened: Vec<Cell> = structure.did_open.into_iter().flatten().map(cell).collect();
    for (open, listed) in listed(&mut opened, &cells) {
        open.is_python &= listed.kind == proto::NotebookCellKind::CODE;
    }
    let cells: Vec<Uri> = cells.into_iter().map(|cell| cell.document).collect();
    Splice { start: start as usize, count: delete_count as usize, cells, opened }
}

fn cell(document: proto::TextDocumentItem) -> Cell {
    let proto::TextDocumentItem { uri, language_id, version, text } = document;
    Cell { uri, is_python: language_id == PYTHON, version, text }
}

/// Pairs opened cells with their entries in the list of cells.
fn listed<'a>(
    opened: &'a mut [Cell],
    cells: &'a [proto::NotebookCell],
) -> impl Iterator<Item = (&'a mut Cell, &'a proto::NotebookCell)> {
    opened.iter_mut().filter_map(|open| {
        let listed = cells.iter().find(|cell| cell.document == open.uri)?;
        Some((open, listed))
    })
}
