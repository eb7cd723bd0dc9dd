//! Distribution of a row's elements over threads, and the choice of values that stay in registers. The rules choose
//! [`Lanes`]; `print` prints its loops.
//!
//! For example, 32 threads with vectors of 4 elements take elements 0 to 127 of a row in chunk 0, of which thread 2 has
//! elements 8 to 11. Chunk 1 begins at element 128.

use super::vectors::Way;
use super::{Item, Kind, Stages};
use rx_loops::Multiples;
use rx_tir::VarId;

/// The distribution of a row's elements over threads.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Lanes {
    /// For `Printer::columns_loop`: the thread's number among those of its row (or of its block's part of a split row),
    /// as a C expression that needs no parentheses.
    pub(in crate::rules) lane: &'static str,
    /// For `Printer::columns_loop`: the number of threads that share a row, or the part of a split row that one block
    /// processes.
    pub(in crate::rules) threads: i64,
    /// The vector width: neighbouring elements that a thread processes at once.
    pub(in crate::rules) width: i64,
    /// Whether the elements of a vector belong to `width` neighbouring rows, along the last row axis; otherwise they
    /// are of one row.
    pub(in crate::rules) is_of_rows: bool,
    /// The vector width, with the integers that are assumed to be multiples of it.
    pub(in crate::rules) multiples: Multiples,
    /// The number of vectors (chunks) of a row that each thread processes in an unrolled loop; 0: no such loop. Values
    /// that a later loop needs stay in registers.
    pub(in crate::rules) chunks: i64,
    /// Whether a row may be longer than its chunks cover. A second loop, which keeps no values in registers, processes
    /// the other elements.
    pub(in crate::rules) has_rest: bool,
    /// Whether a scalar tail loop processes the last elements, because the row length is not known to be a multiple of
    /// the vector width.
    pub(in crate::rules) has_tail: bool,
    /// For `Printer::columns_loop`: whether the chunks cover the row exactly, so that no bounds check is needed.
    pub(in crate::rules) is_exact: bool,
    /// For a row that is split among blocks: the block's number and the number of blocks, as C expressions.
    pub(in crate::rules) split: Option<(String, String)>,
}

impl Lanes {
    /// Returns the distribution of a row over `threads` threads, without chunks.
    pub(in crate::rules) fn together(stages: &Stages, way: &Way, threads: i64) -> Lanes {
        let has_tail = way.width() > 1 && stages.rows.is_empty() && !way.multiples.has(&stages.row_dim());
        Lanes { lane: "lane", threads, has_tail, ..Lanes::single(way.multiples.clone()) }
    }

    /// Returns the distribution of a row over one thread, without chunks.
    pub(in crate::rules) fn single(multiples: Multiples) -> Lanes {
        Lanes {
            lane: "0",
            threads: 1,
            width: multiples.number(),
            is_of_rows: false,
            multiples,
            chunks: 0,
            has_rest: true,
            has_tail: false,
            is_exact: false,
            split: None,
        }
    }

    /// Returns how many elements of a vector belong to one row.
    pub(in crate::rules) fn neighbours(&self) -> i64 {
        if self.is_of_rows { 1 } else { self.width }
    }

    /// Returns the index in the row of the first element of a vector, as C text: the vector's number times
    /// [`Lanes::neighbours`]. `group` is the number, as C text that may be a sum.
    pub(in crate::rules) fn first(&self, group: String) -> String {
        match self.neighbours() {
            1 => group,
            own => format!("({group}) * {own}"),
        }
    }

    /// Returns the condition that a whole vector begins at element `k` of a row of this length, as C text.
    pub(in crate::rules) fn is_whole(&self, k: &str, length: &str) -> String {
        if self.has_tail { format!("{k} + {} <= {length}", self.width) } else { format!("{k} < {length}") }
    }
}

/// Values that stay in registers, usually from one loop over the columns to a later one.
pub(in crate::rules) struct Held {
    /// Numbers of reads of elements that depend on the columns.
    pub(in crate::rules) reads: Vec<usize>,
    /// Numbers of element stages that later loops use.
    pub(in crate::rules) stages: Vec<usize>,
    /// The most 32-bit registers for one element that are live at once.
    pub(in crate::rules) registers: i64,
}

impl Held {
    /// Finds the values of elements, except scans, that one loop loads or computes and a later loop uses.
    pub(in crate::rules) fn of(stages: &Stages, items: &[Item]) -> Held {
        let loops: Vec<&Vec<usize>> = items
            .iter()
            .filter_map(|item| match item {
                Item::Loop(stages) => Some(stages),
                Item::Row(_) => None,
            })
            .collect();
        let uses = |var: VarId| -> Vec<usize> {
            let used = |of: &&Vec<usize>| of.iter().any(|at| stages.stages[*at].value.uses(var));
            (0..loops.len()).filter(|at| used(&loops[*at])).collect()
        };
        let mut held = Held { reads: Vec::new(), stages: Vec::new(), registers: 0 };
        let mut live = vec![0i64; loops.len()];
        let words = |bytes: usize| (bytes as i64 + 3) / 4;
        for (at, read) in stages.reads.iter().enumerate().filter(|(_, read)| read.is_of_columns) {
            let used = uses(read.var);
            if let (Some(first), Some(last)) = (used.first(), used.last())
                && first < last
            {
                held.reads.push(at);
                live[*first..*last].iter_mut().for_each(|count| *count += words(read.dtype.bytes() as usize));
            }
        }
        for (number, of) in loops.iter().enumerate() {
            for at in of.iter().filter(|at| matches!(stages.stages[**at].kind, Kind::Element)) {
                if let Some(last) = uses(stages.stages[*at].var).last().filter(|last| **last > number) {
                    held.stages.push(*at);
                    let bytes = stages.stages[*at].target.dtype.bytes() as usize;
                    live[number..*last].iter_mut().for_each(|count| *count += words(bytes));
                }
            }
        }
        held.registers = live.into_iter().max().unwrap_or(0);
        held
    }
}
