//! Operations on scalars and, lane by lane, on vectors.

use super::{Check, Emitted, Emitter};
use crate::error::CompileError;
use cranelift_codegen::ir::{
    InstBuilder, Type, Value,
    condcodes::{FloatCC, IntCC},
    types,
};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::{BinaryOp, CompareOp, UnaryOp};

impl Emitter<'_> {
    fn type_of(&self, value: Value) -> Type {
        self.builder.func.dfg.value_type(value)
    }

    /// Emits `op value`.
    pub(super) fn unary(&mut self, op: UnaryOp, value: Value, dtype: DType) -> Emitted<Value> {
        let vector = self.type_of(value).is_vector();
        Ok(match op {
            UnaryOp::Neg if dtype.is_float() => self.builder.ins().fneg(value),
            UnaryOp::Neg => {
                let negated = self.builder.ins().ineg(value);
                self.wrapped(negated, dtype)
            }
            UnaryOp::Not if vector => self.builder.ins().bnot(value),
            UnaryOp::Not => self.builder.ins().icmp_imm_s(IntCC::Equal, value, 0),
            UnaryOp::BitNot if dtype.is_bool() && !vector => self.builder.ins().bxor_imm_s(value, 1),
            UnaryOp::BitNot => {
                let flipped = self.builder.ins().bnot(value);
                self.wrapped(flipped, dtype)
            }
        })
    }

    /// Emits `left op right` for operands of one type. Shifts are emitted by [`Emitter::shift`].
    pub(super) fn binary(&mut self, op: BinaryOp, left: Value, right: Value, dtype: DType) -> Emitted<Value> {
        if dtype.is_float() {
            return self.binary_of_floats(op, left, right);
        }
        let signed = dtype.code == TypeCode::Int;
        let ins = self.builder.ins();
        let value = match op {
            BinaryOp::Add if dtype.is_bool() => ins.bor(left, right),
            BinaryOp::Mul if dtype.is_bool() => ins.band(left, right),
            BinaryOp::Add => ins.iadd(left, right),
            BinaryOp::Sub => ins.isub(left, right),
            BinaryOp::Mul => ins.imul(left, right),
            BinaryOp::And | BinaryOp::BitAnd => ins.band(left, right),
            BinaryOp::Or | BinaryOp::BitOr => ins.bor(left, right),
            BinaryOp::BitXor => ins.bxor(left, right),
            BinaryOp::Min | BinaryOp::Max => {
                let code = match (op, signed) {
                    (BinaryOp::Min, true) => IntCC::SignedLessThan,
                    (BinaryOp::Min, false) => IntCC::UnsignedLessThan,
                    (_, true) => IntCC::SignedGreaterThan,
                    (_, false) => IntCC::UnsignedGreaterThan,
                };
                if dtype.is_bool() {
                    return Ok(if op == BinaryOp::Min { ins.band(left, right) } else { ins.bor(left, right) });
                }
                let first = ins.icmp(code, left, right);
                self.choose(first, left, right)
            }
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
                return Err(CompileError::Unsupported("a shift of two vectors".into()));
            }
            BinaryOp::Div | BinaryOp::TruncDiv | BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod => {
                return self.divide(op, left, right, signed);
            }
        };
        Ok(self.wrapped(value, dtype))
    }

    /// Emits a shift by an `int64` amount. A negative amount, or one of at least the width, shifts out all bits: the
    /// result is 0 or, for a right shift of a negative signed integer, −1.
    pub(super) fn shift(&mut self, op: BinaryOp, value: Value, amount: Value, dtype: DType) -> Value {
        let ty = self.type_of(value);
        let bits = i64::from(ty.lane_bits());
        let inside = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, amount, bits);
        if op == BinaryOp::ShiftRight && dtype.code == TypeCode::Int {
            let most = self.builder.ins().iconst(types::I64, bits - 1);
            let amount = self.builder.ins().select(inside, amount, most);
            return self.builder.ins().sshr(value, amount);
        }
        let shifted = match op {
            BinaryOp::ShiftLeft => self.builder.ins().ishl(value, amount),
            _ => self.builder.ins().ushr(value, amount),
        };
        let shifted = self.wrapped(shifted, dtype);
        let nothing = self.integer(0, ty);
        self.builder.ins().select(inside, shifted, nothing)
    }

    fn binary_of_floats(&mut self, op: BinaryOp, left: Value, right: Value) -> Emitted<Value> {
        let ins = self.builder.ins();
        Ok(match op {
            BinaryOp::Add => ins.fadd(left, right),
            BinaryOp::Sub => ins.fsub(left, right),
            BinaryOp::Mul => ins.fmul(left, right),
            BinaryOp::Div => ins.fdiv(left, right),
            BinaryOp::Min | BinaryOp::Max => {
                // `b < a` for `a > b`: in this form the code generator can select the minimum and maximum instructions
                // of x86-64, whose treatment of NaN is the same as TVM's.
                let (less, more) = if op == BinaryOp::Min { (left, right) } else { (right, left) };
                let first = ins.fcmp(FloatCC::LessThan, less, more);
                self.choose(first, left, right)
            }
            BinaryOp::TruncDiv | BinaryOp::FloorDiv | BinaryOp::TruncMod | BinaryOp::FloorMod => {
                let quotient = ins.fdiv(left, right);
                let whole = match op {
                    BinaryOp::TruncDiv | BinaryOp::TruncMod => self.builder.ins().trunc(quotient),
                    _ => self.builder.ins().floor(quotient),
                };
                if matches!(op, BinaryOp::TruncDiv | BinaryOp::FloorDiv) {
                    return Ok(whole);
                }
                let multiple = self.builder.ins().fmul(whole, right);
                self.builder.ins().fsub(left, multiple)
            }
            other => return Err(CompileError::Unsupported(format!("{other:?} of floats"))),
        })
    }

    /// Emits the quotient or remainder (by `op`) of scalar integers for any divisor. Division by zero fails a check;
    /// the smallest integer divided by −1 wraps.
    fn divide(&mut self, op: BinaryOp, left: Value, right: Value, signed: bool) -> Emitted<Value> {
        if self.type_of(left).is_vector() {
            return Err(CompileError::Unsupported("division of integer lanes".into()));
        }
        let zero = self.builder.ins().icmp_imm_s(IntCC::Equal, right, 0);
        self.fail_where(zero, Check::Division { site: self.site }, &[]);
        let ins = self.builder.ins();
        if !signed {
            return Ok(match op {
                BinaryOp::TruncMod | BinaryOp::FloorMod => ins.urem(left, right),
                _ => ins.udiv(left, right),
            });
        }
        let flips = ins.icmp_imm_s(IntCC::Equal, right, -1);
        let one = self.integer(1, self.type_of(right));
        let safe = self.builder.ins().select(flips, one, right);
        let quotient = self.builder.ins().sdiv(left, safe);
        let negated = self.builder.ins().ineg(left);
        let quotient = self.builder.ins().select(flips, negated, quotient);
        Ok(self.floored(op, left, right, quotient))
    }

    /// Emits the quotient or remainder (by `op`) of a scalar integer and a positive constant, which cannot fail.
    pub(super) fn divide_by(&mut self, op: BinaryOp, left: Value, divisor: i64, signed: bool) -> Emitted<Value> {
        let ty = self.type_of(left);
        if !signed {
            return Ok(match op {
                BinaryOp::TruncMod | BinaryOp::FloorMod => self.builder.ins().urem_imm_u(left, divisor),
                _ => self.builder.ins().udiv_imm_u(left, divisor),
            });
        }
        if divisor & (divisor - 1) == 0 {
            match op {
                BinaryOp::FloorDiv => {
                    return Ok(self.builder.ins().sshr_imm_u(left, i64::from(divisor.trailing_zeros())));
                }
                BinaryOp::FloorMod => return Ok(self.builder.ins().band_imm_u(left, divisor - 1)),
                _ => {}
            }
        }
        let right = self.integer(divisor, ty);
        let quotient = self.builder.ins().sdiv(left, right);
        Ok(self.floored(op, left, right, quotient))
    }

    /// Derives the result of `op` (quotient or remainder, truncating or flooring) from the truncated quotient.
    fn floored(&mut self, op: BinaryOp, left: Value, right: Value, quotient: Value) -> Value {
        if matches!(op, BinaryOp::Div | BinaryOp::TruncDiv) {
            return quotient;
        }
        let multiple = self.builder.ins().imul(quotient, right);
        let remainder = self.builder.ins().isub(left, multiple);
        if op == BinaryOp::TruncMod {
            return remainder;
        }
        let inexact = self.builder.ins().icmp_imm_s(IntCC::NotEqual, remainder, 0);
        let signs = self.builder.ins().bxor(remainder, right);
        let opposite = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, signs, 0);
        let below = self.builder.ins().band(inexact, opposite);
        if op == BinaryOp::FloorMod {
            let moved = self.builder.ins().iadd(remainder, right);
            return self.builder.ins().select(below, moved, remainder);
        }
        let less = self.builder.ins().iadd_imm_s(quotient, -1);
        self.builder.ins().select(below, less, quotient)
    }

    /// Emits the comparison `left op right` of operands of one type. The result is a `bool` or, for vectors, a mask.
    pub(super) fn compare(&mut self, op: CompareOp, left: Value, right: Value, dtype: DType) -> Value {
        let ty = self.type_of(left);
        if dtype.is_float() {
            let code = match op {
                CompareOp::Eq => FloatCC::Equal,
                CompareOp::Ne => FloatCC::NotEqual,
                CompareOp::Lt => FloatCC::LessThan,
                CompareOp::Le => FloatCC::LessThanOrEqual,
                CompareOp::Gt => FloatCC::GreaterThan,
                CompareOp::Ge => FloatCC::GreaterThanOrEqual,
            };
            return self.builder.ins().fcmp(code, left, right);
        }
        // Bools compare as unsigned: true is 1 in scalars and −1 in masks, and both are above 0 as unsigned numbers.
        // Narrow unsigned integers are zero-extended to 32-bit lanes, so they may compare as signed.
        let signed = dtype.code == TypeCode::Int || (ty.is_vector() && !dtype.is_bool() && dtype.bits < 32);
        let code = match (op, signed) {
            (CompareOp::Eq, _) => IntCC::Equal,
            (CompareOp::Ne, _) => IntCC::NotEqual,
            (CompareOp::Lt, true) => IntCC::SignedLessThan,
            (CompareOp::Le, true) => IntCC::SignedLessThanOrEqual,
            (CompareOp::Gt, true) => IntCC::SignedGreaterThan,
            (CompareOp::Ge, true) => IntCC::SignedGreaterThanOrEqual,
            (CompareOp::Lt, false) => IntCC::UnsignedLessThan,
            (CompareOp::Le, false) => IntCC::UnsignedLessThanOrEqual,
            (CompareOp::Gt, false) => IntCC::UnsignedGreaterThan,
            (CompareOp::Ge, false) => IntCC::UnsignedGreaterThanOrEqual,
        };
        self.builder.ins().icmp(code, left, right)
    }
}
