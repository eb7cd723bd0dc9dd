//! Value analysis: derives facts about the elements of an operator's result (exact elements or a range) from facts
//! about its operands, before the program runs.
//!
//! A [`ValueRule`] is part of the operator's [`Traits`](crate::Traits), next to its struct-info rule. For example,
//! `take` with the constant indices `[0, 7]` on an axis of extent 5 is reported, because the elements of the indices
//! are known. Rules assume that floats are not NaN: a program does not intend to convert a NaN to an index.

mod check;
mod describe;
pub(crate) mod range;
pub(crate) mod relation;
mod term;

pub use check::{Access, Judgement, Witness, judge, part_of};
pub use describe::{describe, describe_range};
pub use term::{Context, evaluate, in_type};

use crate::arguments::{self, Scalar};
use crate::call::CallInfo;
use range::{dtype_ends, hull};
use rx_base::symbolic::Bounds;
use rx_base::{DType, Dim};
use rx_ir::values::{Basis, MAX_ELEMENTS};
use rx_ir::{Elements, End, ExprKind, Known, Literal, StructInfo, TensorValues, Values};
use std::sync::Arc;

/// A rule that returns the known facts about the values of a call's result. It is only applied to calls whose result
/// has a type.
pub type ValueRule = fn(&ValueCall<'_>) -> Option<Values>;

/// A call with the known facts about the values of its operands.
#[derive(Debug)]
pub struct ValueCall<'a> {
    /// The call.
    pub call: &'a CallInfo<'a>,
    /// The known facts about the operands, by index of the schema's parameter.
    pub operands: &'a [Known],
    /// The type of the result.
    pub result: &'a StructInfo,
}

/// A tensor or scalar operand, as a value rule reads it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operand {
    /// Its dtype, if known.
    pub(crate) dtype: Option<DType>,
    /// Its extents, if they are constants with a product of at most `MAX_ELEMENTS`.
    pub(crate) dims: Option<Vec<usize>>,
    /// Its elements in row-major order, if all are known.
    pub(crate) elements: Option<Elements>,
    /// A lower bound of all elements; the dtype's minimum if no better bound is known.
    pub(crate) low: Option<End>,
    /// An upper bound of all elements; the dtype's maximum if no better bound is known.
    pub(crate) high: Option<End>,
}

impl<'a> ValueCall<'a> {
    /// Returns the known facts about the operand passed for `param`.
    pub(crate) fn known(&self, param: &str) -> Option<&'a Values> {
        let at = self.call.schema.params.iter().position(|known| known.name == param)?;
        self.operands.get(at)?.as_deref()
    }

    /// Returns the operand passed for `param`: a tensor or a scalar.
    pub(crate) fn operand(&self, param: &'static str) -> Operand {
        let ty = self.call.ty(param);
        // Checks for a tensor first: reading a tensor as a scalar would build an error message only to drop it.
        if !matches!(ty, StructInfo::Tensor(_))
            && let Ok(Some(scalar)) = arguments::scalar(self.call, param)
        {
            return Operand::scalar(&scalar);
        }
        Operand::new(ty, self.known(param))
    }

    /// Returns the tensors of the tuple passed for `param`.
    pub(crate) fn tuple(&self, param: &str) -> Vec<Operand> {
        let known = self.known(param);
        match self.call.ty(param) {
            StructInfo::Tuple(fields) => fields
                .iter()
                .enumerate()
                .map(|(at, ty)| Operand::new(ty, known.and_then(|known| known.field(at)).as_deref()))
                .collect(),
            ty => vec![Operand::new(ty, known)],
        }
    }

    /// Returns the facts of a result each of whose elements is in one of two ranges: the hull of the ranges.
    pub(crate) fn either(
        &self,
        first: (Option<End>, Option<End>),
        second: (Option<End>, Option<End>),
    ) -> Option<Values> {
        let (low, high) = hull(first, second, self.call.bounds);
        let may = |end: Option<End>| end.map(|end| end.at_most(Basis::Stated));
        self.tensor(TensorValues::between(may(low), may(high)))
    }

    /// Returns the extents of the result, if they are constants with a small product.
    pub(crate) fn dims(&self) -> Option<Vec<usize>> {
        constant_dims(self.result)
    }

    /// Returns the dtype of the result.
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.result.as_tensor()?.dtype
    }

    /// Returns the facts of the result for these elements and ends, without those that the result's dtype cannot hold.
    pub(crate) fn tensor(&self, values: TensorValues) -> Option<Values> {
        range::held(values, self.dtype()).map(Values::Tensor)
    }

    /// Returns the facts of a result that has the same value in every position.
    pub(crate) fn filled(&self, value: &Operand) -> Option<Values> {
        if let (Some(elements), Some(dims)) = (&value.elements, self.dims()) {
            let count = dims.iter().product();
            let places = vec![0; count];
            return self
                .tensor(range::cast_elements(&elements.pick(&places)?, self.dtype()?).and_then(TensorValues::of)?);
        }
        self.tensor(TensorValues::between(value.low.clone(), value.high.clone()))
    }

    /// Returns the facts of a result that rearranges the elements of `operand`. Set `some` if the result may omit
    /// elements: then no end of the range is known to be attained. `places`, if known, gives the row-major position in
    /// the operand for each element of the result.
    pub(crate) fn moved(&self, operand: &Operand, some: bool, places: Option<Vec<usize>>) -> Option<Values> {
        self.tensor(operand.moved(some, places)?)
    }
}

impl Operand {
    /// Creates a tensor operand of this type with these facts.
    pub(crate) fn new(ty: &StructInfo, known: Option<&Values>) -> Operand {
        let values = known.and_then(Values::as_tensor);
        let dtype = ty.as_tensor().and_then(|tensor| tensor.dtype);
        let (low, high) = dtype.map_or((None, None), dtype_ends);
        Operand {
            dtype,
            dims: constant_dims(ty),
            elements: values.and_then(|values| values.elements.clone()),
            low: values.and_then(TensorValues::low).or(low),
            high: values.and_then(TensorValues::high).or(high),
        }
    }

    fn scalar(scalar: &Scalar) -> Operand {
        let one = |elements: Elements| {
            let (low, high) = elements.extremes().unzip();
            Operand { dtype: None, dims: Some(Vec::new()), elements: Some(elements), low, high }
        };
        match scalar {
            Scalar::Int(dim) if dim.is_error() => Operand::default(),
            Scalar::Int(dim) => match dim.as_constant() {
                Some(value) => one(Elements::Ints([value].into())),
                None => Operand {
                    dims: Some(Vec::new()),
                    low: Some(End::attained(dim.clone())),
                    high: Some(End::attained(dim.clone())),
                    ..Operand::default()
                },
            },
            Scalar::Float(value) if value.is_nan() => Operand::default(),
            Scalar::Float(value) => one(Elements::Floats([*value].into())),
            Scalar::Unknown(dtype) => {
                let (low, high) = dtype.map_or((None, None), dtype_ends);
                Operand { dtype: *dtype, dims: Some(Vec::new()), elements: None, low, high }
            }
        }
    }

    /// Whether more is known than the limits of the dtype.
    pub(crate) fn is_known(&self) -> bool {
        self.elements.is_some() || range::tell_more(&self.low, &self.high, self.dtype)
    }

    /// Returns the value that all elements share, if the lower and upper bound are equal.
    pub(crate) fn single(&self) -> Option<&Dim> {
        match (&self.low, &self.high) {
            (Some(low), Some(high)) if low.value == high.value && !low.value.is_error() => Some(&low.value),
            _ => None,
        }
    }

    /// Returns the facts for a rearrangement or a subset of the elements; see [`ValueCall::moved`].
    pub(crate) fn moved(&self, some: bool, places: Option<Vec<usize>>) -> Option<TensorValues> {
        if let (Some(elements), Some(places)) = (&self.elements, places) {
            return TensorValues::of(elements.pick(&places)?);
        }
        let basis = if some && self.single().is_none() { Basis::Stated } else { Basis::Attained };
        let end = |end: &Option<End>| end.clone().map(|end| end.at_most(basis));
        self.is_known().then(|| TensorValues::between(end(&self.low), end(&self.high)))
    }
}

/// Returns the extents of a tensor if they are constants with a product of at most [`MAX_ELEMENTS`].
pub(crate) fn constant_dims(ty: &StructInfo) -> Option<Vec<usize>> {
    let dims = ty.as_tensor()?.shape.dims()?;
    let mut count = 1usize;
    let mut result = Vec::with_capacity(dims.len());
    for dim in dims {
        let extent = usize::try_from(dim.as_constant()?).ok()?;
        count = count.checked_mul(extent).filter(|count| *count <= MAX_ELEMENTS)?;
        result.push(extent);
    }
    Some(result)
}

/// Returns, for each index of a tensor of extents `to` in row-major order, the row-major position in a tensor of
/// extents `from`. The function `source` maps an index of `to` to an index of `from`. For example, a transpose of
/// `[2, 3]` to `[3, 2]` gives `[0, 3, 1, 4, 2, 5]`.
pub(crate) fn places(
    to: &[usize],
    from: &[usize],
    mut source: impl FnMut(&[usize]) -> Option<Vec<usize>>,
) -> Option<Vec<usize>> {
    let count: usize = to.iter().product();
    let mut at = vec![0; to.len()];
    let mut result = Vec::with_capacity(count);
    for _ in 0..count {
        let place = source(&at)?;
        let linear =
            |linear: usize, (place, extent): (&usize, &usize)| (place < extent).then(|| linear * extent + place);
        result.push(place.iter().zip(from).try_fold(0, linear)?);
        for (index, extent) in at.iter_mut().zip(to).rev() {
            *index += 1;
            if *index < *extent {
                break;
            }
            *index = 0;
        }
    }
    Some(result)
}

/// Returns, for each element of a result of extents `to`, the row-major position in a tensor of extents `from` that is
/// broadcast to it.
pub(crate) fn broadcast_places(to: &[usize], from: &[usize]) -> Option<Vec<usize>> {
    let lead = to.len().checked_sub(from.len())?;
    places(to, from, |at| {
        let source = at.iter().skip(lead).zip(from).map(|(at, extent)| if *extent == 1 { 0 } else { *at });
        Some(source.collect())
    })
}

/// Returns the facts about a constant that is written in the program's text.
pub fn of_constant(kind: &ExprKind, ty: &StructInfo) -> Known {
    let dtype = ty.as_tensor()?.dtype?;
    let literals = match kind {
        ExprKind::Constant(literal) if constant_dims(ty)?.is_empty() => std::slice::from_ref(literal),
        ExprKind::Elements(literals) => literals,
        _ => return None,
    };
    let elements = match literals.iter().all(|literal| matches!(literal, Literal::Int(_) | Literal::Bool(_))) {
        true => Elements::Ints(literals.iter().map(int_literal).collect()),
        false => Elements::Floats(literals.iter().map(float_literal).collect()),
    };
    of_elements(elements, dtype)
}

/// Returns the facts about a tensor with these elements: each element, or only the range if there are more than
/// `MAX_ELEMENTS`.
pub fn of_elements(elements: Elements, dtype: DType) -> Known {
    let elements = range::cast_elements(&elements, dtype)?;
    let (low, high) = elements.extremes().unzip();
    TensorValues::of(elements).unwrap_or_else(|| TensorValues::between(low, high)).into()
}

fn int_literal(literal: &Literal) -> i64 {
    match literal {
        Literal::Int(value) => *value,
        Literal::Bool(value) => i64::from(*value),
        Literal::Float(value) => *value as i64,
    }
}

fn float_literal(literal: &Literal) -> f64 {
    match literal {
        Literal::Float(value) => *value,
        other => int_literal(other) as f64,
    }
}

/// Infers the facts about a call's result: by the operator's rule, as a relation to a variable, and as a term over the
/// function's parameters.
pub fn infer(call: &CallInfo<'_>, operands: &[Known], result: &StructInfo) -> Known {
    let traits = &call.schema.traits;
    let rule = traits.values?;
    let call_of_values = ValueCall { call, operands, result };
    let facts = rule(&call_of_values);
    let tensor = facts.as_ref().and_then(Values::as_tensor);
    let is_held = tensor.is_some_and(|tensor| tensor.low().is_some() && tensor.high().is_some());
    let facts = match relation::of_call(&call_of_values, is_held) {
        Some(relation) => {
            let tensor = tensor.cloned().unwrap_or_default();
            Some(Values::Tensor(TensorValues { relation: Some(Arc::new(relation)), ..tensor }))
        }
        None => facts,
    };
    term::with_terms(facts, call, operands, result)
}

/// Merges the facts about two values into the facts that hold for both, for results of an `if`.
pub fn join(a: &Known, b: &Known, bounds: &Bounds) -> Known {
    match (a.as_deref()?, b.as_deref()?) {
        (a, b) if a == b => Some(Arc::new(a.clone())),
        (Values::Tuple(a), Values::Tuple(b)) if a.len() == b.len() => {
            Values::tuple(a.iter().zip(b).map(|(a, b)| join(a, b, bounds)).collect())
        }
        (Values::Tensor(a), Values::Tensor(b)) => {
            let elements = a.elements.clone().filter(|elements| Some(elements) == b.elements.as_ref());
            if let Some(elements) = elements {
                return TensorValues::of(elements)?.into();
            }
            let (low, high) = range::hull((a.low(), a.high()), (b.low(), b.high()), bounds);
            let may = |end: Option<End>| end.map(|end| end.at_most(Basis::Stated));
            TensorValues::between(may(low), may(high)).into()
        }
        _ => None,
    }
}

/// Whether the operator has a value rule. If not, the facts about its operands need not be computed.
pub fn follows(schema: &crate::Schema) -> bool {
    schema.traits.values.is_some()
}
