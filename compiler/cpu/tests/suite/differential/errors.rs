//! Errors of compilation and of runs, and operations that are errors for some operands.

use super::{agree, compiled, elementwise, n, zeros};
use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_cpu::{Argument, CompileError, CpuModule, RunError, Scratch};
use rx_tensor::Scalar;
use rx_tir::{BinaryOp, Expr, Intrinsic, KernelBuilder, Stmt};

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
