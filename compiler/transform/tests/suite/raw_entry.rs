//! Tests of `KeepRawEntry`: a function whose weights are prepared stays callable with raw weights.

use crate::common::{apply, read};
use rx_transform::equal::structurally_equal;
use rx_transform::print;

const PROGRAM: &str = "n = TypeVar(\"n\")
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 4), \"float32\"), w: R.Tensor((8, 4), \"float32\"), b: R.Tensor((8,), \"float32\")) -> R.Tensor((n, 8), \"float32\"):
        R.func_attr({\"num_input\": 1})
        with R.dataflow():
            turned = R.permute_dims(w)
            lv = R.matmul(x, turned)
            gv = R.add(lv, b)
            R.output(gv)
        return gv
";

const WANTED: &str = "n = TypeVar(\"n\")
@I.ir_module
class Module:
    @R.function
    def main_prepared_transform_params(weights: R.Tuple(R.Tensor((8, 4), \"float32\"), R.Tensor((8,), \"float32\"))) -> R.Tuple(R.Tensor((8,), \"float32\"), R.Tensor((4, 8), \"float32\")):
        R.func_attr({\"num_input\": 0, \"rx.once\": True})
        with R.dataflow():
            w = weights[0]
            turned = R.permute_dims(w)
            b = weights[1]
            gv = (b, turned)
            R.output(gv)
        return gv

    @R.function
    def main_prepared(x: R.Tensor((n, 4), \"float32\"), b: R.Tensor((8,), \"float32\"), turned: R.Tensor((4, 8), \"float32\")) -> R.Tensor((n, 8), \"float32\"):
        R.func_attr({\"num_input\": 1})
        with R.dataflow():
            lv = R.matmul(x, turned)
            gv = R.add(lv, b)
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((n, 4), \"float32\"), w: R.Tensor((8, 4), \"float32\"), b: R.Tensor((8,), \"float32\")) -> R.Tensor((n, 8), \"float32\"):
        R.func_attr({\"num_input\": 1, \"rx.raw_entry\": True})
        cls = Module
        prepared = cls.main_prepared_transform_params((w, b))
        p0 = prepared[0]
        p1 = prepared[1]
        result = cls.main_prepared(x, p0, p1)
        return result
";

#[test]
fn main_keeps_its_raw_parameters() {
    let module = apply("LiftTransformParams,KeepRawEntry", read(PROGRAM)).expect("a module");
    let text = print(&module);
    read(&text);
    assert!(structurally_equal(&module, &read(WANTED)), "{text}");
}

#[test]
fn function_with_a_raw_entry_is_left_unchanged() {
    let once = apply("LiftTransformParams,KeepRawEntry", read(PROGRAM)).expect("a module");
    let twice = apply("LiftTransformParams,KeepRawEntry", once.clone()).expect("a module");
    let of_main =
        |module: &rx_transform::Module| print(module).lines().filter(|line| line.contains("def main(")).count();
    assert_eq!((of_main(&once), of_main(&twice)), (1, 1));
    assert!(
        print(&twice).contains("def main(x: R.Tensor((n, 4), dtype=\"float32\"), w: R.Tensor((8, 4)"),
        "{}",
        print(&twice)
    );
}

#[test]
fn raw_entry_without_weights_is_not_added() {
    let text = PROGRAM.replace("        R.func_attr({\"num_input\": 1})\n", "");
    let module = apply("LiftTransformParams,KeepRawEntry", read(&text)).expect("a module");
    assert!(structurally_equal(&module, &read(&text)));
}
