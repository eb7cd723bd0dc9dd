//! Trip counts of a function's loops, computed from its scalar arguments and symbols before it runs.

use rx_tir::{Expr, Param, PrimFunc, Stmt, VarId, evaluate_index};

/// The number of loop iterations that a function executes, as an expression over its scalars and symbols.
///
/// A loop whose extent is only known during the run (see [`is_host_computable`]), and each `while`, counts here as if
/// it had one iteration. During the run, the CPU back end counts all its iterations, with the loops inside them, so its
/// total is too large by the iteration that is counted here.
#[derive(Clone, Debug)]
pub struct IterationCount(Tally);

/// A constant number of iterations, and the loops whose extents are symbolic, each with the tally of one of its
/// iterations: itself and the loops inside it. All numbers are multiplied by the constant extents of the loops around.
#[derive(Clone, Debug, Default)]
struct Tally {
    constant: u64,
    loops: Vec<(Expr, Tally)>,
}

impl IterationCount {
    /// Tallies the loops of a function.
    pub fn of(func: &PrimFunc) -> IterationCount {
        let mut tally = Tally::default();
        tally.add(func, &func.body, 1);
        IterationCount(tally)
    }

    /// Returns the number of iterations for these values of scalars and symbols, indexed by variable; saturates at
    /// `u64::MAX`.
    pub fn count(&self, values: &[Option<i64>]) -> u64 {
        self.0.count(&|var| values.get(var.0 as usize).copied().flatten())
    }
}

impl Tally {
    /// Adds the loops of a statement. `times` is the product of the constant extents of the loops around it.
    fn add(&mut self, func: &PrimFunc, stmt: &Stmt, times: u64) {
        if let Stmt::For { extent, body, .. } = stmt
            && is_host_computable(func, extent)
        {
            match extent.as_int() {
                Some(extent) => {
                    let times = times.saturating_mul(u64::try_from(extent).unwrap_or(0));
                    self.constant = self.constant.saturating_add(times);
                    self.add(func, body, times);
                }
                None => {
                    let mut inside = Tally { constant: times, loops: Vec::new() };
                    inside.add(func, body, times);
                    self.loops.push((extent.clone(), inside));
                }
            }
            return;
        }
        if matches!(stmt, Stmt::For { .. } | Stmt::While { .. }) {
            self.constant = self.constant.saturating_add(times);
        }
        stmt.children().into_iter().for_each(|child| self.add(func, child, times));
    }

    fn count(&self, value_of: &dyn Fn(VarId) -> Option<i64>) -> u64 {
        self.loops.iter().fold(self.constant, |sum, (extent, inside)| {
            let extent = evaluate_index(extent, value_of).and_then(|extent| u64::try_from(extent).ok());
            sum.saturating_add(extent.unwrap_or(0).saturating_mul(inside.count(value_of)))
        })
    }
}

/// Returns the number of iterations of the loops with constant extents in a statement. A `while` and a loop whose extent
/// is no constant, and all loops inside these, are left out.
pub fn constant_iterations(stmt: &Stmt) -> u64 {
    let inside = |stmt: &Stmt| stmt.children().into_iter().map(constant_iterations).fold(0, u64::saturating_add);
    match stmt {
        Stmt::For { extent, body, .. } => extent.as_int().map_or(0, |extent| {
            let extent = u64::try_from(extent).unwrap_or(0);
            extent.saturating_mul(constant_iterations(body).saturating_add(1))
        }),
        Stmt::While { .. } => 0,
        other => inside(other),
    }
}

/// Whether an extent is host-computable: a function of the function's scalars and symbols alone, without loads and
/// calls.
pub fn is_host_computable(func: &PrimFunc, extent: &Expr) -> bool {
    extent.all(&|part| match part {
        Expr::Var { var, .. } => func.symbols.contains(var) || func.params.contains(&Param::Scalar(*var)),
        Expr::Load { .. } | Expr::Call { .. } => false,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::{IterationCount, constant_iterations};
    use rx_base::DType;
    use rx_base::name::name;
    use rx_tir::{Expr, Param, PrimFunc, Stmt};

    #[test]
    fn iterations_are_products_of_extents() {
        let mut func = PrimFunc::new(name("f"));
        let [n, i, j, k] = ["n", "i", "j", "k"].map(|text| func.add_var(name(text), DType::INT64));
        func.params.push(Param::Scalar(n));
        let n_of = func.var_expr(n);
        let triangle = Stmt::for_loop(k, func.var_expr(j), Stmt::nothing());
        let inner = Stmt::for_loop(j, n_of.clone(), triangle);
        func.body = Stmt::seq([Stmt::for_loop(i, Expr::int(4), inner), Stmt::for_loop(i, n_of, Stmt::nothing())]);
        let iterations = IterationCount::of(&func);
        // The outermost loop has 4 iterations. Each of them has 10 iterations of the second loop, and each of those
        // counts 1 for the third loop, whose extent is not known in advance.
        assert_eq!(iterations.count(&[Some(10)]), 4 + 4 * 10 * 2 + 10);
        assert_eq!(iterations.count(&[Some(-1)]), 4);
        assert_eq!(iterations.count(&[Some(i64::MAX)]), u64::MAX);
    }

    #[test]
    fn loops_inside_computed_loops_are_no_constant_iterations() {
        let mut func = PrimFunc::new(name("f"));
        let [n, i, j, k] = ["n", "i", "j", "k"].map(|text| func.add_var(name(text), DType::INT64));
        let five = || Stmt::for_loop(j, Expr::int(5), Stmt::nothing());
        let computed = Stmt::for_loop(k, func.var_expr(n), five());
        let endless = Stmt::While { condition: func.var_expr(n), body: Box::new(five()) };
        let body = Stmt::for_loop(i, Expr::int(4), Stmt::seq([five(), computed, endless]));
        assert_eq!(constant_iterations(&body), 4 + 4 * 5);
        assert_eq!(constant_iterations(&Stmt::for_loop(i, Expr::int(-1), five())), 0);
    }
}
