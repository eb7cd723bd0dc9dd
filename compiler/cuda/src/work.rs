//! Computes the size of a launch and the amount of its work. Together they show whether a kernel has enough threads.

use crate::source::{KernelInfo, LaunchShape};
use rustc_hash::FxHashMap;
use rx_base::DType;
use rx_tir::rewrite::substitute;
use rx_tir::{Expr, PrimFunc, Stmt, VarId, evaluate_index, is_evaluable};

/// The size of a launch, for given values of scalars and symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSize {
    /// The numbers of blocks on the axes x, y and z; zeros if the kernel is not launched.
    pub grid: [i64; 3],
    /// The number of threads of all blocks.
    pub threads: i64,
    /// The value of [`KernelInfo::work`]; zero if the kernel is not launched.
    pub work: i64,
}

impl KernelInfo {
    /// Returns the size of the launch in the first iteration of the host loops, for values of the function's scalars
    /// and symbols. Returns `None` if an expression of the host loops, the guard or the grid cannot be evaluated, or if
    /// the kernel is launched and its work cannot be evaluated.
    pub fn launch_size(&self, value_of: &dyn Fn(VarId) -> Option<i64>) -> Option<LaunchSize> {
        let mut host_loops: FxHashMap<VarId, i64> = FxHashMap::default();
        let mut is_launched = true;
        for host_loop in &self.host_loops {
            let known = |var: VarId| host_loops.get(&var).copied().or_else(|| value_of(var));
            is_launched &= evaluate_index(&host_loop.extent, &known)? > 0;
            let start = evaluate_index(&host_loop.start, &known)?;
            host_loops.insert(host_loop.var, start);
        }
        let value = |expr: &Expr| evaluate_index(expr, &|var| host_loops.get(&var).copied().or_else(|| value_of(var)));
        if let Some(guard) = &self.guard {
            is_launched &= value(guard)? != 0;
        }
        let LaunchShape { grid: [x, y, z], .. } = &self.shape;
        let grid = [value(x)?, value(y)?, value(z)?].map(|blocks| blocks.max(0));
        let blocks = grid.iter().fold(1i64, |all, blocks| all.saturating_mul(*blocks));
        Some(match is_launched && blocks > 0 {
            true => {
                let threads = blocks.saturating_mul(i64::from(self.shape.block_threads()));
                LaunchSize { grid, threads, work: value(&self.work)? }
            }
            false => LaunchSize { grid: [0; 3], threads: 0, work: 0 },
        })
    }
}

/// Returns the number of iterations of the innermost loops of statements: an `int64` over the function's scalars and
/// symbols and the variables of host loops. A statement without loops counts as one iteration.
///
/// An extent that depends on another loop is evaluated at the middle of that loop. For example, `for j in range(i)`
/// inside `for i in range(n)` counts `(n - 1) // 2` iterations, which is close to the mean. A loop whose extent the
/// kernel computes counts as one iteration, and a `while` as one execution of its body.
pub(crate) fn iterations<'s>(func: &PrimFunc, statements: impl IntoIterator<Item = &'s Stmt>) -> Expr {
    let mut counter = Counter { func, middle: FxHashMap::default() };
    let counts = statements.into_iter().map(|stmt| counter.stmt(stmt).unwrap_or(Expr::int(1)));
    counts.reduce(|all, more| all + more).unwrap_or(Expr::int(0))
}

struct Counter<'f> {
    func: &'f PrimFunc,
    /// The values of variables; of a loop variable, its value at the middle of the loop.
    middle: FxHashMap<VarId, Expr>,
}

impl Counter<'_> {
    /// Returns the number of iterations of the innermost `for` loops of a statement, or `None` if it has none.
    fn stmt(&mut self, stmt: &Stmt) -> Option<Expr> {
        match stmt {
            Stmt::For { var, start, extent, body, .. } => {
                let extent = self.known(extent).map_or(Expr::int(1), |extent| extent.max(Expr::int(0)));
                if let Some(start) = self.known(start) {
                    let middle = start + (extent.clone() - Expr::int(1)).max(Expr::int(0)).floor_div(Expr::int(2));
                    self.name(*var, middle);
                }
                Some(match self.stmt(body) {
                    Some(inside) => extent * inside,
                    None => extent,
                })
            }
            Stmt::Block(block) => {
                for iter in &block.iters {
                    if let Some(value) = self.known(&iter.binding) {
                        self.name(iter.var, value);
                    }
                }
                self.stmt(&block.body)
            }
            other => {
                if let Stmt::Let { var, value, .. } = other
                    && let Some(value) = self.known(value)
                {
                    self.name(*var, value);
                }
                other.children().into_iter().filter_map(|child| self.stmt(child)).reduce(|all, more| all + more)
            }
        }
    }

    fn name(&mut self, var: VarId, value: Expr) {
        self.middle.insert(var, value.cast(self.func.var(var).dtype));
    }

    /// Returns an integer expression as an `int64` over scalars and symbols, with the values of `middle` in place of
    /// other variables. Returns `None` if that is not possible, or if the expression is no integer.
    fn known(&self, expr: &Expr) -> Option<Expr> {
        let uniform = |var: VarId| self.func.scalar_params().any(|one| one == var) || self.func.symbols.contains(&var);
        let value = substitute(expr, &|var| self.middle.get(&var).cloned());
        (value.dtype().is_int() && is_evaluable(&value, &uniform)).then(|| value.cast(DType::INT64))
    }
}
