//! Values of single expressions: operations, conversions and intrinsics for each kind of dtype.

use rx_base::DType;
use rx_base::name::name;
use rx_interp::run;
use rx_tensor::{Scalar, Tensor};
use rx_tir::{BinaryOp, Buffer, CompareOp, Expr, Intrinsic, Param, PrimFunc, Scope, Site, Stmt, UnaryOp};
use std::f64::consts::{E, FRAC_PI_3, FRAC_PI_4, FRAC_PI_6, LN_2, SQRT_2};

const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;

fn dtype(name: &str) -> DType {
    DType::parse(name).expect("a dtype")
}

/// Returns the value of an expression, by running a function that stores it.
fn value(expr: Expr) -> Scalar {
    let mut func = PrimFunc::new(name("value"));
    let dtype = expr.dtype();
    let buffer =
        Buffer { name: name("out"), dtype, shape: Vec::new(), strides: None, order: None, scope: Scope::Global };
    let buffer = func.add_buffer(buffer);
    func.params.push(Param::Buffer(buffer));
    func.body = Stmt::Store { buffer, indices: Vec::new(), value: expr, site: Site::default() };
    let mut out = [Tensor::zeros(dtype, &[]).expect("a scalar")];
    run(&func, &mut out, &[]).expect("a run");
    out[0].get(0).expect("an element")
}

fn int(value: i64, name: &str) -> Expr {
    Expr::Int { value, dtype: dtype(name) }
}

fn float(value: f64, name: &str) -> Expr {
    Expr::Float { value, dtype: dtype(name) }
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

fn unary(op: UnaryOp, value: Expr) -> Expr {
    Expr::Unary { op, value: Box::new(value) }
}

fn cast(value: Expr, name: &str) -> Expr {
    Expr::Cast { dtype: dtype(name), value: Box::new(value) }
}

/// Returns the value of an intrinsic with float arguments of this dtype.
fn call_in(name: &str, function: Intrinsic, args: &[f64]) -> f64 {
    let args = args.iter().map(|value| float(*value, name)).collect();
    value(Expr::call(function, args)).as_float()
}

fn call(function: Intrinsic, args: &[f64]) -> f64 {
    call_in("float32", function, args)
}

#[test]
fn each_operation_rounds_to_the_dtype_of_its_operands() {
    let sum = |a: f64, b: f64, name: &str| value(float(a, name) + float(b, name)).as_float();
    assert_eq!(sum(16_777_216.0, 1.0, "float32"), 16_777_216.0);
    assert_eq!(sum(16_777_216.0, 1.0, "float64"), 16_777_217.0);
    assert_eq!(sum(2048.0, 1.0, "float16"), 2048.0);
    assert_eq!(sum(256.0, 1.0, "bfloat16"), 256.0);
    assert_eq!(sum(16.0, 1.0, "float8_e4m3fn"), 16.0);
    assert_eq!(sum(60_000.0, 10_000.0, "float16"), INFINITY);
    // Computes `(2^24 + 1) - 2^24`: the first addition rounds away the 1.
    let big = float(16_777_216.0, "float32");
    assert_eq!(value(big.clone() + float(1.0, "float32") - big).as_float(), 0.0);
}

#[test]
fn integers_wrap_and_divide_as_their_dtype_says() {
    assert_eq!(value(binary(BinaryOp::Add, int(i64::from(i32::MAX), "int32"), int(1, "int32"))), Scalar::Int(-1 << 31));
    assert_eq!(value(binary(BinaryOp::Sub, int(0, "uint16"), int(1, "uint16"))), Scalar::Int(65_535));
    assert_eq!(value(binary(BinaryOp::FloorDiv, int(-7, "int32"), int(2, "int32"))), Scalar::Int(-4));
    assert_eq!(value(binary(BinaryOp::FloorMod, int(-7, "int32"), int(2, "int32"))), Scalar::Int(1));
    assert_eq!(value(binary(BinaryOp::TruncDiv, int(-7, "int32"), int(2, "int32"))), Scalar::Int(-3));
    assert_eq!(value(binary(BinaryOp::ShiftLeft, int(1, "int32"), int(31, "int32"))), Scalar::Int(-1 << 31));
    assert_eq!(value(binary(BinaryOp::FloorDiv, int(-2, "uint64"), int(2, "uint64"))), Scalar::Int(i64::MAX));
    assert_eq!(value(unary(UnaryOp::BitNot, int(1, "uint8"))), Scalar::Int(254));
    assert_eq!(value(unary(UnaryOp::Neg, int(-128, "int8"))), Scalar::Int(-128));
    assert_eq!(value(unary(UnaryOp::Not, int(1, "bool"))), Scalar::Int(0));
    assert_eq!(value(unary(UnaryOp::BitNot, int(1, "bool"))), Scalar::Int(0));
    assert_eq!(value(binary(BinaryOp::BitXor, int(1, "bool"), int(1, "bool"))), Scalar::Int(0));
}

#[test]
fn comparisons_are_unsigned_for_unsigned_and_false_for_nan() {
    let compare =
        |op, left, right| value(Expr::Compare { op, left: Box::new(left), right: Box::new(right) }).as_int() == Some(1);
    assert!(compare(CompareOp::Gt, int(-1, "uint64"), int(1, "uint64")));
    assert!(compare(CompareOp::Lt, int(-1, "int64"), int(1, "int64")));
    assert!(!compare(CompareOp::Eq, float(NAN, "float32"), float(NAN, "float32")));
    assert!(compare(CompareOp::Ne, float(NAN, "float32"), float(NAN, "float32")));
    assert!(compare(CompareOp::Eq, float(-0.0, "float32"), float(0.0, "float32")));
}

#[test]
fn conversions_are_those_of_c_and_defined_beyond_the_range() {
    assert_eq!(value(cast(float(-2.9, "float32"), "int32")), Scalar::Int(-2));
    assert_eq!(value(cast(float(1e20, "float32"), "int32")), Scalar::Int(i32::MAX.into()));
    assert_eq!(value(cast(float(NAN, "float32"), "int32")), Scalar::Int(0));
    assert_eq!(value(cast(float(0.5, "float32"), "bool")), Scalar::Int(1));
    assert_eq!(value(cast(int(256, "int32"), "bool")), Scalar::Int(1));
    assert_eq!(value(cast(int(300, "int32"), "int8")), Scalar::Int(44));
    assert_eq!(value(cast(int(-1, "int32"), "uint64")), Scalar::Int(-1));
    assert_eq!(value(cast(int(-1, "uint64"), "float64")), Scalar::Float(u64::MAX as f64));
    assert_eq!(value(cast(int(16_777_217, "int32"), "float32")), Scalar::Float(16_777_216.0));
    assert_eq!(value(cast(float(0.1, "float32"), "float64")), Scalar::Float(f64::from(0.1f32)));
    assert_eq!(value(cast(float(1.00390625, "float32"), "bfloat16")), Scalar::Float(1.0));
    assert_eq!(value(cast(int(1, "bool"), "float16")), Scalar::Float(1.0));
}

#[test]
fn bits_are_reinterpreted_between_dtypes_of_one_width() {
    let reinterpret = |from: Expr, to: &str| {
        value(Expr::Call { function: Intrinsic::Reinterpret, dtype: dtype(to), args: vec![from] })
    };
    assert_eq!(reinterpret(float(1.0, "float32"), "int32"), Scalar::Int(0x3f80_0000));
    assert_eq!(reinterpret(float(-1.0, "float32"), "uint32"), Scalar::Int(0xbf80_0000));
    assert_eq!(reinterpret(int(0x3f80_0000, "int32"), "float32"), Scalar::Float(1.0));
    assert_eq!(reinterpret(int(-1, "int16"), "uint16"), Scalar::Int(65_535));
    assert_eq!(reinterpret(float(1.0, "bfloat16"), "uint16"), Scalar::Int(0x3f80));
    assert_eq!(reinterpret(int(0x3c00, "uint16"), "float16"), Scalar::Float(1.0));
    assert_eq!(reinterpret(float(1.0, "bfloat16"), "float16"), Scalar::Float(1.875));
    assert_eq!(reinterpret(float(-0.0, "float64"), "int64"), Scalar::Int(i64::MIN));
}

#[test]
fn every_intrinsic_of_one_float_has_its_value() {
    use Intrinsic::*;
    for (function, argument, expected) in [
        (Abs, -2.5, 2.5),
        (Acos, 0.5, FRAC_PI_3),
        (Acosh, 2.0, 1.3169578969248166),
        (Asin, 0.5, FRAC_PI_6),
        (Asinh, 1.0, 0.881373587019543),
        (Atan, 1.0, FRAC_PI_4),
        (Atanh, 0.5, 0.5493061443340549),
        (Ceil, -1.5, -1.0),
        (Cos, 1.0, 0.5403023058681398),
        (Cosh, 1.0, 1.5430806348152437),
        (Erf, 0.5, 0.5204998778130465),
        (Exp, 1.0, E),
        (Exp10, 2.0, 100.0),
        (Exp2, 0.5, SQRT_2),
        (Floor, -1.5, -2.0),
        (Log, 2.0, LN_2),
        (Log10, 1000.0, 3.0),
        (Log1p, 1.0, LN_2),
        (Log2, 8.0, 3.0),
        (NearbyInt, 2.5, 2.0),
        (Round, -3.5, -4.0),
        (Round, 0.5, 0.0),
        (Rsqrt, 4.0, 0.5),
        (Sigmoid, 1.0, 0.7310585786300049),
        (Sin, 1.0, 0.8414709848078965),
        (Sinh, 1.0, 1.1752011936438014),
        (Sqrt, 2.0, SQRT_2),
        (Tan, 1.0, 1.557407724654902),
        (Tanh, 0.5, 0.46211715726000973),
        (Trunc, -1.7, -1.0),
    ] {
        // The arguments are exact in `float32`, except for −1.7, whose truncation is the same.
        assert_eq!(call(function, &[argument]), f64::from(expected as f32), "{}", function.name());
        let half = call_in("float16", function, &[argument]);
        assert!((half - expected).abs() <= 1e-3 * expected.abs(), "{} in float16: {half}", function.name());
    }
    assert_eq!(call(Sqrt, &[-1.0]).to_bits() & !(1 << 63), NAN.to_bits());
    assert_eq!(call(Log, &[0.0]), -INFINITY);
    assert_eq!(call(Sigmoid, &[-1000.0]), 0.0);
}

#[test]
fn every_intrinsic_of_two_floats_has_its_value() {
    use Intrinsic::*;
    for (function, a, b, expected) in [
        (Atan2, 1.0, -1.0, 2.356194490192345),
        (CopySign, 2.0, -0.0, -2.0),
        (Fmod, -7.5, 2.0, -1.5),
        (Hypot, 3.0, 4.0, 5.0),
        (Pow, 2.0, 0.5, SQRT_2),
        (Pow, -2.0, 3.0, -8.0),
        (Pow, 0.0, 0.0, 1.0),
    ] {
        assert_eq!(call(function, &[a, b]), f64::from(expected as f32), "{}", function.name());
    }
    assert!(call(Pow, &[-2.0, 0.5]).is_nan());
    assert_eq!(call(NextAfter, &[1.0, 2.0]), f64::from(1.0f32.next_up()));
    assert_eq!(call(NextAfter, &[-1.0, 2.0]), f64::from((-1.0f32).next_up()));
    assert_eq!(call(NextAfter, &[0.0, -1.0]), f64::from(0.0f32.next_down()));
    assert_eq!(call(NextAfter, &[3.0, 3.0]), 3.0);
    assert_eq!(call_in("float16", NextAfter, &[1.0, 2.0]), 1.0 + 1.0 / 1024.0);
    let ldexp = Expr::call(Ldexp, vec![float(1.5, "float32"), int(4, "int32")]);
    assert_eq!(value(ldexp), Scalar::Float(24.0));
}

#[test]
fn intrinsics_of_integers_and_questions() {
    use Intrinsic::*;
    let of = |function, args: Vec<Expr>| value(Expr::call(function, args));
    assert_eq!(of(Clz, vec![int(1, "int32")]), Scalar::Int(31));
    assert_eq!(of(Clz, vec![int(0, "int64")]), Scalar::Int(64));
    assert_eq!(of(Clz, vec![int(-1, "int16")]), Scalar::Int(0));
    assert_eq!(of(Popcount, vec![int(-1, "int32")]), Scalar::Int(32));
    assert_eq!(of(Popcount, vec![int(255, "uint8")]), Scalar::Int(8));
    assert_eq!(of(Abs, vec![int(-5, "int32")]), Scalar::Int(5));
    assert_eq!(of(Abs, vec![int(i64::from(i32::MIN), "int32")]), Scalar::Int(i32::MIN.into()));
    assert_eq!(of(Pow, vec![int(3, "int32"), int(4, "int32")]), Scalar::Int(81));
    assert_eq!(of(Fmod, vec![int(-7, "int32"), int(2, "int32")]), Scalar::Int(-1));
    assert_eq!(of(Floor, vec![int(-7, "int32")]), Scalar::Int(-7));
    for (argument, finite, infinite, nan) in [(1.0, 1, 0, 0), (-INFINITY, 0, 1, 0), (NAN, 0, 0, 1)] {
        assert_eq!(of(IsFinite, vec![float(argument, "float32")]), Scalar::Int(finite));
        assert_eq!(of(IsInf, vec![float(argument, "float16")]), Scalar::Int(infinite));
        assert_eq!(of(IsNan, vec![float(argument, "float64")]), Scalar::Int(nan));
    }
    assert_eq!(of(IsNan, vec![int(1, "int32")]), Scalar::Int(0));
}

#[test]
fn every_intrinsic_has_a_meaning_for_floats_or_integers() {
    for function in Intrinsic::ALL {
        let integer = matches!(function, Intrinsic::Clz | Intrinsic::Popcount);
        let mut args = vec![if integer { int(1, "int32") } else { float(0.5, "float32") }; function.arity()];
        if *function == Intrinsic::Ldexp {
            args[1] = int(1, "int32");
        }
        let _ = value(Expr::call(*function, args));
    }
}
