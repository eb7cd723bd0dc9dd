//! `nonzero` and `unique`: operators whose result size depends on the elements.

use super::{Arguments, said};
use crate::value::Output;
use rx_base::DType;
use rx_tensor::{Scalar, Tensor};
use std::cmp::Ordering;

/// Computes `nonzero(x)`: the indices of the nonzero elements, in row-major order, with shape `(rank, count)`. A
/// scalar is treated as a tensor of shape `(1,)`.
pub(super) fn nonzero(arguments: &Arguments) -> Result<Output, String> {
    let x = arguments.tensor(0)?;
    let shape: &[i64] = if x.shape().is_empty() { &[1] } else { x.shape() };
    let is_set = |at: &usize| x.get(*at).is_some_and(|value| value.as_float() != 0.0);
    let places: Vec<usize> = (0..x.len()).filter(is_set).collect();
    let mut values = Vec::with_capacity(shape.len() * places.len());
    let mut inner: i64 = shape.iter().product();
    for extent in shape {
        // If `places` is not empty, no extent is 0; `max` avoids a division by zero otherwise.
        inner /= (*extent).max(1);
        values.extend(places.iter().map(|place| *place as i64 / inner % extent));
    }
    Tensor::from_i64s(&[shape.len() as i64, places.len() as i64], &values).map(Output::Tensor).map_err(said)
}

/// The slices of a tensor along an axis, which `unique` compares. Without an axis they are the elements of the
/// flattened tensor.
struct Slices<'t> {
    x: &'t Tensor,
    /// The product of the extents before the axis.
    outer: usize,
    /// The extent of the axis: the number of slices.
    count: usize,
    /// The product of the extents after the axis.
    inner: usize,
}

impl Slices<'_> {
    /// Returns the row-major offsets of a slice's elements.
    fn places(&self, slice: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.outer)
            .flat_map(move |outer| (0..self.inner).map(move |inner| (outer * self.count + slice) * self.inner + inner))
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let pairs = self.places(a).zip(self.places(b));
        let unequal = pairs.map(|(a, b)| order(self.x.get(a), self.x.get(b), self.x.dtype()));
        unequal.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// Compares two elements. NaN sorts last and is equal to NaN, as in NumPy.
fn order(a: Option<Scalar>, b: Option<Scalar>, dtype: DType) -> Ordering {
    match (a, b) {
        (Some(Scalar::Int(a)), Some(Scalar::Int(b))) if dtype == DType::UINT64 => (a as u64).cmp(&(b as u64)),
        (Some(Scalar::Int(a)), Some(Scalar::Int(b))) => a.cmp(&b),
        (Some(a), Some(b)) => {
            let (a, b) = (a.as_float(), b.as_float());
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
        _ => Ordering::Equal,
    }
}

/// Computes `unique(x, sorted, return_index, return_inverse, return_counts, axis)`, as ONNX's `Unique`. Returns the
/// distinct values, ascending or in order of first occurrence; then, if requested, the index of each value's first
/// occurrence, for each slice the index of its value, and the number of occurrences of each value. For example, the
/// sorted result for `[2,1,2]` has values `[1, 2]`, index `[1, 0]`, inverse `[1, 0, 1]` and counts `[1, 2]`.
pub(super) fn unique(arguments: &Arguments) -> Result<Output, String> {
    let x = arguments.tensor(0)?;
    let axis = axis(arguments, x.shape().len())?;
    let slices = match axis {
        None => Slices { x, outer: 1, count: x.len(), inner: 1 },
        Some(axis) => {
            let (before, rest) = x.shape().split_at(axis);
            let size = |extents: &[i64]| extents.iter().product::<i64>() as usize;
            let (this, behind) = rest.split_at(1);
            Slices { x, outer: size(before), count: size(this), inner: size(behind) }
        }
    };
    let mut sorted: Vec<usize> = (0..slices.count).collect();
    sorted.sort_by(|a, b| slices.compare(*a, *b));
    // Group equal slices. The sort is stable, so each group begins with its first occurrence.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for slice in sorted {
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(|first| slices.compare(*first, slice).is_eq()) => {
                group.push(slice)
            }
            _ => groups.push(vec![slice]),
        }
    }
    if !arguments.flag(1) {
        groups.sort_by_key(|group| group.first().copied());
    }
    let firsts: Vec<usize> = groups.iter().filter_map(|group| group.first().copied()).collect();
    let mut inverse = vec![0i64; slices.count];
    for (at, group) in groups.iter().enumerate() {
        // INVARIANT: a group contains slice numbers less than `slices.count`.
        group.iter().for_each(|slice| inverse[*slice] = at as i64);
    }
    let mut results = vec![Output::Tensor(values(&slices, &firsts, axis)?)];
    let vector =
        |values: Vec<i64>| Tensor::from_i64s(&[values.len() as i64], &values).map(Output::Tensor).map_err(said);
    let extras: [(usize, &dyn Fn() -> Vec<i64>); 3] = [
        (2, &|| firsts.iter().map(|first| *first as i64).collect()),
        (3, &|| inverse.clone()),
        (4, &|| groups.iter().map(|group| group.len() as i64).collect()),
    ];
    for (at, values) in extras {
        if arguments.flag(at) {
            results.push(vector(values())?);
        }
    }
    match <[Output; 1]>::try_from(results) {
        Ok([values]) => Ok(values),
        Err(results) => Ok(Output::Tuple(results)),
    }
}

/// Returns the axis as a nonnegative number, or `None` if it is not given or the tensor is a scalar.
fn axis(arguments: &Arguments, ndim: usize) -> Result<Option<usize>, String> {
    let Some(axis) = arguments.int(5) else { return Ok(None) };
    let from_front = if axis < 0 { axis + ndim as i64 } else { axis };
    match usize::try_from(from_front).ok().filter(|axis| *axis < ndim) {
        Some(axis) => Ok(Some(axis)),
        None if ndim == 0 => Ok(None),
        None => Err(format!("the axis {axis} is not one of the tensor's {ndim}")),
    }
}

/// Concatenates the chosen slices along the axis.
fn values(slices: &Slices<'_>, chosen: &[usize], axis: Option<usize>) -> Result<Tensor, String> {
    let mut shape = match axis {
        Some(_) => slices.x.shape().to_vec(),
        None => vec![0],
    };
    if let Some(extent) = shape.get_mut(axis.unwrap_or(0)) {
        *extent = chosen.len() as i64;
    }
    let width = slices.x.dtype().bytes() as usize;
    let mut bytes = Vec::new();
    for outer in 0..slices.outer {
        for slice in chosen {
            let start = (outer * slices.count + slice) * slices.inner * width;
            let slice = slices.x.bytes().get(start..start + slices.inner * width);
            bytes.extend_from_slice(slice.ok_or("a slice is outside of the tensor")?);
        }
    }
    Tensor::from_bytes(slices.x.dtype(), &shape, &bytes).map_err(said)
}
