//! Axes of a function's temporaries cut into the digits in which they are written or read: `x[a * 12 + b]`, where `b` is one of 12,
//! becomes `x[a, b]`, and a loop along all of the axis becomes two. What views leave behind in a function that is made of several:
//! each of its statements then has its loops by the same axes.

use super::reshape::{Digits, cut, in_loops, joined, nest_of, uncut};
use rustc_hash::{FxHashMap, FxHashSet};
use rx_base::name::name;
use rx_base::symbolic::Atom;
use rx_base::{DType, Dim, Name};
use rx_tir::dim::{of_dim, to_dim};
use rx_tir::func::{BufferId, PrimFunc, VarId};
use rx_tir::rewrite::{map_expr, map_stmt_shallow, substitute};
use rx_tir::{Block, Expr, Stmt};

/// The most cuts of a function.
const MAX_CUTS: usize = 32;

/// The function with the axes of its temporaries cut as far as their indices say.
pub(super) fn by_digits(func: &PrimFunc) -> PrimFunc {
    let (mut func, mut symbols) = (func.clone(), Symbols::default());
    for _ in 0..MAX_CUTS {
        let Some(next) = cut_one(&func, &mut symbols) else { break };
        func = next;
    }
    func
}

/// The function with one axis cut; `None` where none can be.
fn cut_one(func: &PrimFunc, symbols: &mut Symbols) -> Option<PrimFunc> {
    let temporaries = symbols.read(func);
    let factors = symbols.factors(func, &temporaries);
    for buffer in temporaries {
        if func.buffer(buffer).strides.is_some() {
            continue;
        }
        for axis in 0..func.buffer(buffer).shape.len() {
            // By what the axis' indices multiply, the largest first.
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

/// Variables as symbols of dims, and the values they take.
#[derive(Default)]
struct Symbols {
    names: Vec<Name>,
    of: FxHashMap<Name, VarId>,
    extents: FxHashMap<VarId, Expr>,
}

impl Symbols {
    /// Reads the variables of a function; gives its temporaries. The names of variables that it had before stay.
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

    fn dim(&self, expr: &Expr) -> Option<Dim> {
        to_dim(expr, &|var| self.names.get(var.0 as usize).map(|name| Dim::symbol(*name)))
    }

    fn expr(&self, dim: &Dim, func: &PrimFunc) -> Expr {
        of_dim(dim, &mut |name, _| self.of.get(&name).map_or(Expr::int(0), |var| func.var_expr(*var)))
    }

    /// The extents of an axis cut in two; `None` where it is no multiple of the base, or the base is all of it.
    fn cut_extents(&self, extent: &Expr, by: i64, func: &PrimFunc) -> Option<[Expr; 2]> {
        let extent = self.dim(extent)?;
        let base = Dim::constant(by);
        let high = extent.floor_div(&base);
        let whole = !high.is_error() && &high * &base == extent && high.as_constant() != Some(1);
        whole.then(|| [self.expr(&high, func), Expr::int(by)])
    }

    /// The factors of the indices by which the axes of some buffers are read and written, by buffer and axis.
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

    /// The digits of an index to a base; `None` where the lower is not known to be below it.
    fn digits(&self, index: &Dim, by: i64) -> Option<[Dim; 2]> {
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

/// An axis of a buffer being cut.
struct Cutting<'s> {
    func: PrimFunc,
    symbols: &'s Symbols,
    buffer: BufferId,
    axis: usize,
    by: i64,
    /// The extents of the two axes.
    extents: [Expr; 2],
    failed: bool,
}

impl Cutting<'_> {
    fn run(&mut self) -> Option<()> {
        let body = std::mem::replace(&mut self.func.body, Stmt::nothing());
        self.func.body = self.statement(&body);
        let extents = self.extents.clone();
        self.func.buffers[self.buffer.0 as usize].shape.splice(self.axis..=self.axis, extents);
        (!self.failed).then_some(())
    }

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

    fn loads(&self, expr: &Expr, into: &mut Vec<Expr>) {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices, .. } = part
                && *buffer == self.buffer
            {
                into.push(indices[self.axis].clone());
            }
        });
    }

    /// The axis' indices in a block.
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

    fn nest(&mut self, loops: &[(VarId, &Stmt)], block: &Block, places: &[Expr]) -> Option<Stmt> {
        let whole = self.symbols.dim(&self.func.buffer(self.buffer).shape[self.axis])?;
        let (mut block, mut new_loops, mut digits) = (block.clone(), uncut(loops), Digits::default());
        for place in places {
            if self.symbols.digits(&self.symbols.dim(place)?, self.by).is_some() {
                continue;
            }
            let Expr::Var { var, dtype: DType::INT64 } = place else { return None };
            if self.symbols.dim(self.symbols.extents.get(var)?)? != whole {
                return None;
            }
            if !digits.contains_key(var) {
                let extents = self.extents.to_vec();
                digits.insert(*var, cut(&mut self.func, &mut block, (loops, &mut new_loops), *var, extents)?);
            }
        }
        let (predicate, init, body) = (block.predicate.take(), block.init.take(), &block.body);
        let predicate = predicate.map(|expr| self.expr(&expr, &digits));
        let init = init.map(|stmt| self.within(&stmt, &digits));
        let body = self.within(body, &digits);
        in_loops(Block { predicate, init, body, ..block }, loops, &new_loops)
    }

    /// A statement of a block.
    fn within(&self, stmt: &Stmt, digits: &Digits) -> Stmt {
        let mut expr = |expr: &Expr| self.expr(expr, digits);
        match stmt {
            Stmt::Store { buffer, indices, value, site } if *buffer == self.buffer => Stmt::Store {
                buffer: *buffer,
                indices: self.indices(indices, digits).iter().map(&mut expr).collect(),
                value: expr(value),
                site: *site,
            },
            other => map_stmt_shallow(other, &mut expr, &mut |inner| self.within(inner, digits)),
        }
    }

    fn expr(&self, expr: &Expr, digits: &Digits) -> Expr {
        let read = map_expr(expr, &mut |part| match part {
            Expr::Load { buffer, indices, dtype } if buffer == self.buffer => {
                Expr::Load { buffer, indices: self.indices(&indices, digits), dtype }
            }
            other => other,
        });
        substitute(&read, &|var| digits.get(&var).and_then(|digits| joined(digits)))
    }

    /// The indices with the axis' as two.
    fn indices(&self, indices: &[Expr], digits: &Digits) -> Vec<Expr> {
        let mut cut = indices.to_vec();
        let index = &indices[self.axis];
        let of_loop = match index {
            Expr::Var { var, .. } => {
                digits.get(var).map(|digits| digits.iter().map(|(value, _)| value.clone()).collect())
            }
            _ => None,
        };
        let computed = || {
            let found = self.symbols.digits(&self.symbols.dim(index)?, self.by)?;
            Some(found.iter().map(|digit| self.symbols.expr(digit, &self.func)).collect::<Vec<Expr>>())
        };
        // A nest whose places have no digits was given up before.
        if let Some(found) = of_loop.or_else(computed) {
            cut.splice(self.axis..=self.axis, found);
        }
        cut
    }
}
