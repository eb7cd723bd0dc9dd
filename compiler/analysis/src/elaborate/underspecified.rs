//! Underspecified arguments: arguments whose type is less precise than the parameter's.
//!
//! TVM accepts a tensor of unknown shape if its rank is known, and checks the rest at run time. It rejects an
//! argument whose kind, rank or dtype is unknown (`TypeBaseCheck`, `src/relax/analysis/type_analysis.cc`).
//! `R.match_cast` makes the type precise.

use rx_base::DType;
use rx_ir::{Shape, StructInfo, TensorInfo};

/// Describes the part of `wanted` that the type `actual` leaves unknown, if the call is rejected for it.
pub(super) fn underspecified_part(wanted: &StructInfo, actual: &StructInfo) -> Option<String> {
    match (wanted, actual) {
        (StructInfo::Object | StructInfo::Error | StructInfo::Function(_), _) => None,
        (wanted, StructInfo::Object) => Some(format!("all that is known of it is R.Any, {wanted} is needed")),
        (StructInfo::Tensor(wanted), StructInfo::Tensor(actual)) => {
            underspecified(wanted.shape.ndim(), wanted.dtype, actual)
        }
        (StructInfo::Tuple(wanted), StructInfo::Tuple(actual)) => {
            wanted.iter().zip(actual.iter()).find_map(|(wanted, actual)| underspecified_part(wanted, actual))
        }
        _ => None,
    }
}

/// Like [`underspecified_part`], for a tensor that must have this rank and dtype.
pub(super) fn underspecified(rank: Option<usize>, dtype: Option<DType>, actual: &TensorInfo) -> Option<String> {
    if actual.readings.is_some() || actual.shape == Shape::Error || actual.dtype_error {
        return None;
    }
    match (rank, actual.shape.ndim(), dtype, actual.dtype) {
        (Some(rank), None, ..) => Some(format!("its number of dimensions is not known, {rank} is needed")),
        (.., Some(dtype), None) => Some(format!("its dtype is not known, {dtype} is needed")),
        _ => None,
    }
}
