//! A model of TVM's DLight schedule rules: finds the calls for which a rule raises an error when a release builds for
//! CUDA.
//!
//! The default pipeline tries the rules Matmul, GEMV, Reduction, GeneralReduction and Fallback in this order on each
//! kernel. A rule that does not apply declines, but some rules raise an error instead, so the build fails. This module
//! models the conditions of these errors on the loop nest that the release generates for the call
//! (python/tvm/s_tir/dlight/gpu and analysis of the release).

use super::nest::{Index, Nest, Read, Term, nest};
use crate::call::CallInfo;
use rx_base::{DType, Dim, TvmVersion};
use rx_ir::StructInfo;

/// The reason why a schedule rule raises an error for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleFailure {
    /// Matmul maps int8 products with int32 sums to tensor cores, and TVM's software pipelining does not support their
    /// fragments.
    Int8TensorCores {
        /// The rows, the columns and the reduction extent.
        extents: [Dim; 3],
    },
    /// GEMV finds no reduction loop, because all have extent 1.
    NothingSummed,
    /// GEMV finds no spatial loop that only one factor uses.
    NoRows,
    /// GEMV tiles the results by 16, and the number of rows is not divisible.
    Tiles {
        /// The extents of the two spatial loops.
        extents: [i64; 2],
    },
    /// Reduction splits the output channels by group inside a cross-thread sum.
    SplitChannels,
    /// Before 0.27, GEMV loads a factor with one axis as if it had two.
    VectorFactor,
    /// Before 0.27, Reduction writes the results back through a fused index that has three or more parts.
    FusedResults {
        /// The extents of the spatial loops.
        extents: Vec<Dim>,
    },
    /// A full reduction to a scalar followed by another step in the same kernel: the two have no common loop.
    ScalarEpilogue,
}

/// The largest extent for which Matmul does not use tensor cores.
const SMALL: i64 = 64;

/// The number of results that GEMV computes per tile.
const TILE: i64 = 16;

/// The number of results that Reduction computes per block if the innermost loop is spatial.
const THREADS: i64 = 16;

/// Returns the reason why a schedule rule of `version` raises an error in the CUDA build of a call; `None` if no rule
/// does or the answer is unknown.
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

/// Whether the kernel of a call reduces more than one element to a scalar and then changes the scalar: the division of
/// a mean, or the negation of a cross entropy (python/tvm/relax/transform/legalize_ops/statistical.py, nn.py). A kept
/// axis would be a loop that both steps share.
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

/// Returns the kept extents of a sum whose innermost axis is kept, if the fused index of the results needs three or
/// more parts: one part per extent greater than 1, except that the innermost has none if one thread block covers it.
/// Only the first extent may be symbolic; otherwise the rule declines. It also declines if the innermost extent cannot
/// be divided among threads. In 0.27, `_inner_spatial_write_back_is_affine` (gpu/reduction.py) makes the rule decline
/// in the case modeled here.
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

/// Returns the extents that a sum of more than one element keeps, if the innermost is among them.
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

/// Returns the result extents of an average pooling that is a single windowed sum over more than one element, with
/// channels innermost. Padding adds a separate stage, so it is excluded.
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

/// Returns the product of the extents; 1 if there are none.
fn extent_of<'a>(extents: impl Iterator<Item = &'a Dim>) -> Dim {
    extents.fold(Dim::constant(1), |product, extent| &product * extent)
}

/// Returns the rows, columns and reduction extent of a nest that rule Matmul accepts. Each loop longer than 1 must be a
/// batch loop (in both factors and the result), a row (left factor and result), a column (right factor and result) or a
/// reduction (both factors).
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

/// Returns the failure on large int8 products, which rule Matmul has from 0.26 on.
fn int8(version: TvmVersion, nest: &Nest, extents: [Dim; 3]) -> Option<ScheduleFailure> {
    if version < TvmVersion::V0_26 {
        return None;
    }
    let large = extents.iter().all(|extent| extent.as_constant().is_none_or(|extent| extent > SMALL));
    (nest.dtypes == (DType::INT8, DType::INT32) && large).then_some(ScheduleFailure::Int8TensorCores { extents })
}

/// The outcome of a rule for a block.
enum Rule {
    /// The rule schedules the block.
    Applies,
    /// The next rule is tried.
    Declines,
    /// The rule raises an error.
    Fails(ScheduleFailure),
}

/// A nest without its loops of extent 1, and the address of its dominant read (the factor with the most loops).
struct Block {
    /// For each remaining loop, whether it is a reduction, and its extent.
    iters: Vec<(bool, Dim)>,
    /// The loops that each factor uses.
    used: [Vec<usize>; 2],
    /// The address of the dominant read as a sum of terms, largest stride first.
    access: Option<Vec<Summand>>,
    /// Whether the address has a constant or another non-loop term.
    shifted: bool,
    /// Whether the reduction is innermost in the dominant read, and the other factor, which is read second, has one
    /// axis.
    loads_vector: bool,
}

/// One loop's term in an address.
struct Summand {
    /// The index of the loop.
    iter: usize,
    /// Whether the loop variable is divided first.
    divided: bool,
    /// The stride: its constant factor, and its number of symbolic factors.
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
        // A block without spatial loops gets one of extent 1, which no address uses.
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

    /// Returns the spatial loops: first those that both factors use, then the others.
    fn rows(&self, access: &[Summand]) -> (Vec<usize>, Vec<usize>) {
        let spatial = access.iter().map(|part| part.iter).filter(|iter| !self.is_reduction(*iter));
        spatial.partition(|iter| self.used.iter().all(|used| used.contains(iter)))
    }

    /// Models rule GEMV (gpu/gemv.py, analysis/gemv.py).
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

    /// Models rule Reduction (gpu/reduction.py).
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

/// Iterates over the indices of dims longer than 1 (all others are 0), each with the dims after it.
fn live(read: &Read) -> impl Iterator<Item = (&Index, &[Dim])> {
    let behind = |at: usize| read.dims.get(at + 1..).unwrap_or_default();
    let indices = read.indices.iter().zip(&read.dims).enumerate();
    indices.filter(|(_, (_, dim))| dim.as_constant() != Some(1)).map(move |(at, (index, _))| (index, behind(at)))
}

/// Returns the terms of a read's address, largest stride first; terms with equal strides stay in source order.
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

/// Returns the constant factor of a dim and the number of its symbolic factors.
fn step_of(dim: &Dim) -> (i64, usize) {
    match (dim.as_constant(), dim.terms()) {
        (Some(value), _) => (value, 0),
        (None, [(monomial, factor)]) if dim.constant_part() == 0 => {
            (*factor, monomial.iter().map(|(_, power)| *power as usize).sum())
        }
        _ => (1, 1),
    }
}
