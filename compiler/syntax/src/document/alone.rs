//! Extraction of one module from a file, as the text of a separate file.

use super::{Document, FileKind, FunctionKind, Item, ItemKind};
use rx_base::Name;

impl Document {
    /// The file's modules in order: the index that [`Item::module`] holds, and the name of the class.
    pub fn modules(&self) -> impl Iterator<Item = (u32, Option<Name>)> + '_ {
        let headers = self.items.iter().filter(|item| item.kind == ItemKind::ModuleHeader);
        headers.filter_map(|header| Some((header.module?, header.name)))
    }

    /// Returns the text of a file that contains only one module: the imports, macros and other items outside all
    /// modules, then the module. With `None`, the functions outside all modules take the module's place. Other Python
    /// code is left out, and indented items are moved to column 0. `text_of(index)` replaces the text of an item where
    /// it returns `Some`.
    pub fn alone(&self, module: Option<u32>, text_of: &dyn Fn(usize) -> Option<String>) -> String {
        let text = |at: usize, item: &Item| text_of(at).unwrap_or_else(|| item.text());
        let is_elsewhere =
            |item: &Item| item.module != module && matches!(item.kind, ItemKind::Function(_) | ItemKind::ModuleHeader);
        if self.kind == FileKind::Rx && !self.items.iter().any(is_elsewhere) {
            return self.items.iter().enumerate().map(|(at, item)| text(at, item)).collect();
        }
        let margin = module.and_then(|module| self.module_header(module)).map_or(0, |header| header.indent);
        let is_outside = |item: &Item| match item.kind {
            ItemKind::Prelude | ItemKind::Metadata => item.module.is_none(),
            ItemKind::Function(FunctionKind::Macro) => item.module.is_none(),
            ItemKind::Function(_) => item.module.is_none() && module.is_none(),
            ItemKind::Foreign => item.module.is_none() && self.kind == FileKind::Rx,
            ItemKind::ModuleHeader | ItemKind::ModuleStatement => false,
        };
        let mut alone = String::new();
        for (at, item) in self.items.iter().enumerate().filter(|(_, item)| is_outside(item)) {
            push_dedented(&text(at, item), item.margin(), &mut alone);
        }
        let is_inside = |item: &Item| item.module.is_some() && item.module == module;
        for (at, item) in self.items.iter().enumerate().filter(|(_, item)| is_inside(item)) {
            push_dedented(&text(at, item), margin, &mut alone);
        }
        alone
    }
}

impl Item {
    /// The column of its leftmost statement, at least the item's indent. Blank lines and comments are ignored.
    fn margin(&self) -> u32 {
        let lines = self.segments.iter().flat_map(|segment| segment.text().lines());
        let statements = lines.filter(|line| !matches!(line.trim_start().chars().next(), None | Some('#')));
        let columns = statements.map(|line| line.len() - line.trim_start_matches(' ').len()).min();
        self.indent.max(columns.and_then(|columns| u32::try_from(columns).ok()).unwrap_or(0))
    }

    /// Its text.
    fn text(&self) -> String {
        self.segments.iter().map(|segment| segment.text()).collect()
    }
}

/// Appends the lines of `text`, each with up to `columns` leading spaces removed.
fn push_dedented(text: &str, columns: u32, to: &mut String) {
    if !to.is_empty() && !to.ends_with('\n') {
        to.push('\n');
    }
    for line in text.split_inclusive('\n') {
        let blank = line.len() - line.trim_start_matches(' ').len();
        to.push_str(line.get(blank.min(columns as usize)..).unwrap_or(line));
    }
}
