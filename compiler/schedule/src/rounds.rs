//! How many rounds the loops of a function take, told from its arguments before it runs.

use rx_tir::{Expr, Param, PrimFunc, Stmt, VarId, evaluate_index};

/// The rounds of a function's loops, for any values of its scalars and symbols.
///
/// Loops whose extent is found out on the way ([`is_told`] says no) and `while` count one round here: whoever runs them
/// counts the rest.
#[derive(Clone, Debug)]
pub struct Rounds(Tally);

/// Rounds that are numbers, and loops over others.
#[derive(Clone, Debug, Default)]
struct Tally {
    constant: u64,
    loops: Vec<(Expr, Tally)>,
}

impl Rounds {
    /// Those of a function.
    pub fn of(func: &PrimFunc) -> Rounds {
        let mut tally = Tally::default();
        tally.add(func, &func.body, 1);
        Rounds(tally)
    }

    /// How many there are, for these values of scalars and symbols; the largest number where it is larger.
    pub fn count(&self, values: &[Option<i64>]) -> u64 {
        self.0.count(&|var| values.get(var.0 as usize).copied().flatten())
    }
}

impl Tally {
    /// Adds a statement that is done `times` times.
    fn add(&mut self, func: &PrimFunc, stmt: &Stmt, times: u64) {
        if let Stmt::For { extent, body, .. } = stmt
            && is_told(func, extent)
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

/// Whether an extent follows from the function's scalars and symbols alone.
pub fn is_told(func: &PrimFunc, extent: &Expr) -> bool {
    extent.all(&|part| match part {
        Expr::Var { var, .. } => func.symbols.contains(var) || func.params.contains(&Param::Scalar(*var)),
        Expr::Load { .. } | Expr::Call { .. } => false,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::Rounds;
    use rx_base::DType;
    use rx_base::name::name;
    use rx_tir::{Expr, Param, PrimFunc, Stmt};

    #[test]
    fn rounds_are_products_of_extents() {
        let mut func = PrimFunc::new(name("f"));
        let [n, i, j, k] = ["n", "i", "j", "k"].map(|text| func.add_var(name(text), DType::INT64));
        func.params.push(Param::Scalar(n));
        let n_of = func.var_expr(n);
        let triangle = Stmt::for_loop(k, func.var_expr(j), Stmt::nothing());
        let inner = Stmt::for_loop(j, n_of.clone(), triangle);
        func.body = Stmt::seq([Stmt::for_loop(i, Expr::int(4), inner), Stmt::for_loop(i, n_of, Stmt::nothing())]);
        let rounds = Rounds::of(&func);
        // Four of the outermost loop; per round ten of the second, each with one of the third, which nothing tells.
        assert_eq!(rounds.count(&[Some(10)]), 4 + 4 * 10 * 2 + 10);
        assert_eq!(rounds.count(&[Some(-1)]), 4);
        assert_eq!(rounds.count(&[Some(i64::MAX)]), u64::MAX);
    }
}
