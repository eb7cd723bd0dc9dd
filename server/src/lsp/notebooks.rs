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
        save: None,
    }
}

/// Converts `notebookDocument/didOpen`.
pub fn opened(params: proto::DidOpenNotebookDocumentParams) -> Event {
    let proto::NotebookDocument { uri, version, cells, .. } = params.notebook_document;
    let mut opened = opened_cells(params.cell_text_documents, &cells);
    // The texts come in any order.
    opened.sort_by_key(|open| cells.iter().position(|cell| cell.document == open.uri));
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
    let opened = opened_cells(structure.did_open.unwrap_or_default(), &cells);
    let cells: Vec<Uri> = cells.into_iter().map(|cell| cell.document).collect();
    Splice { start: start as usize, count: delete_count as usize, cells, opened }
}

/// Converts opened cells. `listed` are their entries in the list of cells.
fn opened_cells(documents: Vec<proto::TextDocumentItem>, listed: &[proto::NotebookCell]) -> Vec<Cell> {
    let cell = |document: proto::TextDocumentItem| {
        let proto::TextDocumentItem { uri, language_id, version, text } = document;
        let entry = listed.iter().find(|cell| cell.document == uri);
        let is_code = entry.is_none_or(|cell| cell.kind == proto::NotebookCellKind::CODE);
        Cell { uri, is_python: is_code && language_id == PYTHON, version, text }
    };
    documents.into_iter().map(cell).collect()
}
