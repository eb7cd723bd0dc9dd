//! The names of a function, and names that it has not.

use crate::{Module, walk};
use rx_base::Name;
use rx_base::name::{NameSet, name};
use rx_ir::{BoundValue, Item, RelaxFunction};

/// Every name that a function defines: variables and symbolic dims, those of nested functions included.
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

/// Gives names that a function has not, each once.
pub struct FreshNames {
    used: NameSet,
}

impl FreshNames {
    /// For new variables of `function`.
    pub fn of(function: &RelaxFunction) -> FreshNames {
        FreshNames { used: of_function(function) }
    }

    /// For new functions of `module`.
    pub fn of_module(module: &Module) -> FreshNames {
        FreshNames { used: module.items.iter().filter_map(Item::name).collect() }
    }

    /// Has a name given to nothing else.
    pub fn take(&mut self, own: Name) {
        self.used.insert(own);
    }

    /// A name that nothing has: `like`, or `like_1`, `like_2`, ….
    pub fn like(&mut self, like: Name) -> Name {
        self.numbered(like, "_")
    }

    /// The name of a value that a text would not name: `lv`, `lv1`, … in a dataflow block, `gv`, `gv1`, … elsewhere.
    pub fn value(&mut self, dataflow: bool) -> Name {
        self.numbered(name(if dataflow { "lv" } else { "gv" }), "")
    }

    /// A name that nothing has: `like`, or `like` with the separator and a number after it.
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
