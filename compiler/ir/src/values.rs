//! Value analysis: statically known elements and ranges of tensors, and their dependence on the function's parameters.
//!
//! The data is position-free and compared by value, like types. A value about which nothing is known has no [`Values`].

use crate::expr::Call;
use crate::struct_info::StructInfo;
use rx_base::{Dim, Name};
use std::sync::Arc;

/// The largest number of elements of a tensor whose elements are stored.
pub const MAX_ELEMENTS: usize = 4096;

/// The largest number of operators in a [`Term`].
pub const MAX_TERM: u32 = 64;

/// The largest number of steps that are stored in a chain of [`Step`]s.
pub const MAX_STEPS: u32 = 8;

/// The known facts about a value; `None` if there are none.
pub type Known = Option<Arc<Values>>;

/// The known facts about a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// A tensor with facts about its elements.
    Tensor(TensorValues),
    /// A tuple with facts about its fields.
    Tuple(Vec<Known>),
}

/// The known facts about a tensor's elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorValues {
    /// All elements, row-major; at most [`MAX_ELEMENTS`].
    pub elements: Option<Elements>,
    /// A lower bound of all elements, if known. Not stored if it follows from `elements`.
    pub low: Option<End>,
    /// An upper bound of all elements, if known. Not stored if it follows from `elements`.
    pub high: Option<End>,
    /// The elements as a function of the enclosing function's parameters.
    pub term: Option<Arc<Term>>,
    /// The elements as a function of a variable's elements at the same positions.
    pub relation: Option<Arc<Relation>>,
    /// The variables through which the values were passed, last first.
    pub origin: Option<Arc<Step>>,
}

/// The elements of a tensor. No float is NaN.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Integers and booleans.
    Ints(Arc<[i64]>),
    /// Floats.
    Floats(Arc<[f64]>),
}

/// An end of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The bound of every element. For floats, an integer rounded outwards.
    pub value: Dim,
    /// The strength of the bound.
    pub basis: Basis,
}

/// The strength of an end of a range, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// No element is beyond it, and none need be near it. For example, the limit of the dtype, or a rounded float.
    Loose,
    /// The program states that no element is beyond it. An element may have this value.
    Stated,
    /// Some element has this value, unless there is no element.
    Attained,
}

/// Elements as a function of the parameters of the enclosing function.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// The elements of a parameter, or of a field of one.
    Param {
        /// The parameter's index.
        index: u32,
        /// The field indices in nested tuples, outermost first.
        path: Arc<[u32]>,
    },
    /// The result of an operator.
    Call {
        /// The call. Its operands have types and, if they are scalars or shapes, values, but no positions.
        call: Arc<Call>,
        /// The known facts about the operands, by parameter of the schema.
        operands: Vec<Known>,
        /// The type of the result.
        result: StructInfo,
        /// The field, if the operator's result is a tuple.
        field: Option<u32>,
        /// The number of operators in the term.
        size: u32,
    },
}

impl Term {
    /// The number of operators in the term.
    pub fn size(&self) -> u32 {
        match self {
            Term::Param { .. } => 0,
            Term::Call { size, .. } => *size,
        }
    }
}

/// The relation of elements to those of a variable at the same positions: `i + 64`, `i < 0`.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// The elements are the variable's elements plus an offset.
    Sum(Root, Dim),
    /// The elements are booleans. The ranges of variables are limited where they are true, and where they are false.
    Test(Vec<Limit>),
}

/// A variable with its range when a relation to it was found. If the name was bound to another value since, the ranges
/// usually differ, and the relation is not applied to the new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// Its name.
    pub variable: Name,
    /// A lower bound of its elements.
    pub low: Option<End>,
    /// An upper bound of its elements.
    pub high: Option<End>,
}

/// The ranges of a variable's elements if a condition holds, and if it fails. `None` means unbounded.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The variable.
    pub of: Root,
    /// The lower and upper end if the condition holds.
    pub holds: (Option<Dim>, Option<Dim>),
    /// The lower and upper end if the condition fails.
    pub fails: (Option<Dim>, Option<Dim>),
}

/// A variable through which values were passed.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The variable.
    pub variable: Name,
    /// The previous step: the variable from which this one got its values.
    pub from: Option<Arc<Step>>,
    /// The number of steps in the chain.
    pub length: u32,
}

impl Values {
    /// The tensor, if the value is one.
    pub fn as_tensor(&self) -> Option<&TensorValues> {
        match self {
            Values::Tensor(tensor) => Some(tensor),
            Values::Tuple(_) => None,
        }
    }

    /// The facts about a field, if the value is a tuple that has it.
    pub fn field(&self, at: usize) -> Known {
        match self {
            Values::Tuple(fields) => fields.get(at).cloned().flatten(),
            Values::Tensor(_) => None,
        }
    }

    /// Creates a tuple of these fields; `None` if nothing is known about any of them.
    pub fn tuple(fields: Vec<Known>) -> Known {
        fields.iter().any(Option::is_some).then(|| Arc::new(Values::Tuple(fields)))
    }
}

impl From<TensorValues> for Known {
    fn from(values: TensorValues) -> Known {
        values.says_something().then(|| Arc::new(Values::Tensor(values)))
    }
}

impl TensorValues {
    /// Creates facts from known elements; `None` if there are too many or one is NaN.
    pub fn of(elements: Elements) -> Option<TensorValues> {
        let nan = matches!(&elements, Elements::Floats(values) if values.iter().any(|value| value.is_nan()));
        (elements.len() <= MAX_ELEMENTS && !nan)
            .then(|| TensorValues { elements: Some(elements), ..TensorValues::default() })
    }

    /// Creates facts from the ends of a range.
    pub fn between(low: Option<End>, high: Option<End>) -> TensorValues {
        TensorValues { low, high, ..TensorValues::default() }
    }

    /// Whether anything is known, even if only a term or a relation.
    pub fn says_something(&self) -> bool {
        self.has_facts() || self.term.is_some() || self.relation.is_some()
    }

    /// Whether a fact is known that does not depend on parameters.
    pub fn has_facts(&self) -> bool {
        self.elements.is_some() || self.low.is_some() || self.high.is_some()
    }

    /// The smallest element, or a lower bound.
    pub fn low(&self) -> Option<End> {
        self.low.clone().or_else(|| self.elements.as_ref()?.extremes().map(|(low, _)| low))
    }

    /// The largest element, or an upper bound.
    pub fn high(&self) -> Option<End> {
        self.high.clone().or_else(|| self.elements.as_ref()?.extremes().map(|(_, high)| high))
    }
}

impl Elements {
    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Elements::Ints(values) => values.len(),
            Elements::Floats(values) => values.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the elements at these indices; `None` if an index is out of range.
    pub fn pick(&self, places: &[usize]) -> Option<Elements> {
        fn all<T: Copy>(values: &[T], places: &[usize]) -> Option<Arc<[T]>> {
            places.iter().map(|place| values.get(*place).copied()).collect()
        }
        Some(match self {
            Elements::Ints(values) => Elements::Ints(all(values, places)?),
            Elements::Floats(values) => Elements::Floats(all(values, places)?),
        })
    }

    /// The smallest and the largest element.
    pub fn extremes(&self) -> Option<(End, End)> {
        match self {
            Elements::Ints(values) => {
                let end = |value: &i64| End { value: Dim::constant(*value), basis: Basis::Attained };
                Some((end(values.iter().min()?), end(values.iter().max()?)))
            }
            Elements::Floats(values) => {
                let low = values.iter().copied().reduce(f64::min)?;
                let high = values.iter().copied().reduce(f64::max)?;
                Some((End::of_float(low, f64::floor)?, End::of_float(high, f64::ceil)?))
            }
        }
    }
}

impl End {
    /// Creates a bound that the program states.
    pub fn stated(value: impl Into<Dim>) -> End {
        End { value: value.into(), basis: Basis::Stated }
    }

    /// Creates a bound that some element attains.
    pub fn attained(value: impl Into<Dim>) -> End {
        End { value: value.into(), basis: Basis::Attained }
    }

    /// Weakens the end to at most the strength `basis`.
    pub fn at_most(self, basis: Basis) -> End {
        End { basis: self.basis.min(basis), ..self }
    }

    /// Creates an end from a float, rounded outwards to an integer; `None` beyond 2^53.
    pub fn of_float(value: f64, outwards: fn(f64) -> f64) -> Option<End> {
        let rounded = outwards(value);
        // Integers up to 2^53 are exact as floats.
        let basis = if rounded == value { Basis::Attained } else { Basis::Loose };
        (rounded.abs() <= 9_007_199_254_740_992.0).then(|| End { value: Dim::constant(rounded as i64), basis })
    }
}

/// The summary of a function for its callers: its requirements on the elements of its parameters, and the facts about
/// its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Indexed accesses that depend on parameters.
    pub requirements: Vec<Requirement>,
    /// The known facts about the result.
    pub result: Known,
}

/// An access by indices that depend on the parameters of the enclosing function.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The operator, for example `take`.
    pub operator: Name,
    /// The indices.
    pub indices: TensorValues,
    /// The type of the indices.
    pub indices_ty: StructInfo,
    /// The type of the indexed tensor.
    pub data_ty: StructInfo,
    /// The indexed axis.
    pub axis: usize,
    /// The extent of the axis.
    pub extent: Dim,
    /// Whether negative indices count from the end.
    pub from_end: bool,
    /// The function that contains the access, if it is not the function with this requirement but one that it calls.
    pub function: Option<Name>,
    /// The variable to which the access is bound.
    pub variable: Option<Name>,
    /// Whether the access is in a branch, which may not be executed.
    pub conditional: bool,
    /// Whether a diagnostic at the access itself was reported.
    pub reported: bool,
}

/// The number of indexed accesses, by the result of the bounds analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSites {
    /// Accesses that are certainly out of bounds.
    pub certain: u32,
    /// Accesses that are neither proved to be in bounds nor certainly out of bounds, for example those with unknown
    /// indices.
    pub open: u32,
    /// Accesses that are proved to be in bounds, or that the operator clamps.
    pub proved: u32,
}

impl std::ops::SubAssign for IndexSites {
    fn sub_assign(&mut self, other: IndexSites) {
        self.certain -= other.certain;
        self.open -= other.open;
        self.proved -= other.proved;
    }
}

impl std::ops::AddAssign for IndexSites {
    fn add_assign(&mut self, other: IndexSites) {
        self.certain += other.certain;
        self.open += other.open;
        self.proved += other.proved;
    }
}
