//! The inferred types of a checked function, written where the text says none.
//!
//! As for its body ([`crate::body`]), segments are elaborated a second time; here every name of earlier segments is
//! answered, since a type may speak of symbols that nothing in its segment asked for.

use crate::before::Before;
use crate::elaborate::annotate;
use crate::function::FunctionCheck;
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use rx_context::FileContext;
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
/// and of what it returns. Only segments of which `wanted` holds are looked at, and the return type is found in the one that
/// returns. Written into the text, the function checks as before, with the same types.
pub fn annotations(
    segments: &[Arc<Segment>],
    check: &FunctionCheck,
    file: &FileContext,
    style: Style,
    wanted: impl Fn(usize) -> bool,
) -> Vec<Annotation> {
    let mut found = Vec::new();
    let mut returned = None;
    let return_place = segments.first().filter(|_| wanted(0)).and_then(|header| return_place(header));
    // The first segment is the header, which states its types.
    for (at, (segment, result)) in segments.iter().zip(&*check.segments).enumerate().skip(1) {
        let returns = return_place.is_some() && result.returned.is_some();
        if !wanted(at) && !returns {
            continue;
        }
        let globals: NameMap<&Option<Arc<Signature>>> =
            result.globals.iter().map(|(name, signature)| (*name, signature)).collect();
        let signatures = |name: Name| globals.get(&name).and_then(|signature| (*signature).clone());
        let before = Before::new(check, at, 0, &signatures);
        let annotated = annotate(segment, &before.start(), file, &before, style);
        returned = annotated.returned.or(returned);
        if wanted(at) {
            let segment = u32::try_from(at).unwrap_or(u32::MAX);
            found.extend(annotated.edits.into_iter().map(|(span, text)| Annotation { segment, span, text }));
        }
    }
    if let (Some(text), Some(span)) = (returned, return_place) {
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
