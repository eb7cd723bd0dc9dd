//! Which files are meant.

use crate::args::Args;
use crate::output::Failure;
use rx_db::{FileKind, Operators};
use rx_report::load::Place;
use rx_settings::{Finder, SettingsFile};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders never searched.
const PASSED_OVER: [&str; 3] = ["target", "node_modules", "__pycache__"];

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
    pub settings: Arc<SettingsFile>,
    /// The operators that it declares.
    pub operators: Arc<Operators>,
}

impl Input {
    /// The path that settings go by.
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::Stdin => Path::new(&self.shown),
            Place::File(path) => path,
        }
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
    pub mistaken: Vec<Arc<SettingsFile>>,
    /// Whether something was passed over because rx.toml says so.
    pub excluded: bool,
}

/// Looks for what `paths` name, with the settings that `finder` finds.
pub fn discover(args: &Args, paths: &[PathBuf], finder: &mut Finder) -> Found {
    let mut search = Search {
        finder,
        force_exclude: args.force_exclude,
        found: Found::default(),
        seen: HashSet::new(),
        declared: Vec::new(),
    };
    for path in paths {
        if path.as_os_str() == "-" {
            search.add(args.stdin_name.clone(), Place::Stdin, true);
        } else if path.is_dir() {
            search.folder(path);
        } else {
            search.file(path.clone(), true);
        }
    }
    search.found
}

struct Search<'f> {
    finder: &'f mut Finder,
    force_exclude: bool,
    found: Found,
    /// Files already looked at; `None` is standard input.
    seen: HashSet<Option<PathBuf>>,
    /// The operators of the settings files read so far; none where a declaration is wrong.
    declared: Vec<(Arc<SettingsFile>, Option<Arc<Operators>>)>,
}

impl Search<'_> {
    /// Adds an input, unless it was seen, is passed over, or its settings are wrong.
    fn add(&mut self, shown: String, place: Place, named: bool) {
        let (key, path) = match &place {
            Place::Stdin => (None, PathBuf::from(&shown)),
            Place::File(path) => (Some(path.clone()), path.clone()),
        };
        if !self.seen.insert(key) {
            return;
        }
        let Some((settings, operators)) = self.settings(path.parent().unwrap_or(Path::new(""))) else { return };
        let taken = match named {
            true => !(self.force_exclude && settings.settings.excludes(&path)),
            false => settings.settings.takes(&path, matches!(extension(&path), Some("rx" | "py"))),
        };
        if taken {
            self.found.inputs.push(Input { shown, place, kind: kind_of(&path), named, settings, operators });
        } else {
            self.found.excluded = true;
        }
    }

    fn file(&mut self, path: PathBuf, named: bool) {
        // `./a.rx` and `a.rx` are one file, and `-` behind `./` is no standard input.
        let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
        self.add(path.to_string_lossy().into_owned(), Place::File(path), named);
    }

    /// The settings of the files in a folder; none when they are wrong or unreadable, which is said once.
    fn settings(&mut self, folder: &Path) -> Option<(Arc<SettingsFile>, Arc<Operators>)> {
        match self.finder.of_folder(folder) {
            Ok(settings) if settings.mistakes.is_empty() => {
                let operators = self.operators(&settings)?;
                Some((settings, operators))
            }
            Ok(settings) => {
                if !self.found.mistaken.iter().any(|known| Arc::ptr_eq(known, &settings)) {
                    self.found.mistaken.push(settings);
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

    /// The operators that a settings file declares; none when a declaration is wrong, which is said once.
    fn operators(&mut self, settings: &Arc<SettingsFile>) -> Option<Arc<Operators>> {
        if let Some((_, known)) = self.declared.iter().find(|(known, _)| Arc::ptr_eq(known, settings)) {
            return known.clone();
        }
        let (operators, mistakes) = rx_db::declared_operators(&settings.settings.ops);
        let operators = mistakes.is_empty().then(|| Arc::new(operators));
        if operators.is_none() {
            self.found.mistaken.push(Arc::new(SettingsFile { mistakes, ..SettingsFile::clone(settings) }));
        }
        self.declared.push((settings.clone(), operators.clone()));
        operators
    }

    /// The files below `root`, by an explicit stack: folders may nest deeper than the program's.
    fn folder(&mut self, root: &Path) {
        let mut pending = vec![root.to_owned()];
        while let Some(path) = pending.pop() {
            if !path.is_dir() {
                self.file(path, false);
                continue;
            }
            let Some((settings, _)) = self.settings(&path) else { continue };
            if path != root && settings.settings.excludes(&path) {
                self.found.excluded = true;
                continue;
            }
            // Children go on the stack in reverse, so that they come off it sorted.
            match children(&path, settings.settings.include.is_some()) {
                Ok(children) => pending.extend(children.into_iter().rev()),
                Err(error) => self.found.failures.push(Failure::new(&path, &error)),
            }
        }
    }
}

/// What is worth a look in one folder: subfolders that are no links, and regular files (links to them too) of Relax text
/// or Python, or of `any` name; sorted by name.
fn children(folder: &Path, any: bool) -> std::io::Result<Vec<PathBuf>> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = entry.path();
        // A file that vanished meanwhile is no mistake of the user's.
        let Ok(kind) = entry.file_type() else { continue };
        let wanted = if kind.is_dir() {
            !PASSED_OVER.contains(&&*name)
        } else {
            // A pipe or device of that name would block; a link to a folder may lead round in a circle.
            (any || matches!(extension(&path), Some("rx" | "py"))) && path.is_file()
        };
        if wanted && !name.starts_with('.') {
            children.push(path);
        }
    }
    children.sort();
    Ok(children)
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// `.py` is Python, everything else plain Relax text.
fn kind_of(path: &Path) -> FileKind {
    if extension(path) == Some("py") { FileKind::Python } else { FileKind::Rx }
}
