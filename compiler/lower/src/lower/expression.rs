//! Lowers expressions to [`Known`] values.

use super::FunctionLowering;
use super::known::Known;
use crate::program::{Constant, Operation, Scalar};
use rx_base::{DType, Dim};
use rx_ir::{Callee, Expr, ExprKind, PrimValue, StructInfo};

impl FunctionLowering<'_, '_> {
    /// Lowers an expression: emits the instructions that compute it, and returns its value.
    pub(super) fn expression(&mut self, expr: &Expr) -> Known {
        match &expr.kind {
            ExprKind::Var(variable) => match self.names.get(variable) {
                Some(known) => self.tensors.current_value(known),
                None => self.scalar_variable(expr),
            },
            ExprKind::Global(function) => Known::Global(*function),
            ExprKind::Constant(literal) => match &expr.ty {
                StructInfo::Tensor(tensor) => Known::Constant(literal.clone(), tensor.dtype.unwrap_or(DType::FLOAT32)),
                _ => self.problem("a constant of unknown type"),
            },
            ExprKind::Elements(elements) => {
                let tensor = expr.ty.as_tensor();
                let dims = tensor.and_then(|tensor| tensor.shape.dims()?.iter().map(Dim::as_constant).collect());
                let (Some(shape), Some(dtype)) = (dims, tensor.and_then(|tensor| tensor.dtype)) else {
                    return self.problem("a constant of unknown type");
                };
                self.constant(Constant::Elements { elements: elements.clone(), shape, dtype }, &expr.ty)
            }
            ExprKind::Metadata { key, index } => {
                self.constant(Constant::Metadata { key: *key, index: *index }, &expr.ty)
            }
            ExprKind::Prim(value) => match value {
                PrimValue::Int(dim) => Known::Scalar(Scalar::Int(dim.clone())),
                PrimValue::Float(value) => Known::Scalar(Scalar::Float(*value)),
                PrimValue::Bool(value) => Known::Scalar(Scalar::Bool(*value)),
                PrimValue::Opaque => self.problem("a scalar that is computed at run time"),
            },
            ExprKind::Str(text) => Known::String(text.clone()),
            ExprKind::DType(dtype) => Known::String(dtype.to_string().into()),
            ExprKind::Shape(dims) => Known::Shape(dims.clone()),
            ExprKind::Tuple(fields) => Known::Tuple(fields.iter().map(|field| self.expression(field)).collect()),
            ExprKind::TupleGet(tuple, index) => {
                let tuple = self.expression(tuple);
                self.field(tuple, *index)
            }
            ExprKind::MatchCast(value) => {
                let value = self.expression(value);
                if value == Known::Broken {
                    return value;
                }
                let value = self.materialize(value);
                self.emit(Operation::Match { value, ty: expr.ty.clone(), subject: "the cast value".to_owned() });
                Known::Register(value)
            }
            ExprKind::Call(call) => match &call.callee {
                Callee::Op(operator) => self.operator_call(*operator, call, &expr.ty),
                Callee::Global(function) => self.global_call(*function, call, &expr.ty),
                Callee::Value(function) => self.value_call(function, call, &expr.ty),
            },
            ExprKind::Extern(symbol) => self.problem(format!("the external function \"{symbol}\" as a value")),
            ExprKind::Written(_) | ExprKind::Error => self.problem("rx does not run this expression"),
        }
    }

    /// Emits a constant, and returns its register.
    fn constant(&mut self, constant: Constant, ty: &StructInfo) -> Known {
        let constant = self.lowerer.constant(constant);
        let to = self.register(ty.clone());
        self.emit(Operation::Constant { to, constant });
        Known::Register(to)
    }

    /// Lowers a variable without a binding: a symbolic dim that is used as a value.
    fn scalar_variable(&mut self, expr: &Expr) -> Known {
        match &expr.ty {
            StructInfo::Prim(info) => match &info.value {
                Some(value) => Known::Scalar(Scalar::Int(value.clone())),
                None => self.problem("a scalar whose value is not known"),
            },
            // The cause was reported before.
            _ => Known::Broken,
        }
    }
}
