//! Manual pages for `man`, from the command lines as clap knows them.

use clap::Command;
use std::io;

/// The manual pages: file name and text.
///
/// # Errors
/// None that writing into memory has.
pub fn pages() -> io::Result<Vec<(String, String)>> {
    [rxcheck::command(), rxfmt::command(), rxopt::command()].into_iter().map(page).collect()
}

fn page(command: Command) -> io::Result<(String, String)> {
    let name = format!("{}.1", command.get_name());
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok((name, String::from_utf8_lossy(&text).into_owned()))
}
