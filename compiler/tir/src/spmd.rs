//! *Barrier elimination by loop fission*: converts SPMD code, written for one thread, to loops over threads.
//!
//! ```text
//! for tx in T.thread_binding(128, "threadIdx.x"):        for tx in T.thread_binding(128, "threadIdx.x"):
//!     S[tx] = A[tx]                                          S[tx] = A[tx]
//!     T.tvm_storage_sync("shared")                  ->   for tx in T.thread_binding(128, "threadIdx.x"):
//!     B[tx] = S[127 - tx]                                    B[tx] = S[127 - tx]
//! ```
//!
//! A body with `T.tvm_storage_sync` or `T.tvm_thread_allreduce` is the program of one thread: loops bound to
//! `threadIdx` define its indices, and local buffers are private. [`as_loops`] converts it to a sequence of loops, each
//! over all threads. The interpreter and the schedules work on this form, and the CUDA code has a barrier between the
//! loops again.
//!
//! Uniform loops and conditions around barriers, and stores to private buffers whose contents are uniform, are executed
//! once per block. A private buffer that differs between threads and outlives a loop over threads becomes an array over
//! the threads. If neither the address of a store to shared or global memory nor the control flow around it depends on
//! an axis, only the threads with index 0 along the axis execute the store.
//!
//! Requires a constant number of threads, and uniform loops and conditions around barriers. Guarantees that no barriers
//! and all-reduces are left.
//!
//! Reference: loop fission at barriers is from Stratton, Stone and Hwu, "MCUDA", 2008. TVM's `thread_storage_sync` and
//! `verify_gpu_code` have similar restrictions on threads.

mod all_reduce;
mod implied;
mod launches;
mod reach;
mod split;
mod varying;

pub use implied::insert_implied_barriers;
pub use varying::Varying;

use crate::expr::Expr;
use crate::func::{BufferId, PrimFunc, VarId};
use crate::placeholders::{Outcome, Placeholders, Problem, first_placeholder};
use crate::stmt::{LoopKind, Site, Stmt};
use rx_base::name::name;
use rx_base::{DType, Name};

/// An operation of all threads of a block together.
#[derive(Clone, Debug, PartialEq)]
pub enum Collective {
    /// A barrier (`T.tvm_storage_sync`).
    Barrier,
    /// A reduction over threads that gives each of them the result (`T.tvm_thread_allreduce`).
    AllReduce(Box<AllReduce>),
}

/// A reduction over threads, of one value or of a tuple, such as a maximum and its index.
#[derive(Clone, Debug, PartialEq)]
pub struct AllReduce {
    /// The values that a thread contributes.
    pub values: Vec<Expr>,
    /// A `bool`: threads where it is false contribute the identities.
    pub condition: Expr,
    /// The identity of each value, of the value's dtype.
    pub identities: Vec<Expr>,
    /// The variables of the combiner's left and right operands.
    pub operands: [Vec<VarId>; 2],
    /// The combiner's results, over those variables.
    pub combined: Vec<Expr>,
    /// The elements of the thread's buffers that receive the results.
    pub targets: Vec<(BufferId, Vec<Expr>)>,
    /// The thread indices to reduce over.
    pub over: Vec<Expr>,
    /// The statement that run-time errors name.
    pub site: Site,
}

/// The collective operations of a body, by placeholder.
pub type Collectives = Placeholders<Collective>;

/// A thread axis of a block.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// The axis's tag, such as `threadIdx.x`.
    pub tag: Name,
    /// The placeholder for the variables of all loops that are bound to the axis, until new loops are built.
    pub var: VarId,
    /// The number of threads along the axis.
    pub extent: i64,
}

/// Converts the function to loops over threads without collective operations.
///
/// # Errors
/// If the number of threads is not a positive constant, if a loop over threads does not start at 0, if a barrier or
/// all-reduce is not reached by all threads of a block, if an all-reduce is over an index that is no thread index, or
/// if a block reduces over threads without an all-reduce.
pub fn as_loops(func: &PrimFunc, collectives: &Collectives) -> Outcome<PrimFunc> {
    let mut made = func.clone();
    let body = match launches::are_apart(func, collectives) {
        true => launches::each(&func.body, collectives, &mut |launch| of_one_launch(&mut made, launch, collectives))?,
        false => of_one_launch(&mut made, &func.body, collectives)?,
    };
    made.body = reach::with_axes_for_loops(&mut made, &body);
    Ok(made)
}

/// Converts the body of one launch to loops over threads.
fn of_one_launch(func: &mut PrimFunc, body: &Stmt, collectives: &Collectives) -> Outcome<Stmt> {
    func.body = body.clone();
    let axes = axes_of(func, collectives)?;
    let varying = Varying::of(func, std::slice::from_ref(&func.body), &axes, collectives);
    split::split(func, &axes, &varying, collectives)
}

/// Returns the thread axes of all loops. The extent of an axis is that of its longest loop.
fn axes_of(func: &mut PrimFunc, collectives: &Collectives) -> Outcome<Vec<Axis>> {
    let at = first_placeholder(&func.body, collectives).unwrap_or(VarId(0));
    let mut found: Vec<(Name, i64)> = Vec::new();
    let mut is_known = true;
    func.body.walk(&mut |stmt| {
        if let Stmt::For { start, extent, kind: LoopKind::ThreadBinding(tag), .. } = stmt
            && is_thread(tag)
        {
            let extent = extent.as_int().filter(|extent| *extent > 0 && start.as_int() == Some(0));
            is_known &= extent.is_some();
            let extent = extent.unwrap_or(1);
            match found.iter_mut().find(|(known, _)| known == tag) {
                Some((_, known)) => *known = extent.max(*known),
                None => found.push((*tag, extent)),
            }
        }
    });
    if !is_known {
        return Err(Problem { at, reason: "how many threads a block has is not a number" });
    }
    let axis = |(tag, extent): (Name, i64)| {
        let var = func.add_var(name(&tag.replace('.', "_")), DType::INT32);
        Axis { tag, var, extent }
    };
    Ok(found.into_iter().map(axis).collect())
}

fn is_thread(tag: &str) -> bool {
    matches!(tag, "threadIdx.x" | "threadIdx.y" | "threadIdx.z")
}
