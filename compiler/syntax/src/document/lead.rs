//! Classification of a statement for the outline, by its first words: decorator, `def`, import, and so on. The module
//! also collects the names that a Python file's imports give to TVMScript's namespaces.

use super::{FileKind, FunctionKind};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The kind of a statement, as the outline needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead<'t> {
    /// `@path`, with or without a call; holds the dotted path.
    Decorator(&'t str),
    /// `class name`.
    Class(&'t str),
    /// `def name` or `async def name`.
    Def(&'t str),
    /// `elif`, `else`, `except`, `finally`: continues the statement of the block before it.
    Continuation,
    /// `with …`.
    With,
    /// Another statement whose keyword is allowed only in a function's body, such as `return`.
    Body,
    /// `import …`, `from …`, `x = TypeVar(…)`.
    Prelude,
    /// `metadata = tvm.ir.load_json(…`.
    Metadata,
    /// Anything else.
    Other,
}

impl Lead<'_> {
    /// Whether the statement starts an item.
    pub(super) fn starts_item(self) -> bool {
        matches!(self, Lead::Decorator(_) | Lead::Class(_) | Lead::Def(_))
    }

    /// Whether the statement is allowed only in a function's body.
    pub(super) fn is_body(self) -> bool {
        matches!(self, Lead::Continuation | Lead::With | Lead::Body)
    }
}

/// Classifies a statement by its text, which begins with its first token.
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
    match callee.rsplit('.').next().map(str::trim_start) {
        Some("TypeVar") => Lead::Prelude,
        Some("load_json") if word == "metadata" => Lead::Metadata,
        _ => Lead::Other,
    }
}

/// Whether the statement's text is a block header whose block is on the following lines.
pub(super) fn opens_block(statement: &str) -> bool {
    const OPENERS: [&str; 14] = [
        "if", "elif", "else", "for", "while", "with", "def", "class", "try", "except", "finally", "async", "match",
        "case",
    ];
    let (word, rest) = first_word(statement);
    rest.trim_end().ends_with(':') && OPENERS.contains(&word) && !is_soft_name(word, rest)
}

/// Whether `match` or `case` is a name here and not a keyword, given the text after it. For example, `match = 1`.
fn is_soft_name(word: &str, rest: &str) -> bool {
    matches!(word, "match" | "case")
        && !rest.trim_start().starts_with(|c: char| c.is_alphanumeric() || "_([{'\"-".contains(c))
}

fn first_word(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len()))
}

/// Returns the leading `a.b.c` of a text, with any blanks around the dots.
fn dotted_path(text: &str) -> &str {
    let text = text.trim_start();
    // `0.5.real` is an attribute of a number, not a dotted path.
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return "";
    }
    let is_blank = |c: char| matches!(c, ' ' | '\t');
    let mut end = 0;
    let mut wants_dot = false;
    loop {
        // INVARIANT: `end` is a character boundary of `text`: the end of a dot or of a word.
        let rest = text[end..].trim_start_matches(is_blank);
        let part = match (rest.strip_prefix('.'), wants_dot) {
            (Some(_), _) => 1,
            (None, true) => 0,
            (None, false) => first_word(rest).0.len(),
        };
        if part == 0 {
            return &text[..end];
        }
        wants_dot = !rest.starts_with('.');
        end = text.len() - rest.len() + part;
    }
}

/// Returns a dotted path without the blanks around its dots.
fn without_blanks(path: &str) -> Cow<'_, str> {
    match path.contains([' ', '\t']) {
        false => path.into(),
        true => path.split('.').map(str::trim).collect::<Vec<_>>().join(".").into(),
    }
}

/// The effect of a decorator on the `def` or `class` below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoration {
    /// Marks a module class.
    Module,
    /// Marks a function of this kind.
    Function(FunctionKind),
}

/// Returns the meaning of a decorator's path; `None` if it is not one of TVMScript's decorators.
pub(super) fn decoration(path: &str, kind: FileKind, imports: &Imports) -> Option<Decoration> {
    let path = &*without_blanks(path);
    let (prefix, last) = path.rsplit_once('.').unwrap_or(("", path));
    let decoration = match last {
        "ir_module" => Decoration::Module,
        "function" => Decoration::Function(FunctionKind::Relax),
        "prim_func" => Decoration::Function(FunctionKind::Prim),
        // `R.macro` is excluded: rx does not expand Relax macros.
        "macro" | "inline" if !matches!(prefix.rsplit('.').next(), Some("" | "R" | "relax")) => {
            Decoration::Function(FunctionKind::Macro)
        }
        _ => return None,
    };
    let known = match prefix {
        _ if kind == FileKind::Rx => true,
        "" => last == "ir_module",
        "R" | "T" | "I" => !imports.elsewhere.contains(prefix),
        "script" => true,
        _ => prefix.starts_with("tvm.script") || prefix.starts_with("script.") || imports.script.contains(prefix),
    };
    known.then_some(decoration)
}

/// A word that every import contains.
pub(super) const IMPORT: &str = "import";

/// The number of bytes after an import's start that are searched for imported names.
const IMPORT_REACH: usize = 2048;

/// The names that a Python file's imports give to TVMScript's namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Imports {
    /// Names for parts of `tvm.script`: `from tvm.script import relax as rx` gives `rx`.
    script: BTreeSet<String>,
    /// Those of `R`, `T` and `I` that are imported only from other packages: `import tilelang.language as T` gives `T`.
    elsewhere: BTreeSet<String>,
}

/// Whether an import loads one of TVM's script namespaces: `name` from `module`, or the module `name` itself. A
/// relative path counts as part of TVM's source tree if it contains `script`.
pub fn is_script_import(module: Option<&str>, name: &str) -> bool {
    const NAMESPACES: [&str; 4] = ["relax", "tir", "tirx", "ir"];
    let last = name.rsplit('.').next().unwrap_or(name).trim();
    let mut parts = module.unwrap_or(name).split('.').map(str::trim);
    match parts.next() {
        Some("tvm") => NAMESPACES.contains(&last) || parts.next() == Some("script"),
        Some("") => parts.any(|part| part == "script"),
        _ => false,
    }
}

/// Collects the names that a text's imports give to TVMScript's namespaces. Every line counts, also inside functions,
/// so the result can change only if a line with [`IMPORT`] does.
pub(super) fn imports(text: &str) -> Imports {
    let mut imports = Imports::default();
    let mut from_tvm = BTreeSet::new();
    let mut rest = text;
    while let Some(at) = rest.find(IMPORT) {
        // INVARIANT: all offsets come from `find` on the sliced text itself.
        let (before, after) = (&rest[..at], &rest[at + IMPORT.len()..]);
        let line_start = before.rfind(['\n', '\r']).map_or(0, |newline| newline + 1);
        let line = before[line_start..].trim();
        let module = line.strip_prefix("from").map(str::trim).filter(|module| line.len() > "from".len() + module.len());
        if after.starts_with([' ', '\t', '(']) && (line.is_empty() || module.is_some()) {
            for (path, bound) in imported_names(&after[..after.floor_char_boundary(IMPORT_REACH)]) {
                if module.is_some_and(|module| module.starts_with("tvm.script")) {
                    imports.script.insert(bound.to_owned());
                }
                if matches!(bound, "R" | "T" | "I") {
                    let names = if is_script_import(module, path) { &mut from_tvm } else { &mut imports.elsewhere };
                    names.insert(bound.to_owned());
                }
            }
        }
        rest = after;
    }
    imports.elsewhere.retain(|name| !from_tvm.contains(name));
    imports
}

/// Parses `a as b, c`; returns each imported path with the name that it is bound to.
fn imported_names(names: &str) -> Vec<(&str, &str)> {
    let names = match names.trim_start().strip_prefix('(') {
        Some(inner) => inner.split(')').next().unwrap_or_default(),
        None => names.split(['\n', '\r', '#']).next().unwrap_or_default(),
    };
    let mut found = Vec::new();
    for name in names.split(',') {
        let mut words = name.split_whitespace();
        found.push(match (words.next(), words.next(), words.next(), words.next()) {
            (Some(name), None, ..) => (name, name),
            (Some(name), Some("as"), Some(alias), None) => (name, alias),
            // An unclosed bracket ends at the first text that is not a name.
            _ => break,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{
        Decoration, FileKind, FunctionKind, Imports, Lead, decoration, imports, is_script_import, lead, opens_block,
    };

    #[test]
    fn leads() {
        assert_eq!(lead("@R.function(private=True)"), Lead::Decorator("R.function"));
        assert_eq!(lead("def main[n](x): pass"), Lead::Def("main"));
        assert_eq!(lead("class Module:"), Lead::Class("Module"));
        assert_eq!(lead("n = T.TypeVar(\"n\")"), Lead::Prelude);
        assert_eq!(lead("metadata = tvm.ir.load_json(\"\"\"{}\"\"\")"), Lead::Metadata);
        assert_eq!(lead("x == TypeVar(1)"), Lead::Other);
        assert_eq!(lead("returned = 1"), Lead::Other);
        assert_eq!(lead("@ R .\tfunction (private=True)"), Lead::Decorator("R .\tfunction"));
        assert_eq!(lead("n = T . TypeVar(\"n\")"), Lead::Prelude);
    }

    #[test]
    fn decoration_path_with_blanks_is_known() {
        let of = |path| decoration(path, FileKind::Python, &Imports::default());
        assert_eq!(of("R.  function"), of("R.function"));
        assert_eq!(of("tvm . script . ir_module"), Some(Decoration::Module));
        assert_eq!(of("R function"), None);
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
        let imports = imports(
            "import tvm.script\nfrom tvm.script import relax as rx, tir as TT\nfrom tvm.script.parser import (\n  ir as Q,\n)\n",
        );
        assert_eq!(imports.script.iter().map(String::as_str).collect::<Vec<_>>(), ["Q", "TT", "rx"]);
        assert!(imports.elsewhere.is_empty());
    }

    #[test]
    fn namespaces_of_other_packages_are_distinguished() {
        let elsewhere = |text: &str| imports(text).elsewhere.into_iter().collect::<Vec<_>>();
        assert_eq!(elsewhere("import tilelang.language as T\n"), ["T"]);
        assert_eq!(elsewhere("from tilelang import language as T\nfrom tvm.script import ir as I\n"), ["T"]);
        assert_eq!(
            elsewhere("if x:\n    from my.fork import (\n        tir as T,\n        relax as R,\n    )\n"),
            ["R", "T"]
        );
        assert_eq!(
            elsewhere("try:\n    import fork.tir as T\nexcept E:\n    from tvm.script import tir as T\n"),
            [""; 0]
        );
        assert_eq!(elsewhere("import important as T1\n# import x as T\n"), [""; 0]);
        for (module, name) in [(None, "tvm.script.relax"), (Some("tvm"), "relax"), (Some("tvm.script.parser"), "tir")] {
            assert!(is_script_import(module, name), "{module:?} {name}");
        }
        assert!(is_script_import(Some("..script"), "tir") && !is_script_import(Some(".fork"), "tir"));
        assert!(!is_script_import(None, "tvm.tl.language") && !is_script_import(Some("tvm.tl"), "language"));
    }
}
