//! Replacement of symbolic dims that a cast binds to a known dim. For example, with `x: R.Tensor((m,))`, the cast
//! `R.match_cast(x, R.Tensor((o,)))` binds `o` to `m`, so that later uses of `o` become `m`.

use crate::make::{Changed, expr_again, infer_known};
use crate::pass::PassError;
use crate::substitute::unify;
use rx_base::Dim;
use rx_base::name::{NameMap, NameSet};
use rx_ir::rewrite::Renaming;
use rx_ir::{BoundValue, Branches, Expr, ExprKind, RelaxFunction, Sequence, StructInfo, VarBinding};
use std::sync::Arc;

/// Replaces the symbols with the known dims throughout a function, and infers the affected types again.
pub(super) fn settle(function: &mut RelaxFunction) -> Result<(), PassError> {
    let mut settling = Settling::default();
    settling.signature(function);
    settling.sequence(&mut function.body)
}

#[derive(Clone, Default)]
struct Settling {
    /// The symbols that are bound before the current position. Only a symbol that is not bound yet gets its value from
    /// a cast.
    bound: NameSet,
    dims: NameMap<Dim>,
    changed: Changed,
}

impl Settling {
    fn signature(&mut self, function: &RelaxFunction) {
        for (param, ty) in &function.params {
            self.bound.insert(*param);
            self.bound.extend(ty.symbols());
        }
    }

    fn renaming<T>(&self, with: impl FnOnce(&Renaming<'_>) -> T) -> T {
        with(&Renaming { dim: &|symbol| self.dims.get(&symbol).cloned(), variable: &|_| None })
    }

    fn sequence(&mut self, sequence: &mut Sequence) -> Result<(), PassError> {
        for binding in sequence.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
            let variable = binding.variable;
            self.binding(binding).map_err(|error| error.at(variable))?;
        }
        self.expr(&mut sequence.result)?;
        Ok(())
    }

    fn binding(&mut self, binding: &mut VarBinding) -> Result<(), PassError> {
        let before = binding.ty.clone();
        binding.ty = self.renaming(|renaming| renaming.ty(&binding.ty));
        let ty = match &mut binding.value {
            BoundValue::Expr(value) => self.expr(value)?,
            BoundValue::If(branches) => self.branches(branches)?,
            BoundValue::Function(function) => {
                self.nested(Arc::make_mut(function))?;
                None
            }
        };
        if let Some(ty) = ty {
            binding.ty = ty;
        }
        if let BoundValue::Expr(Expr { kind: ExprKind::MatchCast(value), ty: wanted, .. }) = &mut binding.value {
            self.record(wanted, &value.ty);
            *wanted = self.renaming(|renaming| renaming.ty(wanted));
            binding.ty = self.renaming(|renaming| renaming.ty(&binding.ty));
        }
        if binding.ty != before {
            self.changed.insert(binding.variable, binding.ty.clone());
        }
        self.bound.insert(binding.variable);
        Ok(())
    }

    /// Records the values of the symbols that a cast to `wanted` is the first to bind, taken from `given`, the type of
    /// the cast's operand.
    fn record(&mut self, wanted: &StructInfo, given: &StructInfo) {
        let mut dims = NameMap::default();
        unify(wanted, given, &mut dims);
        for symbol in wanted.symbols() {
            if self.bound.insert(symbol)
                && let Some(dim) = dims.remove(&symbol).filter(|dim| *dim != Dim::ERROR)
            {
                self.dims.insert(symbol, dim);
            }
        }
    }

    /// Replaces the dims in an expression. Returns its type if it changed.
    fn expr(&self, expr: &mut Expr) -> Result<Option<StructInfo>, PassError> {
        if self.dims.is_empty() {
            return Ok(None);
        }
        let before = expr.clone();
        self.renaming(|renaming| renaming.expr(expr));
        expr_again(expr, &self.changed)?;
        if *expr != before
            && let ExprKind::Call(call) = &expr.kind
            && let rx_ir::Callee::Op(_) = call.callee
            && let Some(ty) = infer_known(call)?
        {
            expr.ty = ty;
        }
        Ok((expr.ty != before.ty).then(|| expr.ty.clone()))
    }

    /// Processes both branches of an `if`. The dims that one branch binds are not replaced outside of it.
    fn branches(&mut self, branches: &mut Branches) -> Result<Option<StructInfo>, PassError> {
        self.expr(&mut branches.condition)?;
        let before = branches.then.result.ty.clone();
        self.clone().sequence(&mut branches.then)?;
        self.clone().sequence(&mut branches.otherwise)?;
        let after = &branches.then.result.ty;
        Ok((*after == branches.otherwise.result.ty && *after != before).then(|| after.clone()))
    }

    fn nested(&mut self, function: &mut RelaxFunction) -> Result<(), PassError> {
        self.renaming(|renaming| {
            function.params.iter_mut().for_each(|(_, ty)| *ty = renaming.ty(ty));
            function.ret = renaming.ty(&function.ret);
        });
        let mut inner = self.clone();
        inner.signature(function);
        inner.sequence(&mut function.body)
    }
}
