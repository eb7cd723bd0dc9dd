//! A project: an `rx.toml`, with the operators that it declares.

use rx_analysis::operators::declared_operators;
use rx_ops::user::Operators;
use rx_settings::{Finder, Settings, SettingsFile, Unreadable};
use std::path::Path;
use std::sync::Arc;

/// A parsed `rx.toml`. The default value holds for files without one.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// The settings file. Its mistakes include those of declared operators.
    pub file: SettingsFile,
    /// The declared operators.
    pub operators: Arc<Operators>,
}

impl AsRef<Settings> for Project {
    fn as_ref(&self) -> &Settings {
        &self.file.settings
    }
}

impl Project {
    /// Parses the operators that a settings file declares.
    pub fn new(mut file: SettingsFile) -> Project {
        let (operators, mistakes) = declared_operators(&file.settings.ops);
        file.mistakes.extend(mistakes);
        file.mistakes.sort_by_key(|mistake| mistake.primary);
        Project { file, operators: Arc::new(operators) }
    }

    /// Whether the file has mistakes and must not be used.
    pub fn is_wrong(&self) -> bool {
        !self.file.mistakes.is_empty()
    }
}

/// Finds the project of a file or folder. Each settings file is read once.
#[derive(Debug)]
pub struct Projects {
    finder: Finder,
    /// The settings files read so far, with their projects.
    read: Vec<(Arc<SettingsFile>, Arc<Project>)>,
}

impl Projects {
    /// Creates an empty cache over the settings files that `finder` finds.
    pub fn new(finder: Finder) -> Projects {
        Projects { finder, read: Vec::new() }
    }

    /// Returns the project of the files in `folder`; folders with the same settings file share one value.
    ///
    /// # Errors
    /// If the settings file cannot be read.
    pub fn of_folder(&mut self, folder: &Path) -> Result<Arc<Project>, Unreadable> {
        let file = self.finder.of_folder(folder)?;
        if let Some((_, known)) = self.read.iter().find(|(known, _)| Arc::ptr_eq(known, &file)) {
            return Ok(known.clone());
        }
        let project = Arc::new(Project::new(SettingsFile::clone(&file)));
        self.read.push((file, project.clone()));
        Ok(project)
    }

    /// Returns the project of a file.
    ///
    /// # Errors
    /// If the settings file cannot be read.
    pub fn of_file(&mut self, file: &Path) -> Result<Arc<Project>, Unreadable> {
        self.of_folder(file.parent().unwrap_or(Path::new("")))
    }
}
