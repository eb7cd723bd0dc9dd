//! Axis splitting: splits the axes of a function's temporaries where their indices are composite, so that the nests of
//! a merged function have common loops.
//!
//! ```text
//! for i in 24: t[i] = ...                            for a, b in (2, 12): t[a, b] = ...
//! for a, b in (2, 12): y[a, b] = t[a * 12 + b]   →   for a, b in (2, 12): y[a, b] = t[a, b]
//! ```
//!
//! Composite indices arise, for example, where a view was between two of the merged kernels.
//!
//! Requires temporaries without strides, whose extent is a multiple of the factor. Every index of the axis is either
//! the variable of a block axis over all of it, or has the form `high * factor + low` with `0 <= low < factor`.
//! Guarantees that no index is divided.

use super::reshape::{Splits, cut, in_loops, joined, nest_of, uncut};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::name;
use rx_base::symbolic::Atom;
use rx_base::{DType, Dim, Name};
use rx_tir::dim::{of_dim, to_dim};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, map_stmt_shallow, substitute};
use rx_tir::{Block, Expr, Stmt};

/// The maximum number of splits in a function.
const MAX_CUTS: usize = 32;

/// Splits axes of the function's temporaries until none can be split further, or [`MAX_CUTS`] were split.
pub(super) fn delinearize(func: &PrimFunc) -> PrimFunc {
    let (mut func, mut symbols) = (func.clone(), Symbols::default());
    for _ in 0..MAX_CUTS {
        let Some(next) = cut_one(&func, &mut symbols) else { break };
        func = next;
    }
    func
}

/// Returns the function with one axis split, or `None` where no axis can be split.
fn cut_one(func: &PrimFunc, symbols: &mut Symbols) -> Option<PrimFunc> {
    let temporaries = symbols.read(func);
    let factors = symbols.factors(func, &temporaries);
    for buffer in temporaries {
        if func.buffer(buffer).strides.is_some() {
            continue;
        }
        for axis in 0..func.buffer(buffer).shape.len() {
            // The candidate factors are the coefficients above 1 in the axis' indices, the largest first.
            let found = factors.get(&(buffer, axis)).into_iter().flatten();
            let mut bases: Vec<i64> = found.copied().filter(|factor| *factor > 1).collect();
            bases.sort_unstable_by(|a, b| b.cmp(a));
            for by in bases {
                let Some(extents) = symbols.cut_extents(&func.buffer(buffer).shape[axis], by, func) else { continue };
                let func = func.clone();
                let mut cutting = Cutting { func, symbols, buffer, axis, by, extents, failed: false };
                if let Some(()) = cutting.run() {
                    return Some(cutting.func);
                }
            }
        }
    }
    None
}

/// The function's variables as symbols of dims, and the extents of its block axes. Index arithmetic is done on dims.
#[derive(Default)]
struct Symbols {
    /// The symbol of each variable, by variable number.
    names: Vec<Name>,
    /// The variable of each symbol.
    of: FxHashMap<Name, VarId>,
    /// The extents of block axes that start at 0.
    extents: FxHashMap<VarId, Expr>,
}

impl Symbols {
    /// Adds the function's new variables and the extents of its axes. Existing symbols keep their names. Returns the
    /// function's temporaries.
    fn read(&mut self, func: &PrimFunc) -> Vec<BufferId> {
        for at in self.names.len()..func.vars.len() {
            let name = name(&format!("v{at}"));
            self.names.push(name);
            self.of.insert(name, VarId(at as u32));
        }
        let mut temporaries = Vec::new();
        func.body.walk(&mut |stmt| {
            if let Stmt::Block(block) = stmt {
                temporaries.extend(block.allocations.iter().copied());
                for iter in block.iters.iter().filter(|iter| iter.start.as_int() == Some(0)) {
                    self.extents.insert(iter.var, iter.extent.clone());
                }
            }
        });
        temporaries
    }

    /// Converts an expression to a symbolic dim.
    fn dim(&self, expr: &Expr) -> Option<Dim> {
        to_dim(expr, &|var| self.names.get(var.0 as usize).map(|name| Dim::symbol(*name)))
    }

    /// Converts a symbolic dim back to an expression.
    fn expr(&self, dim: &Dim, func: &PrimFunc) -> Expr {
        of_dim(dim, &mut |name, _| self.of.get(&name).map_or(Expr::int(0), |var| func.var_expr(*var)))
    }

    /// Returns the extents `[extent / by, by]` of an axis split by `by`. Returns `None` where the extent is not known
    /// to be a multiple of `by`, or equals it.
    fn cut_extents(&self, extent: &Expr, by: i64, func: &PrimFunc) -> Option<[Expr; 2]> {
        let extent = self.dim(extent)?;
        let base = Dim::constant(by);
        let high = extent.floor_div(&base);
        let whole = !high.is_error() && &high * &base == extent && high.as_constant() != Some(1);
        whole.then(|| [self.expr(&high, func), Expr::int(by)])
    }

    /// Collects, by buffer and axis, the coefficients in the indices of the `wanted` buffers. For example,
    /// `t[a * 12 + b]` adds 12 and 1.
    fn factors(&self, func: &PrimFunc, wanted: &[BufferId]) -> FxHashMap<(BufferId, usize), FxHashSet<i64>> {
        let mut factors: FxHashMap<(BufferId, usize), FxHashSet<i64>> = FxHashMap::default();
        let mut add = |buffer: BufferId, indices: &[Expr]| {
            for (axis, index) in indices.iter().enumerate().filter(|_| wanted.contains(&buffer)) {
                if let Some(place) = self.dim(index) {
                    factors.entry((buffer, axis)).or_default().extend(place.terms().iter().map(|(_, factor)| *factor));
                }
            }
        };
        func.body.walk(&mut |stmt| {
            if let Stmt::Store { buffer, indices, .. } = stmt {
                add(*buffer, indices);
            }
            for expr in stmt.expressions() {
                expr.walk(&mut |part| {
                    if let Expr::Load { buffer, indices, .. } = part {
                        add(*buffer, indices);
                    }
                });
            }
        });
        factors
    }

    /// Splits an index into `[high, low]` with `index = high * by + low`. Returns `None` where `0 <= low < by` cannot
    /// be proved. For example, `a * 12 + b` with `b < 12` and `by = 12` gives `[a, b]`.
    fn splits(&self, index: &Dim, by: i64) -> Option<[Dim; 2]> {
        let constant = index.constant_part().rem_euclid(by);
        let (mut low, mut most) = (Dim::constant(constant), constant);
        for (product, factor) in index.terms().iter().filter(|(_, factor)| factor % by != 0) {
            let [(Atom::Symbol(symbol), 1)] = &product[..] else { return None };
            let extent = self.extents.get(self.of.get(symbol)?)?.as_int()?;
            most = most.checked_add(factor.checked_mul(extent - 1).filter(|most| *most >= 0)?)?;
            low = &low + &(&Dim::constant(*factor) * &Dim::symbol(*symbol));
        }
        let high = (index - &low).floor_div(&Dim::constant(by));
        (most < by && !high.is_error() && !low.is_error()).then_some([high, low])
    }
}

/// A split of one axis of a buffer, in progress.
struct Cutting<'s> {
    func: PrimFunc,
    symbols: &'s Symbols,
    buffer: BufferId,
    axis: usize,
    /// The factor: the extent of the inner axis.
    by: i64,
    /// The extents of the outer and the inner axis.
    extents: [Expr; 2],
    /// Whether a statement was found that uses the buffer outside a nest or in a nest that cannot be rewritten.
    failed: bool,
}

impl Cutting<'_> {
    /// Rewrites the body and the buffer's shape. Returns `None` where `failed` was set.
    fn run(&mut self) -> Option<()> {
        let body = std::mem::replace(&mut self.func.body, Stmt::nothing());
        self.func.body = self.statement(&body);
        let extents = self.extents.clone();
        self.func.buffers[self.buffer.0 as usize].shape.splice(self.axis..=self.axis, extents);
        (!self.failed).then_some(())
    }

    /// Rewrites a statement. Sets `failed` where it uses the buffer outside a nest, or in a nest that [`Self::nest`]
    /// cannot rewrite.
    fn statement(&mut self, stmt: &Stmt) -> Stmt {
        if self.failed {
            return Stmt::nothing();
        }
        if let Some((loops, block)) = nest_of(stmt) {
            let places = self.places(block);
            return match places.is_empty() {
                true => stmt.clone(),
                false => self.nest(&loops, block, &places).unwrap_or_else(|| {
                    self.failed = true;
                    Stmt::nothing()
                }),
            };
        }
        let stored = matches!(stmt, Stmt::Store { buffer, .. } if *buffer == self.buffer);
        let mut places = Vec::new();
        stmt.expressions().into_iter().for_each(|expr| self.loads(expr, &mut places));
        self.failed |= stored || !places.is_empty();
        map_stmt_shallow(stmt, &mut Expr::clone, &mut |inner| self.statement(inner))
    }

    /// Collects the axis' indices in the loads of an expression.
    fn loads(&self, expr: &Expr, into: &mut Vec<Expr>) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices, .. } = part
                && *buffer == self.buffer
            {
                into.push(indices[self.axis].clone());
            }
        });
    }

    /// Collects the axis' indices in the loads and stores of a block, except in its block axes.
    fn places(&self, block: &Block) -> Vec<Expr> {
        let mut places = Vec::new();
        block.predicate.iter().for_each(|expr| self.loads(expr, &mut places));
        for part in block.init.iter().chain([&block.body]) {
            part.walk(&mut |stmt| {
                if let Stmt::Store { buffer, indices, .. } = stmt
                    && *buffer == self.buffer
                {
                    places.push(indices[self.axis].clone());
                }
                stmt.expressions().into_iter().for_each(|expr| self.loads(expr, &mut places));
            });
        }
        places
    }

    /// Rewrites a nest whose indices on the buffer's axis are `places`. An index that is the variable of a block axis
    /// over all of the buffer's axis splits that block axis and its loop in two. Returns `None` where an index cannot
    /// be split.
    fn nest(&mut self, loops: &[(VarId, &Stmt)], block: &Block, places: &[Expr]) -> Option<Stmt> {
        let whole = self.symbols.dim(&self.func.buffer(self.buffer).shape[self.axis])?;
        let (mut block, mut new_loops, mut splits) = (block.clone(), uncut(loops), Splits::default());
        for place in places {
            if self.symbols.splits(&self.symbols.dim(place)?, self.by).is_some() {
                continue;
            }
            let Expr::Var { var, dtype: DType::INT64 } = place else { return None };
            if self.symbols.dim(self.symbols.extents.get(var)?)? != whole {
                return None;
            }
            if !splits.contains_key(var) {
                let extents = self.extents.to_vec();
                splits.insert(*var, cut(&mut self.func, &mut block, (loops, &mut new_loops), *var, extents)?);
            }
        }
        let (predicate, init, body) = (block.predicate.take(), block.init.take(), &block.body);
        let predicate = predicate.map(|expr| self.expr(&expr, &splits));
        let init = init.map(|stmt| self.within(&stmt, &splits));
        let body = self.within(body, &splits);
        in_loops(Block { predicate, init, body, ..block }, loops, &new_loops)
    }

    /// Rewrites a statement inside a block.
    fn within(&self, stmt: &Stmt, splits: &Splits) -> Stmt {
        let mut expr = |expr: &Expr| self.expr(expr, splits);
        match stmt {
            Stmt::Store { buffer, indices, value, site } if *buffer == self.buffer => Stmt::Store {
                buffer: *buffer,
                indices: self.indices(indices, splits).iter().map(&mut expr).collect(),
                value: expr(value),
                site: *site,
            },
            other => map_stmt_shallow(other, &mut expr, &mut |inner| self.within(inner, splits)),
        }
    }

    /// Rewrites an expression: splits the indices of the buffer's loads, and replaces the variables of split block axes
    /// by `outer * factor + inner`.
    fn expr(&self, expr: &Expr, splits: &Splits) -> Expr {
        let read = map_expr(expr, &mut |part| match part {
            Expr::Load { buffer, indices, dtype } if buffer == self.buffer => {
                Expr::Load { buffer, indices: self.indices(&indices, splits), dtype }
            }
            other => other,
        });
        substitute(&read, &|var| splits.get(&var).and_then(|splits| joined(splits)))
    }

    /// Replaces the index on the buffer's axis by two: the variables of the two new block axes if it is the variable of
    /// a split block axis, otherwise the split index.
    fn indices(&self, indices: &[Expr], splits: &Splits) -> Vec<Expr> {
        let mut cut = indices.to_vec();
        let index = &indices[self.axis];
        let of_loop = match index {
            Expr::Var { var, .. } => {
                splits.get(var).map(|splits| splits.iter().map(|(value, _)| value.clone()).collect())
            }
            _ => None,
        };
        let computed = || {
            let found = self.symbols.splits(&self.symbols.dim(index)?, self.by)?;
            Some(found.iter().map(|split| self.symbols.expr(split, &self.func)).collect::<Vec<Expr>>())
        };
        // `nest` has already rejected indices that cannot be split, so one of the two is found.
        if let Some(found) = of_loop.or_else(computed) {
            cut.splice(self.axis..=self.axis, found);
        }
        cut
    }
}
