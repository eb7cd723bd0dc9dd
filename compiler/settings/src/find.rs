//! Which `rx.toml` speaks of a file.

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

/// The longest settings file that is read, in bytes: people write them.
const LONGEST: u64 = 1 << 24;

/// An `rx.toml` that was read; the default is what holds where there is none.
#[derive(Clone, Debug, Default)]
pub struct SettingsFile {
    /// Where it stands; `None` where there is none.
    pub path: Option<PathBuf>,
    /// Its text.
    pub text: String,
    /// What it says.
    pub settings: Settings,
    /// What is wrong with it, in order.
    pub mistakes: Vec<Diagnostic<Span>>,
}

/// A settings file that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    /// Which one.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

/// Finds the settings of files. Each settings file is read once.
#[derive(Debug)]
pub struct Finder {
    /// The settings of all files, where they do not depend on the file.
    given: Option<Arc<SettingsFile>>,
    /// What speaks of the files of a folder.
    known: HashMap<PathBuf, Arc<SettingsFile>>,
}

impl Finder {
    /// The settings of a file are those of the nearest [`FILE_NAME`] in its folder or above.
    pub fn nearest() -> Finder {
        Finder { given: None, known: HashMap::new() }
    }

    /// No settings file is looked at.
    pub fn isolated() -> Finder {
        Finder { given: Some(Arc::default()), known: HashMap::new() }
    }

    /// One settings file speaks of all files; its patterns start from the current folder.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn given(path: &Path) -> Result<Finder, Unreadable> {
        let root = std::env::current_dir().unwrap_or_default();
        Ok(Finder { given: Some(Arc::new(load(path, &root)?)), known: HashMap::new() })
    }

    /// The settings of the files in `folder`.
    ///
    /// # Errors
    /// When the nearest settings file cannot be read.
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

    /// The settings of a file.
    ///
    /// # Errors
    /// When the nearest settings file cannot be read.
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
