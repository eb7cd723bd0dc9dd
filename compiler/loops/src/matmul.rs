//! *Matrix product scheduling*: maps a sum of products to a strided matrix product, and packs operands, mainly those
//! that are no matrices in memory.
//!
//! ```text
//! for i, j, k: C[i, j] += select(i < n, A[i, k], 0) * B[k, j]
//! ```
//!
//! becomes, since the left factor is computed and so is no matrix in memory, with `rows` rows in each tile,
//!
//! ```text
//! for tile:
//!     for i, k: packed[i, k] = select(tile * rows + i < n, A[tile * rows + i, k], 0)
//!     C[tile rows, :] += packed · B
//! ```
//!
//! Requires `float32` or `float64` and a matched [`Product`]. Guarantees the same terms, perhaps in another order.
//! Declines, for example, if a factor would be packed and the product has no M loops or no N loops.

use crate::accumulate::Nest;
use crate::affine::Affine;
use crate::gemm::{BatchAxis, Gemm, Matrix, Step};
use crate::pack::{Packing, Tile, pack_stmt};
use crate::roles::{Declined, Product, ProductNest, Role};
use crate::scope::Scope;
use rx_base::symbolic::prove;
use rx_base::symbolic::{Answer, Bounds};
use rx_base::{DType, Dim};
use rx_tir::expr::Expr;
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::stmt::Stmt;

/// A strided operand whose M or N axis has fewer elements than this may be packed, so that the axis has more loops.
const FEW: i64 = 64;

/// Loops that form one axis of a matrix, innermost first. In each matrix that is not packed, the stride of each loop is
/// the stride of the one before it times that one's extent.
type Chain = Vec<(VarId, Dim)>;

/// A factor of the product.
pub(crate) struct Operand {
    expr: Expr,
    /// The factor's address; `None` if the factor is to be packed, for example since it is computed or its address is
    /// not affine.
    strided: Option<Affine>,
    /// Whether it is the factor with the N loops.
    is_right: bool,
}

/// Schedules a nest as a matrix product and returns its steps.
///
/// # Errors
/// If the nest is no [`ProductNest`] of `float32` or `float64`, if there are neither M nor N loops, if a factor would
/// be packed but there are no M or no N loops, or if an extent or stride cannot be expressed over the function's
/// scalars.
pub(crate) fn gemm_steps(
    nest: &Nest,
    func: &mut PrimFunc,
    temporaries: &mut Vec<BufferId>,
) -> Result<Vec<Step>, Declined> {
    let ProductNest { nest, mut product, mut scope } = ProductNest::of(nest, func)?;
    let dtype = func.buffer(product.reduction.buffer).dtype;
    Declined::when(
        dtype != DType::FLOAT32 && dtype != DType::FLOAT64,
        "requires a sum of float32 or float64; found another dtype",
    )?;
    product.orient();
    let operand = |expr: &Expr, is_right: bool, scope: &mut Scope| {
        let strided = match expr {
            Expr::Load { buffer, indices, dtype: element } if *element == dtype => {
                Affine::sum(scope, func, &nest.loops, *buffer, indices)
            }
            _ => None,
        };
        Operand { expr: expr.clone(), strided, is_right }
    };
    let mut a = operand(&product.left, false, &mut scope);
    let mut b = operand(&product.right, true, &mut scope);
    let axes = Axes::choose(&product, &mut a, &mut b)?;
    let mut building = Building { func, temporaries, scope, product: &product, axes, dtype, steps: Vec::new() };
    building.begin(&nest)?;
    building.build(&a, &b).ok_or(Declined("requires strides over the function's scalars; found another stride"))?;
    Ok(building.steps)
}

/// The loops by their axis in the matrix product.
struct Axes {
    m: Chain,
    n: Chain,
    k: Chain,
    /// All other loops. Each of their values is a separate product.
    batch: Vec<(VarId, Dim)>,
}

impl Axes {
    fn choose(product: &Product, a: &mut Operand, b: &mut Operand) -> Result<Axes, Declined> {
        let of = |wanted: Role| -> Vec<(VarId, Dim)> {
            let loops = product.loops.iter().filter(|(_, _, role)| *role == wanted);
            loops.map(|(var, extent, _)| (*var, extent.clone())).collect()
        };
        let k = sum_chain(&of(Role::K), a, b);
        let (rows, columns) = (of(Role::M), of(Role::N));
        // A packed element is used once for each iteration of the other factor's free loops. If that has none, packing
        // does not pay off.
        let mut m = free_chain(&rows, &product.target, a, !columns.is_empty());
        let mut n = free_chain(&columns, &product.target, b, !rows.is_empty());
        match (b.strided.is_none(), a.strided.is_none()) {
            (true, _) => trim(&mut n, &size(&k)),
            (false, true) => trim(&mut m, &size(&k)),
            (false, false) => {}
        }
        let packed = a.strided.is_none() || b.strided.is_none();
        Declined::when(
            packed && (m.is_empty() || n.is_empty()),
            "requires rows in both factors; found a factor without",
        )?;
        Declined::when(m.is_empty() && n.is_empty(), "requires rows in a factor; found none in either")?;
        let taken = |var: VarId| [&m, &n, &k].iter().any(|chain| chain.iter().any(|(known, _)| *known == var));
        let rest = product.loops.iter().filter(|(var, _, _)| !taken(*var));
        let batch = rest.map(|(var, extent, _)| (*var, extent.clone())).collect();
        Ok(Axes { m, n, k, batch })
    }
}

/// Orders the K loops, and returns them innermost first. The first of these orders that is found is chosen:
///
/// 1. one in which the loops are one axis of both operands: each stride is the stride of the next inner loop times that
///    loop's extent;
/// 2. one in which they are one axis of `a`; then `b` is packed;
/// 3. one in which they are one axis of `b`; then `a` is packed;
/// 4. the order of the nest; then both are packed.
fn sum_chain(loops: &[(VarId, Dim)], a: &mut Operand, b: &mut Operand) -> Chain {
    let whole = |operand: &Operand| {
        let strides = operand.strided.as_ref()?;
        let chain = longest_chain(loops, &[strides]);
        (chain.len() == loops.len()).then_some(chain)
    };
    if let (Some(left), Some(right)) = (&a.strided, &b.strided) {
        let both = longest_chain(loops, &[left, right]);
        if both.len() == loops.len() {
            return both;
        }
    }
    if let Some(chain) = whole(a) {
        b.strided = None;
        return chain;
    }
    a.strided = None;
    whole(b).unwrap_or_else(|| {
        b.strided = None;
        loops.iter().rev().cloned().collect()
    })
}

/// Chooses the free loops of a factor that form one axis of the result, and of the factor unless it is packed. A
/// strided factor is packed if `may_pack` holds, its axis would have a constant number of elements below [`FEW`], and
/// packing allows more loops.
fn free_chain(loops: &[(VarId, Dim)], target: &Affine, operand: &mut Operand, may_pack: bool) -> Chain {
    let packed = longest_chain(loops, &[target]);
    let Some(strides) = &operand.strided else { return packed };
    let strided = longest_chain(loops, &[target, strides]);
    let few = size(&strided).as_constant().is_some_and(|size| size < FEW);
    if may_pack && few && strided.len() < packed.len() {
        operand.strided = None;
        return packed;
    }
    strided
}

/// Removes the outermost loops of a packed chain until one iteration of the outermost remaining loop fits into a tile
/// or, if its size is not constant, until at most two loops remain. One loop always remains. The removed loops become
/// loops around the product.
fn trim(chain: &mut Chain, depth: &Dim) {
    let fits = |chain: &Chain| {
        let row = &size(&chain[..chain.len() - 1]) * depth;
        row.as_constant().map_or(chain.len() <= 2, |row| row <= crate::pack::TILE_ELEMENTS)
    };
    while chain.len() > 1 && !fits(chain) {
        chain.pop();
    }
}

/// Finds a chain that begins at any of the loops and is extended greedily; returns the longest. In every access, the
/// stride of each loop of the chain is the stride of the loop before it times that loop's extent.
fn longest_chain(loops: &[(VarId, Dim)], accesses: &[&Affine]) -> Chain {
    let mut best: Chain = Vec::new();
    // Of equally long chains, prefer the one that begins at the innermost loop: its elements are usually closer
    // together in memory.
    for first in loops.iter().rev() {
        let mut chain: Chain = vec![first.clone()];
        while let Some((last, extent)) = chain.last() {
            let follows = |(var, _): &&(VarId, Dim)| {
                let free = chain.iter().all(|(known, _)| known != var);
                free && accesses.iter().all(|access| same(&access.stride(*var), &(&access.stride(*last) * extent)))
            };
            let Some(next) = loops.iter().find(follows) else { break };
            chain.push(next.clone());
        }
        if chain.len() > best.len() {
            best = chain;
        }
    }
    best
}

fn same(a: &Dim, b: &Dim) -> bool {
    !a.is_error() && !b.is_error() && prove::equal(a, b, &Bounds::default()) == Answer::Proved
}

/// Returns the number of elements along a chain.
pub(crate) fn size(chain: &[(VarId, Dim)]) -> Dim {
    chain.iter().fold(Dim::constant(1), |size, (_, extent)| &size * extent)
}

/// The state of building steps.
struct Building<'a> {
    func: &'a mut PrimFunc,
    temporaries: &'a mut Vec<BufferId>,
    scope: Scope,
    product: &'a Product,
    axes: Axes,
    dtype: DType,
    steps: Vec<Step>,
}

/// A loop around the product and the packing of an operand that depends on the loop's variable; it becomes a
/// [`Step::Loop`].
struct Outer {
    var: VarId,
    extent: Expr,
}

impl Building<'_> {
    /// If there is an initial value other than 0, emits a separate nest that stores it. The product is then
    /// accumulated.
    fn begin(&mut self, nest: &Nest) -> Result<(), Declined> {
        let Some(init) = &nest.init else { return Ok(()) };
        if self.starts_at_zero() {
            return Ok(());
        }
        let summed = |var: &VarId| self.axes.k.iter().any(|(known, _)| known == var);
        let mut stmt = init.clone();
        for outer in nest.loops.iter().rev().filter(|outer| !summed(&outer.var)) {
            let var = self.func.add_var(self.func.var(outer.var).name, self.func.var(outer.var).dtype);
            let body = crate::simplify::replace_var(&stmt, outer.var, &self.func.var_expr(var));
            stmt = Stmt::for_loop(var, outer.extent.clone(), body);
        }
        self.steps.push(Step::Nest(stmt));
        Ok(())
    }

    fn starts_at_zero(&self) -> bool {
        match &self.product.reduction.init {
            Some(Expr::Float { value, .. }) => *value == 0.0,
            Some(Expr::Int { value, .. }) => *value == 0,
            _ => false,
        }
    }

    /// Emits the steps of the product; returns `None` if an extent or stride cannot be expressed.
    fn build(&mut self, a: &Operand, b: &Operand) -> Option<()> {
        let depends = |operand: &Operand, var: VarId| operand.strided.is_none() && operand.expr.uses(var);
        let batch = std::mem::take(&mut self.axes.batch);
        // A batch loop that a packed operand depends on becomes a loop around the packing of this operand and the
        // product, since each iteration packs other elements. The other batch loops become batch axes of the product.
        let (mut around, own): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|(var, _)| depends(a, *var) || depends(b, *var));
        // The loops that the packing of `a` depends on are outermost, so that it is not repeated in the others.
        around.sort_by_key(|(var, _)| !depends(a, *var));
        let for_a = around.iter().filter(|(var, _)| depends(a, *var)).count();
        let tile = self.tile(a, b)?;

        let (k, m, n) = (size(&self.axes.k), size(&self.axes.m), size(&self.axes.n));
        let mut a_packed = Vec::new();
        let a_matrix = match (&a.strided, b.strided.is_none()) {
            (Some(strides), _) => self.strided(strides, &self.axes.m, &self.axes.k, &around, None)?,
            // If both factors are packed, the left one is packed whole, and the right one in tiles.
            (None, true) => self.packed(a, None, &mut a_packed)?,
            (None, false) => self.packed(a, tile.as_ref(), &mut a_packed)?,
        };
        let mut b_packed = Vec::new();
        let b_matrix = match &b.strided {
            Some(strides) => self.strided(strides, &self.axes.k, &self.axes.n, &around, None)?,
            None => self.packed(b, tile.as_ref(), &mut b_packed)?,
        };
        let on_columns = b.strided.is_none();
        let target = &self.product.target;
        let c_matrix = self.strided(target, &self.axes.m, &self.axes.n, &around, tile.as_ref())?;
        let (mut m, mut n) = (self.expr(&m)?, self.expr(&n)?);
        if let Some(tile) = &tile {
            let tiled = if on_columns { &mut n } else { &mut m };
            *tiled = tile.rows.clone() * self.expr(&tile.inner)?;
        }
        let batch = own.iter().map(|axis| self.batch_axis(axis, a, b)).collect::<Option<Vec<_>>>()?;
        let gemm = Gemm {
            batch,
            m,
            n,
            k: self.expr(&k)?,
            a: a_matrix,
            b: b_matrix,
            c: c_matrix,
            accumulate: self.product.reduction.init.is_none() || !self.starts_at_zero(),
            dtype: self.dtype,
            site: self.product.reduction.site,
        };
        let outer = around.iter().map(|(var, extent)| Some(Outer { var: *var, extent: self.expr(extent)? }));
        let outer = outer.collect::<Option<Vec<_>>>()?;
        let steps = nested(outer, for_a, tile, (a_packed, a.strided.is_none() && !on_columns), b_packed, gemm);
        self.steps.extend(steps);
        Some(())
    }

    /// Chooses the tiles of the packed operand, or of the right one if both are packed.
    fn tile(&mut self, a: &Operand, b: &Operand) -> Option<Option<Tile>> {
        let chain = match (b.strided.is_none(), a.strided.is_none()) {
            (true, _) => self.axes.n.clone(),
            (false, true) => self.axes.m.clone(),
            (false, false) => return Some(None),
        };
        let k = size(&self.axes.k);
        Tile::choose(&mut self.scope, self.func, &chain, &k).map(Some)
    }

    /// Returns the result, or a factor that is not packed, as a matrix in the function's buffer, at the current values
    /// of the enclosing loops and of the tile.
    fn strided(
        &self,
        at: &Affine,
        rows: &Chain,
        columns: &Chain,
        around: &[(VarId, Dim)],
        tile: Option<&Tile>,
    ) -> Option<Matrix> {
        let mut offset = self.expr(&at.base)?;
        for (var, _) in around {
            offset = offset + self.expr(&at.stride(*var))? * self.func.var_expr(*var).cast(DType::INT64);
        }
        if let Some(tile) = tile {
            offset = offset + self.expr(&at.stride(tile.var))? * tile.start.clone();
        }
        let stride = |chain: &Chain| match chain.first() {
            Some((var, _)) => self.expr(&at.stride(*var)),
            // The axis has one row or column, so its stride is never used.
            None => Some(Expr::int(1)),
        };
        Some(Matrix { buffer: at.buffer, offset, row: stride(rows)?, column: stride(columns)? })
    }

    /// Packs a factor into a new buffer; appends the packing nest to `steps`.
    fn packed(&mut self, operand: &Operand, tile: Option<&Tile>, steps: &mut Vec<Step>) -> Option<Matrix> {
        let packing = Packing {
            expr: &operand.expr,
            free: if operand.is_right { &self.axes.n } else { &self.axes.m },
            summed: &self.axes.k,
            free_is_inner: operand.is_right,
            tile,
            dtype: self.dtype,
            site: self.product.reduction.site,
        };
        let packed = pack_stmt(&self.scope, self.func, &packing)?;
        self.temporaries.push(packed.buffer);
        steps.push(Step::Nest(packed.stmt));
        let (outer, inner) = (packed.outer_stride, Expr::int(1));
        Some(Matrix { buffer: packed.buffer, offset: Expr::int(0), row: outer, column: inner })
    }

    fn batch_axis(&self, (var, extent): &(VarId, Dim), a: &Operand, b: &Operand) -> Option<BatchAxis> {
        let stride = |strides: Option<&Affine>| strides.map_or(Some(Expr::int(0)), |at| self.expr(&at.stride(*var)));
        Some(BatchAxis {
            extent: self.expr(extent)?,
            a: stride(a.strided.as_ref())?,
            b: stride(b.strided.as_ref())?,
            c: stride(Some(&self.product.target))?,
        })
    }

    fn expr(&self, dim: &Dim) -> Option<Expr> {
        self.scope.expr(dim, DType::INT64)
    }
}

/// Nests the steps:
///
/// ```text
/// for loops that the packing of A depends on:
///     pack A                     (here if A is packed whole)
///     for loops that only the packing of B depends on:
///         for tiles:
///             pack the tile of B, or of A
///             product
/// ```
fn nested(
    mut outer: Vec<Outer>,
    for_a: usize,
    tile: Option<Tile>,
    (a_packed, a_is_tiled): (Vec<Step>, bool),
    b_packed: Vec<Step>,
    gemm: Gemm,
) -> Vec<Step> {
    let inner = outer.split_off(for_a.min(outer.len()));
    let (mut before, mut body) = (a_packed, b_packed);
    if a_is_tiled {
        body.append(&mut before);
    }
    body.push(Step::Gemm(Box::new(gemm)));
    if let Some(Tile { loop_var: Some((var, extent)), .. }) = tile {
        body = vec![Step::Loop { var, extent, body }];
    }
    let around = |outer: Vec<Outer>, body: Vec<Step>| {
        outer.into_iter().rev().fold(body, |body, Outer { var, extent }| vec![Step::Loop { var, extent, body }])
    };
    before.extend(around(inner, body));
    around(outer, before)
}
