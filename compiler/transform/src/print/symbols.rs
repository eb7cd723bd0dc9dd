//! The places where symbolic dims are declared. Dims of signatures, except scalar parameters, are declared with
//! `TypeVar` before the module; dims that a function's body binds, at its head with `n = T.int64()`.

use crate::names::FreshNames;
use crate::substitute::rename;
use crate::{Module, walk};
use rx_base::name::{NameMap, NameSet, name};
use rx_base::{Dim, Name};
use rx_ir::rewrite::Renaming;
use rx_ir::{BoundValue, RelaxFunction, Sequence, StructInfo};
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the names that lines like `n = TypeVar("n")` of `prelude` declare.
pub(super) fn declared_in(prelude: &str) -> NameSet {
    let declared = |line: &str| {
        let (left, right) = line.split_once('=')?;
        right
            .trim_start()
            .strip_prefix("typing.")
            .unwrap_or(right.trim_start())
            .starts_with("TypeVar(")
            .then_some(())?;
        Some(name(left.trim()))
    };
    prelude.lines().filter_map(declared).collect()
}

/// Returns the dims in the signatures of the module's Relax functions, including nested ones, in order of first
/// occurrence. Dims that a scalar parameter or an enclosing function declares are not included.
pub(super) fn of_signatures(module: &Module) -> Vec<Name> {
    let mut found = Ordered::default();
    module.functions().for_each(|function| of_signature(function, &NameSet::default(), &mut found));
    found.names
}

fn of_signature(function: &RelaxFunction, outer: &NameSet, found: &mut Ordered) {
    let known = known_in(function, outer);
    let scalars = scalars(function);
    let types = function.params.iter().map(|(_, ty)| ty).chain([&function.ret]);
    types.for_each(|ty| {
        ty.each_symbol(&mut |symbol| {
            if !outer.contains(&symbol) && !scalars.contains(&symbol) {
                found.add(symbol);
            }
        });
    });
    let mut inner: NameSet = of_body(function, &known).into_iter().collect();
    inner.extend(known);
    walk::each_own_binding(&function.body, &mut |binding| {
        if let BoundValue::Function(nested) = &binding.value {
            of_signature(nested, &inner, found);
        }
    });
}

/// Returns the parameters of a scalar type. Each also declares the symbolic dim of its name.
fn scalars(function: &RelaxFunction) -> NameSet {
    let scalar = |(param, ty): &(Name, StructInfo)| matches!(ty, StructInfo::Prim(_)).then_some(*param);
    function.params.iter().filter_map(scalar).collect()
}

/// Returns the symbolic dims that are in scope at the start of a function's body.
pub(super) fn known_in(function: &RelaxFunction, outer: &NameSet) -> NameSet {
    let mut known = outer.clone();
    known.extend(scalars(function));
    for ty in function.params.iter().map(|(_, ty)| ty).chain([&function.ret]) {
        known.extend(ty.symbols());
    }
    known
}

/// Returns the dims that a body uses and that neither `known` nor a binding defines, in order of first use: those that
/// `R.match_cast` binds. Nested functions are not searched. Scalars that a binding computes are not included.
pub(super) fn of_body(function: &RelaxFunction, known: &NameSet) -> Vec<Name> {
    let mut computed = NameSet::default();
    walk::each_own_binding(&function.body, &mut |binding| {
        computed.insert(binding.variable);
    });
    let mut found = Ordered::default();
    let mut add = |symbol: Name| {
        if !known.contains(&symbol) && !computed.contains(&symbol) {
            found.add(symbol);
        }
    };
    walk::each_own_binding(&function.body, &mut |binding| {
        let is_function = matches!(binding.value, BoundValue::Function(_));
        if !is_function {
            binding.ty.each_symbol(&mut add);
        }
        match &binding.value {
            BoundValue::Expr(value) => value.each_symbol(&mut add),
            BoundValue::If(branches) => {
                let own = [&branches.condition, &branches.then.result, &branches.otherwise.result];
                own.into_iter().for_each(|expr| expr.each_symbol(&mut add));
            }
            BoundValue::Function(_) => {}
        }
    });
    function.body.result.each_symbol(&mut add);
    found.names
}

/// Renames dims that bodies declare and that are also declared for the whole file. TVM's parser rejects `n = T.int64()`
/// in a function whose signature does not use the `n` of a file-level `n = TypeVar("n")`. For example, such an `n`
/// becomes `n_1`. A function is left unchanged if an expression kept as source text uses one of its names.
pub(super) fn with_distinct_names(module: &Module) -> Cow<'_, Module> {
    let mut declared = declared_in(&module.prelude);
    declared.extend(of_signatures(module));
    if declared.is_empty()
        || !module.functions().any(|function| declares_again(function, &NameSet::default(), &declared))
    {
        return Cow::Borrowed(module);
    }
    let mut module = module.clone();
    for function in module.functions_mut() {
        let mut fresh = FreshNames::of(function);
        declared.iter().for_each(|symbol| fresh.take(*symbol));
        tell_apart(function, &NameSet::default(), &declared, &mut fresh);
    }
    Cow::Owned(module)
}

/// Whether the body of a function, or of a function nested in it, declares one of `declared` again.
fn declares_again(function: &RelaxFunction, outer: &NameSet, declared: &NameSet) -> bool {
    let mut known = known_in(function, outer);
    let own = of_body(function, &known);
    if own.iter().any(|symbol| declared.contains(symbol)) {
        return true;
    }
    known.extend(own);
    let mut again = false;
    walk::each_own_binding(&function.body, &mut |binding| {
        if let BoundValue::Function(nested) = &binding.value {
            again = again || declares_again(nested, &known, declared);
        }
    });
    again
}

fn tell_apart(function: &mut RelaxFunction, outer: &NameSet, declared: &NameSet, fresh: &mut FreshNames) {
    let mut known = known_in(function, outer);
    let again: NameMap<Name> = of_body(function, &known)
        .into_iter()
        .filter(|symbol| declared.contains(symbol))
        .map(|symbol| (symbol, fresh.like(symbol)))
        .collect();
    if !again.is_empty() && !walk::names_in_text(function) {
        let dim = |symbol: Name| again.get(&symbol).copied().map(Dim::symbol);
        rename(&mut function.body, &Renaming { dim: &dim, variable: &|_| None });
    }
    known.extend(of_body(function, &known));
    each_nested(&mut function.body, &mut |nested| tell_apart(nested, &known, declared, fresh));
}

/// Visits the nested functions of a sequence, but not functions nested in those.
fn each_nested(sequence: &mut Sequence, visit: &mut dyn FnMut(&mut RelaxFunction)) {
    for binding in sequence.blocks.iter_mut().flat_map(|block| &mut block.bindings) {
        match &mut binding.value {
            BoundValue::Function(function) => visit(Arc::make_mut(function)),
            value => value.sequences_mut().for_each(|branch| each_nested(branch, visit)),
        }
    }
}

/// A set of names that keeps the order in which they were added.
#[derive(Default)]
struct Ordered {
    names: Vec<Name>,
    seen: NameSet,
}

impl Ordered {
    fn add(&mut self, symbol: Name) {
        if self.seen.insert(symbol) {
            self.names.push(symbol);
        }
    }
}
