//! Elaboration of one segment: resolves names, infers struct info and collects diagnostics.
//!
//! ```text
//! segment:  y = R.add(x, x)
//! asks:     x → R.Tensor((n, 4), "float32")        (defined in an earlier segment)
//! result:   y: R.Tensor((n, 4), "float32"); no diagnostics
//! ```
//!
//! The result depends only on the segment's text, the block state at its start, the file context, and the recorded
//! answers of [`Outer`]. Spans are byte offsets in the segment.
//!
//! Modules import in one direction, from top to bottom:
//!
//! - statements, with the state `Elaborator`: `statement`, `branch`, `binding`, `header`, `function_attributes`;
//! - expressions, with the state `Elaborator`: `expr`, `namespace`, `operator_names`, `arguments`, `attribute`, `dim`,
//!   `types`, `sugar`, `inspected`, `match_cast`, `condition`;
//! - judgements of typed values, with the state `Checker`: `call`, `call_tir`, `function_call`, `trial`, `summaries`,
//!   `index_sites`, `values`, `refinement`, `advice`, `names` and others;
//! - data: `asked`, `bound_call`, `ir`, `result`, `scope`, `shared_types`.
//!
//! The expression modules call each other recursively, since expressions of all kinds nest in each other. `branch`
//! and `statement` do too, because of nested functions.

mod advice;
mod annotate;
mod annotation_text;
mod argument_list;
mod arguments;
mod asked;
mod attribute;
mod binding;
mod bound_call;
mod branch;
mod branch_types;
mod call;
mod call_tir;
mod checker;
mod condition;
mod dim;
mod elaborator;
mod explanation;
mod expr;
mod forms;
mod function_attributes;
mod function_call;
mod header;
mod index_sites;
mod inspected;
mod ir;
mod lifted;
mod match_cast;
mod names;
mod namespace;
mod operator_names;
mod recorder;
mod refinement;
mod result;
mod rule_results;
mod scope;
mod shared_types;
mod statement;
mod sugar;
mod summaries;
mod trial;
mod type_arguments;
mod type_objects;
mod types;
mod underspecified;
mod values;

pub(crate) use advice::{PURITY_ANCHOR, purity_text};
pub use annotate::return_place;
pub(crate) use bound_call::{before_end, current_keyword};
pub use call::signature_text;
pub(crate) use explanation::MOST_REPAIRS;
pub use forms::{Form, FormParam, form};
pub(crate) use header::{elaborate_signature, extern_declarations};
pub(crate) use namespace::is_special_form;
pub use namespace::special_forms;
pub use result::{
    Annotate, Annotated, BlockState, Export, KeptRecord, Recorded, Role, Row, RowKind, SegmentResult, SegmentResults,
    Style, Unresolved, Wanted,
};
pub(crate) use shared_types::SharedTypes;
pub use types::TYPES;

use crate::entry::Outer;
use elaborator::Elaborator;
use rx_context::FileContext;
use rx_syntax::Segment;

/// Elaborates a segment again and returns its typed bindings; `outer` must answer as it did when the segment was
/// checked.
pub fn record(segment: &Segment, start: &BlockState, file: &FileContext, outer: &dyn Outer) -> Recorded {
    let mut elaborator = Elaborator::new(segment, start.clone(), file, outer);
    elaborator.check.recorder = Some(Recorded::default());
    elaborator.run();
    elaborator.check.recorder.unwrap_or_default()
}

/// Elaborates a segment again and returns its annotations in the given `style`.
pub fn annotate(
    segment: &Segment,
    start: &BlockState,
    file: &FileContext,
    outer: &dyn Outer,
    style: Style,
) -> Annotated {
    let mut elaborator = Elaborator::new(segment, start.clone(), file, outer);
    elaborator.check.annotated = Some(Annotated { style, edits: Vec::new(), returned: None });
    elaborator.run();
    elaborator.check.annotated.unwrap_or(Annotated { style, edits: Vec::new(), returned: None })
}

/// Elaborates a segment of a Relax function. `types` is the pool of tensor types from the segments before; the types
/// of this segment are added to it.
pub(crate) fn elaborate(
    segment: &Segment,
    start: &BlockState,
    file: &FileContext,
    outer: &dyn Outer,
    types: &mut SharedTypes,
) -> SegmentResult {
    let mut elaborator = Elaborator::new(segment, start.clone(), file, outer);
    elaborator.check.types = std::mem::take(types);
    elaborator.run();
    *types = std::mem::take(&mut elaborator.check.types);
    elaborator.check.finish()
}
