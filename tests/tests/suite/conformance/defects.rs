//! Tests of the known defects: verdict, code and line of each.

use super::{Tally, findings};
use rx_base::Severity;
use rx_db::FileKind;
use rx_tests::cases;
use rx_tests::check::{Found, check};
use std::path::Path;

struct Row {
    file: String,
    verdict: String,
    kind: String,
    line: Option<usize>,
}

/// Reads the columns `file, verdict, kind, line` of a table; further columns are for readers. For example, these rows
/// expect one error in line 10 of the first file, and none in the second:
///
/// ```text
/// conv1x1_annotation.rx  error  annotation-shape-mismatch  10
/// conv1x1_batch.rx       clean  -                          -
/// ```
fn rows(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split('\t');
        let (file, verdict, kind, line) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let [file, verdict, kind] = [file, verdict, kind].map(str::to_owned);
        Some(Row { file, verdict, kind, line: line.parse().ok() })
    });
    rows.collect()
}

/// Counts the rows whose file has exactly the expected diagnostic, or none if none is expected. Only files whose names
/// begin with one of the prefixes count. Warnings count only in the own set, because the given set lists them in a
/// separate table.
fn verdicts(name: &str, prefixes: &[&str]) {
    let argued = findings::argued();
    for set in cases::sets() {
        let folder = set.folder.join("defects");
        let mut tally = Tally::new(set.figure(name));
        let wanted = |row: &&Row| prefixes.iter().any(|prefix| row.file.starts_with(prefix));
        for row in rows(&folder.join("expected.tsv")).iter().filter(wanted) {
            let text = std::fs::read_to_string(folder.join(&row.file)).unwrap_or_default();
            let checked = check(&text, FileKind::Rx);
            let least = if set.own { Severity::Warning } else { Severity::Error };
            let found: Vec<&Found> = checked.found.iter().filter(|found| found.severity <= least).collect();
            let right = match (row.line, &found[..]) {
                (None, []) => !text.is_empty(),
                (Some(line), [it]) => {
                    it.line == line && it.code.slug() == row.kind && it.severity.to_string() == row.verdict
                }
                _ => false,
            };
            tally.count(right || argued.contains(&row.file), || {
                format!("{}: wanted {} {:?}, found {found:?}", row.file, row.kind, row.line)
            });
        }
        assert!(tally.right > 0, "{} has no rows", tally.name);
        tally.must_be_complete();
    }
}

#[test]
fn shapes_and_layouts() {
    let prefixes = ["s0_", "s1_", "s2_", "legacy_", "conv_relu_", "conv1x1_", "conv_transpose_"];
    verdicts("defects, shapes and layouts", &prefixes);
}

#[test]
fn index_ranges() {
    verdicts("defects, index ranges", &["s3_", "take_"]);
}

#[test]
fn lifted_parameters() {
    verdicts("defects, lifted parameters", &["s4_", "lift_"]);
}

#[test]
fn warnings_and_hints() {
    let Some(folder) = cases::folder() else { return };
    let folder = folder.join("cases/defects");
    let mut tally = Tally::new("defects, warnings and hints");
    for row in rows(&folder.join("expected_warnings.tsv")) {
        let text = std::fs::read_to_string(folder.join(&row.file)).unwrap_or_default();
        let checked = check(&text, FileKind::Rx);
        let milder: Vec<&Found> = checked.found.iter().filter(|found| found.severity != Severity::Error).collect();
        let right = milder.iter().any(|found| Some(found.line) == row.line && found.code.slug() == row.kind);
        tally.count(right, || format!("{}: wanted {} {:?}, found {milder:?}", row.file, row.kind, row.line));
    }
    tally.must_be_complete();
}
