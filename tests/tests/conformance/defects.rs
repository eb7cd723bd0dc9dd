//! The known defects: verdict, kind and line of each.

use crate::Tally;
use rx_base::Severity;
use rx_db::FileKind;
use rx_tests::cases;
use rx_tests::check::{Found, check};
use std::path::Path;

struct Row {
    file: String,
    kind: String,
    line: Option<usize>,
}

fn rows(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split('\t');
        let (file, _, kind, line) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        Some(Row { file: file.to_owned(), kind: kind.to_owned(), line: line.parse().ok() })
    });
    rows.collect()
}

/// Counts the rows whose file has exactly the one error expected, or none where none is.
fn errors(name: &'static str, wanted: impl Fn(&str) -> bool) -> Option<Tally> {
    let folder = cases::folder()?.join("cases/defects");
    let mut tally = Tally::new(name);
    for row in rows(&folder.join("expected.tsv")).iter().filter(|row| wanted(&row.file)) {
        let text = std::fs::read_to_string(folder.join(&row.file)).unwrap_or_default();
        let checked = check(&text, FileKind::Rx);
        let errors: Vec<&Found> = checked.errors().collect();
        let right = match (row.line, &errors[..]) {
            (None, []) => true,
            (Some(line), [error]) => error.line == line && error.code.slug() == row.kind,
            _ => false,
        };
        tally.count(right, || format!("{}: wanted {} {:?}, found {errors:?}", row.file, row.kind, row.line));
    }
    Some(tally)
}

#[test]
fn shapes_and_layouts() {
    let prefixes = ["s0_", "s1_", "s2_", "legacy_"];
    let Some(tally) = errors("defects, shapes and layouts", |file| prefixes.iter().any(|it| file.starts_with(it)))
    else {
        return;
    };
    tally.must_be_complete();
}

#[test]
fn index_ranges() {
    let Some(tally) = errors("defects, index ranges", |file| file.starts_with("s3_")) else { return };
    tally.must_be_complete();
}

#[test]
fn lifted_parameters() {
    let Some(tally) = errors("defects, lifted parameters", |file| file.starts_with("s4_")) else { return };
    tally.must_be_complete();
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
