//! `StaticPlanBlockMemory`: static memory planning; tensors whose lifetimes do not overlap can share a storage.
//!
//! ```text
//! a = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), 0, R.str("global"))
//! …                                                    # the last use of a
//! b = R.builtin.alloc_tensor(R.shape([2]), R.dtype("float32"), 0, R.str("global"))
//! →
//! storage = R.memory.alloc_storage(R.shape([16]), 0, R.str("global"), R.dtype("float32"))
//! a = R.memory.alloc_tensor(storage, 0, R.shape([4]), R.dtype("float32"), 0)
//! …
//! b = R.memory.alloc_tensor(storage, 0, R.shape([2]), R.dtype("float32"), 0)
//! ```
//!
//! The size of a storage, in bytes, follows from the upper bounds of symbolic dims (`tir_var_upper_bound`, [`bounds`]).
//! Storages are reused by the rules of TVM's allocator ([`storages`]). With the attribute
//! `relax.memory_plan_dynamic_func_output`, other tensors of symbolic shape get separate storages of their largest
//! size.
//!
//! Requires a tensor of `builtin.alloc_tensor` that is passed only to direct calls of prim_funcs (`cls.f(…)`), packed
//! functions (`R.call_packed`) and `R.vm.call_tir_dyn`, in the block that allocates it; other tensors stay. The result
//! of, for example, a reshape, a view or an `R.match_cast` is the same tensor as its operand. Guarantees that a storage
//! is reused only after the last use of its tensor, and only where its variable is in scope: not after the branch or
//! dataflow block that binds it, which TVM does not check.
//!
//! Reference: TVM `src/relax/transform/static_plan_block_memory.cc`.

mod bounds;
mod storages;

use crate::emit::{Emitter, rewrite_bindings};
use crate::pass::{Arguments, Pass, PassError, each_function};
use crate::{Module, make};
use rx_base::name::{NameSet, name};
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim};
use rx_ir::{Argument, Attr, BoundValue, Expr, ExprKind, RelaxFunction, StructInfo};
use std::sync::Arc;
use storages::{Plan, Storage};

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "StaticPlanBlockMemory",
    parameters: &[],
    doc: "Allocates tensors in storages; tensors whose lives do not overlap share a storage.",
    reference: "src/relax/transform/static_plan_block_memory.cc",
    run,
};

/// The attribute that requests storages also for tensors of symbolic shape that are not planned, such as results of the
/// function.
const PLAN_OUTPUTS: &str = "relax.memory_plan_dynamic_func_output";

fn run(mut module: Module, _: &Arguments) -> Result<Module, PassError> {
    let loops: NameSet = module.prim_funcs().map(|function| function.name).collect();
    each_function(&mut module, PASS.name, |function| in_function(function, &loops))?;
    Ok(module)
}

fn in_function(function: &mut RelaxFunction, loops: &NameSet) -> Result<(), PassError> {
    let bounds = bounds::of_function(function)?;
    let plan = Plan::of(function, loops, &bounds);
    let plans_all = function.is_set(PLAN_OUTPUTS);
    let mut bound: Vec<Option<Expr>> = vec![None; plan.storages.len()];
    let mut ordinal = 0;
    rewrite_bindings(function, &mut |binding, emitter| {
        let BoundValue::Expr(value) = &mut binding.value else { return Ok(()) };
        let Some(made) = Allocation::of(value) else { return Ok(()) };
        let planned = plan.storage_of.get(ordinal).copied().flatten();
        ordinal += 1;
        let storage = match planned.and_then(|at| Some((plan.storages.get(at)?, bound.get_mut(at)?))) {
            Some((_, Some(storage))) => storage.clone(),
            Some((storage, slot)) => slot.insert(storage_of(storage, &made, emitter)?).clone(),
            None if plans_all && made.dims.iter().any(|dim| dim.as_constant().is_none()) => {
                storage_of(&made.storage(&bounds), &made, emitter)?
            }
            None => return Ok(()),
        };
        let offset = ("offset", Argument::Operand(make::integer(Dim::constant(0))));
        let given = vec![("storage", Argument::Operand(storage)), offset];
        let own = [("shape", made.shape), ("dtype", made.dtype_value), ("runtime_device_ind", made.device)];
        let own = own.map(|(param, operand)| (param, Argument::Operand(operand.clone())));
        *value = make::call("memory.alloc_tensor", given.into_iter().chain(own).collect())?;
        Ok(())
    })?;
    if plans_all {
        function.attributes.retain(|(key, _)| &**key != PLAN_OUTPUTS);
    }
    Ok(())
}

/// Emits a storage before the first tensor that is placed in it.
fn storage_of(storage: &Storage, first: &Allocation<'_>, emitter: &mut Emitter<'_>) -> Result<Expr, PassError> {
    let call = make::call(
        "memory.alloc_storage",
        vec![
            ("size", Argument::Operand(Expr::shape(vec![storage.bytes.clone()]))),
            ("virtual_device_index", Argument::Operand(first.device.clone())),
            ("storage_scope", Argument::Operand(Expr::new(ExprKind::Str(storage.scope.clone()), StructInfo::String))),
            ("dtype", Argument::Operand(Expr::new(ExprKind::DType(storage.dtype), StructInfo::Object))),
        ],
    )?;
    let own = emitter.fresh(name("storage"));
    Ok(emitter.bind(own, call))
}

/// A call of `builtin.alloc_tensor` with a known shape, dtype and scope.
struct Allocation<'a> {
    dims: &'a [Dim],
    dtype: DType,
    scope: Arc<str>,
    shape: &'a Expr,
    dtype_value: &'a Expr,
    device: &'a Expr,
}

impl<'a> Allocation<'a> {
    fn of(value: &'a Expr) -> Option<Allocation<'a>> {
        let [shape, dtype_value, device] =
            make::operands(value, "builtin.alloc_tensor", ["shape", "dtype", "runtime_device_index"])?;
        let tensor = value.ty.as_tensor()?;
        let schema = rx_ops::find(name("builtin.alloc_tensor"))?;
        let scope = match schema.argument(value.as_call()?, "storage_scope")? {
            Argument::Operand(Expr { kind: ExprKind::Str(scope), .. }) | Argument::Attr(Attr::Str(scope)) => {
                scope.clone()
            }
            _ => return None,
        };
        Some(Allocation { dims: tensor.shape.dims()?, dtype: tensor.dtype?, scope, shape, dtype_value, device })
    }

    /// Returns a storage whose size is an upper bound of the tensor's size.
    fn storage(&self, bounds: &Bounds) -> Storage {
        let element = Dim::constant(i64::try_from(self.dtype.bytes()).unwrap_or(i64::MAX));
        let bytes = self.dims.iter().fold(element, |bytes, dim| &bytes * &bounds::largest(dim, bounds));
        Storage { bytes, dtype: self.dtype, scope: self.scope.clone() }
    }
}
