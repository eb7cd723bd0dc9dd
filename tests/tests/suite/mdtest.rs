//! Runs the documents of `tests/mdtest`.

use std::path::Path;

macro_rules! documents {
    ($($name:ident)*) => {
        $(#[test] fn $name() { document(stringify!($name)); })*
        const DOCUMENTS: &[&str] = &[$(stringify!($name)),*];
    };
}

documents! {
    annotations attributes branches call_tir calls conv_relu dataflow devices fixes formulas handwritten layouts
    lifted_params macros matmul_and_broadcast memory_and_vm metadata names num_input operators packed_calls portability
    portability_releases prim_funcs purity python_files recursion reshape returns several_errors shape_variables
    spellings suppression symbolic_dims symbolic_facts syntax_errors tuples tvm_sources user_operators value_ranges
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mdtest")
}

fn document(name: &str) {
    let text = std::fs::read_to_string(folder().join(format!("{name}.md"))).unwrap_or_default();
    assert!(!rx_tests::mdtest::blocks(&text).is_empty(), "{name}.md has no code block");
    let failures = rx_tests::mdtest::run(&format!("tests/mdtest/{name}.md"), &text);
    assert!(failures.is_empty(), "{} blocks differ:\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_document_is_run() {
    let files = rx_tests::cases::files(&folder(), "md");
    let names: Vec<_> = files.iter().filter_map(|path| path.file_stem()?.to_str()).collect();
    assert_eq!(names, DOCUMENTS);
}
