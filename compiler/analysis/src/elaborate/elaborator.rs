//! Reading of expressions and statements: [`Elaborator`].
//!
//! An expression contains calls, these contain arguments, attributes and types, and each of them contains expressions, so the files that read
//! these call each other. Statements are read above them, and everything about typed values is asked of the [`Checker`] below.

use super::checker::Checker;
use super::result::BlockState;
use crate::entry::Outer;
use rx_context::FileContext;
use rx_syntax::Segment;

/// Reads the trees of one segment.
pub(super) struct Elaborator<'a> {
    pub(super) check: Checker<'a>,
    /// Inside `R.Callable(…)`, whose symbols are its own and need no definition.
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
