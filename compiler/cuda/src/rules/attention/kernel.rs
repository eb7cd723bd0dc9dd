//! The kernel: a block has some rows of queries of one value of the batch, and goes over the keys tile by tile. A tile of
//! values is on its way while queries and keys are multiplied, and the next tile of keys while the values are weighted.

use super::bring::Tile;
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
use rx_tir::Expr;
use std::rc::Rc;

/// The logarithm of e to base 2: exponentials are taken as powers of 2.
pub(super) const LOG2E: &str = "1.44269504f";

/// Attention by tiles.
pub(super) struct Attend {
    pub(super) problem: Rc<Problem>,
    pub(super) tiling: Tiling,
    /// The keys that rows see.
    pub(super) bounds: Bounds,
    pub(super) shared_bytes: u32,
}

impl Attend {
    /// # Errors
    /// Where its tiles have too many bytes.
    pub(super) fn new(problem: Rc<Problem>, tiling: Tiling) -> Result<Attend, String> {
        let bounds = Bounds::of(&problem);
        let mut attend = Attend { problem, tiling, bounds, shared_bytes: 0 };
        let bytes = attend.tiles().iter().map(Tile::bytes).sum::<i64>() + attend.weights_bytes();
        attend.shared_bytes = u32::try_from(bytes).map_err(|error| error.to_string())?;
        Ok(attend)
    }

    /// Bytes of shared memory that its text declares with a size, up to where its tiles begin.
    pub(super) fn declared_bytes(&self) -> u32 {
        if self.bounds.is_empty() { 0 } else { SHARED_ALIGNMENT }
    }

    /// The tiles of queries, keys and values.
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

    /// Bytes of the weights, where they go through shared memory.
    fn weights_bytes(&self) -> i64 {
        match self.tiling.unit {
            Unit::Warps { .. } => 0,
            Unit::Threads { .. } => self.tiling.rows() * (self.tiling.keys + 4) * 4,
        }
    }

    /// How the factors are brought, for the schedule's note.
    pub(super) fn note(&self) -> String {
        let [queries, keys, values] = self.tiles().map(|tile| tile.note());
        format!("queries {queries}, keys {keys}, values {values}")
    }

    /// How many parts the keys are in, each for blocks of its own.
    fn parts(&self) -> Option<Expr> {
        self.tiling.part.map(|part| parts(&self.problem, part))
    }

    fn row_tiles(&self) -> Expr {
        let rows = self.tiling.rows();
        (self.problem.row_count() + Expr::int(rows - 1)).floor_div(Expr::int(rows))
    }
}

/// How many parts of so many keys there are.
pub(super) fn parts(problem: &Problem, part: i64) -> Expr {
    (problem.key_count() + Expr::int(part - 1)).floor_div(Expr::int(part))
}

impl KernelBody for Attend {
    fn frame(&self) -> Frame<'_> {
        let Problem { func, statements, behind, kept, sum, epilogue, .. } = &*self.problem;
        let blocks = self.problem.batch_count() * self.row_tiles() * self.parts().unwrap_or(Expr::int(1));
        let threads = u32::try_from(self.tiling.threads()).unwrap_or(u32::MAX);
        let shape = LaunchShape { shared_bytes: self.shared_bytes, ..LaunchShape::blocks(blocks, threads) };
        let (taken, more_kept) = match self.tiling.part {
            Some(_) => (*behind, vec![*sum]),
            None => (statements.len(), epilogue.kept()),
        };
        let least_blocks = match self.tiling.unit {
            // While one block waits for its tiles, another multiplies. Its threads may have all registers that a thread can have.
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
        let mut words = Template::default();
        let words = &mut words;
        self.constants(kernel, words)?;
        let places = Places::new(kernel, &self.problem);
        self.which_block(kernel, words, &places)?;
        let tiles = self.tiles();
        self.declare(kernel, words, &tiles);
        let [queries, keys, values] = &tiles;
        words.print(kernel, "// Queries, and the first keys.");
        self.bring_queries(kernel, words, &places, queries)?;
        self.bring(kernel, words, &places, (keys, "tile_k", "key_first"))?;
        self.end_copies(kernel, &tiles);
        words.print(kernel, "for (long long $key0 = $key_first; $key0 < $key_end; $key0 += $KEYS) {");
        kernel.indent();
        words.print(kernel, "const long long $key_next = $key0 + $KEYS;");
        self.is_inside(kernel, words);
        self.arrive(kernel, &tiles);
        self.bring(kernel, words, &places, (values, "tile_v", "key0"))?;
        self.end_copies(kernel, &tiles);
        match self.tiling.unit {
            Unit::Warps { .. } => {
                warps::multiply(kernel, words);
                warps::soften(kernel, words, self, &places)?;
            }
            Unit::Threads { .. } => {
                threads::multiply(kernel, words);
                threads::soften(kernel, words, self, &places)?;
            }
        }
        self.arrive(kernel, &tiles);
        words.print(kernel, "if ($key_next < $key_end) {");
        kernel.indent();
        self.bring(kernel, words, &places, (keys, "tile_k", "key_next"))?;
        kernel.close();
        self.end_copies(kernel, &tiles);
        match self.tiling.unit {
            Unit::Warps { .. } => warps::weigh(kernel, words),
            Unit::Threads { .. } => threads::weigh(kernel, words),
        }
        kernel.close();
        match self.tiling.unit {
            Unit::Warps { .. } => warps::finish(kernel, words, self, &places),
            Unit::Threads { .. } => threads::finish(kernel, words, self, &places),
        }
    }
}

impl Attend {
    /// Sets the words that are numbers.
    fn constants(&self, kernel: &mut Kernel<'_>, words: &mut Template) -> Result<(), String> {
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
                let (mma, pair) = match is_bfloat {
                    true => ("rx_mma_bf16", "rx_pair_bf16"),
                    false => ("rx_mma_f16", "rx_pair_f16"),
                };
                kernel.need(mma);
                kernel.need(pair);
                words.set("MMA", mma);
                words.set("PAIR", pair);
            }
            Unit::Threads { rows, pack, .. } => {
                words.set("OWN", rows);
                words.set("OWN_COLUMNS", tiling.padded(width.1) / 16);
                words.set("PACK", pack);
                words.set("LANES", 16);
            }
        }
        kernel.need("rx_exp2");
        kernel.need("RX_INFINITY");
        kernel.need("RX_SHARED");
        words.set("ROW_COUNT", kernel.operand(&self.problem.row_count(), 0)?);
        words.set("KEY_COUNT", kernel.operand(&self.problem.key_count(), 0)?);
        Ok(())
    }

    /// Columns side by side that a thread has.
    pub(super) fn pack(&self) -> i64 {
        match self.tiling.unit {
            Unit::Warps { .. } => 2,
            Unit::Threads { pack, .. } => pack,
        }
    }

    /// Prints which rows and keys a block has.
    fn which_block(&self, kernel: &mut Kernel<'_>, words: &mut Template, places: &Places<'_>) -> Result<(), String> {
        let row_tiles = kernel.operand(&self.row_tiles(), 0)?;
        words.set("ROW_TILES", row_tiles);
        words.print(kernel, "const long long $rows = $ROW_COUNT, $keys = $KEY_COUNT, $row_tiles = $ROW_TILES;");
        match self.parts() {
            None => words.print(
                kernel,
                "
                long long $key_first = 0, $key_end = $keys;
                const long long $block = blockIdx.x;
                ",
            ),
            Some(parts) => {
                let parts = kernel.operand(&parts, 0)?;
                words.set("PARTS", parts);
                words.set("PART", self.tiling.part.unwrap_or(1));
                words.print(
                    kernel,
                    "
                    const long long $parts = $PARTS, $part = blockIdx.x % $parts, $block = blockIdx.x / $parts;
                    long long $key_first = $part * $PART;
                    long long $key_end = $key_first + $PART < $keys ? $key_first + $PART : $keys;
                    ",
                );
            }
        }
        if !self.bounds.end.is_empty() {
            words.print(
                kernel,
                "
                // Rows behind see more keys, mostly: their blocks begin first.
                const long long $row0 = ($row_tiles - 1 - $block % $row_tiles) * $ROWS, $batch = $block / $row_tiles;
                ",
            );
        } else {
            words.print(kernel, "const long long $row0 = $block % $row_tiles * $ROWS, $batch = $block / $row_tiles;");
        }
        places.batch(kernel, words, "batch")?;
        places.at_batch(kernel);
        self.leave_out_unseen(kernel, words, places)
    }

    /// Prints how a block leaves out keys that none of its rows sees.
    fn leave_out_unseen(
        &self,
        kernel: &mut Kernel<'_>,
        words: &mut Template,
        places: &Places<'_>,
    ) -> Result<(), String> {
        let bounds = &self.bounds;
        if bounds.is_empty() {
            return Ok(());
        }
        kernel.need("rx_min");
        words.set("THREADS", self.tiling.threads());
        words.print(
            kernel,
            "
            // The keys from the first that a row of the block sees to the last; and those that all of its rows see.
            __shared__ long long $seen[4];
            if (threadIdx.x == 0) $seen[0] = $seen[3] = $key_end, $seen[1] = $seen[2] = $key_first;
            __syncthreads();
            for (long long $row = $row0 + threadIdx.x; $row < $row0 + $ROWS && $row < $rows; $row += $THREADS) {
            ",
        );
        kernel.indent();
        places.at_row(kernel, words, "row")?;
        words.print(kernel, "long long $row_first = $key_first, $row_end = $key_end;");
        for first in &bounds.first {
            words.set("BOUND", kernel.operand(first, 0)?);
            words.print(kernel, "$row_first = rx_max<long long>($row_first, $BOUND);");
        }
        for end in &bounds.end {
            words.set("BOUND", kernel.operand(end, 0)?);
            words.print(kernel, "$row_end = rx_min<long long>($row_end, $BOUND);");
        }
        words.print(
            kernel,
            "
            atomicMin(&$seen[0], $row_first), atomicMax(&$seen[1], $row_end);
            atomicMax(&$seen[2], $row_first), atomicMin(&$seen[3], $row_end);
            ",
        );
        kernel.close();
        words.print(
            kernel,
            "
            __syncthreads();
            $key_first = $seen[0], $key_end = $seen[1];
            const long long $all_first = $seen[2], $all_end = $seen[3];
            ",
        );
        places.at_batch(kernel);
        Ok(())
    }

    /// Prints the tiles in shared memory and a thread's registers.
    fn declare(&self, kernel: &mut Kernel<'_>, words: &mut Template, tiles: &[Tile<'_>; 3]) {
        let [queries, keys, values] = tiles;
        words.set("STRIDE_Q", queries.stride);
        words.set("STRIDE_K", keys.stride);
        words.set("STRIDE_V", values.stride);
        words.set("ELEMENT", queries.element);
        kernel.need_storage(self.tiling.dtype());
        words.print(
            kernel,
            "
            RX_SHARED($shared);
            $ELEMENT* $tile_q = ($ELEMENT*)$shared;
            $ELEMENT* $tile_k = $tile_q + $ROWS * $STRIDE_Q;
            $ELEMENT* $tile_v = $tile_k + $KEYS * $STRIDE_K;
            ",
        );
        match self.tiling.unit {
            Unit::Warps { .. } => warps::declare(kernel, words),
            Unit::Threads { .. } => {
                words.print(kernel, "float* $tile_p = $tile_v + $KEYS * $STRIDE_V;");
                threads::declare(kernel, words);
            }
        }
        words.print(
            kernel,
            "
            // Of each row the largest score, and what the exponentials less it add up to.
            float $most[$OWN], $total[$OWN];
            #pragma unroll
            for (int $i = 0; $i < $OWN; ++$i) $most[$i] = -RX_INFINITY, $total[$i] = 0.0f;
            ",
        );
    }

    fn bring_queries(
        &self,
        kernel: &mut Kernel<'_>,
        words: &mut Template,
        places: &Places<'_>,
        queries: &Tile<'_>,
    ) -> Result<(), String> {
        let tile = words.word(kernel, "tile_q");
        queries.print(kernel, words, (&tile, self.tiling.threads()), &mut |kernel, words| {
            words.print(kernel, "const long long $row = $row0 + $line;");
            places.at_row(kernel, words, "row")?;
            Ok(format!("{} < {}", words.word(kernel, "row"), words.word(kernel, "rows")))
        })
    }

    /// Prints how a tile of keys or values is brought, from a key on.
    fn bring(
        &self,
        kernel: &mut Kernel<'_>,
        words: &mut Template,
        places: &Places<'_>,
        (tile, name, first): (&Tile<'_>, &'static str, &'static str),
    ) -> Result<(), String> {
        places.at_batch(kernel);
        let (name, first) = (words.word(kernel, name), words.word(kernel, first));
        words.set("FIRST", first);
        tile.print(kernel, words, (&name, self.tiling.threads()), &mut |kernel, words| {
            words.print(kernel, "const long long $key = $FIRST + $line;");
            let key = self.at_key(kernel, words);
            Ok(format!("{key} < {}", words.word(kernel, "key_end")))
        })
    }

    /// From here on the loop of keys has the value of `$key`.
    pub(super) fn at_key(&self, kernel: &mut Kernel<'_>, words: &mut Template) -> String {
        let key = words.word(kernel, "key");
        match kernel.dtype_of(self.problem.key.var) {
            DType::INT64 => kernel.name_var(self.problem.key.var, &key, true),
            narrow => {
                let ctype = types::value(narrow).unwrap_or("int");
                kernel.name_var(self.problem.key.var, &format!("(({ctype}){key})"), true);
            }
        }
        key
    }

    fn end_copies(&self, kernel: &mut Kernel<'_>, tiles: &[Tile<'_>; 3]) {
        if tiles.iter().any(Tile::is_copied) {
            kernel.line("rx_copies_end();");
        }
    }

    fn arrive(&self, kernel: &mut Kernel<'_>, tiles: &[Tile<'_>; 3]) {
        if tiles.iter().any(Tile::is_copied) {
            kernel.line("rx_copies_arrive<0>();");
        }
        kernel.line("__syncthreads();");
    }

    /// Prints what is done of row `$row`, whose exponentials add up to `$whole`.
    pub(super) fn row_done(
        &self,
        kernel: &mut Kernel<'_>,
        words: &mut Template,
        places: &Places<'_>,
    ) -> Result<(), String> {
        if self.tiling.part.is_some() {
            let name = kernel.scratch_buffer(0, "partial", "float");
            words.set("partial", name);
            words.set("SHARE", "");
            words.set("PARTIAL", self.problem.width.1 + 2);
            words.print(
                kernel,
                "
                float* $out = $partial + (($batch * $parts + $part) * $rows + $row) * $PARTIAL;
                if ($lane % $LANES == 0) $out[0] = $most[$i], $out[1] = $whole;
                ",
            );
            return Ok(());
        }
        places.at_row(kernel, words, "row")?;
        share(kernel, words, &self.problem);
        let share = words.word(kernel, "share");
        words.set("SHARE", format!(" * {share}"));
        Ok(())
    }

    /// Prints what is done of the sums that a thread has side by side, of the columns from `$column0` on: `sum` is that of number `$e`.
    pub(super) fn columns_done(
        &self,
        kernel: &mut Kernel<'_>,
        words: &mut Template,
        sum: &'static str,
    ) -> Result<(), String> {
        let (problem, width) = (&*self.problem, self.pack());
        let is_padded = self.tiling.padded(problem.width.1) != problem.width.1;
        let extent = Expr::int(problem.width.1);
        let last = Some((problem.width.0, &extent));
        let mut packs = None;
        if self.tiling.part.is_none() && width > 1 && problem.width.1 % width == 0 {
            let which = words.word(kernel, "e");
            packs = problem.epilogue.packs(kernel, &problem.func, last, (width, &which));
        }
        words.set("SIDE", width);
        words.print(
            kernel,
            "
            #pragma unroll
            for (int $e = 0; $e < $SIDE; ++$e) {
                const long long $column = $column0 + $e;
            ",
        );
        kernel.indent();
        if is_padded {
            words.print(kernel, "if ($column >= $COLUMNS) continue;");
        }
        words.print(kernel, sum);
        match self.tiling.part {
            Some(_) => words.print(kernel, "$out[2 + $column] = $value;"),
            None => {
                at_column(kernel, words, problem, "column");
                let value = words.word(kernel, "value");
                problem.epilogue.print(kernel, &problem.func, &value, packs.as_ref())?;
            }
        }
        kernel.close();
        let Some(packs) = packs else { return Ok(()) };
        at_column(kernel, words, problem, "column0");
        if is_padded {
            words.print(kernel, "if ($column0 < $COLUMNS) {");
            kernel.indent();
        }
        problem.epilogue.store(kernel, &problem.func, &packs)?;
        if is_padded {
            kernel.close();
        }
        Ok(())
    }
}

/// From here on the loop of the values' elements has the value of a word.
pub(super) fn at_column(kernel: &mut Kernel<'_>, words: &mut Template, problem: &Problem, word: &'static str) {
    let column = words.word(kernel, word);
    match kernel.dtype_of(problem.width.0) {
        DType::INT64 => kernel.name_var(problem.width.0, &column, true),
        narrow => {
            let ctype = types::value(narrow).unwrap_or("int");
            kernel.name_var(problem.width.0, &format!("(({ctype}){column})"), true);
        }
    }
}

/// Prints what sums of a row are multiplied with, `$share`: one over `$whole`, and 0 where nothing was added up.
pub(super) fn share(kernel: &mut Kernel<'_>, words: &mut Template, problem: &Problem) {
    match problem.is_zero_of_none {
        true => words.print(kernel, "const float $share = $keys == 0 || $whole == 0.0f ? 0.0f : 1.0f / $whole;"),
        false => words.print(kernel, "const float $share = $keys == 0 ? 0.0f : 1.0f / $whole;"),
    }
}
