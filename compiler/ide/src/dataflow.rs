//! Finds the dataflow block that contains a statement, from the check of the segments before it.

use rx_analysis::function::FunctionCheck;
use rx_syntax::Statement;
use rx_syntax::ast::StatementKind;

/// The dataflow block that is open while the statements of a segment are read in order.
pub(crate) struct DataflowReader {
    /// The column of the block's header, and the block's ordinal in the function.
    pub(crate) open: Option<(u32, u32)>,
    /// The number of blocks opened so far.
    count: u32,
}

impl DataflowReader {
    /// Starts at the beginning of the segment `number` of a Relax function.
    pub(crate) fn new(check: &FunctionCheck, number: usize) -> DataflowReader {
        let before = number.checked_sub(1).and_then(|before| check.segments.get(before));
        let (open, count) = before.map_or((None, 0), |before| (before.end.dataflow, before.end.dataflow_count));
        DataflowReader { open, count }
    }

    /// Reads the next statement; returns the block that contains it. As in the check, any `with` opens a block, unless
    /// one is open.
    pub(crate) fn read(&mut self, statement: &Statement) -> Option<(u32, u32)> {
        let around = self.open.filter(|(column, _)| statement.inline || statement.indent > *column);
        self.open = around;
        if around.is_none() && matches!(statement.tree.kind, StatementKind::With(_)) {
            self.open = Some((statement.indent, self.count));
            self.count += 1;
        }
        around
    }
}
