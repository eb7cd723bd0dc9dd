//! Types of values at run time.

use rx_base::name::NameSet;
use rx_ir::{Shape, StructInfo, TensorInfo};
use std::sync::Arc;

/// Converts a type to its run-time form. A distributed tensor becomes a plain tensor, since there is a single worker.
/// If a tensor's shape is given by a variable, it becomes an unknown shape of the same rank. Function types are
/// unchanged.
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

/// If the type has a symbol that is not in `known`, replaces its shape by an unknown shape of the same rank, or removes
/// the value of a scalar; each field of a tuple separately. A result may only use the symbols of the parameters. For
/// example, if only `n` is known, `R.Tensor((n, m), "float32")` becomes `R.Tensor(ndim=2, dtype="float32")`.
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

/// Combines the known type of a value with the type of a `match_cast` of it. The shape or dtype of a tensor that the
/// cast leaves unknown is taken from `known`, also in tuples. For example, `R.Tensor((4,))` and
/// `R.Tensor(ndim=1, dtype="float32")` give `R.Tensor((4,), "float32")`. A cast to `R.Object` gives `known`; for all
/// other types the result is the type of the cast.
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
