//! Which files are meant.

use crate::args::Args;
use crate::output::Failure;
use rx_db::{FileKind, Project, Projects};
use rx_report::load::Place;
use rx_settings::Settings;
use rx_settings::files::{Visit, is_source, walk};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A text to check.
#[derive(Clone, Debug)]
pub struct Input {
    /// The path as people see it.
    pub shown: String,
    /// Where the text is read from.
    pub place: Place,
    /// How it is read.
    pub kind: FileKind,
    /// Named on the command line, not found in a folder.
    pub named: bool,
    /// What rx.toml says of it.
    pub project: Arc<Project>,
}

impl Input {
    /// The path that settings go by.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::Stdin => Path::new(&self.shown),
            Place::File(path) => path,
        }
    }

    /// The settings of rx.toml.
    pub fn settings(&self) -> &Settings {
        &self.project.file.settings
    }
}

/// What is meant by the paths of the command line.
#[derive(Default)]
pub struct Found {
    /// The inputs, each once, in the order named and sorted within a folder.
    pub inputs: Vec<Input>,
    /// What could not be looked at.
    pub failures: Vec<Failure>,
    /// Settings files that are wrong; the files they speak of are not among the inputs.
    pub mistaken: Vec<Arc<Project>>,
    /// Whether something was passed over because rx.toml says so.
    pub excluded: bool,
}

/// Looks for what `paths` name, with what the settings files say of it.
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
    /// Files already looked at; `None` is standard input.
    seen: HashSet<Option<PathBuf>>,
}

impl Search {
    /// Adds an input, unless it was seen, is passed over, or its settings are wrong.
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
            false => settings.takes(&path, is_source(&path)),
        };
        if taken {
            self.found.inputs.push(Input { shown, place, kind: FileKind::of_path(&path), named, project });
        } else {
            self.found.excluded = true;
        }
    }

    fn one(&mut self, path: PathBuf, named: bool) {
        // `./a.rx` and `a.rx` are one file, and `-` behind `./` is no standard input.
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

    fn unreadable(&mut self, folder: &Path, error: &io::Error) {
        self.found.failures.push(Failure::new(folder, error));
    }

    /// What speaks of the files in a folder; none when it is wrong or unreadable, which is said once.
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
