//! `CallTIRRewrite`: turns calls in destination-passing style into explicit allocations and calls that write into them.
//!
//! ```text
//! gv = R.call_tir(cls.f, (x,), out_ty=R.Tensor((4,), dtype="float32"))
//! →
//! gv1 = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), 0, R.str("global"))
//! _ = cls.f(x, gv1)
//! gv = gv1
//! ```
//!
//! Rewrites `call_tir`, `call_tir_inplace` and `call_dps_packed`. Requires outputs of a known shape and dtype on the
//! default device. An argument that a `call_tir_inplace` overwrites must be a variable that is not used after the call
//! and that no nested function captures. Calls that do not meet these requirements stay.
//!
//! Guarantees that effects are declared: a dataflow block with a rewritten call becomes a plain block, and every pure
//! function with one, including nested functions, gets the attribute `relax.force_pure`.
//!
//! Reference: TVM `src/relax/transform/call_tir_rewrite.cc`.

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

/// The registration of the pass.
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
    // The number of uses of each variable that are not visited yet. A variable is dead after the current binding if no
    // uses are left.
    let mut left: NameMap<usize> = NameMap::default();
    walk::each_expression(&function.body, &mut |expr| {
        expr.variables().into_iter().for_each(|variable| *left.entry(variable).or_default() += 1);
    });
    // A captured variable is never dead, since any later call of the nested function may use it.
    let captured = walk::captured(function);
    let mut rewritten = false;
    rewrite_bindings(function, &mut |binding, emitter| {
        let VarBinding { value: BoundValue::Expr(value), .. } = binding else { return Ok(()) };
        for variable in value.variables() {
            left.entry(variable).and_modify(|count| *count = count.saturating_sub(1));
        }
        let is_dead =
            |variable: Name| !captured.contains(&variable) && left.get(&variable).is_none_or(|count| *count == 0);
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

/// Turns dataflow blocks with calls that have effects into plain blocks, and marks the pure functions that contain such
/// calls, including nested functions, with `relax.force_pure`.
fn settle(function: &mut RelaxFunction, effects: &Effects) {
    if open_blocks(&mut function.body, effects) {
        force_pure(function);
    }
}

/// Turns dataflow blocks with calls that have effects into plain blocks. Returns whether the sequence has such calls,
/// not counting those in nested functions.
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

/// A call in destination-passing style: the callee writes its results into memory that it is given.
struct Passing<'a> {
    /// The called function.
    function: &'a Expr,
    arguments: Vec<Expr>,
    /// The symbolic dims of `tir_vars`, which the arguments do not determine.
    dims: Option<&'a Expr>,
    outputs: &'a [StructInfo],
    /// For each output, the index of the argument whose memory it overwrites; `None` if the output gets new memory.
    taken: Vec<Option<usize>>,
}

impl<'a> Passing<'a> {
    /// Matches a call that can be rewritten; `None` for any other expression.
    fn of(value: &'a Expr, is_dead: &dyn Fn(Name) -> bool) -> Option<Passing<'a>> {
        let operator = value.as_op().filter(|op| matches!(*op, "call_tir" | "call_tir_inplace" | "call_dps_packed"))?;
        let schema = rx_ops::find(name(operator))?;
        let call = value.as_call()?;
        let function = schema.operand(call, if operator == "call_dps_packed" { "func" } else { "gvar" })?;
        let outputs = match schema.argument(call, "out_ty")? {
            Argument::Types(types) => &types[..],
            _ => return None,
        };
        // An allocation needs the shape and the dtype.
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

    /// Emits the allocations and the writing call. Returns the outputs as a value.
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
            // `R.call_packed` is represented with the parameters of `call_pure_packed`.
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

/// Returns the fields of a tuple. A tuple that is not written out gives `t[0]`, `t[1]`, and so on. A value that is not
/// a tuple is its only field.
fn fields(tuple: &Expr) -> Vec<Expr> {
    match (&tuple.kind, tuple.ty.as_tuple()) {
        (ExprKind::Tuple(fields), _) => fields.clone(),
        (_, Some(_)) => tuple.each_field().collect(),
        _ => vec![tuple.clone()],
    }
}

/// Returns, for each output, the index of the argument whose memory it overwrites, or `None` for new memory. The whole
/// result is `None` if `inplace_indices` does not match the outputs.
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

/// Builds `R.builtin.alloc_tensor(R.shape([…]), R.dtype("…"), 0, R.str("global"))`.
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
