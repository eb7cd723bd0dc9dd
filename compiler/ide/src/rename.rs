//! Rename: replaces all occurrences of a symbol's name, if every name of the new text still resolves as before.

use crate::names::{
    Access, Extent, File, Meaning, Mention, Occurrence, Reading, Role, Symbol, SymbolKind, names_of_value, read,
    resolve, symbol_at,
};
use rx_base::name::name;
use rx_base::{Name, Span};
use rx_db::FileView;
use rx_syntax::TokenKind;
use rx_syntax::document::{FunctionKind, Item, ItemKind};
use rx_syntax::token::tokens;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Returns the span and the name of the symbol at `offset`, if it can be renamed.
///
/// # Errors
/// The reason why nothing can be renamed there, as a sentence.
pub fn prepare_rename(view: &FileView<'_>, offset: usize) -> Result<(Span, Name), String> {
    let symbol = renamable(view, offset)?;
    Ok((symbol.origin, symbol.name))
}

/// Returns the edits that rename the symbol at `offset`, in order: spans in bytes of the file, and their new texts.
///
/// # Errors
/// The reason why the symbol cannot have this name, as a sentence.
pub fn rename(view: &FileView<'_>, offset: usize, new: &str) -> Result<Vec<(Span, String)>, String> {
    let symbol = renamable(view, offset)?;
    if !is_identifier(new) {
        return Err(format!(
            "`{new}` is not a valid name: use letters, digits and `_`, do not begin with a digit, and do not use a keyword"
        ));
    }
    if new == symbol.name.as_str() {
        return Ok(Vec::new());
    }
    let new = name(new);
    let taken = |item: usize| view.context(item).is_some_and(|context| context.namespace(&new).is_some());
    if symbol.occurrences.iter().any(|found| taken(found.at.0)) {
        return Err(format!("`{new}` is a namespace of TVMScript"));
    }
    if let Some(span) = used_by_python(view, &symbol) {
        let line = line_of(view, span);
        return Err(format!("`{}` is used by Python code in line {line}, which rx does not analyze", symbol.name));
    }
    if let Some((called, span)) = used_by_macro(view, &symbol, new) {
        let line = line_of(view, span);
        return Err(format!(
            "the name in line {line} belongs to the macro `{called}`, which resolves it at its call site"
        ));
    }
    if let Some(span) = conflict(view, &symbol, new) {
        let line = line_of(view, span);
        return Err(format!("`{new}` is already used: the rename would change the meaning of line {line}"));
    }
    Ok(symbol.occurrences.iter().map(|found| (found.span, written(found, symbol.name, new))).collect())
}

fn renamable(view: &FileView<'_>, offset: usize) -> Result<Symbol, String> {
    let symbol = symbol_at(view, offset).ok_or("there is no name here that can be changed")?;
    let Symbol { name, kind, declarations, occurrences, .. } = &symbol;
    let namespace = |found: &Occurrence| view.context(found.at.0).is_some_and(|it| it.namespace(name).is_some());
    if *kind == SymbolKind::Global && occurrences.iter().any(namespace) {
        return Err(format!("`{name}` is a namespace of TVMScript, whose name is defined by TVM"));
    }
    if declarations.is_empty() {
        return Err(format!("`{name}` is not declared in the part of this file that rx analyzes"));
    }
    if *kind == SymbolKind::Global {
        return Err(format!("`{name}` is a Python name: rx cannot find all its uses"));
    }
    Ok(symbol)
}

/// Returns the new text of an occurrence.
fn written(found: &Occurrence, old: Name, new: Name) -> String {
    let Some(value) = &found.literal else { return new.to_string() };
    let mut value = value.to_string();
    for place in names_of_value(&value.clone(), old, false).into_iter().rev() {
        value.replace_range(place.range(), &new);
    }
    // The string is written anew, so quotes, backslashes and control characters are escaped as in Python.
    let escaped = value.chars().map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        character if character.is_control() => format!("\\x{:02x}", u32::from(character)),
        character => character.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Whether a text is an identifier and not a keyword.
fn is_identifier(text: &str) -> bool {
    let mut tokens = tokens(text);
    tokens.next().is_some_and(|only| only.kind == TokenKind::Name && only.span.range().len() == text.len())
}

/// Returns the line of a span, from 1.
fn line_of(view: &FileView<'_>, span: Span) -> u32 {
    let (line, _) = view.document().line_column(span.start as usize, rx_db::Encoding::Utf8);
    line.saturating_add(1)
}

/// Returns a place where Python code outside modules and functions may refer to the symbol.
fn used_by_python(view: &FileView<'_>, symbol: &Symbol) -> Option<Span> {
    if let Extent::Item(_) = symbol.extent {
        return None;
    }
    let file = File { view, wanted: symbol.name };
    view.document().items().iter().enumerate().filter(|(_, item)| item.kind == ItemKind::Foreign).find_map(
        |(at, item)| {
            let reading = read(item, &[symbol.name], 0..item.segments.len());
            file.span(at, reading.mentions.iter().find(|mention| !matches!(mention.role, Role::Keyword(_)))?)
        },
    )
}

/// Finds a macro with `hygienic=False` that is called, directly or through other macros, from the symbol's function and
/// refers to the old or the new name. Such a macro resolves its free names at the call. Returns the macro's name and
/// the place in it.
fn used_by_macro(view: &FileView<'_>, symbol: &Symbol, new: Name) -> Option<(Name, Span)> {
    let Extent::Item(caller) = symbol.extent else { return None };
    let items = view.document().items();
    let is_lax = |item: &Item| {
        item.kind == ItemKind::Function(FunctionKind::Macro) && !rx_context::macros::of_item(&item.segments).hygienic
    };
    let lax = items.iter().enumerate().filter(|(_, item)| is_lax(item));
    let mut open: Vec<(usize, Name)> = lax.filter_map(|(at, item)| Some((at, item.name?))).collect();
    let speaks = |item: usize, wanted: Name| {
        let file = File { view, wanted };
        let own = items.get(item)?;
        let reading = read(own, &[wanted], 0..own.segments.len());
        let meanings = resolve(&reading, file.around(item)?, |_, _| true);
        let outer = (0..reading.mentions.len()).find(|at| meanings.rooted(*at) == Meaning::Outer)?;
        file.span(item, reading.mentions.get(outer)?)
    };
    let mut callers = vec![caller];
    while let Some(caller) = callers.pop() {
        let (called, left): (Vec<_>, Vec<_>) = open.into_iter().partition(|(_, name)| speaks(caller, *name).is_some());
        open = left;
        for (item, name) in called {
            if let Some(span) = speaks(item, symbol.name).or_else(|| speaks(item, new)) {
                return Some((name, span));
            }
            callers.push(item);
        }
    }
    None
}

/// Returns the first place whose meaning would change if the symbol were renamed to `new`.
fn conflict(view: &FileView<'_>, symbol: &Symbol, new: Name) -> Option<Span> {
    let mut renamed: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for found in &symbol.occurrences {
        renamed.entry(found.at.0).or_default().insert(found.at.1);
    }
    let items = view.document().items();
    let file = File { view, wanted: new };
    let global = !matches!(symbol.extent, Extent::Item(_));
    if global {
        // The module or the file already declares the name, or an item sees a declaration of it.
        let mut extents = vec![Extent::File, symbol.extent];
        if symbol.extent == Extent::Module(None) {
            // A declaration in a caller's module hides a macro that is outside modules.
            let seen = renamed.keys().map(|item| file.outer_kind(*item).1);
            extents.extend(seen.filter(|extent| matches!(extent, Extent::Module(Some(_)))));
        }
        let declared = extents.into_iter().flat_map(|extent| file.outer(extent));
        if let Some(found) = declared.into_iter().find(|found| found.access == Access::Declaration) {
            return Some(found.span);
        }
    }
    renamed.iter().find_map(|(at, own)| {
        let item = items.get(*at)?;
        // The item is read for both names at once. The mentions of the old name have the same order as in a reading for
        // that name alone, so their indices can be converted.
        let reading = read(item, &[symbol.name, new], 0..item.segments.len());
        let old: Vec<usize> = (0..reading.mentions.len()).filter(|at| of(&reading, *at, 0)).collect();
        let own: BTreeSet<usize> = own.iter().filter_map(|at| old.get(*at).copied()).collect();
        let changed = changed_meaning(view, *at, &reading, &own, [symbol.name, new], global)?;
        file.span(*at, reading.mentions.get(changed)?)
    })
}

fn of(reading: &Reading, at: usize, which: usize) -> bool {
    reading.mentions.get(at).is_some_and(|mention| mention.which == which)
}

/// Returns a mention whose meaning changes if the mentions `own` are written with the second name.
fn changed_meaning(
    view: &FileView<'_>,
    item: usize,
    reading: &Reading,
    own: &BTreeSet<usize>,
    names: [Name; 2],
    global: bool,
) -> Option<usize> {
    let around = |which: usize| File { view, wanted: names[which] }.around(item);
    let meanings = |which: usize, is_it: &dyn Fn(usize, &Mention) -> bool| {
        let mut around = around(which)?;
        // A symbolic dim that the file declares is still one under its new name.
        around.symbol |= global && which == 1 && symbol_of(view, item, names[0]);
        Some(resolve(reading, around, is_it))
    };
    let before = [meanings(0, &|_, mention| mention.which == 0)?, meanings(1, &|_, mention| mention.which == 1)?];
    let after = [
        meanings(0, &|at, mention| mention.which == 0 && !own.contains(&at))?,
        meanings(1, &|at, mention| mention.which == 1 || own.contains(&at))?,
    ];
    // Renaming must map the meanings before to the meanings after one to one.
    let (mut forth, mut back) = (HashMap::new(), HashMap::new());
    for (at, mention) in reading.mentions.iter().enumerate() {
        let which = mention.which.min(1);
        let new = if own.contains(&at) { 1 } else { which };
        let (was, is) = (before[which].rooted(at), after[new].rooted(at));
        let kept = std::mem::discriminant(&was) == std::mem::discriminant(&is);
        // A mention of the new name that referred to something outside the item would now refer to the renamed symbol.
        let outer = was == Meaning::Outer && new == 1 && which == 1 && global;
        let same_forth = *forth.entry((which, was)).or_insert((new, is)) == (new, is);
        let same_back = *back.entry((new, is)).or_insert((which, was)) == (which, was);
        if !kept || outer || !same_forth || !same_back {
            return Some(at);
        }
    }
    None
}

fn symbol_of(view: &FileView<'_>, item: usize, name: Name) -> bool {
    view.context(item).is_some_and(|context| context.symbols.contains(&name))
}
