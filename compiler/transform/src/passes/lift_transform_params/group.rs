//! Splitting of functions with the same weights into a function that prepares the weights and functions that take
//! prepared ones.

use super::weights::Weights;
use super::{inputs, mistake};
use crate::effects::Effects;
use crate::names::FreshNames;
use crate::pass::PassError;
use crate::passes::canonicalize::canonicalize;
use crate::passes::dead_code::remove_unused;
use crate::print::expression_text;
use crate::substitute::replace_in_sequence;
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{
    Argument, Attr, Block, BoundValue, Expr, ExprKind, Origin, RelaxFunction, Sequence, StructInfo, VarBinding,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Functions that take the same weights. Weights are named as in the first function. Shared values keep their names if
/// there is only one function; otherwise they get unused names like those in the first function.
pub(super) struct Group<'f> {
    members: Vec<Member<'f>>,
    effects: &'f Effects,
    /// The weights: the trailing parameters of the first function.
    weights: &'f [(Name, StructInfo)],
    /// The bindings that all members compute without their inputs, mainly from weights, in order.
    shared: Vec<VarBinding>,
    /// The symbolic dims of weights that a member needs and that neither its inputs nor the prepared weights determine.
    symbols: Vec<Name>,
    /// The prepared weights: first the weights that stay unchanged, then the computed values.
    outputs: Vec<(Name, StructInfo)>,
}

struct Member<'f> {
    function: &'f RelaxFunction,
    inputs: usize,
    found: Weights<'f>,
    /// The group's names of the member's weights and lifted variables.
    called: NameMap<Name>,
    /// The group's names of the symbolic dims of the member's weights.
    symbols: NameMap<Name>,
}

impl<'f> Group<'f> {
    /// Analyzes functions that have the attribute `num_input`.
    ///
    /// # Errors
    /// The functions have different weights, there is no function, or a `num_input` is wrong.
    pub(super) fn of(functions: &'f [Arc<RelaxFunction>], effects: &'f Effects) -> Result<Group<'f>, PassError> {
        let alone = functions.len() == 1;
        let mut members = Vec::new();
        for function in functions {
            let inputs = inputs(function)?.unwrap_or(function.params.len());
            let found = Weights::of(function, inputs, effects, alone, &|_| true);
            members.push(Member { function, inputs, found, called: NameMap::default(), symbols: NameMap::default() });
        }
        let (first, _) = members.split_first().ok_or_else(|| mistake("no function has weights"))?;
        let weights = first.function.params.get(first.inputs..).unwrap_or_default();
        let mut fresh = FreshNames::of(first.function);
        members.iter_mut().try_for_each(|member| member.match_weights(weights))?;
        let shared = match alone {
            true => members.first_mut().map(Member::keep_names).unwrap_or_default(),
            false => share(&mut members, effects, &mut fresh),
        };
        let mut group = Group { members, effects, weights, shared, symbols: Vec::new(), outputs: Vec::new() };
        group.outputs = group.outputs();
        group.symbols = group.symbols();
        Ok(group)
    }

    /// Whether, for any member, the set that `of` returns contains a variable that the group calls `wanted`.
    fn any(&self, of: impl for<'m> Fn(&'m Member<'f>) -> &'m NameSet, wanted: Name) -> bool {
        self.members
            .iter()
            .any(|member| member.called.iter().any(|(own, called)| *called == wanted && of(member).contains(own)))
    }

    fn outputs(&self) -> Vec<(Name, StructInfo)> {
        let needed = |variable: Name| self.any(|member| &member.found.needed, variable);
        let weights = self.weights.iter().filter(|(weight, _)| needed(*weight)).cloned();
        let computed = self.shared.iter().filter(|binding| {
            self.any(|member| &member.found.of_weights, binding.variable) && needed(binding.variable)
        });
        weights.chain(computed.map(|binding| (binding.variable, binding.ty.clone()))).collect()
    }

    fn symbols(&self) -> Vec<Name> {
        let mut said = NameSet::default();
        self.outputs.iter().for_each(|(_, ty)| {
            ty.each_told_symbol(&mut |symbol| {
                said.insert(symbol);
            });
        });
        let is_missing = |member: &Member<'f>, symbol: Name| {
            let mut given = false;
            for (_, ty) in member.function.params.iter().take(member.inputs) {
                ty.each_told_symbol(&mut |own| given |= own == symbol);
            }
            !given && member.found.needed_symbols.contains(&symbol)
        };
        let mut missing = Vec::new();
        for (_, ty) in self.weights {
            ty.each_told_symbol(&mut |symbol| {
                let needed = self.members.iter().any(|member| {
                    member.symbols.iter().any(|(own, called)| *called == symbol && is_missing(member, *own))
                });
                if needed && !said.contains(&symbol) && !missing.contains(&symbol) {
                    missing.push(symbol);
                }
            });
        }
        missing
    }

    /// Whether there is nothing to lift: the prepared weights are the weights, and no member calls `stop_lift_params`.
    pub(super) fn is_identity(&self) -> bool {
        // After an earlier run, the first weight may be the shape that passes on dims. It is not used as a weight, so
        // it is not among the outputs.
        let handed_on = match &self.symbols[..] {
            [] => self.weights,
            symbols => match self.weights.split_first() {
                Some(((_, ty), rest)) if *ty == shape_of(symbols).ty => rest,
                _ => return false,
            },
        };
        let same = self.outputs.iter().map(|(output, _)| output).eq(handed_on.iter().map(|(weight, _)| weight));
        let holds_back = |function: &RelaxFunction| {
            let mut found = false;
            crate::walk::each_expression(&function.body, &mut |expr| found |= is_held_back(expr));
            found
        };
        same && !self.members.iter().any(|member| holds_back(member.function))
    }

    /// Returns the number of each member's parameters that are not weights.
    pub(super) fn inputs(&self) -> impl Iterator<Item = usize> {
        self.members.iter().map(|member| member.inputs)
    }

    /// Builds the function that prepares the weights.
    ///
    /// # Errors
    /// An operator's rule rejects a call; this does not occur, since the operands are those of the original call.
    pub(super) fn transform(&self, own: Name) -> Result<RelaxFunction, PassError> {
        let taken = StructInfo::Tuple(self.weights.iter().map(|(_, ty)| ty.clone()).collect());
        let mut building = Building {
            fresh: self.names(&taken),
            origin: Origin { item: own, statement: 0 },
            model_params: name("model_params"),
            taken: taken.clone(),
            weights: self.weights,
            bindings: Vec::new(),
        };
        building.model_params = building.fresh.like(name("model_params"));
        for binding in &self.shared {
            building.binding(binding.clone());
        }
        let mut fields = Vec::new();
        if !self.symbols.is_empty() {
            fields.push(shape_of(&self.symbols));
        }
        for (output, ty) in &self.outputs {
            let mut field = Expr::var(*output, ty.clone());
            building.replace(&mut field);
            fields.push(field);
        }
        let tuple = Expr::tuple(fields);
        let gives = tuple.ty.clone();
        let mut body = Sequence { blocks: Vec::new(), result: tuple.clone() };
        if !self.outputs.is_empty() || !self.symbols.is_empty() {
            let output = building.fresh.like(name("output_tuple"));
            building.push(output, tuple);
            body.result = Expr::var(output, gives.clone());
            body.blocks.push(Block { outputs: Some(vec![output]), bindings: building.bindings });
        }
        let mut function = RelaxFunction {
            name: own,
            private: false,
            pure: true,
            attributes: vec![("num_input".into(), Attr::Int(Dim::constant(0)))],
            params: vec![(building.model_params, taken)],
            ret: gives,
            body,
        };
        canonicalize(&mut function)?;
        remove_unused(&mut function, self.effects);
        Ok(function)
    }

    /// Returns the names in use in the function that prepares the weights. The names of the weights are not among them,
    /// so the fields of its parameter can take these names.
    fn names(&self, taken: &StructInfo) -> FreshNames {
        let blocks = vec![Block { outputs: None, bindings: self.shared.clone() }];
        FreshNames::of(&RelaxFunction {
            name: name(""),
            private: true,
            pure: true,
            attributes: Vec::new(),
            params: Vec::new(),
            ret: taken.clone(),
            body: Sequence { blocks, result: Expr::tuple(Vec::new()) },
        })
    }

    /// Builds the members, with prepared weights as parameters.
    ///
    /// # Errors
    /// Those of [`Group::transform`].
    pub(super) fn members(&self) -> Result<Vec<RelaxFunction>, PassError> {
        self.members.iter().map(|member| self.member(member)).collect()
    }

    fn member(&self, member: &Member<'f>) -> Result<RelaxFunction, PassError> {
        let mut function = member.function.clone();
        let mut fresh = FreshNames::of(&function);
        function.params.truncate(member.inputs);
        let back: NameMap<Name> = member.symbols.iter().map(|(own, called)| (*called, *own)).collect();
        if !self.symbols.is_empty() {
            let own: Vec<Name> =
                self.symbols.iter().map(|symbol| back.get(symbol).copied().unwrap_or(*symbol)).collect();
            let param = fresh.like(name("vars_from_compile_time_params"));
            function.params.push((param, shape_of(&own).ty));
        }
        let mut values: NameMap<Expr> = NameMap::default();
        for (output, ty) in &self.outputs {
            let own = member.own(*output);
            let ty = match own.first() {
                Some(own) => member.ty_of(*own).unwrap_or(ty).clone(),
                None => ty.clone(),
            };
            let param = own.first().copied().unwrap_or_else(|| fresh.like(*output));
            for other in own.iter().skip(1) {
                values.insert(*other, Expr::var(param, ty.clone()));
            }
            function.params.push((param, ty));
        }
        let lifted: NameSet = member.found.liftable.iter().map(|binding| binding.variable).collect();
        let is_gone = |variable: &Name| lifted.contains(variable) && member.found.of_weights.contains(variable);
        for block in &mut function.body.blocks {
            block.bindings.retain(|binding| !is_gone(&binding.variable));
            block.outputs.iter_mut().for_each(|outputs| outputs.retain(|output| !is_gone(output)));
        }
        function.body.blocks.retain(|block| !block.bindings.is_empty());
        replace_in_sequence(&mut function.body, &values);
        crate::walk::each_expression_mut(&mut function.body, &mut |expr| {
            if is_held_back(expr)
                && let Some(Argument::Operand(held)) = expr.as_call().and_then(|call| call.arguments.first())
            {
                *expr = held.clone();
            }
        });
        canonicalize(&mut function)?;
        Ok(function)
    }
}

impl<'f> Member<'f> {
    /// Maps the member's weights and their symbolic dims to the names of the group.
    fn match_weights(&mut self, weights: &[(Name, StructInfo)]) -> Result<(), PassError> {
        let own = self.function.params.get(self.inputs..).unwrap_or_default();
        let function = self.function.name;
        if own.len() != weights.len() {
            let counts = format!("`{function}` has {} weights, another has {}", own.len(), weights.len());
            return Err(mistake(&format!("{counts}: only functions with the same weights can share a transform")));
        }
        for ((weight, ty), (called, wanted)) in own.iter().zip(weights) {
            self.called.insert(*weight, *called);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            ty.each_told_symbol(&mut |symbol| ours.push(symbol));
            wanted.each_told_symbol(&mut |symbol| theirs.push(symbol));
            for (own, called) in ours.into_iter().zip(theirs) {
                self.symbols.entry(own).or_insert(called);
            }
            if self.renamed(ty) != *wanted {
                let types = format!("the weight `{weight}` of `{function}` is {ty}, that of another is {wanted}");
                return Err(mistake(&format!("{types}: only functions with the same weights can share a transform")));
            }
        }
        Ok(())
    }

    fn renamed(&self, ty: &StructInfo) -> StructInfo {
        let dim = |symbol: Name| self.symbols.get(&symbol).map(|called| Dim::symbol(*called));
        Renaming { dim: &dim, variable: &|_| None }.ty(ty)
    }

    /// Maps each lifted variable to itself, for a group of one member. Returns the bindings to lift.
    fn keep_names(&mut self) -> Vec<VarBinding> {
        let lifted = self.found.liftable.iter().copied().cloned().collect::<Vec<_>>();
        self.called.extend(lifted.iter().map(|binding| (binding.variable, binding.variable)));
        lifted
    }

    /// Returns the member's variables that the group calls `called`, in order.
    fn own(&self, called: Name) -> Vec<Name> {
        let params = self.function.params.iter().map(|(param, _)| *param);
        let all = params.chain(self.found.liftable.iter().map(|binding| binding.variable));
        all.filter(|own| self.called.get(own) == Some(&called)).collect()
    }

    fn ty_of(&self, own: Name) -> Option<&StructInfo> {
        let param = self.function.params.iter().find(|(param, _)| *param == own).map(|(_, ty)| ty);
        param.or_else(|| self.found.liftable.iter().find(|binding| binding.variable == own).map(|binding| &binding.ty))
    }
}

/// Returns the bindings that all members compute without their inputs, in the group's names. Restricts the members to
/// lifting these.
fn share(members: &mut [Member<'_>], effects: &Effects, fresh: &mut FreshNames) -> Vec<VarBinding> {
    /// A value, and the members that compute it.
    struct Value {
        binding: VarBinding,
        by: Vec<usize>,
    }
    let mut values: Vec<Value> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (at, member) in members.iter_mut().enumerate() {
        for binding in member.found.liftable.clone() {
            let mut own = binding.clone();
            let BoundValue::Expr(value) = &mut own.value else { continue };
            let variable = |variable: Name| member.called.get(&variable).copied();
            Renaming { dim: &|_| None, variable: &variable }.expr(value);
            let key = format!("{}: {}", expression_text(value), own.ty);
            let index = *known.entry(key).or_insert_with(|| {
                own.variable = fresh.like(own.variable);
                values.push(Value { binding: own, by: Vec::new() });
                values.len() - 1
            });
            if let Some(value) = values.get_mut(index) {
                member.called.insert(binding.variable, value.binding.variable);
                if value.by.last() != Some(&at) {
                    value.by.push(at);
                }
            }
        }
    }
    let everywhere = members.len();
    let shared: Vec<VarBinding> =
        values.into_iter().filter(|value| value.by.len() == everywhere).map(|value| value.binding).collect();
    let names: NameSet = shared.iter().map(|binding| binding.variable).collect();
    for member in members {
        let weights = member.function.params.iter().skip(member.inputs).map(|(weight, _)| *weight);
        let weights: NameSet = weights.collect();
        member.called.retain(|own, called| names.contains(called) || weights.contains(own));
        let called = member.called.clone();
        member.found =
            Weights::of(member.function, member.inputs, effects, false, &|variable| called.contains_key(&variable));
    }
    shared
}

/// The body of a function that prepares weights, under construction.
struct Building<'f> {
    fresh: FreshNames,
    origin: Origin,
    model_params: Name,
    taken: StructInfo,
    weights: &'f [(Name, StructInfo)],
    bindings: Vec<VarBinding>,
}

impl Building<'_> {
    fn push(&mut self, variable: Name, value: Expr) {
        self.bindings.push(VarBinding::new(self.origin, variable, value));
    }

    fn binding(&mut self, mut binding: VarBinding) {
        if let BoundValue::Expr(value) = &mut binding.value {
            self.replace(value);
        }
        self.bindings.push(binding);
    }

    /// Binds a field of the parameter for each use of a weight in a value, directly before the value; TVM does so as
    /// well.
    fn replace(&mut self, value: &mut Expr) {
        let mut taken: Vec<(Name, Expr)> = Vec::new();
        value.each_mut(&mut |expr| {
            let Some(variable) = expr.as_var() else { return };
            let Some(at) = self.weights.iter().position(|(weight, _)| *weight == variable) else { return };
            let ty = expr.ty.clone();
            let tuple = Expr::var(self.model_params, self.taken.clone());
            let own = self.fresh.like(variable);
            taken.push((own, Expr::new(ExprKind::TupleGet(Box::new(tuple), at), ty.clone())));
            *expr = Expr::var(own, ty);
        });
        taken.into_iter().for_each(|(own, field)| self.push(own, field));
    }
}

fn is_held_back(expr: &Expr) -> bool {
    expr.as_op() == Some("builtin.stop_lift_params")
}

fn shape_of(symbols: &[Name]) -> Expr {
    Expr::shape(symbols.iter().map(|symbol| Dim::symbol(*symbol)).collect())
}
