//! `LegalizeOps`: replaces operator calls with calls of prim_funcs that compute them.
//!
//! ```text
//! gv = R.add(x, y)   →   gv = R.call_tir(cls.add, (x, y), out_ty=R.Tensor((4,), dtype="float32"))
//! ```
//!
//! The loops are the operators' compute definitions, which `rx-lower` runs as well. For results without a
//! device, an existing private prim_func with the same loops and the only attribute `tirx.noalias` is called instead of
//! a new one.
//!
//! Requires known types; a call whose types are too weak usually stays, but an `R.matmul` of known shapes and an
//! unknown dtype is an error, as in TVM. Calls that the runtime implements (such as `R.unique`), calls that other
//! passes lower (such as `R.to_vdevice` and `R.ccl.*`), and calls with distributed tensors stay as well. Guarantees the
//! same values.
//!
//! Reference: TVM `src/relax/transform/legalize_ops.cc`.

mod kernel;
mod kernels;
mod target;

use crate::emit::{Emitter, rewrite_bindings};
use crate::pass::{Arguments, Parameter, Pass, PassError, each_function};
use crate::{Module, walk};
use kernels::Kernels;
use rx_base::Name;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::symbolic::Bounds;
use rx_ir::{Argument, BoundValue, Callee, Expr, ExprKind, RelaxFunction, Sequence, Shape, StructInfo, VarBinding};
use rx_ops::tvm::{Legalized, legalized};
use rx_ops::{Arg, CallInfo, Purity};
use serde_json::Value;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "LegalizeOps",
    parameters: &[
        Parameter {
            name: "customize_legalize_map",
            default: Some("null"),
            doc: "Python functions that legalize operators; rx runs none, so it must be empty.",
        },
        Parameter { name: "skip_ops", default: Some("null"), doc: "Operators whose calls stay: `relax.add`." },
        Parameter {
            name: "enable_warning",
            default: Some("false"),
            doc: "Whether TVM warns of calls that stay; `rxcheck --tvm` does so.",
        },
    ],
    doc: "Replaces calls of operators by calls of prim_funcs that compute them.",
    reference: "src/relax/transform/legalize_ops.cc",
    run,
};

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    if !is_empty(arguments.get(0)) {
        let message = "`customize_legalize_map` holds Python functions, which rx does not run";
        return Err(PassError(format!("LegalizeOps: {message}")));
    }
    let skipped = skipped(arguments.get(1))?;
    let mut kernels = Kernels::of(&module);
    each_function(&mut module, PASS.name, |function| in_function(function, &skipped, &mut kernels))?;
    kernels.into_module(&mut module);
    Ok(module)
}

fn is_empty(map: &Value) -> bool {
    match map {
        Value::Null => true,
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

/// Parses the names of the operators whose calls stay.
fn skipped(argument: &Value) -> Result<NameSet, PassError> {
    let mistake = |message: String| PassError(format!("LegalizeOps: {message}"));
    let operator = |value: &Value| {
        let text = value.as_str().ok_or_else(|| mistake("`skip_ops` is a list of names".to_owned()))?;
        let own = name(text.strip_prefix("relax.").unwrap_or(text));
        let known = rx_ops::find(own).map(|_| own);
        known.ok_or_else(|| mistake(format!("`skip_ops`: there is no operator `{text}`")))
    };
    match argument {
        Value::Null => Ok(NameSet::default()),
        Value::Array(operators) => operators.iter().map(operator).collect(),
        _ => Err(mistake("`skip_ops` is a list of names".to_owned())),
    }
}

fn in_function(function: &mut RelaxFunction, skipped: &NameSet, kernels: &mut Kernels) -> Result<(), PassError> {
    let local = local_tuples(&function.body);
    let mut known = Known { scalars: scalars(function), ..Known::default() };
    rewrite_bindings(function, &mut |binding, emitter| {
        let VarBinding { variable, value: BoundValue::Expr(value), .. } = binding else { return Ok(()) };
        if let ExprKind::Tuple(fields) = &value.kind
            && !local.contains(variable)
        {
            known.tuples.insert(*variable, fields.clone());
        }
        if let Some(new) = legalize(value, skipped, &known, kernels, emitter)? {
            *value = new;
        }
        Ok(())
    })
}

/// The facts about a function's variables.
#[derive(Default)]
struct Known {
    /// The variables bound so far to tuple expressions, with the fields; without [`local_tuples`].
    tuples: NameMap<Vec<Expr>>,
    /// The scalar variables. Each also is the symbolic dim of the same name, and is passed for it.
    scalars: NameMap<StructInfo>,
}

/// Returns the variables bound to tuples that are visible after their dataflow block while a field is not. A call after
/// the block cannot take the fields of such a tuple instead of the tuple.
fn local_tuples(body: &Sequence) -> NameSet {
    let mut found = NameSet::default();
    for block in &body.blocks {
        for binding in &block.bindings {
            binding.value.sequences().for_each(|inner| found.extend(local_tuples(inner)));
        }
        let Some(outputs) = &block.outputs else { continue };
        let outputs: NameSet = outputs.iter().copied().collect();
        let (visible, local): (Vec<_>, Vec<_>) =
            block.bindings.iter().partition(|binding| outputs.contains(&binding.variable));
        let local: NameSet = local.into_iter().map(|binding| binding.variable).collect();
        for binding in visible {
            if let BoundValue::Expr(value) = &binding.value
                && has_field(value, &local)
            {
                found.insert(binding.variable);
            }
        }
    }
    found
}

/// Whether a tuple expression has one of these variables as a field.
fn has_field(value: &Expr, variables: &NameSet) -> bool {
    let ExprKind::Tuple(fields) = &value.kind else { return false };
    let is_one = |field: &Expr| field.as_var().is_some_and(|variable| variables.contains(&variable));
    fields.iter().any(|field| is_one(field) || has_field(field, variables))
}

/// Returns the scalar variables of a function, including those of nested functions.
fn scalars(function: &RelaxFunction) -> NameMap<StructInfo> {
    let is_scalar = |ty: &StructInfo| matches!(ty, StructInfo::Prim(_));
    let of_params = |function: &RelaxFunction| {
        function.params.iter().filter(|(_, ty)| is_scalar(ty)).cloned().collect::<Vec<(Name, StructInfo)>>()
    };
    let mut found: NameMap<StructInfo> = of_params(function).into_iter().collect();
    walk::each_binding(&function.body, &mut |binding| {
        if is_scalar(&binding.ty) {
            found.insert(binding.variable, binding.ty.clone());
        }
        if let BoundValue::Function(nested) = &binding.value {
            found.extend(of_params(nested));
        }
    });
    found
}

/// Returns the replacement of a value; `None` if it stays.
fn legalize(
    value: &Expr,
    skipped: &NameSet,
    known: &Known,
    kernels: &mut Kernels,
    emitter: &mut Emitter<'_>,
) -> Result<Option<Expr>, PassError> {
    let Some(call) = value.as_call() else { return Ok(None) };
    let Callee::Op(operator) = call.callee else { return Ok(None) };
    let schema = rx_ops::find(operator).filter(|schema| schema.purity == Purity::Pure && !skipped.contains(&operator));
    let Some(schema) = schema else { return Ok(None) };
    let arguments: Vec<Argument> = call.arguments.iter().map(|argument| written_out(argument, &known.tuples)).collect();
    if !is_written_out(&value.ty) || is_distributed(&value.ty) || arguments.iter().any(takes_distributed) {
        return Ok(None);
    }
    let args: Vec<Arg<'_>> = arguments.iter().map(Arg::from).collect();
    let bounds = Bounds::default();
    let info = CallInfo::new(schema, &args, &bounds);
    match legalized(&info) {
        Legalized::Call => Ok(None),
        Legalized::Refused(why) => Err(PassError(format!("R.{operator}: {why}"))),
        Legalized::Operand(param) => Ok(schema.operand(call, param).cloned()),
        Legalized::Kernel(hint) => match rx_ops::compute::lower(&info, &value.ty) {
            Ok(made) => kernel::call(&info, made, hint, &value.ty, &known.scalars, kernels, emitter).map(Some),
            // The types or values are not known well enough, or the call has an error that is reported at run time.
            Err(_) => Ok(None),
        },
    }
}

/// Returns an argument with a variable that is bound to a tuple replaced by the tuple's fields.
fn written_out(argument: &Argument, tuples: &NameMap<Vec<Expr>>) -> Argument {
    let fields = |variable: Name| tuples.get(&variable).cloned();
    match argument {
        Argument::Operand(expr) => match expr.as_var().and_then(fields) {
            Some(fields) => Argument::Operand(Expr { kind: ExprKind::Tuple(fields), ..expr.clone() }),
            None => argument.clone(),
        },
        other => other.clone(),
    }
}

/// Whether no tensor in the type has a variable as its shape (`R.Tensor(s)`). The `out_ty` of `R.call_tir` has to state
/// the dims.
fn is_written_out(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().all(is_written_out),
        ty => !ty.as_tensor().is_some_and(|tensor| matches!(tensor.shape, Shape::Var { .. })),
    }
}

/// Whether the type has a tensor that is distributed over several devices. A later pass lowers such calls, once each
/// device's share is known.
fn is_distributed(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::DTensor(_) => true,
        StructInfo::Tuple(fields) => fields.iter().any(is_distributed),
        _ => false,
    }
}

fn takes_distributed(argument: &Argument) -> bool {
    match argument {
        Argument::Operand(expr) => is_distributed(&expr.ty),
        Argument::Operands(exprs) => exprs.iter().any(|expr| is_distributed(&expr.ty)),
        _ => false,
    }
}
