//! Finds the `rx.toml` that applies to a file.

use crate::Settings;
use crate::read::read;
use rx_base::{Diagnostic, Span};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of a settings file.
pub const FILE_NAME: &str = "rx.toml";

/// The longest settings file that is read, in bytes.
const LONGEST: u64 = 1 << 24;

/// A parsed `rx.toml`. The default value holds for files without one.
#[derive(Clone, Debug, Default)]
pub struct SettingsFile {
    /// The path; `None` if there is no settings file.
    pub path: Option<PathBuf>,
    /// The text.
    pub text: String,
    /// The settings.
    pub settings: Settings,
    /// The mistakes, in order.
    pub mistakes: Vec<Diagnostic<Span>>,
}

/// A settings file that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    /// The path.
    pub path: PathBuf,
    /// The error.
    pub error: io::Error,
}

/// Finds the settings of files. Each settings file is read once.
#[derive(Debug)]
pub struct Finder {
    /// The settings of all files, if they do not depend on the file.
    given: Option<Arc<SettingsFile>>,
    /// The settings by folder, for the folders seen so far.
    known: HashMap<PathBuf, Arc<SettingsFile>>,
}

impl Finder {
    /// The settings of a file are those of the nearest [`FILE_NAME`] in its folder or above.
    pub fn nearest() -> Finder {
        Finder { given: None, known: HashMap::new() }
    }

    /// Creates a finder that ignores all settings files.
    pub fn isolated() -> Finder {
        Finder { given: Some(Arc::default()), known: HashMap::new() }
    }

    /// Creates a finder that uses one settings file for all files; its patterns are relative to the current folder.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn given(path: &Path) -> Result<Finder, Unreadable> {
        let root = std::env::current_dir().unwrap_or_default();
        Ok(Finder { given: Some(Arc::new(load(path, &root)?)), known: HashMap::new() })
    }

    /// Returns the settings of the files in `folder`.
    ///
    /// # Errors
    /// If the nearest settings file cannot be read.
    pub fn of_folder(&mut self, folder: &Path) -> Result<Arc<SettingsFile>, Unreadable> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let mut passed = Vec::new();
        let mut found = None;
        for folder in folder.ancestors() {
            if let Some(known) = self.known.get(folder) {
                found = Some(known.clone());
                break;
            }
            passed.push(folder.to_owned());
            let path = folder.join(FILE_NAME);
            if path.is_file() {
                found = Some(Arc::new(load(&path, folder)?));
                break;
            }
        }
        let found = found.unwrap_or_default();
        self.known.extend(passed.into_iter().map(|folder| (folder, found.clone())));
        Ok(found)
    }

    /// Returns the settings of a file.
    ///
    /// # Errors
    /// If the nearest settings file cannot be read.
    pub fn of_file(&mut self, file: &Path) -> Result<Arc<SettingsFile>, Unreadable> {
        self.of_folder(file.parent().unwrap_or(Path::new("")))
    }
}

fn load(path: &Path, root: &Path) -> Result<SettingsFile, Unreadable> {
    let text = text(path).map_err(|error| Unreadable { path: path.to_owned(), error })?;
    let (settings, mistakes) = read(&text, root);
    Ok(SettingsFile { path: Some(path.to_owned()), text, settings, mistakes })
}

fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than 16 MiB, which is no settings file"));
    }
    Ok(text)
}
