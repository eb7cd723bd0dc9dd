//! Compiles the committed parser.

fn main() {
    let source = std::path::Path::new("../../grammar/tree-sitter-rx/src");
    let files = ["parser.c", "scanner.c"].map(|file| source.join(file));
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    // Optimize in every profile: a test parses hundreds of megabytes.
    cc::Build::new().std("c11").include(source).files(&files).opt_level(2).compile("tree-sitter-rx");
}
