//! Typed Relax expressions, each with its source position.

use crate::struct_info::StructInfo;
use rx_base::{DType, Dim, Name, Span};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The source statement of a binding or loop statement. It is preserved by printing, passes and lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// The top-level function.
    pub item: Name,
    /// The statement's index in the function, counted from its header, with nested blocks in source order.
    pub statement: u32,
}

/// An expression with its struct info and its position, in bytes of the segment that contains it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expr {
    /// The kind.
    pub kind: ExprKind,
    /// The struct info of its value.
    pub ty: StructInfo,
    /// The source position.
    pub span: Span,
}

/// The kinds of Relax expressions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExprKind {
    /// A local variable or parameter.
    Var(Name),
    /// A reference to a function of the module: `cls.f`.
    Global(Name),
    /// An external function: `R.ExternFunc("name")`, or the name in a packed call.
    Extern(Name),
    /// A tensor constant: `R.const(1.0, "float32")`. For a list of which not all elements are needed, one of the
    /// elements.
    Constant(Literal),
    /// A tensor constant from a list, `R.const([1, 2])`, with its elements in row-major order.
    Elements(Arc<[Literal]>),
    /// A tensor in the metadata section, by key and index; its data may be missing. In modules for passes, the data is
    /// in [`crate::Constants`].
    Metadata {
        /// The key: `ir.GenericConst` or `relax.expr.Constant`.
        key: Name,
        /// The index under the key.
        index: u32,
    },
    /// A scalar: a number, `R.prim_value(n)`, `T.float32(0.5)`, or an expression over symbolic dims.
    Prim(PrimValue),
    /// `R.str("…")`, or a string literal.
    Str(Arc<str>),
    /// `R.dtype("float32")`.
    DType(DType),
    /// `R.shape([…])`, or a tuple of integers in a position that requires a shape.
    Shape(Vec<Dim>),
    /// A tuple.
    Tuple(Vec<Expr>),
    /// A tuple field: `x[1]`.
    TupleGet(Box<Expr>, usize),
    /// A call.
    Call(Arc<Call>),
    /// `R.match_cast(value, type)`: the value, with a check at run time that it has the expression's type. New symbols
    /// in the type get their values from it.
    MatchCast(Box<Expr>),
    /// The source text of a value that rx does not evaluate: `R.device(…)`, or a `T.…` that is no dim. Occurs only in
    /// modules for passes; in function bodies such a value is an error part or opaque.
    Written(Arc<str>),
    /// An expression that could not be resolved; the error was reported.
    Error,
}

/// The value of a scalar.
#[derive(Clone, Debug)]
pub enum PrimValue {
    /// An integer, possibly symbolic.
    Int(Dim),
    /// A float.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// A value computed at run time by an expression that rx does not evaluate.
    Opaque,
}

/// The value of a scalar constant.
#[derive(Clone, Debug)]
pub enum Literal {
    /// An integer. Values outside `i64` are saturated.
    Int(i64),
    /// A float, including NaN and infinities.
    Float(f64),
    /// A boolean.
    Bool(bool),
}

impl Literal {
    /// The integer value, with booleans as 0 or 1; `None` for a float.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Literal::Int(value) => Some(*value),
            Literal::Bool(value) => Some(i64::from(*value)),
            Literal::Float(_) => None,
        }
    }

    /// The value as a float. Large integers are rounded.
    pub fn as_float(&self) -> f64 {
        match self {
            Literal::Float(value) => *value,
            Literal::Int(value) => *value as f64,
            Literal::Bool(value) => f64::from(u8::from(*value)),
        }
    }
}

/// Compares kinds and bits, as for [`PrimValue`] and [`Attr`]: `0.0` and `-0.0` differ, and a NaN equals itself.
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

/// The called function or operator.
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
    /// The called function or operator.
    pub callee: Callee,
    /// For an operator, one argument for each parameter of its schema, in that order. For a function, the arguments in
    /// call order.
    pub arguments: Vec<Argument>,
}

impl Call {
    /// Creates a call of a function.
    pub fn of_function(callee: Callee, arguments: Vec<Expr>) -> Call {
        Call { callee, arguments: arguments.into_iter().map(Argument::Operand).collect() }
    }

    /// The operands in all arguments, in source order.
    pub fn operands(&self) -> impl Iterator<Item = &Expr> {
        self.arguments.iter().flat_map(Argument::operands)
    }

    /// The operands as in [`Call::operands`], mutably.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.arguments.iter_mut().flat_map(|argument| match argument {
            Argument::Operand(operand) => std::slice::from_mut(operand),
            Argument::Operands(operands) => operands,
            Argument::Absent | Argument::Attr(_) | Argument::Types(_) => &mut [],
        })
    }
}

/// The argument for one parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    /// No argument, for a parameter without a default value.
    Absent,
    /// An operand.
    Operand(Expr),
    /// The operands of a variadic parameter.
    Operands(Vec<Expr>),
    /// An attribute, explicit or default.
    Attr(Attr),
    /// Struct infos: those of `out_ty=` or `ty_args=`.
    Types(Vec<StructInfo>),
}

impl Argument {
    /// The operands in this argument.
    pub fn operands(&self) -> &[Expr] {
        match self {
            Argument::Operand(operand) => std::slice::from_ref(operand),
            Argument::Operands(operands) => operands,
            Argument::Absent | Argument::Attr(_) | Argument::Types(_) => &[],
        }
    }

    /// The operand, if this is one of a parameter that is not variadic.
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
    /// A string. Dtypes are strings too, as written in the source.
    Str(Arc<str>),
    /// A list or tuple.
    List(Vec<Attr>),
    /// A dictionary with string keys.
    Dict(Vec<(Arc<str>, Attr)>),
    /// A value that rx stores as text: an index map, or a Python name from an outer scope.
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
    /// Creates a dictionary. If a key occurs twice, the last value wins, as in Python.
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

    /// The integer, if the value is a constant integer.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Attr::Int(dim) => dim.as_constant(),
            _ => None,
        }
    }

    /// The string, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attr::Str(text) => Some(text),
            _ => None,
        }
    }
}

/// Formats the value in Python syntax: `None`, `True`, `[1, 1]`, `"NCHW"`.
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
