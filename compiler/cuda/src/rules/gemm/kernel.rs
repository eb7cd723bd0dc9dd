//! The kernel of a tiled product: tiles of the factors go through shared memory in a ring of stages, one barrier for each
//! tile, while the tile before is multiplied.

use super::operand::Operand;
use super::problem::{Initial, Problem};
use super::tiles::{Means, Tiling, Unit, sum_type};
use super::words::{OWN_NAMES, Words, tiles_of};
use super::{threads, warps};
use crate::printer::{Kernel, expr, types};
use crate::rules::epilogue::Packs;
use crate::rules::{Frame, KernelBody};
use crate::source::LaunchShape;
use rx_base::DType;
use rx_tir::Expr;
use std::rc::Rc;

/// Tiles of the result whose blocks run one after the other share as many rows.
const GROUP: i64 = 8;

/// A tiled product.
pub(crate) struct TiledProduct {
    pub(crate) problem: Rc<Problem>,
    pub(crate) tiling: Tiling,
    /// How many parts the sum is cut into, each for blocks of its own; more than one are added by [`super::parts::PartSums`].
    pub(crate) parts: i64,
    pub(crate) shared_bytes: u32,
}

impl TiledProduct {
    /// # Errors
    /// Where a dtype has no sum.
    pub(crate) fn new(problem: Rc<Problem>, tiling: Tiling, parts: i64) -> Result<TiledProduct, String> {
        let mut product = TiledProduct { problem, tiling, parts, shared_bytes: 0 };
        let [a, b] = product.operands()?;
        product.shared_bytes = u32::try_from(a.shared_bytes() + b.shared_bytes()).map_err(|error| error.to_string())?;
        Ok(product)
    }

    fn operands(&self) -> Result<[Operand<'_>; 2], String> {
        let Problem { a, b, m, n, k, dtype, .. } = &*self.problem;
        Ok([
            Operand::new('a', a, (m, self.tiling.m), k, self.tiling, *dtype)?,
            Operand::new('b', b, (n, self.tiling.n), k, self.tiling, *dtype)?,
        ])
    }

    /// Tiles of the result, for each part of the sum.
    pub(super) fn blocks(&self) -> Expr {
        let Problem { batch, m, n, .. } = &*self.problem;
        let tiles = tiles_of(m.extent(), self.tiling.m) * tiles_of(n.extent(), self.tiling.n) * batch.extent();
        tiles * Expr::int(self.parts)
    }

    /// Tiles of the sum that each part has; not known where the sum is whole.
    pub(super) fn tiles_of_part(&self) -> Option<i64> {
        let tiles = (self.problem.k.constant()? + self.tiling.k - 1) / self.tiling.k;
        Some((tiles + self.parts - 1) / self.parts)
    }

    /// How each factor is brought, for the schedule's note.
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
        let (taken, kept) = match self.parts {
            1 => (statements.len(), epilogue.kept()),
            _ => (*own, epilogue.within.iter().copied().chain([*buffer]).collect()),
        };
        // While one waits at its barrier, another multiplies. The largest tiles need what is left of the registers.
        let holds_more = match self.tiling.unit {
            // What waits in registers has no room beside the sums of so deep a tile.
            Unit::Warps { means: Means::Group, .. } => {
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
        let sum_is_whole = problem.k.constant().is_some_and(|extent| extent % self.tiling.k == 0) && self.parts == 1;
        let mut words = Words::new(kernel, problem, sum_is_whole)?;
        let names = self.tile_names(kernel);
        self.which_tile(kernel, &mut words, &names, "blockIdx.x")?;
        let part = names.part;
        self.declare(kernel, &words, &operands)?;
        let Tiling { k: depth, stages, .. } = self.tiling;
        let index = words.index;
        let (first, tiles) = match (&part, self.tiles_of_part()) {
            (Some(part), Some(tiles)) => (format!("{part} * {}", tiles * depth), tiles.to_string()),
            _ => {
                let tiles = kernel.operand(&tiles_of(problem.k.extent(), depth), expr::RELATION + 1)?;
                (String::new(), tiles)
            }
        };
        let is_group = matches!(self.tiling.unit, Unit::Warps { means: Means::Group, .. });
        if is_group {
            kernel.line("#pragma unroll 1");
        }
        kernel.open(&format!("for ({index} tile = {}; tile < {tiles}; ++tile) {{", 1 - stages));
        kernel.line(&format!("const {index} coming = tile + {};", stages - 1));
        let has_copies = operands.iter().any(|one| !one.is_staged());
        kernel.open("if (tile >= 0) {");
        if has_copies {
            kernel.need("rx_copy16");
            kernel.line(&format!("rx_copies_arrive<{}>();", stages - 2));
        }
        if is_group {
            kernel.need("rx_shared_is_written");
            kernel.line("rx_shared_is_written();");
        }
        kernel.line("__syncthreads();");
        kernel.close();
        let first = if part.is_some() { format!("{first} + ") } else { String::new() };
        kernel.line("// The next tile goes where the one before this was multiplied.");
        self.bring(kernel, &words, &operands, (&first, &tiles))?;
        if has_copies {
            kernel.line("rx_copies_end();");
        }
        kernel.open("if (tile >= 0) {");
        kernel.line(&format!("const int slot = tile % {stages};"));
        match self.tiling.unit {
            Unit::Threads { .. } => threads::multiply(kernel, &words, self.tiling, &operands)?,
            Unit::Warps { .. } => warps::multiply(kernel, &words, self.tiling, &operands)?,
        }
        kernel.close();
        if operands.iter().any(Operand::is_staged) {
            kernel.open(&format!("if (coming < {tiles}) {{"));
            operands.iter().for_each(|operand| operand.store(kernel, &words));
            kernel.close();
        }
        if is_group {
            kernel.line("rx_products_arrive<0>();");
        }
        kernel.close();
        if is_group {
            kernel.line(&format!("rx_sums_arrive({}[0]);", words.sums));
        }
        self.finish(kernel, &words, part.as_deref())
    }
}

/// What the text calls things on its way to a tile.
pub(super) struct TileNames {
    tiles: [String; 2],
    block: String,
    tile: [String; 2],
    /// The part of the sum, where it is cut into parts.
    pub(super) part: Option<String>,
    batch: String,
    group: String,
    height: String,
    end: String,
}

impl TiledProduct {
    /// Names for [`TiledProduct::which_tile`].
    pub(super) fn tile_names(&self, kernel: &mut Kernel<'_>) -> TileNames {
        let mut fresh = |name: &str| kernel.fresh_name(name);
        TileNames {
            tiles: [fresh("tiles_m"), fresh("tiles_n")],
            block: fresh("block"),
            tile: [fresh("tile_m"), fresh("tile_n")],
            part: (self.parts > 1).then(|| fresh("part")),
            batch: fresh("batch"),
            group: fresh("group"),
            height: fresh("height"),
            end: fresh("sum_end"),
        }
    }

    /// Prints which tile, batch and part of the sum is done of the one with this number.
    pub(super) fn which_tile(
        &self,
        kernel: &mut Kernel<'_>,
        words: &mut Words,
        names: &TileNames,
        number: &str,
    ) -> Result<(), String> {
        let problem = &*self.problem;
        let Tiling { m, n, .. } = self.tiling;
        let TileNames { tiles: [tiles_m, tiles_n], block, tile: [tile_m, tile_n], part, batch, group, height, end } =
            names;
        let rows = kernel.operand(&tiles_of(problem.m.extent(), m), 0)?;
        let columns = kernel.operand(&tiles_of(problem.n.extent(), n), 0)?;
        kernel.line(&format!("const int {tiles_m} = {rows}, {tiles_n} = {columns};"));
        kernel.line(&format!("int {block} = {number};"));
        if let Some(part) = part {
            kernel.line(&format!("const int {part} = {block} % {};", self.parts));
            kernel.line(&format!("{block} /= {};", self.parts));
        }
        if !problem.batch.loops.is_empty() {
            kernel.line(&format!("const int {batch} = {block} / ({tiles_m} * {tiles_n});"));
            kernel.line(&format!("{block} %= {tiles_m} * {tiles_n};"));
            words.decode(kernel, &problem.batch, batch, &|_| true)?;
        }
        // Blocks that run together share factors in the cache.
        kernel.line(&format!(
            "// Blocks go down {GROUP} tiles, then to the next column of tiles: so neighbours share factors."
        ));
        kernel.line(&format!("const int {group} = {block} / ({GROUP} * {tiles_n}) * {GROUP};"));
        kernel.line(&format!("const int {height} = {tiles_m} - {group} < {GROUP} ? {tiles_m} - {group} : {GROUP};"));
        kernel.line(&format!("const int {tile_m} = {group} + {block} % ({GROUP} * {tiles_n}) % {height};"));
        kernel.line(&format!("const int {tile_n} = {block} % ({GROUP} * {tiles_n}) / {height};"));
        let (index, row0, column0) = (words.index, &words.row0, &words.column0);
        kernel.line(&format!("const {index} {row0} = ({index}){tile_m} * {m}, {column0} = ({index}){tile_n} * {n};"));
        if let (Some(part), Some(tiles)) = (part, self.tiles_of_part()) {
            let (length, all) = (tiles * self.tiling.k, words.sum_end.clone());
            kernel.line("// The part's summed values end here.");
            kernel
                .line(&format!("const {index} {end} = ({part} + 1) * ({index}){length} < {all} ? ({part} + 1) * ({index}){length} : {all};"));
            words.sum_end = end.clone();
        }
        Ok(())
    }

    /// Brings the tiles of the number `coming`, or asks for them, where there are as many; `first` is what stands in front of their
    /// place in the sum.
    fn bring(
        &self,
        kernel: &mut Kernel<'_>,
        words: &Words,
        operands: &[Operand<'_>; 2],
        (first, tiles): (&str, &str),
    ) -> Result<(), String> {
        let Tiling { k: depth, stages, .. } = self.tiling;
        for operand in operands {
            let at = usize::from(operand.side == 'b');
            let (to, tile) = (&words.to[at], &words.tiles[at]);
            let element = operand.element;
            kernel.line(&format!("{element}* {to} = {tile} + coming % {stages} * {};", operand.elements()));
        }
        kernel.line(&format!("const {} {} = {first}coming * {depth};", words.index, words.sum0));
        kernel.open(&format!("if (coming < {tiles}) {{"));
        for operand in operands {
            kernel.line(&format!("// {}.", operand.comment()));
            operand.load(kernel, words)?;
        }
        kernel.close();
        Ok(())
    }

    /// Shared memory, registers of chunks on their way, sums.
    fn declare(&self, kernel: &mut Kernel<'_>, words: &Words, [a, b]: &[Operand<'_>; 2]) -> Result<(), String> {
        kernel.need("RX_SHARED");
        let shared = kernel.fresh_name("shared");
        kernel.line(&format!("RX_SHARED({shared});"));
        for (operand, tile, offset) in [(a, &words.tiles[0], 0), (b, &words.tiles[1], a.shared_bytes())] {
            let element = operand.element;
            let at = if offset == 0 { shared.clone() } else { format!("({shared} + {offset})") };
            let size = format!("{} tiles of {} elements", self.tiling.stages, operand.elements());
            kernel.line(&format!("{element}* {tile} = ({element}*){at};  // {size}"));
            operand.declare(kernel, words)?;
        }
        match self.tiling.unit {
            Unit::Threads { .. } => threads::declare(kernel, words, self.tiling, self.problem.dtype),
            Unit::Warps { .. } => warps::declare(kernel, words, self.tiling),
        }
    }

    /// Does with each sum what follows, or stores it as a part.
    pub(super) fn finish(&self, kernel: &mut Kernel<'_>, words: &Words, part: Option<&str>) -> Result<(), String> {
        let problem = &*self.problem;
        let partial = match part {
            None => None,
            Some(part) => {
                let (ctype, _) = partial_type(&self.tiling, problem.dtype)?;
                let name = kernel.scratch_buffer(0, "parts", ctype);
                let batch = match problem.batch.loops.is_empty() {
                    true => part.to_owned(),
                    false => {
                        let extent = kernel.operand(&problem.batch.extent(), expr::PRODUCT + 1)?;
                        let batch = batch_index(kernel, problem)?;
                        format!("({part} * {extent} + {batch})")
                    }
                };
                let [m, n, _] = &words.ends;
                let (row, column) = (&words.row, &words.column);
                Some(format!("{name}[((long long){batch} * {m} + {row}) * {n} + {column}]"))
            }
        };
        kernel.line("// The tile's elements.");
        let ragged = [(&problem.m, self.tiling.m), (&problem.n, self.tiling.n)];
        let ragged = ragged.map(|(axis, tile)| axis.constant().is_none_or(|extent| extent % tile != 0));
        let elements = Elements { problem, words, ragged, partial };
        match self.tiling.unit {
            Unit::Threads { .. } => threads::elements(kernel, &elements, self.tiling),
            Unit::Warps { .. } => warps::elements(kernel, &elements, self.tiling),
        }
    }
}

/// The batch's linear index again, from its loops.
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

/// The type of a part of a sum in memory, and its bytes.
pub(crate) fn partial_type(tiling: &Tiling, dtype: DType) -> Result<(&'static str, i64), String> {
    match tiling.unit {
        Unit::Threads { .. } => sum_type(dtype),
        Unit::Warps { kind: super::tiles::Fragment::I8 { .. }, .. } => Ok(("int", 4)),
        Unit::Warps { .. } => Ok(("float", 4)),
    }
}

/// What a finished sum is added to, and what follows.
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
        Initial::Kept => {
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

/// The elements of a tile that a thread has.
pub(crate) struct Elements<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) words: &'p Words,
    /// Whether the last tiles of rows and of columns reach beyond the end.
    ragged: [bool; 2],
    /// Where a part of a sum is stored.
    partial: Option<String>,
}

impl Elements<'_> {
    /// Opens what is done of a row where it is one.
    pub(crate) fn open_row(&self, kernel: &mut Kernel<'_>, row: &str) -> Result<(), String> {
        self.open(kernel, 0, row)
    }

    /// Opens what is done of a column where it is one.
    fn open_column(&self, kernel: &mut Kernel<'_>, column: &str) -> Result<(), String> {
        self.open(kernel, 1, column)
    }

    /// Prints what is done with the `width` neighbours of a row that begin at `first` of the tile's columns. `sum` is the text
    /// of the sum of the one that `e` counts.
    pub(crate) fn neighbours(&self, kernel: &mut Kernel<'_>, first: &str, width: i64, sum: &str) -> Result<(), String> {
        let (problem, epilogue) = (self.problem, &self.problem.epilogue);
        let even =
            problem.n.last().is_some_and(|(_, extent)| extent.as_int().is_some_and(|extent| extent % width == 0));
        let together = self.partial.is_none() && even && width > 1;
        let packs = match together {
            false => None,
            true => {
                // A group of neighbours is whole or none of it is there.
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

    fn open(&self, kernel: &mut Kernel<'_>, side: usize, value: &str) -> Result<(), String> {
        let words = self.words;
        let (name, zero, axis) = match side {
            0 => (&words.row, &words.row0, &self.problem.m),
            _ => (&words.column, &words.column0, &self.problem.n),
        };
        kernel.line(&format!("const {} {name} = {zero} + {value};", words.index));
        match self.ragged[side] {
            true => kernel.open(&format!("if ({name} < {}) {{", words.ends[side])),
            false => kernel.open("{"),
        }
        if self.partial.is_some() { Ok(()) } else { words.decode(kernel, axis, name, &|var| !words.is_twin(var)) }
    }
}
