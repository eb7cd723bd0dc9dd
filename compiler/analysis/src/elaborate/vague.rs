//! Arguments of which less is known than the parameter says. TVM passes a tensor of unknown shape where its rank is known, and
//! checks the rest when the program runs; what may be of another kind, rank or dtype it refuses (`TypeBaseCheck`,
//! `src/relax/analysis/type_analysis.cc`): `R.match_cast` is how to say it.

use rx_base::DType;
use rx_ir::{Shape, StructInfo, TensorInfo};

/// What of `wanted` the type `actual` leaves open.
pub(super) fn vague_part(wanted: &StructInfo, actual: &StructInfo) -> Option<String> {
    match (wanted, actual) {
        (StructInfo::Object | StructInfo::Error | StructInfo::Function(_), _) => None,
        (wanted, StructInfo::Object) => Some(format!("all that is known of it is R.Any, {wanted} is needed")),
        (StructInfo::Tensor(wanted), StructInfo::Tensor(actual)) => vague(wanted.shape.ndim(), wanted.dtype, actual),
        (StructInfo::Tuple(wanted), StructInfo::Tuple(actual)) => {
            wanted.iter().zip(actual.iter()).find_map(|(wanted, actual)| vague_part(wanted, actual))
        }
        _ => None,
    }
}

/// As [`vague_part`], of a tensor where this rank and dtype are wanted.
pub(super) fn vague(rank: Option<usize>, dtype: Option<DType>, actual: &TensorInfo) -> Option<String> {
    if actual.readings.is_some() || actual.shape == Shape::Error || actual.dtype_error {
        return None;
    }
    match (rank, actual.shape.ndim(), dtype, actual.dtype) {
        (Some(rank), None, ..) => Some(format!("its number of dimensions is not known, {rank} is needed")),
        (.., Some(dtype), None) => Some(format!("its dtype is not known, {dtype} is needed")),
        _ => None,
    }
}
