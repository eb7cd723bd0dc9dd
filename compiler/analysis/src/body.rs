//! The typed bindings of a checked Relax function, for lowering and for passes.
//!
//! A check keeps types but not expressions, which would take more memory than the text. So this module elaborates the
//! body a second time, segment by segment, with the answers that the check recorded.

use crate::elaborate::{BlockState, Recorded, SegmentResult, record};
use crate::entry::{Entry, FUNCTION_CONTEXT, FunctionContext, Outer};
use crate::function::FunctionCheck;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_context::FileContext;
use rx_ir::{Binding, BindingKind, Body, Function, FunctionSignature, Signature, StructInfo, Summary};
use rx_syntax::{Segment, Segments};
use std::sync::Arc;

/// Returns the function `name` with its typed body.
///
/// `segments` and `check` must belong to the same text. The text should have no errors: each erroneous expression
/// becomes an error node in the body.
pub fn function_body(
    name: Name,
    segments: &Segments,
    signature: &FunctionSignature,
    check: &FunctionCheck,
    file: &FileContext,
) -> Function {
    let mut body = Body::default();
    let mut first_statement = check.segments.first().map_or(0, |header| header.statements);
    let mut stated = None;
    let mut attributes = Vec::new();
    let with_results = segments.iter().zip(&check.segments).skip(1);
    for ((segment, result), before) in with_results.zip(&check.segments) {
        let recorded = result.recorded.get_or_record(|| recorded_segment(segment, &before.end, file, result));
        body.bindings.extend(recorded.bindings.iter().cloned().map(|mut binding| {
            place(&mut binding, name, first_statement);
            binding
        }));
        body.outputs.extend_from_slice(&recorded.outputs);
        attributes.extend_from_slice(&recorded.attributes);
        body.result = recorded.returned.clone().or(body.result.take());
        first_statement = first_statement.saturating_add(result.statements);
        stated = context(result).or(stated);
    }
    Function {
        name,
        params: signature.params.to_vec(),
        ret: check.returned.clone().unwrap_or(StructInfo::Object),
        pure: signature.pure,
        private: signature.private,
        attributes,
        num_input: stated.and_then(|stated| stated.num_input).or(signature.num_input),
        bounds: stated.map(|stated| stated.bounds.clone()).unwrap_or_default(),
        body,
    }
}

/// Calls `visit` with the index, the text and the typed bindings of each segment after the header, in order.
pub fn each_segment(
    segments: &Segments,
    check: &FunctionCheck,
    file: &FileContext,
    mut visit: impl FnMut(usize, &Segment, Recorded),
) {
    let with_results = segments.iter().zip(&check.segments).enumerate().skip(1);
    for ((at, (segment, result)), before) in with_results.zip(&check.segments) {
        visit(at, segment, recorded_segment(segment, &before.end, file, result));
    }
}

/// Returns the typed bindings of a checked segment, by elaborating it again with the answers that its check recorded.
pub fn recorded_segment(segment: &Segment, start: &BlockState, file: &FileContext, result: &SegmentResult) -> Recorded {
    record(segment, start, file, &Answers::of(result))
}

/// Returns the function context that the segment's `R.func_attr` redefines, if it has one.
fn context(result: &SegmentResult) -> Option<&FunctionContext> {
    let is_context = |name: &Name| name.as_str() == FUNCTION_CONTEXT;
    result.exports.iter().rev().find_map(|export| match &export.entry {
        Entry::Function(context) if is_context(&export.name) => Some(&**context),
        _ => None,
    })
}

/// Adds `first_statement` to a binding's statement number, recursively, so that it counts from the start of the
/// function and not from the start of the segment; sets its item name too.
fn place(binding: &mut Binding, item: Name, first_statement: u32) {
    binding.origin.item = item;
    binding.origin.statement = binding.origin.statement.saturating_add(first_statement);
    match &mut binding.kind {
        BindingKind::If { arms, otherwise, .. } => {
            let bodies = arms.iter_mut().map(|(_, body)| body).chain([otherwise]);
            for inner in bodies.flat_map(|body| &mut body.bindings) {
                place(inner, item, first_statement);
            }
        }
        BindingKind::Function(function) => {
            for inner in &mut Arc::make_mut(function).body.bindings {
                place(inner, item, first_statement);
            }
        }
        BindingKind::Value { .. } | BindingKind::Unpack { .. } => {}
    }
}

/// An [`Outer`] that replays the answers that a segment's check recorded.
struct Answers<'a> {
    names: NameMap<&'a Option<Entry>>,
    globals: NameMap<&'a Option<Arc<Signature>>>,
}

impl Answers<'_> {
    fn of(result: &SegmentResult) -> Answers<'_> {
        Answers {
            names: result.imports.iter().map(|(name, entry)| (*name, entry)).collect(),
            globals: result.globals.iter().map(|(name, signature)| (*name, signature)).collect(),
        }
    }
}

impl Outer for Answers<'_> {
    fn lookup(&self, name: Name) -> Option<Entry> {
        self.names.get(&name).and_then(|entry| (*entry).clone())
    }

    /// Returns nothing: known values affect only diagnostics, and an elaboration for a body reports none.
    fn summary(&self, _name: Name) -> Option<Arc<Summary>> {
        None
    }

    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        self.globals.get(&name).and_then(|signature| (*signature).clone())
    }
}
