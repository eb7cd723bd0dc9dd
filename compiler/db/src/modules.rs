//! The modules of a file: their identities and labels.

use crate::queries::constants;
use crate::workspace::{FileId, Workspace};
use rx_analysis::python::spelled_out;
use rx_base::Name;
use rx_base::notebook::without_marks;
use rx_syntax::document::{Document, Encoding, ItemKind};

/// The identity of a module of a file, or of the functions outside its modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModuleId {
    /// The file.
    pub file: FileId,
    /// The module's number ([`rx_syntax::document::Item::module`]); `None` for the functions outside modules.
    pub module: Option<u32>,
}

/// A module of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleRow {
    /// The module's number, as in [`ModuleId::module`].
    pub module: Option<u32>,
    /// The name of its class; `None` for the functions outside modules.
    pub class: Option<Name>,
    /// A label that is unique in the file: the class name, `Net#2` for the second of several classes `Net`, or
    /// [`OUTSIDE`] for the functions outside modules.
    pub label: String,
    /// The line of the class, or of the first function outside modules; counted from 1.
    pub line: u32,
}

/// The label of the functions outside modules.
pub const OUTSIDE: &str = "-";

impl Workspace {
    /// Returns the modules of a file, in order; the functions outside modules come first, if there are any.
    pub fn modules(&self, file: FileId) -> Vec<ModuleRow> {
        modules(self.document(file))
    }

    /// Returns the text of a module alone ([`Document::alone`]), with the constants of the surrounding Python replaced
    /// by literals, and without the marks of a notebook's text.
    pub fn alone(&self, module: ModuleId) -> String {
        let Some((db, document, inputs)) = self.parts(module.file) else { return String::new() };
        let spelled = |at: usize| {
            let item = *inputs.items.get(at)?;
            let constants = constants(db, item);
            (!constants.is_empty()).then(|| spelled_out(&item.segments(db), &constants))
        };
        without_marks(&document.alone(module.module, &spelled))
    }

    /// Returns the first module of a file, otherwise the functions outside modules. Text printed by rx has only this
    /// module.
    pub fn first_module(&self, file: FileId) -> ModuleId {
        ModuleId { file, module: self.document(file).modules().next().map(|(module, _)| module) }
    }
}

/// Like [`Workspace::modules`], for a document.
pub fn modules(document: &Document) -> Vec<ModuleRow> {
    let is_outside = |item: &rx_syntax::document::Item| {
        matches!(item.kind, ItemKind::Function(_)) && item.module.is_none() && item.name.is_some()
    };
    let outside = document.items().iter().position(is_outside);
    let outside = outside.map(|item| ModuleRow {
        module: None,
        class: None,
        label: OUTSIDE.to_owned(),
        line: line_of(document, item),
    });
    let mut rows: Vec<ModuleRow> = outside.into_iter().collect();
    let headers = || document.items().iter().enumerate().filter(|(_, item)| item.kind == ItemKind::ModuleHeader);
    for (at, header) in headers() {
        let class = header.name;
        let known = rows.iter().filter(|row| row.module.is_some() && row.class == class).count();
        let several = headers().filter(|(_, other)| other.name == class).nth(1).is_some();
        let name = class.map_or_else(String::new, |class| class.to_string());
        let label = if several { format!("{name}#{}", known + 1) } else { name };
        rows.push(ModuleRow { module: header.module, class, label, line: line_of(document, at) });
    }
    rows
}

/// Returns the line of an item's `class` or `def`, counted from 1.
fn line_of(document: &Document, item: usize) -> u32 {
    let head = document.items().get(item).and_then(|item| item.segments.first()).map_or("", |head| head.text());
    let mut start = document.item_start(item);
    for line in head.split_inclusive('\n') {
        if ["class ", "def "].iter().any(|word| line.trim_start().starts_with(word)) {
            break;
        }
        start += line.len();
    }
    document.line_column(start, Encoding::Utf8).0 + 1
}
