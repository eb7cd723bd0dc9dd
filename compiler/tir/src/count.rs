//! Cost of a function: the number of arithmetic operations, and the bytes of its parameters.

use crate::dim::to_dim;
use crate::expr::Expr;
use crate::func::{Param, PrimFunc};
use crate::stmt::Stmt;
use rx_base::name::NameMap;
use rx_base::{Dim, Name};

/// The cost of a function, over the names of its parameters and symbols. A field is `None`, for example, if an extent
/// that it depends on does not follow from those.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// The number of arithmetic operations in stored and `let` values. Indices of accesses, conditions and `init` are
    /// left out; a cast, comparison or selection itself does not count. `None` also if a `while` has operations.
    pub operations: Option<Dim>,
    /// The bytes of all buffer parameters, as if each element were read or written once.
    pub bytes: Option<Dim>,
}

/// Computes the cost of a function: each operation counts once for each iteration of the loops around it. All branches
/// are counted.
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
    /// Returns the number of operations of one call. `values` are the values of the function's variables, as
    /// [`crate::bind_symbols`] returns them. Returns `None` if the number does not follow from them, or if two
    /// variables of the same name have different values.
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
    /// Converts an integer expression over parameters and symbols.
    fn dim(&self, expr: &Expr) -> Option<Dim> {
        to_dim(expr, &|var| self.outer_name(var).map(Dim::symbol))
    }

    /// Returns the name of a parameter or symbol; `None` for variables that the body binds.
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
                // A loop without operations costs nothing, whatever its extent is.
                if body.as_constant() == Some(0) { Some(body) } else { Some(&body * &self.dim(extent)?) }
            }
            Stmt::Block(block) => {
                // `init` does not count: it is executed once for each result, and mostly stores a constant.
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

/// Counts the arithmetic operations of a value, without the indices of loads and the conditions of selections.
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
