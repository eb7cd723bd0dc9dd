//! The settings file of each document: the nearest `rx.toml` in the document's folder or above it, as on the command
//! line.
//!
//! Files are read from disk when a document is opened and when the client reports that a settings file changed. While a
//! file has errors, its last valid settings apply, and each error is shown to the user once.

use crate::lsp::{Uri, from_proto};
use rx_base::{Diagnostic, Span};
use rx_db::{Project, Projects};
use rx_settings::{Choice, FILE_NAME, Finder, Severities};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The settings that apply to one document. The default is for documents without a settings file.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The settings file and the operators that it declares.
    pub project: Arc<Project>,
    /// The severity of each diagnostic code in this document.
    pub severities: Option<Severities>,
}

impl Said {
    fn new(project: Arc<Project>, file: &Path, choice: &Choice) -> Said {
        let severities = Some(project.file.settings.severities(file, choice));
        Said { project, severities }
    }

    /// Removes the diagnostics that the settings turn off and sets the severity of the others.
    pub fn apply(&self, found: Vec<Diagnostic<Span>>) -> Vec<Diagnostic<Span>> {
        match &self.severities {
            Some(severities) => severities.apply(found),
            None => found,
        }
    }
}

/// The settings files that were read so far.
#[derive(Default)]
pub struct Known {
    /// The last valid content of each settings file.
    good: HashMap<PathBuf, Arc<Project>>,
    /// For each settings file with errors, the error that the user has seen.
    reported: HashMap<PathBuf, String>,
    /// Diagnostic codes that the client's settings select.
    choice: Choice,
    complaints: Vec<String>,
}

impl Known {
    /// Sets the diagnostic codes that the client's settings select. They take precedence over every settings file.
    /// Returns `false` if nothing changes.
    pub fn choose(&mut self, choice: Choice) -> bool {
        let new = self.choice != choice;
        self.choice = choice;
        new
    }

    /// Returns an empty cache of settings files, to be shared by the lookups of several documents. It reads each file
    /// once.
    pub fn look() -> Projects {
        Projects::new(Finder::nearest())
    }

    /// Returns the settings of a document. A document that is not a file on disk has no settings file.
    pub fn of(&mut self, uri: &Uri, look: &mut Projects) -> Said {
        let Some(path) = from_proto::path(uri) else {
            return Said::new(Arc::default(), Path::new(uri.path().as_str()), &self.choice);
        };
        let project = match look.of_file(&path) {
            Ok(project) => self.or_last_good(project),
            Err(unreadable) => {
                let message = format!("{}: {}", unreadable.path.display(), unreadable.error);
                self.wrong(unreadable.path, message)
            }
        };
        Said::new(project, &path, &self.choice)
    }

    /// Returns and clears the errors in settings files that the user has not seen yet.
    pub fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    fn or_last_good(&mut self, project: Arc<Project>) -> Arc<Project> {
        let Some(path) = project.file.path.clone() else { return project };
        let Some(first) = project.file.mistakes.first() else {
            self.reported.remove(&path);
            self.good.insert(path, project.clone());
            return project;
        };
        let before = project.file.text.get(..first.primary.start as usize).unwrap_or_default();
        let more = match project.file.mistakes.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let line = before.matches('\n').count() + 1;
        self.wrong(path.clone(), format!("{}:{line}: {}{more}", path.display(), first.message))
    }

    /// Returns the settings to use for a file with errors: the last valid ones, or the default. Reports the error `why`
    /// to the user unless it was already reported.
    fn wrong(&mut self, path: PathBuf, why: String) -> Arc<Project> {
        let good = self.good.get(&path).cloned();
        let holds = match good {
            Some(_) => "the previous settings apply".to_owned(),
            None => format!("files are checked without {FILE_NAME}"),
        };
        if self.reported.get(&path) != Some(&why) {
            self.complaints.push(format!("{why}; until it is fixed, {holds}"));
            self.reported.insert(path, why);
        }
        good.unwrap_or_default()
    }
}
