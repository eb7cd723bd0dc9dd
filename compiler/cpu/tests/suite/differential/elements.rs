//! Operations on single elements, over all dtypes.

use super::{COUNT, DTYPES, Numbers, agree, compiled, copies, elementwise, n, tolerance, zeros};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tensor::{Scalar, Tensor};
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic, IterKind, KernelBuilder, Stmt, UnaryOp};

#[test]
fn operations_of_two_operands() {
    use BinaryOp::*;
    let mut numbers = Numbers(1);
    for dtype in DTYPES {
        let ops: &[BinaryOp] = match dtype {
            dtype if dtype.is_bool() => &[And, Or, BitAnd, BitOr, BitXor],
            dtype if dtype.is_float() => &[Add, Sub, Mul, Div, Min, Max, FloorDiv],
            _ => &[Add, Sub, Mul, Min, Max, BitAnd, BitOr, BitXor, TruncDiv, TruncMod, FloorDiv, FloorMod],
        };
        let a = numbers.tensor(dtype, &[COUNT]);
        let mut b = numbers.tensor(dtype, &[COUNT]);
        for op in ops {
            let divides = matches!(op, Div | TruncDiv | TruncMod | FloorDiv | FloorMod);
            if divides && dtype.is_int() {
                for at in 0..b.len() {
                    if b.get(at) == Some(Scalar::Int(0)) {
                        b.set(at, Scalar::Int(1));
                    }
                }
            }
            let func = elementwise(dtype, dtype, dtype, |a, b| Expr::Binary {
                op: *op,
                left: Box::new(a),
                right: Box::new(b),
            });
            let tensors =
                [copies(std::slice::from_ref(&a)), copies(std::slice::from_ref(&b)), vec![zeros(dtype, &[COUNT])]];
            let tensors: Vec<Tensor> = tensors.into_iter().flatten().collect();
            agree(&format!("{op:?} of {dtype}"), &func, &tensors, &n(COUNT), tolerance(dtype));
        }
    }
}

#[test]
fn divisions_by_constants() {
    use BinaryOp::*;
    let mut numbers = Numbers(2);
    for dtype in [DType::INT8, DType::INT32, DType::INT64, DType::UINT8, DType::UINT64] {
        let a = numbers.tensor(dtype, &[COUNT]);
        for op in [TruncDiv, TruncMod, FloorDiv, FloorMod] {
            for divisor in [1, 2, 3, 7, 64, 100] {
                let func = elementwise(dtype, dtype, dtype, |a, _| Expr::Binary {
                    op,
                    left: Box::new(a),
                    right: Box::new(Expr::Int { value: divisor, dtype }),
                });
                let tensors =
                    [copies(std::slice::from_ref(&a)).remove(0), zeros(dtype, &[COUNT]), zeros(dtype, &[COUNT])];
                agree(&format!("{op:?} by {divisor} of {dtype}"), &func, &tensors, &n(COUNT), 0.0);
            }
        }
    }
}

#[test]
fn shifts() {
    let mut numbers = Numbers(3);
    for dtype in [DType::INT8, DType::INT32, DType::INT64, DType::UINT16, DType::UINT64] {
        for op in [BinaryOp::ShiftLeft, BinaryOp::ShiftRight] {
            for amount in [0, 1, 5, 31, 63, 200] {
                let func = elementwise(dtype, dtype, dtype, |a, _| Expr::Binary {
                    op,
                    left: Box::new(a),
                    right: Box::new(Expr::int(amount)),
                });
                let tensors = [numbers.tensor(dtype, &[COUNT]), zeros(dtype, &[COUNT]), zeros(dtype, &[COUNT])];
                agree(&format!("{op:?} by {amount} of {dtype}"), &func, &tensors, &n(COUNT), 0.0);
            }
        }
    }
}

#[test]
fn comparisons_and_choices() {
    use CompareOp::*;
    let mut numbers = Numbers(4);
    for dtype in DTYPES.into_iter().filter(|dtype| !dtype.is_bool()) {
        for op in [Eq, Ne, Lt, Le, Gt, Ge] {
            let mut tensors =
                [numbers.tensor(dtype, &[COUNT]), numbers.tensor(dtype, &[COUNT]), zeros(DType::BOOL, &[COUNT])];
            for at in (0..COUNT as usize).step_by(3) {
                if let Some(same) = tensors[0].get(at) {
                    tensors[1].set(at, same);
                }
            }
            if dtype.is_float() {
                tensors[0].set(4, Scalar::Float(f64::NAN));
            }
            let func = elementwise(dtype, dtype, DType::BOOL, |a, b| Expr::compare(op, a, b));
            agree(&format!("{op:?} of {dtype}"), &func, &tensors, &n(COUNT), 0.0);
            tensors[2] = zeros(dtype, &[COUNT]);
            let func =
                elementwise(dtype, dtype, dtype, |a, b| Expr::select(!Expr::compare(op, a.clone(), b.clone()), a, b));
            agree(&format!("choice by {op:?} of {dtype}"), &func, &tensors, &n(COUNT), 0.0);
        }
    }
}

#[test]
fn conversions() {
    let mut numbers = Numbers(5);
    for from in DTYPES {
        for to in DTYPES {
            let mut a = numbers.tensor(from, &[COUNT]);
            if from.is_float() {
                for (at, value) in [0.0, -0.5, 1e-3, 100.0, 70000.0, -1e6, 1e-7, 0.49].into_iter().enumerate() {
                    a.set(at, Scalar::Float(value));
                }
            }
            let func = elementwise(from, from, to, |a, _| a.cast(to));
            let tensors = [a, zeros(from, &[COUNT]), zeros(to, &[COUNT])];
            agree(&format!("{from} to {to}"), &func, &tensors, &n(COUNT), tolerance(to).min(1e-3));
        }
    }
}

#[test]
fn conversion_near_a_halfway_value_rounds_once() {
    for from in [DType::INT32, DType::INT64, DType::UINT32, DType::UINT64, DType::FLOAT64] {
        for to in [DType::FLOAT16, DType::BFLOAT16] {
            let mut a = zeros(from, &[COUNT]);
            for (at, bits) in (0..a.len()).zip((2..13).cycle()) {
                // A little more than halfway between two values of `bits` bits; `float32` loses the difference.
                let value = match from.is_float() {
                    true => Scalar::Float(1.0 + 2f64.powi(-bits) + 2f64.powi(-40)),
                    false => {
                        let one = 1i64 << (from.bits - 2);
                        Scalar::Int(one + (one >> bits) + 1)
                    }
                };
                a.set(at, value);
            }
            let func = elementwise(from, from, to, |a, _| a.cast(to));
            let tensors = [a, zeros(from, &[COUNT]), zeros(to, &[COUNT])];
            agree(&format!("{from} to {to}"), &func, &tensors, &n(COUNT), 0.0);
        }
    }
}

#[test]
fn operations_of_one_operand() {
    let mut numbers = Numbers(6);
    for dtype in DTYPES {
        let ops: &[UnaryOp] = match dtype {
            dtype if dtype.is_bool() => &[UnaryOp::Not],
            dtype if dtype.is_float() => &[UnaryOp::Neg],
            _ => &[UnaryOp::Neg, UnaryOp::BitNot],
        };
        for op in ops {
            let func = elementwise(dtype, dtype, dtype, |a, _| Expr::Unary { op: *op, value: Box::new(a) });
            let tensors = [numbers.tensor(dtype, &[COUNT]), zeros(dtype, &[COUNT]), zeros(dtype, &[COUNT])];
            agree(&format!("{op:?} of {dtype}"), &func, &tensors, &n(COUNT), 0.0);
        }
    }
}

#[test]
fn intrinsics_of_floats() {
    let mut numbers = Numbers(7);
    for dtype in [DType::FLOAT16, DType::BFLOAT16, DType::FLOAT32, DType::FLOAT64] {
        for function in Intrinsic::ALL {
            use Intrinsic::*;
            let skipped = matches!(function, Clz | Popcount | Reinterpret | Ldexp);
            // The adjacent value of a narrow float differs from that of the `float32` in which it is computed.
            if skipped || *function == NextAfter && dtype.bits == 16 {
                continue;
            }
            let result = match function {
                IsNan | IsInf | IsFinite => DType::BOOL,
                _ => dtype,
            };
            let mut a = numbers.tensor(dtype, &[COUNT]);
            let mut b = numbers.tensor(dtype, &[COUNT]);
            let special = [0.0, -0.0, 1.0, -1.0, 0.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 100.0, -100.0, 1e-4];
            for (at, value) in special.into_iter().enumerate() {
                a.set(at, Scalar::Float(value));
                b.set(at + 3, Scalar::Float(value));
            }
            let func = elementwise(dtype, dtype, result, |a, b| {
                let args = if function.arity() == 2 { vec![a, b] } else { vec![a] };
                Expr::call(*function, args)
            });
            let tensors = [a, b, zeros(result, &[COUNT])];
            let tolerance = tolerance(dtype).max(if dtype == DType::FLOAT64 { 1e-12 } else { 4e-7 });
            agree(&format!("{} of {dtype}", function.name()), &func, &tensors, &n(COUNT), tolerance);
        }
    }
}

#[test]
fn maximum_with_its_index_agrees_for_nan() {
    let mut builder = KernelBuilder::new(name("argmax"));
    let x = builder.param("x", &[Dim::from(4), Dim::from(COUNT)], DType::FLOAT32);
    let best = builder.param("best", &[Dim::from(4)], DType::FLOAT32);
    let place = builder.param("place", &[Dim::from(4)], DType::INT64);
    let loops = [(Expr::int(4), IterKind::Spatial), (Expr::int(COUNT), IterKind::Reduce)];
    builder.block("argmax", &loops, |builder, axes| {
        let row = &axes[..1];
        let stores = |value: Expr, at: Expr| {
            Stmt::seq([builder.store(best, row.to_vec(), value), builder.store(place, row.to_vec(), at)])
        };
        let (value, held) = (builder.load(x, axes), builder.load(best, row));
        let wins = Expr::compare(CompareOp::Gt, value.clone(), held);
        let lowest = Expr::number(f64::NEG_INFINITY, DType::FLOAT32);
        (Some(stores(lowest, Expr::int(-1))), Stmt::when(wins, stores(value, axes[1].clone())))
    });
    let mut data = Numbers(9).tensor(DType::FLOAT32, &[4, COUNT]);
    // The first element, a few of the second row, and all of the last one.
    for at in [0, 40, 45, 77].into_iter().chain(3 * COUNT as usize..4 * COUNT as usize) {
        data.set(at, Scalar::Float(f64::NAN));
    }
    let tensors = [data, zeros(DType::FLOAT32, &[4]), zeros(DType::INT64, &[4])];
    agree("argmax", &builder.finish(), &tensors, &[], 0.0);
}

#[test]
fn intrinsics_of_integers() {
    let mut numbers = Numbers(8);
    for dtype in [DType::INT8, DType::INT32, DType::INT64, DType::UINT32] {
        for function in [Intrinsic::Abs, Intrinsic::Popcount, Intrinsic::Clz, Intrinsic::Floor] {
            let func = elementwise(dtype, dtype, dtype, |a, _| Expr::call(function, vec![a]));
            let tensors = [numbers.tensor(dtype, &[COUNT]), zeros(dtype, &[COUNT]), zeros(dtype, &[COUNT])];
            agree(&format!("{} of {dtype}", function.name()), &func, &tensors, &n(COUNT), 0.0);
        }
    }
}

/// At 20,001 points of each range, the `float32` results differ from the exact ones by less than 3 · 2^-23 of the
/// value, or 3 of the smallest subnormal if that is more. Results that are the exact ones rounded to `float32` also
/// pass where these are infinite.
#[test]
fn polynomials_are_close_everywhere() {
    for (function, low, high) in [
        (Intrinsic::Exp, -110.0, 95.0),
        (Intrinsic::Tanh, -12.0, 12.0),
        (Intrinsic::Erf, -6.0, 6.0),
        // From about −104 to −88.7, `e^-x` is infinite in `float32`, although the exact result is not 0 but subnormal.
        (Intrinsic::Sigmoid, -85.0, 100.0),
        (Intrinsic::Log, 1e-42, 50.0),
    ] {
        let count = 20_001i64;
        let func = elementwise(DType::FLOAT32, DType::FLOAT32, DType::FLOAT32, |a, _| Expr::call(function, vec![a]));
        let values: Vec<f32> =
            (0..count).map(|at| (low + (high - low) * at as f64 / (count - 1) as f64) as f32).collect();
        let a = Tensor::from_f32s(&[count], &values).unwrap_or_else(|error| panic!("{error}"));
        let mut tensors = [a, zeros(DType::FLOAT32, &[count]), zeros(DType::FLOAT32, &[count])];
        compiled(&func, &mut tensors, &n(count)).unwrap_or_else(|error| panic!("{error}"));
        let results = tensors[2].as_slice::<f32>().unwrap_or(&[]);
        let mut worst = (0.0, 0.0);
        for (x, found) in values.iter().zip(results) {
            let x = f64::from(*x);
            let wanted = match function {
                Intrinsic::Exp => x.exp(),
                Intrinsic::Tanh => x.tanh(),
                Intrinsic::Erf => libm::erf(x),
                Intrinsic::Sigmoid => 1.0 / (1.0 + (-x).exp()),
                _ => x.ln(),
            };
            // Where the expected value is subnormal, the unit is the smallest subnormal.
            let unit = (wanted.abs() * f64::from(f32::EPSILON)).max(f64::from(f32::from_bits(1)));
            let off = if f64::from(wanted as f32) == f64::from(*found) {
                0.0
            } else {
                (wanted - f64::from(*found)).abs() / unit
            };
            if off.is_nan() || off > worst.0 {
                worst = (off, x);
            }
        }
        assert!(worst.0 < 3.0, "{}: {} units off at {}", function.name(), worst.0, worst.1);
    }
}
