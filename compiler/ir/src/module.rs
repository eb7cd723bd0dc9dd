//! A module as passes take and give it: Relax functions in blocks, everything else as it is written.
//!
//! It differs from [`crate::function`], which is what a checked text does statement by statement: here every binding binds
//! one variable, no name of a function is bound twice (but by the branches of one `if`, which bind what the `if` gives), and
//! operands of calls are variables, constants and tuples of such (A-normal form, as in TVM).

use crate::constants::Constants;
use crate::expr::{Attr, Expr, Origin};
use crate::struct_info::StructInfo;
use rx_base::Name;
use std::sync::Arc;

/// A module; `L` is a function of the loop-level IR, which this crate does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Module<L> {
    /// The text in front of the class or the first function: imports, symbolic dims.
    pub prelude: Arc<str>,
    /// The constants that its functions name: the metadata section, and what passes have made.
    pub constants: Constants,
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
    /// A prim_func.
    Loops(Arc<LoopFunction<L>>),
    /// What no pass looks into: the module's attributes, an external function. Lines without the indentation of the class,
    /// the last with its line break.
    Text {
        /// The name it binds.
        name: Option<Name>,
        /// Its text.
        text: Arc<str>,
    },
}

/// A prim_func of a module: one that is written, or one that a pass made.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopFunction<L> {
    /// Its name in the module.
    pub name: Name,
    /// Whether only its module may call it.
    pub private: bool,
    /// What `T.func_attr` says, in order.
    pub attributes: Vec<(Arc<str>, Attr)>,
    /// What it does.
    pub body: LoopBody<L>,
}

/// What a prim_func does.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopBody<L> {
    /// As it is written, for it says more than the loop-level IR knows (regions, annotations): lines without the indentation
    /// of the class, in two parts.
    Written {
        /// What stands before the dictionary of its `T.func_attr`; without one, its decorators and header, with the line
        /// break.
        before: Arc<str>,
        /// What stands behind the dictionary; without one, the statements.
        after: Arc<str>,
        /// The same as loops; `None` where it holds what the loop-level IR does not have.
        loops: Option<Arc<L>>,
    },
    /// As loops.
    Made(Arc<L>),
}

impl<L> LoopFunction<L> {
    /// What it does, as loops; `None` where it holds what the loop-level IR does not have.
    pub fn loops(&self) -> Option<&Arc<L>> {
        match &self.body {
            LoopBody::Written { loops, .. } => loops.as_ref(),
            LoopBody::Made(loops) => Some(loops),
        }
    }

    /// What its `T.func_attr` says of `key`.
    pub fn attribute(&self, key: &str) -> Option<&Attr> {
        self.attributes.iter().rfind(|(own, _)| &**own == key).map(|(_, value)| value)
    }

    /// Gives an attribute a value: in its place where it has one, else in the order of the keys, as TVM prints them.
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

impl RelaxFunction {
    /// The value of `key` in its `R.func_attr`.
    pub fn attribute(&self, key: &str) -> Option<&Attr> {
        self.attributes.iter().find(|(own, _)| &**own == key).map(|(_, value)| value)
    }

    /// Whether its `R.func_attr` says that `key` holds: `True`, or an integer other than 0.
    pub fn is_set(&self, key: &str) -> bool {
        let is_true = |attr: &Attr| *attr == Attr::Bool(true) || attr.as_int().is_some_and(|value| value != 0);
        self.attribute(key).is_some_and(is_true)
    }
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

impl VarBinding {
    /// A variable that has the type of its value.
    pub fn new(origin: Origin, variable: Name, value: Expr) -> VarBinding {
        VarBinding { origin, variable, ty: value.ty.clone(), value: BoundValue::Expr(value) }
    }
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

impl BoundValue {
    /// The expression that is evaluated at the binding: the value, or the condition of an `if`.
    pub fn computed(&self) -> Option<&Expr> {
        match self {
            BoundValue::Expr(value) => Some(value),
            BoundValue::If(branches) => Some(&branches.condition),
            BoundValue::Function(_) => None,
        }
    }

    /// As [`BoundValue::computed`], to change it.
    pub fn computed_mut(&mut self) -> Option<&mut Expr> {
        match self {
            BoundValue::Expr(value) => Some(value),
            BoundValue::If(branches) => Some(&mut branches.condition),
            BoundValue::Function(_) => None,
        }
    }

    /// The sequences inside: both branches, or the body of a nested function.
    pub fn sequences(&self) -> impl Iterator<Item = &Sequence> {
        let [first, second] = match self {
            BoundValue::Expr(_) => [None, None],
            BoundValue::If(branches) => [Some(&branches.then), Some(&branches.otherwise)],
            BoundValue::Function(function) => [Some(&function.body), None],
        };
        first.into_iter().chain(second)
    }

    /// As [`BoundValue::sequences`], to change them.
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
            Item::Loops(function) => Some(function.name),
            Item::Text { name, .. } => *name,
        }
    }

    /// Whether it is a function that only its module may call.
    pub fn is_private(&self) -> bool {
        match self {
            Item::Relax(function) => function.private,
            Item::Loops(function) => function.private,
            Item::Text { .. } => false,
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

    /// Its prim_funcs, in order.
    pub fn prim_funcs(&self) -> impl Iterator<Item = &LoopFunction<L>> {
        self.items.iter().filter_map(|item| match item {
            Item::Loops(function) => Some(&**function),
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
