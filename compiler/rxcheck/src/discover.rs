//! Finds the files to check.

use crate::args::Args;
use crate::output::Failure;
use rx_db::{FileKind, Project, Projects};
use rx_report::load::Place;
use rx_settings::Settings;
use rx_settings::files::{Visit, is_notebook, is_source, walk};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An input to check.
#[derive(Clone, Debug)]
pub struct Input {
    /// The path as shown to users.
    pub shown: String,
    /// The source of the text.
    pub place: Place,
    /// How the text is parsed.
    pub kind: FileKind,
    /// Whether it was named on the command line, not found in a folder.
    pub named: bool,
    /// The settings and declarations that apply to it.
    pub project: Arc<Project>,
}

impl Input {
    /// The path that the patterns of settings are matched with.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::Stdin => Path::new(&self.shown),
            Place::File(path) => path,
        }
    }

    /// Whether it is a Jupyter notebook.
    pub fn is_notebook(&self) -> bool {
        is_notebook(self.path())
    }

    /// The settings of rx.toml.
    pub fn settings(&self) -> &Settings {
        &self.project.file.settings
    }
}

/// The result of resolving the paths of the command line.
#[derive(Default)]
pub struct Found {
    /// The inputs, each once: in the order of the command line, sorted within a folder.
    pub inputs: Vec<Input>,
    /// Paths that could not be read.
    pub failures: Vec<Failure>,
    /// Settings files with mistakes; the files that they apply to are not among the inputs.
    pub mistaken: Vec<Arc<Project>>,
    /// Whether something was skipped because rx.toml excludes it.
    pub excluded: bool,
}

/// Finds the inputs that `paths` name, with the settings of each.
pub fn discover(args: &Args, paths: &[PathBuf]) -> Found {
    let projects = match args.projects() {
        Ok(projects) => projects,
        Err(unreadable) => {
            return Found { failures: vec![Failure::new(&unreadable.path, &unreadable.error)], ..Found::default() };
        }
    };
    let mut search =
        Search { projects, force_exclude: args.force_exclude, found: Found::default(), seen: HashSet::new() };
    for path in paths {
        if path.as_os_str() == "-" {
            search.add(args.stdin_name.clone(), Place::Stdin, true);
        } else if path.is_dir() {
            walk(path, &mut search);
        } else {
            search.one(path.clone(), true);
        }
    }
    search.found
}

struct Search {
    projects: Projects,
    force_exclude: bool,
    found: Found,
    /// Files that were already added; `None` is standard input.
    seen: HashSet<Option<PathBuf>>,
}

impl Search {
    /// Adds an input, unless it was seen, is excluded, or its settings have mistakes.
    fn add(&mut self, shown: String, place: Place, named: bool) {
        let (key, path) = match &place {
            Place::Stdin => (None, PathBuf::from(&shown)),
            Place::File(path) => (Some(path.clone()), path.clone()),
        };
        if !self.seen.insert(key) {
            return;
        }
        let Some(project) = self.project(path.parent().unwrap_or(Path::new(""))) else { return };
        let settings = &project.file.settings;
        let taken = match named {
            true => !(self.force_exclude && settings.excludes(&path)),
            false => settings.takes(&path, self.is_wanted(&path)),
        };
        if taken {
            self.found.inputs.push(Input { shown, place, kind: FileKind::of_path(&path), named, project });
        } else {
            self.found.excluded = true;
        }
    }

    fn one(&mut self, path: PathBuf, named: bool) {
        // `./a.rx` and `a.rx` are the same file; `./-` is a file, not standard input.
        let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
        self.add(path.to_string_lossy().into_owned(), Place::File(path), named);
    }
}

impl Visit for Search {
    type Project = Project;

    fn file(&mut self, path: PathBuf) {
        self.one(path, false);
    }

    fn excluded(&mut self) {
        self.found.excluded = true;
    }

    fn is_wanted(&self, file: &Path) -> bool {
        is_source(file) || is_notebook(file)
    }

    fn unreadable(&mut self, folder: &Path, error: &io::Error) {
        self.found.failures.push(Failure::new(folder, error));
    }

    /// Returns the settings for a folder, or `None` if they have mistakes or cannot be read, which is reported once.
    fn project(&mut self, folder: &Path) -> Option<Arc<Project>> {
        match self.projects.of_folder(folder) {
            Ok(project) if !project.is_wrong() => Some(project),
            Ok(project) => {
                if !self.found.mistaken.iter().any(|known| Arc::ptr_eq(known, &project)) {
                    self.found.mistaken.push(project);
                }
                None
            }
            Err(unreadable) => {
                let failure = Failure::new(&unreadable.path, &unreadable.error);
                if !self.found.failures.contains(&failure) {
                    self.found.failures.push(failure);
                }
                None
            }
        }
    }
}
