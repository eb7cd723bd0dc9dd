//! Index narrowing: rewrites int64 index arithmetic to int32 where interval analysis proves that every intermediate
//! value fits.
//!
//! ```text
//! x[y * 128 + k]           // int64, y < 64, k < 128
//! →
//! x[y_32 * 128 + k_32]     // int32, at most 8191
//! ```
//!
//! Requires: loops with constant extents below 2^31 - 1. Guarantees: the values do not change; an expression that may
//! overflow keeps its 64 bits. The reason: a GPU needs many instructions for each 64-bit division or multiplication.
//!
//! Reference: TVM's pass `NarrowDataType` (`src/tir/transforms/narrow_datatype.cc`).

use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_tir::rewrite::map_expr;
use rx_tir::{BinaryOp, Expr, PrimFunc, VarId};

/// The int32 copies of loop variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct NarrowIndices {
    /// By loop variable: the extent, and the int32 copy.
    of: FxHashMap<VarId, (i64, VarId)>,
}

/// An int32 expression with the bounds of its value, both inclusive.
struct Ranged {
    expr: Expr,
    low: i64,
    high: i64,
}

impl NarrowIndices {
    /// Adds int32 copies to `func` for those of the int64 `loops` whose extents are constants below 2^31 - 1.
    pub(crate) fn of<'l>(loops: impl Iterator<Item = &'l (VarId, Expr)>, func: &mut PrimFunc) -> NarrowIndices {
        let mut narrow_indices = NarrowIndices::default();
        for (var, extent) in loops {
            if let Some(extent) = extent.as_int().filter(|extent| *extent < i64::from(i32::MAX))
                && func.var(*var).dtype == DType::INT64
            {
                let narrow = func.add_var(func.var(*var).name, DType::INT32);
                narrow_indices.of.insert(*var, (extent, narrow));
            }
        }
        narrow_indices
    }

    /// Returns the int32 copy of a loop variable, if it has one.
    pub(crate) fn narrow(&self, var: VarId) -> Option<VarId> {
        self.of.get(&var).map(|(_, narrow)| *narrow)
    }

    /// Rewrites to 32 bits each load index that fits, and each comparison whose operands both fit.
    pub(crate) fn narrowed(&self, expr: &Expr) -> Expr {
        map_expr(expr, &mut |part| match part {
            Expr::Load { buffer, dtype, indices } => {
                Expr::Load { buffer, dtype, indices: indices.iter().map(|index| self.index(index)).collect() }
            }
            Expr::Compare { op, left, right } => match (self.ranged(&left), self.ranged(&right)) {
                (Some(left), Some(right)) => Expr::compare(op, left.expr, right.expr),
                _ => Expr::Compare { op, left, right },
            },
            other => other,
        })
    }

    /// Returns the index in 32 bits where it fits, otherwise unchanged.
    pub(crate) fn index(&self, index: &Expr) -> Expr {
        self.ranged(index).map_or_else(|| index.clone(), |ranged| ranged.expr)
    }

    fn ranged(&self, expr: &Expr) -> Option<Ranged> {
        let (expr, low, high) = match expr {
            Expr::Int { value, .. } if expr.dtype().is_int() => (int32(*value), *value, *value),
            Expr::Var { var, dtype: DType::INT64 } => {
                let (extent, narrow) = self.of.get(var)?;
                (Expr::Var { var: *narrow, dtype: DType::INT32 }, 0, (extent - 1).max(0))
            }
            Expr::Cast { dtype: DType::INT64 | DType::INT32, value } => return self.ranged(value),
            Expr::Checked { index, extent, buffer, axis, site } => {
                let (index, high) = (self.ranged(index)?.expr, extent.as_int()? - 1);
                let (index, extent) = (Box::new(index), extent.clone());
                (Expr::Checked { index, extent, buffer: *buffer, axis: *axis, site: *site }, 0, high.max(0))
            }
            Expr::Select { condition, then, otherwise } => {
                let (then, otherwise) = (self.ranged(then)?, self.ranged(otherwise)?);
                let (low, high) = (then.low.min(otherwise.low), then.high.max(otherwise.high));
                (Expr::select(self.narrowed(condition), then.expr, otherwise.expr), low, high)
            }
            Expr::Binary { op, left, right } if matches!(expr.dtype(), DType::INT64 | DType::INT32) => {
                let (a, b) = (self.ranged(left)?, self.ranged(right)?);
                let (low, high) = range(*op, (a.low, a.high), (b.low, b.high))?;
                (Expr::binary(*op, a.expr, b.expr), low, high)
            }
            _ => return None,
        };
        let fits = i32::try_from(low).is_ok() && i32::try_from(high).is_ok();
        fits.then_some(Ranged { expr, low, high })
    }
}

fn int32(value: i64) -> Expr {
    Expr::Int { value, dtype: DType::INT32 }
}

/// Returns bounds of an operation on operands in `[a, b]` and `[c, d]`; `None` for unsupported operations, for
/// divisors that are not a positive constant, and for truncating division or remainder of a possibly negative value.
/// The operands fit 32 bits, so the arithmetic here cannot overflow 64.
fn range(op: BinaryOp, (a, b): (i64, i64), (c, d): (i64, i64)) -> Option<(i64, i64)> {
    Some(match op {
        BinaryOp::Add => (a + c, b + d),
        BinaryOp::Sub => (a - d, b - c),
        BinaryOp::Mul => {
            let corners = [a * c, a * d, b * c, b * d];
            (corners.iter().copied().min()?, corners.iter().copied().max()?)
        }
        BinaryOp::FloorDiv if c == d && c > 0 => (a.div_euclid(c), b.div_euclid(c)),
        BinaryOp::FloorMod if c == d && c > 0 => (0, c - 1),
        BinaryOp::TruncDiv | BinaryOp::Div if c == d && c > 0 && a >= 0 => (a / c, b / c),
        BinaryOp::TruncMod if c == d && c > 0 && a >= 0 => (0, c - 1),
        BinaryOp::Min => (a.min(c), b.min(d)),
        BinaryOp::Max => (a.max(c), b.max(d)),
        _ => return None,
    })
}
