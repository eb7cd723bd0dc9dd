//! A file as items of segments, kept across edits.
//!
//! The text is cut into [`Item`]s (functions, module headers, what stands between them) and those into [`Segment`]s of
//! some 32 statements. Both cuts are decided by a forward scan (`outline`) whose state at every segment's start is
//! kept (`layout`), so that an edit is answered by scanning from the segment before it to the first old segment where
//! the state is as it was (`edit`). Where segments are cut affects no result.

mod alone;
mod edit;
mod joined;
mod layout;
mod lead;
mod outline;
mod position;
mod split;

pub use edit::Edit;
pub use joined::{JoinedEdit, Point};
pub use position::{Encoding, Location};

use crate::directive::Directive;
use crate::segment::Segment;
use layout::Layout;
use lead::Imports;
pub use lead::is_script_import;
use rx_base::{Diagnostic, Name, Span};
use std::path::Path;
use std::sync::Arc;

/// What kind of file a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Nothing but TVMScript.
    Rx,
    /// Python that may hold decorated TVMScript.
    Python,
}

impl FileKind {
    /// The kind of the file at `path`, by its extension: `.py` is Python, everything else plain TVMScript.
    pub fn of_path(path: impl AsRef<Path>) -> FileKind {
        if path.as_ref().extension().is_some_and(|extension| extension == "py") {
            FileKind::Python
        } else {
            FileKind::Rx
        }
    }
}

/// What kind of function a `def` is, by its decorators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `@R.function`.
    Relax,
    /// `@T.prim_func`.
    Prim,
    /// `@T.macro`, `@T.inline`: expanded where prim_funcs call it.
    Macro,
    /// Any other.
    Other,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// Imports, `TypeVar` lines, comments: whatever stands outside classes in an `.rx` file and is no function. In
    /// Python files, imports and `TypeVar` lines alone.
    Prelude,
    /// `metadata = tvm.ir.load_json("""…""")`.
    Metadata,
    /// `@I.ir_module` with its `class X:`.
    ModuleHeader,
    /// Statements of the class that are no function.
    ModuleStatement,
    /// A function. Decorators and header are the first segment; the body follows. A decorator without a `def` is one too.
    Function(FunctionKind),
    /// Python that is not looked at.
    Foreign,
}

/// A part of a file.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// The column of its first statement.
    pub indent: u32,
    /// The name of its function or class.
    pub name: Option<Name>,
    /// Its text.
    pub segments: Arc<[Arc<Segment>]>,
    /// The class it belongs to: how many module headers precede that class's own. A header belongs to itself.
    pub module: Option<u32>,
    layout: Arc<Layout>,
}

impl Item {
    /// Its text's length in bytes.
    pub fn byte_len(&self) -> usize {
        self.layout.byte_len() as usize
    }

    /// Number of line breaks.
    pub fn line_count(&self) -> u32 {
        self.layout.line_count()
    }

    /// Where a segment starts, in bytes from the item's start; the item's length for one past the last.
    pub fn segment_start(&self, segment: usize) -> usize {
        self.layout.start(segment) as usize
    }

    /// The comments that speak to rx, in order, each with its segment. Looks at the segments that may have one only.
    pub fn directives(&self) -> impl Iterator<Item = (usize, &Directive)> + '_ {
        self.layout.directed().iter().flat_map(|segment| {
            let at = *segment as usize;
            let directives = self.segments.get(at).map(|segment| segment.directives()).unwrap_or_default();
            directives.iter().map(move |directive| (at, directive))
        })
    }

    /// Lines that no block can hold, and blocks without a line: segment and diagnostic with a place in that segment.
    pub fn indentation_diagnostics(&self) -> impl Iterator<Item = (usize, Diagnostic<Span>)> + '_ {
        self.layout.indentation_diagnostics()
    }
}

/// A file's text.
#[derive(Clone, Debug)]
pub struct Document {
    kind: FileKind,
    /// What the namespaces of TVMScript are called here; Python files only.
    imports: Arc<Imports>,
    items: Vec<Item>,
    /// Bytes before each item, and in all.
    starts: Vec<usize>,
    /// Line breaks before each item, and in all.
    lines: Vec<usize>,
}

impl Document {
    /// The document of `text`.
    pub fn new(text: &str, kind: FileKind) -> Document {
        let imports = match kind {
            FileKind::Rx => Imports::default(),
            FileKind::Python => lead::imports(text),
        };
        let mut document =
            Document { kind, imports: Arc::new(imports), items: Vec::new(), starts: Vec::new(), lines: Vec::new() };
        document.build(text);
        document
    }

    /// What kind of file it is.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// The items, which follow one another without a gap.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The text's length in bytes.
    pub fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.len());
        for segment in self.items.iter().flat_map(|item| item.segments.iter()) {
            text.push_str(segment.text());
        }
        text
    }

    /// How the first line ends; `\n` where there is one line only.
    pub fn line_end(&self) -> &'static str {
        let mut texts = self.items.iter().flat_map(|item| item.segments.iter()).map(|segment| segment.text());
        texts.find(|text| text.contains(['\n', '\r'])).map_or("\n", rx_base::fix::line_end)
    }

    /// The item that is the header of a module class, by [`Item::module`].
    pub fn module_header(&self, module: u32) -> Option<&Item> {
        self.items.iter().find(|item| item.kind == ItemKind::ModuleHeader && item.module == Some(module))
    }

    /// Recounts what stands before each item, from item `first` on.
    fn recount(&mut self, first: usize) {
        self.starts.truncate(first + 1);
        self.lines.truncate(first + 1);
        if self.starts.is_empty() {
            self.starts.push(0);
            self.lines.push(0);
        }
        let (mut bytes, mut lines) =
            (self.starts.last().copied().unwrap_or(0), self.lines.last().copied().unwrap_or(0));
        for item in self.items.iter().skip(self.starts.len() - 1) {
            bytes += item.byte_len();
            lines += item.line_count() as usize;
            self.starts.push(bytes);
            self.lines.push(lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Document, FileKind, Item, ItemKind};

    /// The items as lines: kind, name, module, number of segments.
    fn outline(text: &str, kind: FileKind) -> Vec<String> {
        let document = Document::new(text, kind);
        assert_eq!(document.text(), text);
        let show = |item: &Item| {
            let name = item.name.map_or("-", |name| name.as_str());
            let module = item.module.map_or("-".to_owned(), |module| module.to_string());
            let kind = match item.kind {
                ItemKind::Function(kind) => format!("{kind:?}"),
                kind => format!("{kind:?}"),
            };
            format!("{kind} {name} {module} {}", item.segments.len())
        };
        document.items().iter().map(show).collect()
    }

    fn complaints(text: &str) -> Vec<(String, String)> {
        let document = Document::new(text, FileKind::Rx);
        let complaint = |item: &Item| {
            let of = |(segment, error): (usize, rx_base::Diagnostic<rx_base::Span>)| {
                (error.message, item.segments[segment].text()[error.primary.range()].to_owned())
            };
            item.indentation_diagnostics().map(of).collect::<Vec<_>>()
        };
        document.items().iter().flat_map(complaint).collect()
    }

    const SCRIPT: &str = "# from tvm.script import relax as R

metadata = tvm.ir.load_json(\"\"\"{
}\"\"\")
n = TypeVar(\"n\")
@I.ir_module
class Module:
    I.module_attrs({})
    f = R.ExternFunc(\"f\")
    @T.prim_func
    def p(x):
        if x:
            pass
    @R.function(private=True)
    def main(
        x,
    ):
        @R.function
        def inner(y):
            return y
        return x
";

    #[test]
    fn items_of_a_script() {
        let expected = [
            "Prelude - - 1",
            "Metadata - - 1",
            "Prelude - - 1",
            "ModuleHeader Module 0 1",
            "ModuleStatement - 0 1",
            "Prim p 0 2",
            "Relax main 0 2",
        ];
        assert_eq!(outline(SCRIPT, FileKind::Rx), expected);
        assert_eq!(outline(SCRIPT, FileKind::Python), expected);
        assert_eq!(outline("@R.function\ndef f(x):\n    return x\n", FileKind::Rx), ["Relax f - 2"]);
        assert_eq!(outline("", FileKind::Rx), [""; 0]);
        assert_eq!(outline("\n# nothing\n", FileKind::Rx), ["Prelude - - 1"]);
    }

    #[test]
    fn items_of_a_python_file() {
        let text = "from tvm.script import relax as rx
x = '''
@R.function
def no():
'''
def test():
    @pytest.mark
    @tvm.script.ir_module
    class M:
        @rx.function
        def f(x):
            return x
    check(M)
    @other.function
    def g(): pass
@T.prim_func
def p(): pass
";
        let expected =
            ["Prelude - - 1", "Foreign - - 1", "ModuleHeader M 0 1", "Relax f 0 2", "Foreign - - 1", "Prim p - 1"];
        assert_eq!(outline(text, FileKind::Python), expected);
    }

    #[test]
    fn a_line_indented_too_little_stays_in_its_function() {
        let text = "class M:\n    @R.function\n    def f(x):\n        y = x\nlv\n        return y\n";
        assert_eq!(outline(text, FileKind::Rx), ["ModuleHeader M 0 1", "Relax f 0 2"]);
        let stray = "the line is indented less than the function it stands in";
        assert_eq!(complaints(text), [(stray.to_owned(), "lv".to_owned())]);
    }

    #[test]
    fn mistakes_of_indentation_are_reported_once() {
        let nowhere = |line: &str| ("the line is indented to no enclosing block".to_owned(), line.to_owned());
        let column = |line: &str| {
            ("the line stands in another column than the class's first member".to_owned(), line.to_owned())
        };
        let text = "class M:\n    a = 1\n        b = 2\n        c = 3\n    d = 4\n";
        assert_eq!(complaints(text), [column("b = 2")]);
        let empty = |line: &str| ("the block has no statement".to_owned(), line.to_owned());
        let text = "def f(x):\n    if x:\n        a = 1\n      b = 2\n      c = 3\n    return x\n";
        assert_eq!(complaints(text), [nowhere("b = 2")]);
        let text = "def f(x):\n    a = 1\n        b = 2\n        c = 3\n    return x\n";
        assert_eq!(complaints(text), [nowhere("b = 2")]);
        let text = "def f(x):\n    with R.dataflow():\n    return x\ndef g(x):\n";
        assert_eq!(complaints(text), [empty("with R.dataflow():"), empty("def g(x):")]);
    }

    #[test]
    fn nothing_stands_below_a_header_that_holds_its_block() {
        let nowhere = |line: &str| ("the line is indented to no enclosing block".to_owned(), line.to_owned());
        let text =
            "def f(x): a = {1: 2}\n    b = 1\n    if b:\n        c = 2\ndef g(x): return x\ndef h(x):\n    return x\n";
        assert_eq!(complaints(text), [nowhere("b = 1")]);
        assert_eq!(complaints("class M: a = 1\n    b = 2\n    c = 3\nclass N: pass\n"), [nowhere("b = 2")]);
        assert_eq!(complaints("def f(x) -> R.Tensor((2, 3))\n    return x\n"), []);
    }

    #[test]
    fn segments_are_cut_between_statements_of_the_body() {
        let bindings = "        with R.dataflow():\n".to_owned() + &"            lv = R.add(x, x)\n".repeat(100);
        let then = "        if x:\n".to_owned() + &"            a = x\n".repeat(50);
        let branches = then + "        else:\n            a = x\n";
        let text = format!("class M:\n    @R.function\n    def f(x):\n{bindings}{branches}        return x\n");
        let document = Document::new(&text, FileKind::Rx);
        let lines: Vec<u32> = document.items()[1].segments.iter().map(|segment| segment.line_count()).collect();
        assert_eq!(lines, [2, 32, 32, 32, 58, 1]);
    }
}
