use crate::fixture::Fixture;

/// Returns the label with the active parameter in `[…]`.
fn help(body: &str) -> String {
    let fixture = Fixture::body(body);
    let Some(found) = rx_ide::signature_help(&fixture.view(), fixture.cursor) else { return String::new() };
    let mut label = found.label.clone();
    if let Some((range, _)) = found.active.and_then(|active| found.params.get(active)) {
        label.insert(range.end, ']');
        label.insert(range.start, '[');
    }
    label
}

#[test]
fn the_parameter_is_counted_or_named() {
    assert_eq!(help("y = R.add($0"), "R.add([x1], x2)");
    assert_eq!(help("y = R.add(x, $0"), "R.add(x1, [x2])");
    assert_eq!(help("y = R.add((x, w), $0)"), "R.add(x1, [x2])");
    assert!(help("y = R.nn.conv2d(x, w, padding=$0").contains("[padding=[0, 0]]"));
    assert!(help("y = R.nn.conv2d(x, w, padding=[1, $0])").contains("[padding=[0, 0]]"));
    assert_eq!(help("y = R.add(x, w, $0)"), "R.add(x1, x2)");
    assert_eq!(help("y = R.add(x, w)$0"), "");
    assert_eq!(help("y = x$0"), "");
}

#[test]
fn functions_of_the_module_have_signatures() {
    assert_eq!(
        help("y = cls.relu(x, $0)"),
        "def relu(x: T.Buffer((4, 8), \"float32\"), [y: T.Buffer((4, 8), \"float32\")])"
    );
    assert!(help("y = cls.main($0").starts_with("def main([x: R.Tensor((1, 3, 224, 224)"));
}

#[test]
fn functions_of_t_have_signatures() {
    assert_eq!(help("y = T.floordiv(x, $0)"), "T.floordiv(a, [b], span=None)");
    assert_eq!(help("y = T.if_then_else(x, f=$0)"), "T.if_then_else(cond, t, [f], span=None)");
    assert_eq!(
        help("y = T.call_extern(\"int32\", \"f\", 1, $0"),
        "T.call_extern(dtype, func_name, [*args], span=None)"
    );
}

#[test]
fn a_call_is_found_in_broken_text() {
    assert_eq!(help("y = R.add(\n    x,\n    $0\nz = R.abs(x)\nreturn z"), "R.add(x1, [x2])");
    assert_eq!(help("y = R.add(R.abs($0"), "R.abs([x])");
}
