//! Tests of whole networks and of the stages of their compilation.

use super::Tally;
use rx_db::FileKind;
use rx_tests::cases;
use rx_tests::check::{Checked, Found, check};
use std::path::{Path, PathBuf};

fn checked(path: &Path) -> Option<Checked> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(check(&text, FileKind::of_path(path)))
}

fn shown<'a>(path: &Path, found: impl Iterator<Item = &'a Found>) -> String {
    let found: Vec<String> = found.take(5).map(Found::to_string).collect();
    format!("{}\n    {}", path.display(), found.join("\n    "))
}

fn is_stage(path: &Path, stages: &[&str]) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    stages.iter().any(|stage| name.ends_with(&format!(".{stage}.rx")))
}

#[test]
fn models_have_no_error_and_no_warning() {
    let Some(folder) = cases::folder() else { return };
    let mut paths: Vec<PathBuf> = cases::files(&folder.join("models"), "rx");
    paths.extend(cases::files(&folder.join("models/mlc"), "py"));
    paths.retain(|path| !is_stage(path, &["planned", "lowered"]));
    assert!(paths.len() > 20, "few models in {}", folder.display());
    let mut tally = Tally::new("models without a complaint");
    for path in &paths {
        let Some(checked) = checked(path) else { continue };
        tally.count(checked.complaints().next().is_none(), || shown(path, checked.complaints()));
    }
    tally.must_be_complete();
}

#[test]
fn late_stages_have_no_error() {
    let Some(folder) = cases::folder() else { return };
    let mut paths = cases::files(&folder.join("models/stages"), "rx");
    paths.retain(|path| is_stage(path, &["planned", "lowered"]));
    assert!(!paths.is_empty(), "no stages in {}", folder.display());
    let mut tally = Tally::new("late stages without an error");
    for path in &paths {
        let Some(checked) = checked(path) else { continue };
        tally.count(!checked.is_rejected(), || shown(path, checked.errors()));
    }
    tally.must_be_complete();
}
