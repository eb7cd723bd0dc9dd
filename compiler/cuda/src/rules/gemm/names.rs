//! The names of the emitted kernel's variables, and the decoding of linear indices into loop values. All kernels of the
//! rules `gemm` and `gemv` use this module.

use super::narrow::NarrowIndices;
use super::problem::{Axis, Factor, Problem};
use crate::printer::{Kernel, expr};
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_tir::{Expr, VarId};

/// Names that the emitted code declares itself; variables and buffers of the function get other names.
pub(crate) const OWN_NAMES: &[&str] = &[
    "at", "i", "j", "k", "e", "f", "w", "by", "row", "value", "from", "slot", "lane", "warp", "tile", "coming", "line",
    "chunk", "both", "of_a", "of_b", "from_a", "from_b", "matrix", "vectors", "thread",
];

/// The name table of an emitted kernel. Arrays of two have the entry of `A` first, then that of `B`.
#[derive(Clone)]
pub(crate) struct GemmNames {
    /// The C type of linear indices: `int` if the extents of M, N and K are constants less than 2^30, otherwise
    /// `long long`.
    pub(crate) index: &'static str,
    /// The extents of M, N and K, as texts.
    pub(crate) ends: [String; 3],
    /// The first M and N index of the block's tile, and the first K index of the K tile (in `gemv`, of the
    /// thread's iteration).
    pub(crate) row0: String,
    pub(crate) column0: String,
    pub(crate) sum0: String,
    /// The M, N and K index of an element.
    pub(crate) row: String,
    pub(crate) column: String,
    pub(crate) sum_index: String,
    /// The end of the K axis, or of the block's split-K slice.
    pub(crate) sum_end: String,
    /// Whether the loads of [`super::operand`] need no bounds check along K, because K is known to be a multiple of the
    /// tile and is not split. Other loads do not use it.
    pub(crate) sum_is_whole: bool,
    /// The name of each loop's value.
    loops: FxHashMap<VarId, String>,
    narrow_indices: NarrowIndices,
    /// For each factor with a separable address, the names of the values that a thread keeps for all K tiles, for each
    /// of its rows (for `B`, columns): the row part of the address, that of each range (the distance from an edge), and
    /// the flag that the row may be read. For a chunk of several rows, they are the values of the first row.
    pub(crate) rows: [Vec<String>; 2],
    /// The tiles in shared memory, all stages of a factor in one array.
    pub(crate) tiles: [String; 2],
    /// The stage to which the coming tile is loaded.
    pub(crate) to: [String; 2],
    /// The registers that hold staged chunks.
    pub(crate) next: [String; 2],
    /// The accumulators.
    pub(crate) sums: String,
}

impl GemmNames {
    /// Creates the table for the kernel of `problem`: chooses the index type, prints the extents of M, N and K, and
    /// reserves fresh names.
    pub(crate) fn new(kernel: &mut Kernel<'_>, problem: &Problem, sum_is_whole: bool) -> Result<GemmNames, String> {
        let axes = [&problem.m, &problem.n, &problem.k];
        let small = |axis: &&&Axis| axis.constant().is_some_and(|extent| extent < 1 << 30);
        let index = if axes.iter().filter(small).count() == 3 { "int" } else { "long long" };
        let mut end = |axis: &Axis| kernel.operand(&axis.extent(), expr::RELATION + 1);
        let ends = [end(&problem.m)?, end(&problem.n)?, end(&problem.k)?];
        let mut fresh = |name: &str| kernel.fresh_name(name);
        let mut loops = FxHashMap::default();
        for axis in [&problem.batch, &problem.m, &problem.n, &problem.k] {
            for (var, _) in &axis.loops {
                loops.insert(*var, fresh(&problem.func.var(*var).name));
            }
        }
        let mut rows_of = |factor: &Factor, side: char| {
            let ranges = factor.separable.as_ref().map_or(0, |separable| separable.ranges.len());
            let names = (0..ranges).map(|number| format!("{side}_edge{number}"));
            let all = [format!("{side}_row")].into_iter().chain(names).chain([format!("is_{side}_row")]);
            all.map(|name| fresh(&name)).collect::<Vec<String>>()
        };
        let rows = [rows_of(&problem.a, 'a'), rows_of(&problem.b, 'b')];
        let sum_end = ends[2].clone();
        Ok(GemmNames {
            index,
            ends,
            row0: fresh("row0"),
            column0: fresh("column0"),
            sum0: fresh("sum0"),
            row: fresh("m"),
            column: fresh("n"),
            sum_index: fresh("summed"),
            sum_end,
            sum_is_whole,
            loops,
            narrow_indices: problem.narrow_indices.clone(),
            rows,
            tiles: [fresh("tile_a"), fresh("tile_b")],
            to: [fresh("to_a"), fresh("to_b")],
            next: [fresh("next_a"), fresh("next_b")],
            sums: fresh("sums"),
        })
    }

    /// Whether a variable that [`GemmNames::decode`] asks about is an int32 copy: it is none of the product's own loop
    /// variables.
    pub(crate) fn is_narrow(&self, var: VarId) -> bool {
        !self.loops.contains_key(&var)
    }

    /// Returns the name of the index on the free axis of a side: the row for `a`, the column for `b`.
    pub(crate) fn free(&self, side: char) -> &str {
        if side == 'a' { &self.row } else { &self.column }
    }

    /// Returns the name of the tile's first index on the free axis of a side.
    pub(crate) fn free0(&self, side: char) -> &str {
        if side == 'a' { &self.row0 } else { &self.column0 }
    }

    /// Returns the extent of the free axis of a side, as text.
    pub(crate) fn free_end(&self, side: char) -> &str {
        if side == 'a' { &self.ends[0] } else { &self.ends[1] }
    }

    /// Returns the name of the stage to which a side's coming tile is loaded.
    pub(crate) fn to(&self, side: char) -> &str {
        &self.to[usize::from(side == 'b')]
    }

    /// Returns the name of the registers that hold a side's staged chunks.
    pub(crate) fn next(&self, side: char) -> &str {
        &self.next[usize::from(side == 'b')]
    }

    /// Returns the table with another name for one index: the free one of `side`, or the K index.
    pub(crate) fn moved(&self, side: char, is_free: bool, name: &str) -> GemmNames {
        let mut names = self.clone();
        match (is_free, side) {
            (false, _) => names.sum_index = name.to_owned(),
            (true, 'a') => names.row = name.to_owned(),
            (true, _) => names.column = name.to_owned(),
        }
        names
    }

    /// Emits the values of an axis's loops at a linear index, for those loop variables and int32 copies that `is_used`
    /// accepts. For example, loops of extents 4, 8 and 16 have the values `index / 128`, `index / 16 % 8` and
    /// `index % 16`.
    pub(crate) fn decode(
        &self,
        kernel: &mut Kernel<'_>,
        axis: &Axis,
        index: &str,
        is_used: &dyn Fn(VarId) -> bool,
    ) -> Result<(), String> {
        for (at, (var, extent)) in axis.loops.iter().enumerate() {
            let narrow = self.narrow_indices.narrow(*var).filter(|narrow| is_used(*narrow));
            let wanted: Vec<VarId> = is_used(*var).then_some(*var).into_iter().chain(narrow).collect();
            for one in wanted {
                let below = Axis { loops: axis.loops[at + 1..].to_vec() }.extent();
                let mut value = kernel.delinearized(index, &below, (at > 0).then_some(extent))?;
                let dtype = kernel.dtype_of(one);
                let ctype = kernel.ctype(dtype)?;
                if ctype != self.index && dtype != DType::INT64 {
                    value =
                        if value.contains(' ') { format!("({ctype})({value})") } else { format!("({ctype}){value}") };
                }
                let plain = self.loops.get(var).cloned().unwrap_or_default();
                let name = if one == *var { plain } else { format!("{plain}_32") };
                kernel.line(&format!("const {ctype} {name} = {value};"));
                kernel.name_var(one, &name, true);
            }
        }
        Ok(())
    }
}

/// Returns the number of tiles that cover an extent.
pub(crate) fn tiles_of(extent: Expr, tile: i64) -> Expr {
    (extent + Expr::int(tile - 1)).floor_div(Expr::int(tile))
}
