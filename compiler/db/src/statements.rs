//! Positions of statements, looked up by [`Origin`].

use crate::modules::ModuleId;
use crate::position::absolute;
use crate::workspace::Workspace;
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use rx_context::ItemPlace;
use rx_ir::Origin;
use rx_syntax::Document;
use rx_syntax::document::{FunctionKind, ItemKind};
use std::cell::RefCell;

impl Workspace {
    /// Returns a lookup for the statements of a module's functions.
    pub fn statements(&self, module: ModuleId) -> Statements<'_> {
        let document = self.parts(module.file).map(|(_, document, _)| document);
        Statements { document, module: module.module, functions: RefCell::default() }
    }

    /// Returns the position of one statement, in bytes of the file. Use [`Workspace::statements`] for many lookups.
    pub fn origin_span(&self, module: ModuleId, origin: Origin) -> Option<Span> {
        self.statements(module).span(origin)
    }
}

/// A lookup of statement positions in a module. The statements of each function are counted once.
pub struct Statements<'w> {
    document: Option<&'w Document>,
    module: Option<u32>,
    functions: RefCell<NameMap<Option<Counted>>>,
}

/// A function's item, and the number of statements before each of its segments. For example, with `starts` = `[0, 3]`
/// statement 4 of the function is statement 1 of segment 1.
struct Counted {
    item: usize,
    starts: Vec<u32>,
}

impl Statements<'_> {
    /// Returns the position of a statement, in bytes of the file.
    pub fn span(&self, origin: Origin) -> Option<Span> {
        let (item, segment, statement) = self.find(origin)?;
        let part = self.document?.items().get(item)?.segments.get(segment as usize)?;
        let span = part.tree().statements.get(statement as usize)?.span;
        absolute(self.document?, item, &ItemPlace::Segment(segment, span))
    }

    /// Returns the item, the segment, and the index in the segment of a statement.
    pub(crate) fn find(&self, origin: Origin) -> Option<(usize, u32, u32)> {
        let mut functions = self.functions.borrow_mut();
        let function = functions.entry(origin.item).or_insert_with(|| self.function(origin.item));
        let Counted { item, starts } = function.as_ref()?;
        let segment = starts.partition_point(|start| *start <= origin.statement).checked_sub(1)?;
        Some((*item, u32::try_from(segment).ok()?, origin.statement - starts.get(segment)?))
    }

    fn function(&self, name: Name) -> Option<Counted> {
        let document = self.document?;
        let of_kind = |kind| item(document, self.module, name, kind);
        let item = of_kind(FunctionKind::Relax).or_else(|| of_kind(FunctionKind::Prim))?;
        let counts = document.items().get(item)?.segments.iter().map(|segment| segment.tree().statements.len());
        let starts = counts.scan(0, |before, count| Some(std::mem::replace(before, *before + count)));
        Some(Counted { item, starts: starts.map(u32::try_from).collect::<Result<_, _>>().ok()? })
    }
}

/// Returns the index of a module's last function of this name and kind.
pub(crate) fn item(document: &Document, module: Option<u32>, name: Name, kind: FunctionKind) -> Option<usize> {
    let is_it = |item: &rx_syntax::document::Item| {
        item.name == Some(name) && item.module == module && item.kind == ItemKind::Function(kind)
    };
    document.items().iter().rposition(is_it)
}
