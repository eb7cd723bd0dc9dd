//! Packing of a factor of a matrix product into a dense buffer, whole or one tile at a time. `matmul` decides which
//! factors are packed.

use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tir::expr::Expr;
use rx_tir::func::{Buffer, BufferId, PrimFunc, Scope as Memory, VarId};
use rx_tir::rewrite::substitute;
use rx_tir::stmt::{Site, Stmt};

use crate::scope::Scope;

/// The maximum number of elements of a packed tile: 1 MiB of `float32`. A tile of one row may be larger.
pub(crate) const TILE_ELEMENTS: i64 = 1 << 18;

/// A slice of a chain of loops: all values of the inner loops, and a range of the outermost loop.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    /// The loop that is tiled.
    pub(crate) var: VarId,
    /// The number of elements of one row: the product of the extents of the loops inside the tiled one.
    pub(crate) inner: Dim,
    /// The variable of the loop over tiles and the number of tiles; none if one tile is known to cover the chain.
    pub(crate) loop_var: Option<(VarId, Expr)>,
    /// The first value of the tiled loop in this tile.
    pub(crate) start: Expr,
    /// The number of values of the tiled loop in this tile: `most_rows`, or fewer in the last tile.
    pub(crate) rows: Expr,
    /// The maximum number of values of the tiled loop in a tile.
    pub(crate) most_rows: Expr,
}

impl Tile {
    /// Chooses tiles of the outermost loop of a chain so that a packed tile, with `depth` elements for each element of
    /// the chain, has at most [`TILE_ELEMENTS`] elements, or one row. Returns `None` for an empty chain, and if
    /// an extent cannot be expressed.
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

/// Returns the tile size for which the fewest tiles of at most `most` rows are as equal as possible. For example, 10
/// rows in tiles of at most 8 give 5.
fn balanced(extent: i64, most: i64) -> i64 {
    let tiles = extent.max(1).saturating_add(most - 1) / most;
    extent.max(1).saturating_add(tiles - 1) / tiles
}

/// The factor to pack and its layout.
pub(crate) struct Packing<'a> {
    /// The expression of the factor's element.
    pub(crate) expr: &'a Expr,
    /// The factor's free loops, innermost first.
    pub(crate) free: &'a [(VarId, Dim)],
    /// The K loops, innermost first.
    pub(crate) summed: &'a [(VarId, Dim)],
    /// Whether the free loops are contiguous in the packed buffer, rather than the K loops.
    pub(crate) free_is_inner: bool,
    /// The slice of the free loops to pack; all of them if none.
    pub(crate) tile: Option<&'a Tile>,
    /// The product's dtype.
    pub(crate) dtype: DType,
    /// The statement that a run-time error names.
    pub(crate) site: Site,
}

/// A packed factor.
pub(crate) struct Packed {
    /// The buffer.
    pub(crate) buffer: BufferId,
    /// The nest that fills it.
    pub(crate) stmt: Stmt,
    /// The buffer is used as a matrix with contiguous rows, one for each iteration of the outer loops: the stride from
    /// one row to the next, in elements.
    pub(crate) outer_stride: Expr,
}

/// A loop of the nest that packs a factor or, if there is a [`Tile`], one tile of it.
struct PackLoop {
    /// The loop of the product that it iterates over.
    of: VarId,
    var: VarId,
    /// The trip count.
    extent: Expr,
    /// The extent of the buffer's axis.
    places: Expr,
    /// The value of the product's loop variable.
    value: Expr,
}

/// Builds the buffer and the nest that pack a factor. Returns `None` if an extent cannot be expressed.
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

/// Creates new loops for a chain, outermost first.
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
