//! Construction of the function for a group of bindings. Its parameters are mainly the variables that the bindings use
//! and do not bind; constants that are tensors, and dims that no parameter determines, are passed as well. For example,
//! the group `lv = add(x, y); gv = exp(lv)` becomes a function of `x` and `y`.

use super::Callees;
use crate::names::FreshNames;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{DType, Dim, Name};
use rx_ir::{
    Attr, Block, BoundValue, Expr, ExprKind, PrimInfo, PrimValue, RelaxFunction, Sequence, StructInfo, VarBinding,
};
use rx_tir::{Buffer, Param, PrimFunc};
use std::sync::Arc;

/// The function of a group, and the arguments for its call.
pub(super) struct Grouped {
    /// The function. The caller assigns its name.
    pub(super) function: RelaxFunction,
    /// The arguments. Those that are fields of tuples must be bound to variables first.
    pub(super) arguments: Vec<Expr>,
}

/// Builds the function that binds the variables of `members` and returns `outputs`, which are among them. A field of a
/// tuple from outside can become a parameter instead of a binding. Returns `None` if a member binds no expression, if
/// an output is not among the members, or if all members become parameters. `callees` are the prim_funcs that may be
/// called, `values` the values of the variables in the enclosing function, and `fresh` generates names for parameters.
pub(super) fn grouped(
    members: &[&VarBinding],
    outputs: &[Name],
    callees: &Callees,
    values: &NameMap<Expr>,
    fresh: &mut FreshNames,
) -> Option<Grouped> {
    let mut signature = Signature { slots: Vec::new(), bound: NameSet::default(), constants: 0, values, fresh };
    let mut bindings = Vec::new();
    let mut types: NameMap<StructInfo> = NameMap::default();
    for binding in members {
        let BoundValue::Expr(value) = &binding.value else { return None };
        types.insert(binding.variable, binding.ty.clone());
        let mut value = value.clone();
        let is_field = match &value.kind {
            ExprKind::TupleGet(tuple, at) => signature.field(tuple, *at, binding),
            _ => false,
        };
        if !is_field {
            let callee = super::tir_call(&value).and_then(|(callee, _)| callees.get(&callee)?.loops().cloned());
            for (at, argument) in super::arguments_mut(&mut value).into_iter().flatten().enumerate() {
                let is_known = argument.ty.as_tensor().is_some_and(|tensor| tensor.shape.dims().is_some());
                let is_constant = matches!(argument.kind, ExprKind::Metadata { .. });
                if let Some(ty) = callee.as_ref().and_then(|callee| passed_type(callee, at))
                    && is_constant
                    && !is_known
                {
                    argument.ty = ty;
                }
                signature.argument(argument);
            }
            signature.bound.insert(binding.variable);
            bindings.push(VarBinding { value: BoundValue::Expr(value), ..VarBinding::clone(binding) });
        }
    }
    let results: Vec<Expr> =
        outputs.iter().map(|output| Some(Expr::var(*output, types.get(output)?.clone()))).collect::<Option<_>>()?;
    let bound: NameSet = bindings.iter().map(|binding| binding.variable).collect();
    if bound.is_empty() {
        return None;
    }
    let (mut params, mut arguments) = signature.finish();
    let result = together(results);
    let block =
        Block { outputs: Some(outputs.iter().copied().filter(|output| bound.contains(output)).collect()), bindings };
    let body = Sequence { blocks: vec![block], result };
    let free = free_symbols(&params, &body);
    if !free.is_empty() {
        let dims = Expr::shape(free.iter().map(|symbol| Dim::symbol(*symbol)).collect());
        params.push((fresh.like(name("tir_vars")), dims.ty.clone()));
        arguments.push(dims);
    }
    let function = RelaxFunction {
        name: name("fused"),
        private: true,
        pure: true,
        attributes: vec![(Arc::from("Primitive"), Attr::Bool(true))],
        params,
        ret: body.result.ty.clone(),
        body,
    };
    Some(Grouped { function, arguments })
}

/// Returns the type of the argument for a parameter of a prim_func; `None` if the parameter is not a buffer with
/// constant extents. It is used for constants of a metadata section that is not available, whose type is unknown.
fn passed_type(callee: &PrimFunc, at: usize) -> Option<StructInfo> {
    let Param::Buffer(buffer) = *callee.params.get(at)? else { return None };
    let Buffer { shape, dtype, .. } = callee.buffer(buffer);
    let dims: Option<Vec<Dim>> = shape.iter().map(|extent| extent.as_int().map(Dim::constant)).collect();
    Some(StructInfo::tensor(dims?, Some(*dtype)))
}

/// Returns a single value unchanged, and several values as a tuple.
fn together(mut values: Vec<Expr>) -> Expr {
    if values.len() == 1 {
        return values.swap_remove(0);
    }
    Expr::tuple(values)
}

/// Returns the dims that the body or a parameter uses and that no parameter determines. As in TVM, they are in reverse
/// order of their first use.
fn free_symbols(params: &[(Name, StructInfo)], body: &Sequence) -> Vec<Name> {
    let mut known: NameSet = NameSet::default();
    for (_, ty) in params {
        ty.each_told_symbol(&mut |symbol| {
            known.insert(symbol);
        });
    }
    let mut free = Vec::new();
    let mut meet = |symbol: Name| {
        if known.insert(symbol) {
            free.push(symbol);
        }
    };
    params.iter().for_each(|(_, ty)| ty.each_symbol(&mut meet));
    for binding in body.blocks.iter().flat_map(|block| &block.bindings) {
        if let BoundValue::Expr(value) = &binding.value {
            value.each_symbol(&mut meet);
        }
        binding.ty.each_symbol(&mut meet);
    }
    free.reverse();
    free
}

/// The parameters of a function under construction.
struct Signature<'a> {
    slots: Vec<Slot>,
    /// The variables that the function binds.
    bound: NameSet,
    /// The number of arguments so far that are neither variables nor symbolic dims, without repeated constants of the
    /// metadata section. It numbers the parameters `param_0`, `param_1`, ….
    constants: usize,
    values: &'a NameMap<Expr>,
    fresh: &'a mut FreshNames,
}

/// An argument of the group's call, or several fields of one tuple, with the parameters for them.
enum Slot {
    /// One argument, passed for one parameter: the parameter's name and the argument.
    Whole(Name, Expr),
    /// Fields of a tuple variable, each passed for a separate parameter: name, type and field index.
    Fields(Expr, Vec<(Name, StructInfo, usize)>),
}

impl Signature<'_> {
    /// Adds a parameter for an argument of a call in the group, unless the group binds the argument or has a parameter
    /// for it already. A parameter for a variable has the variable's name; any other argument is replaced with its
    /// parameter. A tensor literal gets a parameter at each use. Known scalars and shapes are written out in the group
    /// instead, also for variables bound to them.
    fn argument(&mut self, argument: &mut Expr) {
        if let ExprKind::Var(variable) = argument.kind {
            if self.bound.contains(&variable) || self.passes(variable) {
                return;
            }
            if let Some(value) = self.constant_of(variable) {
                *argument = value;
                return;
            }
            return self.slots.push(Slot::Whole(variable, argument.clone()));
        }
        if let ExprKind::Prim(PrimValue::Int(dim)) = &argument.kind
            && let Some(symbol) = dim.as_symbol()
        {
            let own = scalar(symbol, &argument.ty);
            if !self.passes(symbol) {
                self.slots.push(Slot::Whole(symbol, std::mem::replace(argument, own)));
            } else {
                *argument = own;
            }
            return;
        }
        let same = self.slots.iter().find_map(|slot| match slot {
            Slot::Whole(name, passed) if is_shared(argument) && passed.kind == argument.kind => Some(*name),
            _ => None,
        });
        if let Some(same) = same {
            *argument = Expr::var(same, argument.ty.clone());
            return;
        }
        let number = self.constants;
        self.constants += 1;
        if !is_written_out(argument) {
            let own = self.fresh.like(name(&format!("param_{number}")));
            let passed = match &argument.ty {
                StructInfo::Prim(_) => scalar(own, &argument.ty),
                ty => Expr::var(own, ty.clone()),
            };
            self.slots.push(Slot::Whole(own, std::mem::replace(argument, passed)));
        }
    }

    /// Adds a parameter for a tuple field if the tuple is a variable that is bound outside of the group and is not a
    /// parameter itself. The parameter has the name of the variable that the field is bound to. Returns whether it was
    /// added.
    fn field(&mut self, tuple: &Expr, at: usize, binding: &VarBinding) -> bool {
        let is_known = |variable: &Name| self.bound.contains(variable) || self.passes(*variable);
        let Some(variable) = tuple.as_var().filter(|variable| !is_known(variable)) else { return false };
        let fields = (binding.variable, binding.ty.clone(), at);
        let known = self.slots.iter_mut().find_map(|slot| match slot {
            Slot::Fields(own, fields) if own.as_var() == Some(variable) => Some(fields),
            _ => None,
        });
        match known {
            Some(known) => known.push(fields),
            None => self.slots.push(Slot::Fields(tuple.clone(), vec![fields])),
        }
        true
    }

    fn passes(&self, variable: Name) -> bool {
        self.slots.iter().any(|slot| match slot {
            Slot::Whole(name, _) => *name == variable,
            Slot::Fields(_, fields) => fields.iter().any(|(name, ..)| *name == variable),
        })
    }

    /// Returns the value of a variable if that is written out at each use, as known scalars and shapes are.
    fn constant_of(&self, variable: Name) -> Option<Expr> {
        let mut value = self.values.get(&variable)?;
        // This ends, since each variable is bound to an earlier one.
        while let ExprKind::Var(other) = value.kind {
            value = self.values.get(&other)?;
        }
        is_written_out(value).then(|| value.clone())
    }

    /// Returns the parameters and the arguments, in order.
    fn finish(self) -> (Vec<(Name, StructInfo)>, Vec<Expr>) {
        let (mut params, mut arguments) = (Vec::new(), Vec::new());
        for slot in self.slots {
            match slot {
                Slot::Whole(name, passed) => {
                    let ty = match &passed.ty {
                        StructInfo::Prim(_) => scalar(name, &passed.ty).ty,
                        ty => ty.clone(),
                    };
                    params.push((name, ty));
                    arguments.push(passed);
                }
                Slot::Fields(tuple, fields) => {
                    for (name, ty, at) in fields {
                        params.push((name, ty.clone()));
                        arguments.push(Expr::new(ExprKind::TupleGet(Box::new(tuple.clone()), at), ty));
                    }
                }
            }
        }
        (params, arguments)
    }
}

/// Returns a scalar parameter as an expression. Its value is the symbolic dim of the same name.
fn scalar(name: Name, ty: &StructInfo) -> Expr {
    let dtype = match ty {
        StructInfo::Prim(prim) => prim.dtype,
        _ => None,
    };
    let prim = PrimInfo { dtype: Some(dtype.unwrap_or(DType::INT64)), value: Some(Dim::symbol(name)) };
    Expr::var(name, StructInfo::Prim(prim))
}

/// Whether two equal arguments share a parameter. Constants of the metadata section do; literals that occur twice do
/// not.
fn is_shared(argument: &Expr) -> bool {
    matches!(argument.kind, ExprKind::Metadata { .. })
}

/// Whether a value is written out in the function instead of being passed: a known scalar, a known shape,
/// or a tuple of these.
fn is_written_out(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Prim(PrimValue::Int(dim)) => dim.as_constant().is_some(),
        ExprKind::Prim(PrimValue::Float(_) | PrimValue::Bool(_)) => true,
        ExprKind::Shape(dims) => dims.iter().all(|dim| dim.as_constant().is_some()),
        ExprKind::Tuple(fields) => fields.iter().all(is_written_out),
        _ => false,
    }
}
