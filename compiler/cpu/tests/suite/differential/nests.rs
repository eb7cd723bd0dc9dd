//! Loop nests: reductions, windows, products and permutations.

use super::{Numbers, agree, compiled, zeros};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cpu::RunError;
use rx_tensor::Scalar;
use rx_tir::builder::in_range;
use rx_tir::{BinaryOp, Expr, Intrinsic, IterKind, KernelBuilder, PrimFunc};

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
