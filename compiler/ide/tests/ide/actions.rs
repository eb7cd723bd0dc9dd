use crate::fixture::Fixture;
use rx_base::Span;
use rx_db::FileKind;

/// The fixes at the cursor: title, whether preferred, and the line of the cursor after each.
fn fixes(fixture: &Fixture) -> Vec<(String, bool, String)> {
    let diagnostics = fixture.workspace.diagnostics(fixture.file);
    let at = Span::empty(fixture.cursor as u32);
    let found = rx_ide::quick_fixes(&fixture.view(), &diagnostics, at);
    let line = |text: &str| text[..fixture.cursor.min(text.len())].matches('\n').count();
    found
        .into_iter()
        .map(|fix| {
            let text = fixture.applied(&fix.edits);
            let at = line(&text);
            (fix.title, fix.preferred, text.lines().nth(at).unwrap_or_default().trim().to_owned())
        })
        .collect()
}

#[test]
fn a_mistake_has_its_fixes_and_a_comment() {
    let fixture = Fixture::body("y = R.nn.re$0lo(x)\nreturn y\n");
    let fixes = fixes(&fixture);
    let titles: Vec<&str> = fixes.iter().map(|(title, ..)| title.as_str()).collect();
    assert_eq!(titles, ["change to R.nn.relu", "ignore RX0202 here"], "{fixes:?}");
    assert_eq!(fixes[0].2, "y = R.nn.relu(x)");
    assert_eq!(fixes[1].2, "y = R.nn.relo(x)  # rx: ignore[RX0202]");
}

#[test]
fn the_comment_makes_the_mistake_unreported() {
    for (text, wanted) in [
        ("y = R.add($0x, s)  # why\nreturn y\n", "y = R.add(x, s)  # why  # rx: ignore["),
        ("y = R.add(\n    $0x, s,\n)\nreturn y\n", "  # rx: ignore["),
    ] {
        let fixture = Fixture::body(text);
        let before = fixture.workspace.diagnostics(fixture.file);
        assert_eq!(before.len(), 1, "{before:?}");
        let at = before[0].primary;
        let found = rx_ide::quick_fixes(&fixture.view(), &before, at);
        let ignore = found.iter().find(|fix| fix.title.starts_with("ignore")).expect("a comment");
        let text = fixture.applied(&ignore.edits);
        assert!(text.contains(wanted), "{text}");
        let mut workspace = rx_db::Workspace::new();
        let file = workspace.add(&text, FileKind::Rx);
        assert_eq!(workspace.diagnostics(file), [], "{text}");
    }
}

#[test]
fn what_does_not_touch_the_range_is_left_alone() {
    let fixture = Fixture::body("y = R.nn.relo(x)\nz = x$0\nreturn y\n");
    assert_eq!(fixes(&fixture), []);
}

#[test]
fn all_safe_fixes_are_applied_together() {
    let fixture = Fixture::new(
        "@R.function$0\ndef main(x: R.Tensor((2,), \"float32\")):\n    y = x  # rx: ignore\n    z = y  # rx: ignore\n    return z\n",
    );
    let mut check = |text: &str| {
        let mut workspace = rx_db::Workspace::new();
        let file = workspace.add(text, FileKind::Rx);
        workspace.diagnostics(file)
    };
    let edits = rx_ide::fix_all(&fixture.view(), &mut check);
    let text = fixture.applied(&edits);
    assert!(!text.contains('#') && text.contains("    y = x\n    z = y\n"), "{text}");
}

#[test]
fn inferred_types_are_written_of_a_function_or_of_all() {
    let text = "@R.function\ndef f(x: R.Tensor((2,), \"float32\")):\n    y = R.abs($0x)\n    return y\n\n\
                @R.function\ndef g(x: R.Tensor((3,), \"float32\")):\n    y = R.abs(x)\n    return y\n";
    let fixture = Fixture::new(text);
    let one = fixture.applied(&rx_ide::annotate(&fixture.view(), Some(fixture.cursor)));
    assert!(
        one.contains("y: R.Tensor((2,), dtype=\"float32\") = R.abs(x)") && one.contains("\n    y = R.abs(x)"),
        "{one}"
    );
    let all = fixture.applied(&rx_ide::annotate(&fixture.view(), None));
    assert!(all.contains("y: R.Tensor((3,), dtype=\"float32\") = R.abs(x)"), "{all}");
    assert!(all.contains("-> R.Tensor((3,), dtype=\"float32\"):"), "{all}");
}

/// What `LiftTransformParams` leaves, with the cursor on a function.
const LIFTED: &str = r#"n = TypeVar("n")
@I.ir_module
class Module:
    @R.function
    def main_transform_params(model_params: R.Tuple(R.Tensor((n, 8), dtype="float32"))) -> R.Tuple(R.Tensor((8, n), dtype="float32")):
        R.func_attr({"num_input": 0})
        with R.dataflow():
            w: R.Tensor((n, 8), dtype="float32") = model_params[0]
            wt: R.Tensor((8, n), dtype="float32") = R.permute_dims(w, axes=[1, 0])
            output_tuple: R.Tuple(R.Tensor((8, n), dtype="float32")) = (wt,)
            R.output(output_tuple)
        return output_tuple

    @R.function
    def ma$0in(x: R.Tensor((4, 8), dtype="float32"), wt: R.Tensor((8, n), dtype="float32")) -> R.Tensor((4, n), dtype="float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            gv: R.Tensor((4, n), dtype="float32") = R.matmul(x, wt, out_dtype=None)
            R.output(gv)
        return gv

    @R.function
    def other(x: R.Tensor((4, 8), dtype="float32")) -> R.Tensor((4, 8), dtype="float32"):
        return x
"#;

/// The text with the entry that the action at the cursor adds.
fn with_raw_entry(text: &str, kind: FileKind) -> Option<(String, String)> {
    let fixture = Fixture::of_kind(text, kind);
    let (entry, edit) = rx_ide::raw_entry(&fixture.view(), fixture.cursor)?;
    Some((entry.to_string(), fixture.applied(&[edit])))
}

#[test]
fn an_entry_takes_raw_weights() {
    let (entry, text) = with_raw_entry(LIFTED, FileKind::Rx).expect("an entry");
    assert_eq!(entry, "main_raw");
    let wanted = "        return gv

    @R.function
    def main_raw(x: R.Tensor((4, 8), dtype=\"float32\"), model_params: R.Tuple(R.Tensor((n, 8), dtype=\"float32\"))):
        cls = Module
        prepared = cls.main_transform_params(model_params)
        result = cls.main(x, prepared[0])
        return result

    @R.function
    def other(";
    assert!(text.contains(wanted), "{text}");
    let mut workspace = rx_db::Workspace::new();
    let file = workspace.add(&text, FileKind::Rx);
    assert_eq!(workspace.diagnostics(file), [], "{text}");
}

#[test]
fn an_entry_is_spelled_as_the_file_is() {
    // Line ends, dims in brackets, names that are there already.
    let text = LIFTED
        .replace("n = TypeVar(\"n\")\n", "")
        .replace("main_transform_params(model", "main_transform_params[n](model")
        .replace("ma$0in(x", "ma$0in[n](x")
        .replace("def other(", "def main_raw(")
        .replace('\n', "\r\n");
    let (entry, text) = with_raw_entry(&text, FileKind::Rx).expect("an entry");
    assert_eq!(entry, "main_raw_1");
    assert!(text.contains("    @R.function\r\n    def main_raw_1[n](x: R.Tensor("), "{text}");
    assert!(!text.replace("\r\n", "").contains('\n'), "{text}");
}

#[test]
fn where_nothing_prepares_weights_there_is_no_entry() {
    for (from, to) in [
        ("main_transform_params", "prepare"),
        ("        R.func_attr({\"num_input\": 1})\n", ""),
        ("\"num_input\": 1", "\"num_input\": 2"),
    ] {
        assert_eq!(with_raw_entry(&LIFTED.replace(from, to), FileKind::Rx), None, "{from}");
    }
    let elsewhere = LIFTED.replace("$0", "").replace("def other", "def ot$0her");
    assert_eq!(with_raw_entry(&elsewhere, FileKind::Rx), None);
}
