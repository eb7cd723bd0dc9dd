//! What is known of the elements of a value before it runs: elements, ranges, and how they depend on parameters.
//!
//! Free of positions and compared by value, like types. What nothing is known of has no [`Values`] at all.

use crate::expr::Call;
use crate::struct_info::StructInfo;
use rx_base::{Dim, Name};
use std::sync::Arc;

/// The most elements that are kept one by one.
pub const MAX_ELEMENTS: usize = 4096;

/// The most operators a [`Term`] has.
pub const MAX_TERM: u32 = 64;

/// The most steps that are kept of a chain.
pub const MAX_STEPS: u32 = 8;

/// What is known of a value, if anything.
pub type Known = Option<Arc<Values>>;

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// A tensor's elements.
    Tensor(TensorValues),
    /// A tuple's fields.
    Tuple(Vec<Known>),
}

/// What is known of a tensor's elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TensorValues {
    /// Every one, row-major; at most [`MAX_ELEMENTS`].
    pub elements: Option<Elements>,
    /// None is smaller. Follows from the elements where they are known.
    pub low: Option<End>,
    /// None is larger. Follows from the elements where they are known.
    pub high: Option<End>,
    /// How they follow from the function's parameters.
    pub term: Option<Arc<Term>>,
    /// How they follow from a variable's elements at the same places.
    pub relation: Option<Arc<Relation>>,
    /// The variables they came through, the last one first.
    pub origin: Option<Arc<Step>>,
}

/// A tensor's elements. No float is a NaN.
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
    /// A bound of every element; of floats an integer, rounded outwards.
    pub value: Dim,
    /// What it rests on.
    pub basis: Basis,
}

/// What an end of a range rests on, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// No element lies beyond, and none need come near: what the dtype can hold, a rounded float.
    Loose,
    /// The program says that no element lies beyond; one may lie there.
    Stated,
    /// There is an element that has this value, unless there is no element.
    Attained,
}

/// Elements as a function of the parameters of the function around.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// Those of a parameter, or of a field of it.
    Param {
        /// The parameter.
        index: u32,
        /// From field to field of a tuple.
        path: Arc<[u32]>,
    },
    /// Those an operator makes.
    Call {
        /// The call: operands have their types and, where they are scalars or shapes, their values; no places.
        call: Arc<Call>,
        /// What is known of the operands, by parameter of the schema.
        operands: Vec<Known>,
        /// The type of the result.
        result: StructInfo,
        /// The field, of an operator that gives a tuple.
        field: Option<u32>,
        /// How many operators it has.
        size: u32,
    },
}

impl Term {
    /// How many operators it has.
    pub fn size(&self) -> u32 {
        match self {
            Term::Param { .. } => 0,
            Term::Call { size, .. } => *size,
        }
    }
}

/// How elements follow from those of a variable at the same places: `i + 64`, `i < 0`.
#[derive(Clone, Debug, PartialEq)]
pub enum Relation {
    /// They are the variable's plus an offset.
    Sum(Root, Dim),
    /// They are true or false, and either limits variables.
    Test(Vec<Limit>),
}

/// A variable, and the range it had when a relation to it was found: so another value of that name is seldom taken for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// Its name.
    pub variable: Name,
    /// No element is smaller.
    pub low: Option<End>,
    /// No element is larger.
    pub high: Option<End>,
}

/// The ranges of a variable's elements where a condition holds, and where it fails. A missing end is no limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The variable.
    pub of: Root,
    /// Low and high end where the condition holds.
    pub holds: (Option<Dim>, Option<Dim>),
    /// Low and high end where it fails.
    pub fails: (Option<Dim>, Option<Dim>),
}

/// A variable that values came through.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The variable.
    pub variable: Name,
    /// Where its values came from.
    pub from: Option<Arc<Step>>,
    /// How many steps there are.
    pub length: u32,
}

impl Values {
    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&TensorValues> {
        match self {
            Values::Tensor(tensor) => Some(tensor),
            Values::Tuple(_) => None,
        }
    }

    /// A field, if it is a tuple that has it.
    pub fn field(&self, at: usize) -> Known {
        match self {
            Values::Tuple(fields) => fields.get(at).cloned().flatten(),
            Values::Tensor(_) => None,
        }
    }

    /// These fields; nothing where nothing is known of any.
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
    /// Elements known one by one; nothing where they are too many.
    pub fn of(elements: Elements) -> Option<TensorValues> {
        let nan = matches!(&elements, Elements::Floats(values) if values.iter().any(|value| value.is_nan()));
        (elements.len() <= MAX_ELEMENTS && !nan)
            .then(|| TensorValues { elements: Some(elements), ..TensorValues::default() })
    }

    /// Elements between two ends.
    pub fn between(low: Option<End>, high: Option<End>) -> TensorValues {
        TensorValues { low, high, ..TensorValues::default() }
    }

    /// Whether anything is said, be it only where they come from.
    pub fn says_something(&self) -> bool {
        self.has_facts() || self.term.is_some() || self.relation.is_some()
    }

    /// Whether something is known that does not depend on parameters.
    pub fn has_facts(&self) -> bool {
        self.elements.is_some() || self.low.is_some() || self.high.is_some()
    }

    /// The smallest element, or a bound of it.
    pub fn low(&self) -> Option<End> {
        self.low.clone().or_else(|| self.elements.as_ref()?.extremes().map(|(low, _)| low))
    }

    /// The largest element, or a bound of it.
    pub fn high(&self) -> Option<End> {
        self.high.clone().or_else(|| self.elements.as_ref()?.extremes().map(|(_, high)| high))
    }
}

impl Elements {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Elements::Ints(values) => values.len(),
            Elements::Floats(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements at these places of the list; nothing where one is out of range.
    pub fn pick(&self, places: &[usize]) -> Option<Elements> {
        fn all<T: Copy>(values: &[T], places: &[usize]) -> Option<Arc<[T]>> {
            places.iter().map(|place| values.get(*place).copied()).collect()
        }
        Some(match self {
            Elements::Ints(values) => Elements::Ints(all(values, places)?),
            Elements::Floats(values) => Elements::Floats(all(values, places)?),
        })
    }

    /// The smallest and the largest.
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
    /// A bound that the program states.
    pub fn stated(value: impl Into<Dim>) -> End {
        End { value: value.into(), basis: Basis::Stated }
    }

    /// A value that is there.
    pub fn attained(value: impl Into<Dim>) -> End {
        End { value: value.into(), basis: Basis::Attained }
    }

    /// The end, resting on no more than `basis`.
    pub fn at_most(self, basis: Basis) -> End {
        End { basis: self.basis.min(basis), ..self }
    }

    /// An end that is a float, rounded outwards; nothing where no integer is near.
    pub fn of_float(value: f64, outwards: fn(f64) -> f64) -> Option<End> {
        let rounded = outwards(value);
        // Integers up to 2^53 are floats without loss.
        let basis = if rounded == value { Basis::Attained } else { Basis::Loose };
        (rounded.abs() <= 9_007_199_254_740_992.0).then(|| End { value: Dim::constant(rounded as i64), basis })
    }
}

/// What callers are told of a function's values: what it needs of its parameters' elements, and what it gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Accesses that depend on parameters.
    pub requirements: Vec<Requirement>,
    /// What is known of the result.
    pub result: Known,
}

/// An access by indices that depend on the parameters of the function it stands in.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The operator: `take`.
    pub operator: Name,
    /// The indices.
    pub indices: TensorValues,
    /// Their type.
    pub indices_ty: StructInfo,
    /// The type of what is indexed.
    pub data_ty: StructInfo,
    /// The axis.
    pub axis: usize,
    /// Its extent.
    pub extent: Dim,
    /// Whether negative indices count from the end.
    pub from_end: bool,
    /// The function the access stands in, if it is another than the one that has the requirement.
    pub function: Option<Name>,
    /// The variable that the access is bound to.
    pub variable: Option<Name>,
    /// Whether it stands in a branch, which may not be taken.
    pub conditional: bool,
    /// Whether it was warned of where it stands.
    pub reported: bool,
}

/// How many accesses by indices there are, by what is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSites {
    /// Certainly out of bounds.
    pub certain: u32,
    /// Neither certainly out of bounds nor proved; of opaque indices nothing is known.
    pub open: u32,
    /// Proved to be in bounds, or made so by the operator.
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
