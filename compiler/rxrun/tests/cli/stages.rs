//! `--emit`: stages of a program as text, and where their parts come from.

use super::{Folder, TAKE};
use serde_json::{Value, json};

/// The `emitted` event of a run.
#[track_caller]
fn emitted(folder: &Folder, args: &[&str]) -> Value {
    let said = folder.run(&[args, &["--format", "json"]].concat()).succeeds().stdout();
    let last = said.lines().last().expect("events");
    let event: Value = serde_json::from_str(last).expect("an object");
    assert_eq!(event["event"], "emitted", "{said}");
    event
}

/// The name of each part, its text, and the lines of the program it comes from.
fn parts(event: &Value) -> Vec<(String, String, Vec<u64>)> {
    let lines: Vec<&str> = event["text"].as_str().expect("a text").lines().collect();
    let number = |value: &Value| value.as_u64().expect("a number");
    let part = |part: &Value| {
        let (start, end) = (number(&part["start_line"]) as usize, number(&part["end_line"]) as usize);
        let places = part["places"].as_array().expect("places").iter().map(|place| number(&place["line"])).collect();
        (part["name"].as_str().expect("a name").to_owned(), lines[start - 1..end - 1].join("\n"), places)
    };
    event["parts"].as_array().expect("parts").iter().map(part).collect()
}

#[test]
fn stages_are_printed() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let emit = |stage: &str| folder.run(&["take.rx", "--emit", stage]).succeeds().stdout();
    assert!(emit("relax").contains("def main("));
    assert!(emit("tir").contains("@T.prim_func(private=True, s_tir=True)"));
    assert!(emit("cuda").contains("extern \"C\" __global__"));
    assert!(emit("cpu").contains("ret"));
}

#[test]
fn a_part_is_a_kernel_with_its_statements() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let starts = [("tir", "@T.prim_func("), ("cuda", "// "), ("cpu", "; ")];
    for (stage, start) in starts {
        let event = emitted(&folder, &["take.rx", "--emit", stage]);
        assert_eq!(event["stage"], stage);
        let parts = parts(&event);
        let places: Vec<&[u64]> = parts.iter().map(|(_, _, places)| &**places).collect();
        assert_eq!(places, [[8], [9]], "{event}");
        for (name, text, _) in &parts {
            assert!(text.starts_with(start) && !text.ends_with('\n'), "{stage} of {name}: {text}");
        }
        assert!(parts[0].1.contains("take") && parts[1].1.contains("relu"), "{event}");
        let place = json!({"line": 8, "column": 9, "end_line": 8, "end_column": 46});
        assert_eq!(event["parts"][0]["places"], json!([place]));
    }
    let whole = emitted(&folder, &["take.rx", "--emit", "relax"]);
    assert_eq!((&whole["stage"], &whole["parts"]), (&json!("relax"), &json!([])));
}

#[test]
fn joined_kernels_have_the_places_of_all_and_equal_ones_are_one_part() {
    let folder = Folder::new();
    folder.write(
        "net.rx",
        r#"@R.function
def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
    a = R.matmul(x, w)
    b = R.matmul(a, w)
    c = R.permute_dims(b)
    d = R.negative(c)
    return d
"#,
    );
    for stage in ["tir", "cuda", "cpu"] {
        let parts = parts(&emitted(&folder, &["net.rx", "--emit", stage]));
        let places: Vec<&[u64]> = parts.iter().map(|(_, _, places)| &**places).collect();
        assert_eq!(places, [[3, 4], [5, 6]], "{stage}: {parts:?}");
    }
    // In text for people every kernel stands for itself, as the program has them.
    let text = folder.run(&["net.rx", "--emit", "tir"]).succeeds().stdout();
    assert_eq!(text.matches("def matmul(").count(), 2, "{text}");
}

#[test]
fn a_kernel_that_cannot_be_made_is_a_comment_beside_the_others() {
    let folder = Folder::new();
    folder.write(
        "f8.rx",
        r#"@R.function
def f(x: R.Tensor((4,), "float32")):
    y = R.astype(x, "float8_e4m3fnuz")
    z = R.cumsum(x)
    return y, z
"#,
    );
    let said = [
        ("cuda", "// astype cannot be printed as CUDA: the buffer out has dtype float8_e4m3fnuz"),
        ("cpu", "; astype is interpreted: no code for float8_e4m3fnuz"),
    ];
    for (stage, comment) in said {
        let parts = parts(&emitted(&folder, &["f8.rx", "--emit", stage]));
        let [(_, astype, _), (_, cumsum, places)] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!((astype.as_str(), &places[..]), (comment, &[4][..]));
        assert!(cumsum.lines().count() > 3, "{cumsum}");
        assert!(folder.run(&["f8.rx", "--emit", stage]).succeeds().stdout().contains(comment));
    }
}

/// A prim_func with a loop in line 7, called in line 12.
const PRIM: &str = r#"from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.call_tir(Module.double, (x,), out_ty=R.Tensor((4,), "float32"))
        return y
"#;

#[test]
fn a_prim_func_can_be_shown_alone() {
    let folder = Folder::new();
    folder.write("prim.rx", PRIM);
    for stage in ["tir", "cuda", "cpu"] {
        let alone = parts(&emitted(&folder, &["prim.rx", "--emit", stage, "--entry", "double"]));
        let [(name, text, places)] = &alone[..] else { panic!("{alone:?}") };
        assert_eq!((name.as_str(), &places[..]), ("double", &[8][..]), "{stage}");
        assert!(text.contains("double"), "{text}");
        // In a function that calls it, the call is one of its places.
        let called = parts(&emitted(&folder, &["prim.rx", "--emit", stage]));
        assert_eq!(called.iter().map(|(_, _, places)| &places[..]).collect::<Vec<_>>(), [&[8, 12][..]], "{stage}");
    }
    folder.run(&["prim.rx", "--entry", "double"]).fails(2, "no Relax function `double`; it has `main`");
    folder.run(&["prim.rx", "--emit", "tir", "--entry", "other"]).fails(2, "no Relax function `other`");
    let plain = folder.run(&["prim.rx", "--emit", "cuda", "--entry", "double"]).succeeds().stdout();
    assert!(plain.contains("double_kernel("), "{plain}");
}

#[test]
fn passes_are_stages_whose_lines_know_their_statements() {
    let folder = Folder::new();
    let program = TAKE.replace("        y =", "        again = R.take(table, indices, axis=0)\n        y =");
    folder.write("take.rx", program.replace("R.nn.relu(rows)", "R.add(again, rows)"));
    let passes = "DeadCodeElimination,EliminateCommonSubexpr,BindParams(\"nothing\", {}),FoldConstant";
    let event = emitted(&folder, &["take.rx", "--emit", "passes", "--passes", passes]);
    let stages = event["stages"].as_array().expect("stages");
    let told: Vec<_> = stages.iter().map(|stage| (stage["pass"].as_str(), stage["changed"].as_bool())).collect();
    let no = |pass| (Some(pass), Some(false));
    assert_eq!(
        told,
        [(None, Some(true)), no("DeadCodeElimination"), (Some("EliminateCommonSubexpr"), Some(true)), no("BindParams")],
        "what cannot be applied is the last"
    );
    let problem = stages[3]["problem"].as_str().expect("a problem");
    assert!(problem.contains("nothing"), "{problem}");
    let number = |stage: &Value, field: &str| stage[field].as_u64().expect("a number");
    assert_eq!(number(&stages[1], "start_line"), number(&stages[0], "start_line"), "no change, the same lines");
    let start = number(&stages[2], "start_line") as usize;
    let behind = parts(&event).into_iter().zip(event["parts"].as_array().expect("parts"));
    let behind: Vec<_> =
        behind.filter(|(_, part)| number(part, "start_line") as usize >= start).map(|(it, _)| it).collect();
    let sum = behind.iter().find(|(name, ..)| name == "y").expect("the sum");
    assert!(sum.1.contains("R.add(rows, rows)") && sum.2 == [10], "{sum:?}");
    let text = event["text"].as_str().expect("a text");
    assert!(
        text.starts_with("# ----- the module -----\n") && text.contains("# ----- DeadCodeElimination: no change -----")
    );
}

#[test]
fn passes_take_a_module_out_of_python() {
    let folder = Folder::new();
    let text = TAKE.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let module = |class: &str| text.replace("class Module", &format!("class {class}"));
    folder.write("one.py", format!("import numpy as np\n\ndef build():\n{}    return np.ones(3)\n", module("Module")));
    let run = |arguments: &[&str]| folder.run(&[&["--emit", "passes", "--passes", "FoldConstant"], arguments].concat());
    let said = run(&["one.py"]).succeeds().stdout();
    assert!(said.contains("\nclass Module:\n    @R.function\n    def main(") && !said.contains("np.ones"), "{said}");
    folder.write("two.py", format!("def build():\n{}\n{}", module("First"), module("Second")));
    let several = run(&["two.py"]).stderr();
    let wanted = "two.py: passes take one module, and there are `First`, `Second`: choose with --module";
    assert!(several.contains(wanted), "{several}");
    let said = run(&["two.py", "--module", "First"]).succeeds().stdout();
    assert!(said.contains("class First:") && !said.contains("class Second:"), "{said}");
}
