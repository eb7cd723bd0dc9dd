//! A file's text as a list of items, each a list of segments, with incremental updates.
//!
//! The text is split into [`Item`]s (functions, module headers, and the statements between them), and each item into
//! [`Segment`](crate::Segment)s of about 8 statements. A forward scan (`outline`) decides both. `layout` stores the
//! scan's state at each segment's start. An edit therefore rescans only from the segment before it to the first old
//! segment whose stored state equals the scan's (`edit`). Where segments are cut affects no result. For example:
//!
//! ```text
//! n = TypeVar("n")            # Prelude
//! @I.ir_module                # ModuleHeader, which has the module index 0 like its members
//! class Module:
//!     I.module_attrs({})      # ModuleStatement
//!     @R.function             # Function(Relax): the first segment is the decorator and the header
//!     def main(x):
//!         y = R.add(x, x)     # the second segment is the body
//!         return y
//! ```

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
use crate::segment::Segments;
use layout::Layout;
use lead::Imports;
pub use lead::is_script_import;
use rx_base::{Diagnostic, Name, Span};
use std::path::Path;
use std::sync::Arc;

/// The kind of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Only TVMScript.
    Rx,
    /// Python that may contain decorated TVMScript.
    Python,
}

impl FileKind {
    /// Returns the kind of the file at `path`, by its extension: `.py` and the code cells of `.ipynb` are Python,
    /// everything else is TVMScript.
    pub fn of_path(path: impl AsRef<Path>) -> FileKind {
        if path.as_ref().extension().is_some_and(|extension| extension == "py" || extension == "ipynb") {
            FileKind::Python
        } else {
            FileKind::Rx
        }
    }
}

/// The kind of function that a `def` defines, determined by its decorators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `@R.function`.
    Relax,
    /// `@T.prim_func`.
    Prim,
    /// `@T.macro`, `@T.inline`: expanded at its calls in prim_funcs.
    Macro,
    /// Any other function.
    Other,
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemKind {
    /// Statements outside classes that are no function: imports, `TypeVar` lines, comments. In a Python file only
    /// imports and `TypeVar` lines; the other statements are [`ItemKind::Foreign`].
    Prelude,
    /// `metadata = tvm.ir.load_json("""…""")`.
    Metadata,
    /// `@I.ir_module` with its `class X:` line.
    ModuleHeader,
    /// Statements of a module class that are no function.
    ModuleStatement,
    /// A function. The decorators and the header are the first segment; the body follows. Decorators without a `def`
    /// are a function item too.
    Function(FunctionKind),
    /// Python that is not TVMScript and is not analyzed.
    Foreign,
}

/// A part of a file: a function, a module header, or a run of other statements.
#[derive(Clone, Debug)]
pub struct Item {
    /// The kind of the item.
    pub kind: ItemKind,
    /// The column of its first statement, from 0.
    pub indent: u32,
    /// The name of the function or class; `None` for other items.
    pub name: Option<Name>,
    /// The segments, whose texts in order are the item's text.
    pub segments: Segments,
    /// The index of its module class: the number of module headers before that class's header. A header has the index
    /// of its own class; `None` outside module classes.
    pub module: Option<u32>,
    layout: Arc<Layout>,
}

impl Item {
    /// The length of its text in bytes.
    pub fn byte_len(&self) -> usize {
        self.layout.byte_len() as usize
    }

    /// Number of line breaks.
    pub fn line_count(&self) -> u32 {
        self.layout.line_count()
    }

    /// The byte offset of a segment from the item's start. For the index after the last segment, the item's length.
    pub fn segment_start(&self, segment: usize) -> usize {
        self.layout.start(segment) as usize
    }

    /// The directives for rx, in order, each with the index of its segment. Only segments that contain the marker are
    /// lexed.
    pub fn directives(&self) -> impl Iterator<Item = (usize, &Directive)> + '_ {
        self.layout.directed().iter().flat_map(|segment| {
            let at = *segment as usize;
            let directives = self.segments.get(at).map(|segment| segment.directives()).unwrap_or_default();
            directives.iter().map(move |directive| (at, directive))
        })
    }

    /// Indentation errors: lines in a column of no enclosing block, and blocks without a statement. Each comes with the
    /// index of its segment; the diagnostic's span is relative to that segment.
    pub fn indentation_diagnostics(&self) -> impl Iterator<Item = (usize, Diagnostic<Span>)> + '_ {
        self.layout.indentation_diagnostics()
    }
}

/// A file's text, split into items.
#[derive(Clone, Debug)]
pub struct Document {
    kind: FileKind,
    /// The names that the imports give to TVMScript's namespaces; empty except in Python files.
    imports: Arc<Imports>,
    items: Vec<Item>,
    /// The byte offset of each item, then the total length.
    starts: Vec<usize>,
    /// The number of line breaks before each item, then the total.
    lines: Vec<usize>,
}

impl Document {
    /// Creates the document of `text`.
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

    /// The kind of the file.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// The items, in order and without gaps.
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

    /// The whole text.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.len());
        for segment in self.items.iter().flat_map(|item| item.segments.iter()) {
            text.push_str(segment.text());
        }
        text
    }

    /// The line break that ends the first line; `\n` if the text has no line break.
    pub fn line_end(&self) -> &'static str {
        let mut texts = self.items.iter().flat_map(|item| item.segments.iter()).map(|segment| segment.text());
        texts.find(|text| text.contains(['\n', '\r'])).map_or("\n", rx_base::fix::line_end)
    }

    /// Returns the header item of the module class with this index (see [`Item::module`]).
    pub fn module_header(&self, module: u32) -> Option<&Item> {
        self.items.iter().find(|item| item.kind == ItemKind::ModuleHeader && item.module == Some(module))
    }

    /// Recomputes the byte and line offsets from item `first` on.
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
