//! A function as a chain sees it: its bindings, recorded on demand, and the definitions of names.

use super::{FunctionText, TracePlace};
use crate::body::recorded_segment;
use crate::elaborate::Recorded;
use rustc_hash::FxHashMap;
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use rx_context::ItemPlace;
use rx_ir::{Binding, BindingKind, Body, Expr, Function, StructInfo};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// A function, and the segments of it that have been recorded.
pub(super) struct View {
    pub(super) name: Name,
    pub(super) text: FunctionText,
    /// The segments that export each name, ascending; built once a chain has looked up many names.
    exporters: OnceCell<NameMap<Vec<u32>>>,
    /// The number of lookups of exporters.
    asked: Cell<usize>,
    recorded: RefCell<FxHashMap<u32, Rc<Recorded>>>,
}

/// The number of lookups by linear search before the index is built.
const FEW: usize = 24;

/// A block inside a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Inner {
    /// The body of an arm of an `if`, by index.
    Arm(usize),
    /// The `else` of an `if`.
    Otherwise,
    /// The body of a nested function.
    Function,
}

/// The position at which an expression is evaluated: in the block that `blocks` leads to, before its binding `limit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The activation of the function, as an index into the tracer's frames.
    pub(super) frame: usize,
    pub(super) segment: u32,
    pub(super) blocks: Vec<(usize, Inner)>,
    pub(super) limit: usize,
}

impl Site {
    /// Returns the site at the end of block `inner` of binding `at`, after all of its `bindings`.
    pub(super) fn inside(&self, at: usize, inner: Inner, bindings: usize) -> Site {
        let mut blocks = self.blocks.clone();
        blocks.push((at, inner));
        Site { frame: self.frame, segment: self.segment, blocks, limit: bindings }
    }
}

/// The definition of a name.
pub(super) enum Definition {
    /// A binding, by its index in the block of the site.
    Binding(Site, usize),
    /// A parameter of the function or closure of a frame.
    Param { frame: usize, index: usize },
}

impl View {
    pub(super) fn new(name: Name, text: FunctionText) -> View {
        View { name, text, exporters: OnceCell::new(), asked: Cell::new(0), recorded: RefCell::default() }
    }

    fn all_exporters(&self) -> &NameMap<Vec<u32>> {
        self.exporters.get_or_init(|| {
            let mut exporters: NameMap<Vec<u32>> = NameMap::default();
            for (at, result) in self.text.check.segments.iter().enumerate() {
                let at = u32::try_from(at).unwrap_or(u32::MAX);
                for export in &result.exports {
                    let segments = exporters.entry(export.name).or_default();
                    if segments.last() != Some(&at) {
                        segments.push(at);
                    }
                }
            }
            exporters
        })
    }

    /// Returns the typed bindings of segment `at`.
    pub(super) fn recorded(&self, at: u32) -> Rc<Recorded> {
        if let Some(recorded) = self.recorded.borrow().get(&at) {
            return recorded.clone();
        }
        let index = at as usize;
        let text = &self.text;
        let recorded = match (text.segments.get(index), text.check.segments.get(index)) {
            (Some(segment), Some(result)) if index > 0 => {
                let before = text.check.segments.get(index - 1).map(|before| before.end.clone()).unwrap_or_default();
                recorded_segment(segment, &before, &text.file, result)
            }
            _ => Recorded::default(),
        };
        let recorded = Rc::new(recorded);
        self.recorded.borrow_mut().insert(at, recorded.clone());
        recorded
    }

    /// Returns the segments before `at` that define `name`, the last one first.
    pub(super) fn exporters(&self, name: Name, at: u32) -> impl Iterator<Item = u32> + '_ {
        let asked = self.asked.replace(self.asked.get().saturating_add(1));
        let known = (asked >= FEW).then(|| self.all_exporters().get(&name).map(Vec::as_slice).unwrap_or_default());
        let from_index = known.into_iter().flat_map(move |segments| {
            let before = segments.partition_point(|segment| *segment < at);
            segments.iter().take(before).rev().copied()
        });
        // A short chain looks up few names, most of them defined nearby.
        let searched = if asked < FEW { at } else { 0 };
        let says = move |segment: &u32| {
            let result = self.text.check.segments.get(*segment as usize);
            result.is_some_and(|result| result.exports.iter().any(|export| export.name == name))
        };
        from_index.chain((0..searched).rev().filter(says))
    }

    pub(super) fn place(&self, segment: u32, span: Span) -> TracePlace {
        TracePlace { function: self.name, place: ItemPlace::Segment(segment, span) }
    }

    /// Returns the span where a binding names `variable`; the span of the whole statement if it does not.
    pub(super) fn name_span(&self, segment: u32, statement: u32, variable: Option<Name>) -> Span {
        let index = segment as usize;
        let rows = self.text.check.segments.get(index).map(|result| result.rows.as_slice()).unwrap_or_default();
        let row = rows.iter().find(|row| row.statement == statement && variable.is_none_or(|name| name == row.name));
        let statement = || Some(self.text.segments.get(index)?.tree().statements.get(statement as usize)?.span);
        row.map(|row| row.span).or_else(statement).unwrap_or_default()
    }

    /// Returns the name and the type of a parameter.
    pub(super) fn param(&self, index: usize) -> Option<(Name, &StructInfo)> {
        self.text.signature.params.get(index).map(|(name, ty)| (*name, ty))
    }

    /// Returns the returned value, and the site where it is evaluated.
    pub(super) fn returned(&self, frame: usize) -> Option<(Expr, Site)> {
        let results = &self.text.check.segments;
        let at = results.iter().rposition(|result| result.returned.is_some())?;
        let segment = u32::try_from(at).ok()?;
        let recorded = self.recorded(segment);
        let site = Site { frame, segment, blocks: Vec::new(), limit: recorded.bindings.len() };
        Some((recorded.returned.clone()?, site))
    }
}

/// Returns the bindings of the block that `blocks` leads to.
pub(super) fn bindings<'r>(recorded: &'r Recorded, blocks: &[(usize, Inner)]) -> Option<&'r [Binding]> {
    let mut bindings = recorded.bindings.as_slice();
    for (at, inner) in blocks {
        bindings = &inner_body(bindings.get(*at)?, *inner)?.bindings;
    }
    Some(bindings)
}

/// Returns a block of a binding.
pub(super) fn inner_body(binding: &Binding, inner: Inner) -> Option<&Body> {
    match (&binding.kind, inner) {
        (BindingKind::If { arms, .. }, Inner::Arm(arm)) => arms.get(arm).map(|(_, body)| body),
        (BindingKind::If { otherwise, .. }, Inner::Otherwise) => Some(otherwise),
        (BindingKind::Function(function), Inner::Function) => Some(&function.body),
        _ => None,
    }
}

/// Returns the nested function that a binding defines.
pub(super) fn nested(binding: &Binding) -> Option<&Arc<Function>> {
    match &binding.kind {
        BindingKind::Function(function) => Some(function),
        _ => None,
    }
}

/// Whether a binding defines `name`.
pub(super) fn defines(binding: &Binding, name: Name) -> bool {
    match &binding.kind {
        BindingKind::Value { variable, .. } => *variable == name,
        BindingKind::Unpack { variables, .. } => variables.contains(&Some(name)),
        BindingKind::If { variable, .. } => *variable == Some(name),
        BindingKind::Function(function) => function.name == name,
    }
}
