//! Kernels' texts joined to one: what depends on the other kernels, or on the program, is put in here.
//!
//! A function is scheduled and printed by itself, so that its text can be kept while others change. Names of kernels, numbers of
//! checks, and the statements that a comment names are those of the text that it becomes part of.

use super::functions::blocks_of;
use rx_base::Name;
use rx_ir::Origin;
use rx_tir::{PrimFunc, Stmt};
use std::fmt::Write as _;

/// Begins and ends the number of a check in a body: no name has it.
const MARK: char = '\u{1}';

/// A function in a text: its name there, and the statements of the program that it computes.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name.
    pub name: Name,
    /// The statements.
    pub origins: &'a [Origin],
}

impl<'a> From<&'a PrimFunc> for Named<'a> {
    fn from(func: &'a PrimFunc) -> Named<'a> {
        Named { name: func.name, origins: &func.origins }
    }
}

/// A kernel's text without its name.
#[derive(Clone, Debug)]
pub(super) struct KernelText {
    /// The blocks that it computes.
    pub(super) blocks: Vec<String>,
    /// The operators, with their statements, that its stores come from.
    pub(super) sources: Vec<String>,
    /// Further lines of its comment.
    pub(super) notes: Vec<String>,
    /// The arguments of its `__launch_bounds__`: threads of a block, and the least blocks of a multiprocessor.
    pub(super) bound: String,
    pub(super) parameters: Vec<String>,
    /// Its lines; numbers of checks are the function's, as [`check_number`] writes them.
    pub(super) body: String,
}

/// The number of a check in a body.
pub(super) fn check_number(number: usize) -> String {
    format!("{MARK}{number}{MARK}")
}

impl KernelText {
    /// Adds the kernel under a name, with its comment, to a text. Its function's checks have the numbers from `first_check` on.
    pub(super) fn named(&self, name: &str, of: Named<'_>, first_check: usize, text: &mut String) {
        let _ = write!(text, "// {}", one_line(&[of.name.to_string()]));
        if !self.blocks.is_empty() {
            let _ = write!(text, ": {}", one_line(&self.blocks));
        }
        text.push('\n');
        if !self.sources.is_empty() {
            let _ = writeln!(text, "// from {}", one_line(&self.sources));
        }
        let statement = |origin: &Origin| format!("{} statement {}", origin.item, origin.statement);
        let origins: Vec<String> = of.origins.iter().map(statement).collect();
        if !origins.is_empty() {
            let _ = writeln!(text, "// for {}", one_line(&origins));
        }
        for note in &self.notes {
            let _ = writeln!(text, "// {}", one_line(std::slice::from_ref(note)));
        }
        let head = format!("extern \"C\" __global__ void __launch_bounds__({}) {name}(", self.bound);
        let one_line = format!("{head}{}) {{", self.parameters.join(", "));
        text.push_str(&match one_line.len() <= 120 {
            true => one_line,
            false => format!("{head}\n    {}) {{", self.parameters.join(",\n    ")),
        });
        text.push('\n');
        for (at, part) in self.body.split(MARK).enumerate() {
            match part.parse::<usize>() {
                Ok(number) if at % 2 == 1 => _ = write!(text, "{}", first_check + number),
                _ => text.push_str(part),
            }
        }
        text.push_str("}\n");
    }
}

fn one_line(parts: &[String]) -> String {
    let line = parts.join(", ");
    let breaks = |byte: &u8| matches!(byte, b'\n' | b'\r' | b'\\');
    if line.as_bytes().iter().any(breaks) { line.replace(['\n', '\r', '\\'], " ") } else { line }
}

/// The blocks of statements by their names, each once.
pub(super) fn blocks_in(statements: &[&Stmt]) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for block in statements.iter().flat_map(|stmt| blocks_of(stmt)) {
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks
}

/// The operators that statements store for, with the program's statements where these are known.
pub(super) fn sources_of(statements: &[&Stmt]) -> Vec<String> {
    let mut sources: Vec<String> = Vec::new();
    for stmt in statements {
        stmt.walk(&mut |part| {
            let Stmt::Store { site, .. } = part else { return };
            let source = match site.origin {
                Some(origin) => format!("{} ({}, statement {})", site.operator, origin.item, origin.statement),
                None => site.operator.to_string(),
            };
            if !sources.contains(&source) {
                sources.push(source);
            }
        });
    }
    sources
}
