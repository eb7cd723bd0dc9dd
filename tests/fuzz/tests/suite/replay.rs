//! Runs every seed through every target, and every input in `found/` through the target that it once broke.

use rx_fuzz::{TARGETS, Target, on_a_worker};
use std::path::{Path, PathBuf};

/// Returns the files of a folder of this package, in order.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).into_iter().flatten();
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn replay(target: Target, path: &Path) {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(on_a_worker(|| target(&bytes)), "{} failed", path.display());
}

#[test]
fn seeds_pass() {
    let seeds = files("seeds");
    assert!(!seeds.is_empty());
    for path in seeds.iter().chain(&files("../../examples")) {
        for (_, target) in TARGETS {
            replay(target, path);
        }
    }
}

#[test]
fn inputs_that_failed_once_pass() {
    for (name, target) in TARGETS {
        for path in files(&format!("found/{name}")) {
            replay(target, &path);
        }
    }
}
