//! The function of a group of bindings: its parameters are what the bindings name and do not bind.

use super::Callees;
use crate::names::FreshNames;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{DType, Dim, Name};
use rx_ir::{
    Attr, Block, BoundValue, Expr, ExprKind, PrimInfo, PrimValue, RelaxFunction, Sequence, StructInfo, VarBinding,
};
use rx_tir::{Buffer, Param, PrimFunc};
use std::sync::Arc;

/// A function that does what the bindings of a group do, and what a call of it passes.
pub(super) struct Grouped {
    /// The function; what it is called is for the caller to say.
    pub(super) function: RelaxFunction,
    /// Its arguments; those that are fields of tuples are to be bound first.
    pub(super) arguments: Vec<Expr>,
}

/// The function that binds what `members` bind and gives `outputs`, variables of them; `None` where nothing is left to do.
/// `callees` are the prim_funcs that may be called, `values` the
/// values of the variables around, `fresh` gives names to parameters.
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

/// The type of what a call passes for a parameter: of a constant of another module's metadata section no more is known.
fn passed_type(callee: &PrimFunc, at: usize) -> Option<StructInfo> {
    let Param::Buffer(buffer) = *callee.params.get(at)? else { return None };
    let Buffer { shape, dtype, .. } = callee.buffer(buffer);
    let dims: Option<Vec<Dim>> = shape.iter().map(|extent| extent.as_int().map(Dim::constant)).collect();
    Some(StructInfo::tensor(dims?, Some(*dtype)))
}

/// One value for itself, several as a tuple.
fn together(mut values: Vec<Expr>) -> Expr {
    if values.len() == 1 {
        return values.swap_remove(0);
    }
    Expr::tuple(values)
}

/// The dims that the body or a parameter names and no parameter tells, the one that is named last first, as TVM has them.
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

/// The parameters of a function that is being put together.
struct Signature<'a> {
    slots: Vec<Slot>,
    /// The variables that its bindings bind.
    bound: NameSet,
    /// How many arguments have been met that are no variables.
    constants: usize,
    values: &'a NameMap<Expr>,
    fresh: &'a mut FreshNames,
}

/// What a call passes.
enum Slot {
    /// A value, for a parameter of this name.
    Whole(Name, Expr),
    /// Fields of a tuple, which is a variable, each for a parameter of its own.
    Fields(Expr, Vec<(Name, StructInfo, usize)>),
}

impl Signature<'_> {
    /// Makes what a call passes a parameter; variables keep their names, so only other arguments are replaced.
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

    /// Makes the field of a tuple a parameter, where the group does not bind the tuple; the variable it is bound to is the
    /// parameter.
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

    /// What a variable is bound to, where that is written out wherever it is named.
    fn constant_of(&self, variable: Name) -> Option<Expr> {
        let mut value = self.values.get(&variable)?;
        // Each step leads to a variable bound before.
        while let ExprKind::Var(other) = value.kind {
            value = self.values.get(&other)?;
        }
        is_written_out(value).then(|| value.clone())
    }

    /// Parameters and arguments, in order.
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

/// A parameter that is a scalar: its value is the symbol of its name.
fn scalar(name: Name, ty: &StructInfo) -> Expr {
    let dtype = match ty {
        StructInfo::Prim(prim) => prim.dtype,
        _ => None,
    };
    let prim = PrimInfo { dtype: Some(dtype.unwrap_or(DType::INT64)), value: Some(Dim::symbol(name)) };
    Expr::var(name, StructInfo::Prim(prim))
}

/// Whether two arguments that look the same are one: a constant that is written twice is two.
fn is_shared(argument: &Expr) -> bool {
    matches!(argument.kind, ExprKind::Metadata { .. })
}

/// Whether a value is written out in the function, and not passed: scalars and shapes that are known.
fn is_written_out(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Prim(PrimValue::Int(dim)) => dim.as_constant().is_some(),
        ExprKind::Prim(PrimValue::Float(_) | PrimValue::Bool(_)) => true,
        ExprKind::Shape(dims) => dims.iter().all(|dim| dim.as_constant().is_some()),
        ExprKind::Tuple(fields) => fields.iter().all(is_written_out),
        _ => false,
    }
}
