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

#[test]
fn types_and_forms_have_signatures() {
    let help = |text: &str| {
        let fixture = Fixture::new(text);
        let help = rx_ide::signature_help(&fixture.view(), fixture.cursor).expect("a signature");
        let active =
            help.active.and_then(|at| help.params.get(at)).map(|(range, _)| help.label[range.clone()].to_owned());
        (help.label, active.unwrap_or_default())
    };
    let tensor = "R.Tensor(shape=None, dtype=None, vdevice=None, ndim=-1)".to_owned();
    assert_eq!(help("@R.function\ndef f(x: R.Tensor($0"), (tensor.clone(), "shape=None".to_owned()));
    assert_eq!(help("@R.function\ndef f(x: R.Tensor((4, 8), $0"), (tensor.clone(), "dtype=None".to_owned()));
    assert_eq!(help("@R.function\ndef f(x: R.Tensor(ndim=$0"), (tensor, "ndim=-1".to_owned()));
    let (label, active) = help("@R.function\ndef f(x: R.Any):\n    y = R.match_cast(x, $0");
    assert_eq!((&*label, &*active), ("R.match_cast(value, ty)", "ty"));
    let (label, active) = help("@T.prim_func\ndef f(A: T.Buffer((4,), $0");
    assert!(label.starts_with("T.Buffer(shape, dtype=") && active.starts_with("dtype="), "{label} {active}");
}
