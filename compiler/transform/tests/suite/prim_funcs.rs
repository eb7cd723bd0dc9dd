//! Tests of prim_funcs in modules: the source text of one is kept, and changes by passes show in it.

use crate::common::{apply, read};
use rx_base::Dim;
use rx_ir::{Attr, Item, LoopBody};
use rx_transform::Module;
use rx_transform::equal::structurally_equal;
use rx_transform::print;
use std::sync::Arc;

const HEAD: &str = "@I.ir_module\nclass Module:\n    @T.prim_func(private=True, s_tir=True)\n    ";
const LOOPS: &str = "        for i in range(T.int64(4)):  # each
            with T.sblock(\"copy\"):
                v = T.axis.spatial(T.int64(4), i)
                T.reads(A[v])
                T.writes(B[v])
                B[v] = A[v]

    @R.function
    def main(x: R.Tensor((4,), \"float32\")) -> R.Tensor((4,), \"float32\"):
        cls = Module
        return R.call_tir(cls.copy, (x,), out_ty=R.Tensor((4,), \"float32\"))
";

fn copy(attributes: &str) -> String {
    let header = "def copy(A: T.Buffer((T.int64(4),), \"float32\"), B: T.Buffer((T.int64(4),), \"float32\")):\n";
    format!("{HEAD}{header}{attributes}{LOOPS}")
}

/// Returns the module with the `op_pattern` 2 set on its prim_func.
fn annotated(text: &str) -> Module {
    let mut module = read(text);
    for item in &mut module.items {
        if let Item::Loops(function) = item {
            Arc::make_mut(function).set_attribute("op_pattern", Attr::Int(Dim::constant(2)));
        }
    }
    module
}

/// Returns the lines of `copy` from its `def` to before its first loop.
fn head(module: &Module) -> Vec<String> {
    let text = print(module);
    text.lines().skip(3).take_while(|line| !line.contains("for i")).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn an_attribute_is_put_among_the_others_and_the_rest_stays_as_it_is_written() {
    let text = copy("        # as it is\n        T.func_attr({\"tirx.noalias\": True})\n");
    assert!(
        print(&read(&text))
            .contains("        for i in range(T.int64(4)):  # each\n            with T.sblock(\"copy\"):\n")
    );
    let module = annotated(&text);
    assert_eq!(head(&module)[1..], ["# as it is", "T.func_attr({\"op_pattern\": 2, \"tirx.noalias\": True})"]);
    assert!(print(&module).contains("T.reads(A[v])"));
}

#[test]
fn a_function_without_attributes_gets_a_statement() {
    assert_eq!(head(&annotated(&copy("")))[1..], ["T.func_attr({\"op_pattern\": 2})"]);
    assert_eq!(head(&read(&copy("")))[1..], [""; 0]);
}

#[test]
fn generated_attributes_equal_written_ones() {
    let mut module = annotated(&copy(""));
    let written = module.clone();
    for item in &mut module.items {
        if let Item::Loops(function) = item {
            let loops = function.loops().cloned().expect("loops");
            Arc::make_mut(function).body = LoopBody::Made(loops);
        }
    }
    assert!(!print(&module).contains("T.reads"));
    assert!(structurally_equal(&module, &written));
    assert!(structurally_equal(&read(&print(&module)), &written));
    assert!(!structurally_equal(&module, &read(&copy(""))), "attributes are part of a function");
}

#[test]
fn a_private_function_that_nothing_calls_goes() {
    let text = copy("").replace("return R.call_tir(cls.copy, (x,), out_ty=R.Tensor((4,), \"float32\"))", "return x");
    let names = |module: &Module| -> Vec<String> {
        module.items.iter().filter_map(Item::name).map(|name| name.to_string()).collect()
    };
    assert_eq!(names(&read(&text)), ["copy", "main"]);
    let module = apply("DeadCodeElimination", read(&text)).expect("a module");
    assert_eq!(names(&module), ["main"]);
}
