//! Salsa's tracked functions, from a checked module to kernels.
//!
//! There are mainly two kinds of queries. Queries of a *function* of the source (its lowering, the steps for a device)
//! run again after an edit of that function or of one that it calls. Queries of a *kernel* are keyed by content: the
//! loops of an operator call, a merged pair, a rewritten function, a printed kernel. No edit invalidates them. So when a
//! function is lowered again, the kernels of its unchanged statements are cached, and repeated layers share the kernels
//! of the first one.
//!
//! Every kernel query is a point at which a lowering can be cancelled.

use crate::device::Device;
use crate::file_module::ScopeModule;
use rustc_hash::{FxBuildHasher, FxHashMap};
use rx_base::Name;
use rx_cuda::rules::Target as CudaTarget;
use rx_cuda::{Scheduled, Unsupported};
use rx_db::Scope;
use rx_lower::{
    CallKernel, Loops, Merged, OperatorCall, Pair, Problem, Program, Queries, Rewrite, Rewritten, TargetInfo,
};
use rx_tir::print::Script;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// The reasons why a function has no program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unlowered {
    /// The errors of lowering.
    pub(crate) problems: Vec<Problem>,
    /// The requested prim_funcs that have errors.
    pub(crate) unreadable: Vec<Name>,
}

/// A program, or the reasons why there is none.
pub(crate) type Made = Result<Arc<Program>, Arc<Unlowered>>;

/// Lowers a Relax function and all functions that it calls, usually with one kernel for each operator call. `watched`
/// is whether the program reports the values of variables ([`rx_lower::lower_watched`]).
pub(crate) fn lowered(
    db: &dyn salsa::Database,
    scope: Scope,
    entry: Name,
    watched: bool,
) -> Result<Program, Arc<Unlowered>> {
    let module = ScopeModule::new(db, scope);
    let program = if watched { rx_lower::lower_watched(&module, entry) } else { rx_lower::lower(&module, entry) };
    program.map_err(|problems| Arc::new(Unlowered { problems, unreadable: module.unreadable() }))
}

/// Builds the program of a Relax function for a device: lowers it and runs the steps.
#[salsa::tracked(returns(clone), no_eq, lru = 16)]
pub(crate) fn program(db: &dyn salsa::Database, scope: Scope, entry: Name, device: Device) -> Made {
    let mut program = lowered(db, scope, entry, false)?;
    rx_lower::steps::run_with(&MemoizedQueries::new(db, &device), &mut program, device.target_info(), &mut |_, _| ());
    Ok(Arc::new(program))
}

/// Builds the program that consists of one prim_func. Returns `None` if the module has no such prim_func.
#[salsa::tracked(returns(clone), no_eq, lru = 16)]
pub(crate) fn alone(db: &dyn salsa::Database, scope: Scope, name: Name, optimized: bool) -> Option<Made> {
    let unlowered = || Arc::new(Unlowered { problems: Vec::new(), unreadable: vec![name] });
    let read = prim_func(db, scope, name)?.map_err(|_| unlowered());
    Some(
        read.map(|loops| {
            Arc::new(rx_lower::steps::alone(&loops, optimized, &MemoizedQueries::new(db, &Device::Interp)))
        }),
    )
}

/// Returns the loops of a prim_func of the source, or the message why it has none. Returns `None` if the module has no
/// such prim_func.
#[salsa::tracked(returns(clone))]
pub(crate) fn prim_func(db: &dyn salsa::Database, scope: Scope, name: Name) -> Option<Result<Loops, String>> {
    let read = scope.prim_func(db, name)?;
    Some(read.map(|func| Loops::new(Arc::unwrap_or_clone(func))))
}

/// The kernel queries of one run of lowering or of the steps, for a device. The results of calls, pairs and rewrites
/// are also kept in local maps, since networks repeat their layers and salsa records a dependency edge for every
/// request.
pub(crate) struct MemoizedQueries<'db> {
    pub(crate) db: &'db dyn salsa::Database,
    device: &'db Device,
    calls: Answers<OperatorCall, Result<Arc<CallKernel>, Arc<str>>>,
    pairs: Answers<Pair, Option<Arc<Merged>>>,
    rewrites: Answers<Rewrite, Option<Arc<Rewritten>>>,
}

/// The results of one query, by the hash of the key. A key is large, so it is hashed once for each request, and not
/// again when the map grows.
type Answers<Q, A> = RefCell<FxHashMap<u64, SmallVec<[(Q, A); 1]>>>;

impl<'db> MemoizedQueries<'db> {
    pub(crate) fn new(db: &'db dyn salsa::Database, device: &'db Device) -> MemoizedQueries<'db> {
        let (calls, pairs, rewrites) = Default::default();
        MemoizedQueries { db, device, calls, pairs, rewrites }
    }
}

/// Returns the known result for a key, otherwise that of `ask`, which it records.
fn once<Q: Clone + Eq + Hash, A: Clone>(known: &Answers<Q, A>, question: &Q, ask: impl FnOnce() -> A) -> A {
    let hash = FxBuildHasher.hash_one(question);
    if let Some(same) = known.borrow().get(&hash)
        && let Some((_, answer)) = same.iter().find(|(asked, _)| asked == question)
    {
        return answer.clone();
    }
    let answer = ask();
    known.borrow_mut().entry(hash).or_default().push((question.clone(), answer.clone()));
    answer
}

impl Queries for MemoizedQueries<'_> {
    fn call(&self, call: &OperatorCall) -> Result<Arc<CallKernel>, Arc<str>> {
        once(&self.calls, call, || call_kernel(self.db, CallKey::new(self.db, call)))
    }

    fn merge(&self, pair: &Pair) -> Option<Arc<Merged>> {
        once(&self.pairs, pair, || merged(self.db, PairKey::new(self.db, pair)))
    }

    fn rewrite(&self, rewrite: &Rewrite) -> Option<Arc<Rewritten>> {
        once(&self.rewrites, rewrite, || rewritten(self.db, RewriteKey::new(self.db, rewrite)))
    }

    fn can_schedule_as_one_kernel(&self, loops: &Loops, target_info: &dyn TargetInfo) -> bool {
        match self.device {
            Device::Cuda(target) => can_schedule_as_one_kernel(self.db, LoopsKey::new(self.db, loops), target.clone()),
            Device::Cpu | Device::Interp => target_info.can_schedule_as_one_kernel(loops),
        }
    }
}

#[salsa::interned]
struct CallKey<'db> {
    #[returns(ref)]
    call: OperatorCall,
}

#[salsa::tracked(returns(clone), no_eq)]
fn call_kernel<'db>(db: &'db dyn salsa::Database, key: CallKey<'db>) -> Result<Arc<CallKernel>, Arc<str>> {
    key.call(db).kernel().map(Arc::new)
}

#[salsa::interned]
struct PairKey<'db> {
    #[returns(ref)]
    pair: Pair,
}

#[salsa::tracked(returns(clone), no_eq)]
fn merged<'db>(db: &'db dyn salsa::Database, key: PairKey<'db>) -> Option<Arc<Merged>> {
    key.pair(db).merged().map(Arc::new)
}

#[salsa::interned]
struct RewriteKey<'db> {
    #[returns(ref)]
    rewrite: Rewrite,
}

#[salsa::tracked(returns(clone), no_eq)]
fn rewritten<'db>(db: &'db dyn salsa::Database, key: RewriteKey<'db>) -> Option<Arc<Rewritten>> {
    key.rewrite(db).rewritten().map(Arc::new)
}

#[salsa::interned]
pub(crate) struct LoopsKey<'db> {
    #[returns(ref)]
    loops: Loops,
}

/// Prints the loops of a kernel as TVMScript. The result can be given the kernel's name without printing it again.
#[salsa::tracked(returns(clone), no_eq)]
pub(crate) fn loops_text<'db>(db: &'db dyn salsa::Database, key: LoopsKey<'db>) -> Arc<Script> {
    Arc::new(Script::of(key.loops(db)))
}

/// Schedules a kernel's function for CUDA and prints it.
#[salsa::tracked(returns(clone), no_eq)]
pub(crate) fn scheduled<'db>(
    db: &'db dyn salsa::Database,
    key: LoopsKey<'db>,
    target: CudaTarget,
) -> Arc<Result<Scheduled, Unsupported>> {
    Arc::new(rx_cuda::schedule(&rx_cuda::prepared(key.loops(db)), &target))
}

/// Whether the CUDA back end covers a function by one schedule, which keeps temporaries out of global memory
/// ([`TargetInfo::can_schedule_as_one_kernel`]).
#[salsa::tracked(returns(copy), no_eq)]
fn can_schedule_as_one_kernel<'db>(db: &'db dyn salsa::Database, key: LoopsKey<'db>, target: CudaTarget) -> bool {
    target.can_schedule_as_one_kernel(key.loops(db))
}
