//! The attention kernel: each block has one value of the batch and a tile of rows, and loops over tiles of keys.
//!
//! ```text
//! start copying the tile of queries and the first tile of keys
//! for each tile of keys:
//!     wait, barrier
//!     start copying the tile of values
//!     scores = queries * keys                      // overlaps with the copy of the values
//!     online softmax: rescale sums, exponentiate
//!     wait, barrier
//!     start copying the next tile of keys
//!     sums += weights * values                     // overlaps with the copy of the keys
//! epilogue(sums / total), or with split-KV: store maximum, total and sums of the slice
//! ```
//!
//! Requires: tiles that fit into shared memory. Guarantees: every thread reaches both barriers, since the loop's bounds
//! are the same for the whole block. One buffer each suffices for keys and values: a tile is copied only after the
//! barrier that follows the last use of the previous tile.
//!
//! Reference: Dao 2023, "FlashAttention-2".

use super::load::Tile;
use super::mask::Bounds;
use super::places::Places;
use super::problem::Problem;
use super::template::Template;
use super::tiles::{Tiling, Unit};
use super::{threads, warps};
use crate::printer::{Kernel, types};
use crate::rules::{Frame, KernelBody, SHARED_ALIGNMENT};
use crate::source::LaunchShape;
use rx_base::DType;
use rx_tir::{Expr, VarId};
use std::rc::Rc;

/// The base-2 logarithm of e, as CUDA text: `exp(x)` is computed as `exp2(x * LOG2E)`.
pub(super) const LOG2E: &str = "1.44269504f";

/// The attention kernel. With split-KV, it is the first of two kernels; [`super::split_kv`] is the second.
pub(super) struct AttentionKernel {
    /// The matched attention.
    pub(super) problem: Rc<Problem>,
    /// The tile sizes.
    pub(super) tiling: Tiling,
    /// The bounds of the keys that a row sees.
    pub(super) bounds: Bounds,
    /// The size of dynamic shared memory in bytes: the tiles and, without tensor cores, the weights.
    pub(super) shared_bytes: u32,
}

impl AttentionKernel {
    /// Plans the kernel of a problem and tiling.
    ///
    /// # Errors
    /// If the size of its shared memory in bytes does not fit into 32 bits.
    pub(super) fn new(problem: Rc<Problem>, tiling: Tiling) -> Result<AttentionKernel, String> {
        let bounds = Bounds::of(&problem);
        let mut attend = AttentionKernel { problem, tiling, bounds, shared_bytes: 0 };
        let bytes = attend.tiles().iter().map(Tile::bytes).sum::<i64>() + attend.weights_bytes();
        attend.shared_bytes = u32::try_from(bytes).map_err(|error| error.to_string())?;
        Ok(attend)
    }

    /// Returns the bytes of shared memory before the tiles: the array that [`AttentionKernel::skip_masked_keys`]
    /// declares, padded to the alignment of the tiles; 0 if the mask has no bounds.
    pub(super) fn declared_bytes(&self) -> u32 {
        if self.bounds.is_empty() { 0 } else { SHARED_ALIGNMENT }
    }

    /// Returns the tiles of queries, keys and values.
    ///
    /// Lines are 16 bytes longer than their padded elements, so that reads of several lines hit different banks.
    fn tiles(&self) -> [Tile<'_>; 3] {
        let Problem { query, keys, values, depth, width, .. } = &*self.problem;
        let tiling = &self.tiling;
        let (deep, wide) = (tiling.padded(depth.1), tiling.padded(width.1));
        let pad = 16 / tiling.dtype().bytes().cast_signed().max(1);
        let of = |factor, shape| Tile::new(&self.problem, factor, tiling.dtype(), shape);
        [
            of((query, *depth), [tiling.rows(), deep, deep + pad]),
            of((keys, *depth), [tiling.keys, deep, deep + pad]),
            of((values, *width), [tiling.keys, wide, wide + pad]),
        ]
    }

    /// Returns the bytes of the weights in shared memory. On tensor cores they stay in registers.
    fn weights_bytes(&self) -> i64 {
        match self.tiling.unit {
            Unit::Warps { .. } => 0,
            Unit::Threads { .. } => self.tiling.rows() * (self.tiling.keys + 4) * 4,
        }
    }

    /// Describes how the operands are loaded, for the scheduling remark.
    pub(super) fn note(&self) -> String {
        let [queries, keys, values] = self.tiles().map(|tile| tile.note());
        format!("queries: {queries}; keys: {keys}; values: {values}")
    }

    /// Returns the number of split-KV slices of the keys, where each slice has separate blocks; `None` without
    /// split-KV.
    fn slices(&self) -> Option<Expr> {
        self.tiling.slice.map(|slice| slices(&self.problem, slice))
    }

    /// Returns the number of tiles of rows per value of the batch.
    fn row_tiles(&self) -> Expr {
        let rows = self.tiling.rows();
        (self.problem.row_count() + Expr::int(rows - 1)).floor_div(Expr::int(rows))
    }
}

/// Returns the number of split-KV slices of at most `slice` keys each.
pub(super) fn slices(problem: &Problem, slice: i64) -> Expr {
    (problem.key_count() + Expr::int(slice - 1)).floor_div(Expr::int(slice))
}

impl KernelBody for AttentionKernel {
    fn frame(&self) -> Frame<'_> {
        let Problem { func, statements, behind, kept, sum, epilogue, .. } = &*self.problem;
        let blocks = self.problem.batch_count() * self.row_tiles() * self.slices().unwrap_or(Expr::int(1));
        let threads = u32::try_from(self.tiling.threads()).unwrap_or(u32::MAX);
        let shape = LaunchShape { shared_bytes: self.shared_bytes, ..LaunchShape::blocks(blocks, threads) };
        let (taken, more_kept) = match self.tiling.slice {
            Some(_) => (*behind, vec![*sum]),
            None => (statements.len(), epilogue.kept()),
        };
        let least_blocks = match self.tiling.unit {
            // While one block waits for its tiles, another one multiplies. With two blocks of at most 128 threads, each
            // thread may still use the maximum of 255 registers.
            Unit::Warps { .. } => Some(2),
            Unit::Threads { .. } => None,
        };
        Frame {
            func: Some(func),
            kept: kept.iter().copied().chain(more_kept).collect(),
            least_blocks,
            ..Frame::new(shape, statements.iter().take(taken))
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let words = &mut Template::new(kernel);
        self.constants(words)?;
        let places = Places::new(words.kernel, &self.problem);
        self.which_block(words, &places)?;
        let tiles = self.tiles();
        self.declare(words, &tiles);
        let [queries, keys, values] = &tiles;
        words.print("// Load the queries and the first tile of keys.");
        self.load_queries(words, &places, queries)?;
        self.load_tile(words, &places, (keys, "tile_k", "key_first"))?;
        self.commit_copies(words, &tiles);
        words.open("for (long long $key0 = $key_first; $key0 < $key_end; $key0 += $KEYS) {");
        words.print("const long long $key_next = $key0 + $KEYS;");
        self.is_inside(words);
        self.wait_for_copies(words, &tiles);
        self.load_tile(words, &places, (values, "tile_v", "key0"))?;
        self.commit_copies(words, &tiles);
        let text = self.text();
        words.print(text.multiply);
        self.online_softmax_step(words, &places)?;
        self.wait_for_copies(words, &tiles);
        words.open("if ($key_next < $key_end) {");
        self.load_tile(words, &places, (keys, "tile_k", "key_next"))?;
        words.kernel.close();
        self.commit_copies(words, &tiles);
        words.print(text.weigh);
        words.kernel.close();
        self.finish(words, &places)
    }
}

/// The CUDA text that differs between units (tensor cores or single threads), as templates.
pub(super) struct UnitText {
    /// Declares the thread's position in the block, the registers of the sums and, for single threads, the array of the
    /// weights in shared memory.
    pub(super) declare: &'static str,
    /// Multiplies the block's queries by the tile of keys; declares the products, `$scores`.
    pub(super) multiply: &'static str,
    /// Opens the loop over the thread's rows, `$i`.
    pub(super) each_row: &'static str,
    /// Declares `$row`, the index of row `$i`.
    pub(super) row: &'static str,
    /// Opens the loop over the thread's keys: declares the key's index `$key`, and a reference `$product` to the
    /// element of `$scores` for row `$i` and this key.
    pub(super) each_key: &'static str,
    /// Reduces `$top` to the maximum over all threads of the row, by warp shuffles.
    pub(super) top: &'static str,
    /// Rescales the sums of row `$i` by `$carried`. Computes the weights `exp(score - $base)` of its scores, adds them
    /// to `$total[$i]`, and stores them in `$scores` (tensor cores) or in shared memory (single threads).
    pub(super) exponentials: &'static str,
    /// Adds the product of the weights and the tile of values to the sums.
    pub(super) weigh: &'static str,
    /// Declares `$whole`, the sum of the row's exponentials over all threads of the row; skips rows beyond the last.
    pub(super) whole: &'static str,
    /// Opens the loop over the thread's groups of neighbouring columns of the result: declares a group's first column,
    /// `$column0`.
    pub(super) each_column: &'static str,
    /// Declares `$value`: the sum of column `$e` of the group, with the text `$SHARE` appended. `$SHARE` is the
    /// multiplication that normalizes the sum, or empty with split-KV.
    pub(super) sum: &'static str,
}

impl AttentionKernel {
    /// Sets constants of the templates, and requires helpers that they use.
    fn constants(&self, words: &mut Template<'_, '_>) -> Result<(), String> {
        let Problem { depth, width, .. } = &*self.problem;
        let tiling = &self.tiling;
        words.set("ROWS", tiling.rows());
        words.set("KEYS", tiling.keys);
        words.set("DEPTH", tiling.padded(depth.1));
        words.set("WIDTH", tiling.padded(width.1));
        words.set("COLUMNS", width.1);
        words.set("LOG2E", LOG2E);
        words.set("STRIDE_P", tiling.keys + 4);
        match tiling.unit {
            Unit::Warps { fragments, is_bfloat, .. } => {
                words.set("OWN", fragments * 2);
                words.set("FRAGMENTS", fragments);
                words.set("LANES", 4);
                words.kernel.need("rx_ldmatrix");
                let (mma, pair) = match is_bfloat {
                    true => ("rx_mma_bf16", "rx_pair_bf16"),
                    false => ("rx_mma_f16", "rx_pair_f16"),
                };
                words.kernel.need(mma);
                words.kernel.need(pair);
                words.set("MMA", mma);
                words.set("PAIR", pair);
            }
            Unit::Threads { rows, pack, .. } => {
                words.set("OWN", rows);
                words.set("OWN_COLUMNS", tiling.padded(width.1) / 16);
                words.set("PACK", pack);
                words.set("LANES", 16);
                words.kernel.need("rx_pack");
            }
        }
        words.kernel.need("rx_exp2");
        words.kernel.need("RX_INFINITY");
        words.kernel.need("RX_SHARED");
        words.set_expr("ROW_COUNT", &self.problem.row_count())?;
        words.set_expr("KEY_COUNT", &self.problem.key_count())?;
        Ok(())
    }

    /// Returns the templates of the tiling's unit.
    fn text(&self) -> &'static UnitText {
        match self.tiling.unit {
            Unit::Warps { .. } => &warps::TEXT,
            Unit::Threads { .. } => &threads::TEXT,
        }
    }

    /// Emits the online-softmax step of a tile: its scores, the rescale of earlier sums and the exponentials.
    fn online_softmax_step(&self, words: &mut Template<'_, '_>, places: &Places<'_>) -> Result<(), String> {
        let text = self.text();
        words.print("// Online softmax: scores, rescale of earlier sums, exponentials.");
        words.open(text.each_row);
        words.print(text.row);
        self.scores(words, places, text.each_key)?;
        words.print(text.top);
        self.rescale_sums(words);
        words.print(text.exponentials);
        words.kernel.close();
        Ok(())
    }

    /// Emits the end of the kernel: the normalized sums and the epilogue, or the stores of a split-KV slice.
    fn finish(&self, words: &mut Template<'_, '_>, places: &Places<'_>) -> Result<(), String> {
        let text = self.text();
        words.open(text.each_row);
        words.print(text.row);
        words.print(text.whole);
        self.row_done(words, places)?;
        words.open(text.each_column);
        self.columns_done(words, text.sum)?;
        (0..2).for_each(|_| words.kernel.close());
        Ok(())
    }

    /// Returns the number of neighbouring columns of the result in each of a thread's groups.
    pub(super) fn pack(&self) -> i64 {
        match self.tiling.unit {
            Unit::Warps { .. } => 2,
            Unit::Threads { pack, .. } => pack,
        }
    }

    /// Emits the block's rows and keys, and the values of the batch's loops.
    fn which_block(&self, words: &mut Template<'_, '_>, places: &Places<'_>) -> Result<(), String> {
        let row_tiles = words.kernel.operand(&self.row_tiles(), 0)?;
        words.set("ROW_TILES", row_tiles);
        words.print("const long long $rows = $ROW_COUNT, $keys = $KEY_COUNT, $row_tiles = $ROW_TILES;");
        match self.slices() {
            None => words.print(
                "
                long long $key_first = 0, $key_end = $keys;
                const long long $block = blockIdx.x;
                ",
            ),
            Some(slices) => {
                let slices = words.kernel.operand(&slices, 0)?;
                words.set("SLICES", slices);
                words.set("SLICE", self.tiling.slice.unwrap_or(1));
                words.print(
                    "
                    const long long $slices = $SLICES, $slice = blockIdx.x % $slices, $block = blockIdx.x / $slices;
                    long long $key_first = $slice * $SLICE;
                    long long $key_end = $key_first + $SLICE < $keys ? $key_first + $SLICE : $keys;
                    ",
                );
            }
        }
        if !self.bounds.end.is_empty() {
            words.print(
                "
                // Later rows usually see more keys, so their blocks are launched first.
                const long long $row0 = ($row_tiles - 1 - $block % $row_tiles) * $ROWS, $batch = $block / $row_tiles;
                ",
            );
        } else {
            words.print("const long long $row0 = $block % $row_tiles * $ROWS, $batch = $block / $row_tiles;");
        }
        places.batch(words, "batch")?;
        places.at_batch(words.kernel);
        self.skip_masked_keys(words, places)
    }

    /// Emits the reduction of the mask's bounds over the block's rows.
    ///
    /// `$key_first` and `$key_end` become the ends of a range that contains all keys of the slice that at least one row
    /// of the block sees; the loop over tiles covers only this range. `$all_first` and `$all_end` are the ends of the
    /// range of the keys within the bounds of all rows; if the bounds are the whole mask, tiles in it need no mask. For
    /// example, with a causal mask, the rows 128 to 255 together see the keys 0 to 255, and all of them see the keys 0
    /// to 128. Emits nothing if the mask has no bounds.
    fn skip_masked_keys(&self, words: &mut Template<'_, '_>, places: &Places<'_>) -> Result<(), String> {
        let bounds = &self.bounds;
        if bounds.is_empty() {
            return Ok(());
        }
        words.kernel.need("rx_min");
        words.set("THREADS", self.tiling.threads());
        words.open(
            "
            // The range of keys that any row of the block sees, and the range that all of its rows see.
            __shared__ long long $seen[4];
            if (threadIdx.x == 0) $seen[0] = $seen[3] = $key_end, $seen[1] = $seen[2] = $key_first;
            __syncthreads();
            for (long long $row = $row0 + threadIdx.x; $row < $row0 + $ROWS && $row < $rows; $row += $THREADS) {
            ",
        );
        places.at_row(words, "row")?;
        words.print("long long $row_first = $key_first, $row_end = $key_end;");
        for first in &bounds.first {
            words.set_expr("BOUND", first)?;
            words.print("$row_first = rx_max<long long>($row_first, $BOUND);");
        }
        for end in &bounds.end {
            words.set_expr("BOUND", end)?;
            words.print("$row_end = rx_min<long long>($row_end, $BOUND);");
        }
        words.print(
            "
            atomicMin(&$seen[0], $row_first), atomicMax(&$seen[1], $row_end);
            atomicMax(&$seen[2], $row_first), atomicMin(&$seen[3], $row_end);
            ",
        );
        words.kernel.close();
        words.print(
            "
            __syncthreads();
            $key_first = $seen[0], $key_end = $seen[1];
            const long long $all_first = $seen[2], $all_end = $seen[3];
            ",
        );
        places.at_batch(words.kernel);
        Ok(())
    }

    /// Emits the declarations of the tiles in shared memory and of the thread's registers.
    fn declare(&self, words: &mut Template<'_, '_>, tiles: &[Tile<'_>; 3]) {
        let [queries, keys, values] = tiles;
        words.set("STRIDE_Q", queries.stride);
        words.set("STRIDE_K", keys.stride);
        words.set("STRIDE_V", values.stride);
        words.set("ELEMENT", queries.element);
        words.kernel.need_storage(self.tiling.dtype());
        words.print(
            "
            RX_SHARED($shared);
            $ELEMENT* $tile_q = ($ELEMENT*)$shared;
            $ELEMENT* $tile_k = $tile_q + $ROWS * $STRIDE_Q;
            $ELEMENT* $tile_v = $tile_k + $KEYS * $STRIDE_K;
            ",
        );
        words.print(self.text().declare);
        words.print(
            "
            // Per row: the maximum score, and the sum of exp(score - maximum).
            float $most[$OWN], $total[$OWN];
            #pragma unroll
            for (int $i = 0; $i < $OWN; ++$i) $most[$i] = -RX_INFINITY, $total[$i] = 0.0f;
            ",
        );
    }

    /// Emits the load of the tile of queries.
    fn load_queries(
        &self,
        words: &mut Template<'_, '_>,
        places: &Places<'_>,
        queries: &Tile<'_>,
    ) -> Result<(), String> {
        let tile = words.word("tile_q");
        queries.print(words, (&tile, self.tiling.threads()), &mut |words| {
            words.print("const long long $row = $row0 + $line;");
            places.at_row(words, "row")?;
            Ok(format!("{} < {}", words.word("row"), words.word("rows")))
        })
    }

    /// Emits the load of a tile of keys or values that begins at the key that the template word `first` names.
    fn load_tile(
        &self,
        words: &mut Template<'_, '_>,
        places: &Places<'_>,
        (tile, name, first): (&Tile<'_>, &'static str, &'static str),
    ) -> Result<(), String> {
        places.at_batch(words.kernel);
        let (name, first) = (words.word(name), words.word(first));
        words.set("FIRST", first);
        tile.print(words, (&name, self.tiling.threads()), &mut |words| {
            words.print("const long long $key = $FIRST + $line;");
            let key = self.at_key(words);
            Ok(format!("{key} < {}", words.word("key_end")))
        })
    }

    /// Names the loop over the keys with `$key` for the following text. Returns the name.
    pub(super) fn at_key(&self, words: &mut Template<'_, '_>) -> String {
        let key = words.word("key");
        name_loop(words.kernel, self.problem.key.var, &key);
        key
    }

    /// Emits the commit of the asynchronous copies so far, if tiles are copied in this way.
    fn commit_copies(&self, words: &mut Template<'_, '_>, tiles: &[Tile<'_>; 3]) {
        if tiles.iter().any(Tile::is_copied) {
            words.kernel.line("rx_copy_commit();");
        }
    }

    /// Emits the wait for all committed copies, if tiles are copied asynchronously, then a barrier. After it, all
    /// threads see the loaded tiles.
    fn wait_for_copies(&self, words: &mut Template<'_, '_>, tiles: &[Tile<'_>; 3]) {
        if tiles.iter().any(Tile::is_copied) {
            words.kernel.line("rx_copy_wait<0>();");
        }
        words.kernel.line("__syncthreads();");
    }

    /// Emits the end of row `$row`, whose exponentials have the sum `$whole`: the factor that normalizes its sums, or
    /// with split-KV the stores of its maximum and total.
    pub(super) fn row_done(&self, words: &mut Template<'_, '_>, places: &Places<'_>) -> Result<(), String> {
        if self.tiling.slice.is_some() {
            let name = words.kernel.scratch_buffer(0, "partial", "float");
            words.set("partial", name);
            words.set("SHARE", "");
            words.set("PARTIAL", self.problem.width.1 + 2);
            words.print(
                "
                float* $out = $partial + (($batch * $slices + $slice) * $rows + $row) * $PARTIAL;
                if ($lane % $LANES == 0) $out[0] = $most[$i], $out[1] = $whole;
                ",
            );
            return Ok(());
        }
        places.at_row(words, "row")?;
        share(words, &self.problem);
        let share = words.word("share");
        words.set("SHARE", format!(" * {share}"));
        Ok(())
    }

    /// Emits the stores of a group of neighbouring columns from `$column0` on: the epilogue of each, or with split-KV
    /// the unnormalized sum. `sum` is the text that declares `$value` for number `$e`.
    pub(super) fn columns_done(&self, words: &mut Template<'_, '_>, sum: &'static str) -> Result<(), String> {
        let (problem, width) = (&*self.problem, self.pack());
        let is_padded = self.tiling.padded(problem.width.1) != problem.width.1;
        let extent = Expr::int(problem.width.1);
        let last = Some((problem.width.0, &extent));
        let mut packs = None;
        if self.tiling.slice.is_none() && width > 1 && problem.width.1 % width == 0 {
            let which = words.word("e");
            packs = problem.epilogue.packs(words.kernel, &problem.func, last, (width, &which));
        }
        words.set("SIDE", width);
        words.open(
            "
            #pragma unroll
            for (int $e = 0; $e < $SIDE; ++$e) {
                const long long $column = $column0 + $e;
            ",
        );
        if is_padded {
            words.print("if ($column >= $COLUMNS) continue;");
        }
        words.print(sum);
        match self.tiling.slice {
            Some(_) => words.print("$out[2 + $column] = $value;"),
            None => {
                at_column(words, problem, "column");
                let value = words.word("value");
                problem.epilogue.print(words.kernel, &problem.func, &value, packs.as_ref())?;
            }
        }
        words.kernel.close();
        let Some(packs) = packs else { return Ok(()) };
        at_column(words, problem, "column0");
        if is_padded {
            words.open("if ($column0 < $COLUMNS) {");
        }
        problem.epilogue.store(words.kernel, &problem.func, &packs)?;
        if is_padded {
            words.kernel.close();
        }
        Ok(())
    }
}

/// Names the loop over the result's columns with the text of a template word, for the following text.
pub(super) fn at_column(words: &mut Template<'_, '_>, problem: &Problem, word: &'static str) {
    let column = words.word(word);
    name_loop(words.kernel, problem.width.0, &column);
}

/// Names a loop, for the following text, with an `int64` variable of the kernel, cast to the loop's dtype.
fn name_loop(kernel: &mut Kernel<'_>, var: VarId, name: &str) {
    match kernel.dtype_of(var) {
        DType::INT64 => kernel.name_var(var, name, true),
        narrow => {
            let ctype = types::value(narrow).unwrap_or("int");
            kernel.name_var(var, &format!("(({ctype}){name})"), true);
        }
    }
}

/// Emits `$share`, the factor that normalizes the sums of a row: `1 / $whole`, or 0 if there are no keys. If the
/// softmax is safe, it is also 0 for a fully masked row.
pub(super) fn share(words: &mut Template<'_, '_>, problem: &Problem) {
    match problem.is_zero_of_none {
        true => words.print("const float $share = $keys == 0 || $whole == 0.0f ? 0.0f : 1.0f / $whole;"),
        false => words.print("const float $share = $keys == 0 ? 0.0f : 1.0f / $whole;"),
    }
}
