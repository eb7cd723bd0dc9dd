//! The names that a function defines, and generators of unused names.

use crate::{Module, walk};
use rx_base::Name;
use rx_base::name::{NameSet, name};
use rx_ir::{BoundValue, Item, RelaxFunction};

/// Returns the names of a function's variables, and of the symbolic dims in its signature, in the types of its bindings
/// and in bound values, including those of nested functions.
pub fn of_function(function: &RelaxFunction) -> NameSet {
    let mut found = NameSet::default();
    of_signature(function, &mut found);
    walk::each_binding(&function.body, &mut |binding| {
        found.insert(binding.variable);
        found.extend(binding.ty.symbols());
        if let BoundValue::Expr(value) = &binding.value {
            value.each_symbol(&mut |symbol| {
                found.insert(symbol);
            });
        }
        if let BoundValue::Function(nested) = &binding.value {
            of_signature(nested, &mut found);
        }
    });
    found
}

fn of_signature(function: &RelaxFunction, found: &mut NameSet) {
    for (param, ty) in &function.params {
        found.insert(*param);
        found.extend(ty.symbols());
    }
    found.extend(function.ret.symbols());
}

/// A generator of unused names; each name is given out once.
pub struct FreshNames {
    used: NameSet,
}

impl FreshNames {
    /// Creates a generator of names for new variables of `function`.
    pub fn of(function: &RelaxFunction) -> FreshNames {
        FreshNames { used: of_function(function) }
    }

    /// Creates a generator of names for new functions of `module`.
    pub fn of_module(module: &Module) -> FreshNames {
        FreshNames { used: module.items.iter().filter_map(Item::name).collect() }
    }

    /// Reserves a name, so that it is not generated later.
    pub fn take(&mut self, own: Name) {
        self.used.insert(own);
    }

    /// Returns an unused name: `like`, otherwise the first unused one of `like_1`, `like_2`, ….
    pub fn like(&mut self, like: Name) -> Name {
        self.numbered(like, "_")
    }

    /// Returns an unused name for an anonymous value, as TVM names them: `lv`, `lv1`, … in a dataflow block, otherwise
    /// `gv`, `gv1`, ….
    pub fn value(&mut self, dataflow: bool) -> Name {
        self.numbered(name(if dataflow { "lv" } else { "gv" }), "")
    }

    /// Returns an unused name: `like`, otherwise `like` followed by the separator and the first unused number from 1.
    pub fn numbered(&mut self, like: Name, separator: &str) -> Name {
        let mut own = like;
        let mut number = 0;
        while !self.used.insert(own) {
            number += 1;
            own = name(&format!("{like}{separator}{number}"));
        }
        own
    }
}
