//! A module as passes take and give it: Relax functions in blocks, everything else as it is written.
//!
//! It differs from [`crate::function`], which is what a checked text does statement by statement: here every binding binds
//! one variable, no name of a function is bound twice (but by the branches of one `if`, which bind what the `if` gives), and
//! operands of calls are variables, constants and tuples of such (A-normal form, as in TVM).

use crate::expr::{Attr, Expr, Origin};
use crate::struct_info::StructInfo;
use rx_base::Name;
use std::sync::Arc;

/// A module; `L` is a function of the loop-level IR, which this crate does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Module<L> {
    /// The text in front of the class or the first function: imports, symbolic dims, the metadata section.
    pub prelude: Arc<str>,
    /// The name of its class; `None` of functions that stand in a file by themselves.
    pub class: Option<Name>,
    /// What it holds, in order.
    pub items: Vec<Item<L>>,
}

/// A part of a module.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<L> {
    /// A Relax function.
    Relax(Arc<RelaxFunction>),
    /// A function that a pass made.
    Loops {
        /// Its name in the module.
        name: Name,
        /// The function.
        func: Arc<L>,
    },
    /// What no pass has touched: a prim_func, the module's attributes, an external function. Lines without the indentation
    /// of the class, the last with its line break.
    Text {
        /// The name it binds.
        name: Option<Name>,
        /// Whether it is a function that only its module may call.
        private: bool,
        /// Its text.
        text: Arc<str>,
    },
}

/// A Relax function.
#[derive(Clone, Debug, PartialEq)]
pub struct RelaxFunction {
    /// Its name.
    pub name: Name,
    /// Whether only its module may call it.
    pub private: bool,
    /// Whether it is declared pure.
    pub pure: bool,
    /// What `R.func_attr` says, in order.
    pub attributes: Vec<(Arc<str>, Attr)>,
    /// Parameter names and types, in order.
    pub params: Vec<(Name, StructInfo)>,
    /// What it returns.
    pub ret: StructInfo,
    /// What it does.
    pub body: Sequence,
}

/// Blocks in order, and the value they lead to.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// The blocks; none is empty.
    pub blocks: Vec<Block>,
    /// The value: a variable, a constant or a tuple of such.
    pub result: Expr,
}

/// Bindings that stand together.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Of a dataflow block the variables that are seen behind it, in the order of their bindings; `None` of a plain block.
    pub outputs: Option<Vec<Name>>,
    /// The bindings, in order.
    pub bindings: Vec<VarBinding>,
}

/// One variable and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct VarBinding {
    /// The statement of the source it comes from.
    pub origin: Origin,
    /// The variable; `_` of a statement that is there for its effect.
    pub variable: Name,
    /// The type its users see.
    pub ty: StructInfo,
    /// Its value.
    pub value: BoundValue,
}

/// What a variable is bound to.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundValue {
    /// An expression: a call, a field of a tuple, a `R.match_cast`, or a value as it is.
    Expr(Expr),
    /// The value of the branch that is taken.
    If(Box<Branches>),
    /// A nested function; it sees the variables bound before it, and itself.
    Function(Arc<RelaxFunction>),
}

/// An `if`, which is a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Branches {
    /// One boolean.
    pub condition: Expr,
    /// Where it holds.
    pub then: Sequence,
    /// Where it does not.
    pub otherwise: Sequence,
}

impl<L> Item<L> {
    /// The name it has in its module.
    pub fn name(&self) -> Option<Name> {
        match self {
            Item::Relax(function) => Some(function.name),
            Item::Loops { name, .. } => Some(*name),
            Item::Text { name, .. } => *name,
        }
    }

    /// Whether it is a function that only its module may call. What passes make of loops is theirs alone.
    pub fn is_private(&self) -> bool {
        match self {
            Item::Relax(function) => function.private,
            Item::Loops { .. } => true,
            Item::Text { private, .. } => *private,
        }
    }
}

impl<L> Module<L> {
    /// Its Relax functions, in order.
    pub fn functions(&self) -> impl Iterator<Item = &RelaxFunction> {
        self.items.iter().filter_map(|item| match item {
            Item::Relax(function) => Some(&**function),
            _ => None,
        })
    }

    /// Its Relax functions, to be changed.
    pub fn functions_mut(&mut self) -> impl Iterator<Item = &mut RelaxFunction> {
        self.items.iter_mut().filter_map(|item| match item {
            Item::Relax(function) => Some(Arc::make_mut(function)),
            _ => None,
        })
    }
}
