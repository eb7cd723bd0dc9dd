//! Writes the inferred types of a checked function as annotations in its text.
//!
//! ```text
//! before:  def main(x: R.Tensor((n, 4), "float32")):
//!              y = R.exp(x)
//! after:   def main(x: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
//!              y: R.Tensor((n, 4), "float32") = R.exp(x)
//! ```
//!
//! As for a typed body ([`crate::body`]), segments are elaborated a second time. Here all names of earlier segments
//! can be looked up, not only those that the check recorded: an annotation may mention symbols that the segment
//! itself does not use.

use crate::elaborate::annotate;
use crate::function::FunctionCheck;
use crate::position_scope::PositionScope;
use rx_base::name::NameMap;
use rx_base::{Name, Span};
use rx_context::FileContext;
use rx_ir::Signature;
use rx_syntax::{Segment, Segments};
use std::sync::Arc;

pub use crate::elaborate::{Annotate, Style};

/// An edit that inserts or replaces one annotation in a function's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The index of the segment that the edit changes.
    pub segment: u32,
    /// The bytes of the segment to replace; empty for an insertion.
    pub span: Span,
    /// The replacement text.
    pub text: String,
}

/// Returns the annotations to write into a function: for bindings, for variables bound by branches, inside nested
/// functions, and for the return type.
///
/// `check` is the check of `segments`. Only segments for which `wanted` returns true are edited; the return type is
/// taken from the segment that returns, whether wanted or not. With the edits applied, the function checks as before,
/// with the same types.
pub fn annotations(
    segments: &Segments,
    check: &FunctionCheck,
    file: &FileContext,
    style: Style,
    wanted: impl Fn(usize) -> bool,
) -> Vec<Annotation> {
    let mut found = Vec::new();
    let mut returned = None;
    let return_place = segments.first().filter(|_| wanted(0)).and_then(|header| return_place(header));
    // Segment 0 is the header, whose parameters are annotated already.
    for (at, (segment, result)) in segments.iter().zip(&check.segments).enumerate().skip(1) {
        let returns = return_place.is_some() && result.returned.is_some();
        if !wanted(at) && !returns {
            continue;
        }
        let globals: NameMap<&Option<Arc<Signature>>> =
            result.globals.iter().map(|(name, signature)| (*name, signature)).collect();
        let signatures = |name: Name| globals.get(&name).and_then(|signature| (*signature).clone());
        let before = PositionScope::new(check, at, 0, &signatures);
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

/// Returns the position in a function's header where a return annotation is inserted, if it has none.
fn return_place(header: &Segment) -> Option<Span> {
    let statements = header.tree().statements.iter();
    let sound = statements.filter(|statement| statement.tree.error.is_none());
    sound.filter_map(|statement| crate::elaborate::return_place(header.cursor(statement), statement)).next()
}
