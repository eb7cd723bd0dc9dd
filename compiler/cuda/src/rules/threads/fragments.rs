//! What warps do with fragments of tensor cores (TVM's `tvm_fill_fragment` and its like, which are read as loops): matrices of
//! 16 x 16 elements that the 32 threads of a warp hold together, as `mma.sync` takes them (PTX ISA, "Matrix Fragments for
//! mma.m16n8k16").

mod print;

pub(super) use print::Printer;

use super::{Axis, Launch, Node};
use crate::rules::Declined;
use rx_base::{DType, Dim};
use rx_schedule::affine::is_multiple;
use rx_schedule::scope::Scope as Known;
use rx_tir::rewrite::substitute;
use rx_tir::{BinaryOp, BufferId, CompareOp, Effects, Expr, Fragment, PrimFunc, Scope, Stmt, VarId, WARP};

/// Rows and columns of a fragment, whatever its place in the product is.
const SIDE: i64 = 16;

/// Its elements.
const ELEMENTS: i64 = SIDE * SIDE;

/// What a warp does at once.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Warp {
    /// Warps where it does not hold do nothing; all threads of a warp find it alike.
    pub(super) condition: Option<Expr>,
    /// As loops over the elements.
    pub(super) stmt: Stmt,
    /// As what threads do; known when buffers are as small as they get.
    step: Option<Step>,
}

/// A fragment of a buffer, by its number.
#[derive(Clone, Debug)]
struct Part {
    buffer: BufferId,
    place: Fragment,
    number: Expr,
}

/// The variables of a matrix's rows and columns.
type Counters = [VarId; 2];

#[derive(Clone, Debug)]
enum Step {
    /// Each element gets a value, made of its row and column, and of accumulators there.
    Set { to: Part, counters: Counters, value: Expr, reads: Vec<Part> },
    /// Eight 16-bit elements at a time are read of shared memory, in which rows (or columns) are lines.
    Lines { to: Part, counters: Counters, buffer: BufferId, indices: Vec<Expr>, by_columns: bool },
    /// A store for each element.
    Store { reads: Vec<Part>, counters: Counters, store: Stmt },
    /// `sum += a * b`.
    Multiply { sum: Part, a: Part, b: Part, helper: &'static str },
}

/// Whether a statement reads or writes fragments.
pub(super) fn are_used(func: &PrimFunc, stmt: &Stmt) -> bool {
    let effects = Effects::of(stmt);
    effects.read.iter().chain(&effects.written).any(|id| place_of(func, *id).is_some())
}

/// Whether a statement is what a warp does at once: a loop nest over elements of a fragment, and of a product's sum.
pub(super) fn is_step(func: &PrimFunc, stmt: &Stmt) -> bool {
    let (loops, inner) = nest(stmt);
    let Stmt::Store { indices, value, .. } = inner else { return false };
    let is_counted = match loops[..] {
        [_, _] => true,
        [_, _, last] => {
            !indices.iter().any(|index| index.uses(last)) && matches!(value, Expr::Binary { op: BinaryOp::Add, .. })
        }
        _ => false,
    };
    is_counted && are_used(func, inner)
}

/// The axis of a warp's threads.
pub(super) fn lanes(launch: &Launch) -> Result<&Axis, Declined> {
    let of_warps = |axis: &&Axis| axis.extent.as_int().is_some_and(|extent| extent % WARP == 0);
    let lanes = launch.axis("threadIdx.x").filter(of_warps);
    lanes.ok_or_else(|| Declined::because("threads along x are no warps, which fragments are of"))
}

/// The statement as a warp's, where the loops around it are bound to `bound`, `guards` hold, and of warps that nothing tells
/// apart that of `first` does it.
pub(super) fn warp(
    (func, launch): (&PrimFunc, &Launch),
    (bound, guards): (&[VarId], &[Expr]),
    stmt: &Stmt,
    first: Option<Expr>,
) -> Result<Node, Declined> {
    let lanes = lanes(launch)?;
    let mut conditions: Vec<Expr> = guards.to_vec();
    let is_bound = bound.contains(&lanes.var);
    // What the first thread of a warp is said to do, the warp does.
    conditions.retain(|condition| !is_first_lane(condition, lanes));
    if is_bound && conditions.len() == guards.len() {
        return Err(Declined::because("each thread of a warp would use fragments by itself"));
    }
    if conditions.iter().any(|condition| condition.uses(lanes.var)) {
        return Err(Declined::because("threads of one warp would not all use a fragment"));
    }
    let is_seen = Effects::of(stmt).written.iter().any(|id| !func.buffer(*id).scope.is_private());
    if !is_bound && is_seen && lanes.extent.as_int() != Some(WARP) {
        conditions.push(func.var_expr(lanes.var).lt(Expr::int(WARP)));
    }
    conditions.extend(first);
    let condition = conditions.into_iter().reduce(Expr::and);
    Ok(Node::Warp(Box::new(Warp { condition, stmt: stmt.clone(), step: None })))
}

/// `threadIdx.x % 32 == 0`, or `threadIdx.x == 0` where all of them are one warp.
fn is_first_lane(condition: &Expr, lanes: &Axis) -> bool {
    let Expr::Compare { op: CompareOp::Eq, left, right } = condition else { return false };
    let is_lane = |expr: &Expr| matches!(plain(expr), Expr::Var { var, .. } if *var == lanes.var);
    let is_first = match plain(left) {
        Expr::Binary { op: BinaryOp::FloorMod, left: lane, right: warp } => {
            is_lane(lane) && warp.as_int() == Some(WARP)
        }
        lane => is_lane(lane) && lanes.extent.as_int() == Some(WARP),
    };
    is_first && right.as_int() == Some(0)
}

fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { value, .. } if expr.dtype().is_int() => plain(value),
        other => other,
    }
}

/// Says of all that warps do in a tree how threads do it.
pub(super) fn resolve(func: &PrimFunc, known: &mut Known, node: &mut Node) -> Result<(), Declined> {
    let other = || Declined::because("fragments are used in a form that tensor cores have no instruction for");
    match node {
        Node::Warp(warp) => {
            let step = Reading { func, known }.step(&warp.stmt);
            warp.step = Some(step.ok_or_else(other)?);
            Ok(())
        }
        Node::Leaf(stmt) if are_used(func, stmt) => Err(other()),
        node => node.children_mut().into_iter().try_for_each(|child| resolve(func, known, child)),
    }
}

/// The variables of loops around a statement that count from 0 to 16.
fn nest(stmt: &Stmt) -> (Vec<VarId>, &Stmt) {
    let (mut loops, mut inner) = (Vec::new(), stmt);
    while let Stmt::For { var, start, extent, body, .. } = inner
        && start.as_int() == Some(0)
        && extent.as_int() == Some(SIDE)
    {
        loops.push(*var);
        inner = body;
    }
    (loops, inner)
}

fn place_of(func: &PrimFunc, id: BufferId) -> Option<Fragment> {
    match func.buffer(id).scope {
        Scope::Fragment(place) => Some(place),
        _ => None,
    }
}

/// Reads steps.
struct Reading<'f> {
    func: &'f PrimFunc,
    known: &'f mut Known,
}

impl Reading<'_> {
    fn step(&mut self, stmt: &Stmt) -> Option<Step> {
        let (loops, inner) = nest(stmt);
        let Stmt::Store { buffer, indices, value, .. } = inner else { return None };
        match loops[..] {
            [i, j, k] => self.product((*buffer, indices), value, [i, j, k]),
            [i, j] => {
                let counters = [i, j];
                let reads = self.reads(value, counters)?;
                if place_of(self.func, *buffer).is_none() {
                    return Some(Step::Store { reads, counters, store: inner.clone() });
                }
                let to = self.part(*buffer, indices, counters)?;
                let dtype = self.func.buffer(*buffer).dtype;
                let is_held = match to.place {
                    Fragment::Accumulator => matches!(dtype, DType::FLOAT16 | DType::FLOAT32 | DType::INT32),
                    _ => matches!(dtype, DType::FLOAT16 | DType::BFLOAT16 | DType::INT8 | DType::UINT8),
                };
                match is_held {
                    true if reads.is_empty() => Some(self.lines(&to, value, counters).unwrap_or(Step::Set {
                        to,
                        counters,
                        value: value.clone(),
                        reads,
                    })),
                    true => Some(Step::Set { to, counters, value: value.clone(), reads }),
                    false => None,
                }
            }
            _ => None,
        }
    }

    /// The accumulators that a value is made of, each at its row and column.
    fn reads(&mut self, value: &Expr, counters: Counters) -> Option<Vec<Part>> {
        let mut loads = Vec::new();
        value.walk(&mut |part| {
            if let Expr::Load { buffer, indices, .. } = part
                && place_of(self.func, *buffer).is_some()
            {
                loads.push((*buffer, indices));
            }
        });
        let mut parts: Vec<Part> = Vec::new();
        for (buffer, indices) in loads {
            let part = self.part(buffer, indices, counters)?;
            match parts.iter().find(|known| known.buffer == buffer) {
                _ if part.place != Fragment::Accumulator => return None,
                Some(known) if known.number == part.number => {}
                Some(_) => return None,
                None => parts.push(part),
            }
        }
        Some(parts)
    }

    fn product(&mut self, (buffer, indices): (BufferId, &[Expr]), value: &Expr, [i, j, k]: [VarId; 3]) -> Option<Step> {
        let Expr::Binary { op: BinaryOp::Add, left: before, right: product } = value else { return None };
        let Expr::Binary { op: BinaryOp::Mul, left: a, right: b } = &**product else { return None };
        let sum = self.part(buffer, indices, [i, j])?;
        let before = self.loaded(before, [i, j])?;
        let (a, b) = (self.loaded(a, [i, k])?, self.loaded(b, [k, j])?);
        let is_itself = before.buffer == sum.buffer && before.number == sum.number;
        let places = [sum.place, a.place, b.place];
        if !is_itself || places != [Fragment::Accumulator, Fragment::MatrixA, Fragment::MatrixB] {
            return None;
        }
        let dtype = |part: &Part| self.func.buffer(part.buffer).dtype;
        let helper = match (dtype(&a), dtype(&b), dtype(&sum)) {
            (DType::FLOAT16, DType::FLOAT16, DType::FLOAT16 | DType::FLOAT32) => "rx_mma_f16",
            (DType::BFLOAT16, DType::BFLOAT16, DType::FLOAT32) => "rx_mma_bf16",
            (DType::INT8, DType::INT8, DType::INT32) => "rx_mma_s8_s8",
            (DType::INT8, DType::UINT8, DType::INT32) => "rx_mma_s8_u8",
            (DType::UINT8, DType::INT8, DType::INT32) => "rx_mma_u8_s8",
            (DType::UINT8, DType::UINT8, DType::INT32) => "rx_mma_u8_u8",
            _ => return None,
        };
        Some(Step::Multiply { sum, a, b, helper })
    }

    /// The fragment whose element, converted, an expression is.
    fn loaded(&mut self, expr: &Expr, counters: Counters) -> Option<Part> {
        match expr {
            Expr::Cast { value, .. } => self.loaded(value, counters),
            Expr::Load { buffer, indices, .. } => self.part(*buffer, indices, counters),
            _ => None,
        }
    }

    /// The fragment whose element at the counters these indices are.
    fn part(&mut self, buffer: BufferId, indices: &[Expr], [i, j]: Counters) -> Option<Part> {
        let place = place_of(self.func, buffer)?;
        let shape: Vec<i64> = self.func.buffer(buffer).shape.iter().map(Expr::as_int).collect::<Option<_>>()?;
        let first: Vec<Dim> = indices.iter().map(|index| self.known.dim(&at_first(index, [i, j]))).collect();
        let places = indices.iter().zip(&first);
        let apart: Vec<Dim> = places.map(|(index, first)| &self.known.dim(index) - first).collect();
        let [row, column] = [i, j].map(|var| self.known.dim(&self.func.var_expr(var)));
        let side = Dim::constant(SIDE);
        let in_front = |count: usize| {
            let is_still = apart.iter().take(count).all(|apart| apart.as_constant() == Some(0));
            let row_major = |all: Dim, (first, extent): (&Dim, &i64)| &(&all * &Dim::constant(*extent)) + first;
            is_still.then(|| first.iter().zip(&shape).take(count).fold(Dim::constant(0), row_major))
        };
        let number = match (&shape[..], &apart[..], &first[..]) {
            // One after the other.
            ([.., elements], [.., apart], [.., first]) if *apart == &(&row * &side) + &column => {
                if elements % ELEMENTS != 0 || !is_multiple(first, ELEMENTS) {
                    return None;
                }
                let number = &in_front(shape.len() - 1)? * &Dim::constant(elements / ELEMENTS);
                &number + &first.floor_div(&Dim::constant(ELEMENTS))
            }
            ([.., rows, columns], [.., of_row, of_column], [.., first_row, first_column]) => {
                let is_tiled = rows % SIDE == 0 && columns % SIDE == 0;
                let is_at = is_multiple(first_row, SIDE) && is_multiple(first_column, SIDE);
                if !is_tiled || !is_at || *of_row != row || *of_column != column {
                    return None;
                }
                let number = &in_front(shape.len() - 2)? * &Dim::constant(rows / SIDE);
                let number = &number + &first_row.floor_div(&side);
                &(&number * &Dim::constant(columns / SIDE)) + &first_column.floor_div(&side)
            }
            _ => return None,
        };
        let number = self.known.expr(&number, DType::INT32)?;
        Some(Part { buffer, place, number })
    }

    /// The step of lines in shared memory that `ldmatrix` reads: 16-bit elements, each eight of a line at a multiple of 16 bytes.
    fn lines(&mut self, to: &Part, value: &Expr, counters: Counters) -> Option<Step> {
        let Expr::Load { buffer, indices, dtype } = value else { return None };
        let from = self.func.buffer(*buffer);
        if to.place == Fragment::Accumulator || dtype.bits != 16 || from.scope != Scope::Shared {
            return None;
        }
        let shape: Vec<i64> = from.shape.iter().map(Expr::as_int).collect::<Option<_>>()?;
        let mut position = |at: &dyn Fn(&Expr) -> Expr| {
            let mut position = Dim::constant(0);
            for (index, extent) in indices.iter().zip(&shape) {
                position = &(&position * &Dim::constant(*extent)) + &self.known.dim(&at(index));
            }
            position
        };
        let first = position(&|index| at_first(index, counters));
        let apart = &position(&Expr::clone) - &first;
        let [row, column] = counters.map(|var| self.known.dim(&self.func.var_expr(var)));
        let along = |line: &Dim, element: &Dim| {
            let lines = &apart - element;
            let [(_, stride)] = lines.terms() else { return None };
            (&Dim::constant(*stride) * line == lines && stride % 8 == 0).then_some(())
        };
        let by_columns = match (along(&row, &column), along(&column, &row)) {
            (Some(()), _) => false,
            (None, Some(())) => true,
            _ => return None,
        };
        is_multiple(&first, 8).then(|| Step::Lines {
            to: to.clone(),
            counters,
            buffer: *buffer,
            indices: indices.clone(),
            by_columns,
        })
    }
}

/// An index where the counters are 0.
fn at_first(index: &Expr, counters: Counters) -> Expr {
    substitute(index, &|var| counters.contains(&var).then_some(Expr::Int { value: 0, dtype: DType::INT32 }))
}

/// Elements that lines of a shared buffer are made longer by, so that eight lines of 16 bytes lie in all banks of the memory:
/// `ldmatrix` reads as many at once.
pub(super) fn padding(func: &PrimFunc, id: BufferId, shape: &[i64]) -> i64 {
    let bytes = func.buffer(id).dtype.bytes().cast_signed();
    match shape {
        [_, .., columns] if bytes == 2 && columns % 16 == 0 => 16 / bytes,
        _ => 0,
    }
}

/// Shared buffers that fragments are read from.
pub(super) fn sources(func: &PrimFunc, node: &Node, into: &mut Vec<BufferId>) {
    if let Node::Warp(warp) = node {
        into.extend(Effects::of(&warp.stmt).read.into_iter().filter(|id| func.buffer(*id).scope == Scope::Shared));
    }
    node.children().into_iter().for_each(|child| sources(func, child, into));
}
