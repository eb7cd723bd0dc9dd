//! The search for the files below a folder that rx reads. The crate `ignore` does not serve: which files
//! count is decided by each folder's `rx.toml`, not by `.gitignore`.

use crate::Settings;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders never searched.
const PASSED_OVER: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// The visitor of a [`walk`].
pub trait Visit {
    /// The project of a folder: an `rx.toml`, and whatever the program keeps with it.
    type Project: AsRef<Settings>;

    /// The project that holds for the files in `folder`; `None`: the folder is not searched.
    fn project(&mut self, folder: &Path) -> Option<Arc<Self::Project>>;

    /// A file of a name that the project includes. [`Settings::takes`] decides whether it is excluded.
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
        let settings: &Settings = (*project).as_ref();
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
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("rx" | "py"))
}
