//! The kernels of operator calls, as a query: an [`OperatorCall`] contains everything that its kernel depends on, so
//! the result can be cached.

use crate::loops::Loops;
use crate::program::Scalar;
use rx_base::Name;
use rx_base::symbolic::Bounds;
use rx_ir::{Argument, Expr, ExprKind, Origin, StructInfo};
use rx_ops::compute::Input;
use rx_ops::{Arg, CallInfo, Schema};
use rx_tir::Expr as TirExpr;
use rx_tir::rewrite::{map_expr, map_stmt};
use std::sync::Arc;

/// The key of an operator call's kernel. It excludes the names of variables and source positions, since the kernel does
/// not depend on them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperatorCall {
    operator: Name,
    arguments: Vec<Argument>,
    result: StructInfo,
}

/// The kernel of an operator call.
#[derive(Clone, Debug)]
pub struct CallKernel {
    /// The function. Indices that cannot be proved in range are marked.
    pub(crate) loops: Loops,
    /// The operands that are passed for its input buffers, in order.
    pub(crate) inputs: Vec<Input>,
    /// The values that are passed for its scalars, in order.
    pub(crate) scalars: Vec<Scalar>,
}

impl OperatorCall {
    /// Creates a call with these arguments, one for each parameter of the schema, and a result of type `result`.
    pub(crate) fn new(schema: &Schema, arguments: Vec<Argument>, result: &StructInfo) -> OperatorCall {
        OperatorCall { operator: Name::from(schema.name), arguments, result: result.clone() }
    }

    /// Generates the kernel.
    ///
    /// # Errors
    /// Returns the reason why there is no kernel: a sentence without a full stop.
    pub fn kernel(&self) -> Result<CallKernel, Arc<str>> {
        let Some(schema) = rx_ops::find(self.operator) else {
            return Err(format!("R.{} is no operator of Relax", self.operator).into());
        };
        let args: Vec<Arg<'_>> = self.arguments.iter().map(Arg::from).collect();
        let bounds = Bounds::default();
        let info = CallInfo::new(schema, &args, &bounds);
        let kernel = rx_ops::compute::lower(&info, &self.result);
        let kernel = kernel.map_err(|reason| Arc::from(format!("R.{}: {reason}", schema.name)))?;
        let (guarded, _) = rx_loops::guards(&kernel.func);
        let scalars = kernel.scalars.into_iter().map(Scalar::Int).collect();
        Ok(CallKernel { loops: Loops::ordered(guarded, kernel.inputs.len()), inputs: kernel.inputs, scalars })
    }
}

/// Reduces an operand to the parts that a kernel depends on: its type and, for a literal, its value.
pub(super) fn operand(expr: &Expr) -> Expr {
    let kind = match &expr.kind {
        ExprKind::Var(_) => ExprKind::Var(Name::default()),
        ExprKind::Tuple(fields) => ExprKind::Tuple(fields.iter().map(operand).collect()),
        ExprKind::Global(_)
        | ExprKind::TupleGet(..)
        | ExprKind::Call(_)
        | ExprKind::MatchCast(_)
        | ExprKind::Metadata { .. } => ExprKind::Global(Name::default()),
        literal => literal.clone(),
    };
    Expr::new(kind, expr.ty.clone())
}

/// Sets the statement `origin` in the run-time checks of a function that have none yet, for their messages.
pub(super) fn placed(loops: &Loops, origin: Option<Origin>) -> Loops {
    if origin.is_none() || !loops.properties().is_checked {
        return loops.clone();
    }
    let mut func = rx_tir::PrimFunc::clone(loops);
    func.body = map_stmt(&func.body, &mut |expr| {
        map_expr(expr, &mut |part| match part {
            TirExpr::Checked { index, extent, buffer, axis, mut site } => {
                site.origin = site.origin.or(origin);
                TirExpr::Checked { index, extent, buffer, axis, site }
            }
            other => other,
        })
    });
    Loops::new(func)
}
