//! Functions that take prepared weights, as `LiftTransformParams` leaves them: arrays are raw or prepared, and which is never
//! guessed.

use super::{DEVICES, Folder, floats};
use rx_tensor::npy;

/// `main(x, w)` was `x + (w + w)`; raw and prepared weights have one shape.
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
fn names_tell_raw_weights_from_prepared_ones() {
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

#[test]
fn where_nothing_tells_it_is_asked() {
    let folder = folder("w");
    // The prepared weight is called as the raw one is, and has its shape.
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
fn raw_weights_that_are_drawn_are_those_of_the_function_before() {
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
