//! Embeds the pages of `docs/codes` in the binary, so that `--explain` needs no files.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../docs/codes");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut table = "&[\n".to_owned();
    for name in &names {
        if let Some(number) = name.strip_prefix("rx").and_then(|name| name.strip_suffix(".md")) {
            let number: u16 = number.parse().map_err(|_| format!("docs/codes/{name} is named after no code"))?;
            writeln!(table, "    ({number}, include_str!({:?})),", folder.join(name))?;
        }
    }
    table += "]";
    fs::write(Path::new(&env::var("OUT_DIR")?).join("pages.rs"), table)?;
    Ok(())
}
