//! Name resolution: finds the symbol that a name refers to, and all its occurrences.
//!
//! An item is read for one name (`reading`), and the mentions of the name are resolved by the scoping rules (`scope`).
//! A name that no scope of the item binds belongs to the module or the file, and is searched in the other items.

mod keyword;
mod mention;
mod quoted;
mod reading;
mod scope;

pub(crate) use mention::{Bound, Callee, Mention, Role, declared_symbols};
pub(crate) use quoted::{names_of_value, symbols_in};
use reading::read_where;
pub(crate) use reading::{Reading, read};
pub(crate) use scope::{Around, Meaning, Meanings, resolve};

use crate::token_at::word_at;
use rx_base::name::name;
use rx_base::{Name, Span};
use rx_db::FileView;
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::document::{FunctionKind, Item, ItemKind, Location};

/// The kind of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A parameter of a function.
    Parameter,
    /// A variable.
    Variable,
    /// A symbolic dim.
    Symbol,
    /// A buffer of a prim_func.
    Buffer,
    /// A loop variable or block axis of a prim_func.
    Loop,
    /// A function, of the module or nested.
    Function,
    /// A module class.
    Module,
    /// A name bound by an import or by a statement at the top level of the file.
    Global,
}

/// The kind of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The symbol is declared.
    Declaration,
    /// The symbol is assigned to, without being declared.
    Write,
    /// The symbol is used.
    Read,
}

/// One place in the text that refers to a symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The name, in bytes of the file. If the name is in a string with escapes, the whole string.
    pub span: Span,
    /// The kind of the occurrence.
    pub access: Access,
    /// The value of such a string.
    pub(crate) literal: Option<Box<str>>,
    /// The index of the item, and the index among the item's mentions.
    pub(crate) at: (usize, usize),
}

/// A symbol and its occurrences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name.
    pub name: Name,
    /// The kind.
    pub kind: SymbolKind,
    /// The occurrence at the requested position.
    pub origin: Span,
    /// All occurrences, in order.
    pub occurrences: Vec<Occurrence>,
    /// The declarations that the requested occurrence refers to. For a variable that both branches of an `if` bind, an
    /// occurrence inside a branch has that branch's declaration only.
    pub declarations: Vec<Span>,
    pub(crate) extent: Extent,
}

/// The part of the file in which the name alone identifies the symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One item.
    Item(usize),
    /// One module, for its members; `None` for the functions outside modules.
    Module(Option<u32>),
    /// The whole file.
    File,
}

/// Returns the symbol that the name at `offset` refers to. `None` if there is no name, and for keywords, attributes and
/// operators.
pub fn symbol_at(view: &FileView<'_>, offset: usize) -> Option<Symbol> {
    symbol(view, offset, false)
}

/// As [`symbol_at`], but reads only the text before the position if that is enough to find the declaration.
pub(crate) fn declared_at(view: &FileView<'_>, offset: usize) -> Option<Symbol> {
    symbol(view, offset, true)
}

fn symbol(view: &FileView<'_>, offset: usize, before: bool) -> Option<Symbol> {
    let document = view.document();
    let location = document.locate(offset)?;
    let item = document.items().get(location.item).filter(|item| item.kind != ItemKind::Foreign)?;
    let segment = item.segments.get(location.segment)?;
    let word = segment.text().get(word_at(segment.text(), location.offset)?.range())?;
    let wanted = name(word);
    let reading = match before {
        true => read_bindings(view, item, location, wanted),
        false => read(item, &[wanted], 0..item.segments.len()),
    };
    let at = u32::try_from(location.offset).ok()?;
    let here = |mention: &Mention| mention.segment == location.segment && mention.span.touches(at);
    let asked = reading.mentions.iter().position(here)?;
    let file = File { view, wanted };
    let meanings = resolve(&reading, file.around(location.item)?, |_, _| true);
    let origin = file.span(location.item, reading.mentions.get(asked)?)?;
    let symbol = |kind, extent, occurrences: Vec<Occurrence>| {
        let declares = |found: &&Occurrence| found.access == Access::Declaration;
        let declarations = occurrences.iter().filter(declares).map(|found| found.span).collect();
        Symbol { name: wanted, kind, origin, occurrences, declarations, extent }
    };
    match meanings.rooted(asked) {
        Meaning::Local(root) => {
            let mut occurrences =
                file.occurrences(location.item, &reading, &meanings, |meaning| meaning == Meaning::Local(root));
            let own = |found: &Occurrence| meanings.of.get(found.at.1) == meanings.of.get(asked);
            let mut nearest: Vec<Span> = Vec::new();
            for found in occurrences.iter().filter(|found| own(found) && found.access == Access::Declaration) {
                nearest.push(found.span);
            }
            let bound = occurrences.iter().find_map(|found| bound_as(&reading, &meanings, found))?;
            if matches!(bound, Bound::Parameter | Bound::Operand) && !before {
                occurrences.extend(file.keywords(location.item, &reading, &occurrences));
                occurrences.sort_by_key(|occurrence| occurrence.span);
            }
            let mut symbol = symbol(local_kind(bound), Extent::Item(location.item), occurrences);
            if !nearest.is_empty() {
                symbol.declarations = nearest;
            }
            Some(symbol)
        }
        Meaning::Own if item.kind == ItemKind::ModuleHeader => {
            Some(symbol(SymbolKind::Module, Extent::File, file.outer(Extent::File)))
        }
        Meaning::Own => {
            let extent = Extent::Module(item.module);
            Some(symbol(SymbolKind::Function, extent, file.outer(extent)))
        }
        Meaning::Member(base) => {
            let extent = Extent::Module(Some(file.modules(location.item).of(base)?));
            let occurrences = file.outer(extent);
            let declared = occurrences.iter().any(|found| found.access == Access::Declaration);
            declared.then(|| symbol(SymbolKind::Function, extent, occurrences))
        }
        Meaning::Keyword(_) => {
            let Role::Keyword(callee) = reading.mentions.get(asked)?.role else { return None };
            let parameter = file.parameter(location.item, location.segment, callee)?;
            let start = document.segment_start(parameter.item, parameter.segment) + parameter.span.start as usize;
            Some(Symbol { origin, ..self::symbol(view, start, before)? })
        }
        Meaning::Outer => {
            let (kind, extent) = file.outer_kind(location.item);
            Some(symbol(kind, extent, file.outer(extent)))
        }
        Meaning::Other => None,
    }
}

/// Reads an item up to and including a position's segment: the header, that segment, and the segments that may bind the
/// name.
fn read_bindings(view: &FileView<'_>, item: &Item, place: Location, wanted: Name) -> Reading {
    let check = view.check(place.item);
    let binds = |segment: usize| {
        let result = check.as_ref().and_then(|check| check.segments.get(segment));
        // The check of a segment with errors may have missed bindings.
        result.is_none_or(|result| {
            !result.diagnostics.is_empty() || result.exports.iter().any(|export| export.name == wanted)
        })
    };
    let keep = |segment: usize| segment == 0 || segment == place.segment || binds(segment);
    read_where(item, &[wanted], 0..place.segment + 1, keep)
}

/// Returns the kind of binding of the variable that an occurrence refers to.
fn bound_as(reading: &Reading, meanings: &Meanings, found: &Occurrence) -> Option<Bound> {
    let mention = reading.mentions.get(found.at.1)?;
    match (mention.role, meanings.of.get(found.at.1)?) {
        (Role::Bind(bound), _) => Some(bound),
        (_, Meaning::Local(variable)) => Some(meanings.variable(*variable)?.bound),
        _ => None,
    }
}

fn local_kind(bound: Bound) -> SymbolKind {
    match bound {
        Bound::Parameter | Bound::Operand => SymbolKind::Parameter,
        Bound::Symbol => SymbolKind::Symbol,
        Bound::Buffer => SymbolKind::Buffer,
        Bound::Loop | Bound::Axis => SymbolKind::Loop,
        Bound::Function => SymbolKind::Function,
        Bound::Variable | Bound::Cell | Bound::Class | Bound::Import => SymbolKind::Variable,
    }
}

/// A file, searched for one name.
pub(crate) struct File<'a, 'v> {
    pub(crate) view: &'a FileView<'v>,
    pub(crate) wanted: Name,
}

impl File<'_, '_> {
    fn items(&self) -> &[Item] {
        self.view.document().items()
    }

    /// Returns the facts about the name that come from the item's kind and from the file.
    pub(crate) fn around(&self, item: usize) -> Option<Around> {
        let kind = self.items().get(item)?.kind;
        let context = self.view.context(item);
        Some(Around {
            prim: matches!(kind, ItemKind::Function(FunctionKind::Prim | FunctionKind::Macro | FunctionKind::Other)),
            module_level: !matches!(kind, ItemKind::Function(_)),
            symbol: context.as_ref().is_some_and(|context| context.symbols.contains(&self.wanted)),
            captured: context.as_ref().is_some_and(|context| context.captured.contains(&self.wanted)),
        })
    }

    /// Converts the span of a mention to bytes of the file.
    pub(crate) fn span(&self, item: usize, mention: &Mention) -> Option<Span> {
        let start = self.view.document().segment_start(item, mention.segment);
        Some(mention.span.shift(u32::try_from(start).ok()?))
    }

    /// Returns the mentions of an item whose meaning `is_wanted` accepts.
    fn occurrences(
        &self,
        item: usize,
        reading: &Reading,
        meanings: &Meanings,
        mut is_wanted: impl FnMut(Meaning) -> bool,
    ) -> Vec<Occurrence> {
        let occurrence = |(at, mention): (usize, &Mention)| {
            if !is_wanted(meanings.rooted(at)) {
                return None;
            }
            let access = match mention.role {
                _ if meanings.defines.get(at) == Some(&true) => Access::Declaration,
                Role::Write | Role::Bind(_) => Access::Write,
                _ => Access::Read,
            };
            Some(Occurrence {
                span: self.span(item, mention)?,
                access,
                literal: mention.literal.clone(),
                at: (item, at),
            })
        };
        let mut found: Vec<Occurrence> = reading.mentions.iter().enumerate().filter_map(occurrence).collect();
        found.sort_by_key(|occurrence| occurrence.span);
        found
    }

    /// Returns the kind and the extent of the symbol that the name refers to in an item that does not bind it.
    pub(crate) fn outer_kind(&self, item: usize) -> (SymbolKind, Extent) {
        let module = self.items().get(item).and_then(|item| item.module);
        let member = |other: &Item| {
            other.module == module
                && match other.kind {
                    ItemKind::Function(_) => other.name == Some(self.wanted),
                    ItemKind::ModuleStatement => binds(other, self.wanted),
                    _ => false,
                }
        };
        if let Some(found) = self.items().iter().find(|other| member(other)) {
            let symbol = self.view.context(item).is_some_and(|context| context.symbols.contains(&self.wanted));
            let kind = if symbol && found.kind == ItemKind::ModuleStatement {
                SymbolKind::Symbol
            } else {
                SymbolKind::Function
            };
            return (kind, Extent::Module(module));
        }
        // Macros outside modules are visible to the functions outside modules, and to the functions of modules that do
        // not declare the name.
        let is_macro = |other: &Item| {
            other.module.is_none()
                && other.name == Some(self.wanted)
                && other.kind == ItemKind::Function(FunctionKind::Macro)
        };
        if self.items().iter().any(is_macro) {
            return (SymbolKind::Function, Extent::Module(None));
        }
        let context = self.view.context(item);
        let is =
            |names: &dyn Fn(&rx_context::FileContext) -> bool| context.as_ref().is_some_and(|context| names(context));
        let kind = if is(&|context| context.symbols.contains(&self.wanted)) {
            SymbolKind::Symbol
        } else if is(&|context| context.modules.contains(&self.wanted)) {
            SymbolKind::Module
        } else {
            SymbolKind::Global
        };
        (kind, Extent::File)
    }

    /// Returns the occurrences, in the whole file, of the symbol with this name and extent.
    pub(crate) fn outer(&self, extent: Extent) -> Vec<Occurrence> {
        let mut found = Vec::new();
        for (at, item) in self.items().iter().enumerate() {
            if item.kind == ItemKind::Foreign {
                continue;
            }
            let reading = read(item, &[self.wanted], 0..item.segments.len());
            let Some(around) = self.around(at).filter(|_| !reading.mentions.is_empty()) else { continue };
            let meanings = resolve(&reading, around, |_, _| true);
            let here = (reading.mentions.iter().enumerate())
                .any(|(mention, _)| meanings.rooted(mention) == Meaning::Outer)
                .then(|| self.outer_kind(at).1);
            let modules = self.modules(at);
            let found_here = self.occurrences(at, &reading, &meanings, |meaning| match meaning {
                Meaning::Outer => here == Some(extent),
                Meaning::Own if item.kind == ItemKind::ModuleHeader => extent == Extent::File,
                Meaning::Own => extent == Extent::Module(item.module),
                Meaning::Member(base) => modules.of(base).is_some_and(|module| extent == Extent::Module(Some(module))),
                _ => false,
            });
            found.extend(found_here);
        }
        found
    }

    /// Returns the names by which an item refers to the modules of the file.
    pub(crate) fn modules(&self, item: usize) -> Modules {
        let Some(own) = self.items().get(item) else { return Modules::default() };
        // If several classes have the same name, it refers to the item's own class, otherwise to the last one.
        let mut known: Vec<(Name, u32)> = Vec::new();
        for header in self.items().iter().filter(|header| header.kind == ItemKind::ModuleHeader) {
            let Some((class, module)) = header.name.zip(header.module) else { continue };
            match known.iter_mut().find(|(name, _)| *name == class) {
                Some((_, kept)) if Some(*kept) == own.module => {}
                Some((_, kept)) => *kept = module,
                None => known.push((class, module)),
            }
        }
        let aliases: Vec<_> =
            known.iter().flat_map(|(class, module)| aliases(own, *class).map(|alias| (alias, *module))).collect();
        known.extend(aliases);
        Modules { known }
    }
}

/// The names by which an item refers to the modules of its file: the names of their classes, and variables that are
/// bound to those.
#[derive(Default)]
pub(crate) struct Modules {
    known: Vec<(Name, u32)>,
}

impl Modules {
    /// Returns the module that a name refers to.
    pub(crate) fn of(&self, base: Name) -> Option<u32> {
        self.known.iter().find(|(name, _)| *name == base).map(|(_, module)| *module)
    }
}

/// Returns the names that an item binds to a class: `cls` of `cls = Module`.
fn aliases(item: &Item, class: Name) -> impl Iterator<Item = Name> {
    let finder = memchr::memmem::Finder::new(class.as_bytes());
    let segments = item.segments.iter().filter(move |segment| finder.find(segment.text().as_bytes()).is_some());
    let statements =
        segments.flat_map(|segment| segment.tree().statements.iter().map(move |statement| (segment, statement)));
    let bound = statements.flat_map(move |(segment, statement)| {
        let cursor = segment.cursor(statement);
        let own = |expr: &Expr| matches!(expr.kind, ExprKind::Name).then(|| cursor.name(expr.tokens.start));
        match &statement.tree.kind {
            StatementKind::Assign { targets, value } if own(value) == Some(class) => {
                targets.iter().filter_map(own).collect()
            }
            _ => Vec::new(),
        }
    });
    bound.collect::<Vec<_>>().into_iter()
}

/// Whether a statement of the item binds the name.
fn binds(item: &Item, wanted: Name) -> bool {
    let reading = read(item, &[wanted], 0..item.segments.len());
    reading.mentions.iter().any(|mention| matches!(mention.role, Role::Bind(_)))
}
