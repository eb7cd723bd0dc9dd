//! Tests that libraries with `test = false` or `doctest = false` in their manifest contain no such tests, which would
//! never run.

use rx_tests::cases::files;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the folders of the workspace's crates, each with the `[lib]` table of its manifest.
fn libraries() -> Vec<(PathBuf, String)> {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace's manifest");
    let members = workspace.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).expect("members").0;
    members
        .split('"')
        .skip(1)
        .step_by(2)
        .filter_map(|member| {
            let folder = root().join(member);
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
            let (_, rest) = manifest.split_once("[lib]\n")?;
            Some((folder, rest.split("\n[").next().unwrap_or_default().to_owned()))
        })
        .collect()
}

#[test]
fn library_without_test_target_has_no_unit_tests() {
    let mut lost = Vec::new();
    for (folder, library) in libraries() {
        if library.lines().any(|line| line == "test = false") {
            let sources = files(&folder.join("src"), "rs");
            lost.extend(
                sources
                    .into_iter()
                    .filter(|path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("#[test]"))),
            );
        }
    }
    assert!(lost.is_empty(), "these tests never run: remove `test = false` from the manifest: {lost:#?}");
}

#[test]
fn library_without_doc_tests_has_no_code_blocks_that_rustdoc_would_run() {
    let mut lost = Vec::new();
    for (folder, library) in libraries() {
        if library.lines().any(|line| line == "doctest = false") {
            let sources = files(&folder.join("src"), "rs");
            lost.extend(
                sources.into_iter().filter(|path| std::fs::read_to_string(path).is_ok_and(|text| runs_code(&text))),
            );
        }
    }
    assert!(
        lost.is_empty(),
        "these doc tests never run: remove `doctest = false` from the manifest, or give the block a language: {lost:#?}"
    );
}

/// Whether the doc comments of a source file have a code block without a language, or a Rust one, which would be a doc
/// test.
fn runs_code(text: &str) -> bool {
    let mut inside = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            inside = false;
            return false;
        };
        let Some(language) = comment.trim_start().strip_prefix("```") else { return false };
        inside = !inside;
        inside && matches!(language.trim(), "" | "rust" | "should_panic" | "no_run" | "compile_fail")
    })
}
