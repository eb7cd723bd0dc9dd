//! Pages of `docs/` that are derived from data: `codes.md` from the table of diagnostic codes and the snippets in
//! `docs/codes`, `operators.md` from the operators' schemas. `cargo run -p rx-docs` writes them; a test compares.

pub mod codes;
pub mod operators;

use std::io;
use std::path::{Path, PathBuf};

/// The workspace's `docs` folder.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Every page: its file name and its text.
///
/// # Errors
/// What the file system says of the snippets.
pub fn pages() -> io::Result<[(&'static str, String); 2]> {
    Ok([("codes.md", codes::page(&codes::snippets(&folder().join("codes"))?)), ("operators.md", operators::page())])
}
