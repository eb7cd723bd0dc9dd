//! Functions whose threads wait for each other, as loops.
//!
//! A body with `T.tvm_storage_sync` or `T.tvm_thread_allreduce` is what one thread does: loops bound to `threadIdx` are its
//! indices, local buffers are its own, and all threads of a block run it together. [`as_loops`] gives the same function as
//! loops one after the other, each over all threads: from one point where they wait to the next. That is what everyone else runs
//! and schedules, and a device's threads wait between those loops again.
//!
//! What all threads of a block compute alike (it depends on no thread, and neither does whether it is done) is done once per
//! block, and that is what loops and conditions around waits must hang on. Buffers of a thread become buffers of all
//! threads, by their indices. Of threads that store to one element, the first does. (The splitting of loops at barriers: Stratton,
//! Stone and Hwu, "MCUDA", 2008. What threads must not do: TVM `thread_storage_sync`, `verify_gpu_code`.)

mod all_reduce;
mod implied;
mod launches;
mod reach;
mod split;
mod varying;

pub use implied::imply_waits;
pub use varying::Varying;

use crate::expr::Expr;
use crate::func::{BufferId, PrimFunc, VarId};
use crate::marks::{Marks, Outcome, Problem, first_mark};
use crate::stmt::{LoopKind, Site, Stmt};
use rx_base::name::name;
use rx_base::{DType, Name};

/// What all threads of a block do together.
#[derive(Clone, Debug, PartialEq)]
pub enum Collective {
    /// All wait for each other (`T.tvm_storage_sync`).
    Wait,
    /// All have what their values come to (`T.tvm_thread_allreduce`).
    AllReduce(Box<AllReduce>),
}

/// A reduction over threads, of one value or of several at once: a maximum and where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct AllReduce {
    /// A thread's values.
    pub values: Vec<Expr>,
    /// A `bool`: threads where it does not hold bring nothing.
    pub condition: Expr,
    /// What reducing nothing gives; as many, and of the same dtypes.
    pub identities: Vec<Expr>,
    /// The variables of the values on the left and on the right of the operation.
    pub operands: [Vec<VarId>; 2],
    /// What two come to, in those variables.
    pub combined: Vec<Expr>,
    /// The elements of the thread's buffers that get the results.
    pub targets: Vec<(BufferId, Vec<Expr>)>,
    /// The thread indices that it goes over.
    pub over: Vec<Expr>,
    /// What run-time errors name.
    pub site: Site,
}

/// Where in a body threads do what together.
pub type Collectives = Marks<Collective>;

/// An index of threads within a block.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// `threadIdx.x`.
    pub tag: Name,
    /// Stands for all loops bound to it until loops are made again.
    pub var: VarId,
    /// How many threads a block has along it.
    pub extent: i64,
}

/// The function as loops, without collectives.
///
/// # Errors
/// Where a block's threads are not known by number, or wait where not all of them come.
pub fn as_loops(func: &PrimFunc, collectives: &Collectives) -> Outcome<PrimFunc> {
    let mut made = func.clone();
    let body = match launches::are_apart(func, collectives) {
        true => launches::each(&func.body, collectives, &mut |launch| of_one_launch(&mut made, launch, collectives))?,
        false => of_one_launch(&mut made, &func.body, collectives)?,
    };
    made.body = reach::with_axes_for_loops(&mut made, &body);
    Ok(made)
}

/// What the threads of one launch do, as loops.
fn of_one_launch(func: &mut PrimFunc, body: &Stmt, collectives: &Collectives) -> Outcome<Stmt> {
    func.body = body.clone();
    let axes = axes_of(func, collectives)?;
    let varying = Varying::of(func, std::slice::from_ref(&func.body), &axes, collectives);
    split::split(func, &axes, &varying, collectives)
}

/// The thread axes of all loops, each as long as its longest.
fn axes_of(func: &mut PrimFunc, collectives: &Collectives) -> Outcome<Vec<Axis>> {
    let at = first_mark(&func.body, collectives).unwrap_or(VarId(0));
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
