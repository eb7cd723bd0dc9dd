//! `FuseTIR`: turns each function with the attribute `Primitive` into one prim_func.
//!
//! ```text
//! @R.function(private=True)
//! def fused_add_exp(x, y):
//!     R.func_attr({"Primitive": True})
//!     lv = R.call_tir(cls.add, (x, y), out_ty=…)
//!     gv = R.call_tir(cls.exp, (lv,), out_ty=…)
//!     return gv
//! gv = cls.fused_add_exp(x, y)
//! →
//! @T.prim_func(private=True)
//! def fused_add_exp(x, y, Out_intermediate_1):
//!     Out_intermediate = T.sblock_alloc_buffer((4,), "float32")
//!     for i in range(4): Out_intermediate[i] = x[i] + y[i]
//!     for i in range(4): Out_intermediate_1[i] = T.exp(Out_intermediate[i])
//! gv = R.call_tir(cls.fused_add_exp, (x, y), out_ty=…)
//! ```
//!
//! The prim_func contains the loops of the called prim_funcs, one after the other ([`kernel`]). The calls of the
//! function become `call_tir`, or `call_tir_inplace` if the prim_func overwrites arguments. As in TVM, tuple parameters
//! are expanded and unused parameters removed before, and dead code is removed afterwards.
//!
//! Requires that rx's loop-level IR can represent the called prim_funcs. A function stays if one of them cannot be
//! represented, if the function is used as a value, if the shape or dtype of a parameter or result is unknown, or if
//! one kernel cannot compute the result: for example a nested tuple, the same buffer twice, a cast, or only unchanged
//! arguments. Guarantees the same values.
//!
//! Reference: TVM `src/relax/transform/fuse_tir.cc`.

mod kernel;

use super::fuse_ops::is_primitive;
use super::{dead_code, expand_tuple_arguments, remove_unused_parameters};
use crate::emit::{Emitter, rewrite_bindings};
use crate::pass::{Arguments, Pass, PassError};
use crate::{Module, make, passes, walk};
use kernel::{Given, Kernel};
use rx_base::Dim;
use rx_base::name::NameMap;
use rx_ir::{Argument, Attr, BoundValue, Call, Callee, Expr, ExprKind, Item, LoopBody, LoopFunction, StructInfo};
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "FuseTIR",
    parameters: &[],
    doc: "Makes one prim_func of each function that `FuseOps` has made, and of others with the attribute `Primitive`.",
    reference: "src/relax/transform/fuse_tir.cc",
    run,
};

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    expand_tuple_arguments::expand(&mut module, &|function| function.private || is_primitive(function))?;
    module = dead_code::clean((passes::canonicalize::PASS.run)(module, arguments)?);
    module = (remove_unused_parameters::PASS.run)(module, arguments)?;
    fuse(&mut module)?;
    Ok(dead_code::clean(module))
}

fn fuse(module: &mut Module) -> Result<(), PassError> {
    let kernels = kernels(module);
    for item in &mut module.items {
        if let Some(kernel) = item.name().and_then(|own| kernels.get(&own)) {
            let attributes = vec![(Arc::from("tirx.noalias"), Attr::Bool(true))];
            let body = LoopBody::Made(Arc::new(kernel.loops.clone()));
            *item = Item::Loops(Arc::new(LoopFunction { name: kernel.loops.name, private: true, attributes, body }));
        }
    }
    for function in module.functions_mut() {
        rewrite_bindings(function, &mut |binding, emitter| {
            let BoundValue::Expr(value) = &mut binding.value else { return Ok(()) };
            if let Some((kernel, call)) = call_of(value, &kernels) {
                let passing = Passing::of(kernel, call, &value.ty)
                    .ok_or_else(|| PassError(format!("FuseTIR: a call of `{}` was fit before", kernel.loops.name)))?;
                *value = passing.call(emitter)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns the kernels of the functions that become prim_funcs, by name. Such a function has the attribute `Primitive`,
/// can be one kernel ([`Kernel::of`]), and is not used as a value; the arguments and results of all its calls fit the
/// prim_func ([`Passing::of`]).
fn kernels(module: &Module) -> NameMap<Kernel> {
    let values = walk::function_values(module);
    let callees: NameMap<_> = module.prim_funcs().map(|function| (function.name, function)).collect();
    let primitive = module.functions().filter(|function| is_primitive(function) && !values.contains(&function.name));
    let mut kernels: NameMap<Kernel> =
        primitive.filter_map(|function| Some((function.name, Kernel::of(function, &callees)?))).collect();
    for function in module.functions() {
        walk::each_expression(&function.body, &mut |expr| {
            let unfit = call_of(expr, &kernels).filter(|(kernel, call)| Passing::of(kernel, call, &expr.ty).is_none());
            if let Some(own) = unfit.map(|(kernel, _)| kernel.loops.name) {
                kernels.remove(&own);
            }
        });
    }
    kernels
}

/// Returns the kernel that a call calls, and the call.
fn call_of<'k, 'c>(value: &'c Expr, kernels: &'k NameMap<Kernel>) -> Option<(&'k Kernel, &'c Call)> {
    let call = value.as_call()?;
    match call.callee {
        Callee::Global(callee) => Some((kernels.get(&callee)?, call)),
        _ => None,
    }
}

/// A call of a kernel.
struct Passing<'k> {
    kernel: &'k Kernel,
    /// The arguments of the original call.
    passed: Vec<Expr>,
    /// The arguments for the prim_func: each shape argument is replaced with its dims.
    arguments: Vec<Expr>,
    /// The types of all results.
    types: Vec<StructInfo>,
    /// The type of the original call.
    ty: StructInfo,
}

impl<'k> Passing<'k> {
    /// Matches a call of `kernel`. Returns `None` if an argument is not a tensor, a scalar or a shape with known dims,
    /// if a result is not a tensor of known shape and dtype, if the numbers of arguments or results differ, or if the
    /// type is a tuple of one field.
    fn of(kernel: &'k Kernel, call: &Call, ty: &StructInfo) -> Option<Passing<'k>> {
        let mut passed = Vec::new();
        let mut arguments = Vec::new();
        for argument in &call.arguments {
            let Argument::Operand(operand) = argument else { return None };
            passed.push(operand.clone());
            match &operand.ty {
                StructInfo::Shape(shape) => arguments.extend(shape.dims()?.iter().cloned().map(make::integer)),
                StructInfo::Tensor(_) | StructInfo::Prim(_) => arguments.push(operand.clone()),
                _ => return None,
            }
        }
        let types: Vec<StructInfo> = match ty {
            StructInfo::Tuple(fields) => fields.to_vec(),
            ty => vec![ty.clone()],
        };
        let is_known = |ty: &StructInfo| matches!(ty, StructInfo::Tensor(tensor) if tensor.shape.dims().is_some() && tensor.dtype.is_some());
        let is_fit = arguments.len() == kernel.inputs
            && types.len() == kernel.given.len()
            && types.iter().all(is_known)
            // A call with a single result must not have a tuple type.
            && (types.len() > 1 || !matches!(ty, StructInfo::Tuple(_)));
        is_fit.then(|| Passing { kernel, passed, arguments, types, ty: ty.clone() })
    }

    /// Returns the value of the original call: the call of the prim_func. If the function returns some of its arguments
    /// unchanged, emits that call, and returns a tuple of these arguments and of the call's results.
    fn call(self, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
        let own = |given: &Given| !matches!(given, Given::Argument(_));
        let written: Vec<(&Given, &StructInfo)> =
            self.kernel.given.iter().zip(&self.types).filter(|(given, _)| own(given)).collect();
        let types: Vec<StructInfo> = written.iter().map(|(_, ty)| (*ty).clone()).collect();
        let whole = self.kernel_call(types.clone(), written.iter().map(|(given, _)| *given))?;
        if written.len() == self.types.len() {
            return Ok(whole);
        }
        let whole = emitter.emit(whole);
        let mut fields = Vec::with_capacity(self.types.len());
        let mut at = 0;
        for given in &self.kernel.given {
            fields.push(match given {
                Given::Argument(argument) => self.passed.get(*argument).cloned().unwrap_or_else(|| whole.clone()),
                _ if types.len() == 1 => whole.clone(),
                _ => {
                    let ty = types.get(at).cloned().unwrap_or(StructInfo::Object);
                    let field = ExprKind::TupleGet(Box::new(whole.clone()), at);
                    at += 1;
                    emitter.emit(Expr::new(field, ty))
                }
            });
        }
        Ok(Expr::new(ExprKind::Tuple(fields), self.ty))
    }

    fn kernel_call<'g>(
        &self,
        types: Vec<StructInfo>,
        given: impl Iterator<Item = &'g Given>,
    ) -> Result<Expr, PassError> {
        let taken: Vec<i64> = given
            .map(|given| match given {
                Given::InPlace(param) => i64::try_from(*param).unwrap_or(-1),
                _ => -1,
            })
            .collect();
        let callee = Expr::new(ExprKind::Global(self.kernel.loops.name), StructInfo::callable());
        let mut given = vec![
            ("gvar", Argument::Operand(callee)),
            ("args", Argument::Operand(Expr::tuple(self.arguments.clone()))),
            ("out_ty", Argument::Types(types)),
        ];
        if taken.iter().all(|index| *index == -1) {
            return make::call("call_tir", given);
        }
        let indices = taken.into_iter().map(|index| Attr::Int(Dim::constant(index))).collect();
        given.push(("inplace_indices", Argument::Attr(Attr::List(indices))));
        make::call("call_tir_inplace", given)
    }
}
