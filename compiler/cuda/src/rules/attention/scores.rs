//! The scores of a tile of keys, and the online-softmax step that rescales the sums.
//!
//! ```text
//! if (inside) {               // every key of the tile exists and is within the mask's bounds of every row
//!     each key: product = score(product)          // without the mask, if the mask is known to be bounds only
//! } else {
//!     each key: product = row < rows && key < key_end ? score(product) : -inf
//! }
//! ```
//!
//! The two branches keep comparisons out of most tiles: only those at the edges and on the diagonal of a causal mask
//! take the second one.

use super::kernel::AttentionKernel;
use super::places::Places;
use super::template::Template;
use super::tiles::Unit;
use crate::printer::{expr, types};
use rx_base::DType;
use rx_tir::rewrite::map_expr;
use rx_tir::{BinaryOp, Expr};

/// Replaces divisions by `float32` constants with multiplications by their reciprocals, if these are normal numbers.
/// For example, `x / 8.0` becomes `x * 0.125`. A division takes about ten instructions for each score; the difference
/// of about one unit in the last place is mostly lost when the weights are rounded to 16 bits.
fn with_reciprocals(score: &Expr) -> Expr {
    map_expr(score, &mut |part| match part {
        Expr::Binary { op: BinaryOp::Div, left, right } => match reciprocal(&right) {
            Some(reciprocal) => Expr::binary(BinaryOp::Mul, *left, reciprocal),
            None => Expr::binary(BinaryOp::Div, *left, *right),
        },
        other => other,
    })
}

/// Returns the reciprocal of a `float32` constant, if the reciprocal is a normal number.
fn reciprocal(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Float { value, dtype: DType::FLOAT32 } if (value.recip() as f32).is_normal() => {
            Some(Expr::number(value.recip(), DType::FLOAT32))
        }
        _ => None,
    }
}

impl AttentionKernel {
    /// Emits `$inside`: whether all keys of the tile exist and are within the mask's bounds for all rows of the block.
    /// It also requires that all these rows exist, if the score of keys within the bounds depends on the row.
    pub(super) fn is_inside(&self, words: &mut Template<'_, '_>) {
        // Rows beyond the last are computed too, and their results are never stored. But if the score depends on the
        // row, its loads for these rows could be out of bounds.
        let rows_matter = self.is_of_rows(&self.bounds.inside);
        words.print(match (self.bounds.is_empty(), rows_matter) {
            (true, false) => "const bool $inside = $key0 + $KEYS <= $key_end;",
            (true, true) => "const bool $inside = $key0 + $KEYS <= $key_end && $row0 + $ROWS <= $rows;",
            (false, false) => "const bool $inside = $key0 >= $all_first && $key0 + $KEYS <= $all_end;",
            (false, true) => {
                "const bool $inside = $key0 >= $all_first && $key0 + $KEYS <= $all_end && $row0 + $ROWS <= $rows;"
            }
        });
    }

    /// Whether a score depends on its row.
    fn is_of_rows(&self, score: &Expr) -> bool {
        self.problem.rows.iter().any(|split| score.uses(split.var))
    }

    /// Emits the scores of row `$i`: replaces each `$product` by the score, or by −∞ if the key is out of range.
    /// `each_key` declares `$product` and `$key`. `$top` is the largest of the thread's scores of the row.
    pub(super) fn scores(
        &self,
        words: &mut Template<'_, '_>,
        places: &Places<'_>,
        each_key: &'static str,
    ) -> Result<(), String> {
        let dtype = self.problem.func.buffer(self.problem.product).dtype;
        words.kernel.need_storage(dtype);
        words.print("float $top = -RX_INFINITY;");
        for is_inside in [true, false] {
            words.open(if is_inside { "if ($inside) {" } else { "} else {" });
            let score = if is_inside { &self.bounds.inside } else { &self.problem.score };
            if self.is_of_rows(score) {
                places.at_row(words, "row")?;
            } else {
                places.at_batch(words.kernel);
            }
            words.open(each_key);
            self.at_key(words);
            let mut product = words.word("product");
            if self.problem.scale != 1.0 {
                let scale = words
                    .kernel
                    .operand(&Expr::Float { value: self.problem.scale, dtype: DType::FLOAT32 }, expr::PRODUCT + 1)?;
                product = format!("({product} * {scale})");
            }
            let product = types::rounded(dtype, &product);
            words.kernel.hold(self.problem.product, &product);
            let score = match self.tiling.unit {
                Unit::Warps { .. } => with_reciprocals(score),
                Unit::Threads { .. } => score.clone(),
            };
            let text = words.kernel.assigned(&score, score.dtype())?;
            words.set("SCORE", text);
            match is_inside {
                true => words.print("$product = $SCORE;"),
                false => words.print(
                    "
                    float $score = -RX_INFINITY;
                    if ($row < $rows && $key < $key_end) $score = $SCORE;
                    $product = $score;
                    ",
                ),
            }
            words.print("$top = fmaxf($top, $product);");
            words.kernel.close();
            if is_inside { words.kernel.outdent() } else { words.kernel.close() }
        }
        Ok(())
    }

    /// Emits the online-softmax rescale of row `$i` to the larger of the old maximum `$most` and the tile's maximum.
    /// `$base` is the new maximum, which is subtracted from the scores, or 0 if all scores so far are −∞. `$carried` is
    /// `exp(old maximum - $base)`. `$total` is multiplied by it here, the sums of values by
    /// [`UnitText::exponentials`](super::kernel::UnitText::exponentials).
    pub(super) fn rescale_sums(&self, words: &mut Template<'_, '_>) {
        words.print(
            "
            $top = fmaxf($most[$i], $top);
            const float $base = $top == -RX_INFINITY ? 0.0f : $top;
            const float $carried = rx_exp2(($most[$i] - $base) * $LOG2E);
            $most[$i] = $top;
            $total[$i] *= $carried;
            ",
        );
    }
}
