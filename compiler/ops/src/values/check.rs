//! Bounds checks of indices: compares the known range of indices with the extent of the indexed axis. For example,
//! indices in `[0, n]` for an axis of extent `n` may be out of bounds, and the index 7 for an extent of 5 always is.

use super::Operand;
use crate::call::CallInfo;
use crate::traits::{Part, Site};
use rx_base::Dim;
use rx_base::symbolic::prove::at_least;
use rx_base::symbolic::{Answer, Atom, Bounds};
use rx_ir::values::Basis;
use rx_ir::{Elements, End, Known, StructInfo, TensorValues, Values};

/// Indices along one axis.
#[derive(Clone, Debug)]
pub struct Access<'a> {
    /// The known facts about the indices.
    pub indices: &'a TensorValues,
    /// The type of the indices.
    pub ty: &'a StructInfo,
    /// The extent of the axis.
    pub extent: &'a Dim,
    /// Whether an index from `-extent` to -1 counts from the end.
    pub from_end: bool,
}

/// The result of checking an access.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// All indices are in bounds.
    Proved,
    /// Unknown, and nothing suggests an error.
    Open,
    /// The program states that indices may reach this end, which is out of bounds for at least some values of the
    /// symbols.
    Possible(End),
    /// Some index is out of bounds for all values of the symbols.
    Certain(Witness),
}

/// An example of an index that is out of bounds.
#[derive(Clone, Debug, PartialEq)]
pub enum Witness {
    /// Any index, because the axis is empty.
    EmptyAxis,
    /// A known element of the indices.
    Element {
        /// Its value.
        value: i64,
        /// The row-major position of the first such element.
        first: usize,
        /// The number of elements out of bounds.
        wrong: usize,
        /// The total number of elements.
        count: usize,
    },
    /// A value that some index has, or that bounds all indices on the out-of-bounds side.
    Value(Dim),
}

/// Returns the known facts and the type of the part of the indices that applies to a site's axis.
pub fn part_of(call: &CallInfo<'_>, known: &Known, site: &Site) -> (TensorValues, StructInfo) {
    let ty = call.ty(site.indices);
    let values = known.as_deref();
    match site.part {
        Part::Whole => match ty {
            StructInfo::Prim(_) => (scalar_values(call, site.indices), ty.clone()),
            _ => (tensor_values(values), ty.clone()),
        },
        Part::Element(at) => match ty {
            StructInfo::Tuple(fields) => {
                let field = values.and_then(|values| values.field(at));
                (tensor_values(field.as_deref()), fields.get(at).cloned().unwrap_or(StructInfo::Error))
            }
            _ => (tensor_values(values), ty.clone()),
        },
        Part::Column(at) => column(tensor_values(values), ty, at),
    }
}

fn tensor_values(values: Option<&Values>) -> TensorValues {
    values.and_then(Values::as_tensor).cloned().unwrap_or_default()
}

fn scalar_values(call: &CallInfo<'_>, param: &'static str) -> TensorValues {
    match crate::arguments::scalar(call, param) {
        Ok(Some(scalar)) => {
            let operand = Operand::scalar(&scalar);
            // The range of a scalar symbol is the symbol itself, which is no evidence about its size.
            let loose = |end: Option<End>| end.map(|end| end.at_most(Basis::Loose));
            TensorValues {
                elements: operand.elements,
                low: loose(operand.low),
                high: loose(operand.high),
                ..TensorValues::default()
            }
        }
        _ => TensorValues::default(),
    }
}

/// Returns the facts of component `at` of each index tuple, and the type without the last axis.
fn column(values: TensorValues, ty: &StructInfo, at: usize) -> (TensorValues, StructInfo) {
    let Some(tensor) = ty.as_tensor() else { return (TensorValues::default(), ty.clone()) };
    let Some((last, lead)) = tensor.shape.dims().and_then(<[Dim]>::split_last) else {
        return (TensorValues::default(), ty.clone());
    };
    let lead = StructInfo::tensor(lead.to_vec(), tensor.dtype);
    let width = last.as_constant().and_then(|width| usize::try_from(width).ok()).unwrap_or(0);
    if let (Some(elements), true) = (&values.elements, at < width) {
        let places: Vec<usize> = (at..elements.len()).step_by(width).collect();
        let values = elements.pick(&places).and_then(TensorValues::of);
        return (values.unwrap_or_default(), lead);
    }
    // A single component need not attain the ends of the range over all components.
    let basis = if width == 1 { Basis::Attained } else { Basis::Stated };
    let end = |end: Option<End>| end.map(|end| end.at_most(basis));
    (TensorValues { low: end(values.low), high: end(values.high), ..values }, lead)
}

/// Checks an access against the extent of its axis.
pub fn judge(access: &Access<'_>, bounds: &Bounds) -> Judgement {
    let Access { indices, ty, extent, from_end } = access;
    if extent.is_error() {
        return Judgement::Open;
    }
    let zero = Dim::constant(0);
    let least = if *from_end { -*extent } else { zero.clone() };
    if let (Some(Elements::Ints(elements)), Some(extent), Some(least)) =
        (&indices.elements, extent.as_constant(), least.as_constant())
    {
        return judge_elements(elements, least, extent);
    }
    let operand = Operand::new(ty, None);
    let sane = |end: Option<End>| end.filter(|end| !end.value.is_error());
    let (low, high) = (sane(indices.low().or(operand.low)), sane(indices.high().or(operand.high)));
    let there = some_element(ty, bounds);
    if there && at_least(&zero, extent, bounds) == Answer::Proved {
        return Judgement::Certain(Witness::EmptyAxis);
    }
    let past = |end: &Option<End>| end.as_ref().map(|end| reaches(&end.value, extent, bounds));
    let before = |end: &Option<End>| end.as_ref().map(|end| reaches(&end.value, &least, bounds));
    let attained = |end: &Option<End>| end.as_ref().is_some_and(|end| end.basis == Basis::Attained);
    let witness = |end: &Option<End>| {
        let value = end.as_ref().map_or(zero.clone(), |end| end.value.clone());
        Judgement::Certain(Witness::Value(value))
    };
    if there {
        if past(&low) == Some(Answer::Proved) {
            return witness(if attained(&high) { &high } else { &low });
        }
        if past(&high) == Some(Answer::Proved) && attained(&high) {
            return witness(&high);
        }
        if before(&high) == Some(Answer::Refuted) {
            return witness(if attained(&low) { &low } else { &high });
        }
        if before(&low) == Some(Answer::Refuted) && attained(&low) {
            return witness(&low);
        }
    }
    let high_fits = past(&high) == Some(Answer::Refuted);
    let low_fits = before(&low) == Some(Answer::Proved);
    if high_fits && low_fits {
        return Judgement::Proved;
    }
    let stated = |end: Option<End>| end.filter(|end| end.basis >= Basis::Stated);
    // A violation that occurs only for an extent of 0 is not reported: programs do not intend empty tensors.
    let positive = positive(bounds, [Some(*extent), low.as_ref().map(|e| &e.value), high.as_ref().map(|e| &e.value)]);
    let high_fits = |end: &End| reaches(&end.value, extent, &positive) == Answer::Refuted;
    let low_fits = |end: &End| reaches(&end.value, &least, &positive) == Answer::Proved;
    match (stated(high).filter(|end| !high_fits(end)), stated(low).filter(|end| !low_fits(end))) {
        (Some(end), _) | (None, Some(end)) => Judgement::Possible(end),
        (None, None) => Judgement::Open,
    }
}

/// Decides whether `value >= limit`. Looks into the operands of a minimum or maximum.
fn reaches(value: &Dim, limit: &Dim, bounds: &Bounds) -> Answer {
    let answer = at_least(value, limit, bounds);
    let operands = match value.as_atom() {
        Some(Atom::Min(a, b) | Atom::Max(a, b)) if answer == Answer::Open => [a, b],
        _ => return answer,
    };
    let answers = operands.map(|operand| reaches(operand, limit, bounds));
    let is_min = matches!(value.as_atom(), Some(Atom::Min(..)));
    // A minimum reaches the limit if both operands do, and fails if either fails. For a maximum it is the reverse.
    let (any, all) = if is_min { (Answer::Refuted, Answer::Proved) } else { (Answer::Proved, Answer::Refuted) };
    match answers {
        answers if answers.contains(&any) => any,
        [a, b] if a == all && b == all => all,
        _ => Answer::Open,
    }
}

fn judge_elements(elements: &[i64], least: i64, extent: i64) -> Judgement {
    let wrong = |value: &&i64| **value < least || **value >= extent;
    match elements.iter().position(|value| wrong(&value)) {
        None => Judgement::Proved,
        Some(_) if extent == 0 => Judgement::Certain(Witness::EmptyAxis),
        Some(first) => Judgement::Certain(Witness::Element {
            // INVARIANT: `first` was found as a position in `elements`.
            value: elements[first],
            first,
            wrong: elements.iter().filter(wrong).count(),
            count: elements.len(),
        }),
    }
}

/// Whether there is at least one index for all values of the symbols. A scalar is one index.
fn some_element(ty: &StructInfo, bounds: &Bounds) -> bool {
    let one = Dim::constant(1);
    match ty {
        StructInfo::Prim(_) => true,
        ty => ty.as_tensor().and_then(|tensor| tensor.shape.dims()).is_some_and(|dims| {
            dims.iter().all(|dim| !dim.is_error() && at_least(dim, &one, bounds) == Answer::Proved)
        }),
    }
}

/// Returns the bounds with a lower bound of 1 for every symbol of these dims.
fn positive(bounds: &Bounds, dims: [Option<&Dim>; 3]) -> Bounds {
    let mut bounds = bounds.clone();
    for dim in dims.into_iter().flatten() {
        dim.for_each_symbol(&mut |symbol| {
            let low = bounds.lower.entry(symbol).or_insert(0);
            *low = (*low).max(1);
        });
    }
    bounds
}
