//! Checks calls of the module's functions: the known elements of the arguments against the requirements of the
//! callee's summary.
//!
//! ```text
//! def pick(x: R.Tensor((10, 4)), i: R.Tensor((3,), "int64")):   # requires: i in bounds for axis 0 of size 10
//!     return R.take(x, i, axis=0)
//! cls.pick(x, R.const([1, 2, 30], "int64"))                     # reported here: index 30 is out of bounds
//! ```

use super::checker::Checker;
use super::index_sites::{Described, softened};
use super::values::origin_of;
use crate::entry::Place;
use rx_base::{Dim, Name};
use rx_context::ItemPart;
use rx_ir::{Expr as IrExpr, Requirement, TensorValues, Term, Values};
use rx_ops::values::{Access, Context, Judgement, evaluate, in_type, judge};

impl Checker<'_> {
    /// Checks the known elements of the arguments against the callee's requirements.
    pub(super) fn check_requirements(&mut self, function: Name, args: &[IrExpr]) {
        let bounds = self.bounds.clone();
        let all: Vec<&IrExpr> = args.iter().collect();
        let Some(applied) = self.applied(function, &all, &bounds) else { return };
        for requirement in &applied.summary.requirements {
            let dim = |dim: &Dim| applied.dim(dim);
            let context = Context { arguments: &applied.arguments, dim: &dim, bounds: &bounds };
            let indices = evaluate(&TensorValues::clone(&requirement.indices).into(), &context);
            let Some(Values::Tensor(indices)) = indices.as_deref() else { continue };
            let argument = requirement.indices.term.as_deref().and_then(root);
            let argument = argument.and_then(|at| applied.arguments.get(at as usize)).and_then(Option::as_deref);
            let origin = indices.origin.clone().or_else(|| origin_of(argument?));
            let met = Requirement {
                indices: TensorValues { origin, ..indices.clone() },
                indices_ty: in_type(&requirement.indices_ty, &dim),
                data_ty: in_type(&requirement.data_ty, &dim),
                extent: applied.dim(&requirement.extent),
                function: requirement.function.or(Some(function)),
                conditional: requirement.conditional || self.blocks > 0,
                ..requirement.clone()
            };
            self.meet_requirement(requirement, met, args);
        }
    }

    /// Reports a requirement that the arguments violate, or records it for the callers of this function.
    fn meet_requirement(&mut self, own: &Requirement, met: Requirement, args: &[IrExpr]) {
        let access = Access { indices: &met.indices, ty: &met.indices_ty, extent: &met.extent, from_end: met.from_end };
        let judgement = judge(&access, &self.bounds.clone());
        let Some(arg) = own.indices.term.as_deref().and_then(root).and_then(|at| args.get(at as usize)) else { return };
        let short = met.operator.rsplit('.').next().unwrap_or_default().to_owned();
        let described = Described {
            operator: &short,
            indices: &met.indices,
            axis: met.axis,
            extent: &met.extent,
            from_end: met.from_end,
            data: (!met.data_ty.is_error()).then_some(&met.data_ty),
            param: None,
        };
        let place = Place::Here(arg.span);
        let report = match &judgement {
            Judgement::Certain(witness) if own.conditional => Some(softened(described.certain(witness, place))),
            Judgement::Certain(witness) => Some(described.certain(witness, place)),
            Judgement::Possible(end) if !own.reported => Some(described.possible(&end.value, place)),
            _ => None,
        };
        let Some(mut report) = report else {
            let depends = met.indices.term.is_some() && self.nesting == 0;
            if depends && matches!(judgement, Judgement::Open | Judgement::Possible(_)) {
                self.require(Requirement { indices: TensorValues { origin: None, ..met.indices }, ..met });
            }
            return;
        };
        if let Some(function) = met.function {
            let part = met.variable.map_or(ItemPart::Name, ItemPart::Binding);
            let axis = described.data_label().unwrap_or_else(|| format!("the depth is {}", met.extent));
            report = report.with_label(Place::Item(function, part), format!("`{function}` indexes by it here; {axis}"));
        }
        report = self.with_origins(report, met.indices.origin.as_ref());
        let keeps = own.indices.term.as_deref().is_some_and(keeps_elements);
        if keeps && met.extent.as_constant() != Some(0) && arg.ty.as_tensor().is_some() {
            report = self.with_limit_fixes(report, arg.span, &met.extent, met.from_end, &arg.ty, true);
        }
        self.report(report);
    }
}

/// Returns the index of the parameter that a term derives from.
fn root(term: &Term) -> Option<u32> {
    match term {
        Term::Param { index, .. } => Some(*index),
        Term::Call { operands, .. } => operands.iter().flatten().find_map(|values| root_of(values)),
    }
}

fn root_of(values: &Values) -> Option<u32> {
    match values {
        Values::Tensor(tensor) => tensor.term.as_deref().and_then(root),
        Values::Tuple(fields) => fields.iter().flatten().find_map(|field| root_of(field)),
    }
}

/// Whether the elements of a term are exactly those of a parameter.
fn keeps_elements(term: &Term) -> bool {
    match term {
        Term::Param { path, .. } => path.is_empty(),
        Term::Call { call, operands, .. } => {
            let rx_ir::Callee::Op(operator) = call.callee else { return false };
            let Some(schema) = rx_ops::find(operator) else { return false };
            let kept = schema.traits.kept.and_then(|kept| schema.params.iter().position(|param| param.name == kept));
            let operand = kept.and_then(|at| operands.get(at)).and_then(Option::as_deref);
            operand.and_then(Values::as_tensor).and_then(|tensor| tensor.term.as_deref()).is_some_and(keeps_elements)
        }
    }
}
