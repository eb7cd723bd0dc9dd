//! The files below a folder that rx reads.

use crate::project::Project;
use rx_syntax::document::FileKind;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders never searched.
const PASSED_OVER: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// What is done with what a [`walk`] comes to.
pub trait Visit {
    /// What speaks of the files in a folder; `None`: it is not to be looked into.
    fn project(&mut self, folder: &Path) -> Option<Arc<Project>>;

    /// A file worth a look.
    fn file(&mut self, path: PathBuf);

    /// Something is passed over because rx.toml says so.
    fn excluded(&mut self) {}

    /// A folder that cannot be looked into.
    fn unreadable(&mut self, folder: &Path, error: &io::Error);

    /// Whether the walk is still wanted.
    fn goes_on(&self) -> bool {
        true
    }
}

/// Visits the files below `root` in the order of their names: `.rx` and `.py`, or all where the project includes others.
pub fn walk(root: &Path, visit: &mut impl Visit) {
    // An explicit stack: folders may nest deeper than the program's.
    let mut pending = vec![root.to_owned()];
    while let Some(path) = pending.pop() {
        if !visit.goes_on() {
            return;
        }
        if !path.is_dir() {
            visit.file(path);
            continue;
        }
        let Some(project) = visit.project(&path) else { continue };
        let settings = &project.file.settings;
        if path != root && settings.excludes(&path) {
            visit.excluded();
            continue;
        }
        // Children go on the stack in reverse, so that they come off it sorted.
        match children(&path, settings.include.is_some()) {
            Ok(children) => pending.extend(children.into_iter().rev()),
            Err(error) => visit.unreadable(&path, &error),
        }
    }
}

/// What is worth a look in one folder: subfolders that are no links, and regular files (links to them too) of Relax text
/// or Python, or of `any` name; sorted by name.
fn children(folder: &Path, any: bool) -> io::Result<Vec<PathBuf>> {
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
            (any || is_source(&path)) && path.is_file()
        };
        if wanted && !name.starts_with('.') {
            children.push(path);
        }
    }
    children.sort();
    Ok(children)
}

/// Whether the name is that of Relax text or of Python.
pub fn is_source(path: &Path) -> bool {
    matches!(extension(path), Some("rx" | "py"))
}

/// `.py` is Python, everything else plain Relax text.
pub fn kind_of(path: &Path) -> FileKind {
    if extension(path) == Some("py") { FileKind::Python } else { FileKind::Rx }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}
