//! Relax functions with their bodies: what is lowered and run.

use crate::expr::{Attr, Expr, Origin};
use crate::struct_info::StructInfo;
use rx_base::Name;
use rx_base::symbolic::Bounds;
use std::sync::Arc;

/// The attribute of a pure function whose result is kept for the next call with the very same arguments: what prepares
/// weights is called anew whenever they are used.
pub const ONCE: &str = "rx.once";

/// The attribute of a function that takes raw weights and has them prepared itself.
pub const RAW_ENTRY: &str = "rx.raw_entry";

/// A Relax function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Parameter names and types, in order.
    pub params: Vec<(Name, StructInfo)>,
    /// The type of what it returns.
    pub ret: StructInfo,
    /// Whether it is declared to have no effect but its value (`pure=False` is not; `relax.force_pure` leaves it so).
    pub pure: bool,
    /// Whether only its module may call it.
    pub private: bool,
    /// What `R.func_attr` says, in order.
    pub attributes: Vec<(Arc<str>, Attr)>,
    /// How many leading parameters are inputs and no weights, where the function says so.
    pub num_input: Option<i64>,
    /// What is known of its symbolic dims (`tir_var_upper_bound`, `tir_var_lower_bound`).
    pub bounds: Arc<Bounds>,
    /// What it does.
    pub body: Body,
}

impl Function {
    /// Whether `R.func_attr` says that `flag` holds.
    pub fn is_stated(&self, flag: &str) -> bool {
        self.attributes.iter().any(|(key, value)| &**key == flag && matches!(value, Attr::Bool(true)))
    }
}

/// Bindings in order, and the value they lead to. A name may be bound again: from there on it is the new value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// The bindings.
    pub bindings: Vec<Binding>,
    /// The returned value; of a branch, the variable it ends in.
    pub result: Option<Expr>,
    /// What dataflow blocks show to the statements behind them (`R.output`): the block's ordinal and the variable.
    pub outputs: Vec<(u32, Name)>,
}

/// A binding, or a bare statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// Where it comes from.
    pub origin: Origin,
    /// The ordinal, in its function, of the dataflow block it stands in.
    pub dataflow: Option<u32>,
    /// What it does.
    pub kind: BindingKind,
}

/// The kinds of binding.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingKind {
    /// `variable: ty = value`; `ty` is what the variable's users see.
    Value {
        /// The variable; `_` of a bare statement.
        variable: Name,
        /// The type its users see.
        ty: StructInfo,
        /// Its value.
        value: Arc<Expr>,
    },
    /// `a, b = value`.
    Unpack {
        /// The variables, in the order of the fields; `None` where a field is bound to nothing.
        variables: Vec<Option<Name>>,
        /// A tuple.
        value: Arc<Expr>,
    },
    /// `if condition: … elif condition: … else: …`.
    If {
        /// The variable all branches end in.
        variable: Option<Name>,
        /// Conditions, one boolean each, with what is done for the first that holds.
        arms: Vec<(Expr, Body)>,
        /// What is done where none holds.
        otherwise: Body,
    },
    /// A nested function; it sees the variables bound before it, and itself.
    Function(Arc<Function>),
}
