//! Tests that formatting changes no diagnostic, for the programs of `tests/mdtest` and `examples`.

use rx_base::{Code, Severity};
use rx_db::{FileKind, Operators};
use rx_syntax::Document;
use rx_syntax::dialect::Dialect;
use rx_tests::check::{check_settings, check_with};
use rx_tests::mdtest::{Language, blocks};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A text, with the operators that its project declares.
struct Text {
    name: String,
    code: String,
    kind: FileKind,
    operators: Arc<Operators>,
}

fn beside(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn texts() -> Vec<Text> {
    let mut texts = Vec::new();
    for path in rx_tests::cases::files(&beside("mdtest"), "md") {
        let mut operators = Arc::default();
        for block in blocks(&std::fs::read_to_string(&path).unwrap_or_default()) {
            let Language::File(kind) = block.language else {
                operators = check_settings(&block.code).1;
                continue;
            };
            let name = format!("{}:{}", path.display(), block.line);
            texts.push(Text { name, code: block.code, kind, operators: operators.clone() });
        }
    }
    for (extension, kind) in [("rx", FileKind::Rx), ("py", FileKind::Python)] {
        for path in rx_tests::cases::files(&beside("../examples"), extension) {
            let code = std::fs::read_to_string(&path).unwrap_or_default();
            texts.push(Text { name: path.display().to_string(), code, kind, operators: Arc::default() });
        }
    }
    texts
}

/// Returns the diagnostics of a text in a fixed order, without positions, because lines move. No release of TVM is
/// chosen: its findings depend on the dialect, which formatting unifies throughout the file.
fn said(text: &Text, code: &str) -> Vec<(Code, Severity, String)> {
    let checked = check_with(code, text.kind, None, &text.operators);
    let mut said: Vec<_> = checked.found.into_iter().map(|found| (found.code, found.severity, found.message)).collect();
    said.sort_by(|a, b| (a.0.number(), &a.2).cmp(&(b.0.number(), &b.2)));
    said
}

/// Formats the text as `rxfmt` does; `None` if that returns an error, or changes nothing.
fn formatted(text: &Text) -> Option<String> {
    let document = Document::new(&text.code, text.kind);
    let own = Dialect::detect(&document);
    let is_refused = rx_syntax::format::errors(&document).next().is_some();
    let formatted = (!is_refused).then(|| rx_syntax::format::checked(&document, own, own))?;
    let formatted = formatted.unwrap_or_else(|difference| panic!("{}: {difference}", text.name));
    (formatted != text.code).then_some(formatted)
}

#[test]
fn formatting_any_program_changes_no_diagnostic() {
    let (mut changed, mut wrong) = (0, Vec::new());
    for text in texts() {
        let Some(formatted) = formatted(&text) else { continue };
        changed += 1;
        let (before, after) = (said(&text, &text.code), said(&text, &formatted));
        if before != after {
            wrong.push(format!("{}:\n  before {before:?}\n  after  {after:?}\n{formatted}", text.name));
        }
    }
    assert!(changed > 50, "{changed} texts are laid out otherwise");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Formats a text.
fn of(code: &str) -> String {
    let document = Document::new(code, FileKind::Rx);
    rx_syntax::format::format(&document, Dialect::detect(&document))
}

#[test]
fn formatting_without_import_of_tir_adds_no_declaration() {
    let body = "@R.function\ndef f(x: R.Tensor((\"n\", 4), dtype=\"float32\")) -> R.Tensor((\"n\", 4), dtype=\"float32\"):\n    return x\n";
    let only_relax = format!("from tvm.script import relax as R\n\n\n{body}");
    assert!(!of(&only_relax).contains("T."), "{}", of(&only_relax));
    let both = format!("from tvm.script import relax as R\nfrom tvm.script import tir as T\n\n\n{body}");
    assert!(of(&both).contains("    n = T.int64()\n"), "{}", of(&both));
}

#[test]
fn formatting_number_in_parentheses_stays_for_a_shape() {
    for shape in ["R.Tensor((4), \"float32\")", "R.Shape((4))", "R.Tensor(((4)), \"float32\")"] {
        let code = format!("from tvm.script import relax as R\n\n@R.function\ndef main(x: {shape}):\n    return x\n");
        assert!(of(&code).contains("((4)"), "{}", of(&code));
    }
}

#[test]
fn formatting_number_in_parentheses_stays_in_a_body() {
    let body = "    a: R.Tensor((4), dtype=\"float32\") = x\n    b = R.call_tir(f, (x,), out_ty=R.Tensor((2 * 4), dtype=\"float32\"))\n    return b\n";
    let code = format!("@R.function\ndef main(x: R.Tensor((4,), dtype=\"float32\")):\n{body}");
    assert_eq!(of(&code), code);
}

/// Checks that formatting changes no diagnostic, and that both texts contain `part`.
#[track_caller]
fn keeps(code: &str, part: &str) {
    let text = Text { name: String::new(), code: code.to_owned(), kind: FileKind::Rx, operators: Arc::default() };
    let formatted = of(code);
    assert_eq!(said(&text, code), said(&text, &formatted), "{formatted}");
    assert!(formatted.contains(part), "{formatted}");
}

#[test]
fn formatting_functions_without_decorator_keep_their_dims() {
    let code = "def main(x: R.Tensor((\"n\", 4), dtype=\"float32\")):\n    n = T.int64()\n";
    keeps(code, code);
    let after = "@I.ir_module\ndef lost(x: R.Tensor((\"n\", 4), dtype=\"float32\")):\n    n = T.int64()\nclass Module:\n    @R.function\n    def main(x: R.Tensor((\"n\",), dtype=\"float32\")):\n        n = T.int64()\n        return R.reshape(x, R.shape([n, 1]))\n";
    keeps(after, "    def main(x: R.Tensor((\"n\",)");
}

#[test]
fn formatting_defines_no_name_that_another_function_lacks() {
    let code = "# from tvm.script import tirx as T\n\n@I.ir_module\nclass Module:\n    @T.prim_func(private=True)\n    def copy(a: T.Buffer((4,), \"float32\"), b: T.handle):\n        B = T.match_buffer(b, (n, 4))\n        for i in range(4):\n            B[0, i] = a[i]\n\n    @R.function\n    def main(x: R.Tensor((\"n\", 64), dtype=\"float32\")):\n        return x\n";
    keeps(code, "(\"n\", 64)");
    assert!(of(&code.replace("(n, 4)", "(1, 4)")).contains("n = TypeVar(\"n\")"));
}

#[test]
fn formatting_symbol_under_another_name_stays() {
    let code =
        "k = TypeVar(\"uint32\")\n\n@R.function\ndef main[m](x: R.Tensor((k, m), dtype=\"float32\")):\n    return x\n";
    keeps(code, "k = TypeVar(\"uint32\")");
}

#[test]
fn formatting_comment_for_one_line_keeps_the_lines() {
    let code = "@R.function\ndef main(x: R.Tensor((2, 3), dtype=\"float32\")):\n    a = R.add(\n        a1,  # rx: ignore[undefined-name]\n        a2,\n    )\n    return a\n";
    assert_eq!(of(code), code);
}

#[test]
fn formatting_dim_without_declaration_stays_undeclared() {
    let head =
        "@R.function\ndef f(x: R.Tensor((n,), dtype=\"float32\")) -> R.Tensor((\"n * 2\",), dtype=\"float32\"):\n";
    let code = format!(
        "{head}    n = T.int64()\n    return R.call_dps_packed(\"f\", (x,), out_ty=R.Tensor((n * 2,), dtype=\"float32\"))\n"
    );
    assert_eq!(of(&code), code);
}
