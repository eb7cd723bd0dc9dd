//! Tests of `--emit`: the text of each stage, and the source positions of its parts.

use super::{Folder, Run, TAKE};
use serde_json::{Value, json};

/// Runs `--emit` and returns its `emitted` event.
#[track_caller]
fn emitted(folder: &Folder, args: &[&str]) -> Value {
    emitted_by(folder.run(&[args, &["--format", "json"]].concat()).succeeds())
}

fn emitted_by(run: Run) -> Value {
    let said = run.stdout();
    let last = said.lines().last().expect("events");
    let event: Value = serde_json::from_str(last).expect("an object");
    assert_eq!(event["event"], "emitted", "{said}");
    event
}

/// Returns for each part its name, its text, and the lines of the program that it comes from.
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
fn options_of_a_run_are_refused_with_a_stage() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let options: [&[&str]; 5] =
        [&["--output", "o.npz"], &["--check", "o.npz"], &["--trace", "o.json"], &["--profile"], &["--values"]];
    for option in options {
        let said = "cannot be used with";
        folder.run(&[&["take.rx", "--emit", "tir"], option].concat()).fails(2, said);
        folder.run(&[&["take.rx", "--explain-schedule"], option].concat()).fails(2, said);
    }
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
    let text = folder.run(&["net.rx", "--emit", "tir"]).succeeds().stdout();
    assert_eq!(text.matches("def matmul").count(), 1, "{text}");
    // The parts of steps have positions too, in the original text: line numbers of the printed module would be others.
    let parts = parts(&emitted(&folder, &["net.rx", "--emit", "passes"]));
    let fused = parts.iter().find(|(name, ..)| name.starts_with("fused_")).expect("a joined kernel");
    assert_eq!(fused.2, [5, 6], "{parts:?}");
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
        (
            "cuda",
            "// astype cannot be printed as CUDA: requires a dtype that has a CUDA type; found `out` of float8_e4m3fnuz",
        ),
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
        // When its caller is printed, the call is one of the places of the kernel.
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
    let run = folder.run(&["take.rx", "--emit", "passes", "--passes", passes, "--format", "json"]);
    assert_eq!(run.0.status.code(), Some(1), "a pass that cannot be applied is a failure");
    assert!(run.stderr().contains("take.rx: BindParams: "), "{}", run.stderr());
    let event = emitted_by(run);
    let stages = event["stages"].as_array().expect("stages");
    let reported: Vec<_> = stages.iter().map(|stage| (stage["pass"].as_str(), stage["changed"].as_bool())).collect();
    let no = |pass| (Some(pass), Some(false));
    assert_eq!(
        reported,
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
    let wanted = "two.py: several modules have a function `main`; choose one with --module: `First`, `Second`";
    assert!(several.contains(wanted), "{several}");
    let said = run(&["two.py", "--module", "First"]).succeeds().stdout();
    assert!(said.contains("class First:") && !said.contains("class Second:"), "{said}");
}

/// A matrix product that is large enough for tensor cores.
const PRODUCT: &str = "@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((64, 64), \"float32\"), w: R.Tensor((64, 64), \"float32\")):
        y = R.nn.softmax(R.matmul(x, w))
        return y
";

#[test]
fn products_of_float32_are_rounded_only_where_that_is_asked_for() {
    let folder = Folder::new();
    folder.write("product.rx", PRODUCT);
    let cuda = |more: &[&str]| folder.run(&[&["product.rx", "--emit", "cuda"], more].concat()).succeeds().stdout();
    assert!(cuda(&["--tf32"]).contains("m16n8k8 of tf32"));
    assert!(!cuda(&[]).contains("tf32"));
}

#[test]
fn kernels_are_checked_on_the_host_in_several_orders_of_threads() {
    if let Err(missing) = rx_cuda::simulator::compiler() {
        println!("skipped: {missing}");
        return;
    }
    let folder = Folder::new();
    folder.write("product.rx", PRODUCT);
    folder.run(&["product.rx", "--device", "cpu", "--output", "cpu.npz"]).succeeds();
    let checked = ["product.rx", "--device", "cuda-sim", "--sanitize", "--check", "cpu.npz"];
    let said = folder.run(&checked).succeeds().stdout();
    assert!(said.contains("equal within the tolerances"), "{said}");
}

/// Whether NVRTC is available; prints a note if it is not.
fn has_nvrtc() -> bool {
    let is_found = rx_cuda::nvrtc::probe().is_ok();
    if !is_found {
        println!("skipped: NVRTC not found (tests/scripts/fetch_nvrtc.sh fetches one)");
    }
    is_found
}

#[test]
fn schedules_are_explained_kernel_by_kernel() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let explained = folder.run(&["take.rx", "--explain-schedule"]).succeeds().stdout();
    assert_eq!(explained, folder.run(&["take.rx", "--emit", "schedule"]).succeeds().stdout());
    let plain = folder.run(&["take.rx", "--explain-schedule", "--schedule", "fallback"]).succeeds().stdout();
    for (name, text) in [("every rule", &explained), ("the fallback alone", &plain)] {
        let kernels: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()).collect();
        assert!(kernels.len() == 2 && kernels[0].starts_with("take_kernel"), "{name}: {text}");
    }
    // Rules that are not tried do not decline, and the last rule accepts everything.
    assert_eq!(plain.matches("\n    fallback").count(), 2, "{plain}");
    assert!(!plain.contains("    not "), "{plain}");
    let event = emitted(&folder, &["take.rx", "--explain-schedule", "--schedule", "fallback"]);
    let parts = parts(&event);
    assert_eq!((&event["stage"], parts.len(), &parts[1].2[..]), (&json!("schedule"), 2, &[9][..]));
}

/// A group norm whose groups have several channels, an `argmax` of a row, and a value that its activation uses twice,
/// for `n` rows.
const REDUCTIONS: &str = "
@R.function
def main(x: R.Tensor((\"n\", 32, 32, 32), dtype=\"float32\"), y: R.Tensor((1, 151936), dtype=\"float32\"), g: R.Tensor((32,), dtype=\"float32\")):
    with R.dataflow():
        a = R.nn.group_norm(x, g, g, num_groups=4, channel_axis=1, axes=[2, 3])
        b = R.nn.leakyrelu(R.divide(R.add(y, y), R.const(3.0, \"float32\")), alpha=0.1)
        c = R.argmax(y, axis=-1)
        gv = (a, b, c)
        R.output(gv)
    return gv
";

#[test]
fn schedule_as_json_has_an_object_for_each_kernel() {
    let folder = Folder::new();
    folder.write("reductions.rx", REDUCTIONS);
    let kernels = |args: &[&str]| -> Vec<Value> {
        let args = [&["reductions.rx", "--emit", "schedule", "--format", "json"], args].concat();
        let said = folder.run(&args).succeeds().stdout();
        let events = said.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
        events.filter(|event| event["event"] == "kernel").collect()
    };
    let (few, many) = (kernels(&[]), kernels(&["--dim", "n=2"]));
    assert_eq!(few.len(), many.len());
    let number = |value: &Value| value.as_i64().expect("a number");
    for kernel in &many {
        let all = |key: &str| kernel[key].as_array().expect("three numbers").iter().map(number).product::<i64>();
        assert_eq!(
            number(&kernel["threads"]),
            all("grid") * if all("grid") == 0 { 0 } else { all("block") },
            "{kernel}"
        );
        assert!(number(&kernel["threads"]) * 256 >= number(&kernel["work"]), "{kernel}");
        assert!(kernel["rule"] != "fallback" && kernel["reason"].is_string(), "{kernel}");
    }
    let work = |kernels: &[Value]| {
        let own = |kernel: &&Value| kernel["kernel"].as_str().is_some_and(|name| name.starts_with("group_norm"));
        kernels.iter().filter(own).map(|kernel| number(&kernel["work"])).sum::<i64>()
    };
    assert!(work(&few) >= 32 * 32 * 32 && work(&many) == 2 * work(&few), "{few:?} {many:?}");
    let found: Vec<&Value> = many.iter().filter(|kernel| kernel["work"] == 151_936).collect();
    assert!(found.iter().any(|kernel| kernel["rule"] == "reduction"), "{many:?}");
}

#[test]
fn rules_are_listed_in_the_order_tried() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let unknown = folder.run(&["take.rx", "--explain-schedule", "--schedule", "fallback,nosuch"]);
    unknown.fails(2, "no schedule rule is called \"nosuch\"; there are");
    folder.run(&["take.rx", "--emit", "cuda", "--explain-schedule"]).fails(2, "cannot be used with");
    let names: Vec<&str> = rx_cuda::rules::RULES.iter().map(|rule| rule.name).collect();
    let backwards: Vec<&str> = names.iter().rev().copied().collect();
    let explain = |order: &[&str]| {
        folder.run(&["take.rx", "--explain-schedule", "--schedule", &order.join(",")]).succeeds().stdout()
    };
    // The fallback is always tried last, wherever `--schedule` names it.
    let declined = |text: &str| -> Vec<String> {
        let first = text.lines().skip(2).take_while(|line| line.starts_with("    "));
        let names = first.filter_map(|line| line.strip_prefix("    not ")?.split_once(':'));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let asked = declined(&explain(&backwards));
    let places: Vec<usize> = asked.iter().filter_map(|name| backwards.iter().position(|known| known == name)).collect();
    assert!(places.len() == asked.len() && places.is_sorted(), "{asked:?} of {backwards:?}");
}

#[test]
fn kernels_list_their_resources_where_nvrtc_is_found() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let without = |stage: &str| folder.run_with(&["take.rx", "--emit", stage], &[("RX_NVRTC", "/nowhere/libnvrtc.so")]);
    let cuda = without("cuda").succeeds().stdout();
    assert!(cuda.contains("extern \"C\" __global__") && !cuda.contains("registers"), "{cuda}");
    let schedule = without("schedule").succeeds();
    assert!(
        schedule.stderr().contains("the registers and the shared memory of kernels are unknown: NVRTC not found"),
        "{}",
        schedule.stderr()
    );
    without("ptx").fails(2, "NVRTC not found");
    if !has_nvrtc() {
        return;
    }
    let emit = |stage: &str| {
        let own = folder.path("cache");
        let cache = own.to_str().expect("a path");
        folder.run_with(&["take.rx", "--emit", stage], &[("RX_CACHE", cache)]).succeeds().stdout()
    };
    for stage in ["cuda", "ptx"] {
        let text = emit(stage);
        let lines =
            text.lines().filter(|line| line.starts_with("// sm_80: ") && line.ends_with(" % of its warps")).count();
        assert_eq!(lines, 2, "{text}");
    }
    let schedule = emit("schedule");
    for arch in ["sm_80", "sm_90"] {
        assert_eq!(schedule.matches(&format!("\n    {arch}: ")).count(), 2, "{schedule}");
    }
    let event = emitted(&folder, &["take.rx", "--emit", "ptx"]);
    let parts = parts(&event);
    let places: Vec<&[u64]> = parts.iter().map(|(_, _, places)| &**places).collect();
    assert_eq!(places, [[8], [9]], "{event}");
    assert!(parts.iter().all(|(_, text, _)| text.contains(".visible .entry")), "{parts:?}");
}

#[test]
fn machine_code_of_a_device_needs_a_disassembler() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let emit = |path: &str| folder.run_with(&["take.rx", "--emit", "sass"], &[("RX_NVDISASM", path)]);
    emit("/nowhere/nvdisasm").fails(2, "no disassembler: `/nowhere/nvdisasm` is not found; set RX_NVDISASM");
    if !has_nvrtc() {
        return;
    }
    if rx_cuda::sass::probe().is_err() {
        println!("skipped: nvdisasm not found");
        return;
    }
    let text = folder.run(&["take.rx", "--emit", "sass"]).succeeds().stdout();
    assert!(text.contains("EXIT") && text.contains("// take_kernel") && text.contains(" registers, "), "{text}");
}

/// Calls with `tir_vars`, which TVM accepts up to version 0.25: the prim_func's last parameter, after the output, is a
/// dim.
const TIR_VARS: &str = r#"@I.ir_module
class Module:
    @T.prim_func
    def shift(a: T.Buffer((T.int64(4),), "float32"), b: T.Buffer((T.int64(4),), "float32"), n: T.int64):
        for i in T.serial(T.int64(4)):
            with T.block("b"):
                v = T.axis.spatial(T.int64(4), i)
                b[v] = a[v] + T.Cast("float32", n)

    @R.function
    def main(x: R.Tensor((4,), "float32"), s: R.Shape(["n"])) -> R.Tensor((4,), "float32"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.shift, (x,), out_sinfo=R.Tensor((4,), "float32"), tir_vars=R.shape([n + 1]))
        z = R.call_tir(cls.shift, (y,), out_sinfo=R.Tensor((4,), "float32"), tir_vars=R.shape([n]))
        return z
"#;

#[test]
fn passes_scalars_after_outputs_are_passed_among_arguments() {
    let folder = Folder::new();
    folder.write("f.rx", TIR_VARS);
    let emitted = |file: &str| folder.run(&[file, "--emit", "passes", "--passes", "DeadCodeElimination"]).succeeds();
    let text = emitted("f.rx").stdout();
    let module = text.split("# -----").nth(1).and_then(|text| text.split_once('\n')).map_or("", |(_, text)| text);
    assert!(module.contains("R.call_tir(cls.shift, (x, n + 1), out_ty="), "{module}");
    assert!(module.contains("n: T.int64, b: T.Buffer(") && !module.contains("tir_vars"), "{module}");
    folder.write("g.rx", module);
    let run = |file: &str| folder.run(&[file, "--dim", "n=3", "--output", "out.npz"]).succeeds().stdout();
    let before = run("f.rx");
    folder.run(&["g.rx", "--dim", "n=3", "--check", "out.npz"]).succeeds();
    assert!(before.contains("out0: float32 (4,)"), "{before}");
    // If one call's `tir_vars` is not a literal shape, the function keeps its parameters, and all calls their
    // `tir_vars`.
    folder.write("h.rx", TIR_VARS.replace("tir_vars=R.shape([n])", "tir_vars=s"));
    assert!(emitted("h.rx").stdout().contains("tir_vars=R.shape([n + 1])"));
}
