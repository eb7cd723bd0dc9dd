//! Ranges of elements, and conversion of elements between dtypes.

use rx_base::dtype::TypeCode;
use rx_base::symbolic::prove::at_least;
use rx_base::symbolic::{Answer, Bounds};
use rx_base::{DType, Dim};
use rx_ir::values::Basis;
use rx_ir::{Elements, End, TensorValues};

/// Returns the range of a dtype, if it is narrow enough to be useful. An index is seldom near the limits of `int64`, so
/// `int64` has none.
pub(crate) fn dtype_ends(dtype: DType) -> (Option<End>, Option<End>) {
    let loose = |value: i64| Some(End { value: Dim::constant(value), basis: Basis::Loose });
    match integer_limits(dtype) {
        Some((low, high)) if dtype.bits <= 32 => (loose(low), loose(high)),
        // For `uint64`, only the lower limit 0 is useful.
        Some((0, _)) => (loose(0), None),
        _ => (None, None),
    }
}

/// Whether the ends are tighter than the limits of the dtype.
pub(crate) fn tell_more(low: &Option<End>, high: &Option<End>, dtype: Option<DType>) -> bool {
    let (least, most) = dtype.map_or((None, None), dtype_ends);
    let more = |end: &Option<End>, limit: &Option<End>| match end {
        Some(end) if end.basis == Basis::Loose => end.value.as_constant().is_some() && Some(end) != limit.as_ref(),
        end => end.is_some(),
    };
    more(low, &least) || more(high, &most)
}

/// Returns the minimum and maximum of an integer dtype or `bool`, if both fit in an `i64`.
fn integer_limits(dtype: DType) -> Option<(i64, i64)> {
    if dtype.lanes != 1 {
        return None;
    }
    match dtype.code {
        TypeCode::Bool => Some((0, 1)),
        TypeCode::UInt if dtype.bits < 64 => Some((0, (1i64 << dtype.bits) - 1)),
        TypeCode::UInt => Some((0, i64::MAX)),
        TypeCode::Int if dtype.bits < 64 => {
            Some((-(1i64 << (dtype.bits.max(1) - 1)), (1i64 << (dtype.bits.max(1) - 1)) - 1))
        }
        TypeCode::Int => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

/// Returns the largest `n` such that a float dtype represents all integers up to `n` exactly.
fn exact_integers(dtype: DType) -> i64 {
    match (dtype.code, dtype.bits) {
        (TypeCode::Float, 64) => 1 << 53,
        (TypeCode::Float, 32) => 1 << 24,
        (TypeCode::Float, 16) => 1 << 11,
        (TypeCode::BFloat, _) => 1 << 8,
        _ => 0,
    }
}

/// Restricts facts to those that remain true after conversion to `dtype`. An integer that does not fit wraps around,
/// and a float is rounded; then the fact is dropped.
pub(crate) fn held(values: TensorValues, dtype: Option<DType>) -> Option<TensorValues> {
    let dtype = dtype?;
    if let Some(elements) = &values.elements {
        return TensorValues::of(cast_elements(elements, dtype)?);
    }
    let (low, high) = match integer_limits(dtype) {
        Some(limits) => limits,
        None if dtype.is_float() => (-exact_integers(dtype), exact_integers(dtype)),
        None => return None,
    };
    let fits = |end: &Option<End>| {
        let constant = end.as_ref().and_then(|end| end.value.as_constant());
        constant.is_none_or(|value| value >= low && value <= high)
    };
    if !fits(&values.low) || !fits(&values.high) {
        return None;
    }
    let sound = |end: Option<End>| end.filter(|end| !end.value.is_error());
    let (low, high) = (sound(values.low), sound(values.high));
    tell_more(&low, &high, Some(dtype)).then(|| TensorValues::between(low, high))
}

/// Converts elements to `dtype` like `astype`; a float is truncated to an integer. Returns `None` if an element does
/// not fit, or if the result of rounding is not modeled here.
pub(crate) fn cast_elements(elements: &Elements, dtype: DType) -> Option<Elements> {
    if dtype.is_bool() {
        return Some(Elements::Ints(match elements {
            Elements::Ints(values) => values.iter().map(|value| i64::from(*value != 0)).collect(),
            Elements::Floats(values) => values.iter().map(|value| i64::from(*value != 0.0)).collect(),
        }));
    }
    if let Some((low, high)) = integer_limits(dtype) {
        let fits = |value: i64| (low..=high).contains(&value).then_some(value);
        let cut = |value: f64| {
            let cut = value.trunc();
            (cut.abs() < 9.2e18).then_some(cut as i64).and_then(fits)
        };
        return Some(Elements::Ints(match elements {
            Elements::Ints(values) => values.iter().map(|value| fits(*value)).collect::<Option<_>>()?,
            Elements::Floats(values) => values.iter().map(|value| cut(*value)).collect::<Option<_>>()?,
        }));
    }
    if !dtype.is_float() || dtype.lanes != 1 {
        return None;
    }
    let round = |value: f64| round(value, dtype);
    Some(Elements::Floats(match elements {
        Elements::Ints(values) => values
            .iter()
            // Rounding to f64 and then to the dtype equals rounding once only if the first step is exact.
            .map(|value| (value.unsigned_abs() <= 1 << 53).then_some(*value as f64).and_then(round))
            .collect::<Option<_>>()?,
        Elements::Floats(values) => values.iter().map(|value| round(*value)).collect::<Option<_>>()?,
    }))
}

/// Rounds a float to `dtype`. For dtypes narrower than 32 bits, only integers that are represented exactly are known.
fn round(value: f64, dtype: DType) -> Option<f64> {
    match (dtype.code, dtype.bits) {
        (TypeCode::Float, 64) => Some(value),
        (TypeCode::Float, 32) => Some(f64::from(value as f32)),
        _ => (value.fract() == 0.0 && value.abs() <= exact_integers(dtype) as f64).then_some(value),
    }
}

/// Returns the smaller of two lower ends: the lower end of the union of two ranges. The result has the basis of the end
/// that is chosen.
pub(crate) fn lower_of(a: End, b: End, bounds: &Bounds) -> End {
    match at_least(&b.value, &a.value, bounds) {
        Answer::Proved if a.value == b.value => End { basis: a.basis.max(b.basis), ..a },
        Answer::Proved => a,
        Answer::Refuted => b,
        Answer::Open => End { basis: a.basis.min(b.basis).min(Basis::Stated), value: a.value.minimum(&b.value) },
    }
}

/// Returns the larger of two upper ends: the upper end of the union of two ranges.
pub(crate) fn higher_of(a: End, b: End, bounds: &Bounds) -> End {
    match at_least(&a.value, &b.value, bounds) {
        Answer::Proved if a.value == b.value => End { basis: a.basis.max(b.basis), ..a },
        Answer::Proved => a,
        Answer::Refuted => b,
        Answer::Open => End { basis: a.basis.min(b.basis).min(Basis::Stated), value: a.value.maximum(&b.value) },
    }
}

/// Returns the smallest range that contains both ranges.
pub(crate) fn hull(
    (low_a, high_a): (Option<End>, Option<End>),
    (low_b, high_b): (Option<End>, Option<End>),
    bounds: &Bounds,
) -> (Option<End>, Option<End>) {
    let sane = |(a, b): &(End, End)| !a.value.is_error() && !b.value.is_error();
    let low = low_a.zip(low_b).filter(sane).map(|(a, b)| lower_of(a, b, bounds));
    let high = high_a.zip(high_b).filter(sane).map(|(a, b)| higher_of(a, b, bounds));
    (low, high)
}

/// Returns `[0, count - 1]`, the range of indices into `count` elements. The basis states whether the ends are known to
/// occur.
pub(crate) fn indices_of(count: &Dim, basis: Basis) -> TensorValues {
    if count.is_error() {
        return TensorValues::default();
    }
    let low = End { value: Dim::constant(0), basis };
    let high = End { value: count - &Dim::constant(1), basis };
    TensorValues::between(Some(low), Some(high))
}
