//! Decodes the loops of batch and rows: emits their values from the linear index of a block's batch value and of a row.
//!
//! ```text
//! const long long b = batch / 8, h_first = (batch % 8) * 4;     // 32 heads in groups of 4
//! const long long h = h_first + row / 128, m = row % 128;       // 128 positions
//! ```

use super::problem::{IterSplit, Problem};
use super::template::Template;
use crate::printer::Kernel;
use rx_tir::{Expr, VarId};

/// The names of the loops' variables in the kernel.
pub(super) struct Places<'p> {
    problem: &'p Problem,
    /// The name of each batch split, with `_first` if the value of a row split is added to it.
    batch: Vec<String>,
    /// The name of each row split.
    rows: Vec<String>,
}

impl<'p> Places<'p> {
    pub(super) fn new(kernel: &mut Kernel<'_>, problem: &'p Problem) -> Places<'p> {
        let mut named = |split: &IterSplit, suffix: &str| {
            let name = problem.func.var(split.var).name;
            kernel.fresh_name(&format!("{name}{suffix}"))
        };
        let batch =
            problem.batch.iter().map(|split| named(split, if split.scale > 1 { "_first" } else { "" })).collect();
        let rows = problem.rows.iter().map(|split| named(split, "")).collect();
        Places { problem, batch, rows }
    }

    /// Emits the values of the batch's loops, from the linear index over them, which the template word `linear` names.
    pub(super) fn batch(&self, words: &mut Template<'_, '_>, linear: &'static str) -> Result<(), String> {
        let linear = words.word(linear);
        for (at, split) in self.problem.batch.iter().enumerate() {
            let value = value_of(words.kernel, &self.problem.batch, at, &linear)?;
            let value = if split.scale > 1 { format!("({value}) * {}", split.scale) } else { value };
            declare(words.kernel, split.var, &self.batch[at], &value)?;
        }
        Ok(())
    }

    /// Names the variables of the batch's loops for the text that is emitted next: each gets the name of the C variable
    /// that [`Places::batch`] declares, which has the block's value. For a loop that is split between batch and rows,
    /// this is the first value of its group.
    pub(super) fn at_batch(&self, kernel: &mut Kernel<'_>) {
        for (split, name) in self.problem.batch.iter().zip(&self.batch) {
            kernel.name_var(split.var, name, true);
        }
    }

    /// Declares a C variable for each row split, with the value of its loop at a row. The template word `row` names the
    /// linear index of that row. The text that is emitted next uses these variables for the loops of the rows. For the
    /// other loops of the batch it uses the variables that [`Places::batch`] has declared.
    pub(super) fn at_row(&self, words: &mut Template<'_, '_>, row: &'static str) -> Result<(), String> {
        let row = words.word(row);
        self.at_batch(words.kernel);
        for (at, split) in self.problem.rows.iter().enumerate() {
            let mut value = value_of(words.kernel, &self.problem.rows, at, &row)?;
            if let Some(first) = self.problem.batch.iter().position(|of| of.var == split.var) {
                value = format!("{} + {value}", self.batch[first]);
            }
            declare(words.kernel, split.var, &self.rows[at], &value)?;
            words.kernel.name_var(split.var, &self.rows[at], true);
        }
        Ok(())
    }
}

/// Returns the text of the index of split number `at`, from a linear index over all splits, the last of which is
/// innermost.
fn value_of(kernel: &mut Kernel<'_>, splits: &[IterSplit], at: usize, linear: &str) -> Result<String, String> {
    let below = splits[at + 1..].iter().fold(Expr::int(1), |below, split| below * split.extent.clone());
    kernel.delinearized(linear, &below, (at > 0).then_some(&splits[at].extent))
}

fn declare(kernel: &mut Kernel<'_>, var: VarId, name: &str, value: &str) -> Result<(), String> {
    let dtype = kernel.dtype_of(var);
    let ctype = kernel.ctype(dtype)?;
    let value = if ctype == "long long" { value.to_owned() } else { format!("({ctype})({value})") };
    kernel.line(&format!("const {ctype} {name} = {value};"));
    Ok(())
}
