//! What a function costs: arithmetic operations, and bytes of its parameters.

use crate::dim::to_dim;
use crate::expr::Expr;
use crate::func::{Param, PrimFunc};
use crate::stmt::Stmt;
use rx_base::name::NameMap;
use rx_base::{Dim, Name};

/// Operations and bytes; over the names of parameters and symbols. `None` where a loop's extent is not known from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Arithmetic operations on values that are stored, indices left out; casts, comparisons and choices are none.
    pub operations: Option<Dim>,
    /// The bytes of all buffer parameters: each is read or written once.
    pub bytes: Option<Dim>,
}

/// Counts a function: operations times the rounds of the loops around them, every branch taken.
pub fn count(func: &PrimFunc) -> Count {
    let counter = Counter { func };
    let bytes = func.buffer_params().try_fold(Dim::constant(0), |sum, buffer| {
        let buffer = func.buffer(buffer);
        let size = i64::try_from(buffer.dtype.bytes()).ok()?;
        let elements = buffer
            .shape
            .iter()
            .try_fold(Dim::constant(size), |product, extent| Some(&product * &counter.dim(extent)?))?;
        Some(&sum + &elements)
    });
    let known = |dim: Option<Dim>| dim.filter(|dim| !dim.is_error());
    Count { operations: known(counter.statement(&func.body)), bytes: known(bytes) }
}

impl Count {
    /// The operations of one call; `values` are those of the function's variables, as [`crate::bind_symbols`] gives them.
    /// `None` where they do not follow, or two variables of one name differ.
    pub fn operations_of(&self, func: &PrimFunc, values: &[Option<i64>]) -> Option<u64> {
        let mut named: NameMap<i64> = NameMap::default();
        for var in func.scalar_params().chain(func.symbols.iter().copied()) {
            let Some(value) = values.get(var.0 as usize).copied().flatten() else { continue };
            if *named.entry(func.var(var).name).or_insert(value) != value {
                return None;
            }
        }
        let operations = self.operations.as_ref()?;
        let known = operations.substitute(&|symbol| named.get(&symbol).copied().map(Dim::constant));
        known.as_constant().and_then(|count| u64::try_from(count).ok())
    }
}

struct Counter<'f> {
    func: &'f PrimFunc,
}

impl Counter<'_> {
    /// An integer expression over parameters and symbols.
    fn dim(&self, expr: &Expr) -> Option<Dim> {
        to_dim(expr, &|var| self.outer_name(var).map(Dim::symbol))
    }

    /// The name of a variable that no loop binds.
    fn outer_name(&self, var: crate::func::VarId) -> Option<Name> {
        let scalar = self.func.params.contains(&Param::Scalar(var));
        (scalar || self.func.symbols.contains(&var)).then(|| self.func.var(var).name)
    }

    fn statement(&self, stmt: &Stmt) -> Option<Dim> {
        match stmt {
            Stmt::Seq(stmts) => {
                stmts.iter().try_fold(Dim::constant(0), |sum, stmt| Some(&sum + &self.statement(stmt)?))
            }
            Stmt::For { extent, body, .. } => {
                let body = self.statement(body)?;
                // A loop that computes nothing costs nothing, whatever its extent.
                if body.as_constant() == Some(0) { Some(body) } else { Some(&body * &self.dim(extent)?) }
            }
            Stmt::Block(block) => {
                // `init` is done once per result; it assigns and rarely computes.
                self.statement(&block.body)
            }
            Stmt::Store { value, .. } | Stmt::Let { value, .. } => {
                let own = Dim::constant(operations(value));
                match stmt {
                    Stmt::Let { body, .. } => Some(&own + &self.statement(body)?),
                    _ => Some(own),
                }
            }
            Stmt::If { then, otherwise, .. } => {
                let then = self.statement(then)?;
                match otherwise {
                    Some(otherwise) => Some(&then + &self.statement(otherwise)?),
                    None => Some(then),
                }
            }
            Stmt::While { body, .. } => {
                let body = self.statement(body)?;
                (body.as_constant() == Some(0)).then_some(body)
            }
            Stmt::Assert { .. } | Stmt::Evaluate(_) => Some(Dim::constant(0)),
        }
    }
}

/// The arithmetic operations of a value; indices of loads are none.
fn operations(expr: &Expr) -> i64 {
    match expr {
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var { .. } | Expr::Load { .. } => 0,
        Expr::Cast { value, .. } => operations(value),
        Expr::Unary { value, .. } => 1 + operations(value),
        Expr::Binary { left, right, .. } => 1 + operations(left) + operations(right),
        Expr::Compare { left, right, .. } => operations(left) + operations(right),
        Expr::Select { then, otherwise, .. } => operations(then) + operations(otherwise),
        Expr::Call { args, .. } => 1 + args.iter().map(operations).sum::<i64>(),
        Expr::Checked { index, .. } => operations(index),
    }
}
