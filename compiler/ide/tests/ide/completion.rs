use crate::fixture::Fixture;
use rx_base::fix::apply;
use rx_ide::{Completion, CompletionKind, Completions};

fn at(fixture: &Fixture) -> Completions {
    rx_ide::completions(&fixture.view(), fixture.cursor, false)
}

fn labels(body: &str) -> Vec<String> {
    at(&Fixture::body(body)).items.into_iter().map(|item| item.label).collect()
}

fn has(body: &str, label: &str) -> bool {
    labels(body).iter().any(|it| it == label)
}

fn position(labels: &[String], label: &str) -> usize {
    labels.iter().position(|it| it == label).unwrap_or_else(|| panic!("{label} is among {labels:?}"))
}

/// Returns the line of the cursor after the first completion with this label is applied.
fn taken(body: &str, label: &str) -> String {
    let fixture = Fixture::body(body);
    let found = at(&fixture);
    let item = found.items.into_iter().find(|it| it.label == label).unwrap_or_else(|| panic!("{label} is offered"));
    let text = apply(&fixture.workspace.document(fixture.file).text(), &[(item.replace, item.insert)]);
    let line = text[..fixture.cursor].matches('\n').count();
    text.lines().nth(line).unwrap_or_default().trim().to_owned()
}

#[test]
fn operators_are_offered_after_a_trailing_dot() {
    assert!(has("y = R.nn.$0", "conv2d") && has("y = R.nn.$0\nz = x\nreturn z", "relu"));
    assert!(!has("y = R.nn.$0", "add") && has("y = R.$0", "add") && has("y = R.$0", "nn"));
    assert_eq!(taken("y = R.nn.co$0", "conv2d"), "y = R.nn.conv2d");
    assert_eq!(taken("y = R.nn.re$0lu(x)", "relu"), "y = R.nn.relu(x)");
    // An operator of an inner namespace is found by its own name.
    assert_eq!(taken("y = R.conv2$0(x)", "nn.conv2d"), "y = R.nn.conv2d(x)");
    assert!(has("y = T.fl$0", "float32") && has("y = R.con$0", "const"));
    assert!(at(&Fixture::body("y = R.$0")).incomplete && !at(&Fixture::body("y = R.nn.$0")).incomplete);
}

#[test]
fn old_spellings_are_marked() {
    let found = at(&Fixture::body("y: R.Ob$0"));
    assert!(found.items.iter().any(|it| it.label == "Object" && it.deprecated), "{found:?}");
}

#[test]
fn docs_come_later() {
    let fixture = Fixture::body("y = R.nn.rel$0");
    let found = at(&fixture);
    let relu = found.items.iter().find(|it| it.label == "relu").and_then(|it| it.subject.clone()).expect("a subject");
    let item = fixture.workspace.document(fixture.file).locate(fixture.cursor).expect("a place").item;
    let doc = rx_ide::completion_doc(&fixture.view(), item, &relu).expect("docs");
    assert!(doc.contains("R.nn.relu(data)") && doc.contains("operators.md#rnnrelu"), "{doc}");
}

#[test]
fn keywords_are_those_not_given_yet() {
    let all = labels("y = R.nn.conv2d(x, w, strides=[1, 1], $0)");
    assert!(
        all.iter().any(|it| it == "padding=") && !all.iter().any(|it| it == "strides=" || it == "data="),
        "{all:?}"
    );
    assert_eq!(taken("y = R.nn.conv2d(x, w, pad$0", "padding="), "y = R.nn.conv2d(x, w, padding=");
    let fixture = Fixture::body("y = R.nn.conv2d(x, w, pad$0");
    let padding = at(&fixture).items.into_iter().find(|it| it.label == "padding=").expect("it is offered");
    assert!(padding.detail.contains("default [0, 0]"), "{padding:?}");
}

#[test]
fn keywords_of_t_are_those_not_given_yet() {
    let all = labels("y = T.if_then_else(x, f=1, $0)");
    let has = |wanted: &str| all.iter().any(|it| it == wanted);
    assert!(has("t=") && !has("f=") && !has("cond="), "{all:?}");
    assert_eq!(taken("y = T.Cast(\"fl$0\", x)", "float16"), "y = T.Cast(\"float16\", x)");
}

#[test]
fn attributes_have_values() {
    assert_eq!(
        taken("y = R.nn.conv2d(x, w, data_layout=\"NH$0\")", "NHWC"),
        "y = R.nn.conv2d(x, w, data_layout=\"NHWC\")"
    );
    assert_eq!(taken("y = R.nn.conv2d(x, w, data_layout=$0", "\"NHWC\""), "y = R.nn.conv2d(x, w, data_layout=\"NHWC\"");
    assert_eq!(taken("y = R.astype(x, \"fl$0", "float16"), "y = R.astype(x, \"float16");
    assert_eq!(taken("y: R.Tensor((2,), \"$0\") = x", "int8"), "y: R.Tensor((2,), \"int8\") = x");
    assert!(has("y = R.sum(x, keepdims=$0)", "True"));
}

#[test]
fn variables_that_fit_the_rule_come_first() {
    let all = labels("v = R.astype(x, \"float32\")\ny = R.add(x, $0)");
    assert!(position(&all, "v") < position(&all, "s"), "{all:?}");
    assert!(position(&all, "x") < position(&all, "w"), "{all:?}");
    // While other arguments are missing, values that are not tensors come later.
    let all = labels("t = (x, x)\ny = R.nn.conv2d($0");
    assert!(position(&all, "x") < position(&all, "t"), "{all:?}");
    assert_eq!(taken("y = R.add(x, $0)", "s"), "y = R.add(x, s)");
}

#[test]
fn variables_that_fit_with_some_value_for_the_missing_operand_come_first() {
    let weight = "k = R.zeros(R.shape([4, n, 1, 1]), \"float32\")\n";
    let image = "i = R.zeros(R.shape([1, n, 8, 8]), \"float32\")\n";
    let other = "b = R.zeros(R.shape([4]), \"float32\")\n";
    let all = labels(&format!("{weight}{image}{other}y = R.nn.conv2d($0"));
    assert!(position(&all, "i") < position(&all, "b"), "{all:?}");
    let all = labels(&format!("{weight}{image}{other}y = R.nn.conv2d(i, $0"));
    assert!(position(&all, "k") < position(&all, "b"), "{all:?}");
    // Without a pair that fits, all tensors are offered alike.
    let all = labels(&format!("{other}y = R.nn.conv2d($0"));
    assert!(position(&all, "b") < position(&all, "n"), "{all:?}");
}

#[test]
fn names_of_a_dataflow_block_stay_in_it() {
    let block = "with R.dataflow():\n    lv = R.abs(x)\n    gv = R.abs(lv)\n    R.output(gv)\n";
    assert!(!has(&format!("{block}y = R.abs($0)"), "lv") && has(&format!("{block}y = R.abs($0)"), "gv"));
    assert!(has("with R.dataflow():\n    lv = R.abs(x)\n    gv = R.abs($0)", "lv"));
    assert!(!has("y = R.abs($0)\nz = x", "z"));
}

#[test]
fn functions_and_symbols() {
    assert_eq!(labels("y = cls.$0"), ["main", "relu"]);
    assert_eq!(labels("y = R.call_tir(cls.$0"), ["relu", "main"]);
    assert_eq!(taken("y = R.call_tir(cls.re$0, (x,))", "relu"), "y = R.call_tir(cls.relu, (x,))");
    let all = labels("y: R.Tensor(($0), \"float32\") = x");
    assert!(position(&all, "n") < position(&all, "x"), "{all:?}");
}

#[test]
fn statement_snippets_need_client_support() {
    let fixture = Fixture::body("y = x\n$0");
    let with = rx_ide::completions(&fixture.view(), fixture.cursor, true);
    let snippets: Vec<&Completion> = with.items.iter().filter(|it| it.kind == CompletionKind::Snippet).collect();
    for label in ["dataflow", "call_tir", "match_cast", "function", "prim_func"] {
        assert!(snippets.iter().any(|it| it.label == label && it.snippet), "{label}");
    }
    assert!(at(&fixture).items.iter().all(|it| !it.snippet));
    let conv = Fixture::body("y = R.nn.conv2$0");
    let conv = rx_ide::completions(&conv.view(), conv.cursor, true);
    assert_eq!(conv.items[0].insert, "conv2d(${1:data}, ${2:weight})$0");
}

#[test]
fn nothing_is_offered_in_comments_numbers_and_plain_strings() {
    for body in ["y = x  # R.$0", "y = 12$0", "y = R.str(\"R.$0\")", "# é $0"] {
        assert_eq!(labels(body), [""; 0], "{body}");
    }
}

#[test]
fn completion_at_any_offset_of_broken_text_succeeds() {
    let text = "@R.function\ndef f(x: R.Tensor((\"é\", 3), \"float32\")):\r\n    y = R.add((x, \"a\n    with R.dataflow(:\n\t]z = R.nn.\r    q: R.";
    for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
        let mut with = text.to_owned();
        with.insert_str(at, "$0");
        let fixture = Fixture::new(&with);
        let view = fixture.view();
        let found = rx_ide::completions(&view, fixture.cursor, true);
        for item in found.items {
            assert!(text.get(item.replace.range()).is_some(), "{at}: {item:?}");
        }
        let _ = (rx_ide::hover(&view, at), rx_ide::signature_help(&view, at));
        let diagnostics = fixture.workspace.diagnostics(fixture.file);
        for fix in rx_ide::quick_fixes(&view, &diagnostics, rx_base::Span::empty(at as u32)) {
            assert!(fix.edits.iter().all(|(span, _)| text.get(span.range()).is_some()), "{at}: {fix:?}");
        }
    }
}

/// Returns the labels at the cursor of a whole text.
fn labels_of(text: &str) -> Vec<String> {
    at(&Fixture::new(text)).items.into_iter().map(|item| item.label).collect()
}

#[test]
fn decorators_come_with_the_skeleton_of_their_definition() {
    assert_eq!(labels_of("@$0"), ["@R.function", "@I.ir_module", "@T.prim_func"]);
    assert_eq!(labels_of("@I.ir_module\nclass Module:\n    @$0"), ["@R.function", "@T.prim_func"]);
    assert_eq!(labels_of("@R.fu$0"), ["function"]);
    assert_eq!(labels_of("@T.$0")[0], "prim_func");
    let first = |text: &str| {
        let fixture = Fixture::new(text);
        let found = rx_ide::completions(&fixture.view(), fixture.cursor, true).items.swap_remove(0);
        (fixture.text()[found.replace.range()].to_owned(), found.insert)
    };
    let (replaced, insert) = first("@$0");
    assert_eq!(replaced, "@");
    assert!(insert.starts_with("@R.function\ndef ${1:main}("), "{insert}");
    // A definition that is there already gets only its decorator.
    assert_eq!(first("@R.f$0\ndef main(x: R.Any):\n    return x\n"), ("f".to_owned(), "function".to_owned()));
    assert_eq!(labels_of("@R.function(pr$0"), ["private="]);
}

#[test]
fn frequent_operators_come_first() {
    let all = labels("y = R.nn.soft$0");
    assert!(position(&all, "softmax") < position(&all, "softplus"), "{all:?}");
    assert_eq!(labels("y = R.ma$0")[0], "matmul");
    assert_eq!(labels("y = R.nn.co$0")[0], "conv2d");
    assert_eq!(labels("y: R.T$0")[..2], ["Tensor", "Tuple"]);
}

#[test]
fn unused_values_come_before_used_ones() {
    let all = labels("a1 = R.abs(x)\na2 = R.exp(a1)\ny = R.negative(a$0");
    assert_eq!(all[..2], ["a2", "a1"]);
    let text = "@R.function\ndef f(w1: R.Tensor((4,), \"float32\"), w2: R.Tensor((4,), \"float32\")):\n    ";
    assert_eq!(labels_of(&format!("{text}y = R.abs(w$0"))[..2], ["w1", "w2"]);
    assert_eq!(labels_of(&format!("{text}z = R.abs(w1)\n    y = R.abs(w$0"))[..2], ["w2", "w1"]);
}

/// Returns 40 statements, more than a segment has, that use only `x`. `first` is the number of the first.
fn more_than_a_segment(first: usize) -> String {
    (first..first + 40).map(|at| format!("z{at} = R.abs(x)\n")).collect()
}

#[test]
fn values_used_in_other_segments_come_last() {
    let (one, two, three) = (more_than_a_segment(100), more_than_a_segment(200), more_than_a_segment(300));
    let both = "a1 = R.abs(x)\na2 = R.exp(x)\n";
    let first_two = |body: String| labels(&format!("{body}y = R.negative(a$0"))[..2].to_vec();
    assert_eq!(first_two(format!("{both}{one}{two}")), ["a2", "a1"]);
    // Used in a later segment, in the segment that binds it, and in the segment of the position.
    assert_eq!(first_two(format!("{both}{one}q = R.abs(a2)\n{two}")), ["a1", "a2"]);
    assert_eq!(first_two(format!("{both}q = R.abs(a2)\n{one}{two}")), ["a1", "a2"]);
    assert_eq!(first_two(format!("{both}{one}{two}q = R.abs(a2)\n")), ["a1", "a2"]);
    // An earlier segment uses an earlier variable of this name.
    let earlier = format!("a2 = R.exp(x)\n{one}q = R.abs(a2)\n{two}");
    assert_eq!(first_two(format!("{earlier}{both}{three}")), ["a2", "a1"]);
}

#[test]
fn params_used_in_an_earlier_segment_come_last() {
    let tensor = "R.Tensor((4,), \"float32\")";
    let head = format!("@R.function\ndef f(x: {tensor}, w1: {tensor}, w2: {tensor}):\n");
    let rest: String = more_than_a_segment(100).lines().map(|line| format!("    {line}\n")).collect();
    let first_two =
        |used: &str| labels_of(&format!("{head}    z = R.abs({used})\n{rest}    y = R.abs(w$0"))[..2].to_vec();
    assert_eq!(first_two("x"), ["w1", "w2"]);
    assert_eq!(first_two("w1"), ["w2", "w1"]);
}

#[test]
fn the_variable_being_defined_is_not_offered() {
    assert!(!has("result = R.abs(re$0", "result"));
    // An earlier variable with the same name is.
    assert!(has("result = R.abs(x)\nresult = R.exp(re$0", "result"));
}

#[test]
fn variables_of_the_open_branch_are_offered() {
    let both = "c = R.const(True, \"bool\")\nif c:\n    inner = R.abs(x)\n    y = inner\nelse:\n    ";
    assert!(has("c = R.const(True, \"bool\")\nif c:\n    inner = R.abs(x)\n    y = R.exp(in$0", "inner"));
    assert!(!has(&format!("{both}y = R.exp(in$0"), "inner"));
    assert!(has(&format!("{both}other = x\n    y = R.exp(ot$0"), "other"));
}

#[test]
fn types_and_forms_have_keywords() {
    assert_eq!(labels("y: R.Tensor((n,), dt$0"), ["dtype="]);
    assert_eq!(labels("y: R.Tensor((n,), dtype=\"in$0")[0], "int32");
    assert_eq!(labels("y = R.match_cast(x, t$0")[0], "ty=");
    assert_eq!(labels("y = R.call_tir(cls.relu, (x,), out$0"), ["out_ty="]);
    let classic = "@R.function\ndef f(x: R.Tensor((\"n\",), \"float32\")) -> R.Object:\n    n = T.int64()\n    y = R.call_tir(g, (x,), out$0";
    assert_eq!(labels_of(classic), ["out_sinfo="]);
}

#[test]
fn names_of_a_prim_func_are_offered() {
    let text = "@T.prim_func\ndef f(A: T.Buffer((4, 8), \"float32\"), B: T.Buffer((4, 8), \"float32\")):\n    for i, j in T.grid(4, 8):\n        with T.sblock(\"b\"):\n            v_i, v_j = T.axis.remap(\"SS\", [i, j])\n            ";
    let of = |line: &str| labels_of(&format!("{text}{line}"));
    assert_eq!(of("B[v_$0"), ["v_i", "v_j"]);
    // An index that the buffer already has comes last.
    assert_eq!(of("B[v_i, v_$0"), ["v_j", "v_i"]);
    let all = of("B[v_i, v_j] = $0");
    assert!(all.iter().any(|it| it == "A") && all.iter().any(|it| it == "i"), "{all:?}");
    assert_eq!(of("vk = T.axis.red$0"), ["reduce"]);
}

#[test]
fn long_prim_func_offers_its_parameters_and_last_names() {
    let lets: String = (0..1000).map(|at| format!("    name{at} = T.int32({at})\n")).collect();
    let text = format!("@T.prim_func\ndef f(name: T.Buffer((4,), \"float32\")):\n{lets}    name[na$0");
    let found = at(&Fixture::new(&text));
    let has = |wanted: &str| found.items.iter().any(|it| it.label == wanted);
    assert!(found.incomplete && has("name") && has("name999") && !has("name500"), "{}", found.items.len());
}
