//! Tests of functions that take prepared weights, as `LiftTransformParams` leaves them. Whether arrays are raw or
//! prepared is never guessed.

use super::{DEVICES, Folder, floats};
use rx_db::{FileKind, Workspace};
use rx_tensor::npy;

/// `main(x, w)` was `x + (w + w)` before the pass; raw and prepared weights have the same shape.
const LIFTED: &str = "\
@I.ir_module
class Module:
    @R.function
    def main_transform_params(model_params: R.Tuple(R.Tensor((2,), dtype=\"float32\"))) -> R.Tuple(R.Tensor((2,), dtype=\"float32\")):
        R.func_attr({\"num_input\": 0})
        with R.dataflow():
            w: R.Tensor((2,), dtype=\"float32\") = model_params[0]
            twice: R.Tensor((2,), dtype=\"float32\") = R.add(w, w)
            output_tuple: R.Tuple(R.Tensor((2,), dtype=\"float32\")) = (twice,)
            R.output(output_tuple)
        return output_tuple

    @R.function
    def main(x: R.Tensor((2,), dtype=\"float32\"), twice: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
        R.func_attr({\"num_input\": 1})
        with R.dataflow():
            y: R.Tensor((2,), dtype=\"float32\") = R.add(x, twice)
            R.output(y)
        return y
";

const RAW: &str = "out0: float32 (2,)  min 21.000000  mean 31.500000  max 42.000000";
const PREPARED: &str = "out0: float32 (2,)  min 11.000000  mean 16.500000  max 22.000000";

fn folder(weight: &str) -> Folder {
    let folder = Folder::new();
    folder.write("f.rx", LIFTED);
    let (x, w) = (floats(&[2], &[1.0, 2.0]), floats(&[2], &[10.0, 20.0]));
    folder.arrays("in.npz", &[("x", &x), (weight, &w)]);
    folder
}

#[test]
fn names_distinguish_raw_from_prepared_weights() {
    for device in DEVICES {
        let args = ["f.rx", "--inputs", "in.npz", "--device", device];
        let raw = folder("w").run(&args).succeeds();
        assert!(raw.stdout().contains(RAW), "{}", raw.stdout());
        assert!(raw.stderr().contains("`main_transform_params` prepared 1 weight"), "{}", raw.stderr());
        let prepared = folder("twice").run(&args).succeeds();
        assert!(prepared.stdout().contains(PREPARED), "{}", prepared.stdout());
        assert!(!prepared.stderr().contains("main_transform_params"), "{}", prepared.stderr());
    }
}

/// Returns the text after the editor's code action that adds a raw entry.
fn with_raw_entry() -> String {
    let mut workspace = Workspace::new();
    let file = workspace.add(LIFTED, FileKind::Rx);
    let view = workspace.view(file).expect("a file");
    let edits = rx_ide::raw_entry(&view, LIFTED.find("main(x").expect("main")).expect("edits");
    rx_base::fix::apply(LIFTED, &edits)
}

#[test]
fn a_function_with_a_raw_entry_takes_raw_weights_and_has_them_prepared_once() {
    let text = with_raw_entry();
    for device in DEVICES {
        for (text, calls) in [(text.clone(), 1), (text.replace(", \"rx.once\": True", ""), 2)] {
            let folder = folder("w");
            folder.write("f.rx", &text);
            let args = ["f.rx", "--inputs", "in.npz", "--device", device];
            assert!(folder.run(&args).succeeds().stdout().contains(RAW));
            // The profile is of the run after two others, so the weights are already prepared.
            let run = folder.run(&[&args[..], &["--repeat", "2", "--profile", "--format", "json"]].concat());
            let said = run.succeeds().stdout();
            let events = said.lines().map(|line| serde_json::from_str(line).expect("an event"));
            let kernels = events.filter(|event: &serde_json::Value| event["event"] == "kernel");
            assert_eq!(kernels.map(|kernel| kernel["calls"].as_u64().expect("a number")).sum::<u64>(), calls, "{said}");
        }
    }
}

#[test]
fn ambiguous_weights_need_the_weights_option() {
    let folder = folder("w");
    // Here the prepared weight has the name and the shape of the raw one.
    folder.write(
        "f.rx",
        LIFTED.replace("twice:", "w:").replace("twice,", "sum,").replace("x, twice", "x, w").replace(
            "            w: R.Tensor((2,), dtype=\"float32\") = R.add(w, w)",
            "            sum: R.Tensor((2,), dtype=\"float32\") = R.add(w, w)",
        ),
    );
    let args = ["f.rx", "--inputs", "in.npz", "--device", "cpu"];
    folder.run(&args).fails(2, "say --weights raw or --weights prepared");
    let said = |which: &str| folder.run(&[&args[..], &["--weights", which]].concat()).succeeds().stdout();
    assert!(said("raw").contains(RAW) && said("prepared").contains(PREPARED));
}

#[test]
fn both_kinds_at_once_are_a_mistake() {
    let folder = folder("w");
    npy::write_file(&folder.path("twice.npy"), &floats(&[2], &[1.0, 2.0])).expect("written");
    let run = folder.run(&["f.rx", "--inputs", "in.npz", "--input", "twice=twice.npy"]);
    run.fails(2, "`w` is a raw weight, `twice` one that `main_transform_params` has prepared");
}

#[test]
fn drawn_raw_weights_equal_those_of_the_original_function() {
    let folder = Folder::new();
    folder.write("lifted.rx", LIFTED);
    folder.write(
        "f.rx",
        "@R.function\ndef main(x: R.Tensor((2,), \"float32\"), w: R.Tensor((2,), \"float32\")):\n    y = R.add(x, R.add(w, w))\n    return y\n",
    );
    let out = |args: &[&str]| folder.run(args).succeeds().stdout();
    assert_eq!(out(&["lifted.rx", "--device", "cpu", "--weights", "raw"]), out(&["f.rx", "--device", "cpu"]));
}

#[test]
fn a_function_whose_weights_nothing_prepares_has_no_choice() {
    let folder = Folder::new();
    folder.write("f.rx", "@R.function\ndef main(x: R.Tensor((2,), \"float32\")):\n    y = R.add(x, x)\n    return y\n");
    folder.run(&["f.rx", "--weights", "raw"]).fails(2, "no function of the module prepares the weights of `main`");
}

/// Two weights with the names of a model's file, and a parameter that is not a weight.
const TWO: &str = "\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), dtype=\"float32\"), p_layer1_weight: R.Tensor((2,), dtype=\"float32\"), p_layer1_bias: R.Tensor((2,), dtype=\"float32\")):
        R.func_attr({\"num_input\": 1})
        y = R.add(R.multiply(x, p_layer1_weight), p_layer1_bias)
        return y
";

fn two(arrays: &[(&str, &[i64], &[f32])]) -> Folder {
    let folder = Folder::new();
    folder.write("f.rx", TWO);
    folder.arrays("x.npz", &[("x", &floats(&[2], &[1.0, 2.0]))]);
    let tensors: Vec<_> = arrays.iter().map(|(name, shape, values)| (*name, floats(shape, values))).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
    folder.arrays("w.npz", &tensors);
    folder
}

const WITH_WEIGHTS: [&str; 7] = ["f.rx", "--inputs", "x.npz", "--weights", "w.npz", "--device", "cpu"];

#[test]
fn weights_match_torch_names_and_unused_ones_are_reported() {
    let folder = two(&[
        ("Layer1.weight", &[2], &[10.0, 10.0]),
        ("layer1.bias", &[2], &[0.5, 0.5]),
        ("optimizer.step", &[1], &[3.0]),
    ]);
    let run = folder.run(&WITH_WEIGHTS).succeeds();
    assert!(run.stdout().contains("min 10.500000  mean 15.500000  max 20.500000"), "{}", run.stdout());
    let reported = "w.npz: no parameters of `main`, and not read: optimizer.step";
    assert!(run.stderr().contains(reported), "{}", run.stderr());
}

#[test]
fn all_missing_and_misshapen_weights_are_reported_at_once() {
    let folder = two(&[("layer1.bias", &[3], &[0.0; 3])]);
    for reported in [
        "2 arguments of `main` do not fit:",
        "`p_layer1_weight`, R.Tensor((2,), dtype=\"float32\"), is missing",
        "the array for `p_layer1_bias` is float32 (3,), the parameter is",
    ] {
        folder.run(&WITH_WEIGHTS).fails(2, reported);
    }
}

#[test]
fn missing_weight_is_reported_with_its_function() {
    let folder = two(&[("layer1.bias", &[2], &[0.0; 2])]);
    folder.run(&WITH_WEIGHTS).fails(
        2,
        "an argument of `main` does not fit: `p_layer1_weight`, R.Tensor((2,), dtype=\"float32\"), is missing",
    );
}

#[test]
fn progress_of_reading_is_reported() {
    let folder = two(&[("layer1.weight", &[2], &[1.0; 2]), ("layer1.bias", &[2], &[0.0; 2])]);
    let said = folder.run(&[&WITH_WEIGHTS[..], &["--format", "json"]].concat()).succeeds().stdout();
    let loading: Vec<&str> =
        said.lines().filter(|line| line.contains("\"loading\"") && line.contains("w.npz")).collect();
    assert_eq!(loading.len(), 2, "{said}");
    let read: serde_json::Value = serde_json::from_str(loading[1]).expect("an object");
    assert_eq!(read["done"], read["total"]);
}

#[test]
fn weights_of_another_dtype_are_converted_on_request() {
    let folder = two(&[("layer1.bias", &[2], &[0.5, 0.5])]);
    let doubled = rx_tensor::Tensor::from_values(rx_base::DType::FLOAT64, &[2], &[1.5f64, 2.5]).expect("a tensor");
    folder.arrays("v.npz", &[("layer1.weight", &doubled)]);
    let args = [&WITH_WEIGHTS[..], &["--weights", "v.npz"]].concat();
    folder.run(&args).fails(2, "the array for `p_layer1_weight` is float64 (2,)");
    let run = folder.run(&[&args[..], &["--convert-weights"]].concat()).succeeds();
    assert!(run.stdout().contains("min 2.000000  mean 3.750000  max 5.500000"), "{}", run.stdout());
    folder.run(&["f.rx", "--convert-weights"]).fails(2, "--weights");
}
