//! The inferred types of a checked function, written where the text says none.
//!
//! As for its body ([`crate::body`]), segments are elaborated a second time; here every name of earlier segments is
//! answered, since a type may speak of symbols that nothing in its segment asked for.

use crate::elaborate::{BlockState, annotate};
use crate::entry::{Entry, Outer};
use crate::file_context::FileContext;
use crate::function::FunctionCheck;
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use rx_ir::Signature;
use rx_syntax::Segment;
use std::sync::Arc;

pub use crate::elaborate::{Annotate, Style};

/// An edit of a function's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The index of the segment.
    pub segment: u32,
    /// What is replaced there; empty where something is put in.
    pub span: Span,
    /// What is written.
    pub text: String,
}

/// The annotations of a function of `segments`, whose check is `check`: of bindings, branches and nested functions included,
/// and of what it returns. Written into the text, the function checks as before, with the same types.
pub fn annotations(
    segments: &[Arc<Segment>],
    check: &FunctionCheck,
    file: &FileContext,
    style: Style,
) -> Vec<Annotation> {
    let mut known = Known::default();
    let mut found = Vec::new();
    let mut returned = None;
    let mut before: Option<&BlockState> = None;
    for (at, (segment, result)) in segments.iter().zip(&*check.segments).enumerate() {
        // The first segment is the header, which states its types.
        if let Some(start) = before {
            known.globals = result.globals.iter().map(|(name, signature)| (*name, signature.clone())).collect();
            let annotated = annotate(segment, start, file, &known, style);
            returned = annotated.returned.or(returned);
            let segment = u32::try_from(at).unwrap_or(u32::MAX);
            found.extend(annotated.edits.into_iter().map(|(span, text)| Annotation { segment, span, text }));
        }
        known.names.extend(result.exports.iter().map(|export| (export.name, export.entry.clone())));
        before = Some(&result.end);
    }
    if let (Some(text), Some(span)) = (returned, segments.first().and_then(|header| return_place(header))) {
        found.insert(0, Annotation { segment: 0, span, text });
    }
    found
}

/// Where a function's header takes a return annotation.
fn return_place(header: &Segment) -> Option<Span> {
    let statements = header.tree().statements.iter();
    let sound = statements.filter(|statement| statement.tree.error.is_none());
    sound.filter_map(|statement| crate::elaborate::return_place(header.cursor(statement), statement)).next()
}

/// What stands before a segment, and the module's items.
#[derive(Default)]
struct Known {
    names: NameMap<Entry>,
    globals: NameMap<Option<Arc<Signature>>>,
}

impl Outer for Known {
    fn lookup(&self, name: Name) -> Option<Entry> {
        self.names.get(&name).cloned()
    }

    /// Values are in no annotation.
    fn summary(&self, _name: Name) -> Option<Arc<rx_ir::Summary>> {
        None
    }

    fn signature(&self, name: Name) -> Option<Arc<Signature>> {
        self.globals.get(&name).cloned().flatten()
    }
}
