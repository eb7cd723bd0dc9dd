//! Which files are meant.

use crate::output::Failure;
use rx_db::FileKind;
use rx_report::load::Place;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

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
}

/// The inputs meant by `paths`, each once, in the order named and sorted within a folder; and what could not be looked at.
pub fn discover(paths: &[PathBuf], stdin_name: &str) -> (Vec<Input>, Vec<Failure>) {
    let mut found = Found::default();
    for path in paths {
        if path.as_os_str() == "-" {
            found.push(Input {
                shown: stdin_name.to_owned(),
                place: Place::Stdin,
                kind: kind_of(Path::new(stdin_name)),
                named: true,
            });
        } else if path.is_dir() {
            found.folder(path);
        } else {
            found.file(path.clone(), true);
        }
    }
    (found.inputs, found.failures)
}

#[derive(Default)]
struct Found {
    inputs: Vec<Input>,
    failures: Vec<Failure>,
    /// Files already among the inputs; `None` is standard input.
    seen: HashSet<Option<PathBuf>>,
}

impl Found {
    fn push(&mut self, input: Input) {
        let key = match &input.place {
            Place::Stdin => None,
            Place::File(path) => Some(path.clone()),
        };
        if self.seen.insert(key) {
            self.inputs.push(input);
        }
    }

    fn file(&mut self, path: PathBuf, named: bool) {
        // `./a.rx` and `a.rx` are one file, and `-` behind `./` is no standard input.
        let path = path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
        let (shown, kind) = (path.to_string_lossy().into_owned(), kind_of(&path));
        self.push(Input { shown, place: Place::File(path), kind, named });
    }

    /// The files below `root`, by an explicit stack: folders may nest deeper than the program's.
    fn folder(&mut self, root: &Path) {
        let mut pending = vec![root.to_owned()];
        while let Some(path) = pending.pop() {
            if path.is_dir() {
                // Children go on the stack in reverse, so that they come off it sorted.
                match children(&path) {
                    Ok(children) => pending.extend(children.into_iter().rev()),
                    Err(error) => self.failures.push(Failure::new(&path, &error)),
                }
            } else {
                self.file(path, false);
            }
        }
    }
}

/// What is worth a look in one folder: subfolders that are no links, and regular files (links to them too) of Relax text
/// or Python; sorted by name.
fn children(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
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
            matches!(extension(&path), Some("rx" | "py")) && path.is_file()
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
