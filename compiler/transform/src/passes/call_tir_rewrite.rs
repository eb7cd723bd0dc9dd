//! `CallTIRRewrite`: calls that give tensors become calls that write into tensors made before.
//!
//! TVM `src/relax/transform/call_tir_rewrite.cc`. Such a call is an effect: a dataflow block that has one becomes a plain
//! one, and each pure function that gets such calls, nested ones too, says that its effects stay inside (`relax.force_pure`). An argument whose memory a call takes
//! over (`call_tir_inplace`) must not be named behind the call; where it is, the call stays.

use crate::effects::{Effects, force_pure};
use crate::emit::{Emitter, rewrite_bindings};
use crate::pass::{Arguments, Pass, PassError, each_function};
use crate::{Module, make, walk};
use rx_base::name::{NameMap, name};
use rx_base::{Dim, Name};
use rx_ir::{
    Argument, Attr, BoundValue, Call, Callee, Expr, ExprKind, RelaxFunction, Sequence, StructInfo, VarBinding,
};
use rx_ops::Schema;
use std::sync::Arc;

/// The pass.
pub const PASS: Pass = Pass {
    name: "CallTIRRewrite",
    parameters: &[],
    doc: "Replaces `call_tir` and its like by tensors made before and calls that write into them.",
    reference: "src/relax/transform/call_tir_rewrite.cc",
    run,
};

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    let effects = Effects::of(&module);
    each_function(&mut module, PASS.name, |function| in_function(function, &effects))?;
    Ok(module)
}

fn in_function(function: &mut RelaxFunction, effects: &Effects) -> Result<(), PassError> {
    // How often each variable is named: what a call takes over must be named by it alone, or not behind it.
    let mut left: NameMap<usize> = NameMap::default();
    walk::each_expression(&function.body, &mut |expr| {
        expr.variables().into_iter().for_each(|variable| *left.entry(variable).or_default() += 1);
    });
    let mut rewritten = false;
    rewrite_bindings(function, &mut |binding, emitter| {
        let VarBinding { value: BoundValue::Expr(value), .. } = binding else { return Ok(()) };
        for variable in value.variables() {
            left.entry(variable).and_modify(|count| *count = count.saturating_sub(1));
        }
        let is_dead = |variable: Name| left.get(&variable).is_none_or(|count| *count == 0);
        let Some(passing) = Passing::of(value, &is_dead) else { return Ok(()) };
        *value = passing.written(emitter)?;
        rewritten = true;
        Ok(())
    })?;
    if rewritten {
        settle(function, effects);
    }
    Ok(())
}

/// Opens the dataflow blocks of calls that write, and has each function, nested ones too, say that these effects stay inside.
fn settle(function: &mut RelaxFunction, effects: &Effects) {
    if open_blocks(&mut function.body, effects) {
        force_pure(function);
    }
}

/// Dataflow blocks with calls that write are dataflow blocks no longer; whether there are such calls, those of nested functions
/// apart.
fn open_blocks(of: &mut Sequence, effects: &Effects) -> bool {
    let mut any = false;
    for block in &mut of.blocks {
        let mut writes = false;
        for binding in &mut block.bindings {
            match &mut binding.value {
                BoundValue::Expr(value) => writes |= effects.has_effect(value),
                BoundValue::If(_) => {
                    binding.value.sequences_mut().for_each(|branch| any |= open_blocks(branch, effects));
                }
                BoundValue::Function(function) => settle(Arc::make_mut(function), effects),
            }
        }
        if writes {
            block.outputs = None;
            any = true;
        }
    }
    any
}

/// A call that gives tensors by writing into memory it is given.
struct Passing<'a> {
    /// What is called.
    function: &'a Expr,
    arguments: Vec<Expr>,
    /// The dims that do not follow from the arguments.
    dims: Option<&'a Expr>,
    outputs: &'a [StructInfo],
    /// For each output the argument whose memory it takes.
    taken: Vec<Option<usize>>,
}

impl<'a> Passing<'a> {
    /// Reads a call; nothing where it is another, or cannot be rewritten.
    fn of(value: &'a Expr, is_dead: &dyn Fn(Name) -> bool) -> Option<Passing<'a>> {
        let operator = value.as_op().filter(|op| matches!(*op, "call_tir" | "call_tir_inplace" | "call_dps_packed"))?;
        let schema = rx_ops::find(name(operator))?;
        let call = value.as_call()?;
        let function = schema.operand(call, if operator == "call_dps_packed" { "func" } else { "gvar" })?;
        let outputs = match schema.argument(call, "out_ty")? {
            Argument::Types(types) => &types[..],
            _ => return None,
        };
        // Memory is made of a shape and a dtype.
        let is_known = |ty: &StructInfo| match ty {
            StructInfo::Tensor(tensor) => {
                tensor.shape.dims().is_some() && tensor.dtype.is_some() && tensor.vdevice.is_none()
            }
            _ => false,
        };
        let arguments = fields(schema.operand(call, "args")?);
        let taken = taken(schema, call, outputs.len())?;
        let overwritten: Vec<&Expr> = taken.iter().flatten().map(|at| arguments.get(*at)).collect::<Option<_>>()?;
        let may_take = |argument: &Expr| argument.as_var().is_some_and(is_dead);
        let is_fit = outputs.iter().all(is_known) && overwritten.into_iter().all(may_take);
        is_fit.then(|| Passing { function, arguments, dims: schema.operand(call, "tir_vars"), outputs, taken })
    }

    /// Makes the outputs, has them written, and gives them.
    fn written(&self, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
        let mut outputs = Vec::new();
        let mut passed = Vec::new();
        for argument in &self.arguments {
            passed.push(match argument.kind {
                ExprKind::TupleGet(..) => emitter.emit(argument.clone()),
                _ => argument.clone(),
            });
        }
        for (ty, taken) in self.outputs.iter().zip(&self.taken) {
            match taken.and_then(|at| passed.get(at).cloned()) {
                Some(argument) => outputs.push(argument),
                None => outputs.push(emitter.emit(allocated(ty)?)),
            }
        }
        let new =
            outputs.iter().zip(&self.taken).filter(|(_, taken)| taken.is_none()).map(|(output, _)| output.clone());
        passed.extend(new);
        emitter.bind(name("_"), self.call(passed)?);
        Ok(match <[Expr; 1]>::try_from(outputs) {
            Ok([one]) => one,
            Err(several) => Expr::tuple(several),
        })
    }

    fn call(&self, mut passed: Vec<Expr>) -> Result<Expr, PassError> {
        let made = match (&self.function.kind, self.dims) {
            (_, Some(dims)) => {
                passed.push(dims.clone());
                let func = Argument::Operand(self.function.clone());
                let all = Argument::Operand(Expr::tuple(passed));
                return make::call("vm.call_tir_dyn", vec![("func", func), ("args", all)]);
            }
            (ExprKind::Global(function), None) => Call::of_function(Callee::Global(*function), passed),
            // What `R.call_packed` writes is recorded with the parameters of `call_pure_packed`.
            _ => Call {
                callee: Callee::Op(name("call_packed")),
                arguments: vec![
                    Argument::Operand(self.function.clone()),
                    Argument::Operands(passed),
                    Argument::Types(vec![StructInfo::void()]),
                ],
            },
        };
        Ok(Expr::new(ExprKind::Call(Arc::new(made)), StructInfo::void()))
    }
}

/// The fields of a tuple; those of one that is a variable are taken from it.
fn fields(tuple: &Expr) -> Vec<Expr> {
    match (&tuple.kind, tuple.ty.as_tuple()) {
        (ExprKind::Tuple(fields), _) => fields.clone(),
        (_, Some(_)) => tuple.each_field().collect(),
        _ => vec![tuple.clone()],
    }
}

/// For each output the argument whose memory it takes.
fn taken(schema: &Schema, call: &Call, outputs: usize) -> Option<Vec<Option<usize>>> {
    match schema.attr(call, "inplace_indices") {
        None => Some(vec![None; outputs]),
        Some(Attr::List(items)) if items.len() == outputs => {
            items.iter().map(|item| Some(usize::try_from(item.as_int()?).ok())).collect()
        }
        Some(attr) if outputs == 1 => Some(vec![usize::try_from(attr.as_int()?).ok()]),
        Some(_) => None,
    }
}

/// `R.builtin.alloc_tensor(R.shape([…]), R.dtype("…"), 0, R.str("global"))`.
fn allocated(ty: &StructInfo) -> Result<Expr, PassError> {
    let tensor = ty.as_tensor().and_then(|tensor| Some((tensor.shape.dims()?.to_vec(), tensor.dtype?)));
    let (dims, dtype) = tensor.ok_or_else(|| PassError(format!("no memory can be made for {ty}")))?;
    let index = make::integer(Dim::constant(0));
    let scope = Expr::new(ExprKind::Str("global".into()), StructInfo::String);
    make::call(
        "builtin.alloc_tensor",
        vec![
            ("shape", Argument::Operand(Expr::shape(dims))),
            ("dtype", Argument::Operand(Expr::new(ExprKind::DType(dtype), StructInfo::Object))),
            ("runtime_device_index", Argument::Operand(index)),
            ("storage_scope", Argument::Operand(scope)),
        ],
    )
}
