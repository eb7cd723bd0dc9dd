//! Tests of `LiftTransformParams`, for example that values stay the same and that every caller passes prepared weights.

use crate::common::{apply, read};
use rx_base::name::name;
use rx_tensor::Tensor;
use rx_transform::{Module, print};

const WEIGHT: &str = "R.Tensor((3, 2), dtype=\"float32\")";
const TURNED: &str = "R.Tensor((2, 3), dtype=\"float32\")";
const INPUT: &str = "R.Tensor((1, 2), dtype=\"float32\")";
const RESULT: &str = "R.Tensor((1, 3), dtype=\"float32\")";

/// Returns a module of these functions, in which `W`, `V`, `X` and `Y` are the types above.
fn module(functions: &str) -> Module {
    let mut text = String::from("n = TypeVar(\"n\")\n@I.ir_module\nclass Module:\n");
    for line in functions.lines() {
        let mut line = line.to_owned();
        for (letter, ty) in [("W", WEIGHT), ("V", TURNED), ("X", INPUT), ("Y", RESULT)] {
            for end in [",", ")", ":", " ="] {
                line = line.replace(&format!(": {letter}{end}"), &format!(": {ty}{end}"));
            }
            line = line.replace(&format!("-> {letter}:"), &format!("-> {ty}:"));
        }
        text.push_str(&format!("    {line}\n"));
    }
    read(&text)
}

/// Runs the pass, and checks that the output has no errors and that a second run changes nothing.
fn lifted(module: &Module) -> Module {
    let made = apply("LiftTransformParams", module.clone()).expect("a module");
    let again = apply("LiftTransformParams", read(&print(&made))).expect("a module");
    assert_eq!(print(&again), print(&made), "twice is once");
    made
}

fn refused(module: Module) -> String {
    apply("LiftTransformParams", module).err().map(|error| error.0).unwrap_or_default()
}

fn floats(shape: &[i64], values: impl IntoIterator<Item = i16>) -> Tensor {
    Tensor::from_f32s(shape, values.into_iter().map(f32::from).collect::<Vec<_>>()).expect("a tensor")
}

fn value(module: &Module, function: &str, inputs: &[Tensor]) -> Vec<Tensor> {
    rx_driver::evaluate(module, name(function), inputs).expect("a value")
}

/// Returns the result of `main` for weights that `transform` has prepared.
fn prepared(module: &Module, transform: &str, input: &Tensor, weights: &str) -> Vec<f32> {
    // `transform` takes and returns a tuple, but `evaluate` passes only tensors. So a function in the module makes the
    // tuple of weights, calls `transform`, and passes the field to `main`.
    let caller = format!(
        "    @R.function
    def whole(x: {INPUT}, w: {WEIGHT}) -> {RESULT}:
        cls = Module
        p = cls.{transform}({weights})
{}
        return y
",
        "        y = cls.main(x, p[0])"
    );
    let whole = read(&format!("{}\n{caller}", print(module)));
    floats_of(&value(&whole, "whole", &[input.duplicate().expect("a copy"), floats(&[3, 2], 1..7)]))
}

fn floats_of(tensors: &[Tensor]) -> Vec<f32> {
    tensors.iter().flat_map(|tensor| tensor.as_slice::<f32>().unwrap_or_default().to_vec()).collect()
}

const LINEAR: &str = "\
@R.function
def main(x: X, w: W) -> Y:
    R.func_attr({\"num_input\": 1})
    with R.dataflow():
        turned: V = R.permute_dims(w, axes=[1, 0])
        y: Y = R.matmul(x, turned, out_dtype=None)
        R.output(y)
    return y
";

#[test]
fn lifted_functions_keep_results() {
    let before = module(LINEAR);
    let after = lifted(&before);
    assert!(print(&after).contains("def main_transform_params(model_params: R.Tuple("), "{}", print(&after));
    let input = floats(&[1, 2], [1, 10]);
    let wanted = floats_of(&value(&before, "main", &[floats(&[1, 2], [1, 10]), floats(&[3, 2], 1..7)]));
    assert_eq!(wanted, [21.0, 43.0, 65.0]);
    assert_eq!(prepared(&after, "main_transform_params", &input, "(w,)"), wanted);
}

#[test]
fn callers_prepare_their_arguments() {
    let functions = format!(
        "{LINEAR}
@R.function(private=True)
def inner(x: X, w: W) -> Y:
    cls = Module
    with R.dataflow():
        y: Y = cls.main(x, w)
        R.output(y)
    return y

@R.function
def outer(x: X, w: W) -> Y:
    cls = Module
    a: Y = cls.inner(x, w)
    b: Y = cls.main(x, w)
    y: Y = R.add(a, b)
    return y
"
    );
    let before = module(&functions);
    let after = lifted(&before);
    let inputs = || [floats(&[1, 2], [1, 10]), floats(&[3, 2], 1..7)];
    let wanted = floats_of(&value(&before, "outer", &inputs()));
    assert_eq!(wanted, [42.0, 86.0, 130.0]);
    assert_eq!(floats_of(&value(&after, "outer", &inputs())), wanted);
    assert_eq!(print(&after).matches("cls.main_transform_params((w,))").count(), 2);
}

#[test]
fn a_function_that_calls_itself_prepares_weights_for_the_call() {
    let functions = "\
@R.function
def main(x: X, go: R.Tensor((), dtype=\"bool\"), w: W) -> Y:
    R.func_attr({\"num_input\": 2})
    cls = Module
    with R.dataflow():
        turned: V = R.permute_dims(w, axes=[1, 0])
        y: Y = R.matmul(x, turned, out_dtype=None)
        R.output(y)
    if go:
        z: Y = cls.main(x, R.const(False, \"bool\"), w)
    else:
        z: Y = y
    return z
";
    let before = module(functions);
    let after = lifted(&before);
    assert!(print(&after).contains("cls.main_transform_params((w,))"), "{}", print(&after));
}

#[test]
fn a_value_of_weights_may_be_the_result() {
    let functions = "\
@R.function
def main(w: W) -> V:
    R.func_attr({\"num_input\": 0})
    with R.dataflow():
        turned: V = R.permute_dims(w, axes=[1, 0])
        R.output(turned)
    return turned
";
    let after = lifted(&module(functions));
    assert_eq!(floats_of(&value(&after, "main", &[floats(&[2, 3], 1..7)])), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn effects_and_excluded_values_are_not_lifted() {
    let functions = "\
@R.function(pure=False)
def main(x: X, w: W) -> Y:
    R.func_attr({\"num_input\": 1})
    R.print(w, format=R.str(\"{}\"))
    with R.dataflow():
        twice: W = R.add(w, w)
        turned: V = R.permute_dims(twice, axes=[1, 0])
        y: Y = R.matmul(x, turned, out_dtype=None)
        R.output(y)
    return y
";
    let text = print(&lifted(&module(functions)));
    let main = text.split("def main(").nth(1).unwrap_or_default();
    assert!(main.contains("R.print(w") && !main.contains("R.permute_dims"), "{text}");
    assert!(main.starts_with(&format!("x: {INPUT}, w: {WEIGHT}, turned: {TURNED})")), "{text}");
    // The bindings that use the result of `stop_lift_params` are held back in one run only: the pass removes the call,
    // as TVM does.
    let held = functions
        .replace("R.permute_dims(twice,", "R.permute_dims(held,")
        .replace("        turned: V", "        held: W = R.builtin.stop_lift_params(twice)\n        turned: V");
    let text = print(&apply("LiftTransformParams", module(&held)).expect("a module"));
    let main = text.split("def main(").nth(1).unwrap_or_default();
    assert!(main.contains("R.permute_dims(twice, axes=[1, 0])") && !main.contains("R.add"), "{text}");
}

#[test]
fn dims_defined_by_raw_weights_only_are_passed_on() {
    let functions = "\
@R.function
def main(x: X, w: R.Tensor((n, 2), dtype=\"float32\")) -> R.Tensor((1, \"n + 1\"), dtype=\"float32\"):
    R.func_attr({\"num_input\": 1})
    with R.dataflow():
        sum: R.Tensor((2,), dtype=\"float32\") = R.sum(w, axis=[0], keepdims=False)
        y: R.Tensor((1, 2), dtype=\"float32\") = R.multiply(x, sum)
        one: R.Tensor((1, 1), dtype=\"float32\") = R.sum(y, axis=[1], keepdims=True)
        wide: R.Tensor((1, n + 1), dtype=\"float32\") = R.broadcast_to(one, R.shape([1, n + 1]))
        R.output(wide)
    return wide

@R.function
def outer(x: X, w: W) -> R.Tensor((1, 4), dtype=\"float32\"):
    cls = Module
    y: R.Tensor((1, 4), dtype=\"float32\") = cls.main(x, w)
    return y
";
    let before = module(functions);
    let after = lifted(&before);
    assert!(print(&after).contains("vars_from_compile_time_params: R.Shape([n])"), "{}", print(&after));
    let inputs = || [floats(&[1, 2], [1, 10]), floats(&[3, 2], 1..7)];
    let wanted = floats_of(&value(&before, "outer", &inputs()));
    assert_eq!(wanted, [129.0; 4]);
    assert_eq!(floats_of(&value(&after, "outer", &inputs())), wanted);
}

#[test]
fn second_lift_runs_after_the_first() {
    let functions = "\
@R.function
def main_transform_params(model_params: R.Tuple(R.Tensor((3, 2), dtype=\"float32\"))) -> R.Tuple(R.Tensor((3, 2), dtype=\"float32\")):
    R.func_attr({\"num_input\": 0})
    with R.dataflow():
        w: W = model_params[0]
        twice: W = R.add(w, w)
        output_tuple: R.Tuple(R.Tensor((3, 2), dtype=\"float32\")) = (twice,)
        R.output(output_tuple)
    return output_tuple
";
    let before = module(&format!("{functions}\n{LINEAR}"));
    let after = lifted(&before);
    let input = floats(&[1, 2], [1, 10]);
    assert_eq!(prepared(&before, "main_transform_params", &input, "(w,)"), [42.0, 86.0, 130.0]);
    assert_eq!(prepared(&after, "main_transform_params", &input, "(w,)"), [42.0, 86.0, 130.0]);
    let text = print(&after);
    assert!(!text.split("def main(").nth(1).unwrap_or_default().contains("R.permute_dims"), "{text}");
    // The caller passes weights that the first step has prepared, and no remaining function takes these.
    let caller = "\
@R.function
def outer(x: X, w: W) -> Y:
    cls = Module
    y: Y = cls.main(x, w)
    return y
";
    assert!(refused(module(&format!("{functions}\n{LINEAR}\n{caller}"))).contains("`outer` calls `main`"));
}

#[test]
fn functions_with_other_weights_share_nothing() {
    let other = LINEAR.replace("main", "other").replace("w: W", "w: W, b: W");
    let both = module(&format!("{LINEAR}\n{other}"));
    let error = apply("LiftTransformParams(true)", both.clone()).err().map(|error| error.0).unwrap_or_default();
    assert!(error.contains("`other` has 2 weights, another has 1"), "{error}");
    assert!(print(&lifted(&both)).contains("def other_transform_params("));
    let shared = module(&format!("{LINEAR}\n{}", LINEAR.replace("main", "other")));
    let text = print(&apply("LiftTransformParams([\"main\", \"other\"])", shared).expect("a module"));
    assert!(text.contains("def transform_params(") && !text.contains("main_transform_params"), "{text}");
    assert_eq!(text.matches("R.permute_dims").count(), 1, "{text}");
}

#[test]
fn a_function_that_is_passed_on_keeps_its_parameters() {
    let functions = format!(
        "{LINEAR}
@R.function
def outer(x: X, w: W) -> R.Object:
    cls = Module
    f = R.make_closure(cls.main, (x, w))
    return f
"
    );
    assert!(refused(module(&functions)).contains("`outer` passes `main` on"));
}
