use crate::fixture::{Fixture, in_module};
use rx_ide::HintParts;

const ALL: HintParts = HintParts { shapes: true, dtypes: true };

fn labels(fixture: &Fixture, parts: HintParts) -> Vec<String> {
    let all = 0..fixture.workspace.document(fixture.file).len();
    rx_ide::hints(&fixture.view(), all, parts).into_iter().map(|hint| hint.label).collect()
}

const BODY: &str =
    "y = R.nn.conv2d(x, w, strides=[2, 2], padding=[3, 3, 3, 3])$0\nz: R.Tensor = R.nn.relu(y)\nreturn y\n";

#[test]
fn type_hints_follow_unannotated_names() {
    let fixture = Fixture::body(BODY);
    let ty = "R.Tensor((1, 64, 112, 112), dtype=\"float32\")";
    assert_eq!(labels(&fixture, ALL), [format!(" -> {ty}"), format!(": {ty}")]);
    let shapes = HintParts { shapes: true, dtypes: false };
    assert_eq!(labels(&fixture, shapes), [" -> (1, 64, 112, 112)", ": (1, 64, 112, 112)"]);
    let dtypes = HintParts { shapes: false, dtypes: true };
    assert_eq!(labels(&fixture, dtypes), [" -> \"float32\"", ": \"float32\""]);
    assert_eq!(labels(&fixture, HintParts { shapes: false, dtypes: false }), [""; 0]);
}

#[test]
fn accepted_hint_writes_the_text_of_the_command_line() {
    let fixture = Fixture::body(BODY);
    let all = 0..fixture.workspace.document(fixture.file).len();
    let hints = rx_ide::hints(&fixture.view(), all, ALL);
    let edits: Vec<_> = hints.into_iter().filter_map(|hint| hint.edit).collect();
    let file = fixture.file;
    assert_eq!(edits, fixture.workspace.annotations(file, rx_db::Annotate::Missing, None));
}

#[test]
fn hints_are_limited_to_the_requested_range() {
    let fixture = Fixture::body("a = R.abs(x)\n$0b = R.abs(a)\nc = R.abs(b)\nreturn c\n");
    let range = fixture.cursor..fixture.cursor + 1;
    let found = rx_ide::hints(&fixture.view(), range, ALL);
    assert_eq!(found.len(), 1);
    let text = in_module("a = R.abs(x)\nb = R.abs(a)\nc = R.abs(b)\nreturn c\n");
    assert!(text[..found[0].offset as usize].ends_with(" b"));
}

#[test]
fn long_types_are_cut_in_the_label_only() {
    let fixture = Fixture::body("t = (x, x, x, x)$0\nreturn t\n");
    let all = 0..fixture.workspace.document(fixture.file).len();
    let hints = rx_ide::hints(&fixture.view(), all, ALL);
    assert!(hints.iter().all(|hint| hint.label.ends_with('…') && hint.full.ends_with(')')), "{hints:?}");
}

#[test]
fn broken_text_has_hints_where_it_is_sound() {
    let fixture = Fixture::body("é = R.abs(x)\r\nb = R.nn.$0\r\nc = R.abs(é)\r\nreturn c\r\n");
    assert_eq!(labels(&fixture, ALL).len(), 3);
}
