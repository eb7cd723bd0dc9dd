//! A checked Relax function as typed bindings, for lowering.
//!
//! Checking keeps types, not expressions: they would take more memory than the text. So a body is elaborated a second
//! time, segment by segment, with the answers that the check recorded.

use crate::elaborate::{SegmentResult, record};
use crate::entry::{Entry, Outer};
use crate::file_context::{FUNCTION_CONTEXT, FileContext};
use crate::function::FunctionCheck;
use rx_base::Name;
use rx_base::name::NameMap;
use rx_ir::{Binding, BindingKind, Body, Function, FunctionSignature, Signature, StructInfo};
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
    let mut bounds = Arc::default();
    for ((segment, result), before) in segments.iter().zip(&*check.segments).skip(1).zip(&*check.segments) {
        let mut recorded = record(segment, &before.end, file, &Answers::of(result));
        for binding in &mut recorded.bindings {
            place(binding, name, first_statement);
        }
        body.bindings.append(&mut recorded.bindings);
        body.result = recorded.returned.or(body.result);
        first_statement = first_statement.saturating_add(result.statements);
        if let Some(context) = context(result) {
            bounds = context;
        }
    }
    Function {
        name,
        params: signature.params.to_vec(),
        ret: check.returned.clone().unwrap_or(StructInfo::Object),
        num_input: signature.num_input,
        bounds,
        body,
    }
}

/// What a segment's `R.func_attr` says of symbolic dims.
fn context(result: &SegmentResult) -> Option<Arc<rx_base::symbolic::Bounds>> {
    let is_context = |name: &Name| name.as_str() == FUNCTION_CONTEXT;
    result.exports.iter().rev().find_map(|export| match &export.entry {
        Entry::Function(context) if is_context(&export.name) => Some(context.bounds.clone()),
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

    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        self.globals.get(&name).and_then(|signature| (*signature).clone())
    }
}
