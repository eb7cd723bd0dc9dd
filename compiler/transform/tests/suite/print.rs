//! Tests of details of the printed text, mainly of those that TVM 0.27 requires to parse it.

use crate::common::{apply, read};

fn module(functions: &str) -> String {
    let lines: String = functions.lines().map(|line| format!("    {line}\n")).collect();
    format!("@I.ir_module\nclass Module:\n{lines}")
}

fn printed(passes: &str, text: &str) -> String {
    let made = rx_transform::print(&apply(passes, read(text)).expect("a module"));
    read(&made);
    made
}

#[test]
fn dtype_written_as_a_string_is_printed_as_a_dtype() {
    let text = printed(
        "",
        &module(
            "\
@R.function(pure=False)
def main() -> R.Tensor((4,), dtype=\"float32\"):
    p: R.Tensor((4,), dtype=\"float32\") = R.builtin.alloc_tensor(R.shape([4]), dtype=\"float32\", runtime_device_index=0)
    return p
",
        ),
    );
    assert!(text.contains("R.dtype(\"float32\")") && !text.contains("R.str(\"float32\")"), "{text}");
}

#[test]
fn symbol_that_two_functions_share_is_renamed_in_the_one_that_declares_it() {
    let text = printed(
        "",
        &module(
            "\
@R.function
def helper(x: R.Tensor((\"k\", 3), dtype=\"float32\")) -> R.Tensor((\"k\", 3), dtype=\"float32\"):
    k = T.int64()
    y: R.Tensor((k, 3), dtype=\"float32\") = R.add(x, x)
    return y

@R.function
def main(x: R.Tensor(dtype=\"float32\", ndim=2)) -> R.Tensor(dtype=\"float32\", ndim=2):
    k = T.int64()
    cls = Module
    y = R.match_cast(x, R.Tensor((k, 3), dtype=\"float32\"))
    z: R.Tensor((k, 3), dtype=\"float32\") = cls.helper(y)
    return z
",
        ),
    );
    assert!(text.contains("k = TypeVar(\"k\")") && text.contains("        k_1 = T.int64()\n"), "{text}");
    assert!(text.contains("z: R.Tensor((k_1, 3), dtype=\"float32\") = cls.helper(y)"), "{text}");
}

#[test]
fn binding_to_an_underscore_that_is_read_gets_a_name() {
    let text = printed(
        "",
        &module(
            "\
@R.function
def main(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
    _ = R.add(x, x)
    y = R.multiply(_, x)
    _ = R.exp(y)
    return y
",
        ),
    );
    let binds = |variable: &str, value: &str| {
        text.lines().any(|line| line.trim_start().starts_with(&format!("{variable}: ")) && line.ends_with(value))
    };
    assert!(binds("__1", " = R.add(x, x)") && binds("y", " = R.multiply(__1, x)"), "{text}");
    assert!(binds("_", " = R.exp(y)"), "{text}");
}

const NESTED: &str = "\
@R.function
def main(x: R.Tensor((2,), dtype=\"float32\"), y: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
    @R.function
    def outer(a: R.Tensor((2,), dtype=\"float32\")) -> R.Callable((R.Tensor((2,), dtype=\"float32\"),), R.Tensor((2,), dtype=\"float32\")):
        @R.function
        def inner(b: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
            s: R.Tensor((2,), dtype=\"float32\") = R.subtract(a, b)
            return s
        return inner
    f = outer(x)
    r: R.Tensor((2,), dtype=\"float32\") = f(y)
    return r
";

#[test]
fn nested_function_that_gets_effects_says_so() {
    let text = printed("LegalizeOps,CallTIRRewrite", &module(NESTED));
    let forced = "R.func_attr({\"relax.force_pure\": True})";
    assert_eq!(text.matches(forced).count(), 1, "{text}");
    assert!(text.contains(&format!("dtype=\"float32\"):\n                {forced}\n")), "{text}");
    let killed = printed("LegalizeOps,CallTIRRewrite,KillAfterLastUse", &module(NESTED));
    assert_eq!(killed.matches(forced).count(), 1, "{killed}");
}

#[test]
fn function_that_inlines_effects_says_so() {
    let text = printed(
        "InlinePrivateFunctions",
        &module(
            "\
@T.prim_func(private=True, s_tir=True)
def exp(A: T.Buffer((T.int64(2),), \"float32\"), B: T.Buffer((T.int64(2),), \"float32\")):
    for i in range(T.int64(2)):
        with T.sblock(\"exp\"):
            vi = T.axis.spatial(T.int64(2), i)
            B[vi] = T.exp(A[vi])

@R.function(private=True)
def helper(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
    cls = Module
    R.func_attr({\"relax.force_pure\": True})
    p: R.Tensor((2,), dtype=\"float32\") = R.builtin.alloc_tensor(R.shape([2]), R.dtype(\"float32\"), 0, R.str(\"global\"))
    cls.exp(x, p)
    return p

@R.function
def main(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):
    cls = Module
    y: R.Tensor((2,), dtype=\"float32\") = cls.helper(x)
    return y
",
        ),
    );
    assert!(!text.contains("def helper") && text.contains("R.func_attr({\"relax.force_pure\": True})"), "{text}");
}

#[test]
fn variable_called_cls_does_not_hide_the_class() {
    let text = printed(
        "LegalizeOps",
        &module(
            "\
@R.function
def main(cls: R.Tensor((4,), dtype=\"float32\")) -> R.Tensor((4,), dtype=\"float32\"):
    a: R.Tensor((4,), dtype=\"float32\") = R.exp(cls)
    return a
",
        ),
    );
    assert!(text.contains("R.call_tir(Module.tir_exp, (cls,)") && !text.contains("cls = Module"), "{text}");
}

#[test]
fn several_functions_without_a_module_get_one_and_its_imports() {
    let text = printed(
        "LegalizeOps",
        "from tvm.script import relax as R\n\n@R.function\ndef main(x: R.Tensor((2,), dtype=\"float32\")):\n    y = R.exp(x)\n    return y\n",
    );
    let imports = ["from tvm.script import ir as I\n", "from tvm.script import tirx as T\n", "class Module:\n"];
    assert!(imports.iter().all(|line| text.contains(line)), "{text}");
}

#[test]
fn types_of_scalars_get_the_import_of_their_namespace() {
    let text = printed(
        "CanonicalizeBindings",
        "from tvm.script import relax as R\n\n@R.function\ndef main(n: R.Prim(\"int64\")):\n    return n\n",
    );
    assert!(text.contains("from tvm.script import tirx as T\n") && text.contains("n: T.int64"), "{text}");
}

#[test]
fn deep_nesting_is_printed_in_steps_that_grow_with_the_text() {
    let mut text = String::from(
        "@R.function\ndef main(x: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):\n",
    );
    const DEPTH: usize = 40;
    for at in 0..DEPTH {
        let indent = "    ".repeat(at + 1);
        text.push_str(&format!(
            "{indent}@R.function\n{indent}def f{at}(p{at}: R.Tensor((2,), dtype=\"float32\")) -> R.Tensor((2,), dtype=\"float32\"):\n"
        ));
    }
    text.push_str(&format!("{}return p{}\n", "    ".repeat(DEPTH + 1), DEPTH - 1));
    for at in (0..DEPTH).rev() {
        let (indent, argument) = ("    ".repeat(at + 1), if at == 0 { "x".to_owned() } else { format!("p{}", at - 1) });
        text.push_str(&format!("{indent}r{at} = f{at}({argument})\n{indent}return r{at}\n"));
    }
    // Doing the work twice for each enclosing function would be exponential, and would not finish here.
    assert_eq!(printed("", &module(&text)).matches("@R.function").count(), DEPTH + 1);
}
