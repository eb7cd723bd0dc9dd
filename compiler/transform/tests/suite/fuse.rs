//! Tests of `FuseOps`, `FuseTIR` and `StaticPlanBlockMemory`: the printed output of each pass, and that values stay the
//! same.

use crate::common::{apply, read};
use rx_base::name::name;
use rx_tensor::Tensor;
use rx_transform::{Module, print};

/// Returns the text of a prim_func over vectors of `n` elements, which computes `Out[v] = value` and has this pattern.
fn vector(function: &str, params: &[&str], value: &str, pattern: i64) -> String {
    let mut text = format!("    @T.prim_func(private=True, s_tir=True)\n    def {function}(");
    params.iter().for_each(|param| text.push_str(&format!("var_{param}: T.handle, ")));
    text.push_str("var_Out: T.handle):\n");
    text.push_str(&format!("        T.func_attr({{\"op_pattern\": {pattern}, \"tirx.noalias\": True}})\n"));
    text.push_str("        n = T.int64()\n");
    for param in params.iter().chain(&["Out"]) {
        text.push_str(&format!("        {param} = T.match_buffer(var_{param}, (n,), \"float32\")\n"));
    }
    text.push_str("        for i in range(n):\n            with T.sblock(\"compute\"):\n");
    text.push_str(&format!("                v = T.axis.spatial(n, i)\n                Out[v] = {value}\n\n"));
    text
}

const IN_PLACE: &str = "    @T.prim_func(private=True, s_tir=True)
    def exp_inplace(var_A: T.handle):
        T.func_attr({\"op_pattern\": 0, \"tirx.noalias\": True})
        n = T.int64()
        A = T.match_buffer(var_A, (n,), \"float32\")
        for i in range(n):
            with T.sblock(\"compute\"):
                v = T.axis.spatial(n, i)
                A[v] = T.exp(A[v])

";

/// Returns a module with the prim_funcs `add`, `exp`, `exp_inplace` and the opaque `sort`, followed by these functions.
/// In `functions`, `V` is the type of a vector of `n` elements.
fn module(functions: &str) -> Module {
    let mut text = String::from("n = TypeVar(\"n\")\nm = TypeVar(\"m\")\n@I.ir_module\nclass Module:\n");
    text.push_str(&vector("add", &["A", "B"], "A[v] + B[v]", 0));
    text.push_str(&vector("exp", &["A"], "T.exp(A[v])", 0));
    text.push_str(&vector("sort", &["A"], "A[n - T.int64(1) - v]", 8));
    text.push_str(IN_PLACE);
    text.push_str(&functions.lines().map(|line| format!("    {line}\n")).collect::<String>());
    read(&short(&text, "V", "R.Tensor((n,), dtype=\"float32\")"))
}

/// Replaces each type `letter`, as in `: V`, `-> V` and `out_ty=V`, with `ty`.
fn short(text: &str, letter: &str, ty: &str) -> String {
    ["-> ", ": ", "out_ty=", "(", ", "].iter().fold(text.to_owned(), |text, before| {
        [")", ",", ":", " ="].iter().fold(text, |text, behind| {
            text.replace(&format!("{before}{letter}{behind}"), &format!("{before}{ty}{behind}"))
        })
    })
}

/// Runs passes on a module, checks that the printed output is read without errors, and returns the text of its Relax
/// functions. In the text, `V` replaces the type of a `float32` vector of `n` elements.
fn relax_of(passes: &str, module: &Module) -> String {
    let made = apply(passes, module.clone()).expect("a module");
    let text = print(&made);
    read(&text);
    let lines: Vec<&str> = text.lines().collect();
    let mut relax = String::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("    @R.function")) {
        relax.push_str(&format!("{line}\n"));
        let body = lines.iter().skip(at + 1).take_while(|line| !line.is_empty() && !line.starts_with("    @"));
        body.for_each(|line| relax.push_str(&format!("{line}\n")));
    }
    relax.replace("R.Tensor((n,), dtype=\"float32\")", "V")
}

fn expect(made: &str, expected: &str) {
    let indented: String = expected.lines().map(|line| format!("    {line}\n")).collect();
    assert_eq!(made, indented, "\n{made}");
}

/// Returns the results of a function for vectors of these elements.
fn values(module: &Module, function: &str, inputs: &[&[f32]]) -> Vec<Vec<f32>> {
    let tensor = |values: &&[f32]| Tensor::from_f32s(&[values.len() as i64], values).expect("a tensor");
    let inputs: Vec<Tensor> = inputs.iter().map(tensor).collect();
    let outputs = rx_driver::evaluate(module, name(function), &inputs).expect("values");
    outputs.iter().map(|output| output.as_slice::<f32>().unwrap_or_default().to_vec()).collect()
}

/// Checks that `FuseOps`, `FuseTIR`, and `CallTIRRewrite` with `StaticPlanBlockMemory`, run one after the other, keep
/// the values.
fn keeps_values(module: &Module, function: &str, inputs: &[&[f32]]) {
    let before = values(module, function, inputs);
    for passes in ["FuseOps", "FuseOps, FuseTIR", "FuseOps, FuseTIR, CallTIRRewrite, StaticPlanBlockMemory"] {
        let made = apply(passes, module.clone()).expect("a module");
        assert_eq!(values(&read(&print(&made)), function, inputs), before, "{passes}");
    }
}

const CHAIN: &str = "\
@R.function
def main(x: V, y: V) -> V:
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.add, (x, y), out_ty=V)
        b = R.call_tir(cls.exp, (a,), out_ty=V)
        s = R.call_tir(cls.sort, (b,), out_ty=V)
        c = R.call_tir(cls.exp, (s,), out_ty=V)
        R.output(c)
    return c";

#[test]
fn calls_up_to_one_that_is_opaque_become_a_function() {
    let made = relax_of("FuseOps", &module(CHAIN));
    expect(
        &made,
        "\
@R.function(private=True)
def fused_add_exp(x: V, y: V) -> V:
    cls = Module
    R.func_attr({\"Primitive\": True})
    with R.dataflow():
        a = R.call_tir(cls.add, (x, y), out_ty=V)
        b = R.call_tir(cls.exp, (a,), out_ty=V)
        R.output(b)
    return b
@R.function
def main(x: V, y: V) -> V:
    cls = Module
    with R.dataflow():
        b: V = cls.fused_add_exp(x, y)
        s = R.call_tir(cls.sort, (b,), out_ty=V)
        c = R.call_tir(cls.exp, (s,), out_ty=V)
        R.output(c)
    return c",
    );
    keeps_values(&module(CHAIN), "main", &[&[1.0, 2.0, 3.0], &[0.5, 0.25, 0.0]]);
}

#[test]
fn level_0_joins_nothing() {
    assert_eq!(relax_of("FuseOps(0)", &module(CHAIN)), relax_of("", &module(CHAIN)));
    assert!(apply("FuseOps(\"all\")", module(CHAIN)).is_err());
}

#[test]
fn function_becomes_a_kernel_with_buffers_for_intermediates() {
    let made = apply("FuseOps, FuseTIR", module(CHAIN)).expect("a module");
    let text = print(&made);
    let kernel: Vec<&str> = text.lines().skip_while(|line| !line.contains("def fused_add_exp")).take(16).collect();
    assert_eq!(
        kernel.join("\n"),
        "    def fused_add_exp(var_x: T.handle, var_y: T.handle, var_Out_intermediate_1: T.handle):
        n = T.int64()
        x = T.match_buffer(var_x, (n,), \"float32\")
        y = T.match_buffer(var_y, (n,), \"float32\")
        Out_intermediate_1 = T.match_buffer(var_Out_intermediate_1, (n,), \"float32\")
        T.func_attr({\"tirx.noalias\": True})
        # with T.sblock(\"root\"):
        Out_intermediate = T.sblock_alloc_buffer((n,), \"float32\")
        for i in range(n):
            with T.sblock(\"compute\"):
                v = T.axis.spatial(n, i)
                Out_intermediate[v] = x[v] + y[v]
        for i in range(n):
            with T.sblock(\"compute1\"):
                v = T.axis.spatial(n, i)
                Out_intermediate_1[v] = T.exp(Out_intermediate[v])"
    );
    let names: Vec<String> = made.items.iter().filter_map(rx_ir::Item::name).map(|name| name.to_string()).collect();
    assert_eq!(names, ["exp", "sort", "fused_add_exp", "main"], "`add` is called by nobody");
}

#[test]
fn equal_groups_are_one_function() {
    let twice = "\
@R.function
def main(x: V) -> R.Tuple(V, V):
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.exp, (x,), out_ty=V)
        b = R.call_tir(cls.exp, (a,), out_ty=V)
        s = R.call_tir(cls.sort, (b,), out_ty=V)
        c = R.call_tir(cls.exp, (s,), out_ty=V)
        d = R.call_tir(cls.exp, (c,), out_ty=V)
        R.output(b, d)
    return (b, d)";
    let made = relax_of("FuseOps", &module(twice));
    assert_eq!(made.matches("def fused_exp_exp").count(), 1, "{made}");
    assert_eq!(made.matches("cls.fused_exp_exp(").count(), 2, "{made}");
    keeps_values(&module(twice), "main", &[&[0.5, 0.25]]);
}

#[test]
fn values_used_outside_a_group_are_returned_in_a_tuple() {
    // In the group of `a`, `b` and `c`, `c` is used after the block, and `b` by the cast.
    let diamond = "\
@R.function
def main(x: V) -> R.Tuple(V, V):
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.exp, (x,), out_ty=V)
        b = R.call_tir(cls.exp, (a,), out_ty=V)
        c = R.call_tir(cls.add, (a, b), out_ty=V)
        k: V = R.match_cast(b, V)
        s = R.call_tir(cls.sort, (k,), out_ty=V)
        R.output(c, s)
    return (c, s)";
    let made = relax_of("FuseOps", &module(diamond));
    assert!(made.contains("return (c, b)"), "{made}");
    assert!(made.contains("lv: R.Tuple(V, V) = cls.fused_exp_exp_add(x)"), "{made}");
    assert!(made.contains("b: V = lv[1]\n            c: V = lv[0]"), "{made}");
    keeps_values(&module(diamond), "main", &[&[0.5, 0.25]]);
}

#[test]
fn fields_of_tuples_scalars_and_constants_are_passed() {
    let mut text = String::from("n = TypeVar(\"n\")\nm = TypeVar(\"m\")\n@I.ir_module\nclass Module:\n");
    text.push_str(
        "    @T.prim_func(private=True, s_tir=True)
    def scale(var_A: T.handle, k: T.int64, B: T.Buffer((), \"float32\"), var_Out: T.handle):
        T.func_attr({\"op_pattern\": 0})
        n = T.int64()
        A = T.match_buffer(var_A, (n,), \"float32\")
        Out = T.match_buffer(var_Out, (n,), \"float32\")
        for i in range(n):
            with T.sblock(\"scale\"):
                v = T.axis.spatial(n, i)
                Out[v] = A[v] * T.Cast(\"float32\", k) + B[()]

    @R.function
    def main(t: R.Tuple(R.Tensor((4,), dtype=\"float32\"), V), s: R.Shape([m])) -> V:
        cls = Module
        with R.dataflow():
            x: V = t[1]
            a = R.call_tir(cls.scale, (x, m, R.const(1.0, \"float32\")), out_ty=V)
            b = R.call_tir(cls.scale, (a, 3, R.const(1.0, \"float32\")), out_ty=V)
            c = R.call_tir(cls.scale, (b, m * n, R.const(2.0, \"float32\")), out_ty=V)
            R.output(c)
        return c
",
    );
    let module = read(&short(&text, "V", "R.Tensor((n,), dtype=\"float32\")"));
    let made = relax_of("FuseOps", &module);
    let scalar = "R.Tensor((), dtype=\"float32\")";
    let params =
        format!("x: V, m: T.int64, param_0: {scalar}, param_2: {scalar}, param_3: T.int64, param_4: {scalar}) -> V:");
    assert!(made.contains(&format!("def fused_scale_scale_scale({params}")), "{made}");
    assert!(made.contains("(a, 3, param_2)"), "numbers are written out\n{made}");
    assert!(made.contains("lv: V = t[1]"), "{made}");
    let kernels = relax_of("FuseOps, FuseTIR", &module);
    assert!(kernels.contains("R.call_tir(cls.fused_scale_scale_scale, (lv, m, R.const(1.0, \"float32\")"), "{kernels}");
}

#[test]
fn dim_without_a_defining_argument_is_passed() {
    let text = "\
n = TypeVar(\"n\")
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def full(var_Out: T.handle):
        T.func_attr({\"op_pattern\": 0})
        n = T.int64()
        Out = T.match_buffer(var_Out, (n,), \"float32\")
        for i in range(n):
            with T.sblock(\"full\"):
                v = T.axis.spatial(n, i)
                Out[v] = T.float32(1.0)

"
    .to_owned()
        + &vector("exp", &["A"], "T.exp(A[v])", 0)
        + "    @R.function
    def main(x: V) -> V:
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.full, R.tuple(), out_ty=V)
            b = R.call_tir(cls.exp, (a,), out_ty=V)
            R.output(b)
        return b
";
    let module = read(&short(&text, "V", "R.Tensor((n,), dtype=\"float32\")"));
    let made = relax_of("FuseOps", &module);
    assert!(made.contains("def fused_full_exp(tir_vars: R.Shape([n])) -> V:"), "{made}");
    assert!(made.contains("cls.fused_full_exp(R.shape([n]))"), "{made}");
    let kernels = relax_of("FuseOps, FuseTIR", &module);
    assert!(kernels.contains("R.call_tir(cls.fused_full_exp, (n,), out_ty=V)"), "{kernels}");
    keeps_values(&module, "main", &[&[0.0, 0.0, 0.0]]);
}

/// In the kernel, `v * m` is `v`, not the variable that has the number of `v` in the prim_func.
#[test]
fn symbolic_kernels_of_a_dim_that_is_1_keep_their_axes() {
    let text = "\
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def rows(var_A: T.handle, var_Out: T.handle):
        T.func_attr({\"op_pattern\": 0})
        n, m = T.int64(), T.int64()
        A = T.match_buffer(var_A, (n,), \"float32\")
        Out = T.match_buffer(var_Out, (n, m), \"float32\")
        for i, j in T.grid(n, m):
            with T.sblock(\"rows\"):
                v, w = T.axis.remap(\"SS\", [i, j])
                Out[v, w] = A[v] + T.Cast(\"float32\", v * m)

    @R.function
    def main(x: R.Tensor((4,), dtype=\"float32\")) -> R.Tensor((4, 1), dtype=\"float32\"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.rows, (x,), out_ty=R.Tensor((4, 1), dtype=\"float32\"))
            b = R.nn.relu(a)
            R.output(b)
        return b
";
    let module = read(text);
    let input: &[f32] = &[1.0, 2.0, 3.0, 4.0];
    let expected = [vec![1.0, 3.0, 5.0, 7.0]];
    assert_eq!(values(&module, "main", &[input]), expected);
    let made = apply("LegalizeOps, AnnotateTIROpPattern, FuseOps, FuseTIR", module).expect("a module");
    let printed = print(&made);
    assert!(printed.contains("fused_rows_relu"), "{printed}");
    assert_eq!(values(&read(&printed), "main", &[input]), expected);
}

#[test]
fn kernel_that_overwrites_its_own_intermediate_is_not_in_place() {
    let module = module(
        "\
@R.function
def main(x: V) -> V:
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.add, (x, x), out_ty=V)
        b: V = R.call_tir_inplace(cls.exp_inplace, (a,), out_ty=V, inplace_indices=[0])
        R.output(b)
    return b",
    );
    let made = relax_of("FuseOps, FuseTIR", &module);
    assert!(made.contains("b = R.call_tir(cls.fused_add_exp_inplace, (x,), out_ty=V)"), "{made}");
    keeps_values(&module, "main", &[&[1.0, 2.0]]);
}

#[test]
fn kernel_that_overwrites_an_argument_is_in_place() {
    let module = module(
        "\
@R.function
def main(x: V) -> V:
    cls = Module
    with R.dataflow():
        a: V = R.call_tir_inplace(cls.exp_inplace, (x,), out_ty=V, inplace_indices=[0])
        b: V = R.call_tir_inplace(cls.exp_inplace, (a,), out_ty=V, inplace_indices=[0])
        R.output(b)
    return b",
    );
    let made = relax_of("FuseOps, FuseTIR", &module);
    assert!(made.contains("R.call_tir_inplace(cls.fused_exp_inplace_exp_inplace, (x,)"), "{made}");
    assert!(made.contains("inplace_indices=[0]"), "{made}");
    keeps_values(&module, "main", &[&[1.0, 2.0]]);
}

#[test]
fn read_before_an_in_place_write_is_not_fused_after_it() {
    // `a` and `c` could be fused, but `a` must read `x` before `b` overwrites `x`.
    let module = module(
        "\
@R.function
def main(x: V, y: V) -> V:
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.add, (x, y), out_ty=V)
        b: V = R.call_tir_inplace(cls.exp_inplace, (x,), out_ty=V, inplace_indices=[0])
        k: V = R.match_cast(b, V)
        c = R.call_tir(cls.add, (a, k), out_ty=V)
        R.output(c)
    return c",
    );
    let made = relax_of("FuseOps", &module);
    let at = |text: &str| made.find(text).unwrap_or(usize::MAX);
    assert!(at("cls.add, (x, y)") < at("R.call_tir_inplace"), "{made}");
    keeps_values(&module, "main", &[&[1.0, 2.0], &[0.5, 0.5]]);
}

#[test]
fn groups_that_one_kernel_cannot_compute_stay_functions() {
    let by_hand = module(
        "\
@R.function(private=True)
def both(x: V) -> R.Tuple(V, V):
    R.func_attr({\"Primitive\": True})
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.exp, (x,), out_ty=V)
        R.output(a)
    return (a, a)

@R.function
def main(x: V) -> R.Tuple(V, V):
    cls = Module
    r: R.Tuple(V, V) = cls.both(x)
    return r",
    );
    let made = relax_of("FuseTIR", &by_hand);
    assert!(made.contains("def both(x: V)"), "one buffer cannot be given twice\n{made}");
}

#[test]
fn returned_argument_is_no_output_of_the_kernel() {
    let by_hand = module(
        "\
@R.function(private=True)
def both(x: V) -> R.Tuple(V, V):
    R.func_attr({\"Primitive\": True})
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.exp, (x,), out_ty=V)
        R.output(a)
    return (x, a)

@R.function
def main(x: V) -> R.Tuple(V, V):
    cls = Module
    r: R.Tuple(V, V) = cls.both(x)
    return r",
    );
    let made = relax_of("FuseTIR", &by_hand);
    assert!(made.contains("gv = R.call_tir(cls.both, (x,), out_ty=V)\n        r: R.Tuple(V, V) = x, gv"), "{made}");
    keeps_values(&by_hand, "main", &[&[1.0, 2.0]]);
}

#[test]
fn tuples_are_expanded_and_unused_parameters_go() {
    let nested = module(
        "\
@R.function(private=True)
def second(t: R.Tuple(V, R.Tuple(V, V))) -> V:
    cls = Module
    inner: R.Tuple(V, V) = t[1]
    y: V = inner[0]
    z = R.call_tir(cls.exp, (y,), out_ty=V)
    return z

@R.function
def main(x: V, y: V) -> V:
    cls = Module
    r: V = cls.second((x, (y, x)))
    return r",
    );
    let expanded = relax_of("ExpandTupleArguments", &nested);
    assert!(expanded.contains("def second(t_0: V, t_1_0: V, t_1_1: V) -> V:"), "{expanded}");
    assert!(expanded.contains("cls.second(x, y, x)"), "{expanded}");
    let reduced = relax_of("ExpandTupleArguments, RemoveUnusedParameters", &nested);
    assert!(reduced.contains("def second(t_1_0: V) -> V:"), "{reduced}");
    assert!(reduced.contains("cls.second(y)"), "{reduced}");
}

#[test]
fn calls_that_a_nested_function_captures_are_not_fused() {
    let module = module(
        "\
@R.function
def main(x: V) -> V:
    cls = Module
    with R.dataflow():
        a = R.call_tir(cls.exp, (x,), out_ty=V)
        @R.function
        def inner(p: V) -> V:
            with R.dataflow():
                q: V = R.add(a, p)
                R.output(q)
            return q

        b = R.call_tir(cls.exp, (a,), out_ty=V)
        c: V = inner(b)
        R.output(c)
    return c",
    );
    assert_eq!(print(&apply("FuseOps", module.clone()).expect("a module")), print(&module));
}

#[test]
fn read_through_a_nested_function_or_a_tuple_stays_before_an_in_place_write() {
    let main = |before: &str, reader: &str| {
        module(&format!(
            "\
@R.function
def main(x: V, y: V) -> V:
    cls = Module
    with R.dataflow():
{before}
        a = R.call_tir(cls.exp, (y,), out_ty=V)
        r: V = {reader}
        b: V = R.call_tir_inplace(cls.exp_inplace, (x,), out_ty=V, inplace_indices=[0])
        c = R.call_tir(cls.add, (a, b), out_ty=V)
        d: V = R.add(c, r)
        R.output(d)
    return d"
        ))
    };
    let nested = "        @R.function
        def inner(p: V) -> V:
            q: V = R.add(x, p)
            return q
";
    let tuple = "        t: R.Tuple(V, V) = (x, y)\n        z: V = t[0]";
    let through_tuple = main(tuple, "R.call_tir(cls.sort, (z,), out_ty=V)");
    for (module, reader) in [(main(nested, "inner(y)"), "inner(y)"), (through_tuple, "cls.sort, (z,)")] {
        let made = print(&apply("FuseOps", module.clone()).expect("a module"));
        let at = |text: &str| made.find(text).unwrap_or(usize::MAX);
        assert!(at(reader) < at("R.call_tir_inplace(cls.exp_inplace, (x,)"), "{made}");
        keeps_values(&module, "main", &[&[1.0, 2.0], &[0.5, 0.25]]);
    }
}

/// Runs `StaticPlanBlockMemory` on a function `main` with these further attributes and this body. Its parameters are
/// `x`, a vector of `n` elements, and `c`, a boolean.
fn planned(attributes: &str, body: &str) -> String {
    let text = format!(
        "@R.function\ndef main(x: V, c: R.Tensor((), dtype=\"bool\")) -> V:\n    R.func_attr({{\"relax.force_pure\": True{attributes}}})\n    cls = Module\n{body}"
    );
    relax_of("StaticPlanBlockMemory", &module(&text))
}

const ALLOC: &str = "R.builtin.alloc_tensor(R.shape([n]), R.dtype(\"float32\"), 0, R.str(\"global\"))";

fn storage(bytes: &str) -> String {
    format!("R.memory.alloc_storage(R.shape([{bytes}]), 0, R.str(\"global\"), R.dtype(\"float32\"))")
}

#[test]
fn tensors_with_disjoint_lifetimes_share_a_storage() {
    let body = format!(
        "    a: V = {ALLOC}
    cls.exp(x, a)
    b: V = {ALLOC}
    cls.exp(a, b)
    d: V = {ALLOC}
    cls.exp(b, d)
    e: V = {ALLOC}
    cls.exp(d, e)
    return e"
    );
    let made = planned(", \"tir_var_upper_bound\": {\"n\": 16}", &body);
    // There are three lifetimes, of which the first and the third do not overlap. The result outlives the block.
    assert_eq!(made.matches(&storage("64")).count(), 2, "{made}");
    assert_eq!(made.matches("R.memory.alloc_tensor(storage, 0, R.shape([n])").count(), 2, "{made}");
    assert_eq!(made.matches("R.builtin.alloc_tensor").count(), 1, "{made}");
    let open = planned("", &body);
    assert_eq!(open.matches(&storage("n * 4")).count(), 2, "the same size in terms of dims is the same size\n{open}");
    let all = planned(", \"relax.memory_plan_dynamic_func_output\": True", &body);
    assert_eq!(all.matches("R.builtin.alloc_tensor").count(), 0, "{all}");
    assert!(!all.contains("memory_plan_dynamic_func_output"), "{all}");
}

#[test]
fn storage_is_not_reused_outside_its_scope() {
    let body = format!(
        "    if c:
        a: V = {ALLOC}
        cls.exp(x, a)
        b: V = {ALLOC}
        cls.exp(a, b)
        r: V = b
    else:
        d: V = {ALLOC}
        cls.exp(x, d)
        e: V = {ALLOC}
        cls.exp(d, e)
        r: V = e
    return r"
    );
    let made = planned("", &body);
    assert_eq!(made.matches("R.memory.alloc_storage").count(), 2, "one in each branch\n{made}");
}

#[test]
fn a_bound_that_is_no_number_is_refused() {
    let wrong = module(
        "@R.function\ndef main(x: V) -> V:\n    R.func_attr({\"tir_var_upper_bound\": {\"n\": [4]}})\n    return x",
    );
    let error = apply("StaticPlanBlockMemory", wrong).err().map(|error| error.0).unwrap_or_default();
    assert!(error.contains("`tir_var_upper_bound` is a dictionary of names and integers"), "{error}");
}
