use crate::fixture::Fixture;
use rx_db::declared_operators;
use std::path::Path;
use std::sync::Arc;

fn hover(fixture: &Fixture) -> String {
    rx_ide::hover(&fixture.view(), fixture.cursor).map(|hover| hover.markdown).unwrap_or_default()
}

const HALVE: &str = "
[[ops]]
name = \"my.halve\"
doc = \"Keeps every other column.\"
args = [{ name = \"x\", type = 'R.Tensor((\"n\", \"m\"), dtype=\"d\")' }]
attrs = [{ name = \"axis\", type = \"int\", default = 0, doc = \"Which\" }]
where = \"m % 2 == 0\"
result = 'x'
";

/// Returns the hover of `my.halve` as `rx.toml` declares it.
fn hover_of_declared(rx_toml: &str) -> String {
    let text = "@R.function
def main(x: R.Tensor((\"n\", 6), \"float32\")):
    y = R.my.hal$0ve(x, axis=1)
    return y
";
    let mut fixture = Fixture::new(text);
    let (settings, mistakes) = rx_settings::read(rx_toml, Path::new("/"));
    assert_eq!(mistakes, []);
    let (operators, mistakes) = declared_operators(&settings.ops);
    assert_eq!(mistakes, []);
    fixture.workspace.set_operators(fixture.file, Arc::new(operators));
    hover(&fixture)
}

#[test]
fn hover_of_a_project_operator_shows_its_declaration() {
    let wanted = "```python\nR.my.halve(x, axis=0)\n```\nKeeps every other column. Gives `x`, where `m % 2 == 0`.\n\
                  - `x` (operand): `R.Tensor((\"n\", \"m\"), dtype=\"d\")`.\n- `axis` (attribute): Which.\n";
    assert_eq!(hover_of_declared(HALVE), wanted);
}

#[test]
fn hover_of_an_attribute_without_doc_says_where_it_is_declared() {
    let text = hover_of_declared(&HALVE.replace(", doc = \"Which\"", ""));
    assert!(text.ends_with("- `axis` (attribute): Declared in rx.toml.\n"), "{text}");
}

fn of(body: &str) -> String {
    hover(&Fixture::body(body))
}

#[test]
fn hover_of_a_variable_shows_type_rule_and_cost() {
    let text = of("y$0 = R.nn.conv2d(x, w, strides=[2, 2], padding=[3, 3, 3, 3])\nreturn y\n");
    assert!(text.contains("y: R.Tensor((1, 64, 112, 112), dtype=\"float32\")"), "{text}");
    assert!(text.contains("- axis 2: `(224 + 3 + 3 - 1*(7 - 1) - 1) // 2 + 1 = 112`"), "{text}");
    assert!(text.contains("cost: 236.03 M operations, 3.67 MiB moved"), "{text}");
    let use_of_it = of("y = R.abs(x)\nz = R.abs(y$0)\nreturn z\n");
    assert!(use_of_it.contains("y: R.Tensor((1, 3, 224, 224)"), "{use_of_it}");
}

#[test]
fn hover_of_an_annotated_variable_shows_the_inferred_type() {
    let text = of("y$0: R.Tensor(dtype=\"float32\", ndim=4) = R.abs(x)\nreturn y\n");
    assert!(text.contains("R.Tensor((1, 3, 224, 224), dtype=\"float32\")"), "{text}");
}

#[test]
fn operators_keywords_and_dtypes_have_docs() {
    let text = of("y = R.nn.rel$0u(x)");
    assert!(text.contains("R.nn.relu(data)") && text.contains("docs/operators.md#rnnrelu"), "{text}");
    let text = of("y = R.nn.conv2d(x, w, str$0ides=[1, 1])");
    assert!(text.starts_with("`strides` of `R.nn.conv2d`: integer or integers, default `[1, 1]`"), "{text}");
    assert_eq!(of("y = R.astype(x, \"flo$0at16\")"), "`float16`: floating point, 2 bytes per element");
    assert_eq!(of("y = R.nn.relu(\n    da$0ta=x,\nz = x\n").lines().next(), Some("`data` of `R.nn.relu`: tensor"));
}

#[test]
fn hover_of_a_dim_shows_its_source() {
    let text = of(
        "y: R.Tensor((1, 6$04, 112, 112), \"float32\") = R.nn.conv2d(x, w, strides=[2, 2], padding=[3, 3, 3, 3])\nreturn y\n",
    );
    assert!(text.starts_with("axis 1 of `y` is 64\n- line 14: R.nn.conv2d"), "{text}");
    assert!(text.contains("`w`"), "{text}");
    let mut chain = "a = R.abs(x)\n".to_owned() + &"a = R.abs(a)\n".repeat(60);
    chain.push_str("y: R.Tensor((1, 3, 2$024, 224), \"float32\") = R.abs(a)\nreturn y\n");
    let long = of(&chain);
    assert!(long.contains("R.abs keeps axis 2 of `a`") && long.lines().count() == 3, "{long}");
    let symbol = of("y: R.Tensor((n$0, 8), \"float16\") = R.abs(s)\nreturn y\n");
    assert!(symbol.contains("A symbolic dim"), "{symbol}");
}

#[test]
fn hover_of_a_dtype_in_an_annotation_shows_its_source() {
    let dtype = "`float32`: floating point, 4 bytes per element\n\nthe dtype of `y` is float32\n- line 14: ";
    let named = of("y: R.Tensor((1, 3, 224, 224), \"flo$0at32\") = R.abs(x)\nreturn y\n");
    assert!(named.starts_with(&format!("{dtype}R.abs keeps the dtype of `x`\n")), "{named}");
    assert!(named.contains("parameter `x: "), "{named}");
    let without_shape = of("y: R.Tensor(\"flo$0at32\", ndim=4) = R.abs(x)\nreturn y\n");
    assert_eq!(without_shape, named);
    let cast = of("y: R.Tensor((1, 3, 224, 224), \"flo$0at16\") = R.astype(x, \"float16\")\nreturn y\n");
    assert!(cast.ends_with("\n- line 14: R.astype: the dtype is float16, from `dtype`"), "{cast}");
    let default = of("y: R.Tensor((1, 3, 224, 224), dtype=\"in$0t32\") = R.argsort(x)\nreturn y\n");
    assert!(default.ends_with("R.argsort: the dtype is int32, from `dtype`, by default"), "{default}");
}

#[test]
fn hover_of_a_function_shows_its_cost() {
    let text = "n = TypeVar(\"n\")
@I.ir_module
class Module:
    @R.function
    def f$0(x: R.Tensor((n, 8), \"float32\")):
        y = R.add(x, x)
        return y
";
    let text = hover(&Fixture::new(text));
    assert!(text.ends_with("\nCost:\n- operations: n * 8\n- moved: n * 96 B\n- peak memory: n * 32 B"), "{text}");
}

#[test]
fn hover_of_functions_and_buffers_shows_their_parameters() {
    assert!(of("y = R.call_tir(cls.re$0lu, (x,))").contains("@T.prim_func\ndef relu(x: T.Buffer((4, 8), \"float32\")"));
    let text = "@T.prim_func\ndef f(a: T.Buffer((4,), \"int8\")):\n    for i in range(4):\n        $0a[i] = a[i]\n";
    assert_eq!(hover(&Fixture::new(text)), "```python\na: T.Buffer((4,), \"int8\")\n```");
}
