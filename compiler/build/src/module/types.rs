//! Types as a program has them: of one device, without the variables of the text it comes from.

use rx_base::name::NameSet;
use rx_ir::{Shape, StructInfo, TensorInfo};
use std::sync::Arc;

/// The type of a value while it runs: a tensor over a mesh is one tensor, since one worker runs, and a shape that a variable of
/// the text names is any of its rank.
pub(super) fn run_time(ty: &StructInfo) -> StructInfo {
    let of_tensor = |tensor: &TensorInfo| match &tensor.shape {
        Shape::Var { ndim, .. } => TensorInfo { shape: Shape::of_rank(*ndim), ..tensor.clone() },
        _ => tensor.clone(),
    };
    match ty {
        StructInfo::Tensor(tensor) => StructInfo::Tensor(Arc::new(of_tensor(tensor))),
        StructInfo::DTensor(tensor) => StructInfo::Tensor(Arc::new(of_tensor(&tensor.tensor))),
        StructInfo::Tuple(fields) => StructInfo::tuple(fields.iter().map(run_time).collect::<Vec<_>>()),
        other => other.clone(),
    }
}

/// The type without dims that `known` symbols do not tell: that of a result, which sees the parameters' symbols only.
pub(super) fn told_by(ty: &StructInfo, known: &NameSet) -> StructInfo {
    if ty.symbols().is_subset(known) {
        return ty.clone();
    }
    match ty {
        StructInfo::Tensor(tensor) => StructInfo::tensor_of(Shape::of_rank(tensor.shape.ndim()), tensor.dtype),
        StructInfo::Shape(shape) => StructInfo::Shape(Shape::of_rank(shape.ndim())),
        StructInfo::Prim(info) => info.dtype.map_or(StructInfo::Object, StructInfo::prim),
        StructInfo::Tuple(fields) => {
            StructInfo::tuple(fields.iter().map(|field| told_by(field, known)).collect::<Vec<_>>())
        }
        other => other.clone(),
    }
}

/// The type that says all that two types of one value say.
pub(super) fn both(known: &StructInfo, cast: &StructInfo) -> StructInfo {
    match (known, cast) {
        (StructInfo::Tuple(a), StructInfo::Tuple(b)) if a.len() == b.len() => {
            StructInfo::tuple(a.iter().zip(b.iter()).map(|(a, b)| both(a, b)).collect::<Vec<_>>())
        }
        (StructInfo::Tensor(a), StructInfo::Tensor(b)) => {
            let shape = match b.shape.dims() {
                Some(_) => b.shape.clone(),
                None if a.shape.ndim().is_some() => a.shape.clone(),
                None => b.shape.clone(),
            };
            StructInfo::Tensor(Arc::new(TensorInfo { shape, dtype: b.dtype.or(a.dtype), ..TensorInfo::clone(b) }))
        }
        (_, StructInfo::Object) => known.clone(),
        (_, cast) => cast.clone(),
    }
}
