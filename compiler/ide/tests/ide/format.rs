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
