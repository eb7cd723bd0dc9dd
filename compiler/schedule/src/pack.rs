//! Packing a factor of a matrix product into a dense buffer, a tile at a time.

use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::expr::Expr;
use rx_tir::func::{Buffer, BufferId, PrimFunc, Scope as Memory, VarId};
use rx_tir::rewrite::substitute;
use rx_tir::stmt::{Site, Stmt};

use crate::scope::Scope;

/// How many elements a packed tile may have, as far as one row of it has not more: 1 MiB of `float32`.
pub(crate) const TILE_ELEMENTS: i64 = 1 << 18;

/// A part of a chain of loops: all values of the inner ones, some of the outermost.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    /// The loop that is cut.
    pub(crate) var: VarId,
    /// How many elements the loops inside it have; those are taken whole.
    pub(crate) inner: Dim,
    /// The tiles' variable and number; none where the tile is all.
    pub(crate) loop_var: Option<(VarId, Expr)>,
    /// The loop's first value in this tile.
    pub(crate) start: Expr,
    /// How many of the loop's values this tile has.
    pub(crate) rows: Expr,
    /// How many a tile has at most; at least 1.
    pub(crate) most_rows: Expr,
}

impl Tile {
    /// Tiles of a chain of free loops, so that a packed tile of `depth` elements for each stays small. The outermost loop is
    /// cut; `None` of an empty chain.
    pub(crate) fn choose(scope: &mut Scope, func: &mut PrimFunc, chain: &[(VarId, Dim)], depth: &Dim) -> Option<Tile> {
        let (last, extent) = chain.last()?;
        let inner = crate::matmul::size(&chain[..chain.len() - 1]);
        let extent_expr = scope.expr(extent, DType::INT64)?;
        let row = &inner * depth;
        if let (Some(row), Some(extent)) = (row.as_constant(), extent.as_constant())
            && row.checked_mul(extent).is_some_and(|all| all <= TILE_ELEMENTS)
        {
            let (rows, most_rows) = (extent_expr.clone(), extent_expr);
            return Some(Tile { var: *last, inner, loop_var: None, start: Expr::int(0), rows, most_rows });
        }
        let most_rows = match row.as_constant() {
            Some(row) => {
                let most = (TILE_ELEMENTS / row.max(1)).max(1);
                Expr::int(extent.as_constant().map_or(most, |extent| balanced(extent, most)))
            }
            None => {
                Expr::int(TILE_ELEMENTS).floor_div(scope.expr(&row, DType::INT64)?.max(Expr::int(1))).max(Expr::int(1))
            }
        };
        let most_rows = most_rows.min(extent_expr.clone()).max(Expr::int(1));
        let var = func.add_var(name("tile"), DType::INT64);
        let start = func.var_expr(var) * most_rows.clone();
        let rows = most_rows.clone().min(extent_expr.clone() - start.clone());
        let count = (extent_expr + most_rows.clone() - Expr::int(1)).floor_div(most_rows.clone());
        Some(Tile { var: *last, inner, loop_var: Some((var, count)), start, rows, most_rows })
    }
}

/// The rows of a tile where as few tiles as possible, of at most `most` rows, are as even as possible.
fn balanced(extent: i64, most: i64) -> i64 {
    let tiles = extent.max(1).saturating_add(most - 1) / most;
    extent.max(1).saturating_add(tiles - 1) / tiles
}

/// What is packed.
pub(crate) struct Packing<'a> {
    /// The factor's element.
    pub(crate) expr: &'a Expr,
    /// Its free loops, innermost first.
    pub(crate) free: &'a [(VarId, Dim)],
    /// The summed loops, innermost first.
    pub(crate) summed: &'a [(VarId, Dim)],
    /// Whether neighbours along the free loops stand next to each other, or neighbours along the summed loops.
    pub(crate) free_is_inner: bool,
    /// The part of the free loops that is packed; all where none.
    pub(crate) tile: Option<&'a Tile>,
    /// The product's dtype.
    pub(crate) dtype: DType,
    /// What a run-time error names.
    pub(crate) site: Site,
}

/// A packed factor.
pub(crate) struct Packed {
    /// Where it is.
    pub(crate) buffer: BufferId,
    /// The loops that fill it.
    pub(crate) stmt: Stmt,
    /// Elements from one value of its outer axis to the next; those of its inner axis are neighbours.
    pub(crate) outer_stride: Expr,
}

/// One loop of the packing.
struct PackLoop {
    /// The loop whose values it takes.
    of: VarId,
    var: VarId,
    /// How many values it takes.
    extent: Expr,
    /// How many places the buffer has for them.
    places: Expr,
    /// The original variable's value.
    value: Expr,
}

/// The buffer and loops that pack a factor; `None` where an extent is not expressible.
pub(crate) fn pack_stmt(scope: &Scope, func: &mut PrimFunc, packing: &Packing<'_>) -> Option<Packed> {
    let mut free = pack_loops(scope, func, packing.free, packing.tile)?;
    let mut summed = pack_loops(scope, func, packing.summed, None)?;
    let one = |loops: &[PackLoop]| loops.iter().fold(Expr::int(1), |size, inner| size * inner.places.clone());
    let outer_stride = if packing.free_is_inner { one(&free) } else { one(&summed) };
    let loops = match packing.free_is_inner {
        true => {
            summed.append(&mut free);
            summed
        }
        false => {
            free.append(&mut summed);
            free
        }
    };
    let shape = loops.iter().map(|inner| inner.places.clone()).collect();
    let buffer = func.add_buffer(Buffer {
        name: name("packed"),
        dtype: packing.dtype,
        shape,
        strides: None,
        order: None,
        scope: Memory::Global,
    });
    let value = substitute(packing.expr, &|var| {
        let found = loops.iter().find(|inner| inner.of == var)?;
        Some(found.value.clone().cast(func.var(var).dtype))
    });
    let indices = loops.iter().map(|inner| func.var_expr(inner.var)).collect();
    let store = Stmt::Store { buffer, indices, value: value.cast(packing.dtype), site: packing.site };
    let stmt = loops.into_iter().rev().fold(store, |body, inner| Stmt::for_loop(inner.var, inner.extent, body));
    Some(Packed { buffer, stmt, outer_stride })
}

/// Loops of its own for a chain, outermost first.
fn pack_loops(
    scope: &Scope,
    func: &mut PrimFunc,
    chain: &[(VarId, Dim)],
    tile: Option<&Tile>,
) -> Option<Vec<PackLoop>> {
    let mut loops = Vec::with_capacity(chain.len());
    for (of, extent) in chain.iter().rev() {
        let extent = scope.expr(extent, DType::INT64)?;
        let var = func.add_var(func.var(*of).name, DType::INT64);
        let value = func.var_expr(var);
        loops.push(match tile.filter(|tile| tile.var == *of) {
            Some(tile) => PackLoop {
                of: *of,
                var,
                extent: tile.rows.clone(),
                places: tile.most_rows.clone(),
                value: tile.start.clone() + value,
            },
            None => PackLoop { of: *of, var, places: extent.clone(), extent, value },
        });
    }
    Some(loops)
}
