//! Relax functions with their bodies, as analysis produces them for lowering and execution.

use crate::expr::{Attr, Expr, Origin};
use crate::struct_info::StructInfo;
use rx_base::Name;
use rx_base::symbolic::Bounds;
use std::sync::Arc;

/// The attribute of a pure function whose result is memoized for the next call with identical arguments. A function
/// that prepares weights has it, because the program calls it at each use of the weights.
pub const ONCE: &str = "rx.once";

/// The attribute of a function that takes raw weights and itself calls the functions that prepare them.
pub const RAW_ENTRY: &str = "rx.raw_entry";

/// A Relax function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name.
    pub name: Name,
    /// The parameters' names and types, in order.
    pub params: Vec<(Name, StructInfo)>,
    /// The return type.
    pub ret: StructInfo,
    /// Whether it is declared pure, that is, without `pure=False`. The attribute `relax.force_pure` leaves this `true` and
    /// only disables the check of the body.
    pub pure: bool,
    /// Whether the function can be called only inside its module.
    pub private: bool,
    /// The entries of `R.func_attr`, in order.
    pub attributes: Vec<(Arc<str>, Attr)>,
    /// The number of leading parameters that are inputs and not weights, if the function has this attribute.
    pub num_input: Option<i64>,
    /// The bounds of its symbolic dims (`tir_var_upper_bound`, `tir_var_lower_bound`).
    pub bounds: Arc<Bounds>,
    /// The body.
    pub body: Body,
}

impl Function {
    /// Whether `R.func_attr` sets `flag` to `True`.
    pub fn is_stated(&self, flag: &str) -> bool {
        self.attributes.iter().any(|(key, value)| &**key == flag && matches!(value, Attr::Bool(true)))
    }
}

/// Bindings in order, and a result. A name may be bound again; later uses refer to the new value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// The bindings.
    pub bindings: Vec<Binding>,
    /// The returned value. For a branch, the variable that it binds last.
    pub result: Option<Expr>,
    /// The variables that dataflow blocks export to the statements after them (`R.output`), each with the ordinal of
    /// its block.
    pub outputs: Vec<(u32, Name)>,
}

/// A binding, or a statement without one.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The source statement.
    pub origin: Origin,
    /// The ordinal, in the outermost function, of the dataflow block that contains it.
    pub dataflow: Option<u32>,
    /// The kind.
    pub kind: BindingKind,
}

/// The kinds of bindings.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingKind {
    /// `variable: ty = value`.
    Value {
        /// The variable; `_` for a statement without a binding.
        variable: Name,
        /// The variable's type as its users see it.
        ty: StructInfo,
        /// The value.
        value: Arc<Expr>,
    },
    /// `a, b = value`.
    Unpack {
        /// The variables, in the order of the fields; `None` for a field that is not bound.
        variables: Vec<Option<Name>>,
        /// The tuple.
        value: Arc<Expr>,
    },
    /// `if condition: … elif condition: … else: …`.
    If {
        /// The variable that all branches bind last.
        variable: Option<Name>,
        /// The conditions, each a scalar boolean, with their branches. The first branch whose condition holds is
        /// executed.
        arms: Vec<(Expr, Body)>,
        /// The branch for the case that no condition holds.
        otherwise: Body,
    },
    /// A nested function. Its body can refer to itself and to the variables bound before it.
    Function(Arc<Function>),
}
