//! Loads of tiles of queries, keys and values to shared memory.
//!
//! ```text
//! for at = threadIdx.x; at < lines * chunks; at += threads:
//!     line = at / chunks, x = at % chunks * per
//!     tile[line * stride + x] = line and x exist ? operand[line, x] : 0       // `per` elements
//! ```
//!
//! If an operand is a plain load of the tile's dtype whose lines are known to be contiguous, aligned and a multiple of
//! 16 bytes long, `per` elements are 16 bytes, which `cp.async` copies without registers. Otherwise `per` is 1, and
//! each element is computed: an operand may be any expression.
//!
//! Reference: PTX ISA, "cp.async".

use super::problem::Problem;
use super::template::Template;
use crate::printer::{Kernel, types};
use crate::rules::epilogue::is_in_chunks;
use rx_base::DType;
use rx_loops::Affine;
use rx_tir::{Expr, VarId};

/// A tile of an operand in shared memory, row-major. A line is one row of queries, keys or values, padded with zeros.
pub(super) struct Tile<'p> {
    /// The operand's element.
    expr: &'p Expr,
    /// The loop over the elements of a line.
    across: VarId,
    /// The extent of that loop.
    width: i64,
    /// The dtype in shared memory.
    dtype: DType,
    /// The CUDA type of its elements.
    pub(super) element: &'static str,
    /// The number of lines.
    pub(super) lines: i64,
    /// The number of elements of a line, with the zeros.
    pub(super) padded: i64,
    /// The distance from one line to the next, in elements.
    pub(super) stride: i64,
    /// The number of elements in 16 bytes, if lines are copied in units of 16 bytes.
    vector: Option<i64>,
}

impl<'p> Tile<'p> {
    /// Plans a tile of an operand: `lines` lines of `padded` elements, at a distance of `stride` elements.
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

    /// Whether it is copied by `cp.async`, which needs a wait.
    pub(super) fn is_copied(&self) -> bool {
        self.vector.is_some()
    }

    /// Describes how it is loaded, for the scheduling remark.
    pub(super) fn note(&self) -> &'static str {
        match self.vector {
            Some(_) => "16-byte cp.async copies",
            None => "single-element loads",
        }
    }

    /// Emits the load of the tile to the array named by `tile`, by all threads of the block. `at_line` names the
    /// variables of line `$line` and returns the condition under which the line exists.
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
                    $ELEMENT $loaded = {};
                    if ($EXISTS) $loaded = $VALUE;
                    $tile[$line * $STRIDE + $part_of_line] = $loaded;
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
            _ => Err("requires a line of one buffer; found computed elements".to_owned()),
        }
    }
}

/// Strips casts to `float32` until the expression has the dtype `dtype`. Returns `None` if it never has.
pub(super) fn uncast(expr: &Expr, dtype: DType) -> Option<&Expr> {
    match expr {
        _ if expr.dtype() == dtype => Some(expr),
        Expr::Cast { dtype: DType::FLOAT32, value } => uncast(value, dtype),
        _ => None,
    }
}

/// Whether an operand is a plain load of `dtype` (casts to `float32` are ignored) whose lines are known to be
/// contiguous in memory, with every group of `per` elements (16 bytes) aligned. Buffers begin at multiples of 16 bytes.
fn is_line(problem: &Problem, expr: &Expr, (across, width): (VarId, i64), dtype: DType, per: i64) -> bool {
    let Some(Expr::Load { buffer, indices, .. }) = uncast(expr, dtype) else { return false };
    if let Some(at) = Affine::of(&problem.func, &problem.loops, *buffer, indices) {
        return is_in_chunks(&at, across, &Expr::int(width), per);
    }
    // The line's index may be any expression, such as a page table's entry, if the last index is the loop along the
    // line.
    let Some((last, before)) = indices.split_last() else { return false };
    let extent = problem.func.buffer(*buffer).shape.last().and_then(Expr::as_int);
    matches!(last, Expr::Var { var, .. } if *var == across)
        && before.iter().all(|index| !index.uses(across))
        && extent.is_some_and(|extent| extent % per == 0)
}
