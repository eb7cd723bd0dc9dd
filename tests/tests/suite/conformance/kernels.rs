//! Tests that no prim_func of the given modules and models has an error: TVM generated them, or its tests accept them.

use super::{Tally, findings};
use rx_base::Code;
use rx_db::FileKind;
use rx_tests::cases::{self, CaseSet};
use rx_tests::check::{Found, check};
use std::collections::BTreeMap;

/// Whether a diagnostic is one that only prim_funcs have.
fn is_of_kernels(found: &Found) -> bool {
    matches!(found.code, Code::BufferIndexOutOfBounds | Code::BufferIndexMaybeOutOfBounds)
        || found.code.number() / 100 == 12
}

#[test]
fn kernels_of_the_cases_have_no_error() {
    cases::sets().iter().for_each(modules_have_no_error_in_a_prim_func);
}

fn modules_have_no_error_in_a_prim_func(set: &CaseSet) {
    let argued = findings::argued();
    let mut tally = Tally::new(set.figure("modules without an error in a prim_func"));
    let mut warnings: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in ["modules", "tir_modules"] {
        for row in set.rows(file) {
            let (Some(id), Some(text)) = (cases::text(&row, "id"), cases::text(&row, "text")) else { continue };
            if !text.contains("prim_func") || file == "modules" && !cases::is_true(&row, "well_formed") {
                continue;
            }
            let checked = check(text, FileKind::Rx);
            for found in checked.found.iter().filter(|found| is_of_kernels(found)) {
                warnings.entry(found.code.slug()).or_default().push(format!("{file} {id} {found}"));
            }
            let errors: Vec<String> = checked.errors().map(Found::to_string).collect();
            tally.count(errors.is_empty() || argued.contains(id), || format!("{file} {id} {}", errors.join("\n    ")));
        }
    }
    let listed: Vec<String> = warnings.into_values().flatten().collect();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    println!("{} diagnostics of kernels", listed.len());
    assert!(cases::write_list(folder, "kernels.txt", &listed).is_ok());
    tally.must_be_complete();
}

#[test]
fn late_stages_have_no_error() {
    let Some(folder) = cases::folder() else { return };
    let mut tally = Tally::new("late stages without an error");
    for path in cases::files(&folder.join("models/stages"), "rx") {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let checked = check(&text, FileKind::Rx);
        let errors: Vec<String> = checked.errors().take(4).map(Found::to_string).collect();
        tally.count(errors.is_empty(), || format!("{}\n    {}", path.display(), errors.join("\n    ")));
    }
    tally.must_be_complete();
}
