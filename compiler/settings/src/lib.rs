//! `rx.toml`: its discovery, its keys, and the resulting settings of a file.
//!
//! - [`keys`]: the table of keys. The parser, the JSON schema for editors and the manual are derived from it.
//! - [`read`]: parses text to [`Settings`] and mistakes with positions.
//! - [`Finder`]: finds the settings of each file, those of the nearest folder above it.
//! - [`files`]: searches for files below a folder, according to `include` and `exclude`.
//! - [`Severities`]: the severity of each diagnostic code in one file.
//!
//! All programs share it; a command line adds a [`Choice`] on top. `rx-db` adds the declared operators (`Projects`).
//!
//! # Invariants
//!
//! - Nothing in the file is silently ignored.
//! - Severities are applied where diagnostics are shown; checks do not depend on them. A text that cannot be read
//!   (`RX01xx`) stays an error.

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

/// The settings of an `rx.toml`.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The absolute path of the folder to which patterns are relative.
    pub root: PathBuf,
    /// The patterns of files to search for; `None`: files with the usual extensions.
    pub include: Option<Vec<FilePattern>>,
    /// The files and folders that a search skips.
    pub exclude: Vec<FilePattern>,
    /// Whether warnings set the exit status.
    pub error_on_warning: bool,
    /// Whether hints are printed.
    pub hints: bool,
    /// The TVM release that modules are built with.
    pub tvm_version: Option<TvmVersion>,
    /// Severities for all files.
    pub severity: Levels,
    /// The `[run]` table: defaults of `rxrun`.
    pub run: Run,
    /// Settings for some files. Of two that apply to the same file, the later one has precedence.
    pub overrides: Vec<Override>,
    /// The declared operators, as written.
    pub ops: Vec<RawTable>,
}

/// An `[[overrides]]` table.
#[derive(Clone, Debug)]
pub struct Override {
    /// The files to which it applies.
    pub files: Vec<FilePattern>,
    /// Severities for these files.
    pub severity: Levels,
    /// The `run` table: defaults of `rxrun` for these files.
    pub run: Run,
}

impl AsRef<Settings> for SettingsFile {
    fn as_ref(&self) -> &Settings {
        &self.settings
    }
}

impl Settings {
    /// Whether a search finds this file: it is included and not excluded. `usual` is whether it is included if there is
    /// no `include`.
    pub fn takes(&self, file: &Path, usual: bool) -> bool {
        let file = self.relative(file);
        let included = self.include.as_ref().map_or(usual, |include| any(include, &file));
        included && !any(&self.exclude, &file)
    }

    /// Whether this file or folder is excluded.
    pub fn excludes(&self, path: &Path) -> bool {
        any(&self.exclude, &self.relative(path))
    }

    /// Returns the severities of the codes in this file.
    pub fn severities(&self, file: &Path, choice: &Choice) -> Severities {
        let file = self.relative(file);
        let overrides = self.overrides.iter().filter(|it| any(&it.files, &file)).map(|it| &it.severity);
        Severities::new(std::iter::once(&self.severity).chain(overrides), choice)
    }

    /// Returns the defaults of `rxrun` for this file.
    pub fn run(&self, file: &Path) -> Run {
        let file = self.relative(file);
        let overrides = self.overrides.iter().filter(|it| any(&it.files, &file));
        overrides.fold(self.run.clone(), |run, it| run.with(&it.run))
    }

    /// Converts a path to the form that patterns match: relative to [`Settings::root`] if it is below it, otherwise
    /// absolute. For example, with the root `/project`, `/project/nets/a.rx` becomes `nets/a.rx`, and `/tmp/a.rx`
    /// stays.
    fn relative(&self, path: &Path) -> PathBuf {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.strip_prefix(&self.root).map(Path::to_owned).unwrap_or(path)
    }
}

fn any(patterns: &[FilePattern], path: &Path) -> bool {
    patterns.iter().any(|pattern| pattern.matches(path))
}
