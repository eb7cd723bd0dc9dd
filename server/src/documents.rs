//! The open documents and the database that holds their texts.
//!
//! A panic inside the database must not end the user's session. Every call into the database is therefore caught here,
//! and after a panic the database is rebuilt from the texts. The file that caused the panic may be checkable again
//! after the next edit.

mod notebooks;

use crate::lsp::semantic::Sent;
use crate::lsp::{Change, Point, Profile, Uri, to_proto};
use crate::notebooks::Notebook;
use crate::projects::{Known, Said};
use crate::reads::Asked;
use crate::run::stage::{Stage, Subject, function_at};
use rx_base::{Diagnostic, Span};
use rx_db::{Encoding, FileId, FileKind, JoinedEdit, Snapshot, Workspace};
use rx_settings::Choice;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// The maximal length of a text in bytes; longer texts are not checked. Offsets have 32 bits, and clients fail on such
/// texts long before this limit.
pub const MAX_BYTES: usize = 1 << 30;

/// The length of closed texts in bytes from which their memory is given back while other documents are open. A text and
/// the results of its check take about ten times its length.
const MANY_BYTES: usize = 4 << 20;

const TOO_LARGE: &str = "rx does not check files larger than 1 GiB";
const LOST: &str = "rx lost track of this file after an internal error; close and open it again";
const NOT_OPEN: &str = "this document is not open";
const CRASHED: &str = "rx failed on this text; this is a bug in rx, please report it";

/// The open documents, the database with their texts, and the settings that apply to them.
#[derive(Default)]
pub struct Documents {
    workspace: Workspace,
    open: HashMap<Uri, Open>,
    /// The open notebooks. The joined text of each is an open document with the same URI.
    notebooks: HashMap<Uri, Notebook>,
    /// The notebook of each cell.
    owners: HashMap<Uri, Uri>,
    settings: Known,
    /// A counter of versions of texts and settings. Its values identify the diagnostics of each document.
    states: u64,
    /// Internal errors since the last [`Documents::take_log`].
    log: Vec<String>,
    /// The length of the texts that were closed since the last [`Documents::take_closed_bytes`].
    closed_bytes: usize,
}

/// One open document.
struct Open {
    text: Text,
    kind: FileKind,
    version: i32,
    /// The number of its current text and settings. It is the `resultId` of pulled diagnostics.
    state: u64,
    /// The number of its current text.
    text_number: u64,
    /// Errors of lowering this text that were found so far.
    not_lowered: Vec<Diagnostic<Span>>,
    /// The settings that apply to it.
    said: Said,
    /// The semantic tokens that the client has, for the next delta.
    sent: Arc<Mutex<Option<Sent>>>,
}

/// The place of a document's text.
#[derive(Clone, Copy)]
enum Text {
    /// The text is in the database.
    Known(FileId),
    /// The text is not known. The reason is shown instead of diagnostics.
    Unknown(&'static str),
}

impl Documents {
    /// Adds a document and reads its settings file. A document that is already open is replaced.
    pub fn open(&mut self, uri: Uri, kind: FileKind, version: i32, text: &str) {
        let said = self.settings.of(&uri, &mut Known::look());
        self.open_with(uri, kind, version, text, said);
    }

    fn open_with(&mut self, uri: Uri, kind: FileKind, version: i32, text: &str, said: Said) {
        self.close(&uri);
        let text = if text.len() > MAX_BYTES {
            Text::Unknown(TOO_LARGE)
        } else {
            match catch(|| add(&mut self.workspace, text, kind, &said)) {
                Some(file) => Text::Known(file),
                None => {
                    self.rebuild(&uri);
                    Text::Unknown(CRASHED)
                }
            }
        };
        self.states += 1;
        let (state, not_lowered, sent) = (self.states, Vec::new(), Arc::default());
        self.open.insert(uri, Open { text, kind, version, state, text_number: state, not_lowered, said, sent });
    }

    /// Reads the settings files of all documents again.
    pub fn read_settings(&mut self) {
        let mut look = Known::look();
        let mut failed = None;
        for (uri, open) in &mut self.open {
            open.said = self.settings.of(uri, &mut look);
            if let Text::Known(file) = open.text
                && catch(|| configure(&mut self.workspace, file, &open.said)).is_none()
            {
                failed = Some(uri.clone());
            }
        }
        failed.into_iter().for_each(|uri| self.rebuild(&uri));
    }

    /// Sets the diagnostic codes that the client's settings select. Returns `false` if nothing changes.
    pub fn choose(&mut self, choice: Choice) -> bool {
        let new = self.settings.choose(choice);
        if new {
            self.read_settings();
        }
        new
    }

    /// Returns the URIs of the open documents.
    pub fn uris(&self) -> impl Iterator<Item = &Uri> {
        self.open.keys()
    }

    /// Returns the errors in settings files that the user has not seen yet.
    pub fn take_complaints(&mut self) -> Vec<String> {
        self.settings.take_complaints()
    }

    /// Applies the changes in order. Returns `false` if the document is not open.
    pub fn change(&mut self, uri: &Uri, version: i32, changes: &[Change], profile: &Profile) -> bool {
        let Some(open) = self.open.get_mut(uri) else { return false };
        open.version = version;
        self.states += 1;
        (open.state, open.text_number) = (self.states, self.states);
        open.not_lowered.clear();
        let mut rest = changes;
        while !rest.is_empty() {
            rest = rest.get(self.apply(uri, rest, profile)..).unwrap_or_default();
        }
        true
    }

    /// Removes a document. Returns `false` if the document is not open.
    pub fn close(&mut self, uri: &Uri) -> bool {
        let Some(open) = self.open.remove(uri) else { return false };
        if let Text::Known(file) = open.text {
            self.closed_bytes = self.closed_bytes.saturating_add(self.workspace.document(file).len());
            if catch(|| self.workspace.remove(file)).is_none() {
                self.rebuild(uri);
            }
        }
        true
    }

    /// Returns and clears the length in bytes of the texts that were closed since the last call, once their memory is
    /// worth giving back: if they are long, or if no document is open any more. 0 otherwise.
    pub fn take_closed_bytes(&mut self) -> usize {
        if self.closed_bytes < MANY_BYTES && !self.open.is_empty() {
            return 0;
        }
        std::mem::take(&mut self.closed_bytes)
    }

    /// Returns a document's URI, version and diagnostics; of a notebook, or of one of its cells, those of every cell.
    /// Empty if the document is not open.
    pub fn reports(&mut self, uri: &Uri, profile: &Profile) -> Vec<(Uri, i32, to_proto::Diagnostics)> {
        let uri = &self.owner(uri).clone();
        let Some(version) = self.open.get(uri).map(|open| open.version) else { return Vec::new() };
        let first = self.check(uri, profile);
        let found = first.or_else(|| {
            self.rebuild(uri);
            self.check(uri, profile)
        });
        let found = found.unwrap_or_else(|| to_proto::not_checked(CRASHED));
        let Some(notebook) = self.notebooks.get(uri) else {
            return vec![(uri.clone(), version, found.into_iter().map(|(_, diagnostic)| diagnostic).collect())];
        };
        let cells = notebook.layout().documents().iter();
        let mut reports: Vec<_> = cells.map(|(cell, version)| (cell.clone(), *version, Vec::new())).collect();
        for (index, diagnostic) in found {
            if let Some((.., report)) = reports.get_mut(index) {
                report.push(diagnostic);
            }
        }
        reports
    }

    /// Returns the `resultId` of a document's current diagnostics. It changes with the text and with the settings.
    /// `None` if the document is not open.
    pub fn statement_id(&self, uri: &Uri) -> Option<String> {
        self.open.get(self.owner(uri)).map(|open| open.state.to_string())
    }

    /// Changes the `resultId` of every document's diagnostics, so that clients pull them again.
    pub fn restate(&mut self) {
        for open in self.open.values_mut() {
            self.states += 1;
            open.state = self.states;
        }
    }

    /// Adds errors of lowering to the diagnostics of a text. Returns `false` if the document has another text by now,
    /// or if all the errors were already known.
    pub fn not_lowered(&mut self, uri: &Uri, text_number: u64, found: Vec<Diagnostic<Span>>) -> bool {
        let uri = &self.owner(uri).clone();
        let Some(open) = self.open.get_mut(uri).filter(|open| open.text_number == text_number) else { return false };
        let known = open.not_lowered.len();
        for diagnostic in found {
            if !open.not_lowered.contains(&diagnostic) {
                open.not_lowered.push(diagnostic);
            }
        }
        open.not_lowered.len() > known
    }

    /// Returns a snapshot of the database for a read, and the documents that the read covers: `uri`, or all if `None`.
    /// `None` if none of them is open with a known text.
    pub fn snapshot(&self, uri: Option<&Uri>) -> Option<(Snapshot, Vec<Asked>)> {
        let asked = |(uri, open): (&Uri, &Open)| match open.text {
            Text::Known(file) => Some(Asked {
                uri: uri.clone(),
                owner: self.owner(uri).clone(),
                file,
                cell: self.cell(uri),
                sent: Arc::clone(&open.sent),
                version: open.version,
                text_number: open.text_number,
                said: open.said.clone(),
            }),
            Text::Unknown(_) => None,
        };
        let documents: Vec<Asked> = match uri {
            Some(uri) => self.open.get(self.owner(uri)).and_then(|open| asked((uri, open))).into_iter().collect(),
            None => self.open.iter().filter_map(asked).collect(),
        };
        if documents.is_empty() {
            return None;
        }
        Some((catch(|| self.workspace.snapshot())?, documents))
    }

    /// Returns a document's text and its kind.
    ///
    /// # Errors
    /// The reason why there is no text: a sentence for the user.
    pub fn text(&self, uri: &Uri) -> Result<(String, FileKind), &'static str> {
        let open = self.open.get(self.owner(uri)).ok_or(NOT_OPEN)?;
        match open.text {
            Text::Known(file) => {
                let text = catch(|| self.workspace.document(file).text()).ok_or(CRASHED)?;
                Ok((text, open.kind))
            }
            Text::Unknown(why) => Err(why),
        }
    }

    /// Returns the function at a position, as the subject of a stage. For a stage of the whole module, any function of
    /// the module will do. `None` if there is no function, or the document is not open.
    pub fn subject(&self, uri: &Uri, at: Point, stage: Stage, encoding: Encoding) -> Option<Subject> {
        let Text::Known(file) = self.open.get(self.owner(uri))?.text else { return None };
        let cell = self.cell(uri);
        let at = cell.as_ref().map_or(at, |cell| cell.point(at));
        catch(|| {
            let document = self.workspace.document(file);
            let function = function_at(document, document.offset_of(at.line, at.column, encoding), stage)?;
            let modules = self.workspace.modules(file);
            let module = modules.iter().find(|row| row.module == function.module);
            Some(Subject {
                function: function.name.to_string(),
                module: module.map(|row| row.label.clone()),
                alone: modules.len() <= 1,
                document: document.clone(),
                encoding,
                cell,
            })
        })?
    }

    /// Returns and clears the internal errors since the last call, for the client's log.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Returns the diagnostics with the severities of the settings applied. `None` if the check panicked or the
    /// document is not open.
    fn check(&self, uri: &Uri, profile: &Profile) -> Option<to_proto::PlacedDiagnostics> {
        let open = self.open.get(uri)?;
        let layout = self.notebooks.get(uri).map(|notebook| &**notebook.layout());
        match open.text {
            Text::Unknown(why) => Some(to_proto::not_checked(why)),
            Text::Known(file) => catch(|| {
                let found = self.workspace.diagnostics(file).into_iter().chain(open.not_lowered.iter().cloned());
                let found = open.said.apply(found.collect());
                to_proto::placed_diagnostics(self.workspace.document(file), (uri, layout), &found, profile)
            }),
        }
    }

    fn mark(&mut self, uri: &Uri, text: Text) {
        if let Some(open) = self.open.get_mut(uri) {
            open.text = text;
        }
    }

    /// Applies the first of `changes`, together with the following ones that can be joined into the same edit. Returns
    /// the number of changes that were applied, at least one.
    fn apply(&mut self, uri: &Uri, changes: &[Change], profile: &Profile) -> usize {
        let Some((open, first)) = self.open.get(uri).zip(changes.first()) else { return changes.len().max(1) };
        let file = match (open.text, first.range) {
            (Text::Known(file), _) => file,
            // A change that replaces the whole text makes a lost document known again.
            (Text::Unknown(_), None) => {
                let (kind, version, said) = (open.kind, open.version, open.said.clone());
                self.open_with(uri.clone(), kind, version, &first.text, said);
                return 1;
            }
            (Text::Unknown(_), Some(_)) => return 1,
        };
        let Some(JoinedEdit { range, text, count }) = catch(|| self.join(file, changes, profile)).flatten() else {
            // Nothing was edited yet, but the positions of the change cannot be resolved, so the text is lost.
            self.mark(uri, Text::Unknown(LOST));
            self.rebuild(uri);
            return 1;
        };
        let before = self.workspace.document(file).len();
        let after = before.saturating_sub(range.len()).saturating_add(text.len());
        if after > MAX_BYTES {
            self.mark(uri, Text::Unknown(TOO_LARGE));
            if catch(|| self.workspace.remove(file)).is_none() {
                self.rebuild(uri);
            }
            return count;
        }
        if catch(|| self.workspace.edit(file, range.clone(), &text)).is_none() {
            let old = catch(|| self.workspace.document(file).text());
            self.replace(uri, old.and_then(|old| edited(old, &range, before, &text)));
        }
        count
    }

    /// Joins the first changes into one edit. For example, the letters of a word that is typed are joined into the
    /// insertion of the word. A change that replaces the whole text is a separate edit.
    fn join(&self, file: FileId, changes: &[Change], profile: &Profile) -> Option<JoinedEdit> {
        let document = self.workspace.document(file);
        let point = |point: Point| (point.line, point.column);
        let placed = changes.iter().map_while(|change| {
            let (start, end) = change.range?;
            Some((point(start), point(end), change.text.as_str()))
        });
        let whole = |change: &Change| JoinedEdit { range: 0..document.len(), text: change.text.clone(), count: 1 };
        document.join(placed, profile.encoding).or_else(|| changes.first().map(whole))
    }

    /// Rebuilds the database after a panic in an edit of `uri`, with `text` as that document's text. `None` means that
    /// the text is lost.
    fn replace(&mut self, uri: &Uri, text: Option<String>) {
        let Some((kind, said)) = self.open.get(uri).map(|open| (open.kind, open.said.clone())) else { return };
        self.mark(uri, Text::Unknown(LOST));
        self.rebuild(uri);
        let added = text.and_then(|text| catch(|| add(&mut self.workspace, &text, kind, &said)));
        self.mark(uri, added.map_or(Text::Unknown(LOST), Text::Known));
    }

    /// Rebuilds the database from the texts of the open documents, after a panic that concerned `uri`.
    fn rebuild(&mut self, uri: &Uri) {
        self.log.push(format!("internal error in {}: this is a bug in rx; its files are read again", uri.as_str()));
        let old = std::mem::take(&mut self.workspace);
        for open in self.open.values_mut() {
            let Text::Known(file) = open.text else { continue };
            let added = catch(|| add(&mut self.workspace, &old.document(file).text(), open.kind, &open.said));
            open.text = added.map_or(Text::Unknown(LOST), Text::Known);
        }
        // Dropping a database in an unknown state may panic again; that panic is ignored.
        let _ = catch(|| drop(old));
    }
}

/// Adds a text to the workspace and sets the TVM version and the declared operators of its settings.
pub fn add(workspace: &mut Workspace, text: &str, kind: FileKind, said: &Said) -> FileId {
    let file = workspace.add(text, kind);
    configure(workspace, file, said);
    file
}

fn configure(workspace: &mut Workspace, file: FileId, said: &Said) {
    workspace.set_tvm(file, said.project.file.settings.tvm_version);
    workspace.set_operators(file, said.project.operators.clone());
}

/// Returns `text` with `range` replaced by `new`, whether or not the edit was applied before the panic. `before` is the
/// length of the text before the edit, which distinguishes the two cases. `None` if `text` fits neither.
fn edited(mut text: String, range: &Range<usize>, before: usize, new: &str) -> Option<String> {
    let after = before.checked_sub(range.len())?.checked_add(new.len())?;
    if text.len() == after && text.get(range.start..).is_some_and(|rest| rest.starts_with(new)) {
        return Some(text);
    }
    let replaceable = text.len() == before && text.get(range.clone()).is_some();
    replaceable.then(|| {
        text.replace_range(range.clone(), new);
        text
    })
}

/// Runs `work` and returns its result; `None` if it panicked.
fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests {
    use super::{Documents, MANY_BYTES, edited};
    use crate::lsp::{Change, Point, Profile, Uri};
    use rx_db::FileKind;

    #[test]
    fn an_interrupted_edit_is_carried_out_once() {
        assert_eq!(edited("abcd".into(), &(1..3), 4, "xyz").as_deref(), Some("axyzd"));
        assert_eq!(edited("axyzd".into(), &(1..3), 4, "xyz").as_deref(), Some("axyzd"));
        assert_eq!(edited("ab".into(), &(1..3), 4, "xyz"), None);
    }

    #[test]
    fn changes_are_applied_in_order_and_clamped() {
        let uri: Uri = "file:///a.rx".parse().unwrap();
        let at = |line, column| Point { line, column };
        let change = |from, to, text: &str| Change { range: Some((from, to)), text: text.into() };
        let mut documents = Documents::default();
        documents.open(uri.clone(), FileKind::Rx, 1, "a\nb\n");
        let changes = [
            change(at(1, 0), at(1, 1), "bee"),
            change(at(1, 3), at(1, 3), "s"),
            change(at(9, 9), at(9, 9), "# end"),
            change(at(0, 1), at(0, 0), "\n"),
        ];
        assert!(documents.change(&uri, 2, &changes, &Profile::default()));
        let (snapshot, asked) = documents.snapshot(Some(&uri)).unwrap();
        assert_eq!(snapshot.document(asked[0].file).text(), "a\n\nbees\n# end");
        drop(snapshot);
        let whole = Change { range: None, text: "c".into() };
        documents.change(&uri, 3, &[whole], &Profile::default());
        let (snapshot, asked) = documents.snapshot(Some(&uri)).unwrap();
        assert_eq!(snapshot.document(asked[0].file).text(), "c");
    }

    #[test]
    fn closed_bytes_are_taken_once_they_are_many_or_nothing_is_open() {
        let [one, other]: [Uri; 2] = ["file:///a.rx", "file:///b.rx"].map(|uri| uri.parse().unwrap());
        let mut documents = Documents::default();
        documents.open(one.clone(), FileKind::Rx, 1, "a\n");
        documents.open(other.clone(), FileKind::Rx, 1, "b\n");
        documents.close(&one);
        assert_eq!(documents.take_closed_bytes(), 0);
        documents.close(&other);
        assert_eq!((documents.take_closed_bytes(), documents.take_closed_bytes()), (4, 0));
        let long = "# more\n".repeat(MANY_BYTES / 7 + 1);
        documents.open(one, FileKind::Rx, 1, "a\n");
        documents.open(other.clone(), FileKind::Rx, 1, &long);
        documents.close(&other);
        assert_eq!(documents.take_closed_bytes(), long.len());
    }

    #[test]
    fn an_unknown_document_is_no_error() {
        let uri: Uri = "file:///a.rx".parse().unwrap();
        let mut documents = Documents::default();
        assert!(!documents.change(&uri, 1, &[], &Profile::default()));
        assert!(!documents.close(&uri));
        assert!(documents.snapshot(Some(&uri)).is_none());
        assert!(documents.reports(&uri, &Profile::default()).is_empty());
    }
}
