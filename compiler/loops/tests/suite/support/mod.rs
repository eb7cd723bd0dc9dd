//! Helpers that run functions and scheduled functions by the interpreter.
use rx_base::name::name;
use rx_interp::run;
use rx_loops::{Gemm, Matrix, Place, Scheduled, Step, WindowAxis, WindowedSum};
use rx_tensor::{Scalar, Tensor};
use rx_tir::evaluate_index;
use rx_tir::expr::{BinaryOp, Expr};
use rx_tir::func::{BufferId, Param, PrimFunc, VarId};
use rx_tir::stmt::{Block, Stmt};

/// Converts steps to a function over the same parameters. A matrix product becomes loops over its batch axes and three
/// loops inside them, and a windowed sum a loop for each axis and tap.
pub fn as_func(scheduled: &Scheduled) -> PrimFunc {
    let mut func = scheduled.func.clone();
    let body = steps(&mut func, &scheduled.steps);
    func.body = Stmt::Block(Box::new(Block {
        name: name("root"),
        iters: Vec::new(),
        predicate: None,
        allocations: scheduled.temporaries.clone(),
        init: None,
        body,
    }));
    func
}

fn steps(func: &mut PrimFunc, parts: &[Step]) -> Stmt {
    let statements = parts.iter().map(|step| match step {
        Step::Nest(stmt) => stmt.clone(),
        Step::Gemm(gemm) => three_loops(func, gemm),
        Step::WindowedSum(window) => windows(func, window),
        Step::Loop { var, extent, body } => Stmt::for_loop(*var, extent.clone(), steps(func, body)),
    });
    Stmt::seq(statements.collect::<Vec<_>>())
}

fn three_loops(func: &mut PrimFunc, gemm: &Gemm) -> Stmt {
    let mut variable = |text: &str| func.add_var(name(text), rx_base::DType::INT64);
    let (i, j, k) = (variable("i"), variable("j"), variable("k"));
    let batch: Vec<VarId> = gemm.batch.iter().map(|_| variable("b")).collect();
    let at = |matrix: &Matrix, row: VarId, column: VarId, stride: &dyn Fn(usize) -> Expr| {
        let mut address = matrix.offset.clone()
            + matrix.row.clone() * func.var_expr(row)
            + matrix.column.clone() * func.var_expr(column);
        for (axis, var) in batch.iter().enumerate() {
            address = address + stride(axis) * func.var_expr(*var);
        }
        (matrix.buffer, element(func, matrix.buffer, address))
    };
    let (a, a_at) = at(&gemm.a, i, k, &|axis| gemm.batch[axis].a.clone());
    let (b, b_at) = at(&gemm.b, k, j, &|axis| gemm.batch[axis].b.clone());
    let (c, c_at) = at(&gemm.c, i, j, &|axis| gemm.batch[axis].c.clone());
    let store = |value: Expr| Stmt::Store { buffer: c, indices: c_at.clone(), value, site: gemm.site };
    let product = func.load(a, a_at) * func.load(b, b_at);
    let update = store(Expr::binary(BinaryOp::Add, func.load(c, c_at.clone()), product));
    let mut body = Stmt::for_loop(k, gemm.k.clone(), update);
    if !gemm.accumulate {
        body = Stmt::seq([store(Expr::number(0.0, gemm.dtype)), body]);
    }
    let mut stmt = Stmt::for_loop(i, gemm.m.clone(), Stmt::for_loop(j, gemm.n.clone(), body));
    for (axis, var) in gemm.batch.iter().zip(&batch).rev() {
        stmt = Stmt::for_loop(*var, axis.extent.clone(), stmt);
    }
    stmt
}

fn windows(func: &mut PrimFunc, window: &WindowedSum) -> Stmt {
    let mut variable = |_: &WindowAxis| func.add_var(name("w"), rx_base::DType::INT64);
    let axes: Vec<VarId> = window.axes.iter().map(&mut variable).collect();
    let taps: Vec<VarId> = window.taps.iter().map(&mut variable).collect();
    let loops: Vec<(&WindowAxis, VarId)> =
        window.axes.iter().zip(axes.iter().copied()).chain(window.taps.iter().zip(taps.iter().copied())).collect();
    let sum = |first: &Expr, step: &dyn Fn(&WindowAxis) -> Expr| {
        loops.iter().fold(first.clone(), |sum, (axis, var)| sum + step(axis) * func.var_expr(*var))
    };
    let at = |place: &Place, step: &dyn Fn(&WindowAxis) -> Expr| {
        (place.buffer, element(func, place.buffer, sum(&place.offset, step)))
    };
    let (a, a_at) = at(&window.a, &|axis| axis.a.clone());
    let (b, b_at) = at(&window.b, &|axis| axis.b.clone());
    let (c, c_at) = at(&window.c, &|axis| axis.c.clone());
    let holds = |(number, first): (usize, &Expr)| sum(first, &|axis| axis.conditions[number].clone()).ge(Expr::int(0));
    let inside = window.conditions.iter().enumerate().map(holds).fold(Expr::bool(true), Expr::and);
    let zero = Expr::number(0.0, rx_base::DType::FLOAT32);
    let product = Expr::select(inside, func.load(a, a_at), zero.clone()) * func.load(b, b_at);
    let store = |value: Expr| Stmt::Store { buffer: c, indices: c_at.clone(), value, site: window.site };
    let around = |of: &[WindowAxis], vars: &[VarId], inner: Stmt| {
        of.iter().zip(vars).rev().fold(inner, |body, (axis, var)| Stmt::for_loop(*var, axis.extent.clone(), body))
    };
    let update = store(Expr::binary(BinaryOp::Add, func.load(c, c_at.clone()), product));
    let mut body = around(&window.taps, &taps, update);
    if !window.accumulate {
        body = Stmt::seq([store(zero), body]);
    }
    around(&window.axes, &axes, body)
}

/// Converts a flat index to the indices of the element, so that the interpreter checks that it is in the buffer.
fn element(func: &PrimFunc, buffer: BufferId, address: Expr) -> Vec<Expr> {
    let shape = &func.buffer(buffer).shape;
    let mut rest = address;
    let mut indices = Vec::new();
    for (axis, extent) in shape.iter().enumerate().rev() {
        if axis == 0 {
            indices.push(rest.clone());
        } else {
            indices.push(rest.clone().floor_mod(extent.clone()));
            rest = rest.floor_div(extent.clone());
        }
    }
    indices.reverse();
    indices
}

/// Returns values for all tensors and scalars among a function's parameters: `dims` for the scalars, and tensors of
/// small integers, from −4 to 4, so that sums are exact in any order.
pub fn arguments(func: &PrimFunc, dims: &[(&str, i64)], seed: u64) -> (Vec<Tensor>, Vec<Scalar>) {
    let value = |var: VarId| {
        let text = func.var(var).name;
        dims.iter().find(|(known, _)| *known == text.as_str()).map(|(_, value)| *value)
    };
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) % 9) as i64 - 4
    };
    let (mut tensors, mut scalars) = (Vec::new(), Vec::new());
    for param in &func.params {
        match param {
            Param::Buffer(buffer) => {
                let buffer = func.buffer(*buffer);
                let shape: Vec<i64> =
                    buffer.shape.iter().map(|dim| evaluate_index(dim, &value).expect("a known dim")).collect();
                let mut tensor = Tensor::zeros(buffer.dtype, &shape).expect("a small tensor");
                for at in 0..tensor.len() {
                    tensor.set(at, Scalar::Int(next()));
                }
                tensors.push(tensor);
            }
            Param::Scalar(var) => scalars.push(Scalar::Int(value(*var).expect("a known scalar"))),
            Param::Handle(_) => {}
        }
    }
    (tensors, scalars)
}

/// Runs a function and returns the bytes of all its buffer parameters, or the error message.
pub fn outcome(func: &PrimFunc, dims: &[(&str, i64)], seed: u64) -> Result<Vec<Vec<u8>>, String> {
    let (mut tensors, scalars) = arguments(func, dims, seed);
    run(func, &mut tensors, &scalars).map_err(|error| error.to_string())?;
    Ok(tensors.iter().map(|tensor| tensor.bytes().to_vec()).collect())
}
