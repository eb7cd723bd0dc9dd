//! Tests of the binary.

use std::io::Write;
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = "\
@I.ir_module
class Module:
    @R.function(private=True)
    def unused(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
        return x

    @R.function
    def main(x: R.Tensor((n,), dtype=\"float32\")) -> R.Tensor((n,), dtype=\"float32\"):
        with R.dataflow():
            a: R.Tensor((n,), dtype=\"float32\") = R.exp(x)
            b: R.Tensor((n,), dtype=\"float32\") = R.exp(x)
            c: R.Tensor((n,), dtype=\"float32\") = R.add(a, b)
            R.output(c)
        return c
";

fn rxopt(program: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rxopt"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("rxopt starts");
    // rxopt may exit without reading standard input, so ignore a broken pipe.
    let _ = child.stdin.take().map(|mut pipe| pipe.write_all(program.as_bytes()));
    child.wait_with_output().expect("rxopt ends")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn program() -> String {
    format!("n = TypeVar(\"n\")\n{PROGRAM}")
}

#[test]
fn passes_run_in_order() {
    let output = rxopt(&program(), &["-", "--pass", "EliminateCommonSubexpr,DeadCodeElimination"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("R.add(a, a)"), "{}", out(&output));
    assert!(!out(&output).contains("unused") && !out(&output).contains("b:"), "{}", out(&output));
}

#[test]
fn a_pipeline_is_passes_under_one_name_and_leaves_its_stages() {
    let folder = tempfile::tempdir().expect("a folder");
    let stages = folder.path().join("stages");
    let dump = stages.to_string_lossy().into_owned();
    let output = rxopt(&program(), &["-", "--pipeline", "default", "--dump", &dump]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    // The result is one kernel with one exponential, which is added to itself.
    let text = out(&output);
    assert!(text.contains("def fused_tir_exp_add(") && text.matches("T.exp(").count() == 1, "{text}");
    assert!(text.contains("out_intermediate[v_ax0] + out_intermediate[v_ax0]") && !text.contains("unused"), "{text}");
    let mut names: Vec<String> = std::fs::read_dir(&stages)
        .expect("the folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.first().map(String::as_str), Some("00-input.rx"));
    assert!(names.iter().any(|name| name.ends_with("-EliminateCommonSubexpr.rx")), "{names:?}");
    let last = std::fs::read_to_string(stages.join(names.last().expect("a stage"))).expect("a text");
    assert_eq!(last, out(&output));
    let unknown = rxopt(&program(), &["-", "--pipeline", "zero"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert_eq!(err(&unknown), "rxopt: there is no pipeline `zero`; there is default\n");
}

#[test]
fn a_difference_is_a_patch() {
    let output = rxopt(&program(), &["-", "--diff", "--pass", "EliminateCommonSubexpr"]);
    assert!(out(&output).starts_with("--- before EliminateCommonSubexpr\n+++ after EliminateCommonSubexpr\n"));
    assert!(out(&output).contains("+            b: R.Tensor((n,), dtype=\"float32\") = a\n"), "{}", out(&output));
}

#[test]
fn a_changed_signature_is_said() {
    let output = rxopt(&program(), &["-", "--pass", "BindSymbolicVars({\"n\": 2})"]);
    assert!(out(&output).contains("def main(x: R.Tensor((2,), dtype=\"float32\"))"), "{}", out(&output));
    let said = err(&output);
    assert!(
        said.starts_with("info[RX0952 signature-changed]: ")
            && said.contains("BindSymbolicVars changes the signature of `main`"),
        "{said}"
    );
    assert!(said.contains("after BindSymbolicVars:9:9"), "{said}");
}

#[test]
fn a_program_with_errors_is_not_transformed() {
    let output = rxopt(&program().replace("R.exp(x)", "R.exp(y)"), &["-", "--pass", "DeadCodeElimination"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).is_empty() && err(&output).contains("RX0201"), "{}", err(&output));
}

#[test]
fn unknown_pass_is_a_usage_error() {
    let output = rxopt(&program(), &["-", "--pass", "DeadCode"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("there is no pass `DeadCode`"), "{}", err(&output));
    let output = rxopt(&program(), &["-", "--pass", "MetaScheduleTuneIRMod"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("TVM has the pass `MetaScheduleTuneIRMod`"), "{}", err(&output));
}

/// Returns the remarks of `--verify-values` for these passes.
fn verified(program: &str, passes: &[&str]) -> String {
    let output = rxopt(program, &[passes, &["-", "--verify-values"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    err(&output)
}

#[test]
fn default_pipeline_keeps_the_meaning_of_training() {
    let program = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 2, 4), dtype=\"float32\"), g: R.Tensor((2,), dtype=\"float32\"), b: R.Tensor((2,), dtype=\"float32\"), mu: R.Tensor((2,), dtype=\"float32\"), va: R.Tensor((2,), dtype=\"float32\")):
        with R.dataflow():
            y = R.nn.batch_norm(x, g, b, mu, va, axis=1, epsilon=1e-5, momentum=0.1, training=True)
            R.output(y)
        return y
";
    for training in ["True", "False"] {
        let program = program.replace("training=True", &format!("training={training}"));
        let said = verified(&program, &["--pipeline", "default"]);
        assert!(said.contains("DecomposeOps: `main`: the values agree"), "{said}");
    }
}

#[test]
fn values_are_verified_on_arguments_that_the_first_run_takes() {
    let program = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 6), dtype=\"float32\"), s: R.Tensor((3,), dtype=\"int64\")) -> R.Tensor(ndim=3, dtype=\"float32\"):
        with R.dataflow():
            sh: R.Shape(ndim=3) = R.tensor_to_shape(s)
            y: R.Tensor(dtype=\"float32\", ndim=3) = R.broadcast_to(x, sh)
            R.output(y)
        return y
";
    for operator in ["broadcast_to", "reshape"] {
        let program = program.replace("broadcast_to", operator);
        let said = verified(&program, &["--pass", "DecomposeOpsForInference"]);
        assert!(!said.contains("changes the values"), "{said}");
    }
    let shapes = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 6), dtype=\"float32\"), s: R.Shape(ndim=3), t: R.Tuple(R.Shape(ndim=2), R.Prim(\"int64\"))) -> R.Tensor(ndim=3, dtype=\"float32\"):
        with R.dataflow():
            y: R.Tensor(dtype=\"float32\", ndim=3) = R.reshape(x, s)
            z: R.Tensor(dtype=\"float32\", ndim=3) = R.exp(y)
            w: R.Tensor(dtype=\"float32\", ndim=3) = R.exp(y)
            o: R.Tensor(dtype=\"float32\", ndim=3) = R.add(z, w)
            R.output(o)
        return o
";
    let said = verified(shapes, &["--pass", "EliminateCommonSubexpr"]);
    assert!(said.contains("`main`: the values agree"), "{said}");
}

#[test]
fn raw_and_prepared_weights_of_one_shape_are_distinguished() {
    let program = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((8, 8), dtype=\"float32\"), w: R.Tensor((8, 8), dtype=\"float32\")) -> R.Tensor((8, 8), dtype=\"float32\"):
        R.func_attr({\"num_input\": 1})
        with R.dataflow():
            t = R.permute_dims(w, axes=None)
            y = R.matmul(x, t, out_dtype=None)
            R.output(y)
        return y
";
    let said = verified(program, &["--pipeline", "default"]);
    for pass in ["LiftTransformParams", "KeepRawEntry", "LegalizeOps"] {
        assert!(said.contains(&format!("{pass}: `main`: the values agree")), "{said}");
    }
}

#[test]
fn pass_that_cannot_be_applied_names_itself_and_the_place() {
    let output = rxopt(&program(), &["-", "--pass", "BindParams(\"nothing\", {})"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).starts_with("rxopt: BindParams: "), "{}", err(&output));
}

#[test]
fn constants_are_given_beside_the_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.npz");
    let tensor = rx_tensor::Tensor::from_f32s(&[2], [1.0, 2.0]).expect("a tensor");
    rx_tensor::npz::write(&path, &[("ir.GenericConst[0]", &tensor)]).expect("written");
    let program = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
        with R.dataflow():
            a: R.Tensor((2,), dtype=\"float32\") = R.add(metadata[\"ir.GenericConst\"][0], R.const(1.0, \"float32\"))
            b: R.Tensor((2,), dtype=\"float32\") = R.multiply(x, a)
            R.output(b)
        return b
";
    let unknown = rxopt(program, &["-", "--pass", "FoldConstant"]);
    assert_eq!(unknown.status.code(), Some(0), "{}", err(&unknown));
    assert!(out(&unknown).contains("R.add(metadata[\"ir.GenericConst\"][0], "), "{}", out(&unknown));
    let given = path.to_string_lossy().into_owned();
    let known = rxopt(program, &["-", "--pass", "FoldConstant", "--constants", &given, "--verify-values"]);
    assert_eq!(known.status.code(), Some(0), "{}", err(&known));
    assert!(!out(&known).contains("R.add(") && out(&known).contains("load_json"), "{}", out(&known));
    assert!(err(&known).contains("`main`: the values agree"), "{}", err(&known));
    let wrong = rxopt(program, &["-", "--pass", "FoldConstant", "--constants", "missing.npz"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", err(&wrong));
}

#[test]
fn values_are_verified_and_functions_that_cannot_run_are_named() {
    let opaque = "\n    @R.function\n    def opaque(x: R.Any) -> R.Any:\n        return x\n";
    let program = format!("{}{opaque}", program());
    let output = rxopt(&program, &["-", "--verify-values", "--pass", "EliminateCommonSubexpr"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let said = err(&output);
    let agrees = "EliminateCommonSubexpr: `main`: the values agree, the worst difference is 0.000e0";
    assert!(said.contains(agrees), "{said}");
    assert!(said.contains("EliminateCommonSubexpr: `opaque` is not compared: the parameter `x` is R.Any"), "{said}");
}

#[test]
fn a_pass_that_changes_values_is_an_error() {
    // The pass treats a batch norm in training mode as one in inference mode.
    let program = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), dtype=\"float32\"), g: R.Tensor((3,), dtype=\"float32\"), b: R.Tensor((3,), dtype=\"float32\"), m: R.Tensor((3,), dtype=\"float32\"), v: R.Tensor((3,), dtype=\"float32\")) -> R.Tensor((2, 3), dtype=\"float32\"):
        out = R.nn.batch_norm(x, g, b, m, v, axis=1, training=True)
        y = out[0]
        return y
";
    let output = rxopt(program, &["-", "--verify-values", "--pass", "DecomposeOpsForInference"]);
    assert_eq!(output.status.code(), Some(1));
    let said = err(&output);
    assert!(said.contains("DecomposeOpsForInference changes the values of `main`: output 0: "), "{said}");
    assert!(out(&output).is_empty());
}

#[test]
fn every_pass_is_listed_with_its_arguments() {
    let output = rxopt("", &["--list-passes"]);
    assert!(out(&output).contains("BindSymbolicVars(binding_map, func_name = null)\n"), "{}", out(&output));
}

const PYTHON: &str = "\
import numpy as np
from tvm.script import ir as I
from tvm.script import relax as R

def build():
    @I.ir_module
    class First:
        @R.function
        def main(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
            with R.dataflow():
                a: R.Tensor((2,), dtype=\"float32\") = R.exp(x)
                b: R.Tensor((2,), dtype=\"float32\") = R.negative(x)
                R.output(b)
            return b

    return np.zeros(First)
";

#[test]
fn a_module_in_python_is_taken_out_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("build.py");
    std::fs::write(&path, PYTHON).expect("written");
    let path = path.to_string_lossy().into_owned();
    let output = rxopt("", &[&path, "--pass", "DeadCodeElimination", "--verify-values"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(
        text.contains("\nclass First:\n    @R.function\n    def main(") && text.contains("R.negative(x)"),
        "{text}"
    );
    assert!(!text.contains("R.exp(") && !text.contains("np.zeros") && !text.contains("def build"), "{text}");
    assert!(err(&output).contains("`main`: the values agree"), "{}", err(&output));
}

#[test]
fn of_several_modules_one_is_chosen() {
    let second = program().replace("class Module", "class Second").replace("R.add", "R.multiply");
    let two = format!("{}\n{}", program(), second.split_once('\n').map_or("", |(_, rest)| rest));
    let output = rxopt(&two, &["-", "--pass", "EliminateCommonSubexpr"]);
    assert_eq!(output.status.code(), Some(2));
    let wanted =
        "rxopt: <stdin>: several modules have a function `main`; choose one with --module: `Module`, `Second`\n";
    assert_eq!(err(&output), wanted);
    let output = rxopt(&two, &["-", "--module", "Second", "--pass", "EliminateCommonSubexpr"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(text.contains("class Second:") && text.contains("R.multiply(a, a)"), "{text}");
    assert!(!text.contains("class Module:") && !text.contains("R.add("), "{text}");
    let last = rxopt(&two, &["-", "--module", "Module", "--module", "Second", "--pass", "EliminateCommonSubexpr"]);
    assert_eq!(out(&last), text, "of two options the last holds, as in rxrun");
    let output = rxopt(&two, &["-", "--module", "Third", "--pass", "EliminateCommonSubexpr"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(err(&output), "rxopt: <stdin>: there is no module `Third`; there is `Module`, `Second`\n");
}

/// A module whose functions use constants of the surrounding Python, and a macro.
const CONSTANTS: &str = r#"from tvm.script import ir as I, relax as R, tirx as T

WIDTH = 8
NEGATIVE = -3


@T.inline
def put(target, index, value):
    target[index] = value * T.float32(WIDTH)


def build():
    SHAPE = (WIDTH // 2, 2)
    KIND = "float32"

    @I.ir_module
    class Module:
        I.module_attrs({"width": WIDTH})

        @T.prim_func
        def fill(a: T.Buffer((*SHAPE,), KIND), b: T.Buffer(SHAPE, KIND)):
            T.func_attr({"name": f"fill_{WIDTH}"})
            for i, j in T.grid(*SHAPE):
                b[i, j] = a[i, j] * T.float32(NEGATIVE ** 2) - T.float32(NEGATIVE if WIDTH > 4 else MISSING)

        @T.prim_func
        def scale(a: T.Buffer((WIDTH,), KIND), b: T.Buffer((WIDTH,), KIND)):
            for i in range(WIDTH):
                put(b, i, a[i])

        @R.function
        def main(x: R.Tensor(SHAPE, KIND)) -> R.Tensor((WIDTH,), KIND):
            cls = Module
            y = R.call_tir(cls.fill, (x,), out_ty=R.Tensor(SHAPE, KIND))
            z = R.reshape(y, (WIDTH,))
            w = R.call_tir(cls.scale, (z,), out_ty=R.Tensor((WIDTH,), KIND))
            return w

    return Module
"#;

#[test]
fn constants_and_macros_of_the_python_around_are_written_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    std::fs::write(path("net.py"), CONSTANTS).expect("written");
    let output = rxopt("", &[&path("net.py")]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    for line in [
        "I.module_attrs({\"width\": 8})",
        "def fill(a: T.Buffer((4, 2), \"float32\"), b: T.Buffer((4, 2), \"float32\")):",
        "for i, j in T.grid(4, 2):",
        "b[i, j] = a[i, j] * T.float32(9) - T.float32(-3)",
        "T.func_attr({\"name\": \"fill_8\"})",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    for name in ["WIDTH", "SHAPE", "KIND", "NEGATIVE", "MISSING", "put("] {
        assert!(!text.contains(name), "{name} is in\n{text}");
    }
    let passes = rxopt("", &[&path("net.py"), "--pipeline", "default", "--verify-values"]);
    assert_eq!(passes.status.code(), Some(0), "{}", err(&passes));
    assert!(err(&passes).contains("`main`: the values agree"), "{}", err(&passes));
    // The printed text is the same module again.
    let again = rxopt(&text, &["-"]);
    assert_eq!(out(&again), text, "{}", err(&again));
}

#[test]
fn functions_outside_of_a_module_are_no_part_of_it() {
    let outside = "\n@R.function\ndef beside(x: R.Tensor((2,), \"float32\")):\n    y = R.exp(x)\n    return y\n";
    let output = rxopt(&format!("{}{outside}", program()), &["-", "--pass", "EliminateCommonSubexpr"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("class Module:") && !out(&output).contains("beside"), "{}", out(&output));
    let output = rxopt(&format!("{}{outside}", program()), &["-", "--module", "-"]);
    assert!(out(&output).contains("def beside") && !out(&output).contains("class Module"), "{}", out(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_is_an_error() {
    for arguments in [&["--list-passes"][..], &["--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let status =
            Command::new(env!("CARGO_BIN_EXE_rxopt")).args(arguments).stdout(full).status().expect("it starts");
        assert_eq!(status.code(), Some(2), "{arguments:?}");
    }
    let output = rxopt(&program(), &["-", "--output", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
}

#[test]
fn verify_values_skips_passes_that_change_nothing() {
    let output = rxopt(&program(), &["-", "--verify-values", "--pass", "FoldConstant"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(err(&output), "rxopt: FoldConstant: the module is as it was\n");
}

#[test]
fn scalars_of_tir_vars_stay_after_the_outputs() {
    let program = "\
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def shift(src: T.Buffer((T.int64(8),), \"float32\"), dst: T.Buffer((T.int64(8),), \"float32\"), by: T.int64):
        for i in range(T.int64(8)):
            dst[i] = src[i] + T.Cast(\"float32\", by)

    @R.function
    def main(x: R.Tensor((8,), dtype=\"float32\"), s: R.Shape([\"k\"])) -> R.Tensor((8,), dtype=\"float32\"):
        k = T.int64()
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.shift, (x,), out_sinfo=R.Tensor((8,), dtype=\"float32\"), tir_vars=R.shape([k]))
            b = R.call_tir(cls.shift, (a,), out_sinfo=R.Tensor((8,), dtype=\"float32\"), tir_vars=R.shape([k]))
            R.output(b)
        return b
";
    for passes in ["DeadCodeElimination", "AnnotateTIROpPattern,FuseOps,FuseTIR", "FoldConstant"] {
        let output = rxopt(program, &["-", "--pass", passes, "--verify-values"]);
        assert_eq!(output.status.code(), Some(0), "{passes}: {}", err(&output));
        assert_eq!(out(&output).matches("tir_vars=R.shape([k])").count(), 2, "{passes}: {}", out(&output));
    }
    let output = rxopt(program, &["-", "--pass", "CallTIRRewrite"]);
    let printed = out(&output);
    assert_eq!(printed.matches("R.vm.call_tir_dyn(cls.shift, (").count(), 2, "{printed}");
    assert_eq!(printed.matches(", R.shape([k])))").count(), 2, "{printed}");
}

#[test]
fn target_leads_to_the_kernels_of_a_device_step_by_step() {
    let arguments = ["-", "--target", "cpu", "--verify-values", "--print-after-all"];
    let output = rxopt(&program(), &arguments);
    let (printed, said) = (out(&output), err(&output));
    assert_eq!(output.status.code(), Some(0), "{said}");
    for step in ["LegalizeOps", "FuseProducers", "StaticPlanBlockMemory"] {
        assert!(said.contains(&format!("# ----- after {step} -----")), "{step}: {said}");
    }
    assert!(said.contains("LegalizeOps: `main`: the values agree") && !said.contains("unused"), "{said}");
    assert!(printed.contains("@T.prim_func") && printed.contains("R.call_tir(cls.fused_exp_exp_add"), "{printed}");

    let output = rxopt(&program(), &["-", "--target", "cpu", "--entry", "other"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(err(&output), "rxopt: `other`: the module has no Relax function `other`\n");
}

/// A notebook whose third cell is a program.
fn notebook(program: &str) -> String {
    // In ASCII, Rust's escapes of quotes and line ends are those of JSON.
    let cell =
        |kind: &str, source: &str| format!(r#"{{"cell_type": "{kind}", "metadata": {{}}, "source": {source:?}}}"#);
    let cells = [
        cell("markdown", "def main(:"),
        cell("code", "%matplotlib inline\nfrom tvm.script import ir as I, relax as R"),
        cell("code", program),
        cell("code", "Module.show()"),
    ];
    format!(r#"{{"cells": [{}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}"#, cells.join(", "))
}

#[test]
fn notebook_is_transformed_as_its_code_and_never_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = PROGRAM.replace("(n,)", "(4,)");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_string_lossy().into_owned()
    };
    let json = notebook(&program);
    let file = write("net.ipynb", &json);
    let python = write("net.py", &format!("from tvm.script import ir as I, relax as R\n\n{program}"));
    let passes = ["--pass", "EliminateCommonSubexpr,DeadCodeElimination"];
    let output = rxopt("", &[&[file.as_str()], &passes[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("R.add(a, a)"), "{}", out(&output));
    assert_eq!(out(&output), out(&rxopt("", &[&[python.as_str()], &passes[..]].concat())));
    let refused = rxopt("", &[&[file.as_str(), "-o", &file], &passes[..]].concat());
    assert_eq!((refused.status.code(), out(&refused).as_str()), (Some(2), ""));
    assert!(err(&refused).contains("net.ipynb: rxopt writes no notebooks"), "{}", err(&refused));
    assert_eq!(std::fs::read_to_string(&file).ok(), Some(json));
}

#[test]
fn error_in_a_notebook_names_cell_and_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("net.ipynb");
    let program = PROGRAM.replace("(n,)", "(4,)").replace("R.exp(x)", "R.exp(y)");
    std::fs::write(&path, notebook(&program)).expect("written");
    let output = rxopt("", &[&path.to_string_lossy(), "--pass", "DeadCodeElimination"]);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""));
    let said = err(&output);
    assert!(said.contains("RX0201") && said.contains("net.ipynb:cell 3, line 10, column "), "{said}");
    std::fs::write(&path, "{}").expect("written");
    let output = rxopt("", &[&path.to_string_lossy(), "--pass", "DeadCodeElimination"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("net.ipynb: requires a notebook with `cells` of format 4"), "{}", err(&output));
}
