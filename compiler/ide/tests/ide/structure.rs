//! Outline, folds, selection ranges and call hierarchy.

use crate::fixture::Fixture;
use rx_base::Span;
use rx_db::FileKind;
use rx_ide::{FoldKind, Outline};

const MODULE: &str = "from tvm.script import ir as I
from tvm.script import relax as R
# One.
# Two.
n = TypeVar(\"n\")

@I.ir_module
class Module:
    @T.prim_func
    def relu(a: T.Buffer((4,), \"float32\"), b: T.Buffer((4,), \"float32\")):
        for i in range(4):
            with T.sblock(\"é\"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi]

    @R.function
    def main(
        x: R.Tensor((4,), \"float32\"),
    ) -> R.Tensor((4,), \"float32\"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.relu, (x,), out_ty=R.Tensor((4,), \"float32\"))
            gv = R.add(y, x)
            R.output(gv)
        return cls.other(gv)

    @R.function
    def other(x: R.Any):
        return x
";

fn shown(parts: &[Outline], depth: usize, into: &mut Vec<String>) {
    for part in parts {
        let detail = part.detail.as_ref().map_or_else(String::new, |detail| format!(" {detail}"));
        into.push(format!("{}{:?} {}{detail}", "  ".repeat(depth), part.kind, part.name));
        assert!(part.span.start <= part.selection.start && part.selection.end <= part.span.end, "{part:?}");
        shown(&part.children, depth + 1, into);
    }
}

#[test]
fn the_outline_has_modules_functions_blocks_and_bindings() {
    let fixture = Fixture::of(MODULE, FileKind::Rx);
    let mut lines = Vec::new();
    shown(&rx_ide::outline(&fixture.view()), 0, &mut lines);
    let expected = [
        "Global n",
        "Module Module",
        "  PrimFunc relu (a, b)",
        "    Block sblock é",
        "      Binding vi",
        "  Function main (x) -> R.Tensor((4,), \"float32\")",
        "    Binding cls",
        "    Block dataflow",
        "      Binding y R.Tensor((4,), dtype=\"float32\")",
        "      Binding gv R.Tensor((4,), dtype=\"float32\")",
        "  Function other (x)",
    ];
    assert_eq!(lines, expected);
    let names: Vec<String> =
        rx_ide::functions(&fixture.view())[0].children.iter().map(|part| part.name.clone()).collect();
    assert_eq!(names, ["relu", "main", "other"]);
}

#[test]
fn constructs_of_several_lines_can_be_folded() {
    let fixture = Fixture::of(MODULE, FileKind::Rx);
    let line = |offset: u32| fixture.view().document().line_column(offset as usize, rx_db::Encoding::Utf8).0;
    let folds: Vec<(u32, u32, FoldKind)> = rx_ide::folds(&fixture.view())
        .iter()
        .map(|fold| (line(fold.span.start), line(fold.span.end), fold.kind))
        .collect();
    let region = |start, end| (start, end, FoldKind::Region);
    let expected = [
        (0, 1, FoldKind::Imports),
        (2, 3, FoldKind::Comment),
        region(7, 28),
        region(9, 13),
        region(10, 13),
        region(11, 13),
        region(16, 18),
        region(18, 24),
        region(20, 23),
        region(27, 28),
    ];
    assert_eq!(folds, expected);
}

#[test]
fn a_selection_grows_from_the_word_to_the_file() {
    let place = MODULE.find("relu, (x,)").expect("a place");
    let fixture = Fixture::of(MODULE, FileKind::Rx);
    let selections = rx_ide::selections(&fixture.view(), place);
    let texts: Vec<&str> = selections.iter().map(|span| &MODULE[span.range()]).collect();
    assert_eq!(texts[..3], ["relu", "cls.relu", "R.call_tir(cls.relu, (x,), out_ty=R.Tensor((4,), \"float32\"))"]);
    assert!(texts[3].starts_with("y = R.call_tir(") && texts[3].ends_with("))"));
    assert!(texts[4].starts_with("y =") && texts[4].ends_with("R.output(gv)"));
    assert!(texts[5].starts_with("with R.dataflow") && texts[5].ends_with("R.output(gv)"));
    assert!(texts[6].starts_with("cls =") && texts[6].ends_with("other(gv)"));
    assert!(texts.iter().any(|text| text.starts_with("@R.function") && text.ends_with("other(gv)")));
    assert!(texts.iter().any(|text| text.starts_with("@I.ir_module") && text.ends_with("return x")));
    assert_eq!(texts.last(), Some(&MODULE));
    for pair in selections.windows(2) {
        assert!(pair[1].start <= pair[0].start && pair[0].end <= pair[1].end, "{pair:?}");
    }
    let keyword = MODULE.find("out_ty").expect("a keyword");
    let texts: Vec<&str> =
        rx_ide::selections(&fixture.view(), keyword).iter().map(|span| &MODULE[span.range()]).collect();
    assert_eq!(texts[0], "out_ty");
}

#[test]
fn calls_go_both_ways() {
    let fixture = Fixture::of(MODULE, FileKind::Rx);
    let view = fixture.view();
    let at = |text: &str| MODULE.find(text).expect("a place");
    let names = |calls: Vec<rx_ide::Call>| -> Vec<(String, Vec<Span>)> {
        calls.into_iter().map(|call| (call.function.name, call.places)).collect()
    };
    let span = |text: &str, name: &str| {
        let start = (at(text) + text.find(name).expect("the name")) as u32;
        Span::new(start, start + name.len() as u32)
    };
    let out = names(rx_ide::outgoing(&view, at("main(")));
    let expected =
        [("relu".to_owned(), vec![span("cls.relu", "relu")]), ("other".to_owned(), vec![span("cls.other", "other")])];
    assert_eq!(out, expected);
    assert_eq!(names(rx_ide::incoming(&view, at("relu(a"))), [("main".to_owned(), vec![span("cls.relu", "relu")])]);
    assert_eq!(names(rx_ide::incoming(&view, at("main("))), []);
    assert_eq!(rx_ide::function_at(&view, at("relu, (x"))[0].selection, span("def relu", "relu"));
    assert_eq!(rx_ide::function_at(&view, at("y = ")), []);
}

#[test]
fn the_syntax_tree_says_how_a_text_is_read() {
    let text = "@R.function\ndef f(x: R.Tensor((n, 4), \"float32\")):\n    y = R.add(x, -x\n    return (y, 2)\n";
    let fixture = Fixture::of(text, FileKind::Rx);
    let all = rx_ide::syntax_tree(&fixture.view(), None);
    let tree = "\
Function(Relax) `f` 1:1-5:1
  Decorator 1:1-1:12
    Attribute 1:2-1:12  .function
      Name 1:2-1:3  R
  Def 2:1-2:39
    Call 2:10-2:37
      Attribute 2:10-2:18  .Tensor
        Name 2:10-2:11  R
      Tuple 2:19-2:25
        Name 2:20-2:21  n
        Integer 2:23-2:24  4
      String 2:27-2:36  \"float32\"
";
    assert_eq!(all.get(..tree.len()), Some(tree), "{all}");
    let start = text.find("    y").expect("it is there");
    let line = Span::new(start as u32 + 5, start as u32 + 6);
    let binding = rx_ide::syntax_tree(&fixture.view(), Some(line));
    let shown: Vec<&str> = binding.lines().map(str::trim_start).collect();
    assert!(shown[1].starts_with("Assign 3:5-3:20  ! RX0102"), "{binding}");
    assert!(shown.contains(&"Unary 3:18-3:20  Neg"), "{binding}");
}
