//! The assignment of tensors to storages.
//!
//! As in TVM, there are two walks over a function. The first ([`Uses`]) counts the uses of each tensor, and excludes
//! tensors whose last use is unknown. The second ([`Giving`]) assigns a storage at each allocation of another tensor,
//! and frees it after the last use of that tensor.

use super::Allocation;
use crate::make;
use rx_base::name::{NameMap, NameSet};
use rx_base::symbolic::{Answer, Bounds, prove};
use rx_base::{DType, Dim};
use rx_ir::{Block, BoundValue, Callee, Expr, ExprKind, Pool, RelaxFunction, Sequence};
use std::cmp::Reverse;
use std::sync::Arc;

/// A block of memory for one tensor, or for several tensors that use it at different times.
pub(super) struct Storage {
    /// The size in bytes.
    pub(super) bytes: Dim,
    /// The dtype of its tensors.
    pub(super) dtype: DType,
    /// The memory scope, for example `global`.
    pub(super) scope: Arc<str>,
}

/// The storages of a function and their tensors.
pub(super) struct Plan {
    /// The storages, in order of their first tensors.
    pub(super) storages: Vec<Storage>,
    /// For each [`Allocation`], in the order of `rewrite_bindings`, the index of its storage; `None` if it is not
    /// planned.
    pub(super) storage_of: Vec<Option<usize>>,
}

impl Plan {
    /// Plans the storages of a function. `loops` are the names of the module's prim_funcs.
    pub(super) fn of(function: &RelaxFunction, loops: &NameSet, bounds: &Bounds) -> Plan {
        let mut uses = Uses { loops, tensors: Vec::new(), held: NameMap::default(), blocks: 0 };
        uses.sequence(&function.body);
        let mut giving = Giving {
            loops,
            bounds,
            tensors: uses.tensors.into_iter(),
            held: NameMap::default(),
            pool: Pool::default(),
            storage_of: Vec::new(),
            regions: 0,
        };
        giving.region(|giving, region| giving.sequence(&function.body, region));
        let storages = giving.pool.into_storages().into_iter().map(|given| given.storage).collect();
        Plan { storages, storage_of: giving.storage_of }
    }
}

/// The tensors of [`Uses`], or storages of [`Giving`], that a value consists of, by index.
#[derive(Clone, Debug, Default)]
enum Held {
    #[default]
    Nothing,
    One(usize),
    Fields(Vec<Held>),
}

impl Held {
    fn each(&self, visit: &mut dyn FnMut(usize)) {
        match self {
            Held::Nothing => {}
            Held::One(at) => visit(*at),
            Held::Fields(fields) => fields.iter().for_each(|field| field.each(visit)),
        }
    }

    fn field(self, at: usize) -> Held {
        match self {
            Held::Fields(mut fields) if at < fields.len() => fields.swap_remove(at),
            _ => Held::Nothing,
        }
    }
}

/// Returns the tensors or storages that a value which is not a call consists of.
fn held_by(value: &Expr, of: &NameMap<Held>) -> Held {
    match &value.kind {
        ExprKind::Var(variable) => of.get(variable).cloned().unwrap_or_default(),
        ExprKind::Tuple(fields) => Held::Fields(fields.iter().map(|field| held_by(field, of)).collect()),
        ExprKind::TupleGet(tuple, at) => held_by(tuple, of).field(*at),
        ExprKind::MatchCast(inner) => held_by(inner, of),
        _ => Held::Nothing,
    }
}

/// The effect of a value on tensors.
enum Deed<'a> {
    /// Allocates a tensor.
    Makes(Allocation<'a>),
    /// Consists of the same tensors as this expression.
    Is(&'a Expr),
    /// Reads and writes its operands, but does not keep references to them.
    Passes(Vec<&'a Expr>),
    /// May keep references to its operands.
    Keeps(Vec<&'a Expr>),
}

impl<'a> Deed<'a> {
    fn of(value: &'a Expr, loops: &NameSet) -> Deed<'a> {
        if let Some(allocation) = Allocation::of(value) {
            return Deed::Makes(allocation);
        }
        let Some(call) = value.as_call() else { return Deed::Is(value) };
        let operands: Vec<&Expr> = call.operands().collect();
        match (&call.callee, value.as_op()) {
            (_, Some("call_packed")) => match operands.split_first() {
                Some((function, [data, ..])) if packed_name(function) == Some("vm.builtin.reshape") => Deed::Is(data),
                Some((_, rest)) => Deed::Passes(rest.to_vec()),
                None => Deed::Keeps(operands),
            },
            (_, Some(own)) if ALIASES.iter().any(|(operator, _)| *operator == own) => {
                let data = ALIASES.iter().find(|(operator, _)| *operator == own);
                let data = data.and_then(|(operator, param)| make::operands(value, operator, [*param]));
                data.map_or(Deed::Keeps(operands), |[data]| Deed::Is(data))
            }
            (_, Some("vm.call_tir_dyn")) => Deed::Passes(operands),
            (Callee::Global(callee), _) if loops.contains(callee) => Deed::Passes(operands),
            _ => Deed::Keeps(operands),
        }
    }
}

/// Returns the name of a packed function.
fn packed_name(function: &Expr) -> Option<&str> {
    match &function.kind {
        ExprKind::Extern(own) => Some(own.as_str()),
        ExprKind::Str(own) => Some(own),
        _ => None,
    }
}

/// Operators whose result aliases an operand, with the name of that operand.
const ALIASES: &[(&str, &str)] = &[("reshape", "x"), ("memory.view", "data"), ("memory.ensure_zero_offset", "data")];

/// An allocated tensor.
struct Tensor {
    /// The block that allocates it.
    block: usize,
    /// The number of times that it is passed to a call ([`Deed::Passes`]).
    passed: usize,
    /// Whether the plan gives it a storage.
    planned: bool,
}

/// The first walk: counts the uses of each tensor.
struct Uses<'a> {
    loops: &'a NameSet,
    tensors: Vec<Tensor>,
    held: NameMap<Held>,
    blocks: usize,
}

impl Uses<'_> {
    fn keep(&mut self, value: &Expr) {
        held_by(value, &self.held).each(&mut |at| self.tensors[at].planned = false);
    }

    fn sequence(&mut self, sequence: &Sequence) {
        for block in &sequence.blocks {
            self.blocks += 1;
            self.block(block, self.blocks);
        }
        // The result of the sequence outlives its blocks.
        self.keep(&sequence.result);
    }

    fn block(&mut self, block: &Block, own: usize) {
        for binding in &block.bindings {
            let held = match &binding.value {
                BoundValue::Expr(value) => self.value(value, own),
                BoundValue::If(branches) => {
                    self.keep(&branches.condition);
                    self.sequence(&branches.then);
                    self.sequence(&branches.otherwise);
                    Held::Nothing
                }
                BoundValue::Function(function) => {
                    self.function(function);
                    Held::Nothing
                }
            };
            self.held.insert(binding.variable, held);
        }
    }

    /// Excludes all tensors that a nested function uses, since the function may keep them. Its own allocations are not
    /// planned either.
    fn function(&mut self, function: &RelaxFunction) {
        crate::walk::each_part(&function.body, &mut |expr| {
            self.keep(expr);
            if Allocation::of(expr).is_some() {
                self.tensors.push(Tensor { block: 0, passed: 0, planned: false });
            }
        });
    }

    fn value(&mut self, value: &Expr, block: usize) -> Held {
        match Deed::of(value, self.loops) {
            Deed::Makes(_) => {
                self.tensors.push(Tensor { block, passed: 0, planned: true });
                Held::One(self.tensors.len() - 1)
            }
            Deed::Is(value) => held_by(value, &self.held),
            Deed::Passes(operands) => {
                for operand in operands {
                    held_by(operand, &self.held).each(&mut |at| {
                        let tensor = &mut self.tensors[at];
                        tensor.passed += 1;
                        tensor.planned &= tensor.block == block;
                    });
                }
                Held::Nothing
            }
            Deed::Keeps(operands) => {
                operands.into_iter().for_each(|operand| self.keep(operand));
                Held::Nothing
            }
        }
    }
}

/// A storage during the second walk.
struct Given {
    storage: Storage,
    /// The number of remaining uses of its current tensor.
    left: usize,
    /// The scope of its variable: a body, a branch or a dataflow block.
    region: usize,
}

/// A storage is reused for a tensor only if neither of their constant sizes is more than this many times the other, up
/// to rounding.
const RANGE: i64 = 16;

/// The second walk: assigns storages to tensors.
struct Giving<'a> {
    loops: &'a NameSet,
    bounds: &'a Bounds,
    /// The allocated tensors, in order.
    tensors: std::vec::IntoIter<Tensor>,
    held: NameMap<Held>,
    pool: Pool<Given>,
    storage_of: Vec<Option<usize>>,
    regions: usize,
}

impl Giving<'_> {
    /// Runs `walk` in a new region. Storages that it binds cannot be reused after it.
    fn region(&mut self, walk: impl FnOnce(&mut Self, usize)) {
        self.regions += 1;
        let own = self.regions;
        walk(self, own);
        self.pool.retain_free(|given| given.region != own);
    }

    fn sequence(&mut self, sequence: &Sequence, region: usize) {
        for block in &sequence.blocks {
            match &block.outputs {
                Some(_) => self.region(|giving, inner| giving.block(block, inner)),
                None => self.block(block, region),
            }
        }
    }

    fn block(&mut self, block: &Block, region: usize) {
        for binding in &block.bindings {
            let held = match &binding.value {
                BoundValue::Expr(value) => self.value(value, region),
                BoundValue::If(branches) => {
                    self.region(|giving, inner| giving.sequence(&branches.then, inner));
                    self.region(|giving, inner| giving.sequence(&branches.otherwise, inner));
                    Held::Nothing
                }
                BoundValue::Function(function) => {
                    crate::walk::each_expression(&function.body, &mut |expr| {
                        if Allocation::of(expr).is_some() {
                            self.tensors.next();
                            self.storage_of.push(None);
                        }
                    });
                    Held::Nothing
                }
            };
            self.held.insert(binding.variable, held);
        }
    }

    fn value(&mut self, value: &Expr, region: usize) -> Held {
        match Deed::of(value, self.loops) {
            Deed::Makes(allocation) => {
                let tensor = self.tensors.next().filter(|tensor| tensor.planned);
                let storage = tensor.map(|tensor| self.give(allocation.storage(self.bounds), tensor.passed, region));
                self.storage_of.push(storage);
                storage.map_or(Held::Nothing, Held::One)
            }
            Deed::Is(value) => held_by(value, &self.held),
            Deed::Passes(operands) => {
                for operand in operands {
                    let mut passed = Vec::new();
                    held_by(operand, &self.held).each(&mut |at| passed.push(at));
                    passed.into_iter().for_each(|at| self.pass(at));
                }
                Held::Nothing
            }
            // Planned tensors are never operands here: the first walk excludes them.
            Deed::Keeps(_) => Held::Nothing,
        }
    }

    /// Returns a storage for a tensor: a free one if one fits, otherwise a new one. It is free again after the tensor
    /// was passed to calls `passed` times. A tensor that is never passed would never free it, so it gets a new one.
    fn give(&mut self, wanted: Storage, passed: usize, region: usize) -> usize {
        match (passed > 0).then(|| self.take(&wanted)).flatten() {
            Some(at) => {
                self.pool.get_mut(at).left = passed;
                at
            }
            None => self.pool.add(Given { storage: wanted, left: passed, region }),
        }
    }

    /// Takes a free storage of the same scope and dtype for reuse. Of those in range ([`RANGE`]), it takes the smallest
    /// that is large enough; if none is, the largest, which grows. A storage of symbolic size is reused only for the
    /// same size.
    fn take(&mut self, wanted: &Storage) -> Option<usize> {
        let needed = wanted.bytes.as_constant();
        let taken = self.pool.take(|freed, Given { storage, .. }| {
            if (&storage.scope, storage.dtype) != (&wanted.scope, wanted.dtype) {
                return None;
            }
            match (storage.bytes.as_constant(), needed) {
                (Some(size), Some(needed)) if size >= needed => {
                    (size <= needed.saturating_mul(RANGE)).then_some(Rank::Large(size, freed))
                }
                // Of storages of equal size that must grow, the one freed last is preferred.
                (Some(size), Some(needed)) => (size >= needed / RANGE).then_some(Rank::Small(Reverse((size, freed)))),
                (None, None) => {
                    let is_same = prove::equal(&storage.bytes, &wanted.bytes, self.bounds) == Answer::Proved;
                    is_same.then_some(Rank::Large(0, freed))
                }
                _ => None,
            }
        })?;
        let bytes = &mut self.pool.get_mut(taken).storage.bytes;
        if let (Some(size), Some(needed)) = (bytes.as_constant(), needed) {
            *bytes = Dim::constant(size.max(needed));
        }
        Some(taken)
    }

    /// Counts that the tensor in a storage is passed to a call. After the last such call, the storage is free.
    fn pass(&mut self, at: usize) {
        let given = self.pool.get_mut(at);
        given.left = given.left.saturating_sub(1);
        if given.left == 0 {
            self.pool.free(at);
        }
    }
}

/// The order in which free storages are preferred; the least is best. Storages that are large enough come first,
/// smallest first; then those that must grow, largest first. The second number is how many storages were freed before
/// this one: of equal sizes, the one freed first is best among those that are large enough, the one freed last among
/// those that must grow.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Large(i64, usize),
    Small(Reverse<(i64, usize)>),
}
