//! Tests that the grammar's files agree with one another.

use rx_grammar_tests::{folder, language};
use std::path::Path;
use std::process::Command;
use tree_sitter::Query;

#[test]
fn queries_name_nodes_of_the_grammar() {
    let files = rx_tests::cases::files(&folder().join("queries"), "scm");
    assert!(files.len() >= 7, "the queries are there");
    for path in files {
        let query = std::fs::read_to_string(&path).expect("INVARIANT: the file was just listed");
        if let Err(error) = Query::new(&language(), &query) {
            panic!("{}: {error}", path.display());
        }
    }
}

/// Zed uses other names for some captures. Apart from these, its queries must be equal to the grammar's, or use the
/// grammar's node names.
#[test]
fn zeds_queries_are_the_grammars() {
    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).expect("INVARIANT: the file is part of the project")
    }
    let zed = folder().join("../../editors/zed/languages/rx");
    for path in rx_tests::cases::files(&zed, "scm") {
        if let Err(error) = Query::new(&language(), &read(&path)) {
            panic!("{}: {error}", path.display());
        }
    }
    let renamed = read(&folder().join("queries/highlights.scm"))
        .replace("@module.builtin", "@namespace")
        .replace("@module", "@namespace")
        .replace("@variable.builtin", "@variable.special")
        .replace("@comment.documentation", "@comment.doc");
    assert!(read(&zed.join("highlights.scm")).ends_with(&renamed), "highlights.scm is stale: editors/zed/README.md");
    assert_eq!(read(&zed.join("injections.scm")), read(&folder().join("queries/injections.scm")));
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), &target)?),
        }
    }
    Ok(())
}

/// If the program `tree-sitter` is in PATH, checks that parser.c is generated from grammar.js, and runs the program's
/// own tests.
#[test]
fn the_parser_is_generated_from_the_grammar() {
    if Command::new("tree-sitter").arg("--version").output().is_err() {
        return println!("skipped: no program tree-sitter in PATH (cargo install tree-sitter-cli)");
    }
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tree-sitter-rx");
    copy(&folder(), &scratch).expect("INVARIANT: the target folder is writable");
    let run = |arguments: &[&str]| {
        let mut command = Command::new("tree-sitter");
        command.args(arguments).current_dir(&scratch).env("XDG_CACHE_HOME", scratch.join("cache"));
        let output = command.output().expect("INVARIANT: the program was found above");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said));
    };
    run(&["generate"]);
    for file in ["src/parser.c", "src/grammar.json", "src/node-types.json"] {
        let ours = std::fs::read(folder().join(file)).unwrap_or_default();
        let made = std::fs::read(scratch.join(file)).unwrap_or_default();
        assert!(ours == made, "{file} is stale: run `tree-sitter generate` in grammar/tree-sitter-rx");
    }
    run(&["test"]);
}
