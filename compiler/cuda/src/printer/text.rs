//! Joins the texts of kernels to a source, with the parts that depend on the other kernels or on the program.
//!
//! A function is scheduled and printed by itself, so that its text can be cached while other functions change. Its name
//! and origins (see [`Named`]), the names of its kernels, and the numbers of checks are filled in when the text is
//! added to a source.

use super::functions::blocks_of;
use rx_base::Name;
use rx_ir::Origin;
use rx_tir::{PrimFunc, Stmt};
use std::fmt::{Display, Write as _};

/// Encloses the number of a check in a body. The character occurs in no name.
const MARK: char = '\u{1}';

/// The usual number of bytes of a kernel's text outside its body.
const HEAD_BYTES: usize = 1024;

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
        text.reserve(self.body.len() + HEAD_BYTES);
        text.push_str("// ");
        push_list(text, [of.name]);
        if !self.blocks.is_empty() {
            text.push_str(": ");
            push_list(text, &self.blocks);
        }
        text.push('\n');
        let mut comment = |words: &str, parts: &[String]| {
            if !parts.is_empty() {
                text.push_str(words);
                push_list(text, parts);
                text.push('\n');
            }
        };
        comment("// from ", &self.sources);
        comment("// for ", &statements(of.origins));
        for note in &self.notes {
            comment("// ", std::slice::from_ref(note));
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

/// Lists statements by function: `main statements 3, 4`.
fn statements(origins: &[Origin]) -> Vec<String> {
    let of_item = |origins: &[Origin]| {
        let [first, rest @ ..] = origins else { return String::new() };
        let more: String = rest.iter().map(|origin| format!(", {}", origin.statement)).collect();
        format!("{} statement{} {}{more}", first.item, if rest.is_empty() { "" } else { "s" }, first.statement)
    };
    origins.chunk_by(|a, b| a.item == b.item).map(of_item).collect()
}

/// Appends items, separated by commas, on one line: line breaks and backslashes, which would continue a comment, become
/// spaces.
fn push_list<T: Display>(text: &mut String, items: impl IntoIterator<Item = T>) {
    let start = text.len();
    for (at, item) in items.into_iter().enumerate() {
        let separator = if at > 0 { ", " } else { "" };
        let _ = write!(text, "{separator}{item}");
    }
    let list = text.get(start..).unwrap_or_default();
    if list.contains(['\n', '\r', '\\']) {
        let line = list.replace(['\n', '\r', '\\'], " ");
        text.truncate(start);
        text.push_str(&line);
    }
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
