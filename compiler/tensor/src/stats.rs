//! Statistics of a tensor, and the comparison of two tensors.

use crate::element::{Element, float_of_int};
use crate::error::TensorError;
use crate::tensor::{Scalar, Tensor};
use std::fmt;

/// Minimum, maximum and mean of a tensor's elements; NaN if no element is a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// The minimum, without NaNs.
    pub min: f64,
    /// The mean without NaNs, summed in `f64`.
    pub mean: f64,
    /// The maximum, without NaNs.
    pub max: f64,
    /// The number of NaNs.
    pub nan_count: usize,
}

impl Stats {
    /// Computes the statistics of a tensor.
    pub fn of(tensor: &Tensor) -> Stats {
        let (mut min, mut max, mut sum, mut nan_count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0);
        for value in (0..tensor.len()).filter_map(|at| tensor.get(at)) {
            let value = float(tensor, value);
            if value.is_nan() {
                nan_count += 1;
                continue;
            }
            min = min.min(value);
            max = max.max(value);
            sum += value;
        }
        match tensor.len() - nan_count {
            0 => Stats { min: f64::NAN, mean: f64::NAN, max: f64::NAN, nan_count },
            count => Stats { min, mean: sum / count as f64, max, nan_count },
        }
    }
}

/// Converts an element to a float. For `uint64`, the `i64` is read as unsigned.
fn float(tensor: &Tensor, value: Scalar) -> f64 {
    match value {
        Scalar::Int(value) => float_of_int(value, tensor.element(), Element::F64),
        Scalar::Float(value) => value,
    }
}

/// The result of comparing a tensor with the expected one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Whether each element is within `atol + rtol · |expected|`. NaN equals NaN, an infinity equals itself.
    pub ok: bool,
    /// The number of elements outside the tolerance.
    pub mismatches: usize,
    /// The element with the largest excess over its tolerance (negative if all are within); `None` for an empty tensor.
    pub worst: Option<Worst>,
    /// The largest absolute error; infinite if a NaN or an infinity is on one side only.
    pub max_abs_error: f64,
}

/// An element of a [`Comparison`].
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// The index, one number per axis.
    pub index: Vec<i64>,
    /// The actual value.
    pub actual: f64,
    /// The expected value.
    pub expected: f64,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.worst, self.ok) {
            (_, true) => write!(f, "equal within the tolerances, the largest error is {:.3e}", self.max_abs_error),
            (Some(Worst { index, actual, expected }), false) => write!(
                f,
                "{} elements differ, the largest error is {:.3e}; the worst at {index:?}: {actual}, expected {expected}",
                self.mismatches, self.max_abs_error
            ),
            (None, false) => write!(f, "{} elements differ", self.mismatches),
        }
    }
}

/// Compares a tensor with the expected one, element by element. Dtypes may differ; the values are compared.
///
/// # Errors
/// [`TensorError::ShapesDiffer`].
pub fn compare(actual: &Tensor, expected: &Tensor, rtol: f64, atol: f64) -> Result<Comparison, TensorError> {
    if actual.shape() != expected.shape() {
        let (actual, expected) = (actual.shape().to_vec(), expected.shape().to_vec());
        return Err(TensorError::ShapesDiffer { actual, expected });
    }
    let (mut mismatches, mut max_abs_error) = (0, 0f64);
    let mut worst: Option<(f64, usize, f64, f64)> = None;
    let elements = (0..actual.len()).filter_map(|at| Some((at, actual.get(at)?, expected.get(at)?)));
    for (at, left, right) in elements {
        let (a, b) = (float(actual, left), float(expected, right));
        let error = match (left, right) {
            // Integers of one dtype are compared as integers, since different large integers can be the same float.
            (Scalar::Int(left), Scalar::Int(right)) if actual.dtype() == expected.dtype() => match actual.element() {
                Element::U64 => (left as u64).abs_diff(right as u64) as f64,
                _ => left.abs_diff(right) as f64,
            },
            _ if a == b || a.is_nan() && b.is_nan() => 0.0,
            _ if a.is_nan() || b.is_nan() => f64::INFINITY,
            _ => (a - b).abs(),
        };
        // A tolerance that is infinite, because the expected value is, allows no error.
        let allowed = if b.is_finite() { atol + rtol * b.abs() } else { 0.0 };
        mismatches += usize::from(error > allowed);
        max_abs_error = max_abs_error.max(error);
        let excess = error - allowed;
        if worst.is_none_or(|(most, ..)| excess > most) {
            worst = Some((excess, at, a, b));
        }
    }
    let worst = worst.map(|(_, at, actual, expected_value)| Worst {
        index: index_of(at, expected.shape()),
        actual,
        expected: expected_value,
    });
    Ok(Comparison { ok: mismatches == 0, mismatches, worst, max_abs_error })
}

/// Converts a row-major position to an index.
fn index_of(mut at: usize, shape: &[i64]) -> Vec<i64> {
    let mut index = vec![0; shape.len()];
    for (part, extent) in index.iter_mut().zip(shape).rev() {
        // There is an element, so no extent is 0; `max` only avoids a division by zero.
        let extent = (*extent).max(1) as usize;
        *part = (at % extent) as i64;
        at /= extent;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use rx_base::DType;

    fn f32s(shape: &[i64], values: &[f32]) -> Tensor {
        Tensor::from_f32s(shape, values).expect("a tensor")
    }

    #[test]
    fn the_range_leaves_nans_out_and_counts_them() {
        let stats = Stats::of(&f32s(&[4], &[1.0, f32::NAN, -3.0, 5.0]));
        assert_eq!(stats, Stats { min: -3.0, mean: 1.0, max: 5.0, nan_count: 1 });
        assert!(Stats::of(&f32s(&[0], &[])).mean.is_nan());
        let large = Tensor::from_values(DType::UINT64, &[1], &[u64::MAX]).expect("a tensor");
        assert_eq!(Stats::of(&large).max, u64::MAX as f64);
    }

    #[test]
    fn elements_agree_within_both_tolerances() {
        let expected = f32s(&[2, 2], &[0.0, 1.0, 100.0, -1.0]);
        let near = compare(&f32s(&[2, 2], &[1e-4, 1.0001, 100.01, -1.0]), &expected, 1e-4, 1e-4).expect("of one shape");
        assert!(near.ok, "{near:?}");
        let far = compare(&f32s(&[2, 2], &[0.0, 1.0, 100.0, -1.5]), &expected, 1e-4, 1e-4).expect("of one shape");
        assert_eq!((far.ok, far.mismatches, far.max_abs_error), (false, 1, 0.5));
        let worst = Worst { index: vec![1, 1], actual: -1.5, expected: -1.0 };
        assert_eq!(far.worst, Some(worst));
        assert!(compare(&f32s(&[4], &[0.0; 4]), &expected, 1.0, 1.0).is_err());
    }

    #[test]
    fn nans_and_infinities_agree_with_themselves_only() {
        let special = f32s(&[3], &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]);
        let ok = |values: &[f32]| compare(&f32s(&[3], values), &special, 1e-4, 1e-4).is_ok_and(|found| found.ok);
        assert!(ok(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]));
        assert!(!ok(&[0.0, f32::INFINITY, f32::NEG_INFINITY]));
        assert!(!ok(&[f32::NAN, 1e30, f32::NEG_INFINITY]));
        assert!(!ok(&[f32::NAN, f32::INFINITY, f32::INFINITY]));
        let finite = f32s(&[1], &[1.0]);
        assert!(compare(&f32s(&[1], &[f32::NAN]), &finite, 1.0, 1.0).is_ok_and(|found| !found.ok));
    }

    #[test]
    fn large_integers_are_distinguished() {
        let left = Tensor::from_i64s(&[1], [i64::MAX]).expect("a tensor");
        let right = Tensor::from_i64s(&[1], [i64::MAX - 1]).expect("a tensor");
        assert!(compare(&left, &right, 0.0, 0.0).is_ok_and(|found| !found.ok));
        assert!(compare(&left, &left, 0.0, 0.0).is_ok_and(|found| found.ok));
    }
}
