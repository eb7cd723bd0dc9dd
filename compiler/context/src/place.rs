//! Places of diagnostics relative to an item of a file: in its text, in another item's header, or in a macro that it
//! calls.

use rx_base::{Diagnostic, Name, Span};

/// A part of an item's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItemPart {
    /// The name.
    Name,
    /// A parameter, by index.
    Param(u32),
    /// The annotation of a parameter, by index; the parameter itself if it has none.
    ParamType(u32),
    /// The return annotation; the name if there is none.
    Return,
    /// The value of a variable's first binding in the body; the item's name if it binds no such variable.
    Binding(Name),
}

/// A place relative to a function's segments, or a part of another item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ItemPlace {
    /// Bytes of one segment of this item.
    Segment(u32, Span),
    /// A part of another item's header.
    Item(Name, ItemPart),
    /// A place in a macro that this item calls.
    Macro(Box<MacroPlace>),
}

/// A place in a macro, for one call of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MacroPlace {
    /// The name of the macro.
    pub name: Name,
    /// The segment of the macro's item.
    pub segment: u32,
    /// Bytes of that segment.
    pub span: Span,
    /// The call that is expanded.
    pub used: ItemPlace,
}

/// An empty span, for facts that are not in the text.
pub const NOWHERE: Span = Span { start: 0, end: 0 };

/// Merges diagnostics in macros: each mistake is reported once, with labels at the calls that show it.
pub fn with_uses(found: Vec<Diagnostic<ItemPlace>>) -> Vec<Diagnostic<ItemPlace>> {
    let mut kept: Vec<Diagnostic<ItemPlace>> = Vec::with_capacity(found.len());
    for diagnostic in found {
        let ItemPlace::Macro(place) = &diagnostic.primary else {
            kept.push(diagnostic);
            continue;
        };
        let is_same = |other: &Diagnostic<ItemPlace>| {
            let ItemPlace::Macro(known) = &other.primary else { return false };
            let at = |place: &MacroPlace| (place.name, place.segment, place.span);
            (at(known), other.code) == (at(place), diagnostic.code)
        };
        if !kept.iter().any(is_same) {
            let used = place.used.clone();
            kept.push(with_chain(diagnostic, used));
        }
    }
    kept
}

/// Adds labels at the call that expands the macro, and at the calls around that one.
fn with_chain(diagnostic: Diagnostic<ItemPlace>, used: ItemPlace) -> Diagnostic<ItemPlace> {
    /// The most calls shown; more would add nothing.
    const MOST: usize = 4;
    let mut diagnostic = diagnostic;
    let mut next = Some(used);
    for _ in 0..MOST {
        let Some(used) = next.take() else { break };
        if let ItemPlace::Macro(outer) = &used {
            next = Some(outer.used.clone());
        }
        diagnostic = diagnostic.with_label(used, "expanded here");
    }
    diagnostic
}
