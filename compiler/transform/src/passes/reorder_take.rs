//! `ReorderTakeAfterMatmul`: selects columns from a product, instead of from its right-hand side before the
//! multiplication.
//!
//! ```text
//! w = R.take(table, indices, axis=1)         y_table = R.matmul(x, table)
//! y = R.matmul(x, w)                    →    y = R.take(y_table, indices, axis=1)
//! ```
//!
//! Requires a vector of indices into the last axis of the table. They must be proved to be in bounds, or the `mode`
//! must define out-of-bounds accesses: otherwise such an index would read different values before and after. TVM does
//! not require this. Guarantees that the new `take` has the mode of the old one, and the result its dtype.
//!
//! Reference: TVM `src/relax/transform/reorder_take_after_matmul.cc`.

use crate::Module;
use crate::make::{self, attr, operands};
use crate::names::FreshNames;
use crate::pass::{Arguments, Pass, PassError, each_function};
use rx_base::Dim;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::symbolic::Bounds;
use rx_ir::{
    Argument, Attr, Block, BoundValue, Call, Callee, Expr, ExprKind, Known, RelaxFunction, Sequence, StructInfo,
    Values, VarBinding,
};
use rx_ops::values::{Access, Judgement, judge, part_of};
use rx_ops::{Arg, CallInfo};

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "ReorderTakeAfterMatmul",
    parameters: &[],
    doc: "Multiplies with a whole table and picks columns of the product, where columns of the table were picked before.",
    reference: "src/relax/transform/reorder_take_after_matmul.cc",
    run,
};

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    each_function(&mut module, PASS.name, in_function)?;
    Ok(module)
}

fn in_function(function: &mut RelaxFunction) -> Result<(), PassError> {
    let mut fresh = FreshNames::of(function);
    sequence(&mut function.body, Facts::default(), &mut fresh)
}

/// The facts that hold at the current binding.
#[derive(Clone, Default)]
struct Facts {
    /// The known facts about the values of variables, for example elements and bounds. Nothing is known of the
    /// function's parameters.
    values: NameMap<Known>,
    /// The variables bound to selected columns of a table.
    picked: NameMap<Picked>,
}

/// A call `R.take(table, indices, axis, mode)` that selects columns and can be moved to after a product.
#[derive(Clone)]
struct Picked {
    table: Expr,
    indices: Expr,
    mode: Argument,
}

fn sequence(of: &mut Sequence, mut facts: Facts, fresh: &mut FreshNames) -> Result<(), PassError> {
    for Block { outputs, bindings } in &mut of.blocks {
        let mut rewritten: Vec<VarBinding> = Vec::with_capacity(bindings.len());
        for mut binding in std::mem::take(bindings) {
            binding.value.sequences_mut().try_for_each(|inner| sequence(inner, facts.clone(), fresh))?;
            if let BoundValue::Expr(value) = &binding.value {
                if let Some((product, value)) = facts.reordered(value, &binding.ty)? {
                    let table = fresh.like(name(&format!("{}_table", binding.variable)));
                    let ty = product.ty.clone();
                    rewritten.push(VarBinding::new(binding.origin, table, product));
                    binding.value = BoundValue::Expr(value(Expr::var(table, ty))?);
                }
                facts.record(&binding);
            }
            rewritten.push(binding);
        }
        *bindings = rewritten;
        if let Some(outputs) = outputs {
            let own: NameSet = bindings.iter().map(|binding| binding.variable).collect();
            let is_seen =
                |value: &Expr| value.variables().iter().all(|used| !own.contains(used) || outputs.contains(used));
            facts.picked.retain(|_, picked| is_seen(&picked.table) && is_seen(&picked.indices));
        }
    }
    Ok(())
}

/// A function that builds the selection of columns from the product.
type Pick = Box<dyn FnOnce(Expr) -> Result<Expr, PassError>>;

impl Facts {
    /// Returns the product with the whole table, and the function that selects columns from it; `None` if the value is
    /// not a product with selected columns, if the rank of the product is unknown, or if the mode is `nan` and the
    /// product is not a float.
    fn reordered(&self, value: &Expr, ty: &StructInfo) -> Result<Option<(Expr, Pick)>, PassError> {
        let Some([left, right]) = operands(value, "matmul", ["x1", "x2"]) else { return Ok(None) };
        let Some(picked) = right.as_var().and_then(|right| self.picked.get(&right)).cloned() else { return Ok(None) };
        let is_float = ty.as_tensor().and_then(|tensor| tensor.dtype).is_some_and(rx_base::DType::is_float);
        let not_a_number = matches!(&picked.mode, Argument::Attr(Attr::Str(mode)) if &**mode == "nan");
        if not_a_number && !is_float {
            return Ok(None);
        }
        let mut arguments: Vec<(&str, Argument)> =
            vec![("x1", Argument::Operand(left.clone())), ("x2", Argument::Operand(picked.table.clone()))];
        if let Some(dtype) = attr(value, "out_dtype") {
            arguments.push(("out_dtype", Argument::Attr(dtype.clone())));
        }
        let product = make::call("matmul", arguments)?;
        let Some(rank) = product.ty.as_tensor().and_then(|tensor| tensor.shape.ndim()) else { return Ok(None) };
        let Some(axis) = (rank as i64).checked_sub(1).filter(|axis| *axis >= 0) else { return Ok(None) };
        let pick: Pick = Box::new(move |product| {
            let axis = Argument::Attr(Attr::Int(axis.into()));
            let indices = Argument::Operand(picked.indices);
            let arguments =
                vec![("x", Argument::Operand(product)), ("indices", indices), ("axis", axis), ("mode", picked.mode)];
            make::call("take", arguments)
        });
        Ok(Some((product, pick)))
    }

    fn record(&mut self, binding: &VarBinding) {
        let BoundValue::Expr(value) = &binding.value else { return };
        let known = self.of(value);
        if let Some(picked) = self.picked_columns(value) {
            self.picked.insert(binding.variable, picked);
        }
        self.values.insert(binding.variable, known);
    }

    /// Returns the known facts about a value, for example its elements, or bounds of them; `None` if there are none.
    fn of(&self, value: &Expr) -> Known {
        match &value.kind {
            ExprKind::Var(variable) => self.values.get(variable)?.clone(),
            ExprKind::Constant(_) | ExprKind::Elements(_) => rx_ops::values::of_constant(&value.kind, &value.ty),
            ExprKind::Tuple(fields) => Values::tuple(fields.iter().map(|field| self.of(field)).collect()),
            ExprKind::TupleGet(tuple, at) => self.of(tuple)?.field(*at),
            ExprKind::MatchCast(inner) => self.of(inner),
            ExprKind::Call(call) => {
                let schema = match call.callee {
                    Callee::Op(operator) => rx_ops::find(operator).filter(|schema| rx_ops::values::follows(schema))?,
                    _ => return None,
                };
                let args: Vec<Arg<'_>> = call.arguments.iter().map(Arg::from).collect();
                let bounds = Bounds::default();
                rx_ops::values::infer(&CallInfo::new(schema, &args, &bounds), &self.of_arguments(call), &value.ty)
            }
            _ => None,
        }
    }

    fn of_arguments(&self, call: &Call) -> Vec<Known> {
        let of = |argument: &Argument| match argument {
            Argument::Operand(operand) => self.of(operand),
            Argument::Operands(operands) => Values::tuple(operands.iter().map(|operand| self.of(operand)).collect()),
            _ => None,
        };
        call.arguments.iter().map(of).collect()
    }

    /// Matches a selection of columns from a table, by a vector of indices that are all in bounds or given a meaning by
    /// the mode.
    fn picked_columns(&self, value: &Expr) -> Option<Picked> {
        let [table, indices] = operands(value, "take", ["x", "indices"])?;
        let dims = table.ty.as_tensor()?.shape.dims()?;
        let rank = i64::try_from(dims.len()).ok().filter(|rank| *rank >= 2)?;
        let axis = attr(value, "axis")?.as_int()?;
        let is_vector = indices.ty.as_tensor()?.shape.ndim() == Some(1);
        let is_last = axis == rank - 1 || axis == -1;
        if !is_vector || !is_last || !self.is_in_bounds(value) {
            return None;
        }
        let mode = attr(value, "mode").cloned().unwrap_or_else(|| Attr::Str("fast".into()));
        Some(Picked { table: table.clone(), indices: indices.clone(), mode: Argument::Attr(mode) })
    }

    /// Whether every index of a call is proved to be in bounds, or its mode defines out-of-bounds accesses.
    fn is_in_bounds(&self, value: &Expr) -> bool {
        let (Some(call), Some(operator)) = (value.as_call(), value.as_op()) else { return false };
        let Some((schema, sites)) =
            rx_ops::find(name(operator)).and_then(|schema| Some((schema, schema.traits.sites?)))
        else {
            return false;
        };
        let args: Vec<Arg<'_>> = call.arguments.iter().map(Arg::from).collect();
        let bounds = Bounds::default();
        let info = CallInfo::new(schema, &args, &bounds);
        let known = self.of_arguments(call);
        sites(&info).iter().all(|site| {
            let place = schema.params.iter().position(|param| param.name == site.indices);
            let values = place.and_then(|at| known.get(at)).cloned().flatten();
            let (indices, ty) = part_of(&info, &values, site);
            let is_proved = |extent: &Dim| {
                let access = Access { indices: &indices, ty: &ty, extent, from_end: site.from_end };
                judge(&access, &bounds) == Judgement::Proved
            };
            site.guarded || site.extent.as_ref().is_some_and(is_proved)
        })
    }
}
