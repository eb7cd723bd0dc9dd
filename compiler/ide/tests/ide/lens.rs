use crate::fixture::Fixture;
use rx_syntax::document::ItemKind;

#[test]
fn cost_line_is_in_symbols_of_the_function() {
    let text = "n = TypeVar(\"n\")\n@R.function$0\ndef f(x: R.Tensor((n, 8), \"float32\")):\n    y = R.add(x, x)\n    return y\n";
    let fixture = Fixture::new(text);
    let items = fixture.workspace.document(fixture.file).items();
    let at = items.iter().position(|item| matches!(item.kind, ItemKind::Function(_))).expect("a function");
    let line = rx_ide::cost_line(&fixture.view(), at);
    assert_eq!(line.as_deref(), Some("n * 8 operations · n * 96 B"));
    assert_eq!(rx_ide::cost_line(&fixture.view(), 99), None);
}

#[test]
fn cost_line_of_known_shapes_is_rounded() {
    let text = "@R.function$0\ndef f(x: R.Tensor((1200, 1000), \"float32\")):\n    y = R.abs(x)\n    return y\n";
    let fixture = Fixture::new(text);
    let line = (0..8).find_map(|item| rx_ide::cost_line(&fixture.view(), item));
    assert_eq!(line.as_deref(), Some("1.2 M operations · 9.2 MiB"));
}

#[test]
fn cost_line_of_calls_without_a_cost_says_only_that() {
    let text = "@R.function$0\ndef f(x: R.Tensor((2,), \"float32\")):\n    y = R.call_pure_packed(\"f\", x, ty_args=R.Tensor((2,), \"float32\"))\n    return y\n";
    let fixture = Fixture::new(text);
    let line = (0..8).find_map(|item| rx_ide::cost_line(&fixture.view(), item));
    assert_eq!(line.as_deref(), Some("1 call not counted"));
}
