//! Compares rx's portability warnings for TVM 0.27 with TVM 0.27 itself: valid programs on which it fails must be
//! flagged, and no others.

use super::Tally;
use rx_base::{Code, TvmVersion};
use rx_db::FileKind;
use rx_tests::cases;
use rx_tests::check::{Found, check_for};
use std::path::Path;

/// Returns the diagnostics RX10xx in a file for TVM 0.27.
fn limits(path: &Path) -> Vec<Found> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let checked = check_for(&text, FileKind::Rx, Some(TvmVersion::V0_27));
    checked.found.into_iter().filter(|found| found.code.number() / 100 == 10).collect()
}

/// The table has the columns `file, expected, verdict, parse, well_formed, llvm, cuda`. Programs that are expected to
/// be right and that TVM fails to read, check or build must be flagged.
#[test]
fn known_defects() {
    let Some(folder) = cases::folder() else { return };
    let folder = folder.join("cases/defects");
    let table = std::fs::read_to_string(folder.join("tvm027.tsv")).unwrap_or_default();
    let mut tally = Tally::new("portability of known defects");
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, expected, _, stages @ ..] = &fields[..] else { continue };
        let wanted = *expected == "ok" && stages.iter().any(|stage| *stage != "ok");
        let found = limits(&folder.join(file));
        tally.count(found.is_empty() != wanted, || format!("{file}: flagged should be {wanted}, found {found:?}"));
    }
    tally.must_be_complete();
}

/// TVM builds all models except those with constants inf or nan, which it prints as strings and cannot read.
#[test]
fn models() {
    let Some(folder) = cases::folder() else { return };
    let models = folder.join("models");
    let mut tally = Tally::new("portability of models");
    // Subfolders contain stages of compilation, of which TVM reads only some.
    for path in cases::files(&models, "rx").iter().filter(|path| path.parent() == Some(models.as_path())) {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let unread = ["R.const(\"-inf\"", "R.const(\"inf\"", "R.const(\"nan\""].iter().any(|it| text.contains(it));
        let found = limits(path);
        let right = match unread {
            true => !found.is_empty() && found.iter().all(|it| it.code == Code::TextNotParsed),
            false => found.is_empty(),
        };
        tally.count(right, || format!("{}: {:?}", path.display(), found.iter().take(3).collect::<Vec<_>>()));
    }
    tally.must_be_complete();
}
