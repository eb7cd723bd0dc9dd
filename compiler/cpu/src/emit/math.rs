//! Intrinsic functions. Those that are frequent in neural networks are computed in `float32` by polynomials, the same
//! for scalars and vectors. The others, and those of `float64`, are instructions or calls.

use super::{Check, Emitted, Emitter, Operand, scalar_type};
use crate::error::CompileError;
use crate::runtime;
use cranelift_codegen::ir::{
    InstBuilder, Type, Value,
    condcodes::{FloatCC, IntCC},
    types,
};
use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::{Expr, Intrinsic};

impl Emitter<'_> {
    /// Emits an intrinsic.
    pub(super) fn call(&mut self, function: Intrinsic, dtype: DType, args: &[Expr]) -> Emitted<Operand> {
        let Some(first) = args.first() else {
            return Err(CompileError::Unsupported(format!("{} without arguments", function.name())));
        };
        if args.len() != function.arity() {
            return Err(CompileError::Unsupported(format!("{} of {} arguments", function.name(), args.len())));
        }
        let of = first.dtype();
        if function == Intrinsic::Pow
            && let Some(value) = self.constant_power(first, &args[1])?
        {
            return Ok(value);
        }
        let mut operands = Vec::with_capacity(args.len());
        for arg in args {
            let value = self.expr(arg)?;
            // All arguments get the dtype of the first. For example, the integer exponent of `ldexp` is passed as a
            // float.
            operands.push(if arg.dtype() == of { value } else { self.convert(value, arg.dtype(), of)? });
        }
        if operands.iter().all(|operand| matches!(operand, Operand::One(_))) {
            let values: Vec<Value> = operands.iter().filter_map(Operand::single).collect();
            return Ok(Operand::One(self.call_of(function, of, dtype, &values)?));
        }
        let columns = operands.into_iter().map(|operand| self.widened(operand, of)).collect::<Emitted<Vec<_>>>()?;
        let mut results = Vec::new();
        for at in 0..columns[0].len() {
            let values: Vec<Value> = columns.iter().filter_map(|column| column.get(at).copied()).collect();
            results.push(self.call_of(function, of, dtype, &values)?);
        }
        Ok(Operand::Lanes(results))
    }

    /// Emits `x^c` for a float constant `c` of 1, 2 or 3 as multiplications. Returns `None` for other exponents.
    fn constant_power(&mut self, base: &Expr, exponent: &Expr) -> Emitted<Option<Operand>> {
        let Expr::Float { value: exponent, dtype } = exponent else { return Ok(None) };
        let ty = scalar_type(*dtype)?;
        let times = match *exponent {
            1.0 => 0,
            2.0 => 1,
            3.0 => 2,
            _ => return Ok(None),
        };
        let base = self.expr(base)?;
        debug_assert!(ty.is_float());
        self.map(&base, |emitter, value| {
            let mut power = value;
            for _ in 0..times {
                power = emitter.builder.ins().fmul(power, value);
            }
            Ok(power)
        })
        .map(Some)
    }

    fn call_of(&mut self, function: Intrinsic, of: DType, to: DType, args: &[Value]) -> Emitted<Value> {
        let x = args[0];
        let ty = self.builder.func.dfg.value_type(x);
        if function == Intrinsic::Reinterpret {
            return self.reinterpret(x, of, to);
        }
        if !of.is_float() {
            return self.call_of_integers(function, of, args);
        }
        let single = ty.lane_type() == types::F32;
        Ok(match function {
            Intrinsic::Abs => self.builder.ins().fabs(x),
            Intrinsic::Ceil => self.builder.ins().ceil(x),
            Intrinsic::Floor => self.builder.ins().floor(x),
            Intrinsic::Trunc => self.builder.ins().trunc(x),
            Intrinsic::NearbyInt | Intrinsic::Round => self.builder.ins().nearest(x),
            Intrinsic::Sqrt => self.builder.ins().sqrt(x),
            Intrinsic::Rsqrt => {
                let root = self.builder.ins().sqrt(x);
                let one = self.float(1.0, ty);
                self.builder.ins().fdiv(one, root)
            }
            Intrinsic::CopySign => self.copy_sign(x, args[1]),
            Intrinsic::IsNan => self.builder.ins().fcmp(FloatCC::Unordered, x, x),
            Intrinsic::IsInf | Intrinsic::IsFinite => {
                let size = self.builder.ins().fabs(x);
                let infinity = self.float(f64::INFINITY, ty);
                let code = if function == Intrinsic::IsInf { FloatCC::Equal } else { FloatCC::LessThan };
                self.builder.ins().fcmp(code, size, infinity)
            }
            Intrinsic::Exp if single => self.exp(x),
            Intrinsic::Sigmoid if single => {
                let negative = self.builder.ins().fneg(x);
                let power = self.exp(negative);
                let one = self.float(1.0, ty);
                let below = self.builder.ins().fadd(one, power);
                self.builder.ins().fdiv(one, below)
            }
            Intrinsic::Tanh if single => self.tanh(x),
            Intrinsic::Erf if single => self.erf(x),
            Intrinsic::Log if single => self.log(x),
            other => self.call_routine(other, args)?,
        })
    }

    /// Emits a call of the intrinsic's [`runtime`] routine; for vectors, one call for each lane.
    fn call_routine(&mut self, function: Intrinsic, args: &[Value]) -> Emitted<Value> {
        let ty = self.builder.func.dfg.value_type(args[0]);
        let lane = ty.lane_type();
        let Some(routine) = runtime::routine(function, lane == types::F64) else {
            return Err(CompileError::Unsupported(format!("{} of {lane}", function.name())));
        };
        let reference = self.routine(routine, &vec![lane; args.len()], lane)?;
        if !ty.is_vector() {
            let call = self.builder.ins().call(reference, args);
            return Ok(self.builder.inst_results(call)[0]);
        }
        let mut result = args[0];
        for at in 0..ty.lane_count() as u8 {
            let elements: Vec<Value> = args.iter().map(|arg| self.builder.ins().extractlane(*arg, at)).collect();
            let call = self.builder.ins().call(reference, &elements);
            let element = self.builder.inst_results(call)[0];
            result = self.builder.ins().insertlane(result, element, at);
        }
        Ok(result)
    }

    fn call_of_integers(&mut self, function: Intrinsic, of: DType, args: &[Value]) -> Emitted<Value> {
        let x = args[0];
        let ty = self.builder.func.dfg.value_type(x);
        let signed = of.code == rx_base::dtype::TypeCode::Int;
        let unsupported = || Err(CompileError::Unsupported(format!("{} of {of}", function.name())));
        Ok(match function {
            Intrinsic::Abs if signed => {
                let size = self.builder.ins().iabs(x);
                self.wrapped(size, of)
            }
            Intrinsic::Abs
            | Intrinsic::Ceil
            | Intrinsic::Floor
            | Intrinsic::Trunc
            | Intrinsic::NearbyInt
            | Intrinsic::Round => x,
            Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite => {
                let holds = function == Intrinsic::IsFinite;
                let result = if ty.is_vector() { ty } else { types::I8 };
                self.integer(
                    if !holds {
                        0
                    } else if ty.is_vector() {
                        -1
                    } else {
                        1
                    },
                    result,
                )
            }
            Intrinsic::Clz | Intrinsic::Popcount if ty.is_vector() => return unsupported(),
            Intrinsic::Clz => self.builder.ins().clz(x),
            Intrinsic::Popcount => self.builder.ins().popcnt(x),
            Intrinsic::Pow if !ty.is_vector() => self.integer_power(of, args)?,
            _ => return unsupported(),
        })
    }

    /// Emits a power of integers of the dtype `of`. Zero to a negative power fails the check of a division by zero.
    fn integer_power(&mut self, of: DType, args: &[Value]) -> Emitted<Value> {
        let is_signed = of.code == TypeCode::Int;
        let wide = if is_signed { DType::INT64 } else { DType::UINT64 };
        let args = args.iter().map(|arg| self.convert_one(*arg, of, wide)).collect::<Emitted<Vec<_>>>()?;
        if let ([base, exponent], true) = (&args[..], is_signed) {
            let is_zero = self.builder.ins().icmp_imm_s(IntCC::Equal, *base, 0);
            let is_negative = self.builder.ins().icmp_imm_s(IntCC::SignedLessThan, *exponent, 0);
            let fails = self.builder.ins().band(is_zero, is_negative);
            self.fail_where(fails, Check::Division { site: self.site }, &[]);
        }
        let reference = self.routine(runtime::integer_power(is_signed), &[types::I64, types::I64], types::I64)?;
        let call = self.builder.ins().call(reference, &args);
        let power = self.builder.inst_results(call)[0];
        self.convert_one(power, wide, of)
    }

    fn reinterpret(&mut self, value: Value, from: DType, to: DType) -> Emitted<Value> {
        let half = |dtype: DType| dtype.is_float() && dtype.bits == 16;
        let ty = self.builder.func.dfg.value_type(value);
        if from == to {
            return Ok(value);
        }
        if from.bytes() != to.bytes() || from.is_bool() || to.is_bool() {
            return Err(CompileError::Unsupported(format!("the bits of {from} as {to}")));
        }
        let bits = if half(from) { self.half_bits(value, from) } else { value };
        if half(to) {
            let wide = match (half(from), ty.is_vector()) {
                (false, false) => self.builder.ins().uextend(types::I32, bits),
                (false, true) => self.wrapped(bits, DType::UINT16),
                (true, _) => bits,
            };
            return Ok(self.float_of_half_bits(wide, to));
        }
        if half(from) {
            return Ok(match ty.is_vector() {
                false => self.builder.ins().ireduce(types::I16, bits),
                true => self.wrapped(bits, to),
            });
        }
        let target = if ty.is_vector() { self.lane_type(to)? } else { scalar_type(to)? };
        let same = if target == ty { bits } else { self.bits(bits, target) };
        Ok(self.wrapped(same, to))
    }

    fn copy_sign(&mut self, size: Value, sign: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(size);
        if !ty.is_vector() {
            return self.builder.ins().fcopysign(size, sign);
        }
        let size = self.builder.ins().fabs(size);
        let zero = self.float(-0.0, ty);
        let sign = self.builder.ins().band(sign, zero);
        self.builder.ins().bor(size, sign)
    }

    /// Emits `a * b + c`, with a single rounding if the host has fused multiply-add.
    pub(super) fn multiply_add(&mut self, a: Value, b: Value, c: Value) -> Value {
        if self.fused {
            return self.builder.ins().fma(a, b, c);
        }
        let product = self.builder.ins().fmul(a, b);
        self.builder.ins().fadd(product, c)
    }

    /// Emits a polynomial by Horner's rule. The coefficient of the highest power is first.
    fn horner(&mut self, x: Value, coefficients: &[f32]) -> Value {
        let ty = self.builder.func.dfg.value_type(x);
        let mut sum = self.float(f64::from(coefficients[0]), ty);
        for coefficient in &coefficients[1..] {
            let coefficient = self.float(f64::from(*coefficient), ty);
            sum = self.multiply_add(sum, x, coefficient);
        }
        sum
    }

    fn integers_like(&self, float: Type) -> Type {
        if float.is_vector() { types::I32X4 } else { types::I32 }
    }

    /// Emits `e^x` as `2^n · e^r` with `|r|` at most about `ln2/2`, and `e^r` by Cephes' polynomial (`expf`).
    fn exp(&mut self, x: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(x);
        let whole = self.integers_like(ty);
        // For arguments outside this range the result is 0 or infinity. NaN is not clamped: both comparisons are false.
        let [low, high] = [-104.0, 89.0].map(|limit| self.float(limit, ty));
        let below = self.builder.ins().fcmp(FloatCC::LessThan, x, low);
        let x = self.choose(below, low, x);
        let above = self.builder.ins().fcmp(FloatCC::LessThan, high, x);
        let x = self.choose(above, high, x);
        // Adding 1.5·2^23 rounds `x · log2(e)` to the integer n, since a `float32` between 2^23 and 2^24 has no
        // fraction bits. The low bits of the sum are n.
        let magic = self.float(12_582_912.0, ty);
        let log2e = self.float(std::f64::consts::LOG2_E, ty);
        let shifted = self.multiply_add(x, log2e, magic);
        let n = self.builder.ins().fsub(shifted, magic);
        let shifted = self.bits(shifted, whole);
        let magic = self.integer(i64::from(12_582_912f32.to_bits()), whole);
        let exponent = self.builder.ins().isub(shifted, magic);
        // ln 2 in two parts, the first short enough for an exact product.
        let [high, low] = [-0.693_359_375, 2.121_944_4e-4].map(|part| self.float(part, ty));
        let r = self.multiply_add(n, high, x);
        let r = self.multiply_add(n, low, r);
        let sum = self.horner(r, &[1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5]);
        let square = self.builder.ins().fmul(r, r);
        let power = self.multiply_add(sum, square, r);
        let one = self.float(1.0, ty);
        let power = self.builder.ins().fadd(power, one);
        // Compute 2^n as two factors, so that results from the smallest subnormal to infinity are correct.
        let half = self.builder.ins().sshr_imm_u(exponent, 1);
        let rest = self.builder.ins().isub(exponent, half);
        let [half, rest] = [half, rest].map(|part| {
            let bias = self.integer(127, whole);
            let biased = self.builder.ins().iadd(part, bias);
            let placed = self.builder.ins().ishl_imm_u(biased, 23);
            self.bits(placed, ty)
        });
        let power = self.builder.ins().fmul(power, half);
        self.builder.ins().fmul(power, rest)
    }

    /// Emits `tanh x` as a quotient of polynomials, with `x` clamped to about `[-7.9, 7.9]`: Eigen's `ptanh`.
    fn tanh(&mut self, x: Value) -> Value {
        self.odd_quotient(
            x,
            7.905_311,
            &[
                -2.760_768_5e-16,
                2.000_188e-13,
                -8.604_672e-11,
                5.122_297e-8,
                1.485_722_4e-5,
                6.372_619e-4,
                4.893_524_6e-3,
            ],
            &[1.198_258_4e-6, 1.185_347_1e-4, 2.268_434_6e-3, 4.893_525e-3],
        )
    }

    /// Emits `erf x` as a quotient of polynomials, with `x` clamped to `[-4, 4]`: Eigen's `perf`.
    fn erf(&mut self, x: Value) -> Value {
        self.odd_quotient(
            x,
            4.0,
            &[
                -2.726_142_3e-10,
                2.770_681_4e-8,
                -2.101_024e-6,
                -5.692_506_4e-5,
                -7.349_906_3e-4,
                -2.954_6e-3,
                -1.609_603_3e-2,
            ],
            &[-1.456_607_2e-5, -2.133_740_6e-4, -1.682_827e-3, -7.373_329_2e-3, -1.426_473_9e-2],
        )
    }

    /// Emits `x · p(x²) / q(x²)` with `x` clamped to `[-limit, limit]`. The highest coefficients are first.
    fn odd_quotient(&mut self, x: Value, limit: f64, p: &[f32], q: &[f32]) -> Value {
        let ty = self.builder.func.dfg.value_type(x);
        let [low, high] = [-limit, limit].map(|limit| self.float(limit, ty));
        let below = self.builder.ins().fcmp(FloatCC::LessThan, x, low);
        let x = self.choose(below, low, x);
        let above = self.builder.ins().fcmp(FloatCC::LessThan, high, x);
        let x = self.choose(above, high, x);
        let square = self.builder.ins().fmul(x, x);
        let (p, q) = (self.horner(square, p), self.horner(square, q));
        let p = self.builder.ins().fmul(p, x);
        self.builder.ins().fdiv(p, q)
    }

    /// Emits `ln x` by Cephes' polynomial (`logf`) around 1.
    fn log(&mut self, x: Value) -> Value {
        let ty = self.builder.func.dfg.value_type(x);
        let whole = self.integers_like(ty);
        let [smallest, up, one, half] =
            [f64::from(f32::MIN_POSITIVE), 33_554_432.0, 1.0, 0.5].map(|value| self.float(value, ty));
        let tiny = self.builder.ins().fcmp(FloatCC::LessThan, x, smallest);
        let scaled = self.builder.ins().fmul(x, up);
        let normal = self.choose(tiny, scaled, x);
        let bits = self.bits(normal, whole);
        let [bias, moved] = [126, 126 + 25].map(|bias| self.integer(bias, whole));
        let bias = self.choose(tiny, moved, bias);
        let exponent = self.builder.ins().ushr_imm_u(bits, 23);
        let exponent = self.builder.ins().isub(exponent, bias);
        let exponent = self.builder.ins().fcvt_from_sint(ty, exponent);
        let [fraction, exponent_of_half] = [0x007f_ffff, 0x3f00_0000].map(|mask| self.integer(mask, whole));
        let fraction = self.builder.ins().band(bits, fraction);
        let fraction = self.builder.ins().bor(fraction, exponent_of_half);
        let fraction = self.bits(fraction, ty);
        let root = self.float(std::f64::consts::FRAC_1_SQRT_2, ty);
        let small = self.builder.ins().fcmp(FloatCC::LessThan, fraction, root);
        let less = self.builder.ins().fsub(exponent, one);
        let exponent = self.choose(small, less, exponent);
        let double = self.builder.ins().fadd(fraction, fraction);
        let fraction = self.choose(small, double, fraction);
        let m = self.builder.ins().fsub(fraction, one);
        let sum = self.horner(
            m,
            &[
                7.037_683_6e-2,
                -1.151_461e-1,
                1.167_699_87e-1,
                -1.242_014_1e-1,
                1.424_932_3e-1,
                -1.666_805_7e-1,
                2.000_071_4e-1,
                -2.499_999_4e-1,
                3.333_333e-1,
            ],
        );
        let square = self.builder.ins().fmul(m, m);
        let cubic = self.builder.ins().fmul(m, square);
        let [low, high] = [-2.121_944_4e-4, 0.693_359_375].map(|part| self.float(part, ty));
        let low = self.builder.ins().fmul(exponent, low);
        let rest = self.multiply_add(sum, cubic, low);
        let negative_half = self.builder.ins().fneg(half);
        let rest = self.multiply_add(square, negative_half, rest);
        let value = self.builder.ins().fadd(m, rest);
        let value = self.multiply_add(exponent, high, value);
        // The result is +∞ for +∞, −∞ for 0, and NaN for negative numbers and NaN.
        let [zero, infinity, nan] = [0.0, f64::INFINITY, f64::NAN].map(|value| self.float(value, ty));
        let finite = self.builder.ins().fcmp(FloatCC::LessThan, x, infinity);
        let value = self.choose(finite, value, x);
        let negative_infinity = self.builder.ins().fneg(infinity);
        let is_zero = self.builder.ins().fcmp(FloatCC::Equal, x, zero);
        let value = self.choose(is_zero, negative_infinity, value);
        let is_negative = self.builder.ins().fcmp(FloatCC::LessThan, x, zero);
        self.choose(is_negative, nan, value)
    }

    /// Emits whether an integer scalar is not 0, for conditions.
    pub(super) fn is_true(&mut self, value: Value) -> Value {
        self.builder.ins().icmp_imm_s(IntCC::NotEqual, value, 0)
    }
}
