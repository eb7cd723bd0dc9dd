//! What a project says of its files: an `rx.toml` with the operators it declares.

use rx_analysis::operators::declared_operators;
use rx_ops::user::Operators;
use rx_settings::{Finder, Settings, SettingsFile, Unreadable};
use std::path::Path;
use std::sync::Arc;

/// An `rx.toml` that was read whole; the default is what holds where there is none.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// The file; among its mistakes those of declared operators.
    pub file: SettingsFile,
    /// The operators it declares.
    pub operators: Arc<Operators>,
}

impl AsRef<Settings> for Project {
    fn as_ref(&self) -> &Settings {
        &self.file.settings
    }
}

impl Project {
    /// Reads the operators of a settings file.
    pub fn new(mut file: SettingsFile) -> Project {
        let (operators, mistakes) = declared_operators(&file.settings.ops);
        file.mistakes.extend(mistakes);
        file.mistakes.sort_by_key(|mistake| mistake.primary);
        Project { file, operators: Arc::new(operators) }
    }

    /// Whether something is wrong with the file, so that it does not count.
    pub fn is_wrong(&self) -> bool {
        !self.file.mistakes.is_empty()
    }
}

/// Finds what speaks of files. Each settings file is read once.
#[derive(Debug)]
pub struct Projects {
    finder: Finder,
    /// Settings files with what was made of each.
    read: Vec<(Arc<SettingsFile>, Arc<Project>)>,
}

impl Projects {
    /// Those of the settings files that `finder` finds.
    pub fn new(finder: Finder) -> Projects {
        Projects { finder, read: Vec::new() }
    }

    /// What speaks of the files in `folder`: the same value for the same settings file.
    ///
    /// # Errors
    /// When the settings file cannot be read.
    pub fn of_folder(&mut self, folder: &Path) -> Result<Arc<Project>, Unreadable> {
        let file = self.finder.of_folder(folder)?;
        if let Some((_, known)) = self.read.iter().find(|(known, _)| Arc::ptr_eq(known, &file)) {
            return Ok(known.clone());
        }
        let project = Arc::new(Project::new(SettingsFile::clone(&file)));
        self.read.push((file, project.clone()));
        Ok(project)
    }

    /// What speaks of a file.
    ///
    /// # Errors
    /// When the settings file cannot be read.
    pub fn of_file(&mut self, file: &Path) -> Result<Arc<Project>, Unreadable> {
        self.of_folder(file.parent().unwrap_or(Path::new("")))
    }
}

#[cfg(test)]
mod tests {
    use super::Project;
    use rx_settings::SettingsFile;
    use std::path::Path;

    #[test]
    fn mistakes_of_settings_and_of_operators_are_told_together() {
        let text = "[[ops]]\nname = \"my.op\"\nargs = []\nresult = \"R.Tensr\"\n\n[tvm]\nversion = 1\n";
        let (settings, mistakes) = rx_settings::read(text, Path::new("/"));
        let project = Project::new(SettingsFile { settings, mistakes, ..SettingsFile::default() });
        let lines = project.file.mistakes.iter().map(|it| text[..it.primary.start as usize].lines().count());
        assert_eq!(lines.collect::<Vec<_>>(), [4, 7]);
    }
}
