//! A checked Relax function as typed bindings, for lowering.
//!
//! Checking keeps types, not expressions: they would take more memory than the text. So a body is elaborated a second
//! time, segment by segment, with the answers that the check recorded.

use crate::elaborate::{BlockState, Recorded, SegmentResult, record};
use crate::entry::{Entry, FUNCTION_CONTEXT, FunctionContext, Outer};
use crate::function::FunctionCheck;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_context::FileContext;
use rx_ir::{Binding, BindingKind, Body, Function, FunctionSignature, Signature, StructInfo, Summary};
use rx_syntax::Segment;
use std::sync::Arc;

/// The function called `name` with its body. `segments` and `check` are of the same text, which has no errors: what is
/// wrong in it is an error part here.
pub fn function_body(
    name: Name,
    segments: &[Arc<Segment>],
    signature: &FunctionSignature,
    check: &FunctionCheck,
    file: &FileContext,
) -> Function {
    let mut body = Body::default();
    let mut first_statement = check.segments.first().map_or(0, |header| header.statements);
    let mut stated = None;
    let mut attributes = Vec::new();
    let with_results = segments.iter().zip(&*check.segments).skip(1);
    for ((segment, result), before) in with_results.zip(&*check.segments) {
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

/// Gives `visit` what each segment after the header does, with the segment's index, in order.
pub fn each_segment(
    segments: &[Arc<Segment>],
    check: &FunctionCheck,
    file: &FileContext,
    mut visit: impl FnMut(usize, &Segment, Recorded),
) {
    let with_results = segments.iter().zip(&*check.segments).enumerate().skip(1);
    for ((at, (segment, result)), before) in with_results.zip(&*check.segments) {
        visit(at, segment, recorded_segment(segment, &before.end, file, result));
    }
}

/// What a checked segment does: elaborated again with the answers that its check recorded.
pub fn recorded_segment(segment: &Segment, start: &BlockState, file: &FileContext, result: &SegmentResult) -> Recorded {
    record(segment, start, file, &Answers::of(result))
}

/// What a segment's `R.func_attr` says.
fn context(result: &SegmentResult) -> Option<&FunctionContext> {
    let is_context = |name: &Name| name.as_str() == FUNCTION_CONTEXT;
    result.exports.iter().rev().find_map(|export| match &export.entry {
        Entry::Function(context) if is_context(&export.name) => Some(&**context),
        _ => None,
    })
}

/// Makes a binding's origin, which counts from its segment's start, count from the function's.
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

/// What a segment was told when it was checked.
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

    /// Values are for diagnostics, of which a body has none.
    fn summary(&self, _name: Name) -> Option<Arc<Summary>> {
        None
    }

    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        self.globals.get(&name).and_then(|signature| (*signature).clone())
    }
}
