//! Prints the loop over a row's columns: chunks in registers, then the rest in vectors, then a scalar tail, as
//! far as [`Lanes`] has them.

use super::super::lanes::Lanes;
use super::Printer;
use super::names::Use;
use crate::printer::expr::RELATION;

impl Printer<'_, '_, '_> {
    /// Prints the loop over the columns for some stages. Reductions among them end as partial results of each thread.
    pub(in crate::rules) fn columns_loop(&mut self, stages: &[usize]) -> Result<(), String> {
        for at in stages {
            self.begin(&self.stages.stages[*at])?;
        }
        self.name(Use::Value(false))?;
        let length = self.kernel.operand(&self.stages.row_length(), RELATION + 1)?;
        let chunks = self.lanes.chunks;
        if chunks > 0 {
            self.chunks(stages, &length)?;
        }
        if chunks == 0 || self.lanes.has_rest {
            self.rest(stages, &length)?;
        }
        if self.lanes.has_tail {
            self.tail(stages, &length)?;
        }
        if chunks > 0 {
            let used = |at: &usize| stages.iter().any(|one| self.uses_read(*one, *at));
            let new: Vec<usize> = self.read_arrays.keys().copied().filter(used).collect();
            self.filled.extend(new);
        }
        Ok(())
    }

    /// Prints the loop over the chunks.
    fn chunks(&mut self, stages: &[usize], length: &str) -> Result<(), String> {
        let Lanes { lane, threads, width, chunks, is_exact, .. } = self.lanes;
        let k = self.kernel.fresh_name("k");
        let first = match chunks {
            1 => self.lanes.first(lane.to_owned()),
            _ => self.lanes.first(format!("chunk * {threads} + {lane}")),
        };
        if chunks > 1 {
            self.kernel.unrolled("chunk", chunks);
        }
        self.kernel.line(&format!("const {} {k} = {first};", self.index));
        if !is_exact {
            self.kernel.open(&format!("if ({}) {{", self.lanes.is_whole(&k, length)));
        }
        self.body(stages, &k, Some(if chunks > 1 { "chunk" } else { "0" }), width)?;
        if !is_exact {
            self.kernel.close();
        }
        if chunks > 1 {
            self.kernel.close();
        }
        Ok(())
    }

    /// Prints the loop over the vectors after the chunks, of the row or of the block's part of a split row.
    fn rest(&mut self, stages: &[usize], length: &str) -> Result<(), String> {
        let Lanes { lane, threads, width, chunks, split, .. } = self.lanes.clone();
        let k = self.kernel.fresh_name("k");
        let own = self.lanes.neighbours();
        let (first, step) = match split {
            None if chunks == 0 => (lane.to_owned(), (threads * own).to_string()),
            None => (format!("{} + {lane}", chunks * threads), (threads * own).to_string()),
            Some((block, blocks)) => (format!("{block} * {threads} + {lane}"), format!("{blocks} * {}", threads * own)),
        };
        let first = self.lanes.first(first);
        if chunks == 0 && threads > 1 {
            self.kernel.line("#pragma unroll 4");
        }
        let condition = self.lanes.is_whole(&k, length);
        self.kernel.open(&format!("for ({} {k} = {first}; {condition}; {k} += {step}) {{", self.index));
        self.body(stages, &k, None, width)?;
        self.kernel.close();
        Ok(())
    }

    /// Prints the scalar loop over the elements after the last whole vector.
    fn tail(&mut self, stages: &[usize], length: &str) -> Result<(), String> {
        let Lanes { lane, threads, width, split, .. } = self.lanes.clone();
        self.kernel.line("// Scalar tail after the last whole vector.");
        let (k, index) = (self.kernel.fresh_name("k"), self.index);
        let first = format!("{length} / {width} * {width} + {lane}");
        let guard = split.map_or(String::new(), |(block, _)| format!("{block} == 0 && "));
        self.kernel.open(&format!("for ({index} {k} = {first}; {guard}{k} < {length}; {k} += {threads}) {{"));
        self.body(stages, &k, None, 1)?;
        self.kernel.close();
        Ok(())
    }
}
