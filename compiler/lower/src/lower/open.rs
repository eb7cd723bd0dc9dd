//! Lowers operator calls whose types are not fully known at compile time (`R.Tensor(ndim=2)`, `R.Any`) to
//! [`Operation::Dynamic`]. The call keeps its operator and arguments; at run time the types of its tensors and the
//! values of its other operands determine a separate program (`crate::dynamic`).

use super::FunctionLowering;
use super::known::Known;
use crate::dynamic::{DynamicArgument, DynamicCall};
use crate::program::{Operation, Register, Scalar};
use rx_base::{DType, Dim};
use rx_ir::{Argument, Call, Expr, ExprKind, PrimInfo, PrimValue, StructInfo};
use rx_ops::Schema;
use std::sync::Arc;

impl FunctionLowering<'_, '_> {
    /// Whether a call must be lowered at run time: its result is not a tensor, or a tuple of tensors, of known shape
    /// and dtype, or its loops may depend on an unknown type or value of an operand. Always `false` where all types are
    /// known to be complete (`Lowerer::complete`).
    pub(super) fn is_open(&self, call: &Call, ty: &StructInfo) -> bool {
        let open = |argument: &Argument| match argument {
            Argument::Operand(expr) => is_open_operand(expr),
            Argument::Operands(exprs) => exprs.iter().any(is_open_operand),
            _ => false,
        };
        !self.lowerer.complete && (!is_told(ty) || call.arguments.iter().any(open))
    }

    /// Emits a call that is lowered at run time.
    pub(super) fn open(&mut self, schema: &'static Schema, call: &Call, ty: &StructInfo) -> Known {
        let mut operands = Vec::new();
        let mut dtypes = Vec::new();
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            arguments.push(match argument {
                Argument::Operand(expr) => match self.open_operand(expr, &mut operands) {
                    Some(argument) => {
                        dtypes.resize(operands.len(), scalar_dtype(&expr.ty));
                        argument
                    }
                    None => return Known::Broken,
                },
                Argument::Operands(exprs) => {
                    let mut all = Vec::with_capacity(exprs.len());
                    for expr in exprs {
                        let known = self.expression(expr);
                        if known == Known::Broken {
                            return known;
                        }
                        operands.push(self.materialize(known));
                        dtypes.push(scalar_dtype(&expr.ty));
                        all.push(operands.len() - 1);
                    }
                    DynamicArgument::Registers(all)
                }
                other => DynamicArgument::Written(other.clone()),
            });
        }
        let to = self.register(ty.clone());
        let call = Arc::new(DynamicCall { schema, arguments, dtypes });
        self.emit(Operation::Dynamic { to, call, operands });
        Known::Register(to)
    }

    /// Emits a call of an operator with these operands that is lowered at run time.
    pub(super) fn open_values(&mut self, schema: &'static Schema, values: Vec<Known>, ty: &StructInfo) -> Known {
        let operands: Vec<Register> = values.into_iter().map(|value| self.materialize(value)).collect();
        let arguments = (0..operands.len()).map(DynamicArgument::Register).collect();
        let to = self.register(ty.clone());
        let dtypes = vec![None; operands.len()];
        let call = Arc::new(DynamicCall { schema, arguments, dtypes });
        self.emit(Operation::Dynamic { to, call, operands });
        Known::Register(to)
    }

    /// Lowers an operand of a dynamic call. A literal stays a literal, since inference rules and compute definitions
    /// use its value. So does a rank-0 constant, shape or integer that is known at compile time; the null value becomes
    /// an absent argument. Other operands are added to `operands`. Returns `None` after an error.
    fn open_operand(&mut self, expr: &Expr, operands: &mut Vec<Register>) -> Option<DynamicArgument> {
        let stays = |expr: Expr| Some(DynamicArgument::Written(Argument::Operand(expr)));
        if is_literal(expr) {
            return stays(expr.clone());
        }
        match self.expression(expr) {
            Known::Broken => None,
            Known::Null => Some(DynamicArgument::Written(Argument::Absent)),
            Known::Constant(literal, dtype) => {
                let ty = StructInfo::tensor(Vec::<Dim>::new(), Some(dtype));
                stays(Expr::new(ExprKind::Constant(literal), ty))
            }
            Known::Shape(dims) => stays(Expr::new(ExprKind::Shape(dims.clone()), StructInfo::shape(dims))),
            Known::Scalar(Scalar::Int(value)) => {
                let dtype = scalar_dtype(&expr.ty).or(Some(DType::INT64));
                let ty = StructInfo::Prim(PrimInfo { dtype, value: Some(value.clone()) });
                stays(Expr::new(ExprKind::Prim(PrimValue::Int(value)), ty))
            }
            known => {
                operands.push(self.materialize(known));
                Some(DynamicArgument::Register(operands.len() - 1))
            }
        }
    }
}

/// Returns the dtype of an operand that is a scalar.
fn scalar_dtype(ty: &StructInfo) -> Option<DType> {
    match ty {
        StructInfo::Prim(info) => info.dtype,
        _ => None,
    }
}

/// Whether the operand is written as a scalar constant, string, dtype, shape, number or Boolean, or as a tuple of
/// these. Shapes and integers may contain symbols.
fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Constant(_) | ExprKind::Str(_) | ExprKind::DType(_) | ExprKind::Shape(_) => true,
        ExprKind::Prim(value) => *value != PrimValue::Opaque,
        ExprKind::Tuple(fields) => fields.iter().all(is_literal),
        _ => false,
    }
}

/// Whether the type is a tensor, or a tuple of tensors, and all their shapes and dtypes are known.
fn is_told(ty: &StructInfo) -> bool {
    match ty {
        StructInfo::Tuple(fields) => fields.iter().all(is_told),
        ty => ty.as_tensor().is_some_and(|tensor| tensor.shape.dims().is_some() && tensor.dtype.is_some()),
    }
}

/// Whether the call's loops may depend on a property of the operand, its type or its value, that is not known.
fn is_open_operand(expr: &Expr) -> bool {
    fn open(ty: &StructInfo) -> bool {
        match ty {
            StructInfo::Tuple(fields) => fields.iter().any(open),
            StructInfo::Object => true,
            StructInfo::Shape(shape) => shape.dims().is_none(),
            // A known integer is a dim. The value of a float is known at run time only.
            StructInfo::Prim(info) => info.value.is_none() || info.dtype.is_some_and(DType::is_float),
            ty => ty.as_tensor().is_some_and(|tensor| tensor.shape.dims().is_none() || tensor.dtype.is_none()),
        }
    }
    !is_literal(expr) && open(&expr.ty)
}
