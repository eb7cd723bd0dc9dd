//! Finds the dataflow block that contains a statement, from the check of the segments before it.

use rx_analysis::function::FunctionCheck;
use rx_syntax::Statement;
use rx_syntax::ast::StatementKind;

/// The dataflow block that is open while the statements of a segment are read in order.
pub(crate) struct DataflowReader {
    /// The column of the block's header, and the block's ordinal in the function.
    pub(crate) open: Option<(u32, u32)>,
    /// The number of blocks opened so far, including those of nested functions.
    count: u32,
    /// For each nested function that contains the statement, the column of its header and the block that is open around
    /// it.
    functions: Vec<(u32, Option<(u32, u32)>)>,
}

impl DataflowReader {
    /// Starts at the beginning of the segment `number` of a Relax function.
    pub(crate) fn new(check: &FunctionCheck, number: usize) -> DataflowReader {
        let before = number.checked_sub(1).and_then(|before| check.segments.get(before));
        let (open, count) = before.map_or((None, 0), |before| (before.end.dataflow, before.end.dataflow_count));
        DataflowReader { open, count, functions: Vec::new() }
    }

    /// Ends the nested functions and the block that do not contain a statement in this column. Returns the block that
    /// contains it.
    pub(crate) fn at_column(&mut self, column: u32) -> Option<(u32, u32)> {
        while let Some((_, around)) = self.functions.pop_if(|(header, _)| column <= *header) {
            self.open = around;
        }
        self.open = self.open.filter(|(header, _)| column > *header);
        self.open
    }

    /// Reads the next statement; returns the block that contains it. As in the check, any `with` opens a block, unless
    /// one is open.
    pub(crate) fn read(&mut self, statement: &Statement) -> Option<(u32, u32)> {
        let around = if statement.inline { self.open } else { self.at_column(statement.indent) };
        match statement.tree.kind {
            StatementKind::With(_) if around.is_none() => {
                self.open = Some((statement.indent, self.count));
                self.count += 1;
            }
            StatementKind::Def { .. } => {
                self.functions.push((statement.indent, around));
                self.open = None;
            }
            _ => {}
        }
        around
    }
}
