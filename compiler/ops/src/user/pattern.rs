//! Type patterns of declared operators: types over dim variables, dtype variables and attributes.
//!
//! | pattern | matches |
//! |---|---|
//! | `R.Tensor(("m", "k * 2"), dtype="d")` | a tensor of two dimensions; `m` is bound, `k * 2` is compared |
//! | `R.Tensor(("*batch", "n"))` | a tensor of one dimension or more; several `*batch` are broadcast |
//! | `R.Tensor(ndim=2)`, `R.Tensor` | a tensor of this rank, any tensor |
//! | `R.Shape(("m", "n"))` | a shape |
//! | `R.Prim("int64", value="k")` | a scalar, whose value is a dim |
//! | `R.Tuple(A, B)`, `R.Tuple(A, ...)` | a tuple of these fields, of any number of `A` |
//! | `A if condition else B` | one of the two, selected by attributes |

use rx_base::{DType, Name};

/// The type pattern of an operand or result.
#[derive(Clone, Debug, PartialEq)]
pub enum TypePattern {
    /// Any type.
    Any,
    /// A string.
    String,
    /// A tensor.
    Tensor {
        /// Its shape.
        shape: ShapePattern,
        /// Its dtype.
        dtype: DtypePattern,
    },
    /// A shape.
    Shape(ShapePattern),
    /// A scalar.
    Prim {
        /// Its dtype.
        dtype: DtypePattern,
        /// Its value, if it is an integer.
        value: Option<DimPattern>,
    },
    /// A tuple of these fields.
    Tuple(Vec<TypePattern>),
    /// A tuple of any number of fields with the same pattern.
    Repeated(Box<TypePattern>),
    /// The type of the operand with this name.
    Like(Name),
    /// `then if condition else otherwise`.
    Choice(Condition, Box<TypePattern>, Box<TypePattern>),
}

/// A shape pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum ShapePattern {
    /// Any shape.
    Any,
    /// Any shape of this many dims.
    Rank(usize),
    /// These dims, of which one may match any number of dims.
    Dims(Vec<AxisPattern>),
}

/// A part of a shape pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum AxisPattern {
    /// One dim.
    One(DimPattern),
    /// `*batch`: any number of dims.
    Rest(Name),
}

/// An integer expression over dim variables and attributes.
#[derive(Clone, Debug, PartialEq)]
pub enum DimPattern {
    /// A constant.
    Constant(i64),
    /// A dim variable, or an integer attribute.
    Name(Name),
    /// `sizes[1]`: an element of an attribute of integers.
    Element(Name, usize),
    /// An infix operator or a binary function.
    Binary(DimOp, Box<DimPattern>, Box<DimPattern>),
    /// `then if condition else otherwise`.
    Choice(Box<Condition>, Box<DimPattern>, Box<DimPattern>),
}

/// A binary function of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `//`
    FloorDiv,
    /// `%`
    FloorMod,
    /// `min(a, b)`
    Min,
    /// `max(a, b)`
    Max,
    /// `ceildiv(a, b)`
    CeilDiv,
}

/// A dtype pattern.
#[derive(Clone, Debug, PartialEq)]
pub enum DtypePattern {
    /// Any dtype.
    Any,
    /// This dtype.
    Is(DType),
    /// A dtype variable, or an attribute that names a dtype.
    Name(Name),
    /// `"out_dtype or d"`: the attribute, or the variable if the attribute is `None`.
    Or(Name, Box<DtypePattern>),
}

/// A condition over attributes; in a constraint also over dims.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// A boolean attribute.
    Name(Name),
    /// `not a`.
    Not(Box<Condition>),
    /// `a and b`.
    All(Vec<Condition>),
    /// `a or b`.
    Either(Vec<Condition>),
    /// `a is None`, for an attribute or operand.
    IsNone(Name),
    /// `mode == "same"`.
    IsText(Name, String),
    /// `a op b` for integers.
    Compare(Relation, DimPattern, DimPattern),
}

/// A comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    AtLeast,
    /// `>`
    MoreThan,
}

impl TypePattern {
    /// Calls `visit` on each dim of the pattern, including both branches of choices.
    pub fn each_axis(&self, visit: &mut dyn FnMut(&AxisPattern)) {
        match self {
            TypePattern::Tensor { shape: ShapePattern::Dims(axes), .. }
            | TypePattern::Shape(ShapePattern::Dims(axes)) => axes.iter().for_each(visit),
            TypePattern::Prim { value: Some(value), .. } => visit(&AxisPattern::One(value.clone())),
            TypePattern::Tuple(fields) => fields.iter().for_each(|field| field.each_axis(visit)),
            TypePattern::Repeated(field) => field.each_axis(visit),
            TypePattern::Choice(_, then, otherwise) => {
                then.each_axis(visit);
                otherwise.each_axis(visit);
            }
            _ => {}
        }
    }

    /// Calls `visit` on each dtype of the pattern.
    pub fn each_dtype(&self, visit: &mut dyn FnMut(&DtypePattern)) {
        match self {
            TypePattern::Tensor { dtype, .. } | TypePattern::Prim { dtype, .. } => visit(dtype),
            TypePattern::Tuple(fields) => fields.iter().for_each(|field| field.each_dtype(visit)),
            TypePattern::Repeated(field) => field.each_dtype(visit),
            TypePattern::Choice(_, then, otherwise) => {
                then.each_dtype(visit);
                otherwise.each_dtype(visit);
            }
            _ => {}
        }
    }
}

impl DimPattern {
    /// Calls `visit` on each name in the expression.
    pub fn each_name(&self, visit: &mut dyn FnMut(Name)) {
        match self {
            DimPattern::Constant(_) => {}
            DimPattern::Name(name) | DimPattern::Element(name, _) => visit(*name),
            DimPattern::Binary(_, a, b) => {
                a.each_name(visit);
                b.each_name(visit);
            }
            DimPattern::Choice(condition, then, otherwise) => {
                condition.each_name(visit);
                then.each_name(visit);
                otherwise.each_name(visit);
            }
        }
    }
}

impl Condition {
    /// Calls `visit` on each name in the condition.
    pub fn each_name(&self, visit: &mut dyn FnMut(Name)) {
        match self {
            Condition::Name(name) | Condition::IsNone(name) | Condition::IsText(name, _) => visit(*name),
            Condition::Not(inner) => inner.each_name(visit),
            Condition::All(parts) | Condition::Either(parts) => parts.iter().for_each(|part| part.each_name(visit)),
            Condition::Compare(_, a, b) => {
                a.each_name(visit);
                b.each_name(visit);
            }
        }
    }
}
