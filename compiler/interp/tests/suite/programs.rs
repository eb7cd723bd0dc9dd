//! Runs of whole functions: loops, blocks, symbols and limits.

use rx_base::name::name;
use rx_base::{DType, Dim};
use rx_interp::{Limit, Limits, Program, RunError, run};
use rx_tensor::{Scalar, Tensor};
use rx_tir::{BinaryOp, BindError, Block, Buffer, BufferId, CompareOp, Expr, Iter, IterKind, KernelBuilder, LoopKind};
use rx_tir::{Param, PrimFunc, Scope, Site, Stmt};
use std::sync::atomic::AtomicBool;

fn f32s(shape: &[i64], values: &[f32]) -> Tensor {
    Tensor::from_f32s(shape, values).expect("a tensor")
}

fn values(tensor: &Tensor) -> &[f32] {
    tensor.as_slice().expect("float32")
}

/// Returns a function whose parameters are buffers of these constant shapes and dtypes.
fn function(buffers: &[(&[i64], DType)]) -> PrimFunc {
    let mut func = PrimFunc::new(name("f"));
    for (shape, dtype) in buffers {
        let shape = shape.iter().map(|extent| Expr::int(*extent)).collect();
        let letter = ["A", "B", "C", "D"][func.buffers.len()];
        let buffer =
            Buffer { name: name(letter), dtype: *dtype, shape, strides: None, order: None, scope: Scope::Global };
        let id = func.add_buffer(buffer);
        func.params.push(Param::Buffer(id));
    }
    func
}

fn store(buffer: u32, indices: Vec<Expr>, value: Expr) -> Stmt {
    Stmt::Store { buffer: BufferId(buffer), indices, value, site: Site { origin: None, operator: name("here") } }
}

fn f32(value: f64) -> Expr {
    Expr::Float { value, dtype: DType::FLOAT32 }
}

#[test]
fn a_product_of_matrices_reduces_from_its_init_over_symbolic_extents() {
    let (n, k) = (Dim::symbol(name("n")), Dim::symbol(name("k")));
    let mut builder = KernelBuilder::new(name("matmul"));
    let a = builder.param("A", &[n.clone(), k.clone()], DType::FLOAT32);
    let b = builder.param("B", &[k, Dim::constant(2)], DType::FLOAT32);
    let c = builder.param("C", &[n, Dim::constant(2)], DType::FLOAT32);
    let (extents, reduced) = (builder.shape(c), builder.shape(a)[1..].to_vec());
    builder.reduce(c, &extents, &reduced, f32(0.0), BinaryOp::Add, |builder, axes, reduced| {
        let left = builder.load(a, &[axes[0].clone(), reduced[0].clone()]);
        let right = builder.load(b, &[reduced[0].clone(), axes[1].clone()]);
        (axes.to_vec(), left * right)
    });
    let func = builder.finish();
    let mut buffers = [
        f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        f32s(&[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
        f32s(&[2, 2], &[f32::NAN; 4]),
    ];
    run(&func, &mut buffers, &[Scalar::Int(2), Scalar::Int(3)]).expect("a run");
    assert_eq!(values(&buffers[2]), [4.0, 5.0, 10.0, 11.0]);

    // The scalar passed for `n` contradicts the extent of the argument.
    let error = run(&func, &mut buffers, &[Scalar::Int(3), Scalar::Int(3)]).err();
    assert!(matches!(error, Some(RunError::Call { error: BindError::Extent { .. }, .. })), "{error:?}");
}

#[test]
fn symbols_get_their_values_from_extents() {
    let mut func = function(&[(&[1], DType::FLOAT32), (&[1], DType::INT64)]);
    let n = func.add_var(name("n"), DType::INT64);
    func.symbols.push(n);
    func.buffers[0].shape = vec![func.var_expr(n)];
    func.body = store(1, vec![Expr::int(0)], func.var_expr(n) * Expr::int(10));
    let mut buffers = [f32s(&[7], &[0.0; 7]), Tensor::zeros(DType::INT64, &[1]).expect("a tensor")];
    run(&func, &mut buffers, &[]).expect("a run");
    assert_eq!(buffers[1].as_slice::<i64>(), Some(&[70][..]));
}

#[test]
fn instances_where_the_predicate_fails_are_left_out_and_loops_of_no_extent_do_nothing() {
    let mut func = function(&[(&[5], DType::FLOAT32)]);
    let i = func.add_var(name("i"), DType::INT64);
    let v = func.add_var(name("v"), DType::INT64);
    let j = func.add_var(name("j"), DType::INT64);
    let (index, axis) = (func.var_expr(i), func.var_expr(v));
    let block = Block {
        name: name("b"),
        iters: vec![Iter {
            var: v,
            kind: IterKind::Spatial,
            start: Expr::int(0),
            extent: Expr::int(5),
            binding: index.clone(),
        }],
        predicate: Some(index.lt(Expr::int(5))),
        allocations: Vec::new(),
        init: None,
        body: store(0, vec![axis.clone()], axis.cast(DType::FLOAT32)),
    };
    let none = Stmt::For {
        var: j,
        start: Expr::int(0),
        extent: Expr::int(-3),
        kind: LoopKind::Serial,
        body: Box::new(store(0, vec![Expr::int(99)], f32(0.0))),
    };
    func.body = Stmt::seq([Stmt::for_loop(i, Expr::int(8), Stmt::Block(Box::new(block))), none]);
    let mut buffers = [f32s(&[5], &[9.0; 5])];
    run(&func, &mut buffers, &[]).expect("a run");
    assert_eq!(values(&buffers[0]), [0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn the_branch_not_taken_is_not_evaluated() {
    let mut func = function(&[(&[4], DType::FLOAT32), (&[2], DType::FLOAT32)]);
    let i = func.add_var(name("i"), DType::INT64);
    let index = func.var_expr(i);
    let inside = index.clone().lt(Expr::int(2));
    let load = func.load(BufferId(1), vec![index.clone()]);
    // `i < 2 and B[i] > 0` does not evaluate the out-of-bounds load either.
    let positive = Expr::compare(CompareOp::Gt, load.clone(), f32(0.0));
    let both = inside.clone().and(positive);
    let value = Expr::select(inside, load, f32(-1.0)) + Expr::select(both, f32(100.0), f32(0.0));
    func.body = Stmt::for_loop(i, Expr::int(4), store(0, vec![index], value));
    let mut buffers = [f32s(&[4], &[0.0; 4]), f32s(&[2], &[5.0, -6.0])];
    run(&func, &mut buffers, &[]).expect("a run");
    assert_eq!(values(&buffers[0]), [105.0, -6.0, -1.0, -1.0]);
}

#[test]
fn an_index_out_of_range_names_site_buffer_and_value() {
    let mut func = function(&[(&[2, 3], DType::FLOAT32), (&[1], DType::INT32)]);
    let index = func.load(BufferId(1), vec![Expr::int(0)]);
    func.body = store(0, vec![Expr::int(1), index.clone()], f32(0.0));
    let mut indices = Tensor::zeros(DType::INT32, &[1]).expect("a tensor");
    indices.set(0, Scalar::Int(3));
    let mut buffers = [f32s(&[2, 3], &[0.0; 6]), indices];
    let error = run(&func, &mut buffers, &[]).expect_err("out of range");
    let site = Site { origin: None, operator: name("here") };
    assert_eq!(error, RunError::OutOfBounds { site, buffer: name("A"), axis: 1, index: 3, extent: 3 });
    assert_eq!(error.to_string(), "index 3 is out of range for dim 1 of A, whose extent is 3 in here");
    buffers[1].set(0, Scalar::Int(-1));
    assert!(matches!(run(&func, &mut buffers, &[]), Err(RunError::OutOfBounds { index: -1, .. })));

    // A checked index is checked against its own extent, not against the buffer that it indexes.
    let checked = Expr::Checked {
        index: Box::new(index),
        extent: Box::new(Expr::int(2)),
        buffer: BufferId(0),
        axis: 1,
        site: Site { origin: None, operator: name("take") },
    };
    func.body = store(0, vec![Expr::int(1), checked], f32(0.0));
    buffers[1].set(0, Scalar::Int(2));
    let error = run(&func, &mut buffers, &[]).expect_err("out of range");
    assert!(error.site().is_some_and(|site| site.operator == name("take")), "{error}");
    buffers[1].set(0, Scalar::Int(1));
    run(&func, &mut buffers, &[]).expect("in range");
}

#[test]
fn divisions_by_zero_and_failed_assertions_end_the_run() {
    let mut func = function(&[(&[1], DType::INT32)]);
    let zero = func.load(BufferId(0), vec![Expr::int(0)]);
    let one = Expr::Int { value: 1, dtype: DType::INT32 };
    func.body = store(0, vec![Expr::int(0)], one.floor_mod(zero.clone()));
    let mut buffers = [Tensor::zeros(DType::INT32, &[1]).expect("a tensor")];
    let error = run(&func, &mut buffers, &[]).expect_err("division by zero");
    assert_eq!(error.to_string(), "integer division by zero in here");

    let condition = Expr::compare(CompareOp::Ne, zero, Expr::Int { value: 0, dtype: DType::INT32 });
    let site = Site { origin: None, operator: name("here") };
    func.body = Stmt::Assert { condition, message: name("not zero"), site };
    let error = run(&func, &mut buffers, &[]).expect_err("an assertion");
    assert_eq!(error.to_string(), "assertion failed in here: not zero");
}

#[test]
fn endless_loops_end_by_the_limits_of_the_caller() {
    let mut func = function(&[]);
    func.body = Stmt::While { condition: Expr::bool(true), body: Box::new(Stmt::nothing()) };
    let program = Program::new(&func).expect("a program");
    let limits = Limits { iterations: Some(100_000), ..Limits::default() };
    assert_eq!(program.run(&mut [], &[], limits), Err(RunError::Stopped(Limit::Iterations)));
    let cancel = AtomicBool::new(true);
    let limits = Limits { cancel: Some(&cancel), ..Limits::default() };
    assert_eq!(program.run(&mut [], &[], limits), Err(RunError::Stopped(Limit::Cancelled)));
}

#[test]
fn buffer_of_a_block_is_undefined_at_its_start() {
    let mut func = function(&[(&[2], DType::FLOAT32)]);
    let temporary = Buffer {
        name: name("t"),
        dtype: DType::FLOAT32,
        shape: vec![Expr::int(1)],
        strides: None,
        order: None,
        scope: Scope::Local,
    };
    let temporary = func.add_buffer(temporary);
    let i = func.add_var(name("i"), DType::INT64);
    let index = func.var_expr(i);
    let read = func.load(temporary, vec![Expr::int(0)]);
    let write = Stmt::Store { buffer: temporary, indices: vec![Expr::int(0)], value: f32(1.0), site: Site::default() };
    let block = Block {
        name: name("b"),
        iters: Vec::new(),
        predicate: None,
        allocations: vec![temporary],
        init: None,
        body: Stmt::seq([store(0, vec![index], read), write]),
    };
    func.body = Stmt::for_loop(i, Expr::int(2), Stmt::Block(Box::new(block)));
    let mut buffers = [f32s(&[2], &[0.0; 2])];
    run(&func, &mut buffers, &[]).expect("a run");
    assert!(values(&buffers[0]).iter().all(|value| value.is_nan()), "{buffers:?}");
}

#[test]
fn scalars_are_of_their_dtype() {
    let mut func = function(&[(&[1], DType::FLOAT32)]);
    let scale = func.add_var(name("scale"), DType::FLOAT32);
    let by = func.add_var(name("by"), DType::INT8);
    func.params.extend([Param::Scalar(scale), Param::Scalar(by)]);
    func.body = store(0, vec![Expr::int(0)], func.var_expr(scale) * func.var_expr(by).cast(DType::FLOAT32));
    let mut buffers = [f32s(&[1], &[0.0])];
    run(&func, &mut buffers, &[Scalar::Float(0.5), Scalar::Int(-3)]).expect("a run");
    assert_eq!(values(&buffers[0]), [-1.5]);
    let wide = run(&func, &mut buffers, &[Scalar::Float(0.5), Scalar::Int(300)]);
    assert_eq!(wide, Err(RunError::ArgumentScalar { param: name("by"), dtype: DType::INT8 }));
    let float = run(&func, &mut buffers, &[Scalar::Float(0.5), Scalar::Float(1.0)]);
    assert!(matches!(float, Err(RunError::ArgumentScalar { .. })));
    let few = run(&func, &mut buffers, &[Scalar::Float(0.5)]);
    assert!(matches!(few, Err(RunError::Call { error: BindError::ArgumentCount { .. }, .. })));
}

#[test]
fn arguments_of_another_dtype_rank_or_number_are_refused() {
    let func = function(&[(&[2], DType::FLOAT32)]);
    let mut integers = [Tensor::zeros(DType::INT32, &[2]).expect("a tensor")];
    let error = run(&func, &mut integers, &[]).expect_err("a dtype");
    assert_eq!(error.to_string(), "A is float32, the argument int32");
    let error = run(&func, &mut [f32s(&[1, 2], &[0.0; 2])], &[]).expect_err("a rank");
    assert_eq!(error.to_string(), "the call does not fit f: A has 1 dims, the argument 2");
    assert!(run(&func, &mut [], &[]).is_err());
}

#[test]
fn deep_nesting_is_run_or_refused_but_never_overflows_the_stack() {
    let mut func = function(&[(&[1], DType::FLOAT32)]);
    let nested = |depth: usize| {
        let load = Expr::Load { buffer: BufferId(0), dtype: DType::FLOAT32, indices: vec![Expr::int(0)] };
        (0..depth).fold(load, |sum, _| sum + f32(1.0))
    };
    func.body = store(0, vec![Expr::int(0)], nested(1400));
    let mut buffers = [f32s(&[1], &[0.0])];
    run(&func, &mut buffers, &[]).expect("a run");
    assert_eq!(values(&buffers[0]), [1400.0]);
    func.body = store(0, vec![Expr::int(0)], nested(3000));
    assert_eq!(run(&func, &mut buffers, &[]), Err(RunError::TooDeep));
}

#[test]
fn functions_that_break_the_invariants_are_errors() {
    let mut func = function(&[(&[1], DType::FLOAT32)]);
    for body in [
        store(0, vec![], f32(0.0)),
        store(7, vec![Expr::int(0)], f32(0.0)),
        store(0, vec![Expr::Var { var: rx_tir::VarId(9), dtype: DType::INT64 }], f32(0.0)),
        Stmt::Evaluate(Expr::Call { function: rx_tir::Intrinsic::Pow, dtype: DType::FLOAT32, args: vec![f32(0.0)] }),
    ] {
        func.body = body;
        assert!(matches!(Program::new(&func), Err(RunError::Malformed { .. })), "{:?}", func.body);
    }
    func.body = Stmt::Evaluate(Expr::number(1.0, DType::parse("float32x4").expect("a dtype")));
    assert!(matches!(Program::new(&func), Err(RunError::UnsupportedDType(_))));
}

#[test]
fn allocations_that_do_not_fit_are_errors() {
    let mut func = function(&[(&[1], DType::FLOAT32)]);
    let huge = Buffer {
        name: name("huge"),
        dtype: DType::FLOAT32,
        shape: vec![Expr::int(1 << 60), Expr::int(8)],
        strides: None,
        order: None,
        scope: Scope::Global,
    };
    let huge = func.add_buffer(huge);
    func.body = store(0, vec![Expr::int(0)], func.load(huge, vec![Expr::int(0), Expr::int(0)]));
    let error = run(&func, &mut [f32s(&[1], &[0.0])], &[]).expect_err("no memory");
    assert!(matches!(error, RunError::Allocation { buffer, .. } if buffer == name("huge")));
}
