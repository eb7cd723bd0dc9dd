//! What a statement's first words say to the outline.

use super::{FileKind, FunctionKind};
use std::collections::BTreeSet;

/// A statement as the outline sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead<'t> {
    /// `@path` with or without a call; the dotted path.
    Decorator(&'t str),
    /// `class name`.
    Class(&'t str),
    /// `def name`, also after `async`.
    Def(&'t str),
    /// `elif`, `else`, `except`, `finally`: belongs to the block before it.
    Continuation,
    /// `with …`.
    With,
    /// Another keyword that only a function's body holds.
    Body,
    /// `import …`, `from …`, `x = TypeVar(…)`.
    Prelude,
    /// `metadata = tvm.ir.load_json(…`.
    Metadata,
    /// Anything else.
    Other,
}

impl Lead<'_> {
    /// Whether an item starts here.
    pub(super) fn starts_item(self) -> bool {
        matches!(self, Lead::Decorator(_) | Lead::Class(_) | Lead::Def(_))
    }

    /// Whether only a function's body can hold the statement.
    pub(super) fn is_body(self) -> bool {
        matches!(self, Lead::Continuation | Lead::With | Lead::Body)
    }
}

/// Classifies a statement by its text, from its first token.
pub(super) fn lead(statement: &str) -> Lead<'_> {
    if let Some(path) = statement.strip_prefix('@') {
        return Lead::Decorator(dotted_path(path));
    }
    let (word, rest) = first_word(statement);
    match word {
        "def" => Lead::Def(first_word(rest.trim_start()).0),
        "class" => Lead::Class(first_word(rest.trim_start()).0),
        "async" => match first_word(rest.trim_start()) {
            ("def", rest) => Lead::Def(first_word(rest.trim_start()).0),
            _ => Lead::Body,
        },
        "elif" | "else" | "except" | "finally" => Lead::Continuation,
        "with" => Lead::With,
        "if" | "for" | "while" | "return" | "pass" | "assert" | "break" | "continue" | "try" | "raise" => Lead::Body,
        "import" | "from" => Lead::Prelude,
        _ => assignment_lead(word, rest),
    }
}

fn assignment_lead<'t>(word: &str, rest: &'t str) -> Lead<'t> {
    let Some(value) = rest.trim_start().strip_prefix('=') else { return Lead::Other };
    let callee = dotted_path(value);
    match callee.rsplit('.').next() {
        Some("TypeVar") => Lead::Prelude,
        Some("load_json") if word == "metadata" => Lead::Metadata,
        _ => Lead::Other,
    }
}

/// Whether the statement's text is a block's header: it opens a block that the next lines hold.
pub(super) fn opens_block(statement: &str) -> bool {
    const OPENERS: [&str; 14] = [
        "if", "elif", "else", "for", "while", "with", "def", "class", "try", "except", "finally", "async", "match",
        "case",
    ];
    let (word, rest) = first_word(statement);
    rest.trim_end().ends_with(':') && OPENERS.contains(&word) && !is_soft_name(word, rest)
}

/// Whether `match` or `case` before `rest` is a name.
fn is_soft_name(word: &str, rest: &str) -> bool {
    matches!(word, "match" | "case")
        && !rest.trim_start().starts_with(|c: char| c.is_alphanumeric() || "_([{'\"-".contains(c))
}

fn first_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len()))
}

/// The leading `a.b.c` of a text.
fn dotted_path(text: &str) -> &str {
    let text = text.trim_start();
    text.split_at(text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(text.len())).0
}

/// What a decorator makes of the `def` or `class` below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoration {
    /// A module class.
    Module,
    /// A function.
    Function(FunctionKind),
}

/// The meaning of a decorator's path; `None` if it has none in TVMScript.
pub(super) fn decoration(path: &str, kind: FileKind, aliases: &BTreeSet<String>) -> Option<Decoration> {
    let (prefix, last) = path.rsplit_once('.').unwrap_or(("", path));
    let decoration = match last {
        "ir_module" => Decoration::Module,
        "function" => Decoration::Function(FunctionKind::Relax),
        "prim_func" => Decoration::Function(FunctionKind::Prim),
        // Relax has macros, too, which are not expanded.
        "macro" | "inline" if !matches!(prefix.rsplit('.').next(), Some("" | "R" | "relax")) => {
            Decoration::Function(FunctionKind::Macro)
        }
        _ => return None,
    };
    let known = match prefix {
        _ if kind == FileKind::Rx => true,
        "" => last == "ir_module",
        "R" | "T" | "I" | "script" => true,
        _ => prefix.starts_with("tvm.script") || prefix.starts_with("script.") || aliases.contains(prefix),
    };
    known.then_some(decoration)
}

/// The text that every import of a part of `tvm.script` holds.
pub(super) const SCRIPT_PACKAGE: &str = "tvm.script";

/// How much of a text after [`SCRIPT_PACKAGE`] is searched for the names it imports.
const IMPORT_REACH: usize = 2048;

/// What a Python text calls the parts of `tvm.script`: `from tvm.script import relax as rx` gives `rx`. Every line of
/// the text counts, wherever it stands, so that the answer changes only with lines that name the package.
pub(super) fn script_aliases(text: &str) -> BTreeSet<String> {
    let mut aliases = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find(SCRIPT_PACKAGE) {
        // INVARIANT: all offsets come from `find` on the sliced text itself.
        let before = &rest[..at];
        let line_start = before.rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
        let after = &rest[at + SCRIPT_PACKAGE.len()..];
        if before[line_start..].trim() == "from" {
            imported_names(&after[..after.floor_char_boundary(IMPORT_REACH)], &mut aliases);
        }
        rest = after;
    }
    aliases
}

/// Adds the names that `.module import a as b, c` brings in.
fn imported_names(after: &str, into: &mut BTreeSet<String>) {
    let module = after.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(after.len());
    let Some(names) = after[module..].trim_start_matches([' ', '\t']).strip_prefix("import") else { return };
    let names = match names.trim_start().strip_prefix('(') {
        Some(inner) => inner.split(')').next().unwrap_or_default(),
        None => names.split(['\n', '\r', '#']).next().unwrap_or_default(),
    };
    for name in names.split(',') {
        let mut words = name.split_whitespace();
        let alias = match (words.next(), words.next(), words.next(), words.next()) {
            (Some(name), None, ..) => name,
            (Some(_), Some("as"), Some(alias), None) => alias,
            // A bracket that is never closed ends where no name is.
            _ => return,
        };
        into.insert(alias.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::{Decoration, FileKind, FunctionKind, Lead, decoration, lead, opens_block, script_aliases};

    #[test]
    fn leads() {
        assert_eq!(lead("@R.function(private=True)"), Lead::Decorator("R.function"));
        assert_eq!(lead("def main[n](x): pass"), Lead::Def("main"));
        assert_eq!(lead("class Module:"), Lead::Class("Module"));
        assert_eq!(lead("n = T.TypeVar(\"n\")"), Lead::Prelude);
        assert_eq!(lead("metadata = tvm.ir.load_json(\"\"\"{}\"\"\")"), Lead::Metadata);
        assert_eq!(lead("x == TypeVar(1)"), Lead::Other);
        assert_eq!(lead("returned = 1"), Lead::Other);
    }

    #[test]
    fn macros_are_those_of_prim_funcs() {
        let of = |path: &str| decoration(path, FileKind::Python, &Default::default());
        let expanded = Some(Decoration::Function(FunctionKind::Macro));
        assert_eq!([of("T.inline"), of("T.macro"), of("R.macro"), of("np.inline")], [expanded, expanded, None, None]);
    }

    #[test]
    fn headers_open_blocks() {
        assert!(opens_block("with R.dataflow():  "));
        assert!(!opens_block("if x: y = 1"));
        assert!(!opens_block("x:"));
        assert!(opens_block("match x:") && !opens_block("match:"));
    }

    #[test]
    fn aliases_come_from_imports() {
        let aliases = script_aliases(
            "import tvm.script\nfrom tvm.script import relax as rx, tir as TT\nfrom tvm.script.parser import (\n  ir as Q,\n)\n",
        );
        assert_eq!(aliases.iter().map(String::as_str).collect::<Vec<_>>(), ["Q", "TT", "rx"]);
    }
}
