use crate::fixture::Fixture;
use rx_db::FileKind;

fn formatted(fixture: &Fixture) -> String {
    fixture.applied(&rx_ide::format(fixture.workspace.document(fixture.file), None))
}

#[test]
fn a_text_is_laid_out_as_by_the_command_line() {
    let text = "@R.function\ndef f(x: R.Tensor((2,),\"float32\")):\n    y=R.abs( x )$0 # é\n    return y\n";
    let fixture = Fixture::new(text);
    let document = fixture.workspace.document(fixture.file);
    let wanted = rx_syntax::format::format(document, rx_syntax::dialect::Dialect::detect(document));
    assert_eq!(formatted(&fixture), wanted);
    let edits = rx_ide::format(document, None);
    assert!(edits.iter().all(|(span, _)| span.range().len() < 30), "{edits:?}");
}

#[test]
fn a_range_is_all_that_changes() {
    let text =
        "@R.function\ndef f(x: R.Tensor((2,), dtype=\"float32\")):\n    y=R.abs(x)\n    $0z=R.abs(y)\n    return z\n";
    let fixture = Fixture::new(text);
    let range = fixture.cursor..fixture.cursor + 3;
    let edits = rx_ide::format(fixture.workspace.document(fixture.file), Some(range));
    let text = fixture.applied(&edits);
    assert!(text.contains("    y=R.abs(x)\n    z = R.abs(y)\n"), "{text}");
}

#[test]
fn broken_text_and_python_around_it_stay() {
    let broken = "@R.function\ndef f(x):\n    y = R.abs(\n    z=$0x\n    return z\n";
    let fixture = Fixture::new(broken);
    assert_eq!(rx_ide::format(fixture.workspace.document(fixture.file), None), []);
    let python = "from tvm.script import relax as R\nx=1\n@R.function\ndef f(x: R.Tensor((2,), dtype=\"float32\")):\n    y=x$0\n    return y\nz=2\n";
    let fixture = Fixture::of_kind(python, FileKind::Python);
    let text = formatted(&fixture);
    assert!(text.contains("\nx=1\n") && text.contains("    y = x\n") && text.contains("z=2\n"), "{text}");
}

/// Returns the text after `typed` was typed before the cursor.
fn typed(text: &str, kind: FileKind, typed: char) -> String {
    let fixture = Fixture::of_kind(text, kind);
    let document = fixture.workspace.document(fixture.file);
    fixture.applied(&rx_ide::format_typed(document, fixture.cursor, typed))
}

const WRITTEN: &str = "from tvm.script import relax as R
from tvm.script import tirx as T

n = TypeVar(\"n\")
@R.function
def f(x:R.Tensor((n, 2), \"float32\")):
    y=R.abs( x )
    z: R.Tensor((n, 2), \"float32\")=R.add(y,y) # é
    u = R.abs(
";

#[test]
fn completed_line_is_formatted_in_a_text_that_is_being_written() {
    for kind in [FileKind::Rx, FileKind::Python] {
        for (line, formatted) in [
            ("def f(x:R.Tensor((n, 2), \"float32\")):", "def f(x: R.Tensor((n, 2), \"float32\")):"),
            ("    y=R.abs( x )", "    y = R.abs(x)"),
            (
                "    z: R.Tensor((n, 2), \"float32\")=R.add(y,y) # é",
                "    z: R.Tensor((n, 2), \"float32\") = R.add(y, y) # é",
            ),
        ] {
            let entered = |line: &str, cursor: &str| WRITTEN.replace(line, &format!("{line}\n    {cursor}"));
            let expected = entered(line, "").replace(line, formatted);
            assert_eq!(typed(&entered(line, "$0"), kind, '\n'), expected, "{kind:?}");
        }
    }
}

#[test]
fn statement_is_formatted_after_the_parenthesis_that_ends_it() {
    for kind in [FileKind::Rx, FileKind::Python] {
        let text = WRITTEN.replace("( x )", "( x )$0");
        assert_eq!(typed(&text, kind, ')'), WRITTEN.replace("y=R.abs( x )", "y = R.abs(x)"));
        // The parenthesis ends an argument, or the line is not complete.
        let text = WRITTEN.replace("( x )", "( (x)$0 )");
        assert_eq!(typed(&text, kind, ')'), text.replace("$0", ""));
    }
}

#[test]
fn statements_that_share_lines_are_not_formatted_while_typing() {
    for text in ["    a=x; b=x\n$0", "    a = R.add(x,\n        x )\n$0", "    a=(x\n$0"] {
        let text = format!("@R.function\ndef f(x: R.Tensor((2,), \"float32\")):\n{text}");
        assert_eq!(typed(&text, FileKind::Rx, '\n'), text.replace("$0", ""));
    }
    let python = "import tvm\nx=1\n$0";
    assert_eq!(typed(python, FileKind::Python, '\n'), python.replace("$0", ""));
}

#[test]
fn line_that_is_too_long_is_not_formatted_while_typing() {
    let long = "x".repeat(1 << 16);
    let text = format!("@R.function\ndef f(x: R.Tensor((2,), \"float32\")):\n    a=R.print(x, format=\"{long}\")\n$0");
    assert_eq!(typed(&text, FileKind::Rx, '\n'), text.replace("$0", ""));
}
