use crate::fixture::{Fixture, Random};
use rx_db::FileKind;
use rx_ide::{ItemKey, changed_segments, item_keys};

/// Returns the tokens of a text with their kinds and modifiers.
fn words(text: &str) -> Vec<String> {
    words_of(&Fixture::of(text, FileKind::Rx))
}

fn words_of(fixture: &Fixture) -> Vec<String> {
    let mut shown = Vec::new();
    for key in item_keys(&fixture.view()).iter().flat_map(ItemKey::segments) {
        for word in key.words() {
            let marks = [(word.declaration, "="), (word.library, "~"), (word.dataflow, "&")];
            let marks: String = marks.iter().filter(|(on, _)| *on).map(|(_, mark)| *mark).collect();
            shown.push(format!("{}:{:?}{marks}", &key.segment().text()[word.span.range()], word.kind));
        }
    }
    shown
}

#[test]
fn words_of_a_function() {
    let text = "@R.function
def f(x: R.Tensor((\"n\", \"n * 2\"), \"float32\")):  # é
    n = T.int64()
    with R.dataflow():
        y: R.Tensor = R.nn.softmax(x, axis=-1)
        R.output(y)
    return R.reshape(y, R.shape([n, 'a']))
";
    let expected = "R:Namespace~ function:Operator~ def:Keyword f:Function= x:Parameter= R:Namespace~ Tensor:Type~ n:SymbolicDim n:SymbolicDim \
                    \"float32\":Dtype # é:Comment n:SymbolicDim= T:Namespace~ int64:Dtype~ with:Keyword R:Namespace~ \
                    dataflow:Operator~ y:Variable=& R:Namespace~ Tensor:Type~ R:Namespace~ nn:Namespace~ softmax:Operator~ \
                    x:Parameter axis:Property 1:Number R:Namespace~ output:Operator~ y:Variable return:Keyword R:Namespace~ \
                    reshape:Operator~ y:Variable R:Namespace~ shape:Operator~ n:SymbolicDim a:SymbolicDim";
    assert_eq!(words(text).join(" "), expected);
}

#[test]
fn words_of_a_module() {
    let text = "from tvm.script import relax as rx
@I.ir_module
class Module:
    @T.prim_func
    def p(A: T.Buffer((4,), \"float32\")):
        A[0] = T.float32(1)
    @rx.function
    def main(x: rx.Any):
        cls = Module
        return cls.p(x)
";
    let shown = words(text);
    for wanted in [
        "Module:Class=",
        "p:Function=",
        "A:Parameter=",
        "A:Parameter",
        "Buffer:Type~",
        "float32:Dtype~",
        "rx:Namespace~",
        "cls:Variable=",
        "Module:Class",
        "p:Function",
    ] {
        assert!(shown.iter().any(|word| word == wanted), "{wanted} in {shown:?}");
    }
}

#[test]
fn the_words_of_a_segment_are_known_by_its_key() {
    let lines: String = (0..200).map(|at| format!("    y{at} = R.add(x, x)\n")).collect();
    let text = format!("@R.function\ndef f(x: R.Tensor((4,), \"float32\")):\n{lines}    return x\n");
    let mut fixture = Fixture::of(&text, FileKind::Rx);
    let before = item_keys(&fixture.view());
    let place = text.find("y100").expect("a binding");
    let _ = fixture.workspace.diagnostics(fixture.file);
    fixture.workspace.edit(fixture.file, place..place, " ");
    fixture.workspace.edit(fixture.file, place..place + 1, "");
    let after = item_keys(&fixture.view());
    let (replaced, by) = changed_segments(&before, &after);
    assert!(replaced.len() <= 3 && by.len() <= 3, "{replaced:?} are replaced by {by:?}");
    let segments = |items: &[ItemKey]| items.iter().flat_map(ItemKey::segments).count();
    assert!(replaced.end < segments(&before) - 3, "{replaced:?} of {}", segments(&before));
    let words = |items: &[ItemKey]| items.iter().flat_map(ItemKey::segments).flat_map(|key| key.words()).count();
    assert_eq!(words(&before), words(&after));
    assert_eq!(changed_segments(&after, &after).0.len(), 0);
}

#[test]
fn parameter_of_a_nested_function_is_a_variable_after_it() {
    let text = "@R.function
def f(x: R.Any):
    @R.function
    def inner(y: R.Any):
        return y
    y = inner(x)
    return y
";
    let shown = words(text);
    let kinds: Vec<&str> = shown.iter().filter_map(|word| word.strip_prefix("y:")).collect();
    assert_eq!(kinds, ["Parameter=", "Parameter", "Variable=", "Variable"]);
}

#[test]
fn bindings_of_a_dataflow_block_with_a_wrong_column_keep_their_modifier() {
    // The check takes a line in the column of no block as part of the innermost one.
    let text = "@R.function
def f(x: R.Any):
    with R.dataflow():
        a = R.abs(x)
      b = R.abs(x)
        c = R.abs(x)
        R.output(c)
    d = R.abs(x)
        e = R.abs(x)
    return e
";
    let shown = words(text);
    let declared: Vec<&str> = shown.iter().filter(|word| word.contains("Variable=")).map(String::as_str).collect();
    assert_eq!(declared, ["a:Variable=&", "b:Variable=&", "c:Variable=&", "d:Variable=", "e:Variable="]);
}

#[test]
fn symbolic_dim_has_one_kind_in_all_segments_of_its_function() {
    let bindings: String = (0..100).map(|at| format!("    y{at} = R.add(x, x)\n")).collect();
    // The check looks up no name in a loop, which has no meaning in a Relax function.
    let rest = "    for i in range(m):\n        z = m\n    return x\n";
    let text = format!("@R.function\ndef f(x: R.Any):\n    m = T.int64()\n{bindings}{rest}");
    let shown = words(&text);
    let kinds: Vec<&str> = shown.iter().filter_map(|word| word.strip_prefix("m:")).collect();
    assert_eq!(kinds, ["SymbolicDim=", "SymbolicDim", "SymbolicDim"]);
}

#[test]
fn words_after_random_edits_are_those_of_a_fresh_file() {
    const PIECES: [&str; 16] = [
        "",
        "",
        " ",
        "    ",
        "\n",
        "\n        ",
        "y = x\n",
        "m",
        "    m = T.int64()\n",
        "    with R.dataflow():\n",
        "        R.output(y1)\n",
        "    return x\n",
        "(",
        ")",
        "\"",
        "# é🦀\n",
    ];
    let bindings: String = (0..90).map(|at| format!("        y{at} = R.add(x, x)\n")).collect();
    let symbol = "    m = T.int64()\n    w = R.match_cast(x, R.Tensor((m, 4), \"float32\"))\n";
    let after = "    z = R.add(y1, x)\n    s = R.zeros((m, 4), \"float32\")\n";
    let block = format!("    with R.dataflow():\n{bindings}        R.output(y1)\n{symbol}{after}");
    let text = format!("@R.function\ndef f(x: R.Tensor((\"n\", 4), \"float32\")):\n{block}{block}    return z\n");
    for seed in 1..=12 {
        let mut random = Random(seed);
        let mut fixture = Fixture::of(&text, FileKind::Rx);
        for step in 0..60 {
            let text = fixture.text();
            let from = text.floor_char_boundary(random.below(text.len() + 1));
            let to = text.floor_char_boundary((from + random.below(30)).min(text.len())).max(from);
            fixture.workspace.edit(fixture.file, from..to, PIECES[random.below(PIECES.len())]);
            let text = fixture.text();
            assert_eq!(words_of(&fixture), words(&text), "seed {seed}, step {step}:\n{text}");
        }
    }
}
