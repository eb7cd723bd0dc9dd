//! The matched attention: its operands, score and loops. [`Problem::of`] matches the statements of a function.
//!
//! ```text
//! S = Σ_d Q · K                    // Product
//! P = f(S)                         // any elementwise statements: the score
//! M = max_n P                      // Softmax::of
//! L = Σ_n exp(P - M)               // Softmax::add_up
//! O = Σ_n exp(P - M) / L · V       // Softmax::weighted
//! Y = g(O)                         // any elementwise statements: the epilogue
//! →
//! Problem { query: Q, keys: K, values: V, score: f, epilogue: g, … }
//! ```
//!
//! Requires: a softmax whose exponentials subtract the row's maximum from the score. Then a sum over some of the keys
//! can be rescaled to a larger maximum, `exp(score - m) = exp(score - n) * exp(n - m)`, and scores need no buffer.
//! Guarantees: all expressions of the problem are over the loops of the product and the loop of the result's columns.
//! The match is by the computed values, not by names or the origin of the statements.
//!
//! Reference: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022,
//! "FlashAttention".

use super::masked_rows::Check;
use super::reading::{Axis, Reading, is_minus_infinity, is_zero, unrounded, unscaled};
use crate::rules::epilogue::{Epilogue, Front};
use crate::rules::{Declined, Task};
use rx_base::{DType, Dim};
use rx_loops::scope::Scope;
use rx_loops::{Affine, Loop, Nest, Reduction};
use rx_tir::expr::{BinaryOp, CompareOp, Intrinsic};
use rx_tir::{BufferId, Expr, IterKind, PrimFunc, Stmt, VarId};

/// The maximum length of a row of queries, keys or values (the head dimension), in elements.
const WIDEST: i64 = 256;

/// A matched attention. Its expressions are over [`Problem::loops`].
pub(super) struct Problem {
    /// The task's function.
    pub(super) func: PrimFunc,
    /// All statements that the schedule replaces.
    pub(super) statements: Vec<Stmt>,
    /// The position in [`Problem::statements`] after the weighted sum, where the epilogue begins.
    pub(super) behind: usize,
    /// The intermediate buffers before the weighted sum, which get no global memory.
    pub(super) kept: Vec<BufferId>,
    /// The loops of which a block has one value each: batches, and heads or groups of heads.
    pub(super) batch: Vec<IterSplit>,
    /// The loops of the rows of queries that share keys and values, innermost last: positions, and the heads of a
    /// group.
    pub(super) rows: Vec<IterSplit>,
    /// The loop over the keys, which is the reduction axis of the softmax.
    pub(super) key: Axis,
    /// The reduction loop of the product, and its extent.
    pub(super) depth: (VarId, i64),
    /// The loop over the elements of a row of values, and its extent: the columns of the result.
    pub(super) width: (VarId, i64),
    /// An element of the queries, without constant factors.
    pub(super) query: Expr,
    /// An element of the keys, without constant factors.
    pub(super) keys: Expr,
    /// An element of the values.
    pub(super) values: Expr,
    /// The product's buffer, which the score reads. Its elements are `scale * Σ query * keys`.
    pub(super) product: BufferId,
    /// The product of the constant factors of queries and keys, such as 0.125 for `(q * 0.125) · k`.
    pub(super) scale: f64,
    /// The loops of the product, then the loop [`Problem::width`].
    pub(super) loops: Vec<Loop>,
    /// The score, as a function of the element of `product`.
    pub(super) score: Expr,
    /// Whether the weights of a fully masked row are 0, as in a safe softmax. Otherwise they are NaN.
    pub(super) is_zero_of_none: bool,
    /// The buffer of the weighted sum.
    pub(super) sum: BufferId,
    /// The elementwise statements that follow and are fused.
    pub(super) epilogue: Epilogue,
}

/// A loop, or one of the two loops that a loop is split into: it contributes `scale * index` to the loop's value.
///
/// For example, 32 query heads whose groups of 4 share keys are the batch split `{ extent: 8, scale: 4 }` and the row
/// split `{ extent: 4, scale: 1 }`.
#[derive(Clone, Debug)]
pub(super) struct IterSplit {
    /// The loop's variable.
    pub(super) var: VarId,
    /// The number of indices.
    pub(super) extent: Expr,
    /// The distance in the loop's value from one index to the next.
    pub(super) scale: i64,
}

/// The matched product of queries and keys.
struct Product {
    /// The buffer of the product.
    buffer: BufferId,
    /// The indices of its element.
    place: Vec<Expr>,
    /// The factors, without constant multipliers, in the order of the statement.
    factors: [Expr; 2],
    /// The product of the constant multipliers.
    scale: f64,
    /// The spatial loops.
    axes: Vec<Axis>,
    /// The reduction loop.
    depth: Axis,
}

/// The matched softmax over rows of scores.
struct Softmax {
    /// The score, as a function of the element of the product.
    score: Expr,
    /// The loop over the keys.
    key: VarId,
    /// The buffer of the rows' maxima.
    max: BufferId,
    /// The exponential of one score, without casts between floating-point dtypes; known after [`Softmax::add_up`].
    exp: Option<Expr>,
    /// The buffer of the sums of exponentials; known after [`Softmax::add_up`].
    sum: Option<BufferId>,
}

/// The matched sum of weighted values.
struct Weighted {
    /// The buffer in which the sum is stored.
    buffer: BufferId,
    /// The indices of its element.
    place: Vec<Expr>,
    /// The loop over the columns of the result.
    width: Axis,
    /// The element of the values.
    values: Expr,
    /// See [`Problem::is_zero_of_none`].
    is_zero_of_none: bool,
}

impl Problem {
    /// Matches the first statements of a task.
    pub(super) fn of(task: &Task<'_>) -> Result<Problem, Declined> {
        let mut reading = Reading::new(task);
        let product = Product::of(&reading)?;
        reading.begin(product.buffer, &product.place, product.axes.clone())?;
        let mut buffers = vec![product.buffer];
        let (mut softmax, mut checks): (Option<Softmax>, Vec<(Check, VarId)>) = (None, Vec::new());
        let mut at = 1;
        let weighted = loop {
            let nest = reading.nest(at)?;
            at += 1;
            let Some(reduction) = nest.reduction() else {
                buffers.push(element(&mut reading, &nest)?);
                continue;
            };
            if !reading.func().buffer(reduction.buffer).dtype.is_float() {
                let (place, value, key) = reduced(&mut reading, &nest, &reduction)?;
                checks.push((Check::of(&reduction, &value)?, key));
                reading.is(reduction.buffer, &place);
                buffers.push(reduction.buffer);
                continue;
            }
            match &mut softmax {
                None => softmax = Some(Softmax::of(&mut reading, &nest, &reduction)?),
                Some(known) if known.sum.is_none() => known.add_up(&mut reading, &nest, &reduction)?,
                Some(known) => break known.weighted(&mut reading, &nest, &reduction, &checks)?,
            }
            buffers.push(reduction.buffer);
        };
        let softmax = softmax.ok_or_else(|| Declined::because("requires a row maximum of the scores; found none"))?;
        if checks.iter().any(|(check, key)| *key != softmax.key || check.score != unrounded(&softmax.score)) {
            return Err(Declined::because(
                "requires checks for masked rows on the scores of the softmax; found other scores",
            ));
        }
        let epilogue = epilogue(task, &mut reading, &product, softmax.key, &weighted, at)?;
        for buffer in &buffers {
            if !task.is_temporary(*buffer) || task.is_used_after(epilogue.taken, *buffer) {
                let name = task.func.buffer(*buffer).name;
                return Err(Declined::because(format!(
                    "requires `{name}` to be an intermediate result; found another use"
                )));
            }
        }
        let statements = task.statements.iter().take(epilogue.taken).map(|one| one.stmt.clone()).collect();
        assemble(task.func, (product, softmax, weighted), (statements, at), (buffers, epilogue))
    }

    /// Returns the number of rows per value of the batch.
    pub(super) fn row_count(&self) -> Expr {
        count(&self.rows)
    }

    /// Returns the number of values of the batch.
    pub(super) fn batch_count(&self) -> Expr {
        count(&self.batch)
    }

    /// Returns the number of keys as an `int64`.
    pub(super) fn key_count(&self) -> Expr {
        self.key.extent.clone().cast(DType::INT64)
    }
}

fn count(splits: &[IterSplit]) -> Expr {
    splits.iter().fold(Expr::int(1), |count, split| count * split.extent.clone().cast(DType::INT64))
}

impl Product {
    fn of(reading: &Reading<'_>) -> Result<Product, Declined> {
        let nest = reading.nest(0)?;
        let reduction = nest
            .reduction()
            .ok_or_else(|| Declined::because("requires a sum as the first statement; found another statement"))?;
        let dtype = reading.func().buffer(reduction.buffer).dtype;
        if reduction.combine != BinaryOp::Add || !is_zero(reduction.init.as_ref()) {
            return Err(Declined::because("requires a sum as the first statement; found another statement"));
        }
        if !dtype.is_float() || dtype.bits > 32 || dtype.bits < 16 || dtype.lanes != 1 {
            return Err(Declined::because(format!("requires a first sum of floats of 16 to 32 bits; found {dtype}")));
        }
        let Expr::Binary { op: BinaryOp::Mul, left, right } = &reduction.value else {
            return Err(Declined::because(
                "requires a sum of products as the first statement; found a sum of other values",
            ));
        };
        let (reduced, spatial): (Vec<_>, Vec<_>) = nest.loops.iter().partition(|inner| inner.kind == IterKind::Reduce);
        let [depth] = &reduced[..] else {
            let count = reduced.len();
            return Err(Declined::because(format!("requires one reduction loop of queries and keys; found {count}")));
        };
        if spatial.iter().any(|inner| inner.kind != IterKind::Spatial) {
            return Err(Declined::because("requires spatial and reduction axes; found an axis of another kind"));
        }
        let axis = |inner: &Loop| Axis { var: inner.var, extent: inner.extent.clone() };
        let ((left, left_scale), (right, right_scale)) = (unscaled(left), unscaled(right));
        Ok(Product {
            buffer: reduction.buffer,
            place: reduction.indices.clone(),
            factors: [left, right],
            scale: left_scale * right_scale,
            axes: spatial.into_iter().map(axis).collect(),
            depth: axis(depth),
        })
    }
}

/// Matches an elementwise statement and records the value of its buffer. Returns the buffer.
fn element(reading: &mut Reading<'_>, nest: &Nest) -> Result<BufferId, Declined> {
    let (buffer, place, value) = computed(reading, nest)?;
    reading.has(buffer, &place, value)?;
    Ok(buffer)
}

/// Matches an elementwise statement. Returns its buffer, and its indices and value over the loops of the product.
fn computed(reading: &mut Reading<'_>, nest: &Nest) -> Result<(BufferId, Vec<Expr>, Expr), Declined> {
    let Stmt::Store { buffer, indices, value, .. } = &nest.body else {
        return Err(Declined::because("requires sums and elementwise stores; found another statement"));
    };
    if nest.init.is_some() || reading.knows(*buffer) || !reading.reads_known(value) {
        let name = reading.func().buffer(*buffer).name;
        return Err(Declined::because(format!(
            "requires `{name}` to be computed once from the scores; found another form"
        )));
    }
    let bound = reading.bound(nest, value)?;
    let is_index = |var: VarId| indices.iter().any(|index| matches!(index, Expr::Var { var: of, .. } if *of == var));
    if !bound.own.is_empty() || !nest.loops.iter().all(|inner| is_index(inner.var)) {
        let name = reading.func().buffer(*buffer).name;
        return Err(Declined::because(format!(
            "requires one store to each element of `{name}`; found repeated stores"
        )));
    }
    let here = |expr: &Expr| reading.here(&bound, expr);
    Ok((*buffer, indices.iter().map(here).collect(), here(value)))
}

impl Softmax {
    /// Matches the first statement of a softmax: the maximum of each row's scores.
    fn of(reading: &mut Reading<'_>, nest: &Nest, reduction: &Reduction) -> Result<Softmax, Declined> {
        if reduction.combine != BinaryOp::Max || !is_lowest(reduction.init.as_ref()) {
            return Err(Declined::because("requires a row maximum of the scores; found another reduction"));
        }
        let (place, score, key) = reduced(reading, nest, reduction)?;
        reading.is(reduction.buffer, &place);
        Ok(Softmax { score, key, max: reduction.buffer, exp: None, sum: None })
    }

    /// Matches the second statement: the sum of the exponentials.
    fn add_up(&mut self, reading: &mut Reading<'_>, nest: &Nest, reduction: &Reduction) -> Result<(), Declined> {
        if reduction.combine != BinaryOp::Add || !is_zero(reduction.init.as_ref()) {
            return Err(Declined::because("requires a sum after the row maximum; found another reduction"));
        }
        let (place, exp, key) = reduced(reading, nest, reduction)?;
        if key != self.key || !self.is_exp(&exp) {
            return Err(Declined::because("requires a sum of exp(score - maximum); found another sum"));
        }
        reading.is(reduction.buffer, &place);
        self.exp = Some(unrounded(&exp));
        self.sum = Some(reduction.buffer);
        Ok(())
    }

    /// Whether the expression is `exp(score - max)`, with casts between floating-point dtypes ignored. The maximum may
    /// be replaced by 0 where it is −∞, which avoids the NaN of −∞ − −∞: `select(max == -inf, 0, max)`.
    fn is_exp(&self, expr: &Expr) -> bool {
        let Expr::Call { function: Intrinsic::Exp, args, .. } = unrounded(expr) else { return false };
        let [Expr::Binary { op: BinaryOp::Sub, left, right }] = &args[..] else { return false };
        let is_max = |expr: &Expr| loads(expr, self.max);
        let is_finite = match chosen(right) {
            None => is_max(right),
            Some((at, then, otherwise)) => {
                is_max(at.0) && is_minus_infinity(at.1) && is_zero(Some(then)) && is_max(otherwise)
            }
        };
        is_finite && **left == unrounded(&self.score)
    }

    /// Matches the sum of the values, weighted by the exponentials divided by their sum.
    fn weighted(
        &self,
        reading: &mut Reading<'_>,
        nest: &Nest,
        reduction: &Reduction,
        checks: &[(Check, VarId)],
    ) -> Result<Weighted, Declined> {
        let declined = |reason: &str| Err(Declined::because(reason));
        if reduction.combine != BinaryOp::Add || !is_zero(reduction.init.as_ref()) {
            return declined("requires a sum after the softmax; found another reduction");
        }
        let Expr::Binary { op: BinaryOp::Mul, left, right } = &reduction.value else {
            return declined("requires a sum of weights times values; found a sum of other values");
        };
        let (weight, values) = match (reading.reads_known(left), reading.reads_known(right)) {
            (true, false) => (left, right),
            (false, true) => (right, left),
            _ => return declined("requires a product of weights and values; found another product"),
        };
        let bound = reading.bound(nest, weight)?;
        let [width] = &bound.own[..] else {
            return declined("requires one loop over a row of values; found several or none");
        };
        let Some(is_zero_of_none) = self.is_weight(&reading.here(&bound, weight), checks) else {
            return declined("requires weights exp(score - maximum) / sum; found others");
        };
        let is_key = |inner: &Loop| matches!(reading.here(&bound, &reading.func().var_expr(inner.var)), Expr::Var { var, .. } if var == self.key);
        if !nest.loops.iter().all(|inner| (inner.kind == IterKind::Reduce) == is_key(inner)) {
            return declined("requires a sum over the keys; found another reduction loop");
        }
        let here = |expr: &Expr| reading.here(&bound, expr);
        Ok(Weighted {
            buffer: reduction.buffer,
            place: reduction.indices.iter().map(here).collect(),
            width: width.clone(),
            values: here(values),
            is_zero_of_none,
        })
    }

    /// Matches a weight: `exp / sum`, or 0 instead for fully masked rows, where the sum is 0 or one of the `checks`
    /// finds that all scores are −∞. Returns whether it has this 0, or `None` if the expression is no weight.
    fn is_weight(&self, expr: &Expr, checks: &[(Check, VarId)]) -> Option<bool> {
        let sum = self.sum?;
        let expr = unrounded(expr);
        let is_quotient = |expr: &Expr| match expr {
            Expr::Binary { op: BinaryOp::Div, left, right } => loads(right, sum) && Some(&**left) == self.exp.as_ref(),
            _ => false,
        };
        if let Expr::Select { condition, then, otherwise } = &expr
            && let Some(is_none) = checks.iter().find_map(|(check, _)| check.is_none(condition))
        {
            let (none, some) = if is_none { (then, otherwise) } else { (otherwise, then) };
            return (is_zero(Some(none)) && is_quotient(some)).then_some(true);
        }
        match chosen(&expr) {
            None => is_quotient(&expr).then_some(false),
            Some((at, then, otherwise)) => {
                let is_none = loads(at.0, sum) && is_zero(Some(at.1)) && is_zero(Some(then));
                (is_none && is_quotient(otherwise)).then_some(true)
            }
        }
    }
}

/// Matches a reduction of each row of scores to one element. Returns its indices, the reduced value and the reduction
/// axis, over the loops of the product.
fn reduced(
    reading: &mut Reading<'_>,
    nest: &Nest,
    reduction: &Reduction,
) -> Result<(Vec<Expr>, Expr, VarId), Declined> {
    let bound = reading.bound(nest, &reduction.value)?;
    let over: Vec<Expr> = nest
        .loops
        .iter()
        .filter(|inner| inner.kind == IterKind::Reduce)
        .map(|inner| reading.here(&bound, &reading.func().var_expr(inner.var)))
        .collect();
    let [Expr::Var { var: key, .. }] = over[..] else {
        return Err(Declined::because("requires one reduction loop over a row of scores; found several or none"));
    };
    let place: Vec<Expr> = reduction.indices.iter().map(|index| reading.here(&bound, index)).collect();
    let is_place = |inner: &Loop| {
        inner.kind == IterKind::Spatial
            && reduction.indices.iter().any(|index| matches!(index, Expr::Var { var, .. } if *var == inner.var))
    };
    let whole = nest.loops.iter().all(|inner| inner.kind == IterKind::Reduce || is_place(inner));
    if !bound.own.is_empty() || !whole || place.iter().any(|index| index.uses(key)) {
        return Err(Declined::because("requires one result element for each row of scores; found others"));
    }
    Ok((place, reading.here(&bound, &reduction.value), key))
}

/// Collects the elementwise statements after the weighted sum, which is the last of the first `taken` statements.
/// Declines if an earlier statement uses the buffer of the sum. Each loop must be exactly one of the sum's indices, and
/// the other indices must be constants.
fn epilogue(
    task: &Task<'_>,
    reading: &mut Reading<'_>,
    product: &Product,
    key: VarId,
    weighted: &Weighted,
    taken: usize,
) -> Result<Epilogue, Declined> {
    let mut axes: Vec<Axis> = product.axes.iter().filter(|axis| axis.var != key).cloned().collect();
    axes.push(weighted.width.clone());
    reading.begin(weighted.buffer, &weighted.place, axes.clone())?;
    if task.statements.iter().take(taken - 1).any(|one| crate::rules::uses(&one.stmt, weighted.buffer)) {
        let name = task.func.buffer(weighted.buffer).name;
        return Err(Declined::because(format!(
            "requires a separate buffer for the result; found earlier uses of `{name}`"
        )));
    }
    let mut scope = Scope::new(task.func);
    let elements = axes.iter().fold(Dim::constant(1), |all, axis| &all * &scope.dim(&axis.extent));
    let front = Front { statements: taken, ..Front::default() };
    let mut epilogue = Epilogue::of(task, task.func, front, (weighted.buffer, &weighted.place), &elements);
    let spatial = |axis: Axis| Loop { var: axis.var, extent: axis.extent, kind: IterKind::Spatial };
    let loops: Vec<Loop> = axes.into_iter().map(spatial).collect();
    epilogue.locate(&mut |buffer, indices| Affine::of(task.func, &loops, buffer, indices));
    Ok(epilogue)
}

/// Builds the problem from the matched statements: decides which factor is the queries, and whether a loop belongs to
/// the batch, the rows or both.
fn assemble(
    func: &PrimFunc,
    (product, softmax, weighted): (Product, Softmax, Weighted),
    (statements, behind): (Vec<Stmt>, usize),
    (kept, epilogue): (Vec<BufferId>, Epilogue),
) -> Result<Problem, Declined> {
    let [left, right] = product.factors;
    let (query, keys) = match (left.uses(softmax.key), right.uses(softmax.key)) {
        (false, true) => (left, right),
        (true, false) => (right, left),
        _ => {
            return Err(Declined::because(
                "requires the key loop in one factor of the product; found it in both or in neither",
            ));
        }
    };
    let constant = |axis: &Axis| match axis.extent.as_int() {
        Some(extent) if (1..=WIDEST).contains(&extent) => Ok((axis.var, extent)),
        Some(extent) => Err(Declined::because(format!("requires rows of 1 to {WIDEST} elements; found {extent}"))),
        None => Err(Declined::because(format!("requires rows of 1 to {WIDEST} elements; found a symbolic length"))),
    };
    let (depth, width) = (constant(&product.depth)?, constant(&weighted.width)?);
    let one_loop = |axis: &Axis| Loop { var: axis.var, extent: axis.extent.clone(), kind: IterKind::Spatial };
    let loops = product.axes.iter().chain([&product.depth, &weighted.width]).map(one_loop).collect();
    let (mut batch, mut rows, mut key) = (Vec::new(), Vec::new(), None);
    for axis in product.axes {
        if axis.var == softmax.key {
            key = Some(axis);
            continue;
        }
        let Axis { var, extent } = axis;
        match shared_by(var, &extent, [&keys, &weighted.values]) {
            Some(0) => rows.push(IterSplit { var, extent, scale: 1 }),
            Some(group) => {
                let constant = |value: i64| Expr::Int { value, dtype: extent.dtype() };
                let groups = extent.as_int().unwrap_or(group) / group;
                batch.push(IterSplit { var, extent: constant(groups), scale: group });
                rows.push(IterSplit { var, extent: constant(group), scale: 1 });
            }
            None => batch.push(IterSplit { var, extent, scale: 1 }),
        }
    }
    let key = key.ok_or_else(|| Declined::because("requires a loop of the product over the keys; found none"))?;
    Ok(Problem {
        func: func.clone(),
        statements,
        behind,
        kept,
        batch,
        rows,
        key,
        depth,
        width,
        query,
        keys,
        values: weighted.values,
        product: product.buffer,
        scale: product.scale,
        loops,
        score: softmax.score,
        is_zero_of_none: weighted.is_zero_of_none,
        sum: weighted.buffer,
        epilogue,
    })
}

/// Returns how many neighbouring indices of a loop share their keys and values (`factors`): 0 if all do, because the
/// factors do not use the loop; `None` if sharing is not proved. For example, `k[h // 4, n, d]` and `v[h // 4, n, e]`
/// are shared in groups of 4 along `h`, if the extent of `h` is a constant multiple of 4.
fn shared_by(var: VarId, extent: &Expr, factors: [&Expr; 2]) -> Option<i64> {
    let mut group = None;
    let (mut uses, mut as_group) = (0, 0);
    for factor in factors {
        factor.walk(&mut |part| match part {
            Expr::Var { var: of, .. } if *of == var => uses += 1,
            Expr::Binary { op: BinaryOp::FloorDiv, left, right } => {
                let is_var = match &**left {
                    Expr::Var { var: of, .. } => *of == var,
                    Expr::Cast { value, .. } => matches!(**value, Expr::Var { var: of, .. } if of == var),
                    _ => false,
                };
                if is_var && let Some(by) = right.as_int() {
                    as_group += i64::from(group.is_none_or(|known| known == by));
                    group = Some(by);
                }
            }
            _ => {}
        });
    }
    if uses == 0 {
        return Some(0);
    }
    let group = group.filter(|group| *group > 1 && as_group == uses)?;
    (extent.as_int()? % group == 0).then_some(group)
}

/// Matches `select(a == b, then, otherwise)`, or `!=` with the branches swapped. Returns `(a, b)`, `then` and
/// `otherwise`.
fn chosen(expr: &Expr) -> Option<((&Expr, &Expr), &Expr, &Expr)> {
    let Expr::Select { condition, then, otherwise } = expr else { return None };
    match &**condition {
        Expr::Compare { op: CompareOp::Eq, left, right } => Some(((left, right), then, otherwise)),
        Expr::Compare { op: CompareOp::Ne, left, right } => Some(((left, right), otherwise, then)),
        _ => None,
    }
}

fn loads(expr: &Expr, wanted: BufferId) -> bool {
    matches!(expr, Expr::Load { buffer, .. } if *buffer == wanted)
}

/// Whether the expression is an initial value of a float maximum: −∞, or TVM's lowest finite value of 16 or 32 bits,
/// which is compared with a few digits only.
fn is_lowest(expr: Option<&Expr>) -> bool {
    let Some(Expr::Float { value, dtype }) = expr else { return false };
    let lowest = match dtype.code {
        rx_base::dtype::TypeCode::BFloat => -3.389e38,
        _ if dtype.bits == 16 => -65504.0,
        _ => -3.4028e38,
    };
    *value <= lowest
}
