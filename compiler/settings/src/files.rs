//! The search for source files below a folder. The crate `ignore` is not suitable: each folder's `rx.toml` decides
//! which files count, not `.gitignore`.

use crate::Settings;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of folders that are never searched.
const PASSED_OVER: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// The visitor of a [`walk`].
pub trait Visit {
    /// The settings of a folder, with anything that the program stores with them.
    type Project: AsRef<Settings>;

    /// Returns the project that applies to the files in `folder`; `None` skips the folder.
    fn project(&mut self, folder: &Path) -> Option<Arc<Self::Project>>;

    /// Visits a file whose name the project includes. The visitor must still call [`Settings::takes`], which checks
    /// `exclude`.
    fn file(&mut self, path: PathBuf);

    /// Notes that rx.toml excludes something.
    fn excluded(&mut self) {}

    /// Notes a folder that cannot be read.
    fn unreadable(&mut self, folder: &Path, error: &io::Error);

    /// Whether the folder's files of this name are visited if the project has no `include`.
    fn is_wanted(&self, file: &Path) -> bool {
        is_source(file)
    }

    /// Whether to continue.
    fn goes_on(&self) -> bool {
        true
    }
}

/// Visits the files below `root` in the order of their names: those that the visitor [wants](Visit::is_wanted), or all
/// files if the project has an `include`.
pub fn walk(root: &Path, visit: &mut impl Visit) {
    // Use an explicit stack, because folders may be nested deeply.
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
        // Push children in reverse, so that they are popped in order.
        let any = settings.include.is_some();
        let found = children(&path, |file| any || visit.is_wanted(file));
        match found {
            Ok(children) => pending.extend(children.into_iter().rev()),
            Err(error) => visit.unreadable(&path, &error),
        }
    }
}

/// Returns the children of a folder to visit, sorted by name: subfolders that are not links, and `wanted` regular files
/// (also through links).
fn children(folder: &Path, wanted: impl Fn(&Path) -> bool) -> io::Result<Vec<PathBuf>> {
    let mut children = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = entry.path();
        // A file that was deleted meanwhile is no error.
        let Ok(kind) = entry.file_type() else { continue };
        let visited = if kind.is_dir() {
            !PASSED_OVER.contains(&&*name)
        } else {
            // Reading a pipe or device would block, and a link to a folder could form a cycle.
            wanted(&path) && path.is_file()
        };
        if visited && !name.starts_with('.') {
            children.push(path);
        }
    }
    children.sort();
    Ok(children)
}

/// Whether the file name is that of Relax text or of Python.
pub fn is_source(path: &Path) -> bool {
    matches!(path.extension().and_then(|extension| extension.to_str()), Some("rx" | "py"))
}

/// Whether the file name is that of a Jupyter notebook.
pub fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ipynb")
}
