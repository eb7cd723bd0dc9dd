//! Emission of expressions.

use super::{BindingValue, Check, Emitted, Emitter, Operand, scalar_type};
use crate::error::CompileError;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value, condcodes::IntCC, types};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::{BinaryOp, Expr, Intrinsic};

impl Operand {
    /// Returns the value if it is uniform over the lanes.
    pub(super) fn single(&self) -> Option<Value> {
        match self {
            Operand::One(value) => Some(*value),
            Operand::Lanes(_) => None,
        }
    }
}

impl Emitter<'_> {
    /// Emits an expression. The value of a narrow float expression is a `float32`.
    pub(super) fn expr(&mut self, expr: &Expr) -> Emitted<Operand> {
        match expr {
            Expr::Int { value, dtype } => {
                let ty = scalar_type(*dtype)?;
                Ok(Operand::One(self.integer(*value, ty)))
            }
            Expr::Float { value, dtype } => {
                let ty = scalar_type(*dtype)?;
                let one = self.float(*value, ty);
                Ok(Operand::One(self.rounded(one, *dtype)))
            }
            Expr::Var { var, dtype } => self.variable(*var, *dtype),
            Expr::Load { buffer, indices, .. } => self.load(*buffer, indices),
            Expr::Cast { dtype, value } => {
                let operand = self.expr(value)?;
                self.convert(operand, value.dtype(), *dtype)
            }
            Expr::Unary { op, value } => {
                let operand = self.expr(value)?;
                self.map(&operand, |emitter, one| emitter.unary(*op, one, value.dtype()))
            }
            Expr::Binary { op: BinaryOp::And | BinaryOp::Or, left, right } if !self.speculatable(right) => {
                let constant = Expr::bool(!matches!(expr, Expr::Binary { op: BinaryOp::And, .. }));
                match constant.as_int() {
                    Some(0) => self.select(left, right, &constant),
                    _ => self.select(left, &constant, right),
                }
            }
            Expr::Binary { op, left, right } => self.binary_expr(*op, left, right),
            Expr::Compare { op, left, right } => {
                let dtype = left.dtype();
                let (a, b) = (self.expr(left)?, self.expr(right)?);
                self.zip(a, b, dtype, dtype, |emitter, a, b| Ok(emitter.compare(*op, a, b, dtype)))
            }
            Expr::Select { condition, then, otherwise } => self.select(condition, then, otherwise),
            Expr::Call { function, dtype, args } => self.call(*function, *dtype, args),
            Expr::Checked { index, extent, buffer, axis, site } => {
                let (value, extent) = (self.index(index)?, self.index(extent)?);
                // Compare as unsigned: negative indices then exceed every extent.
                let failed = self.builder.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, value, extent);
                let check = Check::Bounds { site: *site, buffer: *buffer, axis: *axis };
                self.fail_where(failed, check, &[value, extent]);
                let ty = scalar_type(index.dtype())?;
                Ok(Operand::One(self.narrowed(value, ty)))
            }
        }
    }

    /// Emits an expression whose value must be uniform over the lanes.
    pub(super) fn one(&mut self, expr: &Expr) -> Emitted<Value> {
        let operand = self.expr(expr)?;
        operand.single().ok_or_else(|| CompileError::Unsupported("a value that differs by lane".into()))
    }

    /// Emits a condition that must be uniform over the lanes.
    pub(super) fn condition(&mut self, expr: &Expr) -> Emitted<Value> {
        let value = self.one(expr)?;
        Ok(self.is_true(value))
    }

    fn narrowed(&mut self, index: Value, ty: cranelift_codegen::ir::Type) -> Value {
        if ty == types::I64 { index } else { self.builder.ins().ireduce(ty, index) }
    }

    fn variable(&mut self, var: rx_tir::VarId, dtype: DType) -> Emitted<Operand> {
        let ty = scalar_type(dtype)?;
        let value = match self.binding(var)?.value.clone() {
            BindingValue::Value(operand) => return Ok(operand),
            BindingValue::Index(value) => self.narrowed(value, ty),
        };
        match self.lane {
            Some(lane) if lane.var == var => {
                let vector = self.lane_type(dtype)?;
                let elements: Vec<Value> =
                    (0..lane.lanes).map(|at| self.integer(i64::from(at), vector.lane_type())).collect();
                let count = self.gathered(&elements, if lane.lanes == 4 { DType::INT32 } else { DType::INT64 })?;
                let mut vectors = Vec::new();
                for at in 0..lane.unroll {
                    let first = self.builder.ins().iadd_imm_s(value, i64::from(at * lane.lanes));
                    let first = self.builder.ins().splat(vector, first);
                    vectors.push(self.builder.ins().iadd(first, count));
                }
                Ok(Operand::Lanes(vectors))
            }
            _ => Ok(Operand::One(value)),
        }
    }

    fn binary_expr(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Emitted<Operand> {
        let dtype = left.dtype();
        let division = matches!(
            op,
            BinaryOp::Div | BinaryOp::TruncDiv | BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod
        );
        if division
            && let Some(divisor) = right.as_int().filter(|divisor| *divisor > 0)
            && dtype.is_int()
        {
            let left = self.one(left)?;
            return Ok(Operand::One(self.divide_by(op, left, divisor, dtype.code == TypeCode::Int)?));
        }
        let (a, b) = (self.expr(left)?, self.expr(right)?);
        if matches!(op, BinaryOp::ShiftLeft | BinaryOp::ShiftRight) {
            let amount = b.single().ok_or_else(|| CompileError::Unsupported("shifts that differ by lane".into()))?;
            let amount = self.convert_one(amount, right.dtype(), DType::INT64)?;
            return self.map(&a, |emitter, value| Ok(emitter.shift(op, value, amount, dtype)));
        }
        self.zip(a, b, dtype, dtype, |emitter, a, b| emitter.binary(op, a, b, dtype))
    }

    /// Converts the operand to another dtype.
    pub(super) fn convert(&mut self, operand: Operand, from: DType, to: DType) -> Emitted<Operand> {
        self.map(&operand, |emitter, value| match emitter.builder.func.dfg.value_type(value).is_vector() {
            true => emitter.convert_vector(value, from, to),
            false => emitter.convert_one(value, from, to),
        })
    }

    /// Applies a function to the scalar or to each vector.
    pub(super) fn map(
        &mut self,
        operand: &Operand,
        mut of: impl FnMut(&mut Self, Value) -> Emitted<Value>,
    ) -> Emitted<Operand> {
        Ok(match operand {
            Operand::One(value) => Operand::One(of(self, *value)?),
            Operand::Lanes(values) => {
                let values: Emitted<Vec<Value>> = values.iter().map(|value| of(self, *value)).collect();
                Operand::Lanes(values?)
            }
        })
    }

    /// Applies a function to the scalars or to each pair of vectors. If only one operand has vectors, the other is
    /// broadcast.
    pub(super) fn zip(
        &mut self,
        left: Operand,
        right: Operand,
        left_dtype: DType,
        right_dtype: DType,
        mut of: impl FnMut(&mut Self, Value, Value) -> Emitted<Value>,
    ) -> Emitted<Operand> {
        if let (Operand::One(a), Operand::One(b)) = (&left, &right) {
            return Ok(Operand::One(of(self, *a, *b)?));
        }
        let (left, right) = (self.widened(left, left_dtype)?, self.widened(right, right_dtype)?);
        let values: Emitted<Vec<Value>> = left.iter().zip(right).map(|(a, b)| of(self, *a, b)).collect();
        Ok(Operand::Lanes(values?))
    }

    fn select(&mut self, condition: &Expr, then: &Expr, otherwise: &Expr) -> Emitted<Operand> {
        let dtype = then.dtype();
        let lanes = self.varies(then) || self.varies(otherwise);
        if self.varies(condition) || (self.speculatable(then) && self.speculatable(otherwise)) {
            let chosen = self.expr(condition)?;
            let (a, b) = (self.expr(then)?, self.expr(otherwise)?);
            return match chosen {
                // A scalar condition can select between vectors as well.
                Operand::One(condition) if lanes => {
                    let (a, b) = (self.widened(a, dtype)?, self.widened(b, dtype)?);
                    let pairs = a.into_iter().zip(b);
                    Ok(Operand::Lanes(pairs.map(|(a, b)| self.builder.ins().select(condition, a, b)).collect()))
                }
                Operand::One(condition) => {
                    self.zip(a, b, dtype, dtype, |emitter, a, b| Ok(emitter.choose(condition, a, b)))
                }
                Operand::Lanes(masks) => {
                    let (a, b) = (self.widened(a, dtype)?, self.widened(b, dtype)?);
                    let triples = masks.into_iter().zip(a.into_iter().zip(b));
                    Ok(Operand::Lanes(triples.map(|(mask, (a, b))| self.choose(mask, a, b)).collect()))
                }
            };
        }
        let condition = self.condition(condition)?;
        let [yes, no, joined] = [(); 3].map(|()| self.builder.create_block());
        let ty = if lanes { self.lane_type(dtype)? } else { scalar_type(dtype)? };
        let count = if lanes { self.lane.map_or(1, |lane| lane.unroll) } else { 1 };
        let results: Vec<Value> = (0..count).map(|_| self.builder.append_block_param(joined, ty)).collect();
        self.builder.ins().brif(condition, yes, &[], no, &[]);
        for (block, branch) in [(yes, then), (no, otherwise)] {
            self.begin(block);
            self.depth += 1;
            let value = self.expr(branch)?;
            self.depth -= 1;
            let values = match value {
                value if lanes => self.widened(value, dtype)?,
                Operand::One(value) => vec![value],
                Operand::Lanes(_) => return Err(CompileError::Unsupported("lanes out of nowhere".into())),
            };
            let args: Vec<BlockArg> = values.into_iter().map(BlockArg::from).collect();
            self.builder.ins().jump(joined, &args);
        }
        self.begin(joined);
        Ok(if lanes { Operand::Lanes(results) } else { Operand::One(results[0]) })
    }

    /// Whether the value may differ by lane.
    pub(super) fn varies(&self, expr: &Expr) -> bool {
        let Some(lane) = self.lane else { return false };
        expr.any(&|part| match part {
            Expr::Var { var, .. } => {
                let binding = self.bindings.get(var.0 as usize).and_then(Option::as_ref);
                let value = binding.map(|binding| &binding.value);
                *var == lane.var || matches!(value, Some(BindingValue::Value(Operand::Lanes(_))))
            }
            Expr::Load { buffer, indices, .. } => self.promoted_in_lanes(*buffer, indices),
            _ => false,
        })
    }

    /// Whether the expression may be evaluated speculatively: it has no checks, its loads are evidently in range, and
    /// it cannot divide by zero.
    pub(super) fn speculatable(&self, expr: &Expr) -> bool {
        expr.all(&|part| self.part_is_safe(part))
    }

    fn part_is_safe(&self, part: &Expr) -> bool {
        match part {
            Expr::Load { buffer, indices, .. } => self.always_in_range(*buffer, indices),
            Expr::Checked { .. } => false,
            part => !may_divide_by_zero(part),
        }
    }
}

/// Whether an expression itself, not an operand, is an integer division whose divisor is not a positive constant, or a
/// power whose exponent has a signed integer dtype and may be negative.
pub(super) fn may_divide_by_zero(expr: &Expr) -> bool {
    use BinaryOp::{Div, FloorDiv, FloorMod, TruncDiv, TruncMod};
    match expr {
        Expr::Binary { op: Div | TruncDiv | TruncMod | FloorDiv | FloorMod, left, right } => {
            !left.dtype().is_float() && right.as_int().is_none_or(|divisor| divisor <= 0)
        }
        Expr::Call { function: Intrinsic::Pow, args, .. } => {
            let exponent = args.get(1);
            exponent.is_some_and(|exponent| {
                exponent.dtype().code == TypeCode::Int && exponent.as_int().is_none_or(|exponent| exponent < 0)
            })
        }
        _ => false,
    }
}
