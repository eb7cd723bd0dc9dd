//! *Sub-byte legalization*: computes with 4-bit dtypes in the bytes that store their elements.
//!
//! Before, with `A` of `int4`, `C` of `float4_e2m1fn`, `D` of `float32`:
//!
//! ```text
//! A[i] = A[i] + A[i]
//! D[i] = T.Cast("float32", C[i])
//! ```
//!
//! After, with `A` of `int8` and `C` of `uint8`, where `wrap(x)` is `x << 4 >> 4` and `decode` converts a code to
//! `float32`:
//!
//! ```text
//! A[i] = wrap(wrap(A[i]) + wrap(A[i]))
//! D[i] = decode(C[i])
//! ```
//!
//! Requires that a buffer stores one element in a byte, as tensors do. Guarantees the same values, and that no buffer,
//! variable or expression has a 4-bit dtype. Declines functions with deeply nested rounding to `float4_e2m1fn`.
//!
//! Reference: TVM `src/tir/transforms/unsupported_dtype_legalize.cc`, which does the same for `bfloat16` and `float8`.

use rx_base::DType;
use rx_base::dtype::TypeCode;
use rx_tir::rewrite::map_stmt_shallow;
use rx_tir::{BinaryOp, Expr, Intrinsic, PrimFunc, Stmt, UnaryOp};
use std::borrow::Cow;

/// The maximum nesting depth of roundings to `float4_e2m1fn`. [`round`] repeats its operand several times, so the size
/// of an expression grows exponentially with this depth.
const DEEPEST: usize = 2;

/// Legalizes a function. Returns it unchanged if it has no 4-bit dtypes or is declined.
pub fn legalize_sub_byte(func: &PrimFunc) -> Cow<'_, PrimFunc> {
    let mut parts = Parts::default();
    parts.has |= func.vars.iter().any(|var| Kind::of(var.dtype).is_some());
    parts.has |= func.buffers.iter().any(|buffer| Kind::of(buffer.dtype).is_some());
    func.body.walk(&mut |stmt| {
        for expr in stmt.expressions() {
            parts.look(expr);
        }
    });
    if !parts.has || parts.deepest > DEEPEST {
        return Cow::Borrowed(func);
    }
    let mut legal = PrimFunc { body: stmt(func, &func.body), ..func.clone() };
    legal.vars.iter_mut().for_each(|var| var.dtype = computed(var.dtype));
    legal.buffers.iter_mut().for_each(|buffer| buffer.dtype = held(buffer.dtype));
    Cow::Owned(legal)
}

/// A 4-bit dtype: `int4`, `uint4` or `float4_e2m1fn`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Float,
}

impl Kind {
    fn of(dtype: DType) -> Option<Kind> {
        match (dtype.code, dtype.bits, dtype.lanes) {
            (TypeCode::Int, 4, 1) => Some(Kind::Signed),
            (TypeCode::UInt, 4, 1) => Some(Kind::Unsigned),
            (TypeCode::Float4E2M1Fn, 4, 1) => Some(Kind::Float),
            _ => None,
        }
    }
}

/// Returns the dtype of arithmetic on values of `dtype`.
fn computed(dtype: DType) -> DType {
    match Kind::of(dtype) {
        Some(Kind::Float) => DType::FLOAT32,
        _ => held(dtype),
    }
}

/// Returns the dtype that stores an element of `dtype`.
fn held(dtype: DType) -> DType {
    match Kind::of(dtype) {
        Some(Kind::Signed) => DType::INT8,
        Some(Kind::Unsigned | Kind::Float) => DType::UINT8,
        None => dtype,
    }
}

/// Whether a function uses 4-bit dtypes, and an upper bound of the nesting depth of its roundings to `float4_e2m1fn`.
#[derive(Default)]
struct Parts {
    has: bool,
    deepest: usize,
}

impl Parts {
    /// Analyzes an expression. Returns an upper bound of the nesting depth of its roundings to `float4_e2m1fn`: casts
    /// and calls that do not round count, too.
    fn look(&mut self, expr: &Expr) -> usize {
        let inner = expr.children().into_iter().map(|child| self.look(child)).max().unwrap_or(0);
        let kind = Kind::of(expr.dtype());
        self.has |= kind.is_some();
        let rounds = match expr {
            Expr::Cast { .. } | Expr::Call { .. } => true,
            Expr::Binary { op, .. } => !matches!(op, BinaryOp::Min | BinaryOp::Max),
            _ => false,
        };
        let depth = inner + usize::from(rounds && kind == Some(Kind::Float));
        self.deepest = self.deepest.max(depth);
        depth
    }
}

fn stmt(func: &PrimFunc, of: &Stmt) -> Stmt {
    match map_stmt_shallow(of, &mut expr, &mut |inner| stmt(func, inner)) {
        Stmt::Store { buffer, indices, value, site } if Kind::of(func.buffer(buffer).dtype) == Some(Kind::Float) => {
            Stmt::Store { buffer, indices, value: encode(value), site }
        }
        other => other,
    }
}

/// Rewrites an expression to the dtypes of arithmetic. Its 4-bit integers stay in the range of their 4-bit dtype, and
/// its 4-bit floats are `float32` values of `float4_e2m1fn`.
fn expr(of: &Expr) -> Expr {
    let kind = Kind::of(of.dtype());
    let made = match of {
        Expr::Int { value, dtype } => return Expr::Int { value: dtype.wrap(*value), dtype: computed(*dtype) },
        Expr::Float { value, .. } if kind.is_some() => return float(nearest(*value), DType::FLOAT32),
        Expr::Float { .. } => return of.clone(),
        Expr::Var { var, dtype } => return Expr::Var { var: *var, dtype: computed(*dtype) },
        Expr::Load { buffer, dtype, indices } => {
            let load = Expr::Load { buffer: *buffer, dtype: held(*dtype), indices: indices.iter().map(expr).collect() };
            return match kind {
                Some(Kind::Float) => decode(load),
                Some(kind) => wrap(kind, load),
                None => load,
            };
        }
        Expr::Cast { dtype, value } => return cast(*dtype, value),
        Expr::Unary { op, value } => Expr::Unary { op: *op, value: Box::new(expr(value)) },
        Expr::Binary { op, left, right } => Expr::binary(*op, expr(left), expr(right)),
        Expr::Compare { op, left, right } => return Expr::compare(*op, expr(left), expr(right)),
        Expr::Select { condition, then, otherwise } => {
            return Expr::select(expr(condition), expr(then), expr(otherwise));
        }
        Expr::Call { function: Intrinsic::Reinterpret, dtype, args } => return reinterpret(*dtype, args),
        Expr::Call { function: function @ (Intrinsic::Clz | Intrinsic::Popcount), dtype, args } => {
            return count_bits(*function, *dtype, args);
        }
        Expr::Call { function, dtype, args } => {
            Expr::Call { function: *function, dtype: computed(*dtype), args: args.iter().map(expr).collect() }
        }
        Expr::Checked { index, extent, buffer, axis, site } => {
            let (index, extent) = (Box::new(expr(index)), Box::new(expr(extent)));
            return Expr::Checked { index, extent, buffer: *buffer, axis: *axis, site: *site };
        }
    };
    let keeps_range = match of {
        Expr::Unary { op: UnaryOp::Neg, .. } => kind == Some(Kind::Float),
        Expr::Binary { op, .. } => matches!(op, BinaryOp::Min | BinaryOp::Max),
        _ => false,
    };
    match kind {
        Some(Kind::Float) if !keeps_range => round(made),
        Some(kind @ (Kind::Signed | Kind::Unsigned)) if !keeps_range => wrap(kind, made),
        _ => made,
    }
}

/// Rewrites a cast. In a cast to a 4-bit integer dtype, floats are truncated and clamped to its range, and integers
/// keep their low 4 bits. In a cast to `float4_e2m1fn`, the value is rounded.
fn cast(dtype: DType, value: &Expr) -> Expr {
    let (from, inner) = (value.dtype(), expr(value));
    match Kind::of(dtype) {
        None => inner.cast(dtype),
        Some(_) if from == dtype => inner,
        Some(Kind::Float) => {
            let wide = if from == DType::FLOAT64 { inner } else { inner.cast(DType::FLOAT32) };
            round(wide).cast(DType::FLOAT32)
        }
        Some(kind) if from.is_float() => {
            let (low, high) = if kind == Kind::Signed { (-8, 7) } else { (0, 15) };
            let number = |value| Expr::Int { value, dtype: held(dtype) };
            inner.cast(held(dtype)).max(number(low)).min(number(high))
        }
        Some(kind) => wrap(kind, inner.cast(held(dtype))),
    }
}

/// Rewrites a reinterpretation of bits.
fn reinterpret(dtype: DType, args: &[Expr]) -> Expr {
    let bits = args.iter().map(|arg| match Kind::of(arg.dtype()) {
        Some(Kind::Float) => encode(expr(arg)),
        _ => expr(arg),
    });
    let mut bits: Vec<Expr> = bits.collect();
    match (Kind::of(dtype), bits.pop()) {
        (Some(Kind::Float), Some(bits)) => decode(bits.cast(DType::UINT8)),
        (Some(kind), Some(bits)) => wrap(kind, bits.cast(held(dtype))),
        (None, bits) => {
            let args = bits.into_iter().collect();
            Expr::Call { function: Intrinsic::Reinterpret, dtype, args }
        }
        (Some(_), None) => Expr::Int { value: 0, dtype: held(dtype) },
    }
}

/// Rewrites a count of set bits or leading zeros. For a 4-bit operand, the 4 upper bits of its byte do not count.
fn count_bits(function: Intrinsic, dtype: DType, args: &[Expr]) -> Expr {
    let is_narrow = args.iter().any(|arg| Kind::of(arg.dtype()).is_some());
    let low = |arg: &Expr| match Kind::of(arg.dtype()) {
        Some(_) => wrap(Kind::Unsigned, expr(arg).cast(DType::UINT8)),
        None => expr(arg),
    };
    let dtype = computed(dtype);
    let args: Vec<Expr> = args.iter().map(low).collect();
    // The count of a 4-bit operand is computed in `uint8`, and then cast.
    let own = if is_narrow { DType::UINT8 } else { dtype };
    let count = Expr::Call { function, dtype: own, args };
    match function {
        Intrinsic::Clz if is_narrow => (count - Expr::Int { value: 4, dtype: own }).cast(dtype),
        _ => count.cast(dtype),
    }
}

/// Sign-extends (`int4`) or zero-extends the low 4 bits of an 8-bit integer.
fn wrap(kind: Kind, value: Expr) -> Expr {
    let dtype = value.dtype();
    let number = |value| Expr::Int { value, dtype };
    if let Some(known) = value.as_int() {
        return number(if kind == Kind::Signed { known << 60 >> 60 } else { known & 15 });
    }
    match kind {
        Kind::Signed => {
            let high = Expr::binary(BinaryOp::ShiftLeft, value, number(4));
            Expr::binary(BinaryOp::ShiftRight, high, number(4))
        }
        Kind::Unsigned | Kind::Float => Expr::binary(BinaryOp::BitAnd, value, number(15)),
    }
}

fn float(value: f64, dtype: DType) -> Expr {
    Expr::Float { value, dtype }
}

/// Computes [`round`] for a constant.
fn nearest(value: f64) -> f64 {
    let held = if value.is_nan() { 6.0 } else { value.clamp(-6.0, 6.0) };
    let step = match held.abs() {
        small if small < 2.0 => 0.5,
        middle if middle < 4.0 => 1.0,
        _ => 2.0,
    };
    (held / step).round_ties_even() * step
}

/// Rounds to the nearest value of `float4_e2m1fn`, ties to even, in the operand's dtype. Values are 0.5 apart below 2,
/// 1 apart below 4, and 2 apart up to 6. Larger magnitudes saturate at ±6, and NaN becomes 6.
fn round(value: Expr) -> Expr {
    let dtype = value.dtype();
    if let Expr::Float { value, .. } = value {
        return float(nearest(value), dtype);
    }
    let number = |value| float(value, dtype);
    // `min` of NaN and 6 is 6 here, so NaN becomes the largest value.
    let held = value.min(number(6.0)).max(number(-6.0));
    let nearest = |value: Expr| Expr::call(Intrinsic::NearbyInt, vec![value]);
    let below = |limit| Expr::call(Intrinsic::Abs, vec![held.clone()]).lt(number(limit));
    let twice = nearest(held.clone() * number(2.0)) * number(0.5);
    let half = nearest(held.clone() * number(0.5)) * number(2.0);
    Expr::select(below(2.0), twice, Expr::select(below(4.0), nearest(held.clone()), half))
}

/// 2¹²⁶. Dividing a `float32` by it aligns the exponent with that of `float4_e2m1fn`: the code's bits are then the
/// sign, the two lowest exponent bits and the highest fraction bit of the `float32`.
const SCALE: f64 = 85_070_591_730_234_615_865_843_651_857_942_052_864.0;

/// Encodes a `float32` that is a value of `float4_e2m1fn` as a `uint8` code.
fn encode(value: Expr) -> Expr {
    let number = |value| Expr::Int { value, dtype: DType::UINT32 };
    let scaled = value * float(1.0 / SCALE, DType::FLOAT32);
    let bits = Expr::Call { function: Intrinsic::Reinterpret, dtype: DType::UINT32, args: vec![scaled] };
    let part = |shift, mask| {
        let shifted = Expr::binary(BinaryOp::ShiftRight, bits.clone(), number(shift));
        Expr::binary(BinaryOp::BitAnd, shifted, number(mask))
    };
    Expr::binary(BinaryOp::BitOr, part(28, 8), part(22, 7)).cast(DType::UINT8)
}

/// Decodes a `uint8` code to `float32`.
fn decode(code: Expr) -> Expr {
    const SIGN_EXPONENT_AND_FRACTION: i64 = 0x81c0_0000u32.cast_signed() as i64;
    let number = |value| Expr::Int { value, dtype: DType::INT32 };
    // The arithmetic right shift moves exponent and fraction to the bits 24 to 22, and fills the bits 30 to 25 with
    // copies of the sign in bit 31. The mask clears these copies.
    let high = Expr::binary(BinaryOp::ShiftLeft, code.cast(DType::INT32), number(28));
    let placed = Expr::binary(BinaryOp::ShiftRight, high, number(6));
    let bits = Expr::binary(BinaryOp::BitAnd, placed, number(SIGN_EXPONENT_AND_FRACTION));
    let scaled = Expr::Call { function: Intrinsic::Reinterpret, dtype: DType::FLOAT32, args: vec![bits] };
    scaled * float(SCALE, DType::FLOAT32)
}
