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
//! default device. An argument that a `call_tir_inplace` overwrites must be a variable whose memory is not used after the
//! call, by another argument or in a nested function, also not through another variable. Calls that do not meet these
//! requirements stay.
//!
//! Guarantees that effects are declared: a dataflow block with a rewritten call becomes a plain block, and every pure
//! function with one, including nested functions, gets the attribute `relax.force_pure`.
//!
//! Reference: TVM `src/relax/transform/call_tir_rewrite.cc`.

use crate::effects::{Effects, force_pure};
use crate::emit::{Emitter, rewrite_bindings};
use crate::pass::{Arguments, Pass, PassError, each_function};
use crate::{Module, make, walk};
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{Dim, Name};
use rx_ir::{
    Argument, Attr, BoundValue, Call, Callee, Expr, ExprKind, RelaxFunction, Sequence, StructInfo, VarBinding,
};
use rx_ops::{Compute, Schema};
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
    let sharing = Sharing::of(&function.body);
    let mut rewritten = false;
    rewrite_bindings(function, &mut |binding, emitter| {
        let VarBinding { value: BoundValue::Expr(value), .. } = binding else { return Ok(()) };
        for variable in value.variables() {
            left.entry(variable).and_modify(|count| *count = count.saturating_sub(1));
        }
        let is_dead = |variable: Name| {
            let used = left.iter().filter(|(_, count)| **count > 0).map(|(used, _)| used);
            used.chain(&captured).all(|used| !sharing.share(variable, *used))
        };
        let Some(passing) = Passing::of(value, &is_dead, &sharing) else { return Ok(()) };
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

/// For each variable that may share memory with variables bound before it, the first of those. For example, after
/// `b = a` and `t = (b, c)`, they are `a` for `b`, and `a` and `c` for `t`.
struct Sharing(NameMap<NameSet>);

impl Sharing {
    fn of(body: &Sequence) -> Sharing {
        let mut first: NameMap<NameSet> = NameMap::default();
        walk::each_binding(body, &mut |binding| {
            let held: Vec<Name> = match &binding.value {
                BoundValue::Expr(value) if !is_new(value) => value.variables(),
                BoundValue::If(_) => binding.value.sequences().flat_map(|branch| branch.result.variables()).collect(),
                _ => Vec::new(),
            };
            let mut own = NameSet::default();
            for variable in held {
                match first.get(&variable) {
                    Some(others) => own.extend(others),
                    None => drop(own.insert(variable)),
                }
            }
            if !own.is_empty() {
                first.insert(binding.variable, own);
            }
        });
        Sharing(first)
    }

    /// Whether the values of two variables may share memory.
    fn share(&self, a: Name, b: Name) -> bool {
        match (self.0.get(&a), self.0.get(&b)) {
            (None, None) => a == b,
            (Some(first), None) => first.contains(&b),
            (None, Some(first)) => first.contains(&a),
            (Some(first), Some(second)) => !first.is_disjoint(second),
        }
    }
}

/// Whether a value is in new memory: the result of an operator with loops, or of a call in destination-passing style.
fn is_new(value: &Expr) -> bool {
    value.as_op().is_some_and(|operator| {
        matches!(operator, "call_tir" | "call_tir_inplace" | "call_tir_with_grad" | "call_dps_packed")
            || rx_ops::find(name(operator)).is_some_and(|schema| matches!(schema.compute, Some(Compute::Loops(_))))
    })
}

/// A call in destination-passing style: the callee writes its results into memory that it is given.
struct Passing<'a> {
    /// The called function.
    function: &'a Expr,
    arguments: Vec<Expr>,
    /// The operand `tir_vars`: dims that are passed after the arguments and outputs.
    dims: Option<&'a Expr>,
    outputs: &'a [StructInfo],
    /// For each output, the index of the argument whose memory it overwrites; `None` if the output gets new memory.
    taken: Vec<Option<usize>>,
}

impl<'a> Passing<'a> {
    /// Matches a call that can be rewritten; `None` for any other expression.
    fn of(value: &'a Expr, is_dead: &dyn Fn(Name) -> bool, sharing: &Sharing) -> Option<Passing<'a>> {
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
        let may_take = |at: &usize| {
            let Some(own) = arguments.get(*at).and_then(Expr::as_var) else { return false };
            let others = arguments.iter().enumerate().filter(|(other, _)| other != at);
            let mut others = others.flat_map(|(_, argument)| argument.variables());
            is_dead(own) && !others.any(|other| sharing.share(own, other))
        };
        let is_fit = outputs.iter().all(is_known) && taken.iter().flatten().all(may_take);
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
