//! What rx says of TVM 0.27 against what TVM 0.27 does: valid programs that it fails on are flagged, no others.

use super::Tally;
use rx_base::{Code, TvmVersion};
use rx_db::FileKind;
use rx_tests::cases;
use rx_tests::check::{Found, check_for};
use std::path::Path;

/// The codes RX10xx found in a file for TVM 0.27.
fn limits(path: &Path) -> Vec<Found> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let checked = check_for(&text, FileKind::Rx, Some(TvmVersion::V0_27));
    checked.found.into_iter().filter(|found| found.code.number() / 100 == 10).collect()
}

/// Rows `file, expected, verdict, parse, well_formed, llvm, cuda`: flagged are those expected to be right that TVM fails to read,
/// check or build.
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

/// TVM builds the models, but those whose constants that are no numbers it prints as strings and does not read.
#[test]
fn models() {
    let Some(folder) = cases::folder() else { return };
    let models = folder.join("models");
    let mut tally = Tally::new("portability of models");
    // Folders in it hold stages of compilation, of which TVM reads some.
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
