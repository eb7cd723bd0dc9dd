//! Functions as operators build them, with a `KernelBuilder`.

use crate::case::Case;
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_tensor::Scalar;
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, CompareOp, Expr, Intrinsic, IterKind, KernelBuilder, PrimFunc, Stmt};

const F32: DType = DType::FLOAT32;

fn dims(sizes: &[i64]) -> Vec<Dim> {
    sizes.iter().map(|size| Dim::from(*size)).collect()
}

fn n() -> Dim {
    Dim::symbol(name("n"))
}

pub fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::new("relu over a symbolic extent", relu(), &[&[3, 7], &[3, 7]]),
        Case::new("a symbol that is 0", relu(), &[&[0, 7], &[0, 7]]),
        Case::new("matmul", matmul(F32), &[&[5, 6], &[6, 4], &[5, 4]]).within(1e-6),
        Case::new("matmul of float16", matmul(DType::FLOAT16), &[&[5, 6], &[6, 4], &[5, 4]]).within(2e-3),
        Case::new("matmul of bfloat16", matmul(DType::BFLOAT16), &[&[5, 6], &[6, 4], &[5, 4]]).within(2e-2),
        Case::new("matmul of float64", matmul(DType::FLOAT64), &[&[5, 6], &[6, 4], &[5, 4]]).within(1e-14),
        Case::new("matmul of int8", matmul(DType::INT8), &[&[5, 6], &[6, 4], &[5, 4]]),
        Case::new("softmax", softmax(), &[&[4, 9], &[4, 9]]).within(1e-6),
        Case::new("convolution with padding", convolution(), &[&[2, 3, 8, 7], &[4, 3, 3, 3], &[2, 4, 4, 4]])
            .within(1e-6),
        Case::new("a sum of everything", sum_all(), &[&[6, 5], &[]]).within(1e-6),
        Case::new("cumulative sum", cumulative_sum(), &[&[3, 6], &[3, 6]]),
        Case::new("scatter in order", scatter(), &[&[9], &[9], &[5]]),
        Case::new("a scan in place", scan_in_place(), &[&[7]]),
        Case::new("argmax", argmax(), &[&[4, 6], &[4]]),
        Case::new("quotients of signed integers", quotients(DType::INT32), &[&[40], &[40], &[40, 4]]),
        Case::new("quotients of narrow integers", quotients(DType::INT8), &[&[40], &[40], &[40, 4]]),
        Case::new("quotients of wide integers", quotients(DType::INT64), &[&[40], &[40], &[40, 4]]),
        Case::new("quotients of unsigned integers", quotients(DType::UINT16), &[&[40], &[40], &[40, 4]]),
        Case::new("quotients of floats", quotients(F32), &[&[40], &[40], &[40, 4]]).within(1e-6),
        Case::new("a reshape", reshape(), &[&[4, 6], &[3, 8]]),
        Case::new("logic", logic(), &[&[20], &[20], &[20, 4]]),
        Case::new("shifts", shifts(), &[&[20], &[20], &[20, 3]]),
        Case::new("bits", bits(), &[&[20], &[20, 4]]),
        Case::new("constants", constants(), &[&[6]]),
    ];
    for dtype in [
        DType::INT8,
        DType::INT16,
        DType::INT32,
        DType::INT64,
        DType::UINT8,
        DType::UINT16,
        DType::UINT32,
        DType::UINT64,
    ] {
        cases.push(Case::new("wrapping arithmetic", wrapping(dtype), &[&[20], &[20], &[20, 4]]));
    }
    for from in all_dtypes() {
        let outputs: Vec<&[i64]> = vec![&[33]; all_dtypes().len() + 1];
        cases.push(Case::new("casts", casts(from), &outputs));
    }
    cases.extend([DType::INT32, DType::INT64, DType::FLOAT64].map(halfway_casts));
    for dtype in [F32, DType::FLOAT64] {
        let within = if dtype == F32 { 1e-5 } else { 1e-13 };
        for function in Intrinsic::ALL {
            if let Some(func) = intrinsic(*function, dtype) {
                let shapes = vec![&[40i64] as &[i64]; function.arity() + 1];
                cases.push(Case::new(function.name(), func, &shapes).within(within));
            }
        }
    }
    cases
}

fn all_dtypes() -> Vec<DType> {
    let small = ["float8_e4m3fn", "float8_e5m2"].map(|text| DType::parse(text).expect("a dtype"));
    let mut all = vec![
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
        F32,
        DType::FLOAT64,
    ];
    all.extend(small);
    all
}

fn relu() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("nn.relu"));
    let shape = [n(), Dim::from(7)];
    let (x, out) = (builder.param("x", &shape, F32), builder.param("out", &shape, F32));
    builder.compute(out, |builder, at| builder.load(x, at).max(Expr::number(0.0, F32)));
    builder.finish()
}

fn matmul(dtype: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("matmul"));
    let m = Dim::symbol(name("m"));
    let a = builder.param("a", &[m.clone(), n()], dtype);
    let b = builder.param("b", &[n(), Dim::from(4)], dtype);
    let out = builder.param("out", &[m.clone(), Dim::from(4)], dtype);
    let (rows, inner) = (builder.dim(&m), builder.dim(&n()));
    builder.reduce(out, &[rows, Expr::int(4)], &[inner], Expr::number(0.0, dtype), BinaryOp::Add, |builder, at, k| {
        let a = builder.load(a, &[at[0].clone(), k[0].clone()]);
        (at.to_vec(), a * builder.load(b, &[k[0].clone(), at[1].clone()]))
    });
    builder.finish()
}

fn softmax() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("nn.softmax"));
    let shape = [n(), Dim::from(9)];
    let (x, out) = (builder.param("x", &shape, F32), builder.param("out", &shape, F32));
    let largest = builder.temporary("largest", &[n()], F32);
    let exp = builder.temporary("exp", &shape, F32);
    let sum = builder.temporary("sum", &[n()], F32);
    let rows = builder.dim(&n());
    let columns = [Expr::int(9)];
    builder.reduce(
        largest,
        std::slice::from_ref(&rows),
        &columns,
        Expr::number(f64::NEG_INFINITY, F32),
        BinaryOp::Max,
        |builder, at, k| (at.to_vec(), builder.load(x, &[at[0].clone(), k[0].clone()])),
    );
    builder.compute(exp, |builder, at| {
        Expr::call(Intrinsic::Exp, vec![builder.load(x, at) - builder.load(largest, &at[..1])])
    });
    builder.reduce(sum, &[rows], &columns, Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        (at.to_vec(), builder.load(exp, &[at[0].clone(), k[0].clone()]))
    });
    builder.compute(out, |builder, at| builder.load(exp, at) / builder.load(sum, &at[..1]));
    builder.finish()
}

/// Returns a convolution of 3×3 with stride 2 and padding 1.
fn convolution() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("nn.conv2d"));
    let x = builder.param("x", &[n(), Dim::from(3), Dim::from(8), Dim::from(7)], F32);
    let w = builder.param("w", &dims(&[4, 3, 3, 3]), F32);
    let out = builder.param("out", &[n(), Dim::from(4), Dim::from(4), Dim::from(4)], F32);
    let extents = builder.shape(out);
    let reduced = [Expr::int(3), Expr::int(3), Expr::int(3)];
    builder.reduce(out, &extents, &reduced, Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        let row = at[2].clone() * Expr::int(2) + k[1].clone() - Expr::int(1);
        let column = at[3].clone() * Expr::int(2) + k[2].clone() - Expr::int(1);
        let inside =
            in_range(row.clone(), Expr::int(0), Expr::int(8)).and(in_range(column.clone(), Expr::int(0), Expr::int(7)));
        let value = builder.load(x, &[at[0].clone(), k[0].clone(), row, column]);
        let weight = builder.load(w, &[at[1].clone(), k[0].clone(), k[1].clone(), k[2].clone()]);
        (at.to_vec(), Expr::select(inside, value, Expr::number(0.0, F32)) * weight)
    });
    builder.finish()
}

fn sum_all() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("sum"));
    let x = builder.param("x", &[n(), Dim::from(5)], F32);
    let out = builder.param("out", &[], F32);
    let extents = builder.shape(x);
    builder.reduce(out, &[], &extents, Expr::number(0.0, F32), BinaryOp::Add, |builder, at, k| {
        (at.to_vec(), builder.load(x, k))
    });
    builder.finish()
}

/// Returns a running sum: the axis of the rows is spatial, and the axis along a row is ordered.
fn cumulative_sum() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("cumsum"));
    let (x, out) = (builder.param("x", &dims(&[3, 6]), F32), builder.param("out", &dims(&[3, 6]), F32));
    let extents = [(Expr::int(3), IterKind::Spatial), (Expr::int(6), IterKind::Ordered)];
    builder.block("cumsum", &extents, |builder, at| {
        let before = builder.load(out, &[at[0].clone(), at[1].clone() - Expr::int(1)]);
        let first = at[1].clone().eq(Expr::int(0));
        let value = Expr::select(first, Expr::number(0.0, F32), before) + builder.load(x, at);
        (None, builder.store(out, at.to_vec(), value))
    });
    builder.finish()
}

/// Returns `out[indices[i] % 5] = updates[i]` (floor modulo): of several updates of an element, the last one wins.
fn scatter() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("scatter"));
    let indices = builder.param("indices", &[n()], DType::INT64);
    let updates = builder.param("updates", &[n()], F32);
    let out = builder.param("out", &dims(&[5]), F32);
    builder.compute(out, |_, _| Expr::number(0.0, F32));
    let rows = builder.dim(&n());
    builder.block("scatter", &[(rows, IterKind::Ordered)], |builder, at| {
        let place = builder.load(indices, at).floor_mod(Expr::int(5));
        (None, builder.store(out, vec![place], builder.load(updates, at)))
    });
    builder.finish()
}

/// Returns a scan whose axis is declared spatial although each iteration loads the result of the previous one.
fn scan_in_place() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("scan"));
    let x = builder.param("x", &dims(&[7]), F32);
    builder.map(x, &[Expr::int(6)], |builder, at| {
        let next = at[0].clone() + Expr::int(1);
        let value = builder.load(x, at) + builder.load(x, std::slice::from_ref(&next));
        (vec![next], value)
    });
    builder.finish()
}

/// Returns a reduction with two results, so that no single variable can hold its element.
fn argmax() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("argmax"));
    let x = builder.param("x", &[n(), Dim::from(6)], F32);
    let out = builder.param("out", &[n()], DType::INT64);
    let best = builder.temporary("best", &[n()], F32);
    let rows = builder.dim(&n());
    let extents = [(rows, IterKind::Spatial), (Expr::int(6), IterKind::Reduce)];
    builder.block("argmax", &extents, |builder, at| {
        let row = vec![at[0].clone()];
        let init = Stmt::seq([
            builder.store(best, row.clone(), Expr::number(f64::NEG_INFINITY, F32)),
            builder.store(out, row.clone(), Expr::int(-1)),
        ]);
        let value = builder.load(x, at);
        let better = Expr::compare(CompareOp::Gt, value.clone(), builder.load(best, &row));
        let then = Stmt::seq([builder.store(out, row.clone(), at[1].clone()), builder.store(best, row, value)]);
        (Some(init), Stmt::If { condition: better, then: Box::new(then), otherwise: None })
    });
    builder.finish()
}

/// Returns the floor and truncating divisions and remainders, with nonzero divisors.
fn quotients(dtype: DType) -> PrimFunc {
    let ops = [BinaryOp::FloorDiv, BinaryOp::FloorMod, BinaryOp::TruncDiv, BinaryOp::TruncMod];
    pairs("quotients", dtype, &ops, |b| {
        let zero = Expr::number(0.0, dtype);
        Expr::select(b.clone().eq(zero), Expr::number(3.0, dtype), b)
    })
}

fn wrapping(dtype: DType) -> PrimFunc {
    pairs("wrapping", dtype, &[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max], |b| {
        let large = if dtype.bits == 64 { i64::MAX } else { (1 << (dtype.bits - 1)) - 1 };
        b * Expr::Int { value: large, dtype }
    })
}

fn logic() -> PrimFunc {
    pairs("logic", DType::BOOL, &[BinaryOp::And, BinaryOp::Or, BinaryOp::BitXor, BinaryOp::BitAnd], |value| !value)
}

fn shifts() -> PrimFunc {
    let ops = [BinaryOp::ShiftLeft, BinaryOp::ShiftRight, BinaryOp::BitOr];
    pairs("shifts", DType::INT32, &ops, |b| b.floor_mod(Expr::Int { value: 40, dtype: DType::INT32 }))
}

/// Returns `out[i, j] = a[i] op_j of_b(b[i])`.
fn pairs(operator: &str, dtype: DType, ops: &[BinaryOp], of_b: impl Fn(Expr) -> Expr) -> PrimFunc {
    let mut builder = KernelBuilder::new(name(operator));
    let (a, b) = (builder.param("a", &[n()], dtype), builder.param("b", &[n()], dtype));
    let out = builder.param("out", &[n(), Dim::from(ops.len() as i64)], dtype);
    let rows = builder.dim(&n());
    for (at, op) in ops.iter().enumerate() {
        builder.map(out, std::slice::from_ref(&rows), |builder, row| {
            let value = Expr::binary(*op, builder.load(a, row), of_b(builder.load(b, row)));
            (vec![row[0].clone(), Expr::int(at as i64)], value)
        });
    }
    builder.finish()
}

/// Returns the count of leading zeros, the population count, the absolute value and the bitwise complement of integers.
fn bits() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("bits"));
    let dtype = DType::INT16;
    let (x, out) = (builder.param("x", &[n()], dtype), builder.param("out", &[n(), Dim::from(4)], dtype));
    let rows = builder.dim(&n());
    let not = |value: Expr| Expr::Unary { op: rx_tir::UnaryOp::BitNot, value: Box::new(value) };
    type Of = Box<dyn Fn(Expr) -> Expr>;
    let call = |function| Box::new(move |value| Expr::call(function, vec![value])) as Of;
    let parts: [Of; 4] = [call(Intrinsic::Clz), call(Intrinsic::Popcount), call(Intrinsic::Abs), Box::new(not)];
    for (at, part) in parts.iter().enumerate() {
        builder.map(out, std::slice::from_ref(&rows), |builder, row| {
            (vec![row[0].clone(), Expr::int(at as i64)], part(builder.load(x, row)))
        });
    }
    builder.finish()
}

/// Returns a reshape of rows of 6 to rows of 8: the indices are quotients and remainders of the flat index.
fn reshape() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("reshape"));
    let (x, out) = (builder.param("x", &[n(), Dim::from(6)], F32), builder.param("out", &dims(&[3, 8]), F32));
    builder.compute(out, |builder, at| {
        let flat = at[0].clone() * Expr::int(8) + at[1].clone();
        builder.load(x, &[flat.clone().floor_div(Expr::int(6)), flat.floor_mod(Expr::int(6))])
    });
    builder.finish()
}

fn constants() -> PrimFunc {
    let mut builder = KernelBuilder::new(name("constants"));
    let out = builder.param("out", &dims(&[6]), F32);
    for (at, value) in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-45, -0.0, 3.4e38].into_iter().enumerate() {
        builder.map(out, &[Expr::int(1)], |_, _| (vec![Expr::int(at as i64)], Expr::number(value, F32)));
    }
    builder.finish()
}

/// Returns casts from one dtype to every dtype. Negative values are out of the range of unsigned dtypes.
fn casts(from: DType) -> PrimFunc {
    let mut builder = KernelBuilder::new(name("astype"));
    let x = builder.param("x", &dims(&[33]), from);
    for (at, to) in all_dtypes().into_iter().enumerate() {
        let out = builder.param(&format!("out_{at}"), &dims(&[33]), to);
        builder.compute(out, |builder, axes| {
            let value = builder.load(x, axes);
            let scaled = if from.is_float() { value * Expr::number(17.0, from) } else { value };
            scaled.cast(to)
        });
    }
    builder.finish()
}

/// Returns casts of values that are a little more than halfway between two values of the result's dtype. `float` loses
/// the difference.
fn halfway_casts(from: DType) -> Case {
    let is_narrow = |to: &DType| to.is_float() && (to.bits == 16 || to.bits == 8 && from.is_float());
    let narrow: Vec<DType> = all_dtypes().into_iter().filter(is_narrow).collect();
    let mut builder = KernelBuilder::new(name("astype"));
    let x = builder.param("x", &dims(&[8]), from);
    for (at, to) in narrow.iter().enumerate() {
        let out = builder.param(&format!("out_{at}"), &dims(&[8]), *to);
        builder.compute(out, |builder, axes| builder.load(x, axes).cast(*to));
    }
    let shapes: Vec<&[i64]> = vec![&[8]; narrow.len() + 1];
    let mut case = Case::new("casts of values near halfway", builder.finish(), &shapes);
    for (at, bits) in [3, 4, 8, 11].into_iter().enumerate() {
        let (value, negated) = if from.is_float() {
            let value = 1.0 + 2f64.powi(-bits) + 2f64.powi(-40);
            (Scalar::Float(value), Scalar::Float(-value))
        } else {
            let one = 1i64 << (from.bits - 2);
            let value = one + (one >> bits) + 1;
            (Scalar::Int(value), Scalar::Int(-value))
        };
        case.arguments[0].set(at, value);
        case.arguments[0].set(at + 4, negated);
    }
    case
}

/// Returns the intrinsic, with arguments in its domain, or `None` if it is not defined for floats.
fn intrinsic(function: Intrinsic, dtype: DType) -> Option<PrimFunc> {
    use Intrinsic::*;
    if matches!(function, Clz | Popcount) {
        return None;
    }
    let mut builder = KernelBuilder::new(name(function.name()));
    let inputs: Vec<_> = (0..function.arity()).map(|at| builder.param(&format!("x{at}"), &[n()], dtype)).collect();
    let result = match function {
        IsNan | IsInf | IsFinite => DType::BOOL,
        Reinterpret if dtype == F32 => DType::INT32,
        Reinterpret => DType::INT64,
        _ => dtype,
    };
    let out = builder.param("out", &[n()], result);
    builder.compute(out, |builder, at| {
        let number = |value: f64| Expr::number(value, dtype);
        let mut args: Vec<Expr> = inputs.iter().map(|input| builder.load(*input, at)).collect();
        let first = args[0].clone();
        args[0] = match function {
            Acos | Asin | Atanh => first * number(0.25),
            Acosh => first.clone() * first + number(1.0),
            Log | Log2 | Log10 | Sqrt | Rsqrt | Pow => first.clone() * first + number(0.5),
            Log1p => first * number(0.25),
            IsNan | IsInf | IsFinite => first.clone() / first,
            _ => first,
        };
        if function == Fmod {
            args[1] = args[1].clone() + number(2.5);
        }
        if function == Ldexp {
            args[1] = args[1].clone().cast(DType::INT32);
        }
        Expr::Call { function, dtype: result, args }
    });
    Some(builder.finish())
}
