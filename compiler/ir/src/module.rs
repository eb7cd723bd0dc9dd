//! A module as the input and output of passes: Relax functions as blocks of bindings, everything else as text.
//!
//! It differs from [`crate::function`], which represents a checked text statement by statement. Here each binding binds
//! one variable, and operands of calls are variables, constants, or tuples of these (A-normal form, as in TVM). No name
//! is bound twice in a function, except that both branches of an `if` bind the name of its value.
//!
//! ```text
//! y = R.add(R.multiply(x, c), x)      # source, and crate::function
//!
//! lv = R.multiply(x, c)               # this module
//! y = R.add(lv, x)
//! ```

use crate::constants::Constants;
use crate::expr::{Attr, Expr, Origin};
use crate::struct_info::StructInfo;
use rx_base::Name;
use std::sync::Arc;

/// A module. `L` is the type of a function of the loop-level IR, which this crate does not define.
#[derive(Clone, Debug, PartialEq)]
pub struct Module<L> {
    /// The text before the class or the first function: imports and symbolic dims.
    pub prelude: Arc<str>,
    /// The constants to which its functions refer: those of the metadata section, and those that passes created.
    pub constants: Constants,
    /// The name of its class; `None` if the file's functions are not in a class.
    pub class: Option<Name>,
    /// The items, in order.
    pub items: Vec<Item<L>>,
}

/// A part of a module.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<L> {
    /// A Relax function.
    Relax(Arc<RelaxFunction>),
    /// A prim_func.
    Loops(Arc<LoopFunction<L>>),
    /// Text that no pass changes: the module's attributes, or an external function. The lines are without the
    /// indentation of the class; the last one ends with a line break.
    Text {
        /// The name that it binds.
        name: Option<Name>,
        /// The text.
        text: Arc<str>,
    },
}

/// A prim_func of a module, from the source or created by a pass.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopFunction<L> {
    /// The name in the module.
    pub name: Name,
    /// Whether the function can be called only inside its module.
    pub private: bool,
    /// The entries of `T.func_attr`, in order.
    pub attributes: Vec<(Arc<str>, Attr)>,
    /// The body.
    pub body: LoopBody<L>,
}

/// The body of a prim_func.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopBody<L> {
    /// The source text, which can contain more than the loop-level IR represents (regions, annotations). The lines are
    /// without the indentation of the class, in two parts.
    Written {
        /// The text before the dictionary of its `T.func_attr`. If there is none: the decorators and the header, with
        /// its line break.
        before: Arc<str>,
        /// The text after the dictionary. If there is none: the statements.
        after: Arc<str>,
        /// The same body as loops; `None` if it contains a construct that the loop-level IR does not have.
        loops: Option<Arc<L>>,
    },
    /// A body created as loops.
    Made(Arc<L>),
}

impl<L> LoopFunction<L> {
    /// The body as loops; `None` if it contains a construct that the loop-level IR does not have.
    pub fn loops(&self) -> Option<&Arc<L>> {
        match &self.body {
            LoopBody::Written { loops, .. } => loops.as_ref(),
            LoopBody::Made(loops) => Some(loops),
        }
    }

    /// The value of `key` in `T.func_attr`.
    pub fn attribute(&self, key: &str) -> Option<&Attr> {
        self.attributes.iter().rfind(|(own, _)| &**own == key).map(|(_, value)| value)
    }

    /// Sets an attribute. An existing one keeps its position; a new one is inserted in the order of the keys, as TVM
    /// prints them.
    pub fn set_attribute(&mut self, key: &str, value: Attr) {
        match self.attributes.iter_mut().rfind(|(own, _)| &**own == key) {
            Some((_, old)) => *old = value,
            None => {
                let at = self.attributes.iter().position(|(own, _)| &**own > key).unwrap_or(self.attributes.len());
                self.attributes.insert(at, (Arc::from(key), value));
            }
        }
    }
}

/// A Relax function.
#[derive(Clone, Debug, PartialEq)]
pub struct RelaxFunction {
    /// The name.
    pub name: Name,
    /// Whether the function can be called only inside its module.
    pub private: bool,
    /// Whether it is declared pure.
    pub pure: bool,
    /// The entries of `R.func_attr`, in order.
    pub attributes: Vec<(Arc<str>, Attr)>,
    /// The parameters' names and types, in order.
    pub params: Vec<(Name, StructInfo)>,
    /// The return type.
    pub ret: StructInfo,
    /// The body.
    pub body: Sequence,
}

impl RelaxFunction {
    /// The value of `key` in `R.func_attr`.
    pub fn attribute(&self, key: &str) -> Option<&Attr> {
        self.attributes.iter().find(|(own, _)| &**own == key).map(|(_, value)| value)
    }

    /// Whether `R.func_attr` sets `key` to `True` or to a nonzero integer.
    pub fn is_set(&self, key: &str) -> bool {
        let is_true = |attr: &Attr| *attr == Attr::Bool(true) || attr.as_int().is_some_and(|value| value != 0);
        self.attribute(key).is_some_and(is_true)
    }
}

/// Blocks in order, and a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The blocks, none of which is empty.
    pub blocks: Vec<Block>,
    /// The result: a variable, a constant, or a tuple of these.
    pub result: Expr,
}

/// A block of consecutive bindings.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// For a dataflow block, the variables visible after it, in the order of their bindings; `None` for a plain block.
    pub outputs: Option<Vec<Name>>,
    /// The bindings, in order.
    pub bindings: Vec<VarBinding>,
}

/// A variable with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct VarBinding {
    /// The source statement.
    pub origin: Origin,
    /// The variable; `_` for a statement that is executed for its side effect.
    pub variable: Name,
    /// The variable's type as its users see it.
    pub ty: StructInfo,
    /// The value.
    pub value: BoundValue,
}

impl VarBinding {
    /// Creates the binding of a variable that has the type of its value.
    pub fn new(origin: Origin, variable: Name, value: Expr) -> VarBinding {
        VarBinding { origin, variable, ty: value.ty.clone(), value: BoundValue::Expr(value) }
    }
}

/// The value of a binding.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundValue {
    /// An expression: a call, a tuple field, an `R.match_cast`, or a plain value.
    Expr(Expr),
    /// An `if`: the value of the executed branch.
    If(Box<Branches>),
    /// A nested function. Its body can refer to itself and to the variables bound before it.
    Function(Arc<RelaxFunction>),
}

impl BoundValue {
    /// The expression that is evaluated at the binding: the value, or the condition of an `if`.
    pub fn computed(&self) -> Option<&Expr> {
        match self {
            BoundValue::Expr(value) => Some(value),
            BoundValue::If(branches) => Some(&branches.condition),
            BoundValue::Function(_) => None,
        }
    }

    /// The expression as in [`BoundValue::computed`], mutably.
    pub fn computed_mut(&mut self) -> Option<&mut Expr> {
        match self {
            BoundValue::Expr(value) => Some(value),
            BoundValue::If(branches) => Some(&mut branches.condition),
            BoundValue::Function(_) => None,
        }
    }

    /// The sequences inside the value: both branches, or the body of a nested function.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        let [first, second] = match self {
            BoundValue::Expr(_) => [None, None],
            BoundValue::If(branches) => [Some(&branches.then), Some(&branches.otherwise)],
            BoundValue::Function(function) => [Some(&function.body), None],
        };
        first.into_iter().chain(second)
    }

    /// The sequences as in [`BoundValue::sequences`], mutably.
    pub fn sequences_mut(&mut self) -> impl Iterator<Item = &mut Sequence> {
        let [first, second] = match self {
            BoundValue::Expr(_) => [None, None],
            BoundValue::If(branches) => {
                let Branches { then, otherwise, .. } = &mut **branches;
                [Some(then), Some(otherwise)]
            }
            BoundValue::Function(function) => [Some(&mut Arc::make_mut(function).body), None],
        };
        first.into_iter().chain(second)
    }
}

/// An `if` expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Branches {
    /// The condition, a scalar boolean.
    pub condition: Expr,
    /// The branch for a true condition.
    pub then: Sequence,
    /// The branch for a false condition.
    pub otherwise: Sequence,
}

impl<L> Item<L> {
    /// The name in its module.
    pub fn name(&self) -> Option<Name> {
        match self {
            Item::Relax(function) => Some(function.name),
            Item::Loops(function) => Some(function.name),
            Item::Text { name, .. } => *name,
        }
    }

    /// Whether it is a function that can be called only inside its module.
    pub fn is_private(&self) -> bool {
        match self {
            Item::Relax(function) => function.private,
            Item::Loops(function) => function.private,
            Item::Text { .. } => false,
        }
    }
}

impl<L> Module<L> {
    /// The Relax functions, in order.
    pub fn functions(&self) -> impl Iterator<Item = &RelaxFunction> {
        self.items.iter().filter_map(|item| match item {
            Item::Relax(function) => Some(&**function),
            _ => None,
        })
    }

    /// The prim_funcs, in order.
    pub fn prim_funcs(&self) -> impl Iterator<Item = &LoopFunction<L>> {
        self.items.iter().filter_map(|item| match item {
            Item::Loops(function) => Some(&**function),
            _ => None,
        })
    }

    /// The Relax functions, mutably.
    pub fn functions_mut(&mut self) -> impl Iterator<Item = &mut RelaxFunction> {
        self.items.iter_mut().filter_map(|item| match item {
            Item::Relax(function) => Some(Arc::make_mut(function)),
            _ => None,
        })
    }
}
