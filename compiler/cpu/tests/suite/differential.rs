//! Handwritten functions, compiled, and most of them compared with the interpreter.

use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cpu::{Argument, CompileError, CpuModule, RunError, Scratch};
use rx_tensor::{Scalar, Tensor};
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic, IterKind, KernelBuilder, PrimFunc, Stmt, UnaryOp};

fn compiled(func: &PrimFunc, tensors: &mut [Tensor], scalars: &[Scalar]) -> Result<(), RunError> {
    let module = CpuModule::compile(&[func]).unwrap_or_else(|error| panic!("{error}"));
    let kernel = module.kernel(0).unwrap_or_else(|error| panic!("{error}"));
    let shapes: Vec<Vec<i64>> = tensors.iter().map(|tensor| tensor.shape().to_vec()).collect();
    let shapes: Vec<&[i64]> = shapes.iter().map(Vec::as_slice).collect();
    let mut arguments: Vec<Argument<'_>> =
        tensors.iter_mut().map(|tensor| Argument::Write(tensor.bytes_mut())).collect();
    kernel.run(&mut arguments, &shapes, scalars, &mut Scratch::default())
}

fn copies(tensors: &[Tensor]) -> Vec<Tensor> {
    tensors.iter().map(|tensor| tensor.duplicate().unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// Runs a function both interpreted and compiled, and compares every buffer. Integers must be equal. Floats may differ
/// by `tolerance * max(|expected|, least)`, where `least` is 1e-6, or 1 for tolerances above 1e-5: if the terms of a
/// sum cancel, its error is large relative to the result.
fn agree(title: &str, func: &PrimFunc, tensors: &[Tensor], scalars: &[Scalar], tolerance: f64) {
    let least = if tolerance > 1e-5 { 1.0 } else { 1e-6 };
    let (mut expected, mut actual) = (copies(tensors), copies(tensors));
    let reference = rx_interp::run(func, &mut expected, scalars);
    reference.unwrap_or_else(|error| panic!("{title}: interpreter: {error}"));
    compiled(func, &mut actual, scalars).unwrap_or_else(|error| panic!("{title}: {error}"));
    for (at, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
        for element in 0..expected.len() {
            let (Some(wanted), Some(found)) = (expected.get(element), actual.get(element)) else { continue };
            let close = match (wanted, found) {
                (Scalar::Int(wanted), Scalar::Int(found)) => wanted == found,
                (wanted, found) => {
                    let (wanted, found) = (wanted.as_float(), found.as_float());
                    wanted == found
                        || wanted.is_nan() && found.is_nan()
                        || wanted.is_finite() && (wanted - found).abs() <= tolerance * wanted.abs().max(least)
                }
            };
            assert!(close, "{title}: buffer {at}, element {element}: {found:?}, not {wanted:?}");
        }
    }
}

const DTYPES: [DType; 13] = [
    DType::BOOL,
    DType::INT8,
    DType::INT16,
    DType::INT32,
    DType::INT64,
    DType::UINT8,
    DType::UINT16,
    DType::UINT32,
    DType::UINT64,
    DType::FLOAT16,
    DType::BFLOAT16,
    DType::FLOAT32,
    DType::FLOAT64,
];

/// A pseudorandom number generator; the number is its state, at first the seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn float(&mut self) -> f64 {
        self.next() as f64 / f64::from(1u32 << 31) * 8.0 - 4.0
    }

    /// Returns a tensor of random numbers: floats from −4 to 4, and integers below 2^51 that wrap to the dtype.
    fn tensor(&mut self, dtype: DType, shape: &[i64]) -> Tensor {
        let mut tensor = zeros(dtype, shape);
        for at in 0..tensor.len() {
            let value = match dtype.is_float() {
                true => Scalar::Float(self.float()),
                false => Scalar::Int(dtype.wrap((self.next() << 20 ^ self.next()) as i64)),
            };
            tensor.set(at, value);
        }
        tensor
    }
}

fn zeros(dtype: DType, shape: &[i64]) -> Tensor {
    Tensor::zeros(dtype, shape).unwrap_or_else(|error| panic!("{error}"))
}

/// `C[i] = value(A[i], B[i])` for `n` elements, `n` symbolic.
fn elementwise(a: DType, b: DType, c: DType, value: impl Fn(Expr, Expr) -> Expr) -> PrimFunc {
    let n = Dim::from(rx_base::symbolic::Atom::Symbol(name("n")));
    let mut builder = KernelBuilder::new(name("elementwise"));
    let a = builder.param("A", std::slice::from_ref(&n), a);
    let b = builder.param("B", std::slice::from_ref(&n), b);
    let c = builder.param("C", std::slice::from_ref(&n), c);
    builder.compute(c, |builder, axes| value(builder.load(a, axes), builder.load(b, axes)));
    builder.finish()
}

/// The scalar arguments: the value of `n`.
fn n(value: i64) -> [Scalar; 1] {
    [Scalar::Int(value)]
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::FLOAT16 => 2e-3,
        DType::BFLOAT16 => 2e-2,
        _ => 1e-6,
    }
}

/// The number of elements. With vectors of 4 lanes and an unroll factor of 4, these are two iterations of 16 elements,
/// one of 4 and a remainder of 3. With 2 lanes, they are four iterations of 8, three of 2 and a remainder of 1.
const COUNT: i64 = 39;

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

fn reduction(dtype: DType, rows: i64, columns: i64, op: BinaryOp, initial: f64, over_rows: bool) -> PrimFunc {
    let [rows, columns] = [rows, columns].map(Dim::from);
    let mut builder = KernelBuilder::new(name("reduction"));
    let a = builder.param("A", &[rows.clone(), columns.clone()], dtype);
    let kept = if over_rows { columns.clone() } else { rows.clone() };
    let reduced = if over_rows { rows } else { columns };
    let c = builder.param("C", std::slice::from_ref(&kept), dtype);
    let (kept, reduced) = (builder.dim(&kept), builder.dim(&reduced));
    builder.reduce(c, &[kept], &[reduced], Expr::number(initial, dtype), op, |builder, axes, reduced| {
        let indices = match over_rows {
            true => [reduced[0].clone(), axes[0].clone()],
            false => [axes[0].clone(), reduced[0].clone()],
        };
        (axes.to_vec(), builder.load(a, &indices))
    });
    builder.finish()
}

#[test]
fn reductions_of_rows_and_columns() {
    let mut numbers = Numbers(9);
    for dtype in [DType::FLOAT32, DType::FLOAT64, DType::INT32, DType::INT64, DType::INT8, DType::FLOAT16] {
        for (op, initial) in [(BinaryOp::Add, 0.0), (BinaryOp::Max, -100.0), (BinaryOp::Min, 100.0)] {
            for (rows, columns) in [(5, 39), (39, 5), (1, 64), (3, 7), (17, 17)] {
                for over_rows in [false, true] {
                    let func = reduction(dtype, rows, columns, op, initial, over_rows);
                    let kept = if over_rows { columns } else { rows };
                    let tensors = [numbers.tensor(dtype, &[rows, columns]), zeros(dtype, &[kept])];
                    let title = format!("{op:?} of {dtype}, {rows}×{columns}, over rows: {over_rows}");
                    let tolerance = if dtype == DType::FLOAT16 { 5e-2 } else { 1e-4 };
                    agree(&title, &func, &tensors, &[], tolerance);
                }
            }
        }
    }
}

/// Softmax as four loop nests: maximum, exponentials, sum and quotient. The first three store to temporaries.
#[test]
fn softmax() {
    let symbol = |text| Dim::from(rx_base::symbolic::Atom::Symbol(name(text)));
    let shape = [symbol("m"), symbol("n")];
    let mut builder = KernelBuilder::new(name("softmax"));
    let x = builder.param("X", &shape, DType::FLOAT32);
    let y = builder.param("Y", &shape, DType::FLOAT32);
    let largest = builder.temporary("largest", &shape[..1], DType::FLOAT32);
    let powers = builder.temporary("powers", &shape, DType::FLOAT32);
    let sums = builder.temporary("sums", &shape[..1], DType::FLOAT32);
    let (m, width) = (builder.dim(&shape[0]), builder.dim(&shape[1]));
    let lowest = Expr::number(f64::from(f32::MIN), DType::FLOAT32);
    let rows = std::slice::from_ref(&m);
    let columns = std::slice::from_ref(&width);
    builder.reduce(largest, rows, columns, lowest, BinaryOp::Max, |builder, axes, reduced| {
        (axes.to_vec(), builder.load(x, &[axes[0].clone(), reduced[0].clone()]))
    });
    builder.compute(powers, |builder, axes| {
        let shifted = builder.load(x, axes) - builder.load(largest, &axes[..1]);
        Expr::call(Intrinsic::Exp, vec![shifted])
    });
    let zero = Expr::number(0.0, DType::FLOAT32);
    builder.reduce(sums, rows, columns, zero, BinaryOp::Add, |builder, axes, reduced| {
        (axes.to_vec(), builder.load(powers, &[axes[0].clone(), reduced[0].clone()]))
    });
    builder.compute(y, |builder, axes| builder.load(powers, axes) / builder.load(sums, &axes[..1]));
    let func = builder.finish();
    let mut numbers = Numbers(10);
    for (m, n) in [(3, 50), (50, 3), (1, 1), (0, 5), (4, 0)] {
        let tensors = [numbers.tensor(DType::FLOAT32, &[m, n]), zeros(DType::FLOAT32, &[m, n])];
        agree("softmax", &func, &tensors, &[Scalar::Int(m), Scalar::Int(n)], 1e-5);
    }
}

/// Max pooling and depthwise convolution. With padding, loads are in range only under a condition.
#[test]
fn windows_with_padding() {
    let mut numbers = Numbers(11);
    for (stride, padding, size, kernel) in [(1, 1, 20, 3), (2, 1, 21, 3), (1, 0, 9, 2), (3, 2, 30, 5)] {
        let out = (size + 2 * padding - kernel) / stride + 1;
        for op in [BinaryOp::Max, BinaryOp::Add] {
            let mut builder = KernelBuilder::new(name("window"));
            let x = builder.param("X", &[Dim::from(2), Dim::from(size), Dim::from(size)], DType::FLOAT32);
            let w = builder.param("W", &[Dim::from(2), Dim::from(kernel), Dim::from(kernel)], DType::FLOAT32);
            let y = builder.param("Y", &[Dim::from(2), Dim::from(out), Dim::from(out)], DType::FLOAT32);
            let extents = builder.shape(y);
            let window = [Expr::int(kernel), Expr::int(kernel)];
            let initial = Expr::number(if op == BinaryOp::Max { -1e9 } else { 0.0 }, DType::FLOAT32);
            builder.reduce(y, &extents, &window, initial.clone(), op, |builder, axes, reduced| {
                let at: Vec<Expr> = (0..2)
                    .map(|axis| axes[axis + 1].clone() * Expr::int(stride) + reduced[axis].clone() - Expr::int(padding))
                    .collect();
                let inside = in_range(at[0].clone(), Expr::int(0), Expr::int(size)).and(in_range(
                    at[1].clone(),
                    Expr::int(0),
                    Expr::int(size),
                ));
                let element = builder.load(x, &[axes[0].clone(), at[0].clone(), at[1].clone()]);
                let weight = builder.load(w, &[axes[0].clone(), reduced[0].clone(), reduced[1].clone()]);
                let value = if op == BinaryOp::Add { element * weight } else { element };
                (axes.to_vec(), Expr::select(inside, value, initial))
            });
            let func = builder.finish();
            let tensors = [
                numbers.tensor(DType::FLOAT32, &[2, size, size]),
                numbers.tensor(DType::FLOAT32, &[2, kernel, kernel]),
                zeros(DType::FLOAT32, &[2, out, out]),
            ];
            agree(&format!("window {stride} {padding} {size} {kernel} {op:?}"), &func, &tensors, &[], 1e-4);
        }
    }
}

#[test]
fn transposed_reversed_and_gathered() {
    let mut numbers = Numbers(12);
    let mut builder = KernelBuilder::new(name("gather"));
    let x = builder.param("X", &[Dim::from(9), Dim::from(23)], DType::FLOAT32);
    let rows = builder.param("rows", &[Dim::from(6)], DType::INT64);
    let y = builder.param("Y", &[Dim::from(6), Dim::from(23)], DType::FLOAT32);
    let z = builder.param("Z", &[Dim::from(23), Dim::from(9)], DType::FLOAT32);
    let r = builder.param("R", &[Dim::from(23)], DType::FLOAT32);
    builder.compute(y, |builder, axes| {
        let row = builder.load(rows, &axes[..1]);
        builder.load(x, &[row, axes[1].clone()])
    });
    builder.compute(z, |builder, axes| {
        builder.load(x, &[axes[1].clone(), axes[0].clone()]) * Expr::number(2.0, DType::FLOAT32)
    });
    builder.compute(r, |builder, axes| builder.load(x, &[Expr::int(3), Expr::int(22) - axes[0].clone()]));
    let func = builder.finish();
    let mut tensors = [
        numbers.tensor(DType::FLOAT32, &[9, 23]),
        zeros(DType::INT64, &[6]),
        zeros(DType::FLOAT32, &[6, 23]),
        zeros(DType::FLOAT32, &[23, 9]),
        zeros(DType::FLOAT32, &[23]),
    ];
    for (at, row) in [8, 0, 3, 3, 7, 1].into_iter().enumerate() {
        tensors[1].set(at, Scalar::Int(row));
    }
    agree("gather", &func, &tensors, &[], 0.0);
    tensors[1].set(2, Scalar::Int(9));
    let error = compiled(&func, &mut tensors, &[]);
    match error {
        Err(RunError::OutOfBounds { buffer, index: 9, extent: 9, axis: 0, .. }) => assert_eq!(buffer.as_str(), "X"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_running_sum_is_not_reordered() {
    let mut numbers = Numbers(13);
    let mut builder = KernelBuilder::new(name("cumsum"));
    let x = builder.param("X", &[Dim::from(40)], DType::FLOAT32);
    let y = builder.param("Y", &[Dim::from(40)], DType::FLOAT32);
    builder.block("cumsum", &[(Expr::int(40), IterKind::Ordered)], |builder, axes| {
        let at = axes[0].clone();
        let before = builder.load(y, &[at.clone() - Expr::int(1)]);
        let before = Expr::select(at.clone().ge(Expr::int(1)), before, Expr::number(0.0, DType::FLOAT32));
        (None, builder.store(y, vec![at.clone()], before + builder.load(x, &[at])))
    });
    let func = builder.finish();
    agree("cumsum", &func, &[numbers.tensor(DType::FLOAT32, &[40]), zeros(DType::FLOAT32, &[40])], &[], 1e-6);
}

#[test]
fn matrix_products() {
    let mut numbers = Numbers(14);
    for (batch, m, n, k) in [(1, 17, 19, 23), (3, 1, 40, 33), (2, 40, 1, 33), (1, 1, 1, 5), (2, 64, 64, 64)] {
        for (a_turned, b_turned) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut builder = KernelBuilder::new(name("matmul"));
            let shape = |rows: i64, columns: i64, turned: bool| match turned {
                false => [batch, rows, columns],
                true => [batch, columns, rows],
            };
            let (a_shape, b_shape) = (shape(m, k, a_turned), shape(k, n, b_turned));
            let a = builder.param("A", &a_shape.map(Dim::from), DType::FLOAT32);
            let b = builder.param("B", &b_shape.map(Dim::from), DType::FLOAT32);
            let c = builder.param("C", &[batch, m, n].map(Dim::from), DType::FLOAT32);
            let extents = builder.shape(c);
            let zero = Expr::number(0.0, DType::FLOAT32);
            builder.reduce(c, &extents, &[Expr::int(k)], zero, BinaryOp::Add, |builder, axes, reduced| {
                let element = |builder: &KernelBuilder, buffer, row: &Expr, column: &Expr, turned| {
                    let [row, column] = if turned { [column, row] } else { [row, column] };
                    builder.load(buffer, &[axes[0].clone(), row.clone(), column.clone()])
                };
                let left = element(builder, a, &axes[1], &reduced[0], a_turned);
                let right = element(builder, b, &reduced[0], &axes[2], b_turned);
                (axes.to_vec(), left * right)
            });
            let func = builder.finish();
            let tensors = [
                numbers.tensor(DType::FLOAT32, &a_shape),
                numbers.tensor(DType::FLOAT32, &b_shape),
                zeros(DType::FLOAT32, &[batch, m, n]),
            ];
            agree(&format!("{batch}×{m}×{n}×{k} {a_turned} {b_turned}"), &func, &tensors, &[], 1e-3);
        }
    }
}

/// If `turned`, the right factor is stored transposed.
#[test]
fn products_of_integers_and_narrow_floats() {
    let mut numbers = Numbers(15);
    for (dtype, sum) in [(DType::INT8, DType::INT32), (DType::INT32, DType::INT32), (DType::FLOAT16, DType::FLOAT32)] {
        for turned in [false, true] {
            let mut builder = KernelBuilder::new(name("matmul"));
            let a = builder.param("A", &[9, 21].map(Dim::from), dtype);
            let b_shape = if turned { [37, 21] } else { [21, 37] };
            let b = builder.param("B", &b_shape.map(Dim::from), dtype);
            let c = builder.param("C", &[9, 37].map(Dim::from), sum);
            let (extents, zero) = (builder.shape(c), Expr::number(0.0, sum));
            builder.reduce(c, &extents, &[Expr::int(21)], zero, BinaryOp::Add, |builder, axes, reduced| {
                let left = builder.load(a, &[axes[0].clone(), reduced[0].clone()]);
                let [row, column] = if turned { [&axes[1], &reduced[0]] } else { [&reduced[0], &axes[1]] };
                let right = builder.load(b, &[row.clone(), column.clone()]);
                (axes.to_vec(), left.cast(sum) * right.cast(sum))
            });
            let func = builder.finish();
            let tensors = [numbers.tensor(dtype, &[9, 21]), numbers.tensor(dtype, &b_shape), zeros(sum, &[9, 37])];
            agree(&format!("product of {dtype}, turned: {turned}"), &func, &tensors, &[], 1e-4);
        }
    }
}

/// Concatenation: a condition on the loop variable selects the operand to read.
#[test]
fn operands_joined_end_to_end() {
    let mut numbers = Numbers(16);
    for (left, right) in [(20, 33), (1, 40), (40, 1), (3, 4)] {
        let mut builder = KernelBuilder::new(name("concat"));
        let a = builder.param("A", &[3, left].map(Dim::from), DType::FLOAT32);
        let b = builder.param("B", &[3, right].map(Dim::from), DType::FLOAT32);
        let c = builder.param("C", &[3, left + right].map(Dim::from), DType::FLOAT32);
        builder.compute(c, |builder, axes| {
            let (row, at) = (axes[0].clone(), axes[1].clone());
            let first = builder.load(a, &[row.clone(), at.clone()]);
            let second = builder.load(b, &[row, at.clone() - Expr::int(left)]);
            Expr::select(at.lt(Expr::int(left)), first, second)
        });
        let func = builder.finish();
        let tensors = [
            numbers.tensor(DType::FLOAT32, &[3, left]),
            numbers.tensor(DType::FLOAT32, &[3, right]),
            zeros(DType::FLOAT32, &[3, left + right]),
        ];
        agree(&format!("{left} and {right} joined"), &func, &tensors, &[], 0.0);
    }
}

/// A function of an unsupported dtype fails with a reason; the functions compiled with it succeed.
#[test]
fn unsupported_dtype_fails_only_its_own_kernel() {
    let small = DType::parse("float8_e4m3fn").unwrap_or_else(|| panic!("a dtype"));
    let good = elementwise(DType::FLOAT32, DType::FLOAT32, DType::FLOAT32, |a, b| a + b);
    let bad = elementwise(DType::FLOAT32, small, DType::FLOAT32, |a, b| {
        Expr::select(a.clone().lt(Expr::number(0.0, DType::FLOAT32)), a, b.cast(DType::FLOAT32))
    });
    let module = CpuModule::compile(&[&good, &bad, &good]).unwrap_or_else(|error| panic!("{error}"));
    assert!(module.kernel(0).is_ok() && module.kernel(2).is_ok());
    assert_eq!(module.kernel(1).err(), Some(CompileError::Dtype(small)));
    assert!(module.kernel(3).is_err());
    let listing = CpuModule::listing(&good).unwrap_or_else(|error| panic!("{error}"));
    assert!(listing.contains("block0"), "{listing}");
}

/// `2 ** 63` as `uint64` is an exponent, not a negative number; zero to a negative power is an error, except where a
/// condition excludes it.
#[test]
fn power_of_integers_is_that_of_the_interpreter() {
    let power = |dtype: DType| {
        elementwise(dtype, dtype, dtype, move |a, b| Expr::Call { function: Intrinsic::Pow, dtype, args: vec![a, b] })
    };
    let integers = |dtype: DType, values: &[i64]| {
        let mut tensor = zeros(dtype, &[values.len() as i64]);
        values.iter().enumerate().for_each(|(at, value)| tensor.set(at, Scalar::Int(*value)));
        tensor
    };
    let signed = |values: &[i64]| integers(DType::INT64, values);
    let bases = [2, -1, -1, 1, 3, 0, -2, 7];
    let exponents = [62, -3, -4, -9, 41, 0, -1, 30];
    let tensors = [signed(&bases), signed(&exponents), zeros(DType::INT64, &[8])];
    agree("signed powers", &power(DType::INT64), &tensors, &n(8), 0.0);
    let [a, b] = [[3, -1], [i64::MIN, -1]].map(|values| integers(DType::UINT64, &values));
    agree("unsigned powers", &power(DType::UINT64), &[a, b, zeros(DType::UINT64, &[2])], &n(2), 0.0);
    let mut tensors = [signed(&[1, 0]), signed(&[-1, -1]), zeros(DType::INT64, &[2])];
    let error = compiled(&power(DType::INT64), &mut tensors, &n(2));
    assert!(matches!(error, Err(RunError::DivisionByZero { .. })), "{error:?}");
    let guarded = elementwise(DType::INT64, DType::INT64, DType::INT64, |a, b| {
        let power = Expr::Call { function: Intrinsic::Pow, dtype: DType::INT64, args: vec![a.clone(), b] };
        Expr::select(a.eq(Expr::number(0.0, DType::INT64)), Expr::number(5.0, DType::INT64), power)
    });
    agree("a guarded power", &guarded, &tensors, &n(2), 0.0);
}

/// A `let` has no site of its own.
#[test]
fn division_by_zero_in_a_let_names_the_statement_inside() {
    let mut builder = KernelBuilder::new(name("quotient"));
    let (a, c) = (builder.param("A", &[Dim::from(2)], DType::INT32), builder.param("C", &[Dim::from(2)], DType::INT32));
    let (var, quotient) = builder.variable("quotient", DType::INT32);
    let number = |value| Expr::number(value, DType::INT32);
    let divisor = Box::new(builder.load(a, &[Expr::int(0)]));
    let value = Expr::Binary { op: BinaryOp::FloorDiv, left: Box::new(number(1.0)), right: divisor };
    let store = |builder: &KernelBuilder, at: i64, value: Expr, operator: &str| {
        let mut store = builder.store(c, vec![Expr::int(at)], value);
        if let Stmt::Store { site, .. } = &mut store {
            site.operator = name(operator);
        }
        store
    };
    let first = store(&builder, 0, number(1.0), "first");
    let second = store(&builder, 1, quotient, "second");
    let mut func = builder.finish();
    func.body = Stmt::seq([first, Stmt::Let { var, value, body: Box::new(second) }]);
    let tensors = || [zeros(DType::INT32, &[2]), zeros(DType::INT32, &[2])];
    let error = compiled(&func, &mut tensors(), &[]);
    assert!(
        matches!(&error, Err(RunError::DivisionByZero { site }) if site.operator.as_str() == "second"),
        "{error:?}"
    );
    let error = rx_interp::run(&func, &mut tensors(), &[]);
    assert!(error.is_err_and(|error| error.to_string().contains("second")));
}

#[test]
fn division_by_zero_and_wrong_buffers_are_errors() {
    let func = elementwise(DType::INT32, DType::INT32, DType::INT32, |a, b| Expr::Binary {
        op: BinaryOp::FloorDiv,
        left: Box::new(a),
        right: Box::new(b),
    });
    let mut tensors = [zeros(DType::INT32, &[4]), zeros(DType::INT32, &[4]), zeros(DType::INT32, &[4])];
    let error = compiled(&func, &mut tensors, &n(4));
    assert!(matches!(error, Err(RunError::DivisionByZero { .. })), "{error:?}");

    let module = CpuModule::compile(&[&func]).unwrap_or_else(|error| panic!("{error}"));
    let kernel = module.kernel(0).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(kernel.written(), [false, false, true]);
    let shapes: [&[i64]; 3] = [&[4]; 3];
    let (a, b, mut c) = ([0u8; 16], [1u8; 12], [0u8; 16]);
    let mut scratch = Scratch::default();
    let mut run = |arguments: &mut [Argument<'_>]| kernel.run(arguments, &shapes, &n(4), &mut scratch);
    let short = run(&mut [Argument::Read(&a), Argument::Read(&b), Argument::Write(&mut c)]);
    assert!(matches!(short, Err(RunError::BufferSize { wanted: 16, passed: 12, .. })), "{short:?}");
    let constant = run(&mut [Argument::Read(&a), Argument::Read(&a), Argument::Read(&a)]);
    assert!(matches!(constant, Err(RunError::ReadOnly { .. })), "{constant:?}");
    let few = run(&mut [Argument::Read(&a)]);
    assert!(matches!(few, Err(RunError::BufferCount { .. })), "{few:?}");
}
