//! Headers and signatures of a module's items.

use crate::elaborate::{SegmentResult, SharedTypes, elaborate_signature};
use crate::entry::{Entry, Outer};
use rx_base::Name;
use rx_context::FileContext;
use rx_ir::{Signature, Summary};
use rx_prim_func::signature::prim_func_signature;
use rx_syntax::ast::{Expr, ExprKind, StatementKind};
use rx_syntax::{Segment, Segments};
use std::sync::Arc;

/// The header of a Relax function, elaborated once for its callers and for its own body.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The signature that callers see.
    pub signature: Arc<Signature>,
    /// The result of the header segment: definitions, rows and diagnostics.
    pub result: Arc<SegmentResult>,
    /// The pool of its types, shared with the body.
    pub(crate) types: Arc<SharedTypes>,
}

/// Elaborates the header segment of a Relax function.
pub fn relax_header(segment: &Segment, file: &FileContext) -> Header {
    let (signature, result, types) = elaborate_signature(segment, file, &Nothing);
    Header { signature: Arc::new(signature), result: Arc::new(result), types: Arc::new(types) }
}

/// Returns `num_input`, if one of the function's first statements sets it: `R.func_attr({"num_input": 1})`.
pub fn num_input(segments: &Segments) -> Option<i64> {
    let body = segments.get(1)?;
    let statements = &body.tree().statements;
    let level = statements.first()?.indent;
    statements.iter().filter(|statement| statement.indent == level).find_map(|statement| {
        let StatementKind::Expr(Expr { kind: ExprKind::Call { callee, arguments }, .. }) = &statement.tree.kind else {
            return None;
        };
        let cursor = body.cursor(statement);
        if !cursor.path(callee.tokens).ends_with(".func_attr") {
            return None;
        }
        let ExprKind::Dict(entries) = &arguments.first()?.value.kind else { return None };
        entries.iter().find_map(|(key, value)| {
            let is_it = cursor.string_value(key.as_ref()?)? == "num_input";
            is_it.then(|| cursor.integer_value(value)).flatten().and_then(|value| i64::try_from(value).ok())
        })
    })
}

/// Returns the signature of a prim_func.
pub fn prim_signature(segments: &Segments, file: &FileContext) -> Signature {
    prim_func_signature(segments.iter().map(|segment| &**segment), file).map_or(Signature::Opaque, Signature::Prim)
}

/// An [`Outer`] without answers: a header depends only on the file.
struct Nothing;

impl Outer for Nothing {
    fn lookup(&self, _name: Name) -> Option<Entry> {
        None
    }

    fn signature(&self, _name: Name) -> Option<Arc<Signature>> {
        None
    }

    fn summary(&self, _name: Name) -> Option<Arc<Summary>> {
        None
    }
}

/// Returns the external functions that a module-level segment declares: `f = R.ExternFunc("f", R.Callable(…))`.
pub fn externs(segment: &Segment, file: &FileContext) -> Vec<(Name, rx_ir::StructInfo)> {
    crate::elaborate::extern_declarations(segment, file, &Nothing)
}
