//! Where symbolic dims are declared: those of signatures by `TypeVar` in front of the module, others at the head of the body.

use crate::{Module, walk};
use rx_base::Name;
use rx_base::name::{NameSet, name};
use rx_ir::{BoundValue, RelaxFunction, StructInfo};

/// The names that lines `n = TypeVar("n")` of `prelude` bind.
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

/// The dims that signatures of the module's Relax functions name, nested ones included, in order of their first occurrence.
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
    walk::each_binding(&function.body, &mut |binding| {
        if let BoundValue::Function(nested) = &binding.value {
            of_signature(nested, &inner, found);
        }
    });
}

/// Parameters that are scalars: each declares the symbol of its name.
fn scalars(function: &RelaxFunction) -> NameSet {
    let scalar = |(param, ty): &(Name, StructInfo)| matches!(ty, StructInfo::Prim(_)).then_some(*param);
    function.params.iter().filter_map(scalar).collect()
}

/// The symbolic dims that are known where the body starts.
pub(super) fn known_in(function: &RelaxFunction, outer: &NameSet) -> NameSet {
    let mut known = outer.clone();
    known.extend(scalars(function));
    for ty in function.params.iter().map(|(_, ty)| ty).chain([&function.ret]) {
        known.extend(ty.symbols());
    }
    known
}

/// The dims that the body names and nothing before it does, in order: what `R.match_cast` binds. Those of nested
/// functions' own signatures are not among them, nor are scalars that a binding computes.
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

/// Names, each once.
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
