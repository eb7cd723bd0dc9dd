//! Refactorings: each is applied, and the result is compared and checked.

use crate::fixture::Fixture;
use rx_base::Span;
use rx_db::{FileKind, Workspace};
use rx_ide::{Checked, Refactoring};

const HEADER: &str = "@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), \"float32\"), w: R.Tensor((8, 4), \"float32\")):
        cls = Module
";

const IMPORTS: &str = "import tvm
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

";

fn check(text: &str, kind: FileKind) -> Checked {
    let mut workspace = Workspace::new();
    let file = workspace.add(text, kind);
    Checked { diagnostics: workspace.diagnostics(file), types: workspace.types(file) }
}

/// Returns the refactorings for the text between `$0` and `$1`, or at `$0`, each with the changed text.
fn refactored(text: &str, kind: FileKind) -> Vec<(Refactoring, String)> {
    // `$0` is removed before the end is used.
    let end = text.find("$1").map(|end| end - 2);
    let fixture = Fixture::of_kind(&text.replacen("$1", "", 1), kind);
    let range = Span::new(fixture.cursor as u32, end.unwrap_or(fixture.cursor) as u32);
    let before = fixture.workspace.diagnostics(fixture.file);
    let mut checked = |text: &str| check(text, kind);
    let found = rx_ide::refactorings(&fixture.view(), range, &before, &|_| true, &mut checked);
    found.into_iter().map(|found| (found.clone(), fixture.applied(&found.edits))).collect()
}

/// Returns the text after the refactoring whose title begins with `title`, in an `.rx` file and in a Python file, which
/// must agree. `None` if it is not offered.
fn applied(body: &str, title: &str) -> Option<String> {
    let module = format!("{HEADER}{}", lines(body));
    let of = |text: &str, kind: FileKind| {
        let found = refactored(text, kind).into_iter().find(|(found, _)| found.title.starts_with(title))?;
        let errors = check(&found.1, kind).diagnostics;
        assert!(errors.iter().all(|it| it.severity != rx_base::Severity::Error), "{}: {errors:?}", found.1);
        Some(found.1)
    };
    let rx = of(&module, FileKind::Rx);
    let python = of(&format!("{IMPORTS}{module}"), FileKind::Python);
    assert_eq!(python, rx.as_ref().map(|text| format!("{IMPORTS}{text}")));
    rx.map(|text| text.strip_prefix(HEADER).unwrap_or(&text).to_owned())
}

/// Returns lines with the indentation of a function's body in a module.
fn lines(body: &str) -> String {
    body.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("        {line}\n") }).collect()
}

/// Checks that the refactoring turns the body `before` into `after`.
fn becomes(before: &str, title: &str, after: &str) {
    assert_eq!(applied(before, title).as_deref(), Some(&*lines(after)), "{title}: {before}");
}

#[test]
fn extract_variable_names_the_call_at_the_cursor() {
    becomes(
        "y = R.add(R.e$0xp(x), x)  # sum\nreturn y",
        "Extract `exp`",
        "exp = R.exp(x)\ny = R.add(exp, x)  # sum\nreturn y",
    );
    becomes("return R.nn.re$0lu(x)", "Extract `relu`", "relu = R.nn.relu(x)\nreturn relu");
    becomes(
        "y = x; z = R.add(R.$0exp(y), y)\nreturn z",
        "Extract",
        "y = x; exp = R.exp(y); z = R.add(exp, y)\nreturn z",
    );
    becomes(
        "exp = x\nz = R.add(R.$0exp(exp), x)\nreturn z",
        "Extract",
        "exp = x\nexp_1 = R.exp(exp)\nz = R.add(exp_1, x)\nreturn z",
    );
}

#[test]
fn extract_variable_names_the_selected_expression() {
    becomes(
        "y = R.add($0R.split(x, 2)[0]$1, R.split(x, 2)[1])\nreturn y",
        "Extract `split`",
        "split = R.split(x, 2)[0]\ny = R.add(split, R.split(x, 2)[1])\nreturn y",
    );
}

#[test]
fn extract_variable_of_no_value_is_not_offered() {
    for body in [
        "y = R.e$0xp(x)\nreturn y",
        "y = R.reshape(x, ($02 * 4$1, 4))\nreturn y",
        "y = R.sum(x, axis=$0-1$1)\nreturn y",
        "y: R.Ten$0sor((4, 8), \"float32\") = x\nreturn y",
        "y = R.match_cast(x, R.Ten$0sor((4, 8), \"float32\"))\nreturn y",
    ] {
        assert_eq!(applied(body, "Extract"), None, "{body}");
    }
}

#[test]
fn inline_variable_replaces_uses_and_keeps_comments() {
    becomes(
        "y = R.exp(x)  # why\nz = R.add($0y, x)\nreturn z",
        "Inline `y`",
        "# why\nz = R.add(R.exp(x), x)\nreturn z",
    );
    becomes("$0y = R.exp(x)\nz = R.add(y, y)\nreturn z", "Inline `y`", "z = R.add(R.exp(x), R.exp(x))\nreturn z");
    becomes("y$0 = R.exp(x); z = R.add(y, x)\nreturn z", "Inline `y`", "z = R.add(R.exp(x), x)\nreturn z");
    becomes("t = R.split(x, 2)\ny = $0t[0]\nreturn y", "Inline `t`", "y = R.split(x, 2)[0]\nreturn y");
    becomes("t$0 = x, x\ny = t[0]\nreturn y", "Inline `t`", "y = (x, x)[0]\nreturn y");
}

#[test]
fn inline_variable_that_would_change_meaning_is_not_offered() {
    for body in [
        // An operand is bound again before the use.
        "y$0 = R.exp(x)\nx = R.abs(x)\nz = R.add(y, x)\nreturn z",
        // Nothing uses it, or `R.output` needs the variable.
        "y$0 = R.exp(x)\nreturn x",
        "with R.dataflow():\n    y$0 = R.exp(x)\n    R.output(y)\nreturn y",
        // The branches bind one variable.
        "c = R.const(True, \"bool\")\nif c:\n    y$0 = R.exp(x)\nelse:\n    y = x\nreturn y",
    ] {
        assert_eq!(applied(body, "Inline"), None, "{body}");
    }
}

#[test]
fn inline_variable_with_effects_is_not_offered() {
    let text = "@R.function(pure=False)
def main(x: R.Tensor((4,), \"float32\")):
    y$0 = VALUE
    z = R.exp(x)
    return (y, z)
";
    let offered = |value: &str| refactored(&text.replace("VALUE", value), FileKind::Rx).len();
    assert_eq!(offered("R.call_packed(\"f\", x, sinfo_args=R.Tensor((4,), \"float32\"))"), 0);
    assert_eq!(offered("R.abs(x)"), 1);
}

#[test]
fn extract_function_moves_statements_and_calls_it() {
    let text = applied(
        "$0a = R.exp(x)  # why\n# then\nb = R.matmul(a, w)$1\nc = R.add(b, b)\nreturn c",
        "Extract 2 statements into a function",
    );
    let expected = "        b = cls.main_part(x, w)
        c = R.add(b, b)
        return c

    @R.function(private=True)
    def main_part(x: R.Tensor((4, 8), dtype=\"float32\"), w: R.Tensor((8, 4), dtype=\"float32\")) -> R.Tensor((4, 4), dtype=\"float32\"):
        a = R.exp(x)  # why
        # then
        b = R.matmul(a, w)
        return b
";
    assert_eq!(text.as_deref(), Some(expected));
}

#[test]
fn extract_function_of_a_dataflow_block_has_a_dataflow_block() {
    let text = applied(
        "with R.dataflow():\n    $0a = R.exp(x)\n    b = R.abs(x)$1\n    c = R.add(a, b)\n    R.output(c)\nreturn c",
        "Extract 2 statements into a function",
    );
    let text = text.expect("a function");
    let (caller, function) = text.split_once("    @R.function(private=True)\n").expect("a function");
    let expected = "        with R.dataflow():
            main_part_results = cls.main_part(x)
            a = main_part_results[0]
            b = main_part_results[1]
            c = R.add(a, b)
            R.output(c)
        return c

";
    assert_eq!(caller, expected);
    let (_, body) = function.split_once(":\n").expect("a body");
    let expected = "        with R.dataflow():
            a = R.exp(x)
            b = R.abs(x)
            R.output(a, b)
        return (a, b)
";
    assert_eq!(body, expected);
}

#[test]
fn extract_function_declares_symbolic_dims_as_the_file_does() {
    let body = "):\n        cls = Module\n        $0a = R.exp(x)\n        b = R.abs(a)$1\n        return b\n";
    let text = |before: &str, head: &str, declared: &str| {
        let body = body.replace("        cls = Module\n", &format!("{declared}        cls = Module\n"));
        format!("{before}@I.ir_module\nclass Module:\n    @R.function\n    def main{head}{body}")
    };
    for (text, wanted) in [
        (
            text("n = TypeVar(\"n\")\n", "(x: R.Tensor((n, 8), \"float32\")", ""),
            "def main_part(x: R.Tensor((n, 8), dtype=\"float32\"))",
        ),
        (
            text("", "[n](x: R.Tensor((n, 8), \"float32\")", ""),
            "def main_part[n](x: R.Tensor((n, 8), dtype=\"float32\"))",
        ),
        (
            text("", "(x: R.Tensor((\"n\", 8), \"float32\")", "        n = T.int64()\n"),
            "def main_part(x: R.Tensor((\"n\", 8), dtype=\"float32\"))",
        ),
    ] {
        let found = refactored(&text, FileKind::Rx);
        let (_, text) = found.iter().find(|(found, _)| found.title.contains("into a function")).expect("a function");
        assert!(text.contains(wanted), "{text}");
    }
}

#[test]
fn extract_function_of_a_part_that_cannot_move_is_not_offered() {
    for body in [
        "a = R.exp(x)\n$0return a$1",
        "$0a = R.exp$1(x)\nreturn a",
        "$0a = R.exp(x)$1\nreturn x",
        "with R.dataflow():\n    $0a = R.exp(x)\n    R.output(a)$1\nreturn a",
    ] {
        assert_eq!(applied(body, "Extract 1"), None, "{body}");
        assert_eq!(applied(body, "Extract 2"), None, "{body}");
    }
}

/// Returns the module of [`HEADER`] with a function `scaled`, and the body of `main`.
fn with_scaled(scaled: &str, body: &str) -> String {
    let head = "    @R.function
    def scaled(a: R.Tensor((m, 8), \"float32\"), b: R.Tensor((m, 8), \"float32\")):
";
    let header = HEADER.replace("    @R.function\n", &format!("{head}{}\n    @R.function\n", lines(scaled)));
    format!("m = TypeVar(\"m\")\n{header}{}", lines(body))
}

/// Checks that inlining the call in `before` gives `after`.
fn inlines(scaled: &str, before: &str, after: &str) {
    let found = refactored(&with_scaled(scaled, before), FileKind::Rx);
    let text = found.into_iter().find(|(found, _)| found.title == "Inline this call of `scaled`").map(|(_, text)| text);
    assert_eq!(text, Some(with_scaled(scaled, after)), "{before}");
}

#[test]
fn inline_function_replaces_the_call_by_the_body() {
    let scaled = "# the exponent\nc = R.exp(a)\ny = R.add(c, b)  # sum\nreturn y";
    inlines(
        scaled,
        "y = cls.sca$0led(x, x)\nreturn y",
        "# the exponent\nc = R.exp(x)\ny_1 = R.add(c, x)  # sum\ny = y_1\nreturn y",
    );
    inlines(
        scaled,
        "return cls.$0scaled(R.abs(x), x)",
        "a_1 = R.abs(x)\n# the exponent\nc = R.exp(a_1)\ny = R.add(c, x)  # sum\nreturn y",
    );
}

#[test]
fn inline_function_replaces_symbolic_dims() {
    let scaled = "c = R.reshape(a, (8, m))\nreturn R.reshape(c, (m, 8))";
    inlines(scaled, "y = cls.sca$0led(x, x)\nreturn y", "c = R.reshape(x, (8, 4))\ny = R.reshape(c, (4, 8))\nreturn y");
}

#[test]
fn inline_function_into_a_dataflow_block_dissolves_its_own() {
    let scaled = "with R.dataflow():\n    c = R.exp(a)\n    gv = R.add(c, b)\n    R.output(gv)\nreturn gv";
    inlines(
        scaled,
        "with R.dataflow():\n    y = cls.sca$0led(x, x)\n    R.output(y)\nreturn y",
        "with R.dataflow():\n    c = R.exp(x)\n    gv = R.add(c, x)\n    y = gv\n    R.output(y)\nreturn y",
    );
    inlines(
        scaled,
        "y = cls.sca$0led(x, x)\nreturn y",
        "with R.dataflow():\n    c = R.exp(x)\n    gv = R.add(c, x)\n    R.output(gv)\ny = gv\nreturn y",
    );
}

#[test]
fn drop_types_keeps_those_that_say_more_than_the_value() {
    let body = "y: R.Tensor((4, 8), \"float32\") = R.exp(x)  # why
z: R.Tensor(ndim=2, dtype=\"float32\") = R.abs(y)
v$0: R.Tensor(ndim=2, dtype=\"float32\") = R.add(z, z)
return v";
    let dropped = "y = R.exp(x)  # why
z: R.Tensor(ndim=2, dtype=\"float32\") = R.abs(y)
v = R.add(z, z)
return v";
    becomes(body, "Drop the types of the variables of `main`", dropped);
    assert_eq!(
        applied(&dropped.replace("z: R.Tensor(ndim=2, dtype=\"float32\")", "z").replace("v =", "v$0 ="), "Drop"),
        None
    );
}

#[test]
fn drop_types_keeps_many_annotations_that_say_more() {
    let needed: String = (0..20).map(|at| format!("v{at}: R.Tensor(ndim=2, dtype=\"float32\") = R.exp(x)\n")).collect();
    becomes(
        &format!("{needed}y$0: R.Tensor((4, 8), \"float32\") = R.abs(x)\nreturn y"),
        "Drop the types of the variables of `main`",
        &format!("{needed}y = R.abs(x)\nreturn y"),
    );
}

#[test]
fn refactoring_that_changes_a_variable_of_another_function_is_not_offered() {
    let other = "
    @R.function
    def other(x: R.Tensor((4, 8), \"float32\")):
        y = R.exp(x)
        return y
";
    let text = format!("{HEADER}{}{other}", lines("y$0 = R.exp(x)\nz = R.abs(y)\nreturn z"));
    let fixture = Fixture::of_kind(&text, FileKind::Rx);
    let before = fixture.workspace.diagnostics(fixture.file);
    for is_changed in [false, true] {
        let mut checked = |text: &str| {
            let mut checked = check(text, FileKind::Rx);
            for row in checked.types.iter_mut().filter(|row| is_changed && row.function == "other" && row.name == "y") {
                row.struct_info = "R.Object".to_owned();
            }
            checked
        };
        let range = Span::empty(fixture.cursor as u32);
        let found = rx_ide::refactorings(&fixture.view(), range, &before, &|_| true, &mut checked);
        assert_eq!(found.iter().any(|found| found.title == "Inline `y`"), !is_changed);
    }
}
