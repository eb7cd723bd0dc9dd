//! Kernel template of a tiled product: a multistage pipeline through a ring of tiles in shared memory.
//!
//! ```text
//! for (tile = 1 - stages; tile < tiles; ++tile) {
//!     coming = tile + stages - 1;
//!     if (tile >= 0) { wait until copies of `tile` arrived; __syncthreads(); }
//!     if (coming < tiles) load tile `coming` to slot coming % stages;    // cp.async, or to registers
//!     if (tile >= 0) multiply the tiles in slot tile % stages;
//!     if (coming < tiles) store staged registers to slot coming % stages;
//! }
//! epilogue(sums);
//! ```
//!
//! Requires: `stages` >= 2. Guarantees: one barrier per K tile suffices, because the slot of `coming` is the slot of
//! tile `tile - 1`, which all threads multiplied before the barrier.
//!
//! Reference: CUTLASS's `include/cutlass/gemm/threadblock/mma_multistage.h`, and for the order of blocks
//! `include/cutlass/gemm/threadblock/threadblock_swizzle.h`.

use super::names::{GemmNames, OWN_NAMES, tiles_of};
use super::operand::Operand;
use super::problem::{Initial, Problem};
use super::tiles::{Mma, Tiling, Unit, sum_type};
use super::{threads, warps};
use crate::printer::{Kernel, expr, types};
use crate::rules::epilogue::Packs;
use crate::rules::{Frame, KernelBody};
use crate::source::LaunchShape;
use rx_base::DType;
use rx_tir::Expr;
use std::rc::Rc;

/// Rows of tiles that consecutive blocks cover before they move to the next column of tiles, so that they share factors
/// in the L2 cache.
const GROUP: i64 = 8;

/// The kernel of a tiled product.
pub(crate) struct TiledProduct {
    pub(crate) problem: Rc<Problem>,
    pub(crate) tiling: Tiling,
    /// The number of split-K slices. If there is more than one, [`super::split_k::SplitKReduction`] adds them.
    pub(crate) slices: i64,
    pub(crate) shared_bytes: u32,
}

impl TiledProduct {
    /// Creates the kernel and computes the size of its shared memory.
    ///
    /// # Errors
    /// No accumulator type exists for the dtype, or the size does not fit 32 bits.
    pub(crate) fn new(problem: Rc<Problem>, tiling: Tiling, slices: i64) -> Result<TiledProduct, String> {
        let mut product = TiledProduct { problem, tiling, slices, shared_bytes: 0 };
        let [a, b] = product.operands()?;
        product.shared_bytes = u32::try_from(a.shared_bytes() + b.shared_bytes()).map_err(|error| error.to_string())?;
        Ok(product)
    }

    /// Returns the operands: the tiles of both factors, and how they are loaded.
    fn operands(&self) -> Result<[Operand<'_>; 2], String> {
        let Problem { a, b, m, n, k, dtype, .. } = &*self.problem;
        Ok([
            Operand::new('a', a, (m, self.tiling.m), k, self.tiling, *dtype)?,
            Operand::new('b', b, (n, self.tiling.n), k, self.tiling, *dtype)?,
        ])
    }

    /// Returns the number of tiles of the result times the number of split-K slices. It is also the number of blocks,
    /// except in the kernel with TMA, where a block may compute several tiles.
    pub(super) fn blocks(&self) -> Expr {
        let Problem { batch, m, n, .. } = &*self.problem;
        let tiles = tiles_of(m.extent(), self.tiling.m) * tiles_of(n.extent(), self.tiling.n) * batch.extent();
        tiles * Expr::int(self.slices)
    }

    /// Returns the number of K tiles per slice, rounded up; `None` if the extent of K is unknown. Tiles of the
    /// last slices may begin beyond the end of K.
    pub(super) fn tiles_of_part(&self) -> Option<i64> {
        let tiles = (self.problem.k.constant()? + self.tiling.k - 1) / self.tiling.k;
        Some((tiles + self.slices - 1) / self.slices)
    }

    /// Returns how each factor is loaded, for the schedule's note.
    pub(crate) fn note(&self) -> String {
        let Ok(operands) = self.operands() else { return String::new() };
        operands.map(|one| one.comment()).join("; ")
    }
}

impl KernelBody for TiledProduct {
    fn frame(&self) -> Frame<'_> {
        let Problem { func, statements, own, buffer, epilogue, .. } = &*self.problem;
        let threads = u32::try_from(self.tiling.threads()).unwrap_or(u32::MAX);
        let shape = LaunchShape { shared_bytes: self.shared_bytes, ..LaunchShape::blocks(self.blocks(), threads) };
        let (taken, kept) = match self.slices {
            1 => (statements.len(), epilogue.kept()),
            _ => (*own, epilogue.within.iter().copied().chain([*buffer]).collect()),
        };
        // Tiles of 128 x 128 request two blocks per multiprocessor, so that one block multiplies while the other waits
        // at its barrier. Without the request, the compiler gives their threads too many registers for two blocks;
        // smaller tiles do not need it.
        let holds_more = match self.tiling.unit {
            // With two blocks, staged chunks do not fit in the registers that are left beside the sums.
            Unit::Warps { mma: Mma::Warpgroup, .. } => {
                self.operands().is_ok_and(|operands| operands.iter().any(Operand::is_staged))
            }
            _ => false,
        };
        Frame {
            func: Some(func),
            kept,
            least_blocks: (self.tiling.m * self.tiling.n == 128 * 128 && !holds_more).then_some(2),
            own_names: OWN_NAMES,
            ..Frame::new(shape, statements.iter().take(taken))
        }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let problem = &*self.problem;
        let operands = self.operands()?;
        let sum_is_whole = problem.k.constant().is_some_and(|extent| extent % self.tiling.k == 0) && self.slices == 1;
        let mut names = GemmNames::new(kernel, problem, sum_is_whole)?;
        let tile_names = self.tile_names(kernel);
        self.which_tile(kernel, &mut names, &tile_names, "blockIdx.x")?;
        let slice = tile_names.slice;
        self.declare(kernel, &names, &operands)?;
        let Tiling { k: depth, stages, .. } = self.tiling;
        let index = names.index;
        let (first, tiles) = match (&slice, self.tiles_of_part()) {
            (Some(slice), Some(tiles)) => (format!("{slice} * {}", tiles * depth), tiles.to_string()),
            _ => {
                let tiles = kernel.operand(&tiles_of(problem.k.extent(), depth), expr::RELATION + 1)?;
                (String::new(), tiles)
            }
        };
        let is_group = matches!(self.tiling.unit, Unit::Warps { mma: Mma::Warpgroup, .. });
        if is_group {
            kernel.line("#pragma unroll 1");
        }
        kernel.open(&format!("for ({index} tile = {}; tile < {tiles}; ++tile) {{", 1 - stages));
        kernel.line(&format!("const {index} coming = tile + {};", stages - 1));
        let has_copies = operands.iter().any(|one| !one.is_staged());
        kernel.open("if (tile >= 0) {");
        if has_copies {
            kernel.need("rx_copy16");
            kernel.line(&format!("rx_copy_wait<{}>();", stages - 2));
        }
        if is_group {
            kernel.need("rx_fence_async_proxy");
            kernel.line("rx_fence_async_proxy();");
        }
        kernel.line("__syncthreads();");
        kernel.close();
        let first = if slice.is_some() { format!("{first} + ") } else { String::new() };
        kernel.line("// The next tile goes to the slot of the previous tile.");
        self.load_tiles(kernel, &names, &operands, (&first, &tiles))?;
        if has_copies {
            kernel.line("rx_copy_commit();");
        }
        kernel.open("if (tile >= 0) {");
        kernel.line(&format!("const int slot = tile % {stages};"));
        match self.tiling.unit {
            Unit::Threads { .. } => threads::multiply(kernel, &names, self.tiling, &operands)?,
            Unit::Warps { .. } => warps::multiply(kernel, &names, self.tiling, &operands)?,
        }
        kernel.close();
        if operands.iter().any(Operand::is_staged) {
            kernel.open(&format!("if (coming < {tiles}) {{"));
            operands.iter().for_each(|operand| operand.store(kernel, &names));
            kernel.close();
        }
        if is_group {
            kernel.line("rx_wgmma_wait<0>();");
        }
        kernel.close();
        if is_group {
            kernel.line(&format!("rx_wgmma_wait_all({}[0]);", names.sums));
        }
        self.finish(kernel, &names, slice.as_deref())
    }
}

/// Names of the variables that locate a block's tile.
pub(super) struct TileNames {
    /// The number of tiles along M and N.
    tiles: [String; 2],
    /// The linear number of the tile and slice; after slice and batch are decoded, that of the tile in its batch.
    block: String,
    /// The tile's position along M and N, in tiles.
    tile: [String; 2],
    /// The index of the split-K slice; `None` without split-K.
    pub(super) slice: Option<String>,
    /// The linear index of the batch.
    batch: String,
    /// The first row of tiles of the block's group of [`GROUP`] rows.
    group: String,
    /// The rows of tiles in that group; the last group may have fewer.
    height: String,
    /// The end of the split-K slice on the K axis.
    end: String,
}

impl TiledProduct {
    /// Returns fresh names for [`TiledProduct::which_tile`].
    pub(super) fn tile_names(&self, kernel: &mut Kernel<'_>) -> TileNames {
        let mut fresh = |name: &str| kernel.fresh_name(name);
        TileNames {
            tiles: [fresh("tiles_m"), fresh("tiles_n")],
            block: fresh("block"),
            tile: [fresh("tile_m"), fresh("tile_n")],
            slice: (self.slices > 1).then(|| fresh("slice")),
            batch: fresh("batch"),
            group: fresh("group"),
            height: fresh("height"),
            end: fresh("sum_end"),
        }
    }

    /// Emits the decoding of the linear number `number` into split-K slice, batch, and tile row and column, and the
    /// first row and column of the tile. With split-K, `names.sum_end` becomes the end of the slice.
    pub(super) fn which_tile(
        &self,
        kernel: &mut Kernel<'_>,
        names: &mut GemmNames,
        tile_names: &TileNames,
        number: &str,
    ) -> Result<(), String> {
        let problem = &*self.problem;
        let Tiling { m, n, .. } = self.tiling;
        let TileNames { tiles: [tiles_m, tiles_n], block, tile: [tile_m, tile_n], slice, batch, group, height, end } =
            tile_names;
        let rows = kernel.operand(&tiles_of(problem.m.extent(), m), 0)?;
        let columns = kernel.operand(&tiles_of(problem.n.extent(), n), 0)?;
        kernel.line(&format!("const int {tiles_m} = {rows}, {tiles_n} = {columns};"));
        kernel.line(&format!("int {block} = {number};"));
        if let Some(slice) = slice {
            kernel.line(&format!("const int {slice} = {block} % {};", self.slices));
            kernel.line(&format!("{block} /= {};", self.slices));
        }
        if !problem.batch.loops.is_empty() {
            kernel.line(&format!("const int {batch} = {block} / ({tiles_m} * {tiles_n});"));
            kernel.line(&format!("{block} %= {tiles_m} * {tiles_n};"));
            names.decode(kernel, &problem.batch, batch, &|_| true)?;
        }
        kernel.line(&format!(
            "// Blocks go down {GROUP} tiles, then to the next column of tiles, so that neighbours share factors in the L2 cache."
        ));
        kernel.line(&format!("const int {group} = {block} / ({GROUP} * {tiles_n}) * {GROUP};"));
        kernel.line(&format!("const int {height} = {tiles_m} - {group} < {GROUP} ? {tiles_m} - {group} : {GROUP};"));
        kernel.line(&format!("const int {tile_m} = {group} + {block} % ({GROUP} * {tiles_n}) % {height};"));
        kernel.line(&format!("const int {tile_n} = {block} % ({GROUP} * {tiles_n}) / {height};"));
        let (index, row0, column0) = (names.index, &names.row0, &names.column0);
        kernel.line(&format!("const {index} {row0} = ({index}){tile_m} * {m}, {column0} = ({index}){tile_n} * {n};"));
        if let (Some(slice), Some(tiles)) = (slice, self.tiles_of_part()) {
            let (length, all) = (tiles * self.tiling.k, names.sum_end.clone());
            kernel.line("// End of K in this split-K slice.");
            kernel
                .line(&format!("const {index} {end} = ({slice} + 1) * ({index}){length} < {all} ? ({slice} + 1) * ({index}){length} : {all};"));
            names.sum_end = end.clone();
        }
        Ok(())
    }

    /// Emits the loads of both factors' K tile number `coming`, a variable of the emitted code, under `coming < tiles`.
    /// `first` is empty or the text `… + ` that adds the slice's first K value.
    fn load_tiles(
        &self,
        kernel: &mut Kernel<'_>,
        names: &GemmNames,
        operands: &[Operand<'_>; 2],
        (first, tiles): (&str, &str),
    ) -> Result<(), String> {
        let Tiling { k: depth, stages, .. } = self.tiling;
        for operand in operands {
            let at = usize::from(operand.side == 'b');
            let (to, tile) = (&names.to[at], &names.tiles[at]);
            let element = operand.element;
            kernel.line(&format!("{element}* {to} = {tile} + coming % {stages} * {};", operand.elements()));
        }
        kernel.line(&format!("const {} {} = {first}coming * {depth};", names.index, names.sum0));
        kernel.open(&format!("if (coming < {tiles}) {{"));
        for operand in operands {
            kernel.line(&format!("// {}.", operand.comment()));
            operand.load(kernel, names)?;
        }
        kernel.close();
        Ok(())
    }

    /// Declares the tiles in shared memory, the registers of staged chunks, and the sums, and computes the row parts of
    /// separable addresses.
    fn declare(&self, kernel: &mut Kernel<'_>, names: &GemmNames, [a, b]: &[Operand<'_>; 2]) -> Result<(), String> {
        kernel.need("RX_SHARED");
        let shared = kernel.fresh_name("shared");
        kernel.line(&format!("RX_SHARED({shared});"));
        for (operand, tile, offset) in [(a, &names.tiles[0], 0), (b, &names.tiles[1], a.shared_bytes())] {
            let element = operand.element;
            let at = if offset == 0 { shared.clone() } else { format!("({shared} + {offset})") };
            let size = format!("{} tiles of {} elements", self.tiling.stages, operand.elements());
            kernel.line(&format!("{element}* {tile} = ({element}*){at};  // {size}"));
            operand.declare(kernel, names)?;
        }
        match self.tiling.unit {
            Unit::Threads { .. } => threads::declare(kernel, names, self.tiling, self.problem.dtype),
            Unit::Warps { .. } => warps::declare(kernel, names, self.tiling),
        }
    }

    /// Emits the epilogue of each sum, or its store as a split-K partial sum if `slice` is given.
    pub(super) fn finish(&self, kernel: &mut Kernel<'_>, names: &GemmNames, slice: Option<&str>) -> Result<(), String> {
        let problem = &*self.problem;
        let partial = match slice {
            None => None,
            Some(slice) => {
                let (ctype, _) = partial_type(&self.tiling, problem.dtype)?;
                let name = kernel.scratch_buffer(0, "slices", ctype);
                let batch = match problem.batch.loops.is_empty() {
                    true => slice.to_owned(),
                    false => {
                        let extent = kernel.operand(&problem.batch.extent(), expr::PRODUCT + 1)?;
                        let batch = batch_index(kernel, problem)?;
                        format!("({slice} * {extent} + {batch})")
                    }
                };
                let [m, n, _] = &names.ends;
                let (row, column) = (&names.row, &names.column);
                Some(format!("{name}[((long long){batch} * {m} + {row}) * {n} + {column}]"))
            }
        };
        kernel.line("// Epilogue of the tile.");
        let ragged = [(&problem.m, self.tiling.m), (&problem.n, self.tiling.n)];
        let ragged = ragged.map(|(axis, tile)| axis.constant().is_none_or(|extent| extent % tile != 0));
        let elements = Elements { problem, names, ragged, partial };
        match self.tiling.unit {
            Unit::Threads { .. } => threads::elements(kernel, &elements, self.tiling),
            Unit::Warps { .. } => warps::elements(kernel, &elements, self.tiling),
        }
    }
}

/// Returns the text of the batch's linear index, computed from the values of its loops.
fn batch_index(kernel: &mut Kernel<'_>, problem: &Problem) -> Result<String, String> {
    let mut index: Option<Expr> = None;
    for (var, extent) in &problem.batch.loops {
        let value = problem.func.var_expr(*var).cast(DType::INT64);
        index = Some(match index {
            None => value,
            Some(index) => index * extent.clone() + value,
        });
    }
    kernel.operand(&index.unwrap_or(Expr::int(0)), expr::POSTFIX)
}

/// Returns the C type of a split-K partial sum in memory, and its size in bytes.
pub(crate) fn partial_type(tiling: &Tiling, dtype: DType) -> Result<(&'static str, i64), String> {
    match tiling.unit {
        Unit::Threads { .. } => sum_type(dtype),
        Unit::Warps { kind: super::tiles::Fragment::I8 { .. }, .. } => Ok(("int", 4)),
        Unit::Warps { .. } => Ok(("float", 4)),
    }
}

/// Emits the addition of the initial value to a finished sum, unless it is the constant 0, then the epilogue.
pub(crate) fn finish_element(
    kernel: &mut Kernel<'_>,
    problem: &Problem,
    sum: &str,
    packs: Option<&Packs>,
) -> Result<(), String> {
    let dtype = problem.dtype;
    let ctype = kernel.ctype(dtype)?;
    let (wrapping, _) = sum_type(dtype)?;
    let of_integers = !matches!(wrapping, "float" | "double");
    let initial = match &problem.initial {
        Initial::Zero => None,
        Initial::Value(value) => Some(kernel.assigned(value, dtype)?),
        Initial::Existing => {
            let place = kernel.place(problem.buffer, &problem.indices)?;
            Some(types::from_storage(dtype, &place))
        }
    };
    let total = match (initial, of_integers) {
        (None, false) => sum.to_owned(),
        (None, true) => format!("({ctype}){sum}"),
        (Some(initial), false) => format!("{initial} + {sum}"),
        (Some(initial), true) => format!("({ctype})(({wrapping})({initial}) + ({wrapping}){sum})"),
    };
    problem.epilogue.print(kernel, &problem.func, &total, packs)
}

/// The context for emitting the code that finishes the elements of a tile that a thread holds: the epilogue, or the
/// stores of partial sums.
pub(crate) struct Elements<'p> {
    pub(crate) problem: &'p Problem,
    /// The names of the kernel's variables.
    pub(crate) names: &'p GemmNames,
    /// Whether the last tiles along M and N may reach beyond the end of the axis, so that elements need a bounds check.
    ragged: [bool; 2],
    /// The element of the scratch buffer to which the partial sum is stored; `None` if the epilogue follows.
    partial: Option<String>,
}

impl Elements<'_> {
    /// Opens the code for a row of the tile, guarded if the tile may be ragged.
    pub(crate) fn open_row(&self, kernel: &mut Kernel<'_>, row: &str) -> Result<(), String> {
        self.open(kernel, 0, row)
    }

    /// Opens the code for a column of the tile, guarded if the tile may be ragged.
    fn open_column(&self, kernel: &mut Kernel<'_>, column: &str) -> Result<(), String> {
        self.open(kernel, 1, column)
    }

    /// Emits the epilogue, or the store of the partial sums, for `width` adjacent elements of a row. The first is in
    /// the tile's column `first`; `sum` is the text of the sum of element `e`, a variable of the emitted code. If
    /// `width` divides the constant extent of the innermost N loop, results of the epilogue that are adjacent and
    /// aligned in memory may be stored as one vector ([`Epilogue::packs`](crate::rules::epilogue::Epilogue::packs)).
    pub(crate) fn neighbours(&self, kernel: &mut Kernel<'_>, first: &str, width: i64, sum: &str) -> Result<(), String> {
        let (problem, epilogue) = (self.problem, &self.problem.epilogue);
        let even =
            problem.n.last().is_some_and(|(_, extent)| extent.as_int().is_some_and(|extent| extent % width == 0));
        let together = self.partial.is_none() && even && width > 1;
        let packs = match together {
            false => None,
            true => {
                // The width divides the extent of N, so either all elements of the group are in bounds or none is.
                self.open_column(kernel, first)?;
                epilogue.packs(kernel, &problem.func, problem.n.last(), (width, "e"))
            }
        };
        kernel.unrolled("e", width);
        self.open_column(kernel, &format!("{first} + e"))?;
        match &self.partial {
            Some(place) => kernel.line(&format!("{place} = {sum};")),
            None => finish_element(kernel, problem, sum, packs.as_ref())?,
        }
        kernel.close();
        kernel.close();
        if let Some(packs) = &packs {
            epilogue.store(kernel, &problem.func, packs)?;
        }
        if together {
            kernel.close();
        }
        Ok(())
    }

    /// Opens the code for index `value` of the tile along M (`side` 0) or N (1), and decodes the axis's loops if the
    /// epilogue follows.
    fn open(&self, kernel: &mut Kernel<'_>, side: usize, value: &str) -> Result<(), String> {
        let names = self.names;
        let (name, zero, axis) = match side {
            0 => (&names.row, &names.row0, &self.problem.m),
            _ => (&names.column, &names.column0, &self.problem.n),
        };
        kernel.line(&format!("const {} {name} = {zero} + {value};", names.index));
        match self.ragged[side] {
            true => kernel.open(&format!("if ({name} < {}) {{", names.ends[side])),
            false => kernel.open("{"),
        }
        if self.partial.is_some() { Ok(()) } else { names.decode(kernel, axis, name, &|var| !names.is_narrow(var)) }
    }
}
