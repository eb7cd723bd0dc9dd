//! Who is who: the thing a name at a place stands for, and every place that speaks of it.
//!
//! An item is read for one name (`reading`), and what it says of it is told apart by the rules of its scopes (`scope`). What
//! no scope of an item binds is its module's or its file's, and looked for in the other items.

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

use crate::word::word_at;
use rx_base::name::name;
use rx_base::{Name, Span};
use rx_db::FileView;
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::document::{FunctionKind, Item, ItemKind, Location};

/// What a name stands for.
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
    /// What a loop or block of a prim_func counts with.
    Loop,
    /// A function, of the module or nested.
    Function,
    /// A module class.
    Module,
    /// What an import or a statement of the file's top binds.
    Global,
}

/// What is done with the thing at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is declared there.
    Declaration,
    /// It is changed there.
    Write,
    /// It is used there.
    Read,
}

/// A place that speaks of a thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The name there, in bytes of the file; in a string whose escapes hide it, the string.
    pub span: Span,
    /// What is done there.
    pub access: Access,
    /// What such a string says.
    pub(crate) literal: Option<Box<str>>,
    /// The item it stands in, and which of the item's mentions it is.
    pub(crate) at: (usize, usize),
}

/// A thing with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name.
    pub name: Name,
    /// What it is.
    pub kind: SymbolKind,
    /// The place that was asked for.
    pub origin: Span,
    /// The places that speak of it, in order.
    pub occurrences: Vec<Occurrence>,
    /// Those that declare what the place asked for means: of a variable bound in two branches, the branch it stands in, if any.
    pub declarations: Vec<Span>,
    pub(crate) extent: Extent,
}

/// Where a thing is known by its name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// In an item.
    Item(usize),
    /// In a module, as a member; without one, among the functions outside modules.
    Module(Option<u32>),
    /// In the file.
    File,
}

/// The thing that the name at `offset` stands for; `None` where there is no name, and of keywords, attributes and operators.
pub fn symbol_at(view: &FileView<'_>, offset: usize) -> Option<Symbol> {
    symbol(view, offset, false)
}

/// As [`symbol_at`], knowing what stands before the place alone where that is enough to say where the thing is declared.
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

/// What stands before the end of a place's segment: that segment, and those of the item that may bind the name.
fn read_bindings(view: &FileView<'_>, item: &Item, place: Location, wanted: Name) -> Reading {
    let check = view.check(place.item);
    let binds = |segment: usize| {
        let result = check.as_ref().and_then(|check| check.segments.get(segment));
        // What a broken segment binds its check may not have found.
        result.is_none_or(|result| {
            !result.diagnostics.is_empty() || result.exports.iter().any(|export| export.name == wanted)
        })
    };
    let keep = |segment: usize| segment == 0 || segment == place.segment || binds(segment);
    read_where(item, &[wanted], 0..place.segment + 1, keep)
}

/// What the variable of an occurrence is made by.
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

/// A file, looked at for one name.
pub(crate) struct File<'a, 'v> {
    pub(crate) view: &'a FileView<'v>,
    pub(crate) wanted: Name,
}

impl File<'_, '_> {
    fn items(&self) -> &[Item] {
        self.view.document().items()
    }

    /// What an item and the file say to the name.
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

    /// A mention of an item in bytes of the file.
    pub(crate) fn span(&self, item: usize, mention: &Mention) -> Option<Span> {
        let start = self.view.document().segment_start(item, mention.segment);
        Some(mention.span.shift(u32::try_from(start).ok()?))
    }

    /// The mentions of an item with a meaning that is wanted.
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

    /// What the name means to an item that does not bind it.
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
        // Macros outside modules are seen by the functions in them.
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

    /// The places in the whole file that speak of what a module, or the file, calls so.
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

    /// What an item calls the modules of the file.
    pub(crate) fn modules(&self, item: usize) -> Modules {
        let Some(own) = self.items().get(item) else { return Modules::default() };
        // Of several classes of a name the item's own counts, else the last.
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

/// What an item calls the modules of its file: by their classes' names, and by variables bound to those.
#[derive(Default)]
pub(crate) struct Modules {
    known: Vec<(Name, u32)>,
}

impl Modules {
    /// The module of a name.
    pub(crate) fn of(&self, base: Name) -> Option<u32> {
        self.known.iter().find(|(name, _)| *name == base).map(|(_, module)| *module)
    }
}

/// The names an item binds to a class: `cls` of `cls = Module`.
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

/// Whether a statement of an item binds a name.
fn binds(item: &Item, wanted: Name) -> bool {
    let reading = read(item, &[wanted], 0..item.segments.len());
    reading.mentions.iter().any(|mention| matches!(mention.role, Role::Bind(_)))
}
