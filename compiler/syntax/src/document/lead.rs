//! What a statement's first words say to the outline.

use super::{FileKind, FunctionKind};
use std::borrow::Cow;
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
    match callee.rsplit('.').next().map(str::trim_start) {
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

/// The leading `a.b.c` of a text, with the blanks around its dots.
fn dotted_path(text: &str) -> &str {
    let text = text.trim_start();
    // `0.5.real` is a member of a number.
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return "";
    }
    let is_blank = |c: char| matches!(c, ' ' | '\t');
    let mut end = 0;
    let mut wants_dot = false;
    loop {
        // INVARIANT: `end` is a place behind whole characters of `text`.
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

/// A dotted path without the blanks around its dots.
fn without_blanks(path: &str) -> Cow<'_, str> {
    match path.contains([' ', '\t']) {
        false => path.into(),
        true => path.split('.').map(str::trim).collect::<Vec<_>>().join(".").into(),
    }
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
pub(super) fn decoration(path: &str, kind: FileKind, imports: &Imports) -> Option<Decoration> {
    let path = &*without_blanks(path);
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
        "R" | "T" | "I" => !imports.elsewhere.contains(prefix),
        "script" => true,
        _ => prefix.starts_with("tvm.script") || prefix.starts_with("script.") || imports.script.contains(prefix),
    };
    known.then_some(decoration)
}

/// A word of every import.
pub(super) const IMPORT: &str = "import";

/// How much of a text after an import's start is searched for the names it imports.
const IMPORT_REACH: usize = 2048;

/// What a Python text calls the namespaces of TVMScript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Imports {
    /// Parts of `tvm.script`: `from tvm.script import relax as rx` gives `rx`.
    script: BTreeSet<String>,
    /// Those of `R`, `T` and `I` that come from elsewhere only: `import tilelang.language as T`.
    elsewhere: BTreeSet<String>,
}

/// Whether an import brings in a namespace of TVM's own script: `name` of `module`, or all of the module `name`. A relative
/// path is one of TVM's tree where it names `script`.
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

/// What the imports of a text bind the namespaces to. Every line counts, wherever it stands, so that the answer changes
/// only with lines that hold [`IMPORT`].
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

/// The names that `a as b, c` brings in: each path, and what it is called.
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
            // A bracket that is never closed ends where no name is.
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
    fn namespaces_of_other_packages_are_told_apart() {
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
