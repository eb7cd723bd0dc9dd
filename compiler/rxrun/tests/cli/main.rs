//! Integration tests of the `rxrun` binary: its output, files, exit status and error messages.

mod constants;
mod four_bits;
mod inputs;
mod kernels;
mod macros;
mod modules;
mod notebook;
mod observe;
mod owner;
mod pages;
mod progress;
mod stages;
mod weights;

use rx_base::DType;
use rx_tensor::{Scalar, Tensor, npy, npz};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A program that takes rows of a table and applies relu.
const TAKE: &str = r#"from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(table: R.Tensor((4, 2), "float32"), indices: R.Tensor(("n",), "int64")):
        rows = R.take(table, indices, axis=0)
        y = R.nn.relu(rows)
        return y, rows
"#;

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, contents).expect("written");
        path
    }

    fn arrays(&self, name: &str, arrays: &[(&str, &Tensor)]) -> PathBuf {
        let path = self.path(name);
        npz::write(&path, arrays).expect("written");
        path
    }

    fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, &[])
    }

    /// Runs the binary with additional environment variables.
    fn run_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxrun"));
        let command = command.current_dir(self.0.path()).args(args).envs(variables.iter().copied());
        Run(command.output().expect("it starts"))
    }
}

struct Run(Output);

impl Run {
    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }

    #[track_caller]
    fn succeeds(self) -> Run {
        assert_eq!(self.0.status.code(), Some(0), "{}", self.stderr());
        self
    }

    /// Checks that the run fails with `status` and a message that contains `words`, and prints no result.
    #[track_caller]
    fn fails(self, status: i32, words: &str) {
        let said = self.stderr();
        assert_eq!(self.0.status.code(), Some(status), "{said}");
        assert!(said.contains(words), "{words:?} is not in {said}");
        assert!(!said.contains("panicked"), "{said}");
        assert_eq!(self.stdout(), "");
    }
}

fn floats(shape: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_f32s(shape, values).expect("a tensor")
}

fn ints(values: &[i64]) -> Tensor {
    Tensor::from_i64s(&[values.len() as i64], values).expect("a tensor")
}

fn table() -> Tensor {
    floats(&[4, 2], &[0.0, 1.0, -2.0, 3.0, 4.0, 5.0, 6.0, -7.0])
}

const DEVICES: [&str; 2] = ["cpu", "interp"];

#[test]
fn outputs_are_described_written_and_compared() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    folder.arrays("in.npz", &[("table", &table()), ("indices", &ints(&[3, 1])), ("out0", &ints(&[9]))]);
    for device in DEVICES {
        let run = folder.run(&["take.rx", "--inputs", "in.npz", "--output", "out.npz", "--device", device]).succeeds();
        let said = run.stdout();
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines,
            [
                "out0: float32 (2, 2)  min 0.000000  mean 2.250000  max 6.000000  nan 0",
                "out1: float32 (2, 2)  min -7.000000  mean 0.000000  max 6.000000  nan 0",
            ]
        );
        let out = npz::read(&folder.path("out.npz")).expect("written");
        let names: Vec<&str> = out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["out0", "out1"]);
        assert_eq!(out[0].1.as_slice::<f32>(), Some(&[6.0, 0.0, 0.0, 3.0][..]));
        folder.run(&["take.rx", "--inputs", "in.npz", "--check", "out.npz", "--device", device]).succeeds();
    }
    let wrong = floats(&[2, 2], &[6.0, 0.0, 0.5, 3.0]);
    folder.arrays("wrong.npz", &[("out0", &wrong), ("out1", &wrong)]);
    let run = folder.run(&["take.rx", "--inputs", "in.npz", "--check", "wrong.npz"]);
    assert_eq!(run.0.status.code(), Some(1));
    assert!(run.stdout().contains("out0: 1 elements differ"), "{}", run.stdout());
}

#[test]
fn names_match_exactly_or_with_invalid_characters_replaced() {
    let folder = Folder::new();
    folder.write("f.rx", "@R.function\ndef f(a_b: R.Tensor((1,), \"float32\")):\n    return a_b\n");
    folder.arrays("dots.npz", &[("a.b", &floats(&[1], &[2.5]))]);
    assert!(folder.run(&["f.rx", "--inputs", "dots.npz"]).succeeds().stdout().contains("max 2.5"));
    npy::write_file(&folder.path("x.npy"), &floats(&[1], &[3.5])).expect("written");
    let run = folder.run(&["f.rx", "--inputs", "dots.npz", "--input", "a_b=x.npy"]).succeeds();
    assert!(run.stdout().contains("max 3.5"), "{}", run.stdout());
}

#[test]
fn drawn_inputs_depend_on_the_seed_only() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let drawn = |seed: &str, device: &str| {
        let args = ["take.rx", "--dim", "n=5", "--seed", seed, "--device", device];
        folder.run(&args).succeeds().stdout()
    };
    // Drawn indices are less than the extent that they index; otherwise this would fail.
    assert_eq!(drawn("1", "cpu"), drawn("1", "interp"));
    assert_ne!(drawn("1", "cpu"), drawn("2", "cpu"));
}

#[test]
fn an_index_out_of_range_is_an_error_of_its_own_statement() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    folder.arrays("bad.npz", &[("table", &table()), ("indices", &ints(&[0, 7]))]);
    for device in DEVICES {
        let run = folder.run(&["take.rx", "--inputs", "bad.npz", "--device", device, "--output", "out.npz"]);
        let said = run.stderr();
        run.fails(1, "take: index 7 is out of range for axis 0 of `x`, which has 4 elements");
        assert!(said.contains("take.rx:8:9"), "{said}");
        assert!(!folder.path("out.npz").exists(), "nothing is written");
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused_with_the_declaration() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let declared = "def main(table: R.Tensor((4, 2), \"float32\"), indices";
    let refused = |args: &[&str], words: &str| {
        let run = folder.run(&[&["take.rx", "--output", "out.npz"], args].concat());
        assert!(run.stderr().contains(declared), "{}", run.stderr());
        run.fails(2, words);
        assert!(!folder.path("out.npz").exists(), "nothing is written");
    };
    refused(&[], "the dim n of parameter `indices` is not known: say --dim n=…");
    let doubles = Tensor::zeros(DType::FLOAT64, &[4, 2]).expect("a tensor");
    folder.arrays("dtype.npz", &[("table", &doubles)]);
    refused(&["--dim", "n=2", "--inputs", "dtype.npz"], "is float64 (4, 2)");
    folder.arrays("shape.npz", &[("table", &floats(&[4, 1], &[0.0; 4]))]);
    refused(&["--dim", "n=2", "--inputs", "shape.npz"], "axis 1 must be 2");
    folder.arrays("rank.npz", &[("table", &floats(&[4], &[0.0; 4]))]);
    refused(&["--dim", "n=2", "--inputs", "rank.npz"], "it must have 2 dims");
    folder.arrays("n.npz", &[("indices", &ints(&[1, 2, 3]))]);
    refused(&["--dim", "n=2", "--inputs", "n.npz"], "axis 0 must be 2");
}

#[test]
fn files_and_flags_that_are_wrong_are_one_clear_error() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    folder.write("corrupt.npz", b"PK\x03\x04 and no more");
    folder.write("empty.npz", b"");
    folder.write("none.rx", "x = 1\n");
    folder.write("two.rx", "@R.function\ndef f(x: R.Tensor((1,), \"float32\")):\n    return x\n\n@R.function\ndef g(x: R.Tensor((1,), \"float32\")):\n    return x\n");
    folder.write("wrong.rx", TAKE.replace("relu(rows)", "relu(row)"));
    folder.run(&["nothing.rx"]).fails(2, "nothing.rx: no such file");
    folder.run(&["none.rx"]).fails(2, "there is no Relax function in it");
    folder.run(&["take.rx", "--entry", "other"]).fails(2, "no Relax function `other`; it has `main`");
    folder.run(&["two.rx"]).fails(2, "say which with --entry: `f`, `g`");
    folder.run(&["two.rx", "--entry", "g"]).succeeds();
    folder.run(&["take.rx", "--dim", "n=2", "--inputs", "corrupt.npz"]).fails(2, "corrupt.npz");
    folder.run(&["take.rx", "--dim", "n=2", "--inputs", "empty.npz"]).fails(2, "empty.npz");
    folder.run(&["take.rx", "--dim", "n=2", "--inputs", "nothing.npz"]).fails(2, "nothing.npz");
    folder.run(&["take.rx", "--dim", "n=2", "--input", "other=nothing.npy"]).fails(2, "nothing.npy");
    npy::write_file(&folder.path("x.npy"), &table()).expect("written");
    folder.run(&["take.rx", "--dim", "n=2", "--input", "other=x.npy"]).fails(2, "no parameter of this name");
    folder.run(&["take.rx", "--dim", "n=-2"]).fails(2, "is not a valid extent");
    folder.run(&["take.rx", "--repeat", "0"]).fails(2, "--repeat");
    folder.run(&["wrong.rx", "--dim", "n=2"]).fails(1, "`row` is not defined");
    let run = folder.run(&["take.rx", "--dim", "n=2", "--output", "nowhere/out.npz"]);
    assert_eq!(run.0.status.code(), Some(2), "{}", run.stderr());
    assert!(!folder.path("nowhere").exists());
}

#[test]
fn missing_device_is_reported() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let run = folder.run(&["take.rx", "--dim", "n=2", "--device", "cuda"]);
    match run.0.status.code() {
        Some(0) => println!("skipped: this machine has a CUDA device"),
        _ => run.fails(2, "CUDA"),
    }
    folder.run(&["take.rx", "--dim", "n=2", "--device", "auto"]).succeeds();
}

#[test]
fn call_without_lowering_is_reported_at_its_place() {
    let folder = Folder::new();
    folder.write(
        "f.rx",
        "@R.function\ndef f(x: R.Tensor((3,), \"float32\")):\n    y = R.call_dps_packed(\"lib.f\", (x,), out_ty=R.Tensor((3,), \"float32\"))\n    return y\n",
    );
    let run = folder.run(&["f.rx"]);
    assert!(run.stderr().contains("f.rx:3:5"), "{}", run.stderr());
    run.fails(1, "RX0801");
}

#[test]
fn events_are_one_object_a_line() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let run = folder.run(&["take.rx", "--dim", "n=2", "--format", "json", "--device", "cpu"]).succeeds();
    let events: Vec<String> = run
        .stdout()
        .lines()
        .map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).expect("an object");
            object["event"].as_str().expect("an event").to_owned()
        })
        .collect();
    let kinds: Vec<&str> = events.iter().map(String::as_str).filter(|event| *event != "building").collect();
    assert_eq!(kinds, ["checked", "built", "ran", "output", "output"]);
}

#[test]
fn constants_written_in_line_have_all_their_elements() {
    let folder = Folder::new();
    folder.write(
        "c.rx",
        "@R.function\ndef f(x: R.Tensor((2, 3), \"float32\")):\n    y = R.add(x, R.const([[1, 2.5, 3], [4, 5, -6]], \"float32\"))\n    z = R.const([7, -8], \"int64\")\n    return y, z\n",
    );
    folder.arrays("in.npz", &[("x", &floats(&[2, 3], &[0.0; 6]))]);
    for device in DEVICES {
        folder.run(&["c.rx", "--inputs", "in.npz", "--output", "out.npz", "--device", device]).succeeds();
        let out = npz::read(&folder.path("out.npz")).expect("written");
        assert_eq!(out[0].1.as_slice::<f32>(), Some(&[1.0, 2.5, 3.0, 4.0, 5.0, -6.0][..]));
        assert_eq!(out[1].1.as_slice::<i64>(), Some(&[7, -8][..]));
    }
}

#[test]
fn prim_funcs_take_scalars() {
    let folder = Folder::new();
    folder.write(
        "scale.rx",
        r#"from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(x: T.Buffer((4,), "float32"), by: T.float32, add: T.int64, y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i] * by + T.Cast("float32", add)

    @R.function
    def main(x: R.Tensor((4,), "float32"), by: T.float32, add: T.int64) -> R.Tensor((4,), "float32"):
        cls = Module
        y = R.call_tir(cls.scale, (x, by, add), out_ty=R.Tensor((4,), "float32"))
        return y
"#,
    );
    let by = Tensor::from_scalar(DType::FLOAT32, Scalar::Float(2.5)).expect("a tensor");
    folder.arrays("in.npz", &[("x", &floats(&[4], &[0.0, 1.0, 2.0, 3.0])), ("by", &by)]);
    for device in DEVICES {
        let args = ["scale.rx", "--inputs", "in.npz", "--dim", "add=3", "--output", "out.npz", "--device", device];
        folder.run(&args).succeeds();
        let out = npz::read(&folder.path("out.npz")).expect("written");
        assert_eq!(out[0].1.as_slice::<f32>(), Some(&[3.0, 5.5, 8.0, 10.5][..]));
        folder.run(&["scale.rx", "--device", device]).succeeds();
    }
}

#[test]
fn kernel_without_machine_code_is_interpreted_with_a_remark() {
    let folder = Folder::new();
    folder.write(
        "f8.rx",
        "@R.function\ndef f(x: R.Tensor((4,), \"float32\")):\n    y = R.astype(x, \"float8_e4m3fn\")\n    z = R.astype(y, \"float32\")\n    return z, y\n",
    );
    let run = folder.run(&["f8.rx", "--device", "cpu"]).succeeds();
    assert!(run.stderr().contains("is interpreted: no code for float8_e4m3fn"), "{}", run.stderr());
    assert_eq!(run.stdout(), folder.run(&["f8.rx", "--device", "interp"]).succeeds().stdout());
}

#[test]
fn control_flow_closures_and_calls_run() {
    let folder = Folder::new();
    folder.write(
        "flow.rx",
        r#"from tvm.script import ir as I
from tvm.script import relax as R

@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        cls = Module
        @R.function
        def add_x(y: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
            z = R.add(x, y)
            return z
        if c:
            w = cls.twice(x)
        else:
            w = R.negative(x)
        out = add_x(w)
        return out

    @R.function
    def twice(x: R.Tensor(("m", 2), "float32")) -> R.Tensor(("m", 2), "float32"):
        y = R.multiply(x, R.const(2.0, "float32"))
        return y
"#,
    );
    let condition = |value| Tensor::from_scalar(DType::BOOL, Scalar::Int(value)).expect("a tensor");
    let x = floats(&[1, 2], &[1.0, 2.0]);
    for (value, most) in [(1, "max 6.0"), (0, "max 0.0")] {
        folder.arrays("in.npz", &[("c", &condition(value)), ("x", &x)]);
        for device in DEVICES {
            let said = folder.run(&["flow.rx", "--inputs", "in.npz", "--device", device]).succeeds().stdout();
            assert!(said.contains(most), "{said}");
        }
    }
}

/// Lists the models that have values, and the stages in the same folder that include their constants: names without
/// `.rx`.
fn named(models: &Path) -> Vec<String> {
    let names = |folder: &str, ending: &str| -> Vec<String> {
        let entries = std::fs::read_dir(models.join(folder)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(ending)?.to_owned())).collect();
        names.sort();
        names
    };
    let stages = names("stages", ".rx");
    let mut all = Vec::new();
    for model in names("", ".npz") {
        let of = stages.iter().filter(|stage| stage.split('.').next() == Some(&model));
        let of: Vec<String> = of.map(|stage| format!("stages/{stage}")).collect();
        all.push(model);
        all.extend(of);
    }
    all.retain(|name| {
        let text = std::fs::read_to_string(models.join(format!("{name}.rx"))).unwrap_or_default();
        let complete = !text.contains("metadata[") || text.contains("metadata = ");
        if !complete {
            println!("skipped: {name}: its text has no metadata section that holds its constants");
        }
        complete
    });
    all
}

/// The folder of models, given by `RX_MODELS`.
fn models() -> Option<PathBuf> {
    let models = std::env::var_os("RX_MODELS").map(PathBuf::from);
    if models.is_none() {
        println!("skipped: RX_MODELS names no folder of models");
    }
    models
}

/// Returns the paths of a model's program and values.
fn model(models: &Path, name: &str) -> (String, String) {
    let base = name.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or(name);
    let shown = |name: String| models.join(name).display().to_string();
    (shown(format!("{name}.rx")), shown(format!("{base}.npz")))
}

/// Runs every model on a device. The models' inputs and expected results were computed by PyTorch.
fn agree_with_pytorch(device: &str) {
    let Some(models) = models() else { return };
    let folder = Folder::new();
    for name in named(&models) {
        let (program, values) = model(&models, &name);
        let args = [&program, "--inputs", &values, "--check", &values, "--device", device];
        let run = folder.run(&args).succeeds();
        println!("{name} on {device}: {}", run.stdout().lines().last().unwrap_or_default());
    }
}

#[test]
fn models_agree_with_pytorch() {
    agree_with_pytorch("cpu");
}

#[test]
#[ignore = "sweep: .ci/full"]
fn models_agree_with_pytorch_in_the_interpreter() {
    agree_with_pytorch("interp");
}

#[test]
fn models_agree_with_pytorch_as_simulated_cuda() {
    agree_with_pytorch_as_simulated_cuda(|name| !name.contains('.'));
}

/// Together with the models, the last stages contain all kernels of the stages between them.
#[test]
#[ignore = "sweep: .ci/full"]
fn lowered_models_agree_with_pytorch_as_simulated_cuda() {
    agree_with_pytorch_as_simulated_cuda(|name| name.ends_with(".lowered"));
}

/// Runs the CUDA C of the wanted models on the CPU, with one fiber per thread.
fn agree_with_pytorch_as_simulated_cuda(wanted: fn(&str) -> bool) {
    let Some(models) = models() else { return };
    if let Err(missing) = rx_cuda::simulator::compiler() {
        println!("skipped: {missing}");
        return;
    }
    let folder = Folder::new();
    for name in named(&models).iter().filter(|name| wanted(name)) {
        let (program, values) = model(&models, name);
        let args = [&program, "--inputs", &values, "--check", &values, "--device", "cuda-sim"];
        let run = folder.run(&args).succeeds();
        println!("{name}: {}", run.stdout().lines().last().unwrap_or_default());
    }
}

/// Compiles the CUDA C of every model with NVRTC.
#[test]
fn models_compile_as_cuda() {
    let Some(models) = models() else { return };
    if let Err(missing) = rx_cuda::nvrtc::probe() {
        println!("skipped: {missing}");
        return;
    }
    let folder = Folder::new();
    for name in named(&models).iter().filter(|name| !name.contains('.') || name.ends_with(".lowered")) {
        let (program, _) = model(&models, name);
        for arch in ["sm_80", "sm_90"] {
            let run = folder.run(&[&program, "--emit", "ptx", "--arch", arch]).succeeds();
            assert!(run.stdout().contains(&format!(".target {arch}")), "{name}");
            println!("{name}: {} bytes of PTX for {arch}", run.stdout().len());
        }
    }
}

#[test]
fn settings_select_warnings_and_declare_operators() {
    const TEXT: &str =
        "@R.function\ndef main(x: R.Tensor((\"n\", 6), \"float32\")):\n    y = R.my.halve(x)\n    return y\n";
    const HALVE: &str = "[[ops]]\nname = 'my.halve'\nargs = [{ name = 'x', type = 'R.Tensor((\"n\", \"m\"), dtype=\"d\")' }]\n\
                         result = 'R.Tensor((\"n\", \"m // 2\"), dtype=\"d\")'\n";
    let folder = Folder::new();
    folder.write("f.rx", TEXT);
    folder.write("rx.toml", HALVE);
    // The checker knows the operator, but rx has no implementation of it.
    folder.run(&["f.rx", "--dim", "n=2"]).fails(1, "my.halve");
    folder.write("f.rx", TEXT.replace(", 6", ""));
    folder.run(&["f.rx", "--dim", "n=2"]).fails(1, "nothing is run");
    let unused = TAKE.replace("return y, rows", "return rows").replace("(\"n\",), \"int64\"", "(2,), \"int64\"");
    let wrong = unused.replace("R.nn.relu", "R.nn.rellu");
    folder.write("take.rx", &unused);
    folder.write("wrong.rx", &wrong);
    folder.write("rx.toml", "severity = { all = 'off' }\n");
    // An error prevents the run, whatever its severity is set to.
    folder.run(&["wrong.rx"]).fails(1, "RX0202");
    folder.write("rx.toml", "severity = { all = 'offf' }\n");
    folder.run(&["take.rx"]).fails(2, "rx.toml is wrong; nothing is run");
    folder.run(&["take.rx", "--isolated"]).succeeds();
    folder.run(&["take.rx", "--config", "none.toml"]).fails(2, "none.toml: no such file");
}

#[test]
fn severities_of_warnings_are_those_of_the_settings() {
    let folder = Folder::new();
    let text = "size = read_size()\n@R.function\ndef main(x: R.Tensor((4,), dtype=\"float32\")):\n    y = R.reshape(x, (size,))\n    return y\n";
    folder.write("f.py", text);
    assert!(folder.run(&["f.py", "--emit", "relax"]).succeeds().stderr().contains("warning[RX0251"));
    folder.write("rx.toml", "severity = { RX0251 = 'off' }\n");
    assert!(!folder.run(&["f.py", "--emit", "relax"]).succeeds().stderr().contains("RX0251"));
    folder.write("rx.toml", "severity = { RX0251 = 'error' }\n");
    folder.run(&["f.py", "--emit", "relax"]).fails(1, "1 error; nothing is run");
    folder.write("f.py", text.replace("(size,))", "(size,))  # rx: ignore[RX0251]"));
    folder.run(&["f.py", "--emit", "relax"]).succeeds();
}

/// The program's prints go to standard output; a failed assertion is an error at its position.
#[test]
fn programs_print_and_assert() {
    let folder = Folder::new();
    let text = TAKE.replace("@R.function", "@R.function(pure=False)").replace(
        "        y = R.nn.relu",
        "        R.print(rows, format=\"rows are {}\")\n        R.assert_op(R.less(R.max(rows), R.const(2.0, \"float32\")), \
         format=\"too large\")\n        y = R.nn.relu",
    );
    folder.write("net.rx", text);
    let table = |top: f32| floats(&[4, 2], &[1.0, -1.0, 0.5, 0.0, 0.0, 0.0, 0.0, top]);
    let indices = ints(&[3]);
    let run = |top: f32, args: &[&str]| {
        folder.arrays("in.npz", &[("table", &table(top)), ("indices", &indices)]);
        folder.run(&[&["net.rx", "--inputs", "in.npz"], args].concat())
    };
    let right = run(1.5, &[]);
    assert_eq!(right.0.status.code(), Some(0), "{}", String::from_utf8_lossy(&right.0.stderr));
    assert!(right.stdout().starts_with("rows are [[0.  1.5]]\n"), "{}", right.stdout());
    let json = run(1.5, &["--format", "json", "--profile"]).stdout();
    let printed: Vec<&str> = json.lines().filter(|line| line.contains("\"printed\"")).collect();
    assert_eq!(printed, [r#"{"event":"printed","text":"rows are [[0.  1.5]]"}"#]);
    // Two runs of three calls each give two times and six printed lines. If the first call fails, nothing else is
    // reported.
    let json = run(1.5, &["--format", "json", "--repeat", "2", "--calls", "3"]).stdout();
    let events: Vec<serde_json::Value> = json.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    assert_eq!(of("printed").len(), 6, "{json}");
    assert_eq!(of("ran")[0]["seconds"].as_array().map(Vec::len), Some(2), "{json}");
    assert_eq!(of("output").len(), 2, "{json}");
    let failed = run(3.0, &["--calls", "3"]);
    assert_eq!((failed.0.status.code(), failed.stdout().as_str()), (Some(1), "rows are [[0. 3.]]\n"));
    run(1.5, &["--calls", "0"]).fails(2, "--calls");
    let wrong = run(3.0, &[]);
    assert_eq!(wrong.0.status.code(), Some(1));
    let said = String::from_utf8_lossy(&wrong.0.stderr).into_owned();
    assert!(said.contains("net.rx:10:9") && said.contains("R.assert_op: the assertion failed: too large"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_is_an_error() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    let full = "No space left on device";
    for arguments in [&["--dim", "n=2"][..], &["--emit", "tir"], &["--dim", "n=2", "--format", "json"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxrun"));
        let stdout = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let command = command.current_dir(folder.0.path()).arg("take.rx").args(arguments).stdout(stdout);
        let run = Run(command.output().expect("it starts"));
        assert_eq!(run.0.status.code(), Some(2), "{}", run.stderr());
        assert!(run.stderr().contains(&format!("rxrun: standard output: {full}")), "{}", run.stderr());
    }
    let run = folder.run(&["take.rx", "--dim", "n=2", "--output", "/dev/full"]);
    assert_eq!(run.0.status.code(), Some(2), "{}", run.stderr());
    assert!(run.stderr().contains(full) && !run.stderr().contains("drop"), "{}", run.stderr());
}

#[test]
fn run_beyond_its_iterations_is_an_error_under_both_names_of_the_flag() {
    let folder = Folder::new();
    folder.write("take.rx", TAKE);
    for flag in ["--max-iterations", "--max-rounds"] {
        folder.run(&["take.rx", "--dim", "n=2", flag, "1"]).fails(1, "it needs more iterations");
        assert_eq!(folder.run(&["take.rx", "--dim", "n=2", flag, "1000000"]).0.status.code(), Some(0), "{flag}");
    }
    let help = folder.run(&["--help"]).stdout();
    assert!(help.contains("--max-iterations") && !help.contains("--max-rounds"), "{help}");
}
