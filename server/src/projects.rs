//! Which `rx.toml` speaks of a document: the nearest in its folder or above, as on the command line.
//!
//! What is read is read from disk, when a document is opened and when the client says that a settings file changed. While
//! one is wrong, what it last said holds, and the user is told once.

use crate::lsp::{Uri, from_proto};
use rx_base::{Diagnostic, Span};
use rx_db::{Project, Projects};
use rx_settings::{Choice, FILE_NAME, Finder, Severities};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is said of one document; the default is what holds where there is no settings file.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// By its settings file.
    pub project: Arc<Project>,
    /// What becomes of each code in it.
    pub severities: Option<Severities>,
}

impl Said {
    fn new(project: Arc<Project>, file: &Path, choice: &Choice) -> Said {
        let severities = Some(project.file.settings.severities(file, choice));
        Said { project, severities }
    }

    /// The diagnostics that are shown, each as serious as it is to be.
    pub fn apply(&self, found: Vec<Diagnostic<Span>>) -> Vec<Diagnostic<Span>> {
        match &self.severities {
            Some(severities) => severities.apply(found),
            None => found,
        }
    }
}

/// What was read of settings files so far.
#[derive(Default)]
pub struct Known {
    /// What each said when it was last right.
    good: HashMap<PathBuf, Arc<Project>>,
    /// What the user was told of each that is wrong.
    told: HashMap<PathBuf, String>,
    /// Codes chosen by the client's settings.
    choice: Choice,
    complaints: Vec<String>,
}

impl Known {
    /// Codes that the client's settings choose, which go before every file. False: they are chosen already.
    pub fn choose(&mut self, choice: Choice) -> bool {
        let new = self.choice != choice;
        self.choice = choice;
        new
    }

    /// A fresh look at the settings files, for several documents.
    pub fn look() -> Projects {
        Projects::new(Finder::nearest())
    }

    /// What is said of a document. One that is in no file has no settings file.
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

    /// What the user has to be told; each is told once.
    pub fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    fn or_last_good(&mut self, project: Arc<Project>) -> Arc<Project> {
        let Some(path) = project.file.path.clone() else { return project };
        let Some(first) = project.file.mistakes.first() else {
            self.told.remove(&path);
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

    /// What holds while a settings file is wrong.
    fn wrong(&mut self, path: PathBuf, why: String) -> Arc<Project> {
        let good = self.good.get(&path).cloned();
        let holds = match good {
            Some(_) => "what it said before holds".to_owned(),
            None => format!("files are checked as without {FILE_NAME}"),
        };
        if self.told.get(&path) != Some(&why) {
            self.complaints.push(format!("{why}; until it is mended, {holds}"));
            self.told.insert(path, why);
        }
        good.unwrap_or_default()
    }
}
