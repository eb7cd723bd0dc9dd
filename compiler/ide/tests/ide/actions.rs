use crate::fixture::Fixture;
use rx_base::Span;
use rx_db::FileKind;
use rx_ide::Effect;

/// Returns the fixes at the cursor: title, whether preferred, and the line of the cursor after each.
fn fixes(fixture: &Fixture) -> Vec<(String, bool, String)> {
    let diagnostics = fixture.workspace.diagnostics(fixture.file);
    let at = Span::empty(fixture.cursor as u32);
    let found = rx_ide::quick_fixes(&fixture.view(), &diagnostics, at);
    let line = |text: &str| text[..fixture.cursor.min(text.len())].matches('\n').count();
    found
        .into_iter()
        .map(|fix| {
            let text = fixture.applied(&fix.edits);
            let at = line(&text);
            (fix.title, fix.preferred, text.lines().nth(at).unwrap_or_default().trim().to_owned())
        })
        .collect()
}

#[test]
fn a_mistake_has_its_fixes_and_a_comment() {
    let fixture = Fixture::body("y = R.nn.re$0lo(x)\nreturn y\n");
    let fixes = fixes(&fixture);
    let titles: Vec<&str> = fixes.iter().map(|(title, ..)| title.as_str()).collect();
    assert_eq!(titles, ["change to R.nn.relu", "ignore RX0202 here"], "{fixes:?}");
    assert_eq!(fixes[0].2, "y = R.nn.relu(x)");
    assert_eq!(fixes[1].2, "y = R.nn.relo(x)  # rx: ignore[RX0202]");
}

#[test]
fn the_comment_makes_the_mistake_unreported() {
    for (text, wanted) in [
        ("y = R.add($0x, s)  # why\nreturn y\n", "y = R.add(x, s)  # why  # rx: ignore["),
        ("y = R.add(\n    $0x, s,\n)\nreturn y\n", "  # rx: ignore["),
    ] {
        let fixture = Fixture::body(text);
        let before = fixture.workspace.diagnostics(fixture.file);
        assert_eq!(before.len(), 1, "{before:?}");
        let at = before[0].primary;
        let found = rx_ide::quick_fixes(&fixture.view(), &before, at);
        let ignore = found.iter().find(|fix| fix.title.starts_with("ignore")).expect("a comment");
        let text = fixture.applied(&ignore.edits);
        assert!(text.contains(wanted), "{text}");
        let mut workspace = rx_db::Workspace::new();
        let file = workspace.add(&text, FileKind::Rx);
        assert_eq!(workspace.diagnostics(file), [], "{text}");
    }
}

#[test]
fn mistakes_outside_the_range_have_no_actions() {
    let fixture = Fixture::body("y = R.nn.relo(x)\nz = x$0\nreturn y\n");
    assert_eq!(fixes(&fixture), []);
}

/// Returns the fixes of a convolution of a value by a weight of these shapes: the title, and the call after each.
fn conv_fixes(data: &str, weight: &str) -> Vec<(String, String)> {
    let fixture = Fixture::new(&format!(
        "@R.function\ndef main(x: R.Tensor(({data}), \"float32\"), w: R.Tensor(({weight}), \"float32\")):\n    \
         y = R.nn.conv2d(x, $0w)\n    return y\n"
    ));
    let fixes = fixes(&fixture).into_iter().filter(|(title, ..)| !title.starts_with("ignore"));
    fixes.map(|(title, _, line)| (title, line.trim_start_matches("y = R.nn.").to_owned())).collect()
}

#[test]
fn convolution_of_other_channels_offers_groups_layouts_and_a_permuted_weight() {
    let pair = |title: &str, call: &str| (title.to_owned(), call.to_owned());
    assert_eq!(
        conv_fixes("1, 32, 8, 8", "32, 1, 3, 3"),
        [
            pair("use groups=32", "conv2d(x, w, groups=32)"),
            pair("use kernel_layout=\"IOHW\"", "conv2d(x, w, kernel_layout=\"IOHW\")"),
            pair("insert R.permute_dims with axes=[1, 0, 2, 3]", "conv2d(x, R.permute_dims(w, axes=[1, 0, 2, 3]))"),
        ]
    );
    assert_eq!(
        conv_fixes("1, 3, 8, 8", "5, 5, 3, 16"),
        [
            pair("use kernel_layout=\"HWIO\"", "conv2d(x, w, kernel_layout=\"HWIO\")"),
            pair("insert R.permute_dims with axes=[3, 2, 0, 1]", "conv2d(x, R.permute_dims(w, axes=[3, 2, 0, 1]))"),
        ]
    );
}

#[test]
fn convolution_layout_with_a_larger_window_is_not_offered() {
    // Read as `OHWI`, the weight has three input channels, and a window of 4x3.
    assert_eq!(conv_fixes("1, 3, 8, 8", "64, 4, 3, 3"), []);
}

/// Returns the title of each fix that changes an attribute, and the body after it. The body is that of a function of
/// `x: (1, 3, 8, 8)` and `w: (4, 3, 3, 3)`.
fn attribute_fixes(returned: &str, body: &str) -> Vec<(String, String)> {
    let head = format!(
        "@R.function\n\
         def main(x: R.Tensor((1, 3, 8, 8), \"float32\"), w: R.Tensor((4, 3, 3, 3), \"float32\")){returned}:\n"
    );
    let fixture = Fixture::new(&(head.clone() + body));
    let diagnostics = fixture.workspace.diagnostics(fixture.file);
    let at = Span::empty(fixture.cursor as u32);
    let found = rx_ide::quick_fixes(&fixture.view(), &diagnostics, at);
    let found = found.into_iter().filter(|fix| fix.title.starts_with("use "));
    found.map(|fix| (fix.title, fixture.applied(&fix.edits)[head.len()..].to_owned())).collect()
}

#[test]
fn call_with_a_wrong_result_offers_its_attribute() {
    let fixes = attribute_fixes(
        "",
        "    y: R.Tensor((1, 4, $08, 8), \"float32\") = R.nn.conv2d(x, w, padding=0)\n    return y\n",
    );
    let fixed = "    y: R.Tensor((1, 4, 8, 8), \"float32\") = R.nn.conv2d(x, w, padding=1)\n    return y\n";
    assert_eq!(fixes, [("use padding=1".to_owned(), fixed.to_owned())]);
}

#[test]
fn returned_value_of_a_wrong_size_offers_the_attribute_of_its_convolution() {
    let returned = " -> R.Tensor((1, 4, 8, 8), \"float32\")";
    let body = "    a: R.Tensor((1, 4, 6, 6), \"float32\") = R.nn.conv2d(x, w)\n    b = R.nn.relu(a)\n    return b$0\n";
    let fixed = "    a: R.Tensor((1, 4, 8, 8), \"float32\") = R.nn.conv2d(x, w, padding=[1, 1])\n    \
                 b = R.nn.relu(a)\n    return b\n";
    assert_eq!(attribute_fixes(returned, body), [("use padding=[1, 1] in `a`".to_owned(), fixed.to_owned())]);
}

#[test]
fn operand_that_does_not_broadcast_offers_the_attribute_of_its_convolution() {
    let residual = "    r = R.zeros((1, 4, 8, 8), \"float32\")\n";
    let body = "    a = R.nn.conv2d(x, w)\n    b = R.add(R.nn.relu(a), $0r)\n    return b\n";
    let fixed = "    a = R.nn.conv2d(x, w, padding=[1, 1])\n    b = R.add(R.nn.relu(a), r)\n    return b\n";
    let fixes = attribute_fixes("", &format!("{residual}{body}"));
    assert_eq!(fixes, [("use padding=[1, 1] in `a`".to_owned(), format!("{residual}{fixed}"))]);
}

#[test]
fn attribute_that_contradicts_another_use_is_not_offered() {
    let returned = " -> R.Tensor((1, 4, 8, 8), \"float32\")";
    let body = "    a = R.nn.conv2d(x, w)\n    b: R.Tensor((1, 4, 6, 6), \"float32\") = R.nn.relu(a)\n    return a$0\n";
    assert_eq!(attribute_fixes(returned, body), []);
}

/// Returns the titles and effects of the fixes at the cursor that make a prim_func symbolic, with the texts after them.
fn symbolic_fixes(text: &str, kind: FileKind) -> Vec<(String, Effect, String)> {
    let fixture = Fixture::of_kind(text, kind);
    let diagnostics = fixture.workspace.diagnostics(fixture.file);
    let at = Span::empty(fixture.cursor as u32);
    let mut check = |text: &str| {
        let fixture = Fixture::of(text, kind);
        fixture.workspace.diagnostics(fixture.file)
    };
    let found = rx_ide::symbolic_kernel_fixes(&fixture.view(), &diagnostics, at, &mut check);
    found.into_iter().map(|fix| (fix.title, fix.effect, fixture.applied(&fix.edits))).collect()
}

const RELU: &str = r#"@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def relu(A: T.Buffer((T.int64(8), T.int64(8)), "float32"), B: T.Buffer((T.int64(8), T.int64(8)), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, j in T.grid(T.int64(8), T.int64(8)):
            with T.sblock("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0.0))

    @R.function
    def main(x: R.Tensor((1, 8), dtype="float32")):
        cls = Module
        lv = R.nn.gelu(x)
        gv = R.call_tir(cls.relu, (l$0v,), out_ty=R.Tensor((1, 8), dtype="float32"))
        return gv
"#;

#[test]
fn prim_func_of_another_size_is_made_symbolic() {
    let imports =
        "from tvm.script import ir as I\nfrom tvm.script import relax as R\nfrom tvm.script import tirx as T\n";
    let python = format!("{imports}\n{RELU}");
    for (text, kind) in [(RELU, FileKind::Rx), (python.as_str(), FileKind::Python)] {
        let fixes = symbolic_fixes(text, kind);
        let [(title, effect, changed)] = &fixes[..] else { panic!("{fixes:?}") };
        assert_eq!((title.as_str(), *effect), ("make axis 0 of `relu` symbolic", Effect::Fixes));
        let lines = r#"
    def relu(var_A: T.handle, var_B: T.handle):
        T.func_attr({"tirx.noalias": True})
        n = T.int64()
        A = T.match_buffer(var_A, (n, T.int64(8)), "float32")
        B = T.match_buffer(var_B, (n, T.int64(8)), "float32")
        for i, j in T.grid(n, T.int64(8)):
"#;
        assert!(changed.contains(lines), "{changed}");
        let fixed = Fixture::of(changed, kind);
        let left = fixed.workspace.diagnostics(fixed.file);
        assert!(left.iter().all(|it| it.severity != rx_base::Severity::Error), "{left:?}");
    }
}

#[test]
fn symbolic_prim_func_with_an_output_of_the_old_size_is_not_the_first_fix() {
    let text = RELU.replace("out_ty=R.Tensor((1, 8)", "out_ty=R.Tensor((8, 8)");
    let fixes = symbolic_fixes(&text, FileKind::Rx);
    assert!(matches!(fixes[..], [(_, Effect::Moves, _)]), "{fixes:?}");
}

#[test]
fn prim_func_that_computes_an_index_from_the_axis_is_not_made_symbolic() {
    let text = RELU.replace("A[vi, vj]", "A[T.int64(7) - vi, vj]");
    assert_eq!(symbolic_fixes(&text, FileKind::Rx), []);
}

#[test]
fn all_safe_fixes_are_applied_together() {
    let fixture = Fixture::new(
        "@R.function$0\ndef main(x: R.Tensor((2,), \"float32\")):\n    y = x  # rx: ignore\n    z = y  # rx: ignore\n    return z\n",
    );
    let mut check = |text: &str| {
        let mut workspace = rx_db::Workspace::new();
        let file = workspace.add(text, FileKind::Rx);
        workspace.diagnostics(file)
    };
    let edits = rx_ide::fix_all(&fixture.view(), &mut check);
    let text = fixture.applied(&edits);
    assert!(!text.contains('#') && text.contains("    y = x\n    z = y\n"), "{text}");
}

#[test]
fn inferred_types_are_written_of_a_function_or_of_all() {
    let text = "@R.function\ndef f(x: R.Tensor((2,), \"float32\")):\n    y = R.abs($0x)\n    return y\n\n\
                @R.function\ndef g(x: R.Tensor((3,), \"float32\")):\n    y = R.abs(x)\n    return y\n";
    let fixture = Fixture::new(text);
    let one = fixture.applied(&rx_ide::annotate(&fixture.view(), Some(fixture.cursor)));
    assert!(
        one.contains("y: R.Tensor((2,), dtype=\"float32\") = R.abs(x)") && one.contains("\n    y = R.abs(x)"),
        "{one}"
    );
    let all = fixture.applied(&rx_ide::annotate(&fixture.view(), None));
    assert!(all.contains("y: R.Tensor((3,), dtype=\"float32\") = R.abs(x)"), "{all}");
    assert!(all.contains("-> R.Tensor((3,), dtype=\"float32\"):"), "{all}");
}

/// The output of `LiftTransformParams`, with the cursor on a function.
const LIFTED: &str = r#"n = TypeVar("n")
@I.ir_module
class Module:
    @R.function
    def main_transform_params(model_params: R.Tuple(R.Tensor((n, 8), dtype="float32"))) -> R.Tuple(R.Tensor((8, n), dtype="float32")):
        R.func_attr({"num_input": 0})
        with R.dataflow():
            w: R.Tensor((n, 8), dtype="float32") = model_params[0]
            wt: R.Tensor((8, n), dtype="float32") = R.permute_dims(w, axes=[1, 0])
            output_tuple: R.Tuple(R.Tensor((8, n), dtype="float32")) = (wt,)
            R.output(output_tuple)
        return output_tuple

    @R.function
    def ma$0in(x: R.Tensor((4, 8), dtype="float32"), wt: R.Tensor((8, n), dtype="float32")) -> R.Tensor((4, n), dtype="float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            gv: R.Tensor((4, n), dtype="float32") = R.matmul(x, wt, out_dtype=None)
            R.output(gv)
        return gv

    @R.function
    def other(x: R.Tensor((4, 8), dtype="float32")) -> R.Tensor((4, 8), dtype="float32"):
        return x
"#;

/// Returns the text after the action at the cursor. Checks that the action is offered exactly if it has edits.
fn with_raw_entry(text: &str, kind: FileKind) -> Option<String> {
    let fixture = Fixture::of_kind(text, kind);
    let edits = rx_ide::raw_entry(&fixture.view(), fixture.cursor);
    let offered = rx_ide::takes_prepared_weights(&fixture.view(), fixture.cursor);
    assert_eq!(offered.is_some(), edits.is_some());
    Some(fixture.applied(&edits?))
}

/// Returns the module of a text without errors.
fn module(text: &str, kind: FileKind) -> rx_transform::Module {
    let mut workspace = rx_db::Workspace::new();
    let file = workspace.add(text, kind);
    assert_eq!(workspace.diagnostics(file), [], "{text}");
    workspace.module(workspace.first_module(file)).expect("a module")
}

#[test]
fn a_function_stays_callable_with_raw_weights() {
    let text = with_raw_entry(LIFTED, FileKind::Rx).expect("an entry");
    // Only the names and the attribute change, and one function is added.
    let renamed = LIFTED
        .replace("$0", "")
        .replace("def main_transform_params(", "def main_prepared_transform_params(")
        .replace("{\"num_input\": 0}", "{\"num_input\": 0, \"rx.once\": True}")
        .replace("def main(", "def main_prepared(");
    let (before, after) = renamed.split_once("    @R.function\n    def other(").expect("another function");
    let entry = "    @R.function
    def main(x: R.Tensor((4, 8), dtype=\"float32\"), w: R.Tensor((n, 8), dtype=\"float32\")) -> R.Tensor((4, n), dtype=\"float32\"):
        cls = Module
        R.func_attr({\"num_input\": 1, \"rx.raw_entry\": True})
        prepared: R.Tuple(R.Tensor((8, n), dtype=\"float32\")) = cls.main_prepared_transform_params((w,))
        wt: R.Tensor((8, n), dtype=\"float32\") = prepared[0]
        result: R.Tensor((4, n), dtype=\"float32\") = cls.main_prepared(x, wt)
        return result

";
    assert_eq!(text, format!("{before}{entry}    @R.function\n    def other({after}"));
}

/// Returns [`LIFTED`] with symbolic dims declared as in each dialect.
fn spellings() -> [(&'static str, String); 3] {
    let in_front = "n = TypeVar(\"n\")\n";
    let in_brackets =
        LIFTED.replace(in_front, "").replace("main_transform_params(model", "main_transform_params[n](model");
    let in_bodies = LIFTED
        .replace(in_front, "")
        .replace(
            "model_params: R.Tuple(R.Tensor((n, 8), dtype=\"float32\"))) -> R.Tuple(R.Tensor((8, n)",
            "model_params: R.Tuple(R.Tensor((\"n\", 8), dtype=\"float32\"))) -> R.Tuple(R.Tensor((8, \"n\")",
        )
        .replace(
            "        R.func_attr({\"num_input\": 0})\n",
            "        n = T.int64()\n        R.func_attr({\"num_input\": 0})\n",
        )
        .replace(
            "wt: R.Tensor((8, n), dtype=\"float32\")) -> R.Tensor((4, n)",
            "wt: R.Tensor((8, \"n\"), dtype=\"float32\")) -> R.Tensor((4, \"n\")",
        )
        .replace(
            "        R.func_attr({\"num_input\": 1})\n",
            "        n = T.int64()\n        R.func_attr({\"num_input\": 1})\n",
        );
    [
        ("in front", LIFTED.to_owned()),
        ("in brackets", in_brackets.replace("ma$0in(x", "ma$0in[n](x")),
        ("in bodies", in_bodies),
    ]
}

#[test]
fn action_gives_the_result_of_the_pass() {
    let calls = "    @R.function
    def other(x: R.Tensor((4, 8), dtype=\"float32\"), w: R.Tensor((5, 8), dtype=\"float32\")) -> R.Tensor((4, 5), dtype=\"float32\"):
        cls = Module
        params: R.Tuple(R.Tensor((8, 5), dtype=\"float32\")) = cls.main_transform_params((w,))
        gv: R.Tensor((8, 5), dtype=\"float32\") = params[0]
        lv: R.Tensor((4, 5), dtype=\"float32\") = cls.main(x, gv)
        return lv
";
    for (style, text) in spellings() {
        let head = text.split("    @R.function\n    def other(").next().expect("a text");
        for text in [text.clone(), format!("{head}{calls}"), text.replace('\n', "\r\n")] {
            let edited = with_raw_entry(&text, FileKind::Rx).unwrap_or_else(|| panic!("{style}: no entry in {text}"));
            let ends = |text: &str| (text.matches("\r\n").count(), text.matches('\n').count());
            assert!(matches!(ends(&edited), (returns, lines) if returns == 0 || returns == lines), "{edited}");
            assert_eq!(edited.contains('\r'), text.contains('\r'));
            let steps = rx_transform::pass::parse("KeepRawEntry").expect("a pass");
            let by_pass = steps.iter().fold(module(&text.replace("$0", ""), FileKind::Rx), |module, step| {
                (step.pass.run)(module, &step.arguments).expect("a module")
            });
            let by_action = module(&edited, FileKind::Rx);
            assert!(rx_transform::equal::structurally_equal(&by_action, &by_pass), "{style}: {edited}");
        }
    }
}

#[test]
fn names_that_are_taken_and_attributes_that_are_missing() {
    let text = LIFTED
        .replace("def other(", "def main_prepared(")
        .replace("        R.func_attr({\"num_input\": 0})\n", "")
        .replace("\"num_input\": 1", "\"num_input\": 1, \"global_symbol\": \"main\"");
    let text = with_raw_entry(&text, FileKind::Rx).expect("an entry");
    assert!(text.contains("def main_prepared_1("), "{text}");
    let transform = "def main_prepared_1_transform_params(";
    let (_, body) = text.split_once(transform).expect("what prepares weights");
    let (_, body) = body.split_once(":\n").expect("a body");
    assert!(body.starts_with("        R.func_attr({\"rx.once\": True})\n"), "{text}");
    // `global_symbol` now belongs to the new function.
    let said = "        R.func_attr({\"num_input\": 1, \"global_symbol\": \"main\", \"rx.raw_entry\": True})\n";
    assert!(text.matches("global_symbol").count() == 1 && text.contains(said), "{text}");
    module(&text, FileKind::Rx);
}

#[test]
fn one_function_may_prepare_the_weights_of_several() {
    let shared = LIFTED.replace("main_transform_params", "transform_params");
    let once = with_raw_entry(&shared, FileKind::Rx).expect("an entry");
    assert!(once.contains("def transform_params(") && once.contains("cls.transform_params((w,))"), "{once}");
    assert_eq!(with_raw_entry(&once.replace("def main(", "def ma$0in("), FileKind::Rx), None);
}

#[test]
fn where_nothing_prepares_weights_there_is_no_entry() {
    for (from, to) in [
        ("main_transform_params", "prepare"),
        ("        R.func_attr({\"num_input\": 1})\n", ""),
        ("\"num_input\": 1", "\"num_input\": 2"),
    ] {
        assert_eq!(with_raw_entry(&LIFTED.replace(from, to), FileKind::Rx), None, "{from}");
    }
    let elsewhere = LIFTED.replace("$0", "").replace("def other", "def ot$0her");
    assert_eq!(with_raw_entry(&elsewhere, FileKind::Rx), None);
}
