//! Tests of `LegalizeOps`: the calls and prim_funcs that operator calls become.

use crate::common::{apply, read};
use rx_transform::Module;

/// Returns a module with these functions, in which `n` is a symbolic dim.
fn module(functions: &str) -> String {
    let lines: String = functions.lines().map(|line| format!("    {line}\n")).collect();
    format!("n = TypeVar(\"n\")\n@I.ir_module\nclass Module:\n{lines}")
}

/// Returns a module with a function `main` of these parameters, return type and statements.
fn main(params: &str, ret: &str, body: &str) -> String {
    let lines: String = body.lines().map(|line| format!("    {line}\n")).collect();
    module(&format!("@R.function\ndef main({params}) -> {ret}:\n{lines}"))
}

fn legalized(text: &str) -> Module {
    let made = apply("LegalizeOps", read(text)).expect("a module");
    // Check that the printed output can be parsed without errors.
    read(&rx_transform::print(&made));
    made
}

/// Runs the pass, and returns the printed output after `class Module:`.
fn printed(text: &str) -> String {
    let printed = rx_transform::print(&legalized(text));
    printed.split_once("class Module:\n").map(|(_, body)| body.to_owned()).unwrap_or(printed)
}

/// Returns the statements of `main`, the last function of the output, without `cls = Module`.
fn statements(text: &str) -> Vec<String> {
    let printed = printed(text);
    let main = printed.split("def main(").nth(1).unwrap_or_default();
    let lines = main.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && *line != "cls = Module");
    lines.map(str::to_owned).collect()
}

/// Returns the headers of the prim_funcs in the output.
fn headers(text: &str) -> Vec<String> {
    let printed = printed(text);
    let lines = printed.lines().zip(printed.lines().skip(1));
    lines.filter(|(decorator, _)| decorator.contains("@T.prim_func")).map(|(_, def)| def.trim().to_owned()).collect()
}

#[test]
fn an_axis_of_one_element_is_repeated_only_where_the_result_has_more() {
    let text = main(
        "x: R.Tensor((1, 8), dtype=\"float32\"), y: R.Tensor((4, 1), dtype=\"float32\"), b: R.Tensor((8,), dtype=\"float32\")",
        "R.Tensor((4, 8), dtype=\"float32\")",
        "\
z: R.Tensor((1, 8), dtype=\"float32\") = R.add(x, b)
out: R.Tensor((4, 8), dtype=\"float32\") = R.multiply(z, y)
return out",
    );
    let printed = printed(&text);
    assert!(printed.contains("out[v_ax0, v_ax1] = x1[v_ax0, v_ax1] + x2[v_ax1]"), "{printed}");
    assert!(printed.contains("out[v_ax0, v_ax1] = x1[T.int64(0), v_ax1] * x2[v_ax0, T.int64(0)]"), "{printed}");
}

#[test]
fn a_call_becomes_a_call_of_a_prim_func() {
    let text = main(
        "x: R.Tensor((2, 3), dtype=\"float32\")",
        "R.Tensor((2, 3), dtype=\"float32\")",
        "\
y: R.Tensor((2, 3), dtype=\"float32\") = R.exp(x)
return y",
    );
    assert_eq!(
        printed(&text),
        "    @T.prim_func(private=True, s_tir=True)
    def tir_exp(x: T.Buffer((T.int64(2), T.int64(3)), \"float32\"), out: T.Buffer((T.int64(2), T.int64(3)), \"float32\")):
        T.func_attr({\"tirx.noalias\": True})
        for ax0, ax1 in T.grid(T.int64(2), T.int64(3)):
            with T.sblock(\"out\"):
                v_ax0, v_ax1 = T.axis.remap(\"SS\", [ax0, ax1])
                out[v_ax0, v_ax1] = T.exp(x[v_ax0, v_ax1])

    @R.function
    def main(x: R.Tensor((2, 3), dtype=\"float32\")) -> R.Tensor((2, 3), dtype=\"float32\"):
        cls = Module
        y = R.call_tir(cls.tir_exp, (x,), out_ty=R.Tensor((2, 3), dtype=\"float32\"))
        return y
"
    );
}

#[test]
fn prim_funcs_that_differ_in_names_only_are_one() {
    let text = main(
        "x: R.Tensor((n, 3), dtype=\"float32\"), m: R.Tensor((2,), dtype=\"float32\")",
        "R.Tensor((2,), dtype=\"float32\")",
        "\
a = R.add(x, x)
b = R.add(a, x)
c = R.add(m, m)
return c",
    );
    assert_eq!(
        statements(&text),
        [
            "a = R.call_tir(cls.add, (x, x), out_ty=R.Tensor((n, 3), dtype=\"float32\"))",
            "b = R.call_tir(cls.add, (a, x), out_ty=R.Tensor((n, 3), dtype=\"float32\"))",
            "c = R.call_tir(cls.add1, (m, m), out_ty=R.Tensor((2,), dtype=\"float32\"))",
            "return c",
        ]
    );
    assert_eq!(headers(&text).len(), 2);
}

#[test]
fn a_prim_func_that_is_there_is_called_again_and_names_that_are_taken_are_not() {
    let once = rx_transform::print(&legalized(&main(
        "x: R.Tensor((2,), dtype=\"float32\")",
        "R.Tensor((2,), dtype=\"float32\")",
        "\
y = R.exp(x)
return y",
    )));
    let twice = once.replace("return y", "z = R.exp(y)\n        return z");
    assert_eq!(headers(&twice).len(), 1);
    assert_eq!(statements(&twice)[1], "z = R.call_tir(cls.tir_exp, (y,), out_ty=R.Tensor((2,), dtype=\"float32\"))");
    // A public prim_func is not reused.
    let public = once.replace("private=True, ", "").replace("return y", "z = R.exp(y)\n        return z");
    assert_eq!(headers(&public).len(), 2);
    assert_eq!(statements(&public)[1], "z = R.call_tir(cls.tir_exp1, (y,), out_ty=R.Tensor((2,), dtype=\"float32\"))");
}

#[test]
fn a_dim_that_no_extent_gives_is_passed() {
    let text = main(
        "x: R.Tensor((16, 4), dtype=\"float32\"), s: R.Shape([n])",
        "R.Tensor((16, 4), dtype=\"float32\")",
        "\
y = R.multiply(x, x)
z = R.strided_slice(x, (0,), (n,), (16,))
return y",
    );
    let z = statements(&text)[1].clone();
    assert!(z.starts_with("z = R.call_tir(cls.strided_slice, (x, n), out_ty=R.Tensor("), "{z}");
    let header = headers(&text)[1].clone();
    assert!(header.contains("\"float32\"), n: T.int64, "), "{header}");
}

#[test]
fn a_dim_that_an_extent_gives_is_not_passed() {
    let text = main(
        "x: R.Tensor((n, 4), dtype=\"float32\")",
        "R.Tensor((\"n * 4\",), dtype=\"float32\")",
        "\
y = R.flatten(x)
return y",
    );
    assert_eq!(statements(&text)[0], "y = R.call_tir(cls.reshape, (x,), out_ty=R.Tensor((n * 4,), dtype=\"float32\"))");
}

#[test]
fn scalars_are_passed_and_constants_are_inlined() {
    let text = main(
        "x: R.Tensor((4,), dtype=\"float32\"), a: T.float32",
        "R.Tensor((4,), dtype=\"float32\")",
        "\
y = R.multiply(x, a)
z = R.add(y, R.const(2, \"float32\"))
w = R.add(z, R.const([1.0, 2.0, 3.0, 4.0], \"float32\"))
return w",
    );
    assert_eq!(
        statements(&text)[..3],
        [
            "y = R.call_tir(cls.multiply, (x, a), out_ty=R.Tensor((4,), dtype=\"float32\"))",
            "z = R.call_tir(cls.add, (y,), out_ty=R.Tensor((4,), dtype=\"float32\"))",
            "w = R.call_tir(cls.add1, (z, R.const([1.0, 2.0, 3.0, 4.0], \"float32\")), out_ty=R.Tensor((4,), dtype=\"float32\"))",
        ]
    );
    assert!(headers(&text)[0].contains("a: T.float32"));
    assert!(printed(&text).contains("+ T.float32(2.0)"));
}

#[test]
fn tuples_are_passed_and_returned() {
    let text = main(
        "t: R.Tuple(R.Tensor((2,), dtype=\"int8\"), R.Tensor((3,), dtype=\"int8\"))",
        "R.Tensor((5,), dtype=\"int8\")",
        "\
a = R.concat(t, axis=0)
b = (a, a)
c = R.concat(b, axis=0)
d = R.split(c, 2, axis=0)
e = R.meshgrid((a,), indexing=\"ij\")
f = e[0]
return f",
    );
    assert_eq!(
        statements(&text),
        [
            "gv: R.Tensor((2,), dtype=\"int8\") = t[0]",
            "gv1: R.Tensor((3,), dtype=\"int8\") = t[1]",
            "a = R.call_tir(cls.concatenate, (gv, gv1), out_ty=R.Tensor((5,), dtype=\"int8\"))",
            "b: R.Tuple(R.Tensor((5,), dtype=\"int8\"), R.Tensor((5,), dtype=\"int8\")) = a, a",
            "c = R.call_tir(cls.concatenate1, (a, a), out_ty=R.Tensor((10,), dtype=\"int8\"))",
            "d = R.call_tir(cls.split, (c,), out_ty=[R.Tensor((5,), dtype=\"int8\"), R.Tensor((5,), dtype=\"int8\")])",
            "gv2 = R.call_tir(cls.meshgrid, (a,), out_ty=R.Tensor((5,), dtype=\"int8\"))",
            "e: R.Tuple(R.Tensor((5,), dtype=\"int8\")) = (gv2,)",
            "f: R.Tensor((5,), dtype=\"int8\") = e[0]",
            "return f",
        ]
    );
}

#[test]
fn tuple_with_a_local_field_is_read_after_its_dataflow_block() {
    let text = main(
        "x: R.Tensor((2,), dtype=\"float32\")",
        "R.Tensor((4,), dtype=\"float32\")",
        "\
with R.dataflow():
    a = R.exp(x)
    t = (a, x)
    R.output(t)
y = R.concat(t, axis=0)
return y",
    );
    let statements = statements(&text);
    let call = statements.iter().find(|statement| statement.contains("cls.concatenate")).expect("a call");
    assert!(
        !call.contains("(a, x)") && statements.iter().any(|statement| statement.ends_with("= t[0]")),
        "{statements:#?}"
    );
}

#[test]
fn branches_and_nested_functions_are_legalized_too() {
    let text = main(
        "x: R.Tensor((2,), dtype=\"float32\"), c: R.Tensor((), dtype=\"bool\")",
        "R.Tensor((2,), dtype=\"float32\")",
        "\
@R.function
def inner(y: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
    z = R.exp(y)
    return z
if c:
    a = R.exp(x)
    b = R.negative(a)
else:
    a = inner(x)
    b = R.exp(a)
return b",
    );
    let printed = printed(&text);
    assert_eq!(printed.matches("R.call_tir(cls.tir_exp").count(), 3, "{printed}");
    assert_eq!(headers(&text).len(), 2);
}

#[test]
fn calls_of_unknown_shape_and_host_operators_stay() {
    let text = main(
        "x: R.Tensor(ndim=2, dtype=\"float32\"), y: R.Tensor((2, 2))",
        "R.Tensor(dtype=\"float32\", ndim=2)",
        "\
a = R.exp(x)
b = R.exp(y)
c = R.unique(x)
d = R.shape_of(x)
return a",
    );
    assert_eq!(headers(&text).len(), 0);
    assert_eq!(printed(&text), {
        let module = rx_transform::print(&read(&text));
        module.split_once("class Module:\n").map(|(_, body)| body.to_owned()).unwrap_or_default()
    });
}

#[test]
fn a_shape_that_is_a_variable_stays() {
    let text = main(
        "s: R.Shape([2, 3]), v: R.Tensor((), dtype=\"float32\")",
        "R.Tensor(s, dtype=\"float32\")",
        "\
y = R.full(s, v, dtype=\"float32\")
return y",
    );
    assert_eq!(headers(&text).len(), 0);
}

#[test]
fn markers_for_other_passes_are_removed() {
    let text = main(
        "x: R.Tensor((2,), dtype=\"float32\")",
        "R.Tensor((2,), dtype=\"float32\")",
        "\
y = R.grad.no_grad(x)
return y",
    );
    assert_eq!(statements(&text), ["y: R.Tensor((2,), dtype=\"float32\") = x", "return y"]);
}

#[test]
fn functions_without_a_class_get_one_to_call_prim_funcs_by() {
    let text = "@R.function
def main(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
    y = R.exp(x)
    return y
";
    assert!(rx_transform::print(&legalized(text)).contains("class Module:\n    @T.prim_func"));
}

#[test]
fn operators_may_be_left_out() {
    let text = main(
        "x: R.Tensor((2,), dtype=\"float32\")",
        "R.Tensor((2,), dtype=\"float32\")",
        "\
y = R.exp(x)
z = R.add(x, y)
return z",
    );
    let made = apply("LegalizeOps(null, [\"relax.add\"])", read(&text)).expect("a module");
    let printed = rx_transform::print(&made);
    assert!(printed.contains("cls.tir_exp") && printed.contains("R.add(x, y)"), "{printed}");
}

#[test]
fn arguments_that_mean_nothing_are_errors() {
    let text = main("x: R.Tensor((2,), dtype=\"float32\")", "R.Tensor((2,), dtype=\"float32\")", "return x");
    let error = |passes: &str| apply(passes, read(&text)).err().map(|error| error.0).unwrap_or_default();
    assert!(error("LegalizeOps({\"relax.add\": \"f\"})").contains("Python functions"));
    assert!(error("LegalizeOps({}, [\"relax.ad\"])").contains("there is no operator `relax.ad`"));
    assert!(error("LegalizeOps({}, \"relax.add\")").contains("list of names"));
}
