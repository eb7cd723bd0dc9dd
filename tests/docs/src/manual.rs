//! Generates the reference of the command lines from clap's definitions: pages for `man`, and `docs/commands.md`.

use clap::{Arg, Command};
use std::fmt::Write;
use std::io;

const HEAD: &str = "# Command lines

<!-- Written by `cargo run -p rx-docs` from the programs' own definitions; a test compares. -->

The options of `rxcheck`, `rxfmt`, `rxopt` and `rxrun`, with the texts of `--help`. `rx-lsp` is not listed: editors start it without
options. It speaks the Language Server Protocol on standard input and output, and gets its settings from the editor
([extensions](lsp-extensions.md)).
";

fn commands() -> [Command; 4] {
    [rxcheck::command(), rxfmt::command(), rxopt::command(), rxrun::command()]
}

/// Generates `docs/commands.md`: for each program its purpose, usage, a table of its options and its remarks.
pub fn reference() -> String {
    commands().into_iter().fold(HEAD.to_owned(), |page, mut command| {
        command.build();
        page + &section(command)
    })
}

fn section(mut command: Command) -> String {
    let name = command.get_name().to_owned();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let mut section = format!("\n## `{name}`\n\n{about}\n\n```\n{usage}\n```\n\n| option | meaning |\n|---|---|\n");
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        // INVARIANT: writing to a string does not fail.
        let _ = writeln!(section, "| `{}` | {} |", cell(&spelling(arg)), cell(&meaning(arg)));
    }
    if let Some(remarks) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = write!(section, "\n```\n{}\n```\n", remarks.to_string().trim_end());
    }
    section
}

/// Formats an argument as it is typed, for example `-o, --output <FILE>`.
fn spelling(arg: &Arg) -> String {
    arg.to_string()
        .split_once("--")
        .filter(|_| arg.get_short().is_some())
        .map_or_else(|| arg.to_string(), |(_, long)| format!("-{}, --{long}", arg.get_short().unwrap_or_default()))
}

/// Returns the help of an argument with its possible values and its default.
fn meaning(arg: &Arg) -> String {
    let mut text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = match arg.get_action().takes_values() {
        true => arg
            .get_possible_values()
            .iter()
            .filter(|it| !it.is_hide_set())
            .map(|it| format!("`{}`", it.get_name()))
            .collect(),
        false => Vec::new(),
    };
    if !text.ends_with(['.', ']']) {
        text.push('.');
    }
    if !values.is_empty() {
        let _ = write!(text, " Values: {}.", values.join(", "));
    }
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|it| format!("`{}`", it.to_string_lossy())).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(text, " Default: {}.", defaults.join(", "));
    }
    text
}

/// Formats a text as one cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Generates the manual pages: file name and text of each.
///
/// # Errors
/// None in practice, since it writes to memory.
pub fn pages() -> io::Result<Vec<(String, String)>> {
    commands().into_iter().map(page).collect()
}

fn page(command: Command) -> io::Result<(String, String)> {
    let name = format!("{}.1", command.get_name());
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok((name, String::from_utf8_lossy(&text).into_owned()))
}
