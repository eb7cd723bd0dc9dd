//! Elaboration of one segment: names resolved, struct info inferred, mistakes found.
//!
//! The result depends on the segment's text, the block state it starts in, the file context, and the recorded answers of
//! [`Outer`]; on nothing else. Spans are bytes of the segment.
//!
//! Modules import one way, from top to bottom:
//!
//! | layer | modules | state |
//! |---|---|---|
//! | statements | `statement`, `branch`, `binding`, `header`, `function_attributes` | `Elaborator` |
//! | expressions | `expr`, `namespace`, `arguments`, `attribute`, `dim`, `types`, `sugar`, `inspected`, `match_cast`, `condition` | `Elaborator` |
//! | judgements of typed values | `call`, `call_tir`, `function_call`, `trial`, `summaries`, `index_sites`, `values`, `learn`, `advice`, `names` and others | `Checker` |
//! | data | `asked`, `bound_call`, `ir`, `result`, `scope`, `shared_types` | |
//!
//! Only the modules of the expressions call each other in circles, since expressions nest in each other by all of them; a nested
//! function ties `branch` to `statement`.

mod advice;
mod annotate;
mod arguments;
mod asked;
mod attribute;
mod binding;
mod bound_call;
mod branch;
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
mod learn;
mod lifted;
mod match_cast;
mod names;
mod namespace;
mod recorder;
mod result;
mod scope;
mod shared_types;
mod statement;
mod sugar;
mod summaries;
mod trial;
mod type_arguments;
mod type_objects;
mod types;
mod vague;
mod values;
mod ways;
mod written;

pub use annotate::return_place;
pub(crate) use bound_call::current_keyword;
pub use call::signature_text;
pub(crate) use header::{elaborate_signature, extern_declarations};
pub(crate) use namespace::is_special_form;
pub use namespace::special_forms;
pub use result::{
    Annotate, Annotated, BlockState, Export, KeptRecord, Recorded, Role, Row, RowKind, SegmentResult, Style, Unresolved,
};
pub(crate) use shared_types::SharedTypes;
pub use types::TYPES;

use crate::entry::Outer;
use elaborator::Elaborator;
use rx_context::FileContext;
use rx_syntax::Segment;

/// Elaborates a segment again to learn what it does: `outer` answers as when it was checked.
pub fn record(segment: &Segment, start: &BlockState, file: &FileContext, outer: &dyn Outer) -> Recorded {
    let mut elaborator = Elaborator::new(segment, start.clone(), file, outer);
    elaborator.check.recorder = Some(Recorded::default());
    elaborator.run();
    elaborator.check.recorder.unwrap_or_default()
}

/// Elaborates a segment again to annotate it.
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

/// Elaborates a segment of a Relax function; `types` are those of the segments before, and then of this one as well.
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
