//! Which tensors share a storage.
//!
//! Two walks over a function, as in TVM: the first counts where each tensor is passed and strikes out those of which it is not
//! known when they are done with; the second gives storages out and takes them back.

use super::Allocation;
use crate::make;
use rx_base::name::{NameMap, NameSet};
use rx_base::symbolic::{Answer, Bounds, prove};
use rx_base::{DType, Dim};
use rx_ir::{Block, BoundValue, Callee, Expr, ExprKind, Pool, RelaxFunction, Sequence};
use std::cmp::Reverse;
use std::sync::Arc;

/// A piece of memory.
pub(super) struct Storage {
    /// How large it is.
    pub(super) bytes: Dim,
    /// What it is for.
    pub(super) dtype: DType,
    /// Where it is.
    pub(super) scope: Arc<str>,
}

/// The storages of a function.
pub(super) struct Plan {
    /// The storages, in the order they are needed first.
    pub(super) storages: Vec<Storage>,
    /// For each [`Allocation`] in the order of `rewrite_bindings` its storage; `None` where it stays what it is.
    pub(super) storage_of: Vec<Option<usize>>,
}

impl Plan {
    /// Of a function of a module whose prim_funcs are `loops`.
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

/// What a value holds: tensors of [`Uses`], or storages of [`Giving`], by index.
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

/// What a value that is no call holds.
fn held_by(value: &Expr, of: &NameMap<Held>) -> Held {
    match &value.kind {
        ExprKind::Var(variable) => of.get(variable).cloned().unwrap_or_default(),
        ExprKind::Tuple(fields) => Held::Fields(fields.iter().map(|field| held_by(field, of)).collect()),
        ExprKind::TupleGet(tuple, at) => held_by(tuple, of).field(*at),
        ExprKind::MatchCast(inner) => held_by(inner, of),
        _ => Held::Nothing,
    }
}

/// What a value does with tensors.
enum Deed<'a> {
    /// It makes one.
    Makes(Allocation<'a>),
    /// It is its operand in another form.
    Is(&'a Expr),
    /// It reads and writes its operands, and keeps none.
    Passes(Vec<&'a Expr>),
    /// It may keep its operands.
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

/// The name of a packed function.
fn packed_name(function: &Expr) -> Option<&str> {
    match &function.kind {
        ExprKind::Extern(own) => Some(own.as_str()),
        ExprKind::Str(own) => Some(own),
        _ => None,
    }
}

/// Operators whose result is their operand's memory, and that operand.
const ALIASES: &[(&str, &str)] = &[("reshape", "x"), ("memory.view", "data"), ("memory.ensure_zero_offset", "data")];

/// A tensor that is made.
struct Tensor {
    /// The block that makes it.
    block: usize,
    /// How often it is passed.
    passed: usize,
    /// Whether it is put into a storage.
    planned: bool,
}

/// The first walk.
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
        // What is seen behind the blocks lives longer than they.
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

    /// A nested function may keep whatever it names, and is left as it is.
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

/// A storage while it is given out.
struct Given {
    storage: Storage,
    /// How often the tensor in it is still passed.
    left: usize,
    /// Where its variable is seen: a body, a branch, a dataflow block.
    region: usize,
}

/// A storage is taken for a tensor of which it is at most so many times the size, or the tensor of it.
const RANGE: i64 = 16;

/// The second walk.
struct Giving<'a> {
    loops: &'a NameSet,
    bounds: &'a Bounds,
    /// The tensors that are made, in order.
    tensors: std::vec::IntoIter<Tensor>,
    held: NameMap<Held>,
    pool: Pool<Given>,
    storage_of: Vec<Option<usize>>,
    regions: usize,
}

impl Giving<'_> {
    /// What `walk` binds is not seen behind it.
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
            // Nothing that is planned is kept.
            Deed::Keeps(_) => Held::Nothing,
        }
    }

    /// A storage for a tensor that is passed so often: one that is free, or a new one.
    fn give(&mut self, wanted: Storage, passed: usize, region: usize) -> usize {
        match (passed > 0).then(|| self.take(&wanted)).flatten() {
            Some(at) => {
                self.pool.get_mut(at).left = passed;
                at
            }
            None => self.pool.add(Given { storage: wanted, left: passed, region }),
        }
    }

    /// Takes a free storage: of the sizes in range the smallest that is large enough, else the largest, which grows. A
    /// storage of symbolic size must be just as large.
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
                // Of those of one size the one freed last.
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

    /// The tensor in a storage is passed once more; after the last time the storage is free.
    fn pass(&mut self, at: usize) {
        let given = self.pool.get_mut(at);
        given.left = given.left.saturating_sub(1);
        if given.left == 0 {
            self.pool.free(at);
        }
    }
}

/// How well a free storage suits, the best first: a large one by its size, or a small one by its size; and by how many were freed
/// before it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Large(i64, usize),
    Small(Reverse<(i64, usize)>),
}
