//! Workspace symbols: modules and functions declared in the files of the client's folders, open or not.
//!
//! Files are read when the client searches for a symbol, on a separate thread and without the database of the open
//! documents, so that no edit waits for them. The symbols of a file are cached until the file changes.

use crate::lsp::{Uri, from_proto, to_proto};
use crate::reads::start_thread;
use rx_db::{Encoding, FileKind, Project, Projects, Workspace};
use rx_settings::Finder;
use rx_settings::files::{Visit, is_source, walk};
use std::collections::{HashMap, HashSet};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::sync::oneshot;
use tower_lsp::ls_types::SymbolInformation;

/// The maximal number of files that are searched for one request.
const MAX_FILES: usize = 20_000;

/// The maximal size of a file in bytes. Longer files contain weights as text and are skipped.
const MAX_BYTES: u64 = 64 << 20;

/// The maximal number of symbols in one response. A client shows a few dozen, and requests again with a longer query.
pub const MAX_SYMBOLS: usize = 2_000;

/// The client's workspace folders. Clones share the same state.
#[derive(Clone)]
pub struct Folders(Arc<Mutex<State>>);

struct State {
    roots: Vec<PathBuf>,
    encoding: Encoding,
    files: HashMap<PathBuf, Known>,
}

/// The symbols of a file when it was last read.
struct Known {
    modified: Option<SystemTime>,
    bytes: u64,
    symbols: Vec<SymbolInformation>,
}

impl Default for Folders {
    fn default() -> Folders {
        Folders(Arc::new(Mutex::new(State { roots: Vec::new(), encoding: Encoding::Utf16, files: HashMap::new() })))
    }
}

impl Folders {
    /// Sets the folders and the position encoding.
    pub fn set(&self, roots: &[Uri], encoding: Encoding) {
        let mut state = self.state();
        state.roots = roots.iter().filter_map(from_proto::path).collect();
        state.encoding = encoding;
        state.files.clear();
    }

    /// Adds and removes folders.
    pub fn change(&self, added: &[Uri], removed: &[Uri]) {
        let gone: Vec<PathBuf> = removed.iter().filter_map(from_proto::path).collect();
        let mut state = self.state();
        state.roots.retain(|root| !gone.contains(root));
        state.files.retain(|file, _| !gone.iter().any(|root| file.starts_with(root)));
        state.roots.extend(added.iter().filter_map(from_proto::path));
    }

    /// Searches the files that are not `open` for symbols that match `query`. Returns at most [`MAX_SYMBOLS`].
    pub async fn symbols(&self, open: HashSet<Uri>, query: String) -> Vec<SymbolInformation> {
        let (reply, receiver) = oneshot::channel();
        let folders = self.clone();
        let look = move || {
            let open: HashSet<PathBuf> = open.iter().filter_map(from_proto::path).collect();
            let found = folders.state().search(&open, &query, &reply);
            // An error means that the request was cancelled.
            let _ = reply.send(found);
        };
        match start_thread("symbols", look) {
            Ok(()) => receiver.await.unwrap_or_default(),
            // If the system cannot start a thread, the response is empty.
            Err(_) => Vec::new(),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn search(
        &mut self,
        open: &HashSet<PathBuf>,
        query: &str,
        reply: &oneshot::Sender<Vec<SymbolInformation>>,
    ) -> Vec<SymbolInformation> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        for root in &self.roots {
            let mut listing = Listing { projects: Projects::new(Finder::nearest()), files: Vec::new(), reply };
            walk(root, &mut listing);
            for file in listing.files {
                if reply.is_closed() || found.len() >= MAX_SYMBOLS {
                    return found;
                }
                // Folders may be nested, so a file may be listed twice.
                if open.contains(&file) || !seen.insert(file.clone()) {
                    continue;
                }
                let symbols = symbols_of(&mut self.files, &file, self.encoding);
                found.extend(symbols.iter().filter(|symbol| to_proto::has_letters(&symbol.name, query)).cloned());
            }
        }
        found.truncate(MAX_SYMBOLS);
        found
    }
}

/// Returns the symbols of a file, from the cache if its size and modification time are unchanged.
fn symbols_of<'a>(known: &'a mut HashMap<PathBuf, Known>, file: &Path, encoding: Encoding) -> &'a [SymbolInformation] {
    let Some(state) = std::fs::metadata(file).ok().filter(|state| state.len() <= MAX_BYTES) else { return &[] };
    let (modified, bytes) = (state.modified().ok(), state.len());
    let fresh = |known: &Known| known.modified == modified && known.bytes == bytes && modified.is_some();
    if !known.get(file).is_some_and(fresh) {
        // A panic is ignored here. The user sees it when the file is opened.
        let symbols = catch_unwind(AssertUnwindSafe(|| read(file, encoding))).ok().flatten().unwrap_or_default();
        known.insert(file.to_owned(), Known { modified, bytes, symbols });
    }
    known.get(file).map_or(&[], |known| &known.symbols)
}

/// Reads and parses a file. `None` if the file cannot be read or contains no TVMScript.
fn read(file: &Path, encoding: Encoding) -> Option<Vec<SymbolInformation>> {
    let text = String::from_utf8(std::fs::read(file).ok()?).ok()?;
    // A Python file without the word `tvm` cannot import TVMScript's names, so it is skipped without parsing.
    if FileKind::of_path(file) == FileKind::Python && !text.contains("tvm") {
        return None;
    }
    let uri = Uri::from_file_path(file)?;
    let mut workspace = Workspace::new();
    let id = workspace.add(&text, FileKind::of_path(file));
    Some(to_proto::file_symbols(&workspace.view(id)?, &uri, encoding))
}

/// The files of a folder that its settings select: the source files, or those that `include` matches, without those
/// that `exclude` matches.
struct Listing<'a> {
    projects: Projects,
    files: Vec<PathBuf>,
    reply: &'a oneshot::Sender<Vec<SymbolInformation>>,
}

impl Visit for Listing<'_> {
    type Project = Project;

    fn project(&mut self, folder: &Path) -> Option<Arc<Project>> {
        // A settings file with errors counts as empty. The user sees its errors when a document is opened.
        Some(self.projects.of_folder(folder).unwrap_or_default())
    }

    fn file(&mut self, path: PathBuf) {
        let project = self.projects.of_file(&path).unwrap_or_default();
        if project.file.settings.takes(&path, is_source(&path)) {
            self.files.push(path);
        }
    }

    fn unreadable(&mut self, _: &Path, _: &io::Error) {}

    fn goes_on(&self) -> bool {
        self.files.len() < MAX_FILES && !self.reply.is_closed()
    }
}
