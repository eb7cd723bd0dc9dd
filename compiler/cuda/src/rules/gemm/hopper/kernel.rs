//! Kernel template for `sm_90a`: a persistent, warp-specialized pipeline with TMA copies and `wgmma`.
//!
//! ```text
//! producer (one thread of the last warpgroup):      consumers (one or two warpgroups):
//!     for each tile of C, for each K tile:              for each tile of C:
//!         wait(empty[slot])                                 for each K tile:
//!         expect(full[slot], bytes)                             wait(full[slot])
//!         TMA copies of A and B to slot                         wgmma on slot
//!         next slot                                             wait for the previous wgmma
//!                                                               arrive(empty[previous slot])
//!                                                           wait for the last wgmma
//!                                                           arrive(empty[last slot])
//!                                                           epilogue
//! ```
//!
//! The first K tile of a tile of C has no previous slot, so its iteration releases none.
//!
//! Requires: both factors are dense views ([`View`]). Guarantees: the grid has at most as many blocks as fit on the
//! device at once, and each block computes its tiles of C one after the other, so that the next tile's copies overlap
//! the epilogue.
//!
//! Reference: PTX ISA, `cp.async.bulk.tensor` and `mbarrier`; CUTLASS's
//! `include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp`.

use super::super::kernel::{TileNames, TiledProduct};
use super::super::names::{GemmNames, tiles_of};
use super::super::operand::{Major, storage_of};
use super::super::problem::{Factor, Initial, Problem};
use super::super::tiles::{Tiling, Unit};
use super::super::warps;
use super::view::View;
use super::{LINE, ROWS, multiply};
use crate::printer::{Kernel, expr};
use crate::rules::epilogue::reads;
use crate::rules::{Frame, KernelBody, uses};
use rx_tir::{BufferId, Expr};

/// The number of columns of a tile from which on the consumers need more registers than a block's threads start with.
/// The producer then gives up registers for them (`setmaxnreg`).
const WIDE: i64 = 256;

/// The size of an `mbarrier` in shared memory, in bytes.
const BARRIER: i64 = 8;

/// Names that the emitted code declares itself.
const OWN_NAMES: &[&str] = &[
    "tiles", "i", "j", "k", "e", "slot", "phase", "full", "empty", "lane", "warp", "team", "tile", "number", "blocks",
    "from_a", "from_b",
];

/// The kernel of a product whose tiles are copied with TMA.
pub(crate) struct TmaProduct {
    product: TiledProduct,
    /// The number of multiprocessors of the device.
    units: i64,
}

/// The tiles of one factor.
struct Side<'p> {
    view: &'p View,
    /// The extent of a tile along the free axis: M for `A`, N for `B`.
    rows: i64,
    /// The extent of a box along the free axis. One TMA copy loads one box.
    of_box: i64,
    /// The C type of an element.
    element: &'static str,
    /// The name of the tensor map, a parameter of the kernel.
    map: String,
}

impl TmaProduct {
    /// Creates the kernel, and sets the size of its shared memory to that of the tiles and barriers.
    ///
    /// # Errors
    /// The size does not fit 32 bits.
    pub(crate) fn new(mut product: TiledProduct, units: u32) -> Result<TmaProduct, String> {
        let Tiling { m, n, stages, .. } = product.tiling;
        let bytes = stages * ((m + n) * LINE + 2 * BARRIER);
        product.shared_bytes = u32::try_from(bytes).map_err(|error| error.to_string())?;
        Ok(TmaProduct { product, units: i64::from(units.max(1)) })
    }

    /// Returns how each factor is loaded, for the schedule's note.
    pub(crate) fn note(&self) -> String {
        let Problem { a, b, .. } = &*self.product.problem;
        let text = [('A', "M", a), ('B', "N", b)].map(|(name, free, factor)| {
            let along = match &factor.view {
                Ok(View { along: Major::Mn, .. }) => free,
                _ => "K",
            };
            format!("{name}: TMA copies along {along}")
        });
        text.join("; ")
    }

    /// Returns the number of blocks that fit on a multiprocessor.
    fn per_unit(&self) -> i64 {
        if self.product.tiling.m == ROWS { 2 } else { 1 }
    }

    /// Returns the number of consumer threads; the threads after them are the producer's warpgroup.
    fn multiplying(&self) -> i64 {
        self.product.tiling.m / ROWS * 128
    }

    /// Adds the tensor map of one factor, with `rows` rows per tile.
    fn side<'p>(&self, kernel: &mut Kernel<'_>, name: char, factor: &'p Factor, rows: i64) -> Result<Side<'p>, String> {
        let Unit::Warps { kind, .. } = self.product.tiling.unit else {
            return Err("requires a tile for tensor cores; found another tile".to_owned());
        };
        let view = factor.view.as_ref().map_err(Clone::clone)?;
        // A line of a box has 128 bytes, so an MN-major tile wider than that needs several boxes.
        let of_box = if view.along == Major::Mn { LINE / kind.bytes() } else { rows };
        let map = view.map(kernel, &format!("map_{name}"), of_box, self.product.tiling.k)?;
        Ok(Side { view, rows, of_box, element: storage_of(kind, name), map })
    }

    /// Declares the tiles and initializes the barriers in shared memory, and declares the variables of the pipeline.
    fn declare(&self, kernel: &mut Kernel<'_>, names: &GemmNames, sides: &[Side<'_>; 2]) {
        let Tiling { k, stages, .. } = self.product.tiling;
        let shared = kernel.fresh_name("shared");
        kernel.line(&format!("RX_SHARED({shared});"));
        let mut offset = 0;
        for (side, tile) in sides.iter().zip(&names.tiles) {
            let (element, elements) = (side.element, side.rows * k);
            let at = if offset == 0 { shared.clone() } else { format!("({shared} + {offset})") };
            kernel.line(&format!("{element}* {tile} = ({element}*){at};  // {stages} tiles of {elements} elements"));
            offset += stages * side.rows * LINE;
        }
        kernel.line("// A slot is full when its copies have arrived, and empty when all warps have multiplied them.");
        kernel.line(&format!("rx_barrier *full = (rx_barrier*)({shared} + {offset}), *empty = full + {stages};"));
        kernel.open("if (threadIdx.x == 0) {");
        kernel.open(&format!("for (int i = 0; i < {stages}; ++i) {{"));
        kernel.line("rx_barrier_init(&full[i], 1);");
        kernel.line(&format!("rx_barrier_init(&empty[i], {});", self.multiplying() / 32));
        kernel.close();
        kernel.line("rx_fence_barrier_init();");
        kernel.close();
        kernel.line("__syncthreads();");
        kernel.line("const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;");
        kernel.line("int slot = 0;");
        kernel.line("unsigned phase = 0;");
    }

    /// Opens the loop over the block's tiles of the result. Returns the texts of the first K value of K tile number
    /// `tile` (a variable of the emitted code), and of the number of K tiles (with split-K, of one slice).
    fn open(
        &self,
        kernel: &mut Kernel<'_>,
        names: &mut GemmNames,
        tile_names: &TileNames,
    ) -> Result<(String, String), String> {
        let (product, depth) = (&self.product, self.product.tiling.k);
        kernel.line("#pragma unroll 1");
        kernel.open("for (int number = blockIdx.x; number < blocks; number += gridDim.x) {");
        product.which_tile(kernel, names, tile_names, "number")?;
        Ok(match (&tile_names.slice, product.tiles_of_part()) {
            (Some(slice), Some(tiles)) => (format!("{slice} * {} + tile * {depth}", tiles * depth), tiles.to_string()),
            _ => {
                let tiles = kernel.operand(&tiles_of(product.problem.k.extent(), depth), expr::RELATION + 1)?;
                (format!("tile * {depth}"), tiles)
            }
        })
    }

    /// Emits the producer: one thread that issues the TMA copies.
    fn produce_tiles(
        &self,
        kernel: &mut Kernel<'_>,
        mut names: GemmNames,
        tile_names: &TileNames,
        sides: &[Side<'_>; 2],
    ) -> Result<(), String> {
        let Tiling { m, n, k, stages, .. } = self.product.tiling;
        let first = self.multiplying();
        kernel.open(&format!("if (warp >= {}) {{", first / 32));
        if n >= WIDE {
            kernel.need("rx_registers");
            kernel.line("rx_registers_fewer<24>();");
        }
        kernel.line("// Producer: one thread issues the TMA copies of the tiles.");
        kernel.line(&format!("if (threadIdx.x != {first}) return;"));
        let (sum0, tiles) = self.open(kernel, &mut names, tile_names)?;
        kernel.line("#pragma unroll 1");
        kernel.open(&format!("for (int tile = 0; tile < {tiles}; ++tile) {{"));
        kernel.line("rx_barrier_wait(&empty[slot], phase ^ 1);");
        kernel.line(&format!("rx_barrier_expect(&full[slot], {});", (m + n) * LINE));
        kernel.line(&format!("const int {} = (int)({sum0});", names.sum0));
        for (side, (tile, row0)) in sides.iter().zip(names.tiles.iter().zip([&names.row0, &names.column0])) {
            for at in (0..side.rows).step_by(side.of_box.max(1) as usize) {
                let plus = |text: String, more: i64| if more == 0 { text } else { format!("{text} + {more}") };
                let row = plus(if names.index == "int" { row0.clone() } else { format!("(int){row0}") }, at);
                let to = plus(format!("slot * {}", side.rows * k), at * k);
                let places = side.view.places(kernel, &row, &names.sum0)?;
                kernel.line(&format!("rx_tma_load(&{tile}[{to}], {}, &full[slot], {places});", side.map));
            }
        }
        kernel.line(&format!("if (++slot == {stages}) slot = 0, phase ^= 1;"));
        (0..2).for_each(|_| kernel.close());
        kernel.line("return;");
        kernel.close();
        Ok(())
    }

    /// Emits the consumers: the warpgroups that multiply and store.
    fn multiply(
        &self,
        kernel: &mut Kernel<'_>,
        mut names: GemmNames,
        tile_names: &TileNames,
        sides: &[Side<'_>; 2],
    ) -> Result<(), String> {
        let Tiling { n, k, stages, .. } = self.product.tiling;
        if n >= WIDE {
            kernel.line("rx_registers_more<240>();");
        }
        kernel.line("const int team = __shfl_sync(0xffffffffu, warp / 4, 0);");
        let (_, tiles) = self.open(kernel, &mut names, tile_names)?;
        kernel.need("rx_unknown");
        kernel.line(&format!("const int tiles = rx_unknown({tiles});"));
        warps::declare_sums(kernel, &names, self.product.tiling)?;
        kernel.line("#pragma unroll 1");
        kernel.open("for (int tile = 0; tile < tiles; ++tile) {");
        kernel.line("rx_barrier_wait(&full[slot], phase);");
        for ((side, tile), from) in sides.iter().zip(&names.tiles).zip(["from_a", "from_b"]) {
            kernel.line(&format!("const {}* {from} = {tile} + slot * {};", side.element, side.rows * k));
        }
        let [a, b] = sides;
        multiply(kernel, &names, self.product.tiling, [a.view.along, b.view.along])?;
        let before = format!("rx_barrier_arrive(&empty[slot == 0 ? {} : slot - 1]);", stages - 1);
        kernel.line("// The products of the previous tile are done, so its slot is empty.");
        kernel.line("rx_wgmma_wait<1>();");
        kernel.line(&format!("if (tile > 0 && lane == 0) {before}"));
        kernel.line(&format!("if (++slot == {stages}) slot = 0, phase ^= 1;"));
        kernel.close();
        kernel.line(&format!("rx_wgmma_wait_all({}[0]);", names.sums));
        kernel.line(&format!("if (tiles > 0 && lane == 0) {before}"));
        self.product.finish(kernel, &names, tile_names.slice.as_deref())?;
        kernel.close();
        Ok(())
    }
}

impl KernelBody for TmaProduct {
    fn frame(&self) -> Frame<'_> {
        let problem = &*self.product.problem;
        let mut frame = self.product.frame();
        let [blocks, ..] = &mut frame.shape.grid;
        *blocks = blocks.clone().min(Expr::int(self.units * self.per_unit()));
        // The factors are passed as tensor maps. A factor is passed as a pointer too only if the initial value or the
        // epilogue uses it, or if its buffer is that of the result.
        let starts_with = |id: BufferId| match &problem.initial {
            Initial::Value(value) => reads(value, id),
            _ => false,
        };
        let behind = problem.statements.get(1..).unwrap_or_default();
        let factors = [&problem.a, &problem.b].into_iter().filter_map(|factor| factor.view.as_ref().ok());
        let factors = factors
            .map(|view| view.buffer)
            .filter(|id| *id != problem.buffer && !starts_with(*id) && !behind.iter().any(|stmt| uses(stmt, *id)));
        frame.kept.extend(factors);
        // The minimum number of blocks is always declared: it fixes the number of registers that threads start with, as
        // `setmaxnreg` requires.
        Frame { least_blocks: u32::try_from(self.per_unit()).ok(), own_names: OWN_NAMES, ..frame }
    }

    fn print(&self, kernel: &mut Kernel<'_>) -> Result<(), String> {
        let product = &self.product;
        let Problem { a, b, .. } = &*product.problem;
        ["RX_SHARED", "rx_barrier", "rx_tma_load"].into_iter().for_each(|name| kernel.need(name));
        let sides = [self.side(kernel, 'a', a, product.tiling.m)?, self.side(kernel, 'b', b, product.tiling.n)?];
        let names = GemmNames::new(kernel, &product.problem, true)?;
        let tile_names = product.tile_names(kernel);
        self.declare(kernel, &names, &sides);
        let blocks = kernel.operand(&product.blocks(), expr::RELATION + 1)?;
        kernel.line(&format!("const int blocks = {blocks};"));
        self.produce_tiles(kernel, names.clone(), &tile_names, &sides)?;
        self.multiply(kernel, names, &tile_names, &sides)
    }
}
