//! What variables of the text are called, and how loops' values are taken out of linear indices.

use super::narrow::Twins;
use super::problem::{Axis, Factor, Problem};
use crate::printer::{Kernel, expr};
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_tir::{Expr, VarId};

/// Names that the text uses for itself, wherever they stand.
pub(crate) const OWN_NAMES: &[&str] = &[
    "at", "i", "j", "k", "e", "f", "w", "by", "row", "value", "from", "slot", "lane", "warp", "tile", "coming", "line",
    "chunk", "both", "of_a", "of_b", "from_a", "from_b", "matrix", "vectors", "thread",
];

/// Names in the text.
#[derive(Clone)]
pub(crate) struct Words {
    /// The type of linear indices.
    pub(crate) index: &'static str,
    /// Extents of rows, columns and sums.
    pub(crate) ends: [String; 3],
    /// First row, column and summed value of the tile that is brought.
    pub(crate) row0: String,
    pub(crate) column0: String,
    pub(crate) sum0: String,
    /// Row, column and summed value of an element.
    pub(crate) row: String,
    pub(crate) column: String,
    pub(crate) sum_index: String,
    /// Where the sum, or the block's part of it, ends.
    pub(crate) sum_end: String,
    /// Whether tiles hold nothing behind the sum's end.
    pub(crate) sum_is_whole: bool,
    /// The loops' values.
    loops: FxHashMap<VarId, String>,
    twins: Twins,
    /// What a thread keeps of its rows of each factor: their place, how far they are from edges, whether they are some.
    pub(crate) rows: [Vec<String>; 2],
    pub(crate) tiles: [String; 2],
    pub(crate) to: [String; 2],
    pub(crate) next: [String; 2],
    pub(crate) sums: String,
}

impl Words {
    pub(crate) fn new(kernel: &mut Kernel<'_>, problem: &Problem, sum_is_whole: bool) -> Result<Words, String> {
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
            let ranges = factor.reach.as_ref().map_or(0, |reach| reach.ranges.len());
            let names = (0..ranges).map(|number| format!("{side}_edge{number}"));
            let all = [format!("{side}_row")].into_iter().chain(names).chain([format!("is_{side}_row")]);
            all.map(|name| fresh(&name)).collect::<Vec<String>>()
        };
        let rows = [rows_of(&problem.a, 'a'), rows_of(&problem.b, 'b')];
        let sum_end = ends[2].clone();
        Ok(Words {
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
            twins: problem.twins.clone(),
            rows,
            tiles: [fresh("tile_a"), fresh("tile_b")],
            to: [fresh("to_a"), fresh("to_b")],
            next: [fresh("next_a"), fresh("next_b")],
            sums: fresh("sums"),
        })
    }

    /// Whether the variable is a loop's value in 32 bits.
    pub(crate) fn is_twin(&self, var: VarId) -> bool {
        !self.loops.contains_key(&var)
    }

    pub(crate) fn free(&self, side: char) -> &str {
        if side == 'a' { &self.row } else { &self.column }
    }

    pub(crate) fn free0(&self, side: char) -> &str {
        if side == 'a' { &self.row0 } else { &self.column0 }
    }

    pub(crate) fn free_end(&self, side: char) -> &str {
        if side == 'a' { &self.ends[0] } else { &self.ends[1] }
    }

    pub(crate) fn to(&self, side: char) -> &str {
        &self.to[usize::from(side == 'b')]
    }

    pub(crate) fn next(&self, side: char) -> &str {
        &self.next[usize::from(side == 'b')]
    }

    /// The same where one of the indices has another name.
    pub(crate) fn moved(&self, side: char, is_free: bool, name: &str) -> Words {
        let mut words = self.clone();
        match (is_free, side) {
            (false, _) => words.sum_index = name.to_owned(),
            (true, 'a') => words.row = name.to_owned(),
            (true, _) => words.column = name.to_owned(),
        }
        words
    }

    /// Prints the values of an axis' loops at a linear index, of those that are used, in 64 bits and in 32.
    pub(crate) fn decode(
        &self,
        kernel: &mut Kernel<'_>,
        axis: &Axis,
        index: &str,
        is_used: &dyn Fn(VarId) -> bool,
    ) -> Result<(), String> {
        for (at, (var, extent)) in axis.loops.iter().enumerate() {
            let twin = self.twins.twin(*var).filter(|twin| is_used(*twin));
            let wanted: Vec<VarId> = is_used(*var).then_some(*var).into_iter().chain(twin).collect();
            for one in wanted {
                let below = Axis { loops: axis.loops[at + 1..].to_vec() }.extent();
                let mut value = kernel.digit(index, &below, (at > 0).then_some(extent))?;
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

/// Blocks needed for an extent in tiles.
pub(crate) fn tiles_of(extent: Expr, tile: i64) -> Expr {
    (extent + Expr::int(tile - 1)).floor_div(Expr::int(tile))
}
