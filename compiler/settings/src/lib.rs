//! `rx.toml`: where it is found, its keys, and the settings that it gives a file.
//!
//! - [`keys`]: the one table of keys. Reading, the JSON schema of editors and the manual follow it.
//! - [`read`]: from text to [`Settings`], or mistakes with their places in the text.
//! - [`Finder`]: the settings of each file, those of the nearest folder above it.
//! - [`files`]: the search for files below a folder, which honours `include` and `exclude`.
//! - [`Severities`]: the severity of each diagnostic code in one file.
//!
//! It is the same for every program: a command line adds a [`Choice`] on top. `rx-db` adds the declared operators (`Projects`).
//!
//! # Invariants
//!
//! - Nothing in the file is silently ignored.
//! - Severities are applied where diagnostics are shown; no check knows them. A text that cannot be read (`RX01xx`) stays an
//!   error.

pub mod files;
mod find;
pub mod keys;
mod pattern;
mod raw;
mod read;
mod run;
mod selector;
mod severities;

pub use find::{FILE_NAME, Finder, SettingsFile, Unreadable};
pub use pattern::FilePattern;
pub use raw::{RawEntry, RawTable, RawValue};
pub use read::read;
pub use run::Run;
pub use selector::{Selector, UnknownSelector};
pub use severities::{Choice, Level, Levels, Severities};

use rx_base::TvmVersion;
use std::path::{Path, PathBuf};

/// What an `rx.toml` says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The folder that patterns start from, absolute.
    pub root: PathBuf,
    /// The files a folder is searched for; `None`: those of the usual extensions.
    pub include: Option<Vec<FilePattern>>,
    /// Files and folders passed over in a search.
    pub exclude: Vec<FilePattern>,
    /// Whether warnings set the exit status.
    pub error_on_warning: bool,
    /// Whether hints are printed.
    pub hints: bool,
    /// The TVM the module is built with.
    pub tvm_version: Option<TvmVersion>,
    /// Severities of all files.
    pub severity: Levels,
    /// What a run takes.
    pub run: Run,
    /// Settings of some files; of two that speak of the same, the later holds.
    pub overrides: Vec<Override>,
    /// Declared operators, as written.
    pub ops: Vec<RawTable>,
}

/// An `[[overrides]]` table.
#[derive(Clone, Debug)]
pub struct Override {
    /// The files it speaks of.
    pub files: Vec<FilePattern>,
    /// Their severities.
    pub severity: Levels,
    /// What a run of them takes.
    pub run: Run,
}

impl AsRef<Settings> for SettingsFile {
    fn as_ref(&self) -> &Settings {
        &self.settings
    }
}

impl Settings {
    /// Whether a search takes this file: included, and not excluded. `usual` is what holds where nothing is said.
    pub fn takes(&self, file: &Path, usual: bool) -> bool {
        let file = self.relative(file);
        let included = self.include.as_ref().map_or(usual, |include| any(include, &file));
        included && !any(&self.exclude, &file)
    }

    /// Whether this file or folder is passed over.
    pub fn excludes(&self, path: &Path) -> bool {
        any(&self.exclude, &self.relative(path))
    }

    /// What becomes of each code in this file.
    pub fn severities(&self, file: &Path, choice: &Choice) -> Severities {
        let file = self.relative(file);
        let overrides = self.overrides.iter().filter(|it| any(&it.files, &file)).map(|it| &it.severity);
        Severities::new(std::iter::once(&self.severity).chain(overrides), choice)
    }

    /// What a run of this file takes.
    pub fn run(&self, file: &Path) -> Run {
        let file = self.relative(file);
        let overrides = self.overrides.iter().filter(|it| any(&it.files, &file));
        overrides.fold(self.run.clone(), |run, it| run.with(&it.run))
    }

    /// A path as patterns see it: from [`Settings::root`] where it lies below, else absolute.
    fn relative(&self, path: &Path) -> PathBuf {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.strip_prefix(&self.root).map(Path::to_owned).unwrap_or(path)
    }
}

fn any(patterns: &[FilePattern], path: &Path) -> bool {
    patterns.iter().any(|pattern| pattern.matches(path))
}
