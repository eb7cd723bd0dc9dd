//! Conversions between dtypes, of scalars and of vectors.

use super::{Emitted, Emitter, scalar_type};
use crate::error::CompileError;
use cranelift_codegen::ir::{
    Endianness, InstBuilder, MemFlagsData, Type, Value,
    condcodes::{FloatCC, IntCC},
    types,
};
use rx_base::DType;
use rx_base::dtype::TypeCode;

impl Emitter<'_> {
    /// Converts a scalar to another dtype. Integers wrap. Floats truncate to integers, and saturate at the ends of the
    /// range, as in the interpreter. The conversion to `bool` is `!= 0`.
    pub(super) fn convert_one(&mut self, value: Value, from: DType, to: DType) -> Emitted<Value> {
        let (source, target) = (scalar_type(from)?, scalar_type(to)?);
        if from == to {
            return Ok(value);
        }
        let ins = self.builder.ins();
        Ok(match (from.is_float(), to.is_float()) {
            (true, _) if to.is_bool() => {
                let zero = self.float(0.0, source);
                self.builder.ins().fcmp(FloatCC::NotEqual, value, zero)
            }
            (false, _) if to.is_bool() => ins.icmp_imm_s(IntCC::NotEqual, value, 0),
            (false, false) if source.bits() == target.bits() => value,
            (false, false) if source.bits() > target.bits() => ins.ireduce(target, value),
            (false, false) if from.code == TypeCode::Int => ins.sextend(target, value),
            (false, false) => ins.uextend(target, value),
            (false, true) => {
                let signed = from.code == TypeCode::Int;
                let wide = match (source.bits(), signed) {
                    (64, _) => value,
                    (_, true) => ins.sextend(types::I64, value),
                    (_, false) => ins.uextend(types::I64, value),
                };
                // Integers that `float32` rounds are beyond the range of `float16`.
                let to_odd = to == DType::BFLOAT16 && source.bits() >= 32;
                let wide = if to_odd { self.with_sticky_bit(wide, signed, 11) } else { wide };
                let first = if to_odd { types::F64 } else { target };
                let float = if signed || source.bits() < 64 {
                    self.builder.ins().fcvt_from_sint(first, wide)
                } else {
                    self.builder.ins().fcvt_from_uint(first, wide)
                };
                let float = if to_odd { self.demoted_to_odd(float) } else { float };
                self.rounded(float, to)
            }
            (true, false) => {
                let wide = if target.bits() == 64 { types::I64 } else { types::I32 };
                let whole = if to.code == TypeCode::UInt && target.bits() >= 32 {
                    ins.fcvt_to_uint_sat(wide, value)
                } else {
                    ins.fcvt_to_sint_sat(wide, value)
                };
                let whole = self.held(whole, to);
                if wide == target { whole } else { self.builder.ins().ireduce(target, whole) }
            }
            (true, true) => {
                let same_width = match (source, target) {
                    (types::F32, types::F64) => ins.fpromote(target, value),
                    (types::F64, types::F32) if to.bits < 32 => self.demoted_to_odd(value),
                    (types::F64, types::F32) => ins.fdemote(target, value),
                    _ => value,
                };
                self.rounded(same_width, to)
            }
        })
    }

    /// Converts a vector to another dtype, lane by lane. Fails for conversions without a vector form.
    pub(super) fn convert_vector(&mut self, value: Value, from: DType, to: DType) -> Emitted<Value> {
        let (source, target) = (self.lane_type(from)?, self.lane_type(to)?);
        if from == to {
            return Ok(value);
        }
        let unsupported = || Err(CompileError::Unsupported(format!("lanes from {from} to {to}")));
        Ok(match (from.is_float(), to.is_float()) {
            (true, _) if to.is_bool() => {
                let zero = self.float(0.0, source);
                let mask = self.builder.ins().fcmp(FloatCC::NotEqual, value, zero);
                self.as_mask(mask, target)
            }
            (false, false) if from.is_bool() && to.is_bool() => value,
            (false, false) if to.is_bool() => self.nonzero(value),
            (false, _) if from.is_bool() => {
                let ones = self.integer(1, source);
                let whole = self.builder.ins().band(value, ones);
                if !to.is_float() {
                    whole
                } else if target == types::F32X4 {
                    self.builder.ins().fcvt_from_sint(target, whole)
                } else {
                    return unsupported();
                }
            }
            (false, false) => self.wrapped(value, to),
            (false, true) if target == types::F32X4 => {
                let value = match to == DType::BFLOAT16 && from.bits == 32 {
                    true => self.with_sticky_bit(value, from.code == TypeCode::Int, 8),
                    false => value,
                };
                let float = if from.code == TypeCode::UInt && from.bits == 32 {
                    self.builder.ins().fcvt_from_uint(target, value)
                } else {
                    self.builder.ins().fcvt_from_sint(target, value)
                };
                self.rounded(float, to)
            }
            (true, false) if source == types::F32X4 && to.code == TypeCode::UInt && to.bits == 32 => {
                self.builder.ins().fcvt_to_uint_sat(target, value)
            }
            (true, false) if source == types::F32X4 => {
                let whole = self.builder.ins().fcvt_to_sint_sat(target, value);
                self.held(whole, to)
            }
            (true, true) if source == target => self.rounded(value, to),
            _ => return unsupported(),
        })
    }

    /// Emits the conversion of a `float64` to `float32` with rounding to odd: of the two neighbors of an inexact value,
    /// the one whose last bit is 1. Rounding the result to fewer bits is then the same as rounding `value`.
    fn demoted_to_odd(&mut self, value: Value) -> Value {
        let single = self.builder.ins().fdemote(types::F32, value);
        let back = self.builder.ins().fpromote(types::F64, single);
        let inexact = self.builder.ins().fcmp(FloatCC::NotEqual, back, value);
        let size = self.builder.ins().fabs(back);
        let exact_size = self.builder.ins().fabs(value);
        let beyond = self.builder.ins().fcmp(FloatCC::GreaterThan, size, exact_size);
        let beyond = self.builder.ins().uextend(types::I32, beyond);
        let bits = self.bits(single, types::I32);
        // The bits less 1 are the next float toward zero.
        let truncated = self.builder.ins().isub(bits, beyond);
        let one = self.integer(1, types::I32);
        let odd = self.builder.ins().bor(truncated, one);
        let bits = self.choose(inexact, odd, bits);
        self.bits(bits, types::F32)
    }

    /// Rounds large integers to odd: clears the `dropped` lowest bits, and sets the bit above them if one of the
    /// cleared bits was 1. For example, with 32-bit integers and `dropped` 8, `0x1000001` becomes `0x1000100`. Integers
    /// that fit the other bits (there: 24), not counting a sign bit, are unchanged.
    ///
    /// So the result has few enough significant bits for an exact conversion to a float, and rounding that float to
    /// `bfloat16` is the same as rounding `value`.
    fn with_sticky_bit(&mut self, value: Value, signed: bool, dropped: i64) -> Value {
        let ty = self.builder.func.dfg.value_type(value);
        let bits = i64::from(ty.lane_bits());
        let magnitude = if signed {
            let sign = self.builder.ins().sshr_imm_u(value, bits - 1);
            self.builder.ins().bxor(value, sign)
        } else {
            value
        };
        let beyond = self.builder.ins().ushr_imm_u(magnitude, bits - dropped);
        let beyond = self.nonzero(beyond);
        let lost = self.masked(value, (1i64 << dropped) - 1);
        let lost = self.nonzero(lost);
        let [set, clear] = [1i64 << dropped, 0].map(|constant| self.integer(constant, ty));
        let sticky = self.choose(lost, set, clear);
        let kept = self.masked(value, -(1i64 << dropped));
        let odd = self.builder.ins().bor(kept, sticky);
        self.choose(beyond, odd, value)
    }

    /// Wraps each lane to the range of a narrower integer dtype. For example, 200 in a 32-bit lane of `int8` becomes
    /// −56. Scalars are unchanged, since their types are as wide as their dtypes.
    pub(super) fn wrapped(&mut self, value: Value, dtype: DType) -> Value {
        let ty = self.builder.func.dfg.value_type(value);
        let unused = i64::from(ty.lane_bits()) - i64::from(dtype.bits);
        if !ty.is_vector() || unused <= 0 || dtype.is_bool() || dtype.is_float() {
            return value;
        }
        let high = self.builder.ins().ishl_imm_u(value, unused);
        match dtype.code {
            TypeCode::Int => self.builder.ins().sshr_imm_u(high, unused),
            _ => self.builder.ins().ushr_imm_u(high, unused),
        }
    }

    /// Saturates a 32-bit integer, or 32-bit lanes, to the range of a narrower dtype.
    fn held(&mut self, value: Value, dtype: DType) -> Value {
        if dtype.bits >= 32 {
            return value;
        }
        let ty = self.builder.func.dfg.value_type(value);
        let (low, high) = match dtype.code {
            TypeCode::Int => (-(1i64 << (dtype.bits - 1)), (1i64 << (dtype.bits - 1)) - 1),
            _ => (0, (1i64 << dtype.bits) - 1),
        };
        let [low, high] = [low, high].map(|limit| self.integer(limit, ty));
        let value = self.builder.ins().smax(value, low);
        self.builder.ins().smin(value, high)
    }

    /// Emits the mask of lanes that are not 0.
    pub(super) fn nonzero(&mut self, value: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(value);
        let zero = self.integer(0, ty);
        self.builder.ins().icmp(IntCC::NotEqual, value, zero)
    }

    /// Converts a comparison's result to a mask type of the same lane width.
    pub(super) fn as_mask(&mut self, mask: Value, ty: Type) -> Value {
        if self.builder.func.dfg.value_type(mask) == ty { mask } else { self.bits(mask, ty) }
    }

    /// Emits a bit cast to another type of the same size.
    pub(super) fn bits(&mut self, value: Value, ty: Type) -> Value {
        let flags = match ty.is_vector() {
            true => MemFlagsData::new().with_endianness(Endianness::Little),
            false => MemFlagsData::new(),
        };
        self.builder.ins().bitcast(ty, flags, value)
    }

    /// Emits a float constant; for a vector type, in every lane.
    pub(super) fn float(&mut self, value: f64, ty: Type) -> Value {
        let one = match ty.lane_type() {
            types::F64 => self.builder.ins().f64const(value),
            _ => self.builder.ins().f32const(value as f32),
        };
        if ty.is_vector() { self.builder.ins().splat(ty, one) } else { one }
    }

    /// Emits an integer constant; for a vector type, in every lane.
    pub(super) fn integer(&mut self, value: i64, ty: Type) -> Value {
        let lane = ty.lane_type();
        // The builder requires that bits above the type's width are 0.
        let value = match lane.bits() {
            64 => value,
            bits => value & ((1 << bits) - 1),
        };
        let one = self.builder.ins().iconst(lane, value);
        if ty.is_vector() { self.builder.ins().splat(ty, one) } else { one }
    }

    /// Selects by a `bool`, or lane by lane by a mask.
    pub(super) fn choose(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(then);
        if ty.is_vector() {
            let mask = self.bits_if_needed(condition, ty);
            self.builder.ins().bitselect(mask, then, otherwise)
        } else {
            self.builder.ins().select(condition, then, otherwise)
        }
    }

    fn bits_if_needed(&mut self, value: Value, ty: Type) -> Value {
        if self.builder.func.dfg.value_type(value) == ty { value } else { self.bits(value, ty) }
    }

    /// Rounds a `float32` to the nearest value of a 16-bit float dtype. For other dtypes, the value is unchanged.
    pub(super) fn rounded(&mut self, value: Value, dtype: DType) -> Value {
        if !(dtype.is_float() && dtype.bits == 16) {
            return value;
        }
        let bits = self.half_bits(value, dtype);
        self.float_of_half_bits(bits, dtype)
    }

    /// Converts the 16 bits of a `float16` or `bfloat16`, in a 32-bit integer or 32-bit lanes, to `float32`.
    pub(super) fn float_of_half_bits(&mut self, bits: Value, dtype: DType) -> Value {
        let ty = self.builder.func.dfg.value_type(bits);
        let float = if ty.is_vector() { types::F32X4 } else { types::F32 };
        if dtype.code == TypeCode::BFloat {
            let high = self.builder.ins().ishl_imm_u(bits, 16);
            return self.bits(high, float);
        }
        // Shift exponent and fraction into place; the value is then too small by a factor of 2^112. Multiplying by
        // this factor is exact, also for subnormals.
        let magnitude = self.masked(bits, 0x7fff);
        let shifted = self.builder.ins().ishl_imm_u(magnitude, 13);
        let shifted = self.bits(shifted, float);
        let scale = self.float(2f64.powi(112), float);
        let scaled = self.builder.ins().fmul(shifted, scale);
        // Infinity and NaN are above the largest finite value and need the full exponent.
        let limit = self.float(65536.0, float);
        let special = self.builder.ins().fcmp(FloatCC::GreaterThanOrEqual, scaled, limit);
        let scaled = self.bits(scaled, ty);
        let exponent = self.integer(0xff << 23, ty);
        let full = self.builder.ins().bor(scaled, exponent);
        let value = self.choose(special, full, scaled);
        let sign = self.masked(bits, 0x8000);
        let sign = self.builder.ins().ishl_imm_u(sign, 16);
        let value = self.builder.ins().bor(value, sign);
        self.bits(value, float)
    }

    /// Rounds a `float32` to the nearest `float16` or `bfloat16`, ties to even. Returns its 16 bits in a 32-bit integer
    /// or 32-bit lanes.
    pub(super) fn half_bits(&mut self, value: Value, dtype: DType) -> Value {
        let float = self.builder.func.dfg.value_type(value);
        let ty = if float.is_vector() { types::I32X4 } else { types::I32 };
        let nan = self.builder.ins().fcmp(FloatCC::Unordered, value, value);
        let bits = self.bits(value, ty);
        if dtype.code == TypeCode::BFloat {
            let odd = self.builder.ins().ushr_imm_u(bits, 16);
            let odd = self.masked(odd, 1);
            let half = self.integer(0x7fff, ty);
            let half = self.builder.ins().iadd(half, odd);
            let rounded = self.builder.ins().iadd(bits, half);
            let rounded = self.builder.ins().ushr_imm_u(rounded, 16);
            let quiet = self.builder.ins().ushr_imm_u(bits, 16);
            let mark = self.integer(0x40, ty);
            let quiet = self.builder.ins().bor(quiet, mark);
            return self.choose(nan, quiet, rounded);
        }
        let magnitude = self.masked(bits, 0x7fff_ffff);
        let sign = self.builder.ins().ushr_imm_u(bits, 16);
        let sign = self.masked(sign, 0x8000);
        // Subnormal results: adding 0.5 leaves the rounded fraction in the low bits.
        let tiny = self.bits(magnitude, float);
        let half = self.float(0.5, float);
        let tiny = self.builder.ins().fadd(tiny, half);
        let tiny = self.bits(tiny, ty);
        let half = self.integer(i64::from(0.5f32.to_bits()), ty);
        let tiny = self.builder.ins().isub(tiny, half);
        // Normal results: rebias, round half to even by the carry, drop 13 bits.
        let odd = self.builder.ins().ushr_imm_u(magnitude, 13);
        let odd = self.masked(odd, 1);
        let rebias = self.integer(((15 - 127) << 23) + 0xfff, ty);
        let normal = self.builder.ins().iadd(magnitude, rebias);
        let normal = self.builder.ins().iadd(normal, odd);
        let normal = self.builder.ins().ushr_imm_u(normal, 13);
        let smallest = self.integer(113 << 23, ty);
        let is_tiny = self.builder.ins().icmp(IntCC::SignedLessThan, magnitude, smallest);
        let finite = self.choose(is_tiny, tiny, normal);
        let largest = self.integer((127 + 16) << 23, ty);
        let is_large = self.builder.ins().icmp(IntCC::SignedGreaterThanOrEqual, magnitude, largest);
        let [infinity, quiet] = [0x7c00, 0x7e00].map(|bits| self.integer(bits, ty));
        let large = self.choose(nan, quiet, infinity);
        let result = self.choose(is_large, large, finite);
        self.builder.ins().bor(result, sign)
    }

    fn masked(&mut self, value: Value, mask: i64) -> Value {
        let ty = self.builder.func.dfg.value_type(value);
        let mask = self.integer(mask, ty);
        self.builder.ins().band(value, mask)
    }
}
