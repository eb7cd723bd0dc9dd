//! The search for the files to format: files named on the command line, and those in the folders named there.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rx_settings::files::{Visit, is_notebook, is_source, walk};
use rx_settings::{Finder, SettingsFile, Unreadable};

/// The files to format, and the folders and settings files that could not be read.
#[derive(Default)]
pub struct Found {
    /// Names of files, each once, in the order of the command line and sorted within a folder; `-` is standard input.
    /// For example, if the current folder has `a.rx` and `nets/b.rx`, the arguments `nets .` give `nets/b.rx`, `a.rx`.
    pub files: Vec<String>,
    /// One line for each mistake in an `rx.toml`, and for each folder or `rx.toml` that cannot be read.
    pub problems: Vec<String>,
}

/// Finds the files to format for the `names` of the command line: folders are searched as `rxcheck` searches them,
/// other names are files.
pub fn discover(names: &[String]) -> Found {
    let mut search = Search { finder: Finder::nearest(), found: Found::default(), seen: HashSet::new() };
    for name in names {
        if name != "-" && Path::new(name).is_dir() {
            walk(Path::new(name), &mut search);
        } else {
            search.add(name.clone());
        }
    }
    search.found
}

struct Search {
    finder: Finder,
    found: Found,
    /// The names in `found.files`.
    seen: HashSet<String>,
}

impl Search {
    fn add(&mut self, file: String) {
        if self.seen.insert(file.clone()) {
            self.found.files.push(file);
        }
    }

    fn problem(&mut self, problem: String) {
        if !self.found.problems.contains(&problem) {
            self.found.problems.push(problem);
        }
    }
}

impl Visit for Search {
    type Project = SettingsFile;

    /// The settings for `folder`; `None` where its `rx.toml` has mistakes, so that no excluded file is rewritten.
    fn project(&mut self, folder: &Path) -> Option<Arc<SettingsFile>> {
        match self.finder.of_folder(folder) {
            Ok(settings) => {
                mistakes(&settings).into_iter().for_each(|mistake| self.problem(mistake));
                settings.mistakes.is_empty().then_some(settings)
            }
            Err(Unreadable { path, error }) => {
                self.problem(format!("{}: {error}", path.display()));
                None
            }
        }
    }

    fn file(&mut self, path: PathBuf) {
        // Notebooks are formatted only if they are named, even if an `include` matches them.
        if is_notebook(&path) {
            return;
        }
        let Some(file) = self.project(path.parent().unwrap_or(Path::new(""))) else { return };
        if file.settings.takes(&path, is_source(&path)) {
            let path = path.strip_prefix(".").unwrap_or(&path);
            self.add(path.to_string_lossy().into_owned());
        }
    }

    fn unreadable(&mut self, folder: &Path, error: &io::Error) {
        self.problem(format!("{}: {error}", folder.display()));
    }
}

/// The mistakes of a settings file, one line each.
fn mistakes(file: &SettingsFile) -> Vec<String> {
    let path = file.path.as_deref().unwrap_or(Path::new(rx_settings::FILE_NAME)).to_string_lossy();
    let source = rx_report::Source::new(&path, &file.text);
    file.mistakes.iter().map(|mistake| rx_report::concise(&source, mistake, false)).collect()
}
