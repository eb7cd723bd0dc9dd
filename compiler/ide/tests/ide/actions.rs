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
