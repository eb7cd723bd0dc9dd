//! Functions as programs write them, most of them built by hand from loops, blocks and statements.

use crate::case::Case;
use crate::script;
use rx_base::DType;
use rx_base::name::name;
use rx_tir::{
    BinaryOp, Block, Buffer, BufferId, CompareOp, Expr, Iter, IterKind, LoopKind, Param, PrimFunc, Scope, Site, Stmt,
    VarId,
};

const F32: DType = DType::FLOAT32;

pub fn cases() -> Vec<Case> {
    vec![
        Case::new("split loops with a predicate", split_loops(), &[&[10], &[10]]),
        Case::new("a fused loop", fused_loop(), &[&[4, 6], &[4, 6]]),
        Case::new("a split reduction", split_reduction(), &[&[5, 12], &[5]]).within(1e-6),
        Case::new("thread bindings", thread_bindings(), &[&[6, 8], &[6, 8]]),
        Case::new("rows of two steps", rows_of_two_steps(), &[&[4, 5], &[4]]).within(1e-6),
        Case::new("memory of a thread", thread_memory(), &[&[5], &[5, 3]]),
        Case::new("memory of a thread, of an extent of the call", large_thread_memory(), &[&[5], &[5, 3]]),
        Case::new("while", collatz(), &[&[9], &[9]]),
        Case::new("a condition on a scalar", scalar_condition(), &[&[6], &[6]]).scalars(&[3]),
        Case::new("the other side of it", scalar_condition(), &[&[6], &[6]]).scalars(&[7]),
        Case::new("indices of 32 bits", narrow_indices(), &[&[3, 4], &[4, 3]]),
        Case::new("checked indices", gather(16), &[&[8, 2], &[5], &[5, 2]]),
        Case::new("a checked index that is negative", gather(0), &[&[8, 2], &[5], &[5, 2]]),
        Case::new("a checked index that is too large", gather(16), &[&[2, 2], &[5], &[5, 2]]),
        Case::new("an assertion", assertion(), &[&[3]]),
        Case::new(
            "a statement of two stores, of which one overwrites a value",
            overwritten(),
            &[&[64], &[64], &[64], &[64]],
        ),
    ]
}

/// Returns a function whose second statement overwrites the value of the first one, and has a second store, at a loaded
/// index, which the fused row pipelines decline.
fn overwritten() -> PrimFunc {
    let params = "x: T.Buffer((64,), \"float32\"), at: T.Buffer((64,), \"int32\"), out: T.Buffer((64,), \"float32\"), \
                  other: T.Buffer((64,), \"float32\")";
    let body = "\
for i in range(64):
    with T.sblock(\"doubled\"):
        vi = T.axis.spatial(64, i)
        out[vi] = x[vi] * T.float32(2)
for i in range(64):
    with T.sblock(\"moved\"):
        vi = T.axis.spatial(64, i)
        out[vi] = out[vi] + T.float32(1)
        other[at[vi] % 64] = out[vi]";
    script::function(&format!("own({params})"), body)
}

/// A function under construction.
struct Hand {
    func: PrimFunc,
}

impl Hand {
    fn new(function: &str) -> Hand {
        Hand { func: PrimFunc::new(name(function)) }
    }

    fn local(&mut self, buffer: &str, shape: &[Expr], dtype: DType, scope: Scope) -> BufferId {
        self.func.add_buffer(Buffer {
            name: name(buffer),
            dtype,
            shape: shape.to_vec(),
            strides: None,
            order: None,
            scope,
        })
    }

    fn param(&mut self, buffer: &str, shape: &[Expr], dtype: DType) -> BufferId {
        let id = self.local(buffer, shape, dtype, Scope::Global);
        self.func.params.push(Param::Buffer(id));
        id
    }

    fn var(&mut self, var: &str, dtype: DType) -> (VarId, Expr) {
        let id = self.func.add_var(name(var), dtype);
        (id, self.func.var_expr(id))
    }

    fn load(&self, buffer: BufferId, indices: &[Expr]) -> Expr {
        self.func.load(buffer, indices.to_vec())
    }
}

fn site() -> Site {
    Site { origin: None, operator: name("block") }
}

fn store(buffer: BufferId, indices: &[Expr], value: Expr) -> Stmt {
    Stmt::Store { buffer, indices: indices.to_vec(), value, site: site() }
}

fn block(iters: Vec<Iter>, body: Stmt) -> Block {
    Block { name: name("block"), iters, predicate: None, allocations: Vec::new(), init: None, body }
}

fn iter(var: VarId, kind: IterKind, extent: i64, binding: Expr) -> Iter {
    Iter { var, kind, start: Expr::int(0), extent: Expr::int(extent), binding }
}

fn nest(loops: &[(VarId, i64)], body: Stmt) -> Stmt {
    loops.iter().rev().fold(body, |body, (var, extent)| Stmt::for_loop(*var, Expr::int(*extent), body))
}

/// Returns an axis `v = i0 * 4 + i1` with the predicate `v < 10`, over loops of 3 and 4 iterations.
fn split_loops() -> PrimFunc {
    let mut hand = Hand::new("split_loops");
    let (x, out) = (hand.param("x", &[Expr::int(10)], F32), hand.param("out", &[Expr::int(10)], F32));
    let ((i0, outer), (i1, inner)) = (hand.var("i_0", DType::INT64), hand.var("i_1", DType::INT64));
    let (v, axis) = hand.var("v", DType::INT64);
    let binding = outer * Expr::int(4) + inner;
    let body =
        store(out, std::slice::from_ref(&axis), hand.load(x, std::slice::from_ref(&axis)) + Expr::number(1.0, F32));
    let mut block = block(vec![iter(v, IterKind::Spatial, 10, binding.clone())], body);
    block.predicate = Some(binding.lt(Expr::int(10)));
    hand.func.body = nest(&[(i0, 3), (i1, 4)], Stmt::Block(Box::new(block)));
    hand.func
}

fn fused_loop() -> PrimFunc {
    let mut hand = Hand::new("fused_loop");
    let shape = [Expr::int(4), Expr::int(6)];
    let (x, out) = (hand.param("x", &shape, F32), hand.param("out", &shape, F32));
    let (fused, all) = hand.var("fused", DType::INT64);
    let ((v0, row), (v1, column)) = (hand.var("v0", DType::INT64), hand.var("v1", DType::INT64));
    let at = [row, column];
    let body = store(out, &at, hand.load(x, &at) * Expr::number(2.0, F32));
    let iters = vec![
        iter(v0, IterKind::Spatial, 4, all.clone().floor_div(Expr::int(6))),
        iter(v1, IterKind::Spatial, 6, all.floor_mod(Expr::int(6))),
    ];
    hand.func.body = nest(&[(fused, 24)], Stmt::Block(Box::new(block(iters, body))));
    hand.func
}

/// Returns a reduction over `k = k0 * 4 + k1`: the accumulator is initialized where both loops are at 0.
fn split_reduction() -> PrimFunc {
    let mut hand = Hand::new("split_reduction");
    let x = hand.param("x", &[Expr::int(5), Expr::int(12)], F32);
    let out = hand.param("out", &[Expr::int(5)], F32);
    let ((i, row), (k0, outer), (k1, inner)) =
        (hand.var("i", DType::INT64), hand.var("k_0", DType::INT64), hand.var("k_1", DType::INT64));
    let ((v, axis), (vk, k)) = (hand.var("v", DType::INT64), hand.var("vk", DType::INT64));
    let at = std::slice::from_ref(&axis);
    let body = store(out, at, hand.load(out, at) + hand.load(x, &[axis.clone(), k]));
    let iters = vec![iter(v, IterKind::Spatial, 5, row), iter(vk, IterKind::Reduce, 12, outer * Expr::int(4) + inner)];
    let mut block = block(iters, body);
    block.init = Some(store(out, at, Expr::number(0.0, F32)));
    hand.func.body = nest(&[(k0, 3), (i, 5), (k1, 4)], Stmt::Block(Box::new(block)));
    hand.func
}

fn thread_bindings() -> PrimFunc {
    let mut hand = Hand::new("thread_bindings");
    let shape = [Expr::int(6), Expr::int(8)];
    let (x, out) = (hand.param("x", &shape, F32), hand.param("out", &shape, F32));
    let ((b, block_index), (t, thread)) = (hand.var("blockIdx_x", DType::INT32), hand.var("threadIdx_x", DType::INT32));
    let ((v0, row), (v1, column)) = (hand.var("v0", DType::INT64), hand.var("v1", DType::INT64));
    let at = [row, column];
    let iters = vec![
        iter(v0, IterKind::Spatial, 6, block_index.cast(DType::INT64)),
        iter(v1, IterKind::Spatial, 8, thread.cast(DType::INT64)),
    ];
    let body = Stmt::Block(Box::new(block(iters, store(out, &at, Expr::number(0.0, F32) - hand.load(x, &at)))));
    let int32 = |value| Expr::Int { value, dtype: DType::INT32 };
    let bind = |var, extent, axis: &str, body| Stmt::For {
        var,
        start: int32(0),
        extent: int32(extent),
        kind: LoopKind::ThreadBinding(name(axis)),
        body: Box::new(body),
    };
    hand.func.body = bind(b, 6, "blockIdx.x", bind(t, 8, "threadIdx.x", body));
    hand.func
}

/// Returns two blocks under one loop over rows: the sum of the row, then the square of this sum.
fn rows_of_two_steps() -> PrimFunc {
    let mut hand = Hand::new("rows_of_two_steps");
    let x = hand.param("x", &[Expr::int(4), Expr::int(5)], F32);
    let out = hand.param("out", &[Expr::int(4)], F32);
    let sum = hand.local("sum", &[Expr::int(4)], F32, Scope::Shared);
    let ((i, row), (k, column)) = (hand.var("i", DType::INT64), hand.var("k", DType::INT64));
    let ((v0, a), (vk, b), (v1, c)) =
        (hand.var("v0", DType::INT64), hand.var("vk", DType::INT64), hand.var("v1", DType::INT64));
    let (at, last) = (std::slice::from_ref(&a), std::slice::from_ref(&c));
    let iters = vec![iter(v0, IterKind::Spatial, 4, row.clone()), iter(vk, IterKind::Reduce, 5, column)];
    let mut first = block(iters, store(sum, at, hand.load(sum, at) + hand.load(x, &[a.clone(), b])));
    first.init = Some(store(sum, at, Expr::number(0.0, F32)));
    let square = hand.load(sum, last) * hand.load(sum, last);
    let second = block(vec![iter(v1, IterKind::Spatial, 4, row)], store(out, last, square));
    let steps = Stmt::seq([nest(&[(k, 5)], Stmt::Block(Box::new(first))), Stmt::Block(Box::new(second))]);
    let mut root = block(Vec::new(), nest(&[(i, 4)], steps));
    root.allocations = vec![sum];
    hand.func.body = Stmt::Block(Box::new(root));
    hand.func
}

fn thread_memory() -> PrimFunc {
    thread_memory_of(Expr::int(3), Hand::new("thread_memory"))
}

fn large_thread_memory() -> PrimFunc {
    let mut hand = Hand::new("large_thread_memory");
    let (n, size) = hand.var("n", DType::INT64);
    hand.func.symbols.push(n);
    thread_memory_of(size, hand)
}

/// Returns a function with a separate buffer for each row, which is filled and then read in reverse.
fn thread_memory_of(size: Expr, mut hand: Hand) -> PrimFunc {
    let x = hand.param("x", &[Expr::int(5)], F32);
    let out = hand.param("out", &[Expr::int(5), size.clone()], F32);
    let own = hand.local("own", std::slice::from_ref(&size), F32, Scope::Local);
    let ((i, row), (j, first), (k, second)) =
        (hand.var("i", DType::INT64), hand.var("j", DType::INT64), hand.var("k", DType::INT64));
    let (v, axis) = hand.var("v", DType::INT64);
    let value = hand.load(x, std::slice::from_ref(&axis)) + first.clone().cast(F32);
    let fill = Stmt::for_loop(j, size.clone(), store(own, std::slice::from_ref(&first), value));
    let reversed = hand.load(own, &[size.clone() - Expr::int(1) - second.clone()]);
    let read = Stmt::for_loop(k, size, store(out, &[axis, second], reversed));
    let mut block = block(vec![iter(v, IterKind::Spatial, 5, row)], Stmt::seq([fill, read]));
    block.allocations = vec![own];
    hand.func.body = nest(&[(i, 5)], Stmt::Block(Box::new(block)));
    hand.func
}

/// Returns a `while` loop that counts the iterations until a number in memory is below 2.
fn collatz() -> PrimFunc {
    let mut hand = Hand::new("collatz");
    let dtype = DType::INT32;
    let (x, out) = (hand.param("x", &[Expr::int(9)], dtype), hand.param("out", &[Expr::int(9)], dtype));
    let (i, row) = hand.var("i", DType::INT64);
    let own = hand.local("number", &[], dtype, Scope::Local);
    let at = std::slice::from_ref(&row);
    let int = |value| Expr::Int { value, dtype };
    let number = hand.load(own, &[]);
    let odd = number.clone().floor_mod(int(2)).eq(int(1));
    let next = Expr::select(odd, number.clone() * int(3) + int(1), number.clone().floor_div(int(2)));
    let step = Stmt::seq([store(own, &[], next), store(out, at, hand.load(out, at) + int(1))]);
    let again = Expr::compare(CompareOp::Gt, number, int(1));
    let body = Stmt::seq([
        store(own, &[], hand.load(x, at)),
        store(out, at, int(0)),
        Stmt::While { condition: again, body: Box::new(step) },
    ]);
    let mut block = block(Vec::new(), body);
    block.allocations = vec![own];
    hand.func.body = nest(&[(i, 9)], Stmt::Block(Box::new(block)));
    hand.func
}

/// Returns two nests, one of which a scalar selects, with a `let` around both.
fn scalar_condition() -> PrimFunc {
    let mut hand = Hand::new("scalar_condition");
    let (x, out) = (hand.param("x", &[Expr::int(6)], F32), hand.param("out", &[Expr::int(6)], F32));
    let (s, scalar) = hand.var("scalar", DType::INT64);
    hand.func.params.push(Param::Scalar(s));
    let ((d, double), (i, row), (j, other)) =
        (hand.var("double", DType::INT64), hand.var("i", DType::INT64), hand.var("j", DType::INT64));
    let copy = |at: &Expr, hand: &Hand| hand.load(x, std::slice::from_ref(at));
    let then = store(out, std::slice::from_ref(&row), copy(&row, &hand) + double.clone().cast(F32));
    let otherwise = store(out, std::slice::from_ref(&other), copy(&other, &hand) - double.clone().cast(F32));
    let condition = Expr::compare(CompareOp::Lt, double, Expr::int(10));
    let choice = Stmt::If {
        condition,
        then: Box::new(nest(&[(i, 6)], then)),
        otherwise: Some(Box::new(nest(&[(j, 6)], otherwise))),
    };
    hand.func.body = Stmt::Let { var: d, value: scalar * Expr::int(2), body: Box::new(choice) };
    hand.func
}

/// Returns a transpose with `int32` loops.
fn narrow_indices() -> PrimFunc {
    let mut hand = Hand::new("narrow_indices");
    let int32 = |value| Expr::Int { value, dtype: DType::INT32 };
    let x = hand.param("x", &[int32(3), int32(4)], F32);
    let out = hand.param("out", &[int32(4), int32(3)], F32);
    let ((i, row), (j, column)) = (hand.var("i", DType::INT32), hand.var("j", DType::INT32));
    let body = store(out, &[row.clone(), column.clone()], hand.load(x, &[column, row]));
    hand.func.body = Stmt::for_loop(i, int32(4), Stmt::for_loop(j, int32(3), body));
    hand.func
}

/// Returns a gather of rows at loaded indices: `(indices[i] + offset) // 5`, checked against the extent.
fn gather(offset: i64) -> PrimFunc {
    let mut hand = Hand::new("gather");
    let (n, rows) = hand.var("n", DType::INT64);
    hand.func.symbols.push(n);
    let x = hand.param("x", &[rows.clone(), Expr::int(2)], F32);
    let indices = hand.param("indices", &[Expr::int(5)], DType::INT64);
    let out = hand.param("out", &[Expr::int(5), Expr::int(2)], F32);
    let ((i, row), (j, column)) = (hand.var("i", DType::INT64), hand.var("j", DType::INT64));
    let sum = Expr::binary(BinaryOp::Add, hand.load(indices, std::slice::from_ref(&row)), Expr::int(offset));
    let index = sum.floor_div(Expr::int(5));
    let checked = Expr::Checked { index: Box::new(index), extent: Box::new(rows), buffer: x, axis: 0, site: site() };
    let body = store(out, &[row, column.clone()], hand.load(x, &[checked, column]));
    hand.func.body = nest(&[(i, 5), (j, 2)], body);
    hand.func
}

/// Returns an assertion that `x[i]` is above 1000, which fails for every element.
fn assertion() -> PrimFunc {
    let mut hand = Hand::new("assertion");
    let x = hand.param("x", &[Expr::int(3)], F32);
    let (i, row) = hand.var("i", DType::INT64);
    let value = hand.load(x, std::slice::from_ref(&row));
    let condition = Expr::compare(CompareOp::Gt, value, Expr::number(1000.0, F32));
    let check = Stmt::Assert { condition, message: name("x is large"), site: site() };
    hand.func.body = nest(&[(i, 3)], Stmt::seq([check, store(x, &[row], Expr::number(0.0, F32))]));
    hand.func
}
