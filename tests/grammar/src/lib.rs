//! The tree-sitter grammar of `grammar/tree-sitter-rx`, compiled from its committed sources.

pub mod edits;

use std::path::{Path, PathBuf};
use tree_sitter::{InputEdit, Language, Parser, Point, Tree};
use tree_sitter_language::LanguageFn;

#[allow(unsafe_code)]
unsafe extern "C" {
    fn tree_sitter_rx() -> *const ();
}

/// Returns the tree-sitter language.
#[allow(unsafe_code)]
pub fn language() -> Language {
    // SAFETY: the function is the one that `tree-sitter generate` wrote into parser.c, which build.rs compiles and links.
    Language::new(unsafe { LanguageFn::from_raw(tree_sitter_rx) })
}

/// Returns the grammar's folder.
pub fn folder() -> PathBuf {
    workspace().join("grammar/tree-sitter-rx")
}

/// Returns the root of the project.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Creates a parser of the language.
///
/// # Errors
/// If the library is too old for the committed parser.
pub fn parser() -> Result<Parser, String> {
    let mut parser = Parser::new();
    parser.set_language(&language()).map_err(|error| error.to_string())?;
    Ok(parser)
}

/// Parses a text.
///
/// # Errors
/// Like [`parser`].
pub fn parse(text: &str) -> Result<Tree, String> {
    parser()?.parse(text, None).ok_or_else(|| "the parser gave up".to_owned())
}

/// Returns the first place where the tree has an error or a missing token: its line, from 1, and its text.
pub fn first_error(tree: &Tree) -> Option<(usize, String)> {
    let mut node = tree.root_node();
    if !node.has_error() {
        return None;
    }
    // Descend to the first child with an error, until no child has one.
    loop {
        let mut cursor = node.walk();
        let below = node.children(&mut cursor).find(|child| child.has_error());
        match below {
            Some(child) => node = child,
            None => return Some((node.start_position().row + 1, node.to_sexp())),
        }
    }
}

/// Replaces `old` bytes of the text at `at` by `new`, and records the edit in the tree.
///
/// `at` and `at + old` must be character boundaries of the text.
pub fn edit(text: &mut String, tree: &mut Tree, at: usize, old: usize, new: &str) {
    let start_position = point(text, at);
    let old_end_position = point(text, at + old);
    text.replace_range(at..at + old, new);
    tree.edit(&InputEdit {
        start_byte: at,
        old_end_byte: at + old,
        new_end_byte: at + new.len(),
        start_position,
        old_end_position,
        new_end_position: point(text, at + new.len()),
    });
}

fn point(text: &str, at: usize) -> Point {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let line = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    Point { row: before.iter().filter(|byte| **byte == b'\n').count(), column: at - line }
}
