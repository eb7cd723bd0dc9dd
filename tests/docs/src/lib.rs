//! Generates the pages of `docs/` that are derived from data: `codes.md` and the pages in `codes/` from the table of
//! diagnostic codes, `operators.md` from the operators' schemas, `rx.schema.json` from the table of settings, `man` and
//! `commands.md` from the command lines. `cargo run -p rx-docs` writes them; a test compares.

pub mod codes;
pub mod manual;
pub mod operators;
pub mod schema;

use rx_base::Code;
use std::io;
use std::path::{Path, PathBuf};

/// The workspace's `docs` folder.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns every page: its path below `docs` and its text. Codes without a written page are left out.
///
/// # Errors
/// Errors of the file system, in reading the written parts.
pub fn pages() -> io::Result<Vec<(String, String)>> {
    let written = codes::read(&folder().join("codes"))?;
    let of_code = |code: &Code| {
        let stem = codes::file_stem(*code);
        let text = codes::page(*code, written.get(&stem)?);
        Some((format!("codes/{stem}.md"), text))
    };
    let mut pages: Vec<(String, String)> = Code::ALL.iter().filter_map(of_code).collect();
    pages.push(("codes.md".to_owned(), codes::index()));
    pages.push(("operators.md".to_owned(), operators::page()));
    pages.push(("rx.schema.json".to_owned(), schema::schema()));
    pages.push(("commands.md".to_owned(), manual::reference()));
    pages.extend(manual::pages()?.into_iter().map(|(name, text)| (format!("man/{name}"), text)));
    Ok(pages)
}
