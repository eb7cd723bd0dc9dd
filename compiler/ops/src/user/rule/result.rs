//! Computes the result type of a declared operator from the values of its variables.

use super::Matching;
use crate::user::pattern::{AxisPattern, DtypePattern, ShapePattern, TypePattern};
use rx_base::{Answer, DType};
use rx_ir::{PrimInfo, Shape, StructInfo, TensorInfo};

impl Matching<'_, '_, '_> {
    pub(super) fn result(&self, pattern: &TypePattern) -> StructInfo {
        match pattern {
            TypePattern::Any => StructInfo::Object,
            TypePattern::String => StructInfo::String,
            TypePattern::Tensor { shape, dtype } => StructInfo::Tensor(std::sync::Arc::new(TensorInfo {
                shape: self.result_shape(shape),
                dtype: self.result_dtype(dtype),
                vdevice: self.vdevice.flatten(),
                dtype_error: false,
                readings: None,
            })),
            TypePattern::Shape(shape) => StructInfo::Shape(self.result_shape(shape)),
            TypePattern::Prim { dtype, value } => StructInfo::Prim(PrimInfo {
                dtype: self.result_dtype(dtype),
                value: value.as_ref().and_then(|value| self.value(value)),
            }),
            TypePattern::Tuple(fields) => StructInfo::Tuple(fields.iter().map(|field| self.result(field)).collect()),
            TypePattern::Repeated(_) => StructInfo::Object,
            TypePattern::Like(name) => self.call.operand(name).map_or(StructInfo::Object, |expr| expr.ty.clone()),
            TypePattern::Choice(condition, then, otherwise) => match self.truth(condition) {
                Answer::Proved => self.result(then),
                Answer::Refuted => self.result(otherwise),
                Answer::Open => {
                    let (then, otherwise) = (self.result(then), self.result(otherwise));
                    if then == otherwise { then } else { StructInfo::Object }
                }
            },
        }
    }

    pub(super) fn result_dtype(&self, pattern: &DtypePattern) -> Option<DType> {
        match pattern {
            DtypePattern::Any => None,
            DtypePattern::Is(dtype) => Some(*dtype),
            DtypePattern::Name(name) => {
                self.dtype_attribute(*name).or_else(|| self.dtypes.get(name).map(|known| known.value))
            }
            DtypePattern::Or(name, other) => self.dtype_attribute(*name).or_else(|| self.result_dtype(other)),
        }
    }

    /// Returns the dims if all are known; otherwise the rank, if that is known.
    pub(super) fn result_shape(&self, pattern: &ShapePattern) -> Shape {
        let axes = match pattern {
            ShapePattern::Any => return Shape::Unknown,
            ShapePattern::Rank(ndim) => return Shape::Rank(*ndim),
            ShapePattern::Dims(axes) => axes,
        };
        let (mut dims, mut ndim) = (Some(Vec::new()), Some(0));
        for axis in axes {
            match axis {
                AxisPattern::One(pattern) => {
                    dims = dims.zip(self.value(pattern)).map(|(mut dims, dim)| {
                        dims.push(dim);
                        dims
                    });
                    ndim = ndim.map(|ndim| ndim + 1);
                }
                AxisPattern::Rest(name) => {
                    let rest = self.rests.get(name).map(|known| &known.value);
                    dims = dims.zip(rest.and_then(|rest| rest.dims())).map(|(mut dims, rest)| {
                        dims.extend(rest.iter().cloned());
                        dims
                    });
                    ndim = ndim.zip(rest.and_then(Shape::ndim)).map(|(ndim, rest)| ndim + rest);
                }
            }
        }
        dims.map_or_else(|| Shape::of_rank(ndim), Shape::known)
    }
}
