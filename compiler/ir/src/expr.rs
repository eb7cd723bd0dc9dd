//! Typed Relax expressions, each with the place it was written at.

use crate::struct_info::StructInfo;
use rx_base::{DType, Dim, Name, Span};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Where a binding or loop statement comes from: survives printing, passes and lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// The top-level function.
    pub item: Name,
    /// The statement's index in the function, counted from its header, nested blocks in reading order.
    pub statement: u32,
}

/// An expression with its struct info and its place, in bytes of the segment it was written in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// What is known of its value.
    pub ty: StructInfo,
    /// Where it is written.
    pub span: Span,
}

/// The kinds of Relax expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// A local variable or parameter.
    Var(Name),
    /// A function of the module: `cls.f`.
    Global(Name),
    /// `R.ExternFunc("name")`, or the name a packed call gives.
    Extern(Name),
    /// A tensor constant: `R.const(1.0, "float32")`; of a list, one of its elements, where all are not asked for.
    Constant(Literal),
    /// A tensor constant of a list, `R.const([1, 2])`: its elements, row-major.
    Elements(Arc<[Literal]>),
    /// A tensor kept in the metadata section, by key and index; its data may be absent. In modules for passes, of
    /// [`crate::Constants`].
    Metadata {
        /// `ir.GenericConst`, `relax.expr.Constant`.
        key: Name,
        /// Index under the key.
        index: u32,
    },
    /// A scalar: a bare number, `R.prim_value(n)`, `T.float32(0.5)`, an expression over symbolic dims.
    Prim(PrimValue),
    /// `R.str("…")`, or a bare string.
    Str(Arc<str>),
    /// `R.dtype("float32")`.
    DType(DType),
    /// `R.shape([…])`, or a tuple of ints where a shape is wanted.
    Shape(Vec<Dim>),
    /// A tuple.
    Tuple(Vec<Expr>),
    /// `x[1]`.
    TupleGet(Box<Expr>, usize),
    /// A call.
    Call(Arc<Call>),
    /// `R.match_cast(value, type)`: the value, checked when the program runs to be of the expression's type, whose new
    /// symbols get their values from it.
    MatchCast(Box<Expr>),
    /// A value that is not evaluated, as it is written: `R.device(…)`, `T.…` of a kind that no dim has. In modules for
    /// passes only; in bodies it is an error part or opaque.
    Written(Arc<str>),
    /// What could not be understood; reported.
    Error,
}

/// A scalar's value.
#[derive(Clone, Debug)]
pub enum PrimValue {
    /// An integer, possibly symbolic.
    Int(Dim),
    /// A float.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// Computed at run time by an expression rx does not evaluate.
    Opaque,
}

/// The value of a scalar constant.
#[derive(Clone, Debug)]
pub enum Literal {
    /// An integer; values outside `i64` are kept as their nearest.
    Int(i64),
    /// A float; `nan` and infinities too.
    Float(f64),
    /// A boolean.
    Bool(bool),
}

impl Literal {
    /// The integer it is, a boolean as 0 or 1; `None` of a float.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Literal::Int(value) => Some(*value),
            Literal::Bool(value) => Some(i64::from(*value)),
            Literal::Float(_) => None,
        }
    }

    /// As a float; an integer rounded.
    pub fn as_float(&self) -> f64 {
        match self {
            Literal::Float(value) => *value,
            Literal::Int(value) => *value as f64,
            Literal::Bool(value) => f64::from(u8::from(*value)),
        }
    }
}

/// By kind and bits, as for [`PrimValue`] and [`Attr`]: `0.0` and `-0.0` differ, and a NaN is equal to itself.
impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        match (self, other) {
            (Literal::Int(a), Literal::Int(b)) => a == b,
            (Literal::Float(a), Literal::Float(b)) => a.to_bits() == b.to_bits(),
            (Literal::Bool(a), Literal::Bool(b)) => a == b,
            (Literal::Int(_) | Literal::Float(_) | Literal::Bool(_), _) => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Literal::Int(value) => value.hash(state),
            Literal::Float(value) => value.to_bits().hash(state),
            Literal::Bool(value) => value.hash(state),
        }
    }
}

impl PartialEq for PrimValue {
    fn eq(&self, other: &PrimValue) -> bool {
        match (self, other) {
            (PrimValue::Int(a), PrimValue::Int(b)) => a == b,
            (PrimValue::Float(a), PrimValue::Float(b)) => a.to_bits() == b.to_bits(),
            (PrimValue::Bool(a), PrimValue::Bool(b)) => a == b,
            (PrimValue::Opaque, PrimValue::Opaque) => true,
            (PrimValue::Int(_) | PrimValue::Float(_) | PrimValue::Bool(_) | PrimValue::Opaque, _) => false,
        }
    }
}

impl Eq for PrimValue {}

impl Hash for PrimValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            PrimValue::Int(value) => value.hash(state),
            PrimValue::Float(value) => value.to_bits().hash(state),
            PrimValue::Bool(value) => value.hash(state),
            PrimValue::Opaque => {}
        }
    }
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// An operator, by its name without `relax.`: `nn.conv2d`.
    Op(Name),
    /// A function of the module.
    Global(Name),
    /// A function value.
    Value(Box<Expr>),
}

/// A call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// What is called.
    pub callee: Callee,
    /// Of an operator one per parameter of its schema, in that order; of a function the arguments passed.
    pub arguments: Vec<Argument>,
}

impl Call {
    /// A call of a function.
    pub fn of_function(callee: Callee, arguments: Vec<Expr>) -> Call {
        Call { callee, arguments: arguments.into_iter().map(Argument::Operand).collect() }
    }

    /// The values it passes, in reading order.
    pub fn operands(&self) -> impl Iterator<Item = &Expr> {
        self.arguments.iter().flat_map(Argument::operands)
    }

    /// As [`Call::operands`], to change them.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.arguments.iter_mut().flat_map(|argument| match argument {
            Argument::Operand(operand) => std::slice::from_mut(operand),
            Argument::Operands(operands) => operands,
            Argument::Absent | Argument::Attr(_) | Argument::Types(_) => &mut [],
        })
    }
}

/// What a call passes for one parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// Nothing, and the parameter has no default value.
    Absent,
    /// A value.
    Operand(Expr),
    /// The values of a variadic parameter.
    Operands(Vec<Expr>),
    /// An attribute, given or defaulted.
    Attr(Attr),
    /// Struct infos: `out_ty=`, `ty_args=`.
    Types(Vec<StructInfo>),
}

impl Argument {
    /// The values it passes.
    pub fn operands(&self) -> &[Expr] {
        match self {
            Argument::Operand(operand) => std::slice::from_ref(operand),
            Argument::Operands(operands) => operands,
            Argument::Absent | Argument::Attr(_) | Argument::Types(_) => &[],
        }
    }

    /// The value, if it passes one for a parameter that is not variadic.
    pub fn as_operand(&self) -> Option<&Expr> {
        match self {
            Argument::Operand(operand) => Some(operand),
            _ => None,
        }
    }
}

/// An attribute's value.
#[derive(Clone, Debug)]
pub enum Attr {
    /// `None`.
    None,
    /// A boolean.
    Bool(bool),
    /// An integer, possibly symbolic.
    Int(Dim),
    /// A float.
    Float(f64),
    /// A string; dtypes too, as written.
    Str(Arc<str>),
    /// A list or tuple.
    List(Vec<Attr>),
    /// A dictionary with string keys.
    Dict(Vec<(Arc<str>, Attr)>),
    /// A value rx keeps as text: an index map, a captured Python name.
    Opaque(Arc<str>),
}

impl PartialEq for Attr {
    fn eq(&self, other: &Attr) -> bool {
        match (self, other) {
            (Attr::Float(a), Attr::Float(b)) => a.to_bits() == b.to_bits(),
            (Attr::Bool(a), Attr::Bool(b)) => a == b,
            (Attr::Int(a), Attr::Int(b)) => a == b,
            (Attr::Str(a), Attr::Str(b)) | (Attr::Opaque(a), Attr::Opaque(b)) => a == b,
            (Attr::List(a), Attr::List(b)) => a == b,
            (Attr::Dict(a), Attr::Dict(b)) => a == b,
            (Attr::None, Attr::None) => true,
            _ => false,
        }
    }
}

impl Eq for Attr {}

impl Hash for Attr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Attr::None => {}
            Attr::Bool(value) => value.hash(state),
            Attr::Int(value) => value.hash(state),
            Attr::Float(value) => value.to_bits().hash(state),
            Attr::Str(text) | Attr::Opaque(text) => text.hash(state),
            Attr::List(items) => items.hash(state),
            Attr::Dict(entries) => entries.hash(state),
        }
    }
}

impl Attr {
    /// The dictionary of these entries; of a key that stands twice the last value, as in Python.
    pub fn dict(entries: impl IntoIterator<Item = (Arc<str>, Attr)>) -> Attr {
        let mut all: Vec<(Arc<str>, Attr)> = Vec::new();
        let mut places: HashMap<Arc<str>, usize> = HashMap::new();
        for (key, value) in entries {
            match places.get(&key).and_then(|at| all.get_mut(*at)) {
                Some(entry) => entry.1 = value,
                None => {
                    places.insert(key.clone(), all.len());
                    all.push((key, value));
                }
            }
        }
        Attr::Dict(all)
    }

    /// The integer, if it is a constant one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Attr::Int(dim) => dim.as_constant(),
            _ => None,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attr::Str(text) => Some(text),
            _ => None,
        }
    }
}

/// As Python writes it: `None`, `True`, `[1, 1]`, `"NCHW"`.
impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::None => f.write_str("None"),
            Attr::Bool(value) => f.write_str(if *value { "True" } else { "False" }),
            Attr::Int(value) => value.fmt(f),
            Attr::Float(value) => write!(f, "{value:?}"),
            Attr::Str(text) => write!(f, "\"{text}\""),
            Attr::List(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Attr::Dict(entries) => {
                f.write_str("{")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}\"{key}\": {value}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
            Attr::Opaque(text) => f.write_str(text),
        }
    }
}
