//! Tensor core operations: matches loop nests over fragments, and resolves them to the instructions of a warp.
//!
//! ```text
//! for i, j, k in T.grid(16, 16, 16):                                   rx_mma_f16(c[0], a[0], b[0]);
//!     C[i, j] = C[i, j] + float32(A[i, k]) * float32(B[k, j])      →   rx_mma_f16(c[0] + 4, a[0], b[0] + 2);
//! ```
//!
//! A fragment is a matrix of 16 x 16 elements that the 32 threads of a warp hold together, in the layout of `mma.sync`.
//! TVM's intrinsics (`tvm_fill_fragment` and the like) have this form here: the reader of functions expands them to
//! such loops.
//!
//! Requires that all threads of a warp execute the operation, and that the extent of `threadIdx.x` is a multiple of 32.
//! Resolving requires compacted buffers, since a fragment's number in its buffer follows from the indices.
//!
//! Reference: PTX ISA, "Matrix Fragments for mma.m16n8k16".

mod print;

pub(super) use print::Printer;

use super::{Axis, Launch, Node};
use crate::rules::Declined;
use rx_base::{DType, Dim};
use rx_loops::affine::is_multiple;
use rx_loops::scope::Scope as Known;
use rx_tir::rewrite::substitute;
use rx_tir::{BinaryOp, BufferId, CompareOp, Effects, Expr, Fragment, PrimFunc, Scope, Stmt, VarId, WARP};

/// Rows and columns of a fragment, of each operand.
const SIDE: i64 = 16;

/// Elements of a fragment.
const ELEMENTS: i64 = SIDE * SIDE;

/// An operation that the threads of a warp execute together.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Warp {
    /// Predicate for executing it, the same for all threads of a warp; `None`: all warps do.
    pub(super) condition: Option<Expr>,
    /// The operation as a loop nest over elements.
    pub(super) stmt: Stmt,
    /// The operation as instructions, once [`resolve`] has found them.
    step: Option<Step>,
}

/// One fragment of a buffer, which may hold several.
#[derive(Clone, Debug)]
struct Part {
    buffer: BufferId,
    /// Which operand of a product it is.
    place: Fragment,
    /// Its index among the buffer's fragments, an `int32`.
    number: Expr,
}

/// The loop variables of a fragment's rows and columns.
type Counters = [VarId; 2];

#[derive(Clone, Debug)]
/// The instructions of a fragment operation.
enum Step {
    /// Sets each element of `to` to a value. The value reads no fragments, or, if `to` is an accumulator, only
    /// accumulators, each at the row and column of the element that is set.
    Set { to: Part, counters: Counters, value: Expr, reads: Vec<Part> },
    /// Loads 16-bit elements from shared memory with `ldmatrix`. `by_columns`: the columns of the matrix are
    /// contiguous, not its rows.
    Lines { to: Part, counters: Counters, buffer: BufferId, indices: Vec<Expr>, by_columns: bool },
    /// Stores a value for each element to memory. Of fragments, the value reads only accumulators, at the element's row
    /// and column.
    Store { reads: Vec<Part>, counters: Counters, store: Stmt },
    /// Multiplies and accumulates, `sum += a * b`, with the prelude's function `helper`.
    Multiply { sum: Part, a: Part, b: Part, helper: &'static str },
}

/// Whether a statement accesses fragments.
pub(super) fn are_used(func: &PrimFunc, stmt: &Stmt) -> bool {
    let effects = Effects::of(stmt);
    effects.read.iter().chain(&effects.written).any(|id| place_of(func, *id).is_some())
}

/// Whether a statement has the form of a fragment operation: a nest of two loops from 0 to 15 around a store that
/// accesses fragments, or of three such loops around such a store whose value is a sum and whose indices do not use the
/// last loop (as for a product of fragments). [`resolve`] may find no instructions.
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

/// Returns the axis `threadIdx.x`, whose threads form the warps.
///
/// # Errors
/// No loop is bound to it, or its extent is not a multiple of the warp size.
pub(super) fn lanes(launch: &Launch) -> Result<&Axis, Declined> {
    let of_warps = |axis: &&Axis| axis.extent.as_int().is_some_and(|extent| extent % WARP == 0);
    let lanes = launch.axis("threadIdx.x").filter(of_warps);
    lanes.ok_or_else(|| {
        Declined::because("requires `threadIdx.x` as a multiple of 32 for fragments; found another extent")
    })
}

/// Returns the node of a fragment operation, which the threads of a warp execute together.
///
/// `bound` has the thread axes of the loops around the operation, and `guards` the conditions around it. If only one of
/// several warps along `threadIdx.y` or `threadIdx.z` may execute it, since it stores to memory that they share,
/// `first` is the condition that elects this warp.
///
/// # Errors
/// Only some threads of a warp, or each thread for itself, would execute it; or `threadIdx.x` does not form whole
/// warps.
pub(super) fn warp(
    (func, launch): (&PrimFunc, &Launch),
    (bound, guards): (&[VarId], &[Expr]),
    stmt: &Stmt,
    first: Option<Expr>,
) -> Result<Node, Declined> {
    let lanes = lanes(launch)?;
    let mut conditions: Vec<Expr> = guards.to_vec();
    let is_bound = bound.contains(&lanes.var);
    // A condition that selects the first thread of a warp is dropped: the whole warp executes the operation.
    conditions.retain(|condition| !is_first_lane(condition, lanes));
    if is_bound && conditions.len() == guards.len() {
        return Err(Declined::because("requires whole warps for fragments; found an operation of single threads"));
    }
    if conditions.iter().any(|condition| condition.uses(lanes.var)) {
        return Err(Declined::because(
            "requires whole warps for fragments; found a condition that differs within a warp",
        ));
    }
    let is_seen = Effects::of(stmt).written.iter().any(|id| !func.buffer(*id).scope.is_private());
    if !is_bound && is_seen && lanes.extent.as_int() != Some(WARP) {
        conditions.push(func.var_expr(lanes.var).lt(Expr::int(WARP)));
    }
    conditions.extend(first);
    let condition = conditions.into_iter().reduce(Expr::and);
    Ok(Node::Warp(Box::new(Warp { condition, stmt: stmt.clone(), step: None })))
}

/// Whether a condition selects the first thread of a warp: `threadIdx.x % 32 == 0`, or `threadIdx.x == 0` if the extent
/// of `threadIdx.x` is 32.
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

/// Returns the expression without integer casts around it.
fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { value, .. } if expr.dtype().is_int() => plain(value),
        other => other,
    }
}

/// Finds the instructions of all fragment operations in a tree.
///
/// # Errors
/// An operation has none, or a leaf accesses fragments.
pub(super) fn resolve(func: &PrimFunc, known: &mut Known, node: &mut Node) -> Result<(), Declined> {
    let other = || Declined::because("requires fragment operations that tensor cores have; found another");
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

/// Returns the variables of the perfectly nested loops over 0 to 15 around a statement, outermost first, and that
/// statement.
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

/// Returns which operand of a product a buffer's fragments are; `None` for other buffers.
fn place_of(func: &PrimFunc, id: BufferId) -> Option<Fragment> {
    match func.buffer(id).scope {
        Scope::Fragment(place) => Some(place),
        _ => None,
    }
}

/// The matcher of fragment operations.
struct Reading<'f> {
    func: &'f PrimFunc,
    known: &'f mut Known,
}

impl Reading<'_> {
    /// Returns the instructions of a loop nest; `None` if there are none.
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
                    // Of most factors, a lane holds other elements than of an accumulator.
                    true if to.place == Fragment::Accumulator => {
                        Some(Step::Set { to, counters, value: value.clone(), reads })
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the accumulators that a value reads, each at the element's own row and column. `None` if it reads an
    /// element at another position, a factor, or several fragments of one buffer.
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

    /// Matches `sum[i, j] = sum[i, j] + a[i, k] * b[k, j]`, with or without casts around the three loads.
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

    /// Returns the fragment whose element at `counters` an expression loads, with or without casts around the load.
    fn loaded(&mut self, expr: &Expr, counters: Counters) -> Option<Part> {
        match expr {
            Expr::Cast { value, .. } => self.loaded(value, counters),
            Expr::Load { buffer, indices, .. } => self.part(*buffer, indices, counters),
            _ => None,
        }
    }

    /// Returns the fragment whose element at row `i`, column `j` these indices name.
    ///
    /// Two layouts of a buffer match. In a linear one, the last axis holds fragments of 256 row-major elements. In a
    /// tiled one, the last two axes are a matrix of tiles: indices `[16 * p + i, 16 * q + j]` of a buffer of shape
    /// `(32, 64)` name fragment `4 * p + q`.
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
            // The linear layout.
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

    /// Matches a load of a factor from shared memory that `ldmatrix` can do: 16-bit elements, whose rows or columns are
    /// contiguous, each run of eight at a multiple of 16 bytes.
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

/// Returns an index at row 0, column 0 of the fragment.
fn at_first(index: &Expr, counters: Counters) -> Expr {
    substitute(index, &|var| counters.contains(&var).then_some(Expr::Int { value: 0, dtype: DType::INT32 }))
}

/// Returns the number of elements that pad each row of a shared buffer that fragments are loaded from: 8 (16 bytes) if
/// elements have two bytes, there are several axes, and the last extent is a multiple of 16; otherwise 0.
///
/// `ldmatrix` reads eight runs of 16 bytes at once. Without padding, those of eight rows could be in the same banks,
/// for example if a row has 64 elements (128 bytes).
pub(super) fn padding(func: &PrimFunc, id: BufferId, shape: &[i64]) -> i64 {
    let bytes = func.buffer(id).dtype.bytes().cast_signed();
    match shape {
        [_, .., columns] if bytes == 2 && columns % 16 == 0 => 16 / bytes,
        _ => 0,
    }
}

/// Appends the shared buffers that fragment operations read to `into`.
pub(super) fn sources(func: &PrimFunc, node: &Node, into: &mut Vec<BufferId>) {
    if let Node::Warp(warp) = node {
        into.extend(Effects::of(&warp.stmt).read.into_iter().filter(|id| func.buffer(*id).scope == Scope::Shared));
    }
    node.children().into_iter().for_each(|child| sources(func, child, into));
}
