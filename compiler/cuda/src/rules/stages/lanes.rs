//! How the elements of a row are shared among its threads, and what they keep of it.

use super::vectors::Way;
use super::{Item, Kind, Stages};
use rx_schedule::Multiples;
use rx_tir::VarId;

/// How the elements of a row are shared among threads.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Lanes {
    /// The thread's number among those of its row, as text that binds as tightly as a name.
    pub(in crate::rules) lane: &'static str,
    /// The threads of a row.
    pub(in crate::rules) threads: i64,
    /// Elements that a thread has side by side.
    pub(in crate::rules) width: i64,
    /// Whether these are of as many rows, the last axis of which they follow; else they are of one.
    pub(in crate::rules) is_of_rows: bool,
    /// What is known of multiples of so many.
    pub(in crate::rules) multiples: Multiples,
    /// Groups of them whose values stay in registers.
    pub(in crate::rules) chunks: i64,
    /// Whether there may be more.
    pub(in crate::rules) has_rest: bool,
    /// Whether the row's end may cut a group: what is behind the last whole one is done one by one.
    pub(in crate::rules) has_tail: bool,
    /// Whether the chunks are all of the row, and no thread has fewer.
    pub(in crate::rules) is_exact: bool,
    /// Where a row is split among blocks: the block's number and how many there are.
    pub(in crate::rules) split: Option<(String, String)>,
}

impl Lanes {
    /// Those of so many threads for a row, which they go along together.
    pub(in crate::rules) fn together(stages: &Stages, way: &Way, threads: i64) -> Lanes {
        let has_tail = way.width() > 1 && stages.rows.is_empty() && !way.multiples.has(&stages.row_dim());
        Lanes { lane: "lane", threads, has_tail, ..Lanes::single(way.multiples.clone()) }
    }

    /// Those of one thread for each group of elements, which has nothing to do with any other.
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

    /// Elements of one row that a thread has side by side.
    pub(in crate::rules) fn neighbours(&self) -> i64 {
        if self.is_of_rows { 1 } else { self.width }
    }

    /// The first element of the group of this number, which is a sum.
    pub(in crate::rules) fn first(&self, group: String) -> String {
        match self.neighbours() {
            1 => group,
            own => format!("({group}) * {own}"),
        }
    }

    /// What must hold for a whole group to begin at `k` of a row of this length.
    pub(in crate::rules) fn is_whole(&self, k: &str, length: &str) -> String {
        if self.has_tail { format!("{k} + {} <= {length}", self.width) } else { format!("{k} < {length}") }
    }
}

/// What a kernel's loops keep in registers from one to another.
pub(in crate::rules) struct Held {
    /// Reads, by number, of several loops.
    pub(in crate::rules) reads: Vec<usize>,
    /// Stages of elements, by number, that later loops use.
    pub(in crate::rules) stages: Vec<usize>,
    /// The most registers of 32 bits for one element that are needed at once.
    pub(in crate::rules) registers: i64,
}

impl Held {
    /// What the stages' loops would keep, all in all.
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
