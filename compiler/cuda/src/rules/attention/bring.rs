//! Tiles of queries, keys and values on their way to shared memory.

use super::problem::Problem;
use super::template::Template;
use crate::printer::{Kernel, types};
use crate::rules::epilogue::is_in_chunks;
use rx_base::DType;
use rx_schedule::Affine;
use rx_tir::{Expr, VarId};

/// Lines of a factor as they lie in shared memory: padded to whole fragments with zeros, and to a distance between lines at
/// which lines side by side fall into different banks.
pub(super) struct Tile<'p> {
    expr: &'p Expr,
    /// Along a line.
    across: VarId,
    width: i64,
    dtype: DType,
    /// The type of its elements.
    pub(super) element: &'static str,
    pub(super) lines: i64,
    pub(super) padded: i64,
    pub(super) stride: i64,
    /// Elements of 16 bytes, where a line is copied by so many.
    vector: Option<i64>,
}

impl<'p> Tile<'p> {
    /// The tile of `lines` lines of a factor, `padded` elements each, `stride` apart.
    pub(super) fn new(
        problem: &Problem,
        (expr, (across, width)): (&'p Expr, (VarId, i64)),
        dtype: DType,
        [lines, padded, stride]: [i64; 3],
    ) -> Tile<'p> {
        let per = 16 / dtype.bytes().cast_signed().max(1);
        let whole = width % per == 0 && padded % per == 0 && stride % per == 0;
        let vector = (whole && is_line(problem, expr, (across, width), dtype, per)).then_some(per);
        let element = types::storage(dtype).unwrap_or("float");
        Tile { expr, across, width, dtype, element, lines, padded, stride, vector }
    }

    pub(super) fn bytes(&self) -> i64 {
        self.lines * self.stride * self.dtype.bytes().cast_signed()
    }

    /// Whether it is copied past the registers.
    pub(super) fn is_copied(&self) -> bool {
        self.vector.is_some()
    }

    /// How it is brought.
    pub(super) fn note(&self) -> &'static str {
        match self.vector {
            Some(_) => "by 16 bytes",
            None => "element by element",
        }
    }

    /// Prints how the block's threads bring it to `$tile`. `at_line` names the variables of line `$line`, and gives the
    /// condition under which there is one.
    pub(super) fn print(
        &self,
        words: &mut Template<'_, '_>,
        (tile, threads): (&str, i64),
        at_line: &mut dyn FnMut(&mut Template<'_, '_>) -> Result<String, String>,
    ) -> Result<(), String> {
        words.kernel.need_storage(self.dtype);
        let per = self.vector.unwrap_or(1);
        let chunks = self.padded / per;
        words.set("tile", tile);
        words.set("COUNT", self.lines * chunks);
        words.set("THREADS", threads);
        words.set("CHUNKS", chunks);
        words.set("STRIDE", self.stride);
        words.set("PER", per);
        words.set("ELEMENT", self.element);
        if self.lines * chunks % threads == 0 && self.lines * chunks / threads <= 16 {
            words.kernel.line("#pragma unroll");
        }
        words.open("for (int $at = threadIdx.x; $at < $COUNT; $at += $THREADS) {");
        match self.vector {
            Some(_) => words.print("const int $line = $at / $CHUNKS, $part_of_line = $at % $CHUNKS * $PER;"),
            None => words.print("const int $line = $at / $CHUNKS; const long long $part_of_line = $at % $CHUNKS;"),
        }
        let exists = at_line(words)?;
        let along = words.word("part_of_line");
        let exists = if self.padded == self.width { exists } else { format!("{exists} && {along} < {}", self.width) };
        words.set("EXISTS", exists);
        words.kernel.name_var(self.across, &along, true);
        match self.vector {
            Some(_) => {
                words.kernel.need("rx_copy16");
                let place = self.place(words.kernel)?;
                words.set("PLACE", place);
                words.print("rx_copy16(&$tile[$line * $STRIDE + $part_of_line], $EXISTS ? &$PLACE : 0);");
            }
            None => {
                let value = words.kernel.stored(self.expr, self.dtype)?;
                words.set("VALUE", value);
                words.print(
                    "
                    $ELEMENT $brought = {};
                    if ($EXISTS) $brought = $VALUE;
                    $tile[$line * $STRIDE + $part_of_line] = $brought;
                    ",
                );
            }
        }
        words.kernel.close();
        Ok(())
    }

    fn place(&self, kernel: &mut Kernel<'_>) -> Result<String, String> {
        match uncast(self.expr, self.dtype) {
            Some(Expr::Load { buffer, indices, .. }) => kernel.place(*buffer, indices),
            _ => Err("a line of no buffer".to_owned()),
        }
    }
}

/// The expression, or what it is a wider cast of, where that has this dtype.
pub(super) fn uncast(expr: &Expr, dtype: DType) -> Option<&Expr> {
    match expr {
        _ if expr.dtype() == dtype => Some(expr),
        Expr::Cast { dtype: DType::FLOAT32, value } => uncast(value, dtype),
        _ => None,
    }
}

/// Whether elements side by side lie side by side, and all groups of 16 bytes at multiples of them. Buffers begin at one.
fn is_line(problem: &Problem, expr: &Expr, (across, width): (VarId, i64), dtype: DType, per: i64) -> bool {
    let Some(Expr::Load { buffer, indices, .. }) = uncast(expr, dtype) else { return false };
    if let Some(at) = Affine::of(&problem.func, &problem.loops, *buffer, indices) {
        return is_in_chunks(&at, across, &Expr::int(width), per);
    }
    // Where a line stands may be computed in whatever way if the last axis is the line's own.
    let Some((last, before)) = indices.split_last() else { return false };
    let extent = problem.func.buffer(*buffer).shape.last().and_then(Expr::as_int);
    matches!(last, Expr::Var { var, .. } if *var == across)
        && before.iter().all(|index| !index.uses(across))
        && extent.is_some_and(|extent| extent % per == 0)
}
