//! Where a block and its rows are: the values of the loops that are no keys.

use super::problem::{Digit, Problem};
use super::template::Template;
use crate::printer::Kernel;
use rx_tir::{Expr, VarId};

/// What the loops of batch and rows are called.
pub(super) struct Places<'p> {
    problem: &'p Problem,
    batch: Vec<String>,
    rows: Vec<String>,
}

impl<'p> Places<'p> {
    pub(super) fn new(kernel: &mut Kernel<'_>, problem: &'p Problem) -> Places<'p> {
        let mut named = |digit: &Digit, what: &str| {
            let name = problem.func.var(digit.var).name;
            kernel.fresh_name(&format!("{name}{what}"))
        };
        let batch =
            problem.batch.iter().map(|digit| named(digit, if digit.scale > 1 { "_first" } else { "" })).collect();
        let rows = problem.rows.iter().map(|digit| named(digit, "")).collect();
        Places { problem, batch, rows }
    }

    /// Prints the values of the batch's loops, of a value counted through them.
    pub(super) fn batch(&self, words: &mut Template<'_, '_>, linear: &'static str) -> Result<(), String> {
        let linear = words.word(linear);
        for (at, digit) in self.problem.batch.iter().enumerate() {
            let value = value_of(words.kernel, &self.problem.batch, at, &linear)?;
            let value = if digit.scale > 1 { format!("({value}) * {}", digit.scale) } else { value };
            declare(words.kernel, digit.var, &self.batch[at], &value)?;
        }
        Ok(())
    }

    /// From here on the loops of the batch have the block's values: of a loop that rows differ in, too, the first.
    pub(super) fn at_batch(&self, kernel: &mut Kernel<'_>) {
        for (digit, name) in self.problem.batch.iter().zip(&self.batch) {
            kernel.name_var(digit.var, name, true);
        }
    }

    /// Prints the values of the rows' loops at a row, which they have from here on.
    pub(super) fn at_row(&self, words: &mut Template<'_, '_>, row: &'static str) -> Result<(), String> {
        let row = words.word(row);
        self.at_batch(words.kernel);
        for (at, digit) in self.problem.rows.iter().enumerate() {
            let mut value = value_of(words.kernel, &self.problem.rows, at, &row)?;
            if let Some(first) = self.problem.batch.iter().position(|of| of.var == digit.var) {
                value = format!("{} + {value}", self.batch[first]);
            }
            declare(words.kernel, digit.var, &self.rows[at], &value)?;
            words.kernel.name_var(digit.var, &self.rows[at], true);
        }
        Ok(())
    }
}

/// The value of one of some digits, the last the fastest, of a number counted through them.
fn value_of(kernel: &mut Kernel<'_>, digits: &[Digit], at: usize, linear: &str) -> Result<String, String> {
    let below = digits[at + 1..].iter().fold(Expr::int(1), |below, digit| below * digit.extent.clone());
    kernel.digit(linear, &below, (at > 0).then_some(&digits[at].extent))
}

fn declare(kernel: &mut Kernel<'_>, var: VarId, name: &str, value: &str) -> Result<(), String> {
    let dtype = kernel.dtype_of(var);
    let ctype = kernel.ctype(dtype)?;
    let value = if ctype == "long long" { value.to_owned() } else { format!("({ctype})({value})") };
    kernel.line(&format!("const {ctype} {name} = {value};"));
    Ok(())
}
