//! Tests of fixes: each offered fix, applied alone, must fix its mistake and cause no other; also counts how many
//! mistakes have a fix.
//!
//! A fix that writes a type can move the contradiction to a use of the value, where the next fix is offered; the test
//! follows these fixes to their end. That does not always succeed: a mutated parameter may contradict an annotation, a
//! call and the return type at once, and fixing one of them leaves the others. So a few per cent of failures are
//! accepted; "fix all" undoes such fixes.

use super::Tally;
use rx_base::fix::{apply, edits, fix_all, follow, is_better};
use rx_base::{Code, Diagnostic, Fix, Severity, Span, TvmVersion};
use rx_db::{FileKind, Workspace};
use rx_tests::{cases, mdtest};
use std::collections::BTreeMap;
use std::path::Path;

/// The options for checking a text: the kind of its file, and the release of TVM that it is meant for.
#[derive(Clone, Copy)]
struct Input {
    kind: FileKind,
    tvm: Option<TvmVersion>,
}

const RX: Input = Input { kind: FileKind::Rx, tvm: None };

fn check(text: &str, input: Input) -> Vec<Diagnostic<Span>> {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, input.kind);
    workspace.set_tvm(file, input.tvm);
    workspace.diagnostics(file)
}

/// For each code, the numbers of diagnostics, of those with a fix, and of those with a safe fix.
#[derive(Default)]
struct Coverage(BTreeMap<Code, [usize; 3]>);

impl Coverage {
    fn count(&mut self, diagnostic: &Diagnostic<Span>) {
        let safe = diagnostic.fixes.iter().any(|fix| fix.safe);
        let sums = self.0.entry(diagnostic.code).or_default();
        for (sum, counts) in sums.iter_mut().zip([true, !diagnostic.fixes.is_empty(), safe]) {
            *sum += usize::from(counts);
        }
    }

    fn publish(&self, of: &str) {
        let total = |at: usize| self.0.values().filter_map(|sums| sums.get(at)).sum::<usize>();
        println!("{of}: {} errors and warnings, {} with a fix, {} with a safe one", total(0), total(1), total(2));
        for (code, [all, fixed, safe]) in &self.0 {
            println!("  {code} {}: {fixed} of {all} ({safe} safe)", code.slug());
        }
    }
}

/// Returns the reason why a fix of `diagnostic` fails.
fn fault(text: &str, input: Input, before: &[Diagnostic<Span>], at: usize, fix: &Fix<Span>) -> Option<String> {
    let diagnostic = before.get(at)?;
    let Some(edits) = edits(text, fix).filter(|edits| !edits.is_empty()) else {
        return Some("its edits overlap or lie outside the text".to_owned());
    };
    let changed = apply(text, &edits);
    let after = check(&changed, input);
    let errors_fixed = usize::from(diagnostic.severity == Severity::Error);
    let same = |found: &[Diagnostic<Span>]| {
        found.iter().filter(|it| it.code == diagnostic.code && it.message == diagnostic.message).count()
    };
    let gone = same(&after) < same(before);
    if is_better(before, &after, errors_fixed) && gone {
        return None;
    }
    // Writing an inferred type can move the contradiction; follow it to its end.
    let mut check = |text: &str| check(text, input);
    if gone && !fix.safe && follow(before, errors_fixed, &changed, &after, true, &mut check).is_some() {
        return None;
    }
    let shown: Vec<String> = after.iter().map(|it| format!("{} {}", it.code, it.message)).collect();
    let lines = text.lines().zip(changed.lines()).filter(|(a, b)| a != b).take(2);
    let lines: Vec<String> = lines.map(|(a, b)| format!("- {a}\n    + {b}")).collect();
    Some(format!("after it:\n    {}\n    {}", shown.join("\n    "), lines.join("\n    ")))
}

/// Counts and tests the fixes of a text.
fn look_at(name: &str, text: &str, input: Input, coverage: &mut Coverage, tally: &mut Tally) {
    let found = check(text, input);
    for (at, diagnostic) in found.iter().enumerate() {
        if diagnostic.severity <= Severity::Warning {
            coverage.count(diagnostic);
        }
        for fix in &diagnostic.fixes {
            let fault = fault(text, input, &found, at, fix);
            tally.count(fault.is_none(), || {
                let (code, message, fault) = (diagnostic.code, &diagnostic.message, fault.unwrap_or_default());
                format!("{name}: {code} {message}\n    fix \"{}\", {fault}", fix.title)
            });
        }
    }
}

#[test]
fn fixes_in_documents_remove_their_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mdtest");
    let (mut coverage, mut tally) = (Coverage::default(), Tally::new("fixes in documents"));
    for path in cases::files(&folder, "md") {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for block in mdtest::blocks(&text) {
            let mdtest::Language::File(kind) = block.language else { continue };
            let input = Input { kind, tvm: block.tvm };
            look_at(&format!("{name}:{}", block.line), &block.code, input, &mut coverage, &mut tally);
        }
    }
    coverage.publish("documents");
    tally.must_be_mostly_right(97);
}

#[test]
fn fixes_of_known_defects_remove_their_mistakes() {
    let Some(folder) = cases::folder() else { return };
    let (mut coverage, mut tally) = (Coverage::default(), Tally::new("fixes of known defects"));
    for path in cases::files(&folder.join("cases/defects"), "rx") {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        look_at(&name, &text, RX, &mut coverage, &mut tally);
    }
    coverage.publish("known defects");
    tally.must_be_mostly_right(97);
}

#[test]
fn fixes_of_some_mutants_remove_their_mistakes() {
    fixes_of_mutants(2);
}

#[test]
#[ignore = "sweep: .ci/full"]
fn fixes_of_mutants_remove_their_mistakes() {
    fixes_of_mutants(1);
}

/// Tests the fixes of every `each`-th mutant.
fn fixes_of_mutants(each: usize) {
    let Some(folder) = cases::folder() else { return };
    let (mut coverage, mut tally) = (Coverage::default(), Tally::new("fixes of mutants"));
    let mut ends: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    let mut sums = [0; 4];
    for row in cases::rows(&folder.join("cases/mutants.jsonl")).unwrap_or_default().into_iter().step_by(each) {
        let Some(text) = cases::text(&row, "text") else { continue };
        let field = |name| cases::text(&row, name).unwrap_or_default();
        let name = format!("{} {} -> {}", field("id"), field("old").trim(), field("new").trim());
        look_at(&name, text, RX, &mut coverage, &mut tally);
        let is_wrong = |text: &str| check(text, RX).iter().any(|it| it.severity == Severity::Error);
        if !is_wrong(text) {
            continue;
        }
        let mut check = |text: &str| check(text, RX);
        let after = |fixed: &str| usize::from(!is_wrong(fixed));
        let safe = fix_all(text, false, &mut check).text;
        let all = fix_all(text, true, &mut check).text;
        let original = all.lines().any(|line| !field("old").is_empty() && line.trim() == field("old").trim());
        let counts = [1, after(&safe), after(&all), usize::from(original)];
        let of_mutation = ends.entry(field("mutation").to_owned()).or_default();
        for (at, count) in counts.into_iter().enumerate() {
            of_mutation[at] += count;
            sums[at] += count;
        }
    }
    coverage.publish("mutants");
    println!(
        "mutants rx rejects, clean after safe fixes, clean after all fixes, with the original line again: {sums:?}"
    );
    for (mutation, counts) in ends {
        println!("  {mutation}: {counts:?}");
    }
    tally.must_be_mostly_right(97);
}
