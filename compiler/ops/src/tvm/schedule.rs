//! Which calls the schedule rules of a release fail on when it builds for CUDA.
//!
//! The default pipeline tries the rules Matmul, GEMV, Reduction, GeneralReduction and Fallback in this order on every kernel; a
//! rule that does not apply says so, but some fail instead, and the build with them. What follows are their conditions
//! (python/tvm/s_tir/dlight/gpu and analysis of the release), on the nest that the release makes of the call.

use super::nest::{Index, Nest, Read, Term, nest};
use crate::call::CallInfo;
use rx_base::{DType, Dim, TvmVersion};
use rx_ir::StructInfo;

/// Why a schedule rule fails on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleFailure {
    /// Matmul puts products of int8 summed in int32 on tensor cores, and software pipelining does not know their fragments.
    Int8TensorCores {
        /// Rows, columns and summed extent.
        extents: [Dim; 3],
    },
    /// GEMV finds no loop that sums: all have extent 1.
    NothingSummed,
    /// GEMV finds no loop over results alone.
    NoRows,
    /// GEMV computes the results in tiles of 16, and rows of this extent do not fall into such.
    Tiles {
        /// The extents of the two loops over results.
        extents: [i64; 2],
    },
    /// Reduction splits the output channels by group inside a sum across threads.
    SplitChannels,
    /// Before 0.27, GEMV loads a factor of one axis as if it had two.
    VectorFactor,
    /// Before 0.27, Reduction puts the results back by a fused index that has three parts or more.
    FusedResults {
        /// The extents of the loops over results.
        extents: Vec<Dim>,
    },
    /// A sum over everything, and a step on it in the same kernel: there is no loop that both have.
    ScalarEpilogue,
}

/// The largest extent that keeps a product from tensor cores.
const SMALL: i64 = 64;

/// The results GEMV computes at once.
const TILE: i64 = 16;

/// The results Reduction computes at once, where the innermost loop is one over results.
const THREADS: i64 = 16;

/// Why the CUDA build of a call by `version` fails in a schedule rule; `None` where it does not, or nothing is known.
pub fn schedule_failure(version: TvmVersion, call: &CallInfo<'_>) -> Option<ScheduleFailure> {
    if scalar_epilogue(call) {
        return Some(ScheduleFailure::ScalarEpilogue);
    }
    if version < TvmVersion::V0_27
        && let Some(extents) = fused_results(call)
    {
        return Some(ScheduleFailure::FusedResults { extents });
    }
    let nest = nest(call)?;
    match product(&nest) {
        Some(extents) => int8(version, &nest, extents),
        None => {
            let block = Block::new(&nest);
            match block.gemv() {
                Rule::Applies | Rule::Fails(ScheduleFailure::Tiles { .. })
                    if version < TvmVersion::V0_27 && block.loads_vector =>
                {
                    Some(ScheduleFailure::VectorFactor)
                }
                Rule::Fails(failure) => Some(failure),
                Rule::Applies => None,
                Rule::Declines => block.reduction(),
            }
        }
    }
}

/// Whether the kernel of a call sums more than one element to a scalar and then changes it: the division of a mean, the sign of a
/// cross entropy (python/tvm/relax/transform/legalize_ops/statistical.py, nn.py). An axis kept is a loop of both.
fn scalar_epilogue(call: &CallInfo<'_>) -> bool {
    let operand = match call.schema.name {
        "mean" => "x",
        "nn.cross_entropy_with_logits" => "predictions",
        _ => return false,
    };
    let Ok(StructInfo::Tensor(result)) = (call.schema.infer)(call) else { return false };
    let dims = call.tensor(operand).ok().and_then(|operand| operand.shape.dims());
    result.shape.ndim() == Some(0) && dims.is_some_and(|dims| dims.iter().any(|dim| dim.as_constant() != Some(1)))
}

/// The extents of the results of a sum whose innermost axis is kept, where three parts or more of a fused index tell them apart: one for
/// each extent beyond 1, and none for the innermost if a block of threads computes it whole. (`_inner_spatial_write_back_is_affine` of
/// 0.27's gpu/reduction.py, which makes that release decline.) Only the first may be symbolic: with others the rule declines. So it does
/// where the innermost extent cannot be divided among threads.
fn fused_results(call: &CallInfo<'_>) -> Option<Vec<Dim>> {
    let kept = match call.schema.name {
        "sum" | "mean" => kept_of_sum(call),
        "nn.avg_pool1d" | "nn.avg_pool2d" | "nn.avg_pool3d" => kept_of_pooling(call),
        _ => None,
    }?;
    let (inner, outer) = kept.split_last()?;
    if kept.iter().skip(1).any(|dim| dim.as_constant().is_none()) {
        return None;
    }
    let inner = inner.as_constant().filter(|inner| (2..=THREADS).any(|threads| inner % threads == 0))?;
    let whole = inner <= THREADS;
    let parts = outer.iter().filter(|dim| dim.as_constant() != Some(1)).count() + usize::from(!whole);
    (parts >= 3).then_some(kept)
}

/// The extents that a sum of more than one element keeps, with the innermost among them.
fn kept_of_sum(call: &CallInfo<'_>) -> Option<Vec<Dim>> {
    let dims = call.tensor("x").ok()?.shape.dims()?;
    let rank = i64::try_from(dims.len()).ok()?;
    let axes: Vec<i64> = call.ints("axis")?.into_iter().map(|it| if it < 0 { it + rank } else { it }).collect();
    let is_summed = |at: usize| i64::try_from(at).is_ok_and(|at| axes.contains(&at));
    let summed = extent_of(dims.iter().enumerate().filter(|(at, _)| is_summed(*at)).map(|(_, dim)| dim));
    if is_summed(dims.len().checked_sub(1)?) || summed.as_constant() == Some(1) {
        return None;
    }
    Some((0..dims.len()).filter(|at| !is_summed(*at)).filter_map(|at| dims.get(at).cloned()).collect())
}

/// The extents of the results of an average pooling that is one sum over windows of more than one element, where channels are
/// innermost. Padding makes it another.
fn kept_of_pooling(call: &CallInfo<'_>) -> Option<Vec<Dim>> {
    let layout = call.str("layout")?;
    let is_one_layout = call.str("out_layout").is_none_or(|out| out.is_empty() || out == layout);
    let is_padded = call.ints("padding").is_none_or(|padding| padding.iter().any(|by| *by != 0));
    let is_sum = call.ints("pool_size")?.iter().any(|extent| *extent > 1);
    if layout.ends_with(['D', 'H', 'W']) || !is_one_layout || is_padded || !is_sum {
        return None;
    }
    let Ok(StructInfo::Tensor(result)) = (call.schema.infer)(call) else { return None };
    result.shape.dims().map(<[Dim]>::to_vec)
}

/// The dims whose product is the extent of the loops of one kind; 1 of none.
fn extent_of<'a>(extents: impl Iterator<Item = &'a Dim>) -> Dim {
    extents.fold(Dim::constant(1), |product, extent| &product * extent)
}

/// Rows, columns and summed extent of a nest that rule Matmul takes: every loop longer than 1 is one of a batch (in both
/// factors and the result), a row (left factor and result), a column (right factor and result) or summed (both factors).
fn product(nest: &Nest) -> Option<[Dim; 3]> {
    let reads =
        |read: &Read, iter: usize| read.indices.iter().any(|index| index.terms.iter().any(|term| term.iter == iter));
    let [left, right] = &nest.reads;
    let (mut rows, mut columns, mut summed) = (Vec::new(), Vec::new(), Vec::new());
    for (at, iter) in nest.iters.iter().enumerate().filter(|(_, iter)| iter.extent.as_constant() != Some(1)) {
        match (iter.reduction, reads(left, at), reads(right, at)) {
            (false, true, true) => {}
            (false, true, false) => rows.push(&iter.extent),
            (false, false, true) => columns.push(&iter.extent),
            (true, true, true) => summed.push(&iter.extent),
            _ => return None,
        }
    }
    let kinds = [rows, columns, summed];
    kinds.iter().all(|kind| !kind.is_empty()).then(|| kinds.map(|kind| extent_of(kind.into_iter())))
}

/// From 0.26 on, rule Matmul fails on large int8 products.
fn int8(version: TvmVersion, nest: &Nest, extents: [Dim; 3]) -> Option<ScheduleFailure> {
    if version < TvmVersion::V0_26 {
        return None;
    }
    let large = extents.iter().all(|extent| extent.as_constant().is_none_or(|extent| extent > SMALL));
    (nest.dtypes == (DType::INT8, DType::INT32) && large).then_some(ScheduleFailure::Int8TensorCores { extents })
}

/// What a rule makes of a block.
enum Rule {
    /// It takes it.
    Applies,
    /// The next rule is asked.
    Declines,
    /// It fails.
    Fails(ScheduleFailure),
}

/// A nest without the loops of extent 1, and the address of its dominant read.
struct Block {
    /// Whether each loop that is left sums, and its extent.
    iters: Vec<(bool, Dim)>,
    /// The loops each factor uses.
    used: [Vec<usize>; 2],
    /// The address in the factor that uses most loops: its summands, the largest step first.
    access: Option<Vec<Summand>>,
    /// Something is added to the address.
    shifted: bool,
    /// The sum is innermost in the factor with most loops, and the other, read second, has one axis.
    loads_vector: bool,
}

/// A loop's part in an address.
struct Summand {
    /// The loop.
    iter: usize,
    /// The loop is divided first.
    divided: bool,
    /// The constant factor of its step, and the number of symbolic ones.
    step: (i64, usize),
}

impl Block {
    fn new(nest: &Nest) -> Block {
        let kept: Vec<Option<usize>> = nest
            .iters
            .iter()
            .scan(0, |next, iter| {
                let at = (iter.extent.as_constant() != Some(1)).then_some(*next);
                *next += usize::from(at.is_some());
                Some(at)
            })
            .collect();
        let iters = nest.iters.iter().zip(&kept).filter(|(_, kept)| kept.is_some());
        let mut iters: Vec<(bool, Dim)> = iters.map(|(iter, _)| (iter.reduction, iter.extent.clone())).collect();
        // A block without a loop over results is given one of extent 1, which no address uses.
        if iters.iter().all(|(reduction, _)| *reduction) {
            iters.push((false, Dim::constant(1)));
        }
        let left = |term: &Term| kept.get(term.iter).copied().flatten();
        let used = |read: &Read| -> Vec<usize> {
            let mut used: Vec<usize> = live(read).flat_map(|(index, _)| index.terms.iter().filter_map(left)).collect();
            used.sort_unstable();
            used.dedup();
            used
        };
        let [first, second] = &nest.reads;
        let uses = [used(first), used(second)];
        let dominant = if uses[1].len() > uses[0].len() { second } else { first };
        let opaque = live(dominant).any(|(index, _)| index.opaque && index.terms.iter().any(|it| left(it).is_some()));
        let shifted = live(dominant).any(|(index, _)| index.shifted);
        let access = (!opaque).then(|| summands(dominant, &left));
        let inner = access
            .as_ref()
            .and_then(|access| access.last())
            .is_some_and(|part: &Summand| iters.get(part.iter).is_some_and(|(reduction, _)| *reduction));
        let loads_vector = inner && std::ptr::eq(dominant, first) && second.dims.len() == 1;
        Block { iters, used: uses, access, shifted, loads_vector }
    }

    fn is_reduction(&self, iter: usize) -> bool {
        self.iters.get(iter).is_some_and(|(reduction, _)| *reduction)
    }

    /// The results by loop; those that both factors use come first.
    fn rows(&self, access: &[Summand]) -> (Vec<usize>, Vec<usize>) {
        let spatial = access.iter().map(|part| part.iter).filter(|iter| !self.is_reduction(*iter));
        spatial.partition(|iter| self.used.iter().all(|used| used.contains(iter)))
    }

    /// Rule GEMV (gpu/gemv.py, analysis/gemv.py).
    fn gemv(&self) -> Rule {
        let count = self.iters.len();
        if !(2..=3).contains(&count) {
            return Rule::Declines;
        }
        let vectors = self.used.iter().filter(|used| !used.is_empty() && used.len() < count).count();
        let writes = self.iters.iter().any(|(reduction, extent)| !reduction && extent.as_constant() != Some(1));
        if vectors != 1 || !writes {
            return Rule::Declines;
        }
        let Some(access) = self.access.as_ref().filter(|access| !access.is_empty()) else { return Rule::Declines };
        let mut split = false;
        for part in access.iter().filter(|part| part.divided) {
            if split || !self.is_reduction(part.iter) {
                return Rule::Declines;
            }
            split = true;
        }
        let (batch, rows) = self.rows(access);
        if rows.is_empty() {
            return Rule::Fails(ScheduleFailure::NoRows);
        }
        if !access.iter().any(|part| self.is_reduction(part.iter)) {
            return Rule::Fails(ScheduleFailure::NothingSummed);
        }
        let inner = access.last().is_some_and(|part| self.is_reduction(part.iter));
        let loops: Vec<usize> = batch.into_iter().chain(rows).collect();
        if let ([outer, last], true) = (&loops[..], inner)
            && let [Some(outer), Some(last)] = [*outer, *last].map(|it| self.iters.get(it)?.1.as_constant())
            && outer.saturating_mul(last) > TILE
            && last % TILE != 0
            && (last < 1 || TILE % last != 0)
        {
            return Rule::Fails(ScheduleFailure::Tiles { extents: [outer, last] });
        }
        Rule::Applies
    }

    /// Rule Reduction (gpu/reduction.py).
    fn reduction(&self) -> Option<ScheduleFailure> {
        let access = self.access.as_ref().filter(|_| !self.shifted)?;
        let covered = |(at, (_, extent)): (usize, &(bool, Dim))| {
            access.iter().any(|part| part.iter == at) || extent.as_constant() == Some(1)
        };
        let sums = self.iters.iter().any(|(reduction, _)| *reduction);
        if !sums || !self.iters.iter().enumerate().all(covered) {
            return None;
        }
        let split = access.iter().filter(|part| part.divided).count();
        let of_results = access.iter().any(|part| part.divided && !self.is_reduction(part.iter));
        let inner = access.last().is_some_and(|part| self.is_reduction(part.iter));
        (split == 1 && of_results && inner).then_some(ScheduleFailure::SplitChannels)
    }
}

/// The indices of dims longer than 1; others are 0. Each with the dims behind it.
fn live(read: &Read) -> impl Iterator<Item = (&Index, &[Dim])> {
    let behind = |at: usize| read.dims.get(at + 1..).unwrap_or_default();
    let indices = read.indices.iter().zip(&read.dims).enumerate();
    indices.filter(|(_, (_, dim))| dim.as_constant() != Some(1)).map(move |(at, (index, _))| (index, behind(at)))
}

/// The parts of a read's address, largest step first; equal ones as written.
fn summands(read: &Read, kept: &dyn Fn(&Term) -> Option<usize>) -> Vec<Summand> {
    let mut parts = Vec::new();
    for (index, behind) in live(read) {
        for term in &index.terms {
            let Some(iter) = kept(term) else { continue };
            let step =
                behind.iter().map(step_of).fold(step_of(&term.factor), |a, b| (a.0.saturating_mul(b.0), a.1 + b.1));
            parts.push(Summand { iter, divided: term.divisor.as_constant() != Some(1), step });
        }
    }
    parts.sort_by_key(|part: &Summand| std::cmp::Reverse(part.step));
    parts
}

/// The constant factor of a dim and the number of its symbolic ones.
fn step_of(dim: &Dim) -> (i64, usize) {
    match (dim.as_constant(), dim.terms()) {
        (Some(value), _) => (value, 0),
        (None, [(monomial, factor)]) if dim.constant_part() == 0 => {
            (*factor, monomial.iter().map(|(_, power)| *power as usize).sum())
        }
        _ => (1, 1),
    }
}
