//! Writes the generated pages of `docs/`.

use std::io;

fn main() -> io::Result<()> {
    for (name, text) in rx_docs::pages()? {
        std::fs::write(rx_docs::folder().join(&name), text)?;
        println!("docs/{name}");
    }
    Ok(())
}
