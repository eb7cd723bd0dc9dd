//! Joins the texts of kernels to a source, with the parts that depend on the other kernels or on the program.
//!
//! A function is scheduled and printed by itself, so that its text can be cached while other functions change. Its name
//! and origins (see [`Named`]), the names of its kernels, and the numbers of checks are filled in when the text is
//! added to a source.

use super::functions::blocks_of;
use rx_base::Name;
use rx_ir::Origin;
use rx_tir::{PrimFunc, Stmt};
use std::fmt::Write as _;

/// Encloses the number of a check in a body. The character occurs in no name.
const MARK: char = '\u{1}';

/// The identity of a function in a source: its name there, and the statements of the program that it computes.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name.
    pub name: Name,
    /// The statements of the program.
    pub origins: &'a [Origin],
}

impl<'a> From<&'a PrimFunc> for Named<'a> {
    fn from(func: &'a PrimFunc) -> Named<'a> {
        Named { name: func.name, origins: &func.origins }
    }
}

/// The text of a kernel without its name.
#[derive(Clone, Debug)]
pub(super) struct KernelText {
    /// The names of the TIR blocks that it computes.
    pub(super) blocks: Vec<String>,
    /// The operators that its stores come from, with their statements in the program where these are known.
    pub(super) sources: Vec<String>,
    /// Further lines of its comment.
    pub(super) notes: Vec<String>,
    /// The arguments of its `__launch_bounds__`: the threads of a block and, if the rule gives it, the minimum of
    /// blocks on a multiprocessor.
    pub(super) bound: String,
    pub(super) parameters: Vec<String>,
    /// Its lines. They contain the numbers of checks, counted from the function's first check and marked by
    /// [`check_number`]; [`KernelText::named`] replaces them by the numbers in the source.
    pub(super) body: String,
}

/// Returns a check number for a body, relative to the function.
pub(super) fn check_number(number: usize) -> String {
    format!("{MARK}{number}{MARK}")
}

impl KernelText {
    /// Appends the kernel with its comment to `text`, as a kernel called `name`. The numbers of the function's checks
    /// begin at `first_check`.
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

/// Returns the names of the TIR blocks in statements, without duplicates.
pub(super) fn blocks_in(statements: &[&Stmt]) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    for block in statements.iter().flat_map(|stmt| blocks_of(stmt)) {
        if !blocks.contains(&block) {
            blocks.push(block);
        }
    }
    blocks
}

/// Returns the operators that the stores come from, with their statements in the program where these are known.
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
