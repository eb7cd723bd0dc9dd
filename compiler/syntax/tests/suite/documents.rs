//! Tests of the division of a file into items and segments, and of positions in it.

use rx_syntax::Encoding::{self, Utf8, Utf16, Utf32};
use rx_syntax::{Document, FileKind, Item, ItemKind};

/// Formats the items, one a line: kind, name, module, number of segments.
fn outline(text: &str, kind: FileKind) -> Vec<String> {
    let document = Document::new(text, kind);
    assert_eq!(document.text(), text);
    let show = |item: &Item| {
        let name = item.name.map_or("-", |name| name.as_str());
        let module = item.module.map_or("-".to_owned(), |module| module.to_string());
        let kind = match item.kind {
            ItemKind::Function(kind) => format!("{kind:?}"),
            kind => format!("{kind:?}"),
        };
        format!("{kind} {name} {module} {}", item.segments.len())
    };
    document.items().iter().map(show).collect()
}

fn complaints(text: &str) -> Vec<(String, String)> {
    let document = Document::new(text, FileKind::Rx);
    let complaint = |item: &Item| {
        let of = |(segment, error): (usize, rx_base::Diagnostic<rx_base::Span>)| {
            (error.message, item.segments[segment].text()[error.primary.range()].to_owned())
        };
        item.indentation_diagnostics().map(of).collect::<Vec<_>>()
    };
    document.items().iter().flat_map(complaint).collect()
}

const SCRIPT: &str = "# from tvm.script import relax as R

metadata = tvm.ir.load_json(\"\"\"{
}\"\"\")
n = TypeVar(\"n\")
@I.ir_module
class Module:
    I.module_attrs({})
    f = R.ExternFunc(\"f\")
    @T.prim_func
    def p(x):
        if x:
            pass
    @R.function(private=True)
    def main(
        x,
    ):
        @R.function
        def inner(y):
            return y
        return x
";

#[test]
fn items_of_a_script() {
    let expected = [
        "Prelude - - 1",
        "Metadata - - 1",
        "Prelude - - 1",
        "ModuleHeader Module 0 1",
        "ModuleStatement - 0 1",
        "Prim p 0 2",
        "Relax main 0 2",
    ];
    assert_eq!(outline(SCRIPT, FileKind::Rx), expected);
    assert_eq!(outline(SCRIPT, FileKind::Python), expected);
    assert_eq!(outline("@R.function\ndef f(x):\n    return x\n", FileKind::Rx), ["Relax f - 2"]);
    assert_eq!(outline("", FileKind::Rx), [""; 0]);
    assert_eq!(outline("\n# nothing\n", FileKind::Rx), ["Prelude - - 1"]);
}

#[test]
fn items_of_a_python_file() {
    let text = "from tvm.script import relax as rx
x = '''
@R.function
def no():
'''
def test():
    @pytest.mark
    @tvm.script.ir_module
    class M:
        @rx.function
        def f(x):
            return x
    check(M)
    @other.function
    def g(): pass
@T.prim_func
def p(): pass
";
    let expected =
        ["Prelude - - 1", "Foreign - - 1", "ModuleHeader M 0 1", "Relax f 0 2", "Foreign - - 1", "Prim p - 1"];
    assert_eq!(outline(text, FileKind::Python), expected);
}

#[test]
fn a_line_indented_too_little_stays_in_its_function() {
    let text = "class M:\n    @R.function\n    def f(x):\n        y = x\nlv\n        return y\n";
    assert_eq!(outline(text, FileKind::Rx), ["ModuleHeader M 0 1", "Relax f 0 2"]);
    let stray = "the line is indented less than the function that contains it";
    assert_eq!(complaints(text), [(stray.to_owned(), "lv".to_owned())]);
}

#[test]
fn mistakes_of_indentation_are_reported_once() {
    let nowhere = |line: &str| ("the line is indented to no enclosing block".to_owned(), line.to_owned());
    let column =
        |line: &str| ("the line is in another column than the class's first member".to_owned(), line.to_owned());
    let text = "class M:\n    a = 1\n        b = 2\n        c = 3\n    d = 4\n";
    assert_eq!(complaints(text), [column("b = 2")]);
    let empty = |line: &str| ("the block has no statement".to_owned(), line.to_owned());
    let text = "def f(x):\n    if x:\n        a = 1\n      b = 2\n      c = 3\n    return x\n";
    assert_eq!(complaints(text), [nowhere("b = 2")]);
    let text = "def f(x):\n    a = 1\n        b = 2\n        c = 3\n    return x\n";
    assert_eq!(complaints(text), [nowhere("b = 2")]);
    let text = "def f(x):\n    with R.dataflow():\n    return x\ndef g(x):\n";
    assert_eq!(complaints(text), [empty("with R.dataflow():"), empty("def g(x):")]);
}

#[test]
fn header_with_inline_block_has_no_body_below() {
    let nowhere = |line: &str| ("the line is indented to no enclosing block".to_owned(), line.to_owned());
    let text =
        "def f(x): a = {1: 2}\n    b = 1\n    if b:\n        c = 2\ndef g(x): return x\ndef h(x):\n    return x\n";
    assert_eq!(complaints(text), [nowhere("b = 1")]);
    assert_eq!(complaints("class M: a = 1\n    b = 2\n    c = 3\nclass N: pass\n"), [nowhere("b = 2")]);
    assert_eq!(complaints("def f(x) -> R.Tensor((2, 3))\n    return x\n"), []);
}

#[test]
fn segments_are_cut_between_statements_of_the_body() {
    let bindings = "        with R.dataflow():\n".to_owned() + &"            lv = R.add(x, x)\n".repeat(100);
    let then = "        if x:\n".to_owned() + &"            a = x\n".repeat(50);
    let branches = then + "        else:\n            a = x\n";
    let text = format!("class M:\n    @R.function\n    def f(x):\n{bindings}{branches}        return x\n");
    let document = Document::new(&text, FileKind::Rx);
    let lines: Vec<u32> = document.items()[1].segments.iter().map(|segment| segment.line_count()).collect();
    assert_eq!(lines, [2, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 58, 1]);
}

const TWO: &str = "\
import numpy as np
from tvm.script import ir as I

def test():
    n = TypeVar(\"n\")
    @I.ir_module
    class A:
        @R.function
        def main(x):
            return x

    from tvm.script import tirx as T
    @I.ir_module
    class B:
        @R.function
        def main(y):
            return y
    assert np.all(A)
";

#[test]
fn module_is_extracted_with_code_outside_of_modules() {
    let document = Document::new(TWO, FileKind::Python);
    let modules: Vec<_> = document.modules().map(|(at, name)| (at, name.map(|name| name.to_string()))).collect();
    assert_eq!(modules, [(0, Some("A".to_owned())), (1, Some("B".to_owned()))]);
    let alone = document.alone(Some(1), &|_| None);
    let expected = "@I.ir_module\nclass B:\n    @R.function\n    def main(y):\n        return y\n";
    assert!(alone.ends_with(expected) && alone.contains("\nn = TypeVar(\"n\")\n"), "{alone}");
    assert!(alone.contains("\nfrom tvm.script import tirx as T\n"), "{alone}");
    assert!(!alone.contains("class A") && !alone.contains("def test") && !alone.contains("assert"), "{alone}");
}

#[test]
fn module_is_extracted_without_functions_outside() {
    let (module, outside) =
        ("class A:\n    @R.function\n    def f(x):\n        return x\n", "@R.function\ndef g(x):\n    return x\n");
    let document = Document::new(&format!("n = TypeVar(\"n\")\n{module}{outside}"), FileKind::Rx);
    assert_eq!(document.alone(Some(0), &|_| None), format!("n = TypeVar(\"n\")\n{module}"));
    assert_eq!(document.alone(None, &|_| None), format!("n = TypeVar(\"n\")\n{outside}"));
}

#[test]
fn file_of_one_module_is_extracted_unchanged() {
    let text = "# about\n@I.ir_module\nclass A:\n    @R.function\n    def main(x):\n        return x\n";
    assert_eq!(Document::new(text, FileKind::Rx).alone(Some(0), &|_| None), text);
}

#[test]
fn positions_in_three_encodings() {
    let text = "a = 1\r\ns = 'é𝄞' # x\nb";
    let document = Document::new(text, FileKind::Rx);
    let after = text.find(" #").unwrap_or(0);
    let all: [(Encoding, u32); 3] = [(Utf8, 12), (Utf16, 9), (Utf32, 8)];
    for (encoding, column) in all {
        assert_eq!(document.line_column(after, encoding), (1, column));
        assert_eq!(document.offset_of(1, column, encoding), after);
    }
    assert_eq!(document.line_column(text.len(), Utf8), (2, 1));
}

#[test]
fn positions_outside_are_cut_down() {
    let document = Document::new("ab\ncd\n", FileKind::Rx);
    assert_eq!(document.offset_of(0, 99, Utf8), 2);
    assert_eq!(document.offset_of(2, 5, Utf8), 6);
    assert_eq!(document.offset_of(9, 0, Utf8), 6);
    assert_eq!(document.line_column(99, Utf8), (2, 0));
    assert_eq!(Document::new("", FileKind::Rx).offset_of(1, 1, Utf16), 0);
}
