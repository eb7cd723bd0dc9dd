//! Tracks known elements of values (`rx_ir::values`): by the rules of operators, and by the summaries of called
//! functions.
//!
//! For example, in `i = R.add(R.const([0, 1]), R.const(2))`, the elements of `i` are known to be `[2, 3]`.

use super::checker::Checker;
use crate::entry::Entry;
use crate::unify::Bindings;
use rx_base::name::name;
use rx_base::{Dim, Name};
use rx_ir::values::{MAX_STEPS, Step};
use rx_ir::{
    Argument, Call, Callee, Expr as IrExpr, ExprKind as IrKind, Known, StructInfo, TensorValues, Term, Values,
};
use rx_ir::{FunctionSignature, Signature, Summary};
use rx_ops::values::{Context, evaluate};
use rx_ops::{Arg, CallInfo};
use std::sync::Arc;

/// A call of a function, with the summary of its values.
pub(super) struct Applied<'a> {
    pub(super) function: Name,
    pub(super) summary: Arc<Summary>,
    pub(super) arguments: Vec<Known>,
    pub(super) bindings: Bindings<'a>,
}

impl Applied<'_> {
    /// Rewrites a dim of the callee in terms of the caller's symbols. A symbol that no argument binds is renamed to
    /// `function.symbol`.
    pub(super) fn dim(&self, dim: &Dim) -> Dim {
        dim.substitute(&|symbol| {
            Some(match self.bindings.get(symbol) {
                Some(bound) => bound.value.clone(),
                None => Dim::symbol(name(&format!("{}.{symbol}", self.function))),
            })
        })
    }
}

impl Checker<'_> {
    /// Returns what is known of a value's elements: the elements, their range, or how they follow from parameters.
    pub(super) fn values_of(&mut self, expr: &IrExpr) -> Known {
        match &expr.kind {
            IrKind::Var(variable) => match self.lookup(*variable) {
                Some(Entry::Value { values, .. }) => values,
                _ => None,
            },
            IrKind::Constant(_) | IrKind::Elements(_) => rx_ops::values::of_constant(&expr.kind, &expr.ty),
            IrKind::Metadata { key, index } => {
                let listed = self.file.constants.as_ref()?.get(key)?;
                listed.get(*index as usize)?.values.clone()
            }
            IrKind::Tuple(items) => Values::tuple(items.iter().map(|item| self.values_of(item)).collect()),
            IrKind::TupleGet(tuple, at) => self.values_of(tuple)?.field(*at),
            IrKind::MatchCast(value) => self.values_of(value),
            IrKind::Call(call) => match &call.callee {
                Callee::Op(operator) => self.operator_values(*operator, call, &expr.ty),
                Callee::Global(function) => {
                    let arguments: Vec<&IrExpr> = call.arguments.iter().filter_map(operand).collect();
                    self.function_values(*function, &arguments)
                }
                Callee::Value(_) => None,
            },
            _ => None,
        }
    }

    fn operator_values(&mut self, operator: Name, call: &Call, result: &StructInfo) -> Known {
        let schema = rx_ops::find(operator).filter(|schema| rx_ops::values::follows(schema))?;
        let operands: Vec<Known> = call.arguments.iter().map(|argument| self.operand_values(argument)).collect();
        let args: Vec<Arg<'_>> = call.arguments.iter().map(Arg::from).collect();
        let bounds = self.bounds.clone();
        let known = rx_ops::values::infer(&CallInfo::new(schema, &args, &bounds), &operands, result)?;
        let origin = operands.iter().flatten().find_map(|values| origin_of(values));
        Some(match origin {
            Some(origin) => Arc::new(with_origin(&known, &origin)),
            None => known,
        })
    }

    /// Returns the known elements of an operand. A float tensor that is only known to be a parameter counts as
    /// unknown: operators derive nothing from that, and `check_weights` reads it from the arguments of calls.
    fn operand_values(&mut self, argument: &Argument) -> Known {
        let is_float = operand(argument).is_some_and(|operand| is_float(&operand.ty));
        self.argument_values(argument).filter(|values| !is_float || !is_parameter(values))
    }

    /// Returns the known elements of an argument; for several operands, those of each.
    pub(super) fn argument_values(&mut self, argument: &Argument) -> Known {
        match argument {
            Argument::Operand(expr) => self.values_of(expr),
            Argument::Operands(exprs) => Values::tuple(exprs.iter().map(|expr| self.values_of(expr)).collect()),
            _ => None,
        }
    }

    /// Returns the known elements of a call's result.
    fn function_values(&mut self, function: Name, args: &[&IrExpr]) -> Known {
        let bounds = self.bounds.clone();
        let applied = self.applied(function, args, &bounds)?;
        let dim = |dim: &Dim| applied.dim(dim);
        let context = Context { arguments: &applied.arguments, dim: &dim, bounds: &bounds };
        evaluate(&applied.summary.result, &context)
    }

    /// Returns the callee's summary with the call's arguments, if something is known of the arguments or the result
    /// may be an index.
    pub(super) fn applied<'b>(
        &mut self,
        function: Name,
        args: &[&IrExpr],
        bounds: &'b rx_base::symbolic::Bounds,
    ) -> Option<Applied<'b>> {
        if self.is_recording() {
            return None;
        }
        let signature = self.asked.signature(function)?;
        let Signature::Relax(FunctionSignature { params, ret, .. }) = &*signature else { return None };
        let arguments: Vec<Known> = args.iter().map(|arg| self.values_of(arg)).collect();
        let tells = |(values, arg): (&Known, &&IrExpr)| values.as_deref().is_some_and(|values| tells(values, &arg.ty));
        let asks = ret.as_ref().is_none_or(holds_integers);
        if params.len() != args.len() || !(asks || arguments.iter().zip(args).any(tells)) {
            return None;
        }
        let summary = self.asked.summary(function)?;
        let mut bindings = Bindings::new(bounds);
        for (at, ((_, param), arg)) in params.iter().zip(args).enumerate() {
            bindings.meet_types(param, &arg.ty, at);
        }
        Some(Applied { function, summary, arguments, bindings })
    }
}

/// Whether elements have known facts, or may be indices that are a parameter of the caller.
fn tells(values: &Values, ty: &StructInfo) -> bool {
    match values {
        Values::Tensor(tensor) => tensor.has_facts() || tensor.term.is_some() && holds_integers(ty),
        Values::Tuple(fields) => {
            let types = ty.as_tuple().unwrap_or_default();
            fields.iter().zip(types).any(|(field, ty)| field.as_deref().is_some_and(|field| tells(field, ty)))
        }
    }
}

/// Whether a type contains a tensor of integers.
fn holds_integers(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().any(holds_integers),
        ty => ty.as_tensor().and_then(|tensor| tensor.dtype).is_some_and(|dtype| dtype.is_int()),
    }
}

fn operand(argument: &Argument) -> Option<&IrExpr> {
    match argument {
        Argument::Operand(expr) => Some(expr),
        _ => None,
    }
}

/// Returns the last variable that the elements passed through.
pub(super) fn origin_of(values: &Values) -> Option<Arc<Step>> {
    match values {
        Values::Tensor(tensor) => tensor.origin.clone(),
        Values::Tuple(fields) => fields.iter().flatten().find_map(|field| origin_of(field)),
    }
}

/// Sets the origin of elements that have none.
fn with_origin(values: &Values, origin: &Arc<Step>) -> Values {
    match values {
        Values::Tensor(tensor) => {
            let origin = tensor.origin.clone().or_else(|| Some(origin.clone()));
            Values::Tensor(TensorValues { origin, ..tensor.clone() })
        }
        Values::Tuple(fields) => {
            let field = |field: &Known| field.as_ref().map(|values| Arc::new(with_origin(values, origin)));
            Values::Tuple(fields.iter().map(field).collect())
        }
    }
}

/// Returns the known elements of a variable, with the variable added to their origin, unless it is an alias of
/// another variable.
///
/// Elements that are only known to be those of a parameter need no origin. Floats with only one known bound, as after
/// every `relu`, are dropped: an index computed from them has no range.
pub(super) fn named(values: Known, variable: Name, value: &IrExpr) -> Known {
    let is_alias = matches!(value.kind, IrKind::Var(_));
    match values.as_deref() {
        Some(Values::Tensor(tensor)) if is_float(&value.ty) && has_one_end(tensor) => None,
        Some(Values::Tensor(tensor)) if !is_alias && tensor.has_facts() => {
            let from = tensor.origin.clone();
            let length = from.as_ref().map_or(1, |from| from.length + 1);
            if length > MAX_STEPS {
                return values;
            }
            let origin = Some(Arc::new(Step { variable, from, length }));
            Some(Arc::new(Values::Tensor(TensorValues { origin, ..tensor.clone() })))
        }
        _ => values,
    }
}

fn is_float(ty: &StructInfo) -> bool {
    matches!(ty, StructInfo::Tensor(tensor) if tensor.dtype.is_some_and(|dtype| dtype.is_float()))
}

fn is_parameter(values: &Values) -> bool {
    matches!(values, Values::Tensor(tensor) if matches!(tensor.term.as_deref(), Some(Term::Param { .. })))
}

fn has_one_end(tensor: &TensorValues) -> bool {
    tensor.elements.is_none() && tensor.term.is_none() && (tensor.low.is_none() || tensor.high.is_none())
}

/// Returns the elements of parameter number `index`: a term that denotes the parameter. Floats are tracked only
/// `with_floats`, for modules with functions that prepare weights: indices are integers, while most parameters are
/// weights.
pub(super) fn of_parameter(index: usize, ty: &StructInfo, with_floats: bool) -> Known {
    fn field(index: u32, path: &mut Vec<u32>, ty: &StructInfo, with_floats: bool) -> Known {
        match ty {
            StructInfo::Tuple(fields) => {
                let mut known = Vec::with_capacity(fields.len());
                for (at, ty) in fields.iter().enumerate() {
                    path.push(u32::try_from(at).ok()?);
                    known.push(field(index, path, ty, with_floats));
                    path.pop();
                }
                Values::tuple(known)
            }
            StructInfo::Tensor(_) | StructInfo::DTensor(_) if with_floats || !is_float(ty) => {
                let term = Some(Arc::new(Term::Param { index, path: path.as_slice().into() }));
                TensorValues { term, ..TensorValues::default() }.into()
            }
            _ => None,
        }
    }
    field(u32::try_from(index).ok()?, &mut Vec::new(), ty, with_floats)
}
