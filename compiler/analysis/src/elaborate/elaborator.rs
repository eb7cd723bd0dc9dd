//! [`Elaborator`], which reads the expressions and statements of a segment.
//!
//! Calls, arguments, attributes and types all contain expressions, so the modules that read them call each other.
//! Statements are a layer above. Checks of typed values are methods of [`Checker`], the layer below.

use super::checker::Checker;
use super::result::BlockState;
use crate::entry::Outer;
use rx_context::FileContext;
use rx_syntax::Segment;

/// The elaborator of the syntax trees of one segment.
pub(super) struct Elaborator<'a> {
    pub(super) check: Checker<'a>,
    /// Whether the current type is inside `R.Callable(…)`, whose symbols are local to it and need no definition.
    pub(super) lenient_symbols: bool,
}

impl<'a> Elaborator<'a> {
    pub(super) fn new(
        segment: &'a Segment,
        state: BlockState,
        file: &'a FileContext,
        outer: &'a dyn Outer,
    ) -> Elaborator<'a> {
        let mut check = Checker::new(segment, state, file, outer);
        check.bounds = check.known_at_start();
        Elaborator { check, lenient_symbols: false }
    }
}
