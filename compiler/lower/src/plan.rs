//! Static memory planning: assigns the outputs of kernels to storages, so that outputs whose lifetimes do not overlap
//! can share memory.
//!
//! ```text
//! r1 = kernel f(r0)            r1 in storage 0
//! r2 = kernel g(r1)     →      r2 in storage 1      # r1 is still read
//! r3 = kernel h(r2)            r3 in storage 0      # r1 is dead
//! ```
//!
//! Views, copies and tuples share memory with the values that they are made of, so all these registers have one
//! lifetime. An output that may outlive the procedure, that is passed to other code (calls, closures, branches), or
//! that a kernel inside an `if` computes, has separate, reference-counted memory.
//!
//! Reference: TVM's `src/relax/transform/static_plan_block_memory.cc`.

use crate::program::{Instruction, Operation, Procedure, Register, StorageId, StorageSize};
use rx_ir::Pool;

/// Assigns a storage to every output that may share memory, of the kernels in the outermost block of `procedure`.
pub fn plan(procedure: &mut Procedure) {
    let lifetimes = Lifetimes::of(procedure);
    let mut pool: Pool<Vec<StorageSize>> = Pool::default();
    // By instruction: the storages that become free after it.
    let mut ending: Vec<Vec<usize>> = vec![Vec::new(); procedure.code.len()];
    for (at, instruction) in procedure.code.iter_mut().enumerate() {
        if let Operation::Kernel { outputs, .. } = &mut instruction.operation {
            for output in outputs {
                let Some(last) = lifetimes.last_use(output.to) else { continue };
                let size = StorageSize { shape: output.shape.clone(), dtype: output.dtype };
                let storage = take(&mut pool, size);
                output.storage = Some(StorageId(storage as u32));
                ending[last.max(at)].push(storage);
            }
        }
        ending[at].drain(..).for_each(|storage| pool.free(storage));
    }
    procedure.storages = pool.into_storages();
}

/// Returns the free storage that fits `size` best, or a new storage if none is free.
fn take(pool: &mut Pool<Vec<StorageSize>>, size: StorageSize) -> usize {
    let bytes = constant_bytes(std::slice::from_ref(&size));
    let fit = |_: usize, sizes: &Vec<StorageSize>| {
        // The storage with the least pair is taken: one that has held a tensor of this shape and dtype, otherwise the
        // smallest one that is large enough, otherwise the one that grows least, otherwise any (a size is symbolic).
        Some(match (sizes.contains(&size), constant_bytes(sizes), bytes) {
            (true, ..) => (0, 0),
            (false, Some(have), Some(need)) if have >= need => (1, have - need),
            (false, Some(have), Some(need)) => (2, need - have),
            _ => (3, 0),
        })
    };
    match pool.take(fit) {
        Some(storage) => {
            let sizes = pool.get_mut(storage);
            if !sizes.contains(&size) {
                sizes.push(size);
            }
            storage
        }
        None => pool.add(vec![size]),
    }
}

/// Returns the size in bytes of the largest of `sizes`, or `None` if one of them is symbolic or does not fit in 64
/// bits.
fn constant_bytes(sizes: &[StorageSize]) -> Option<u64> {
    let bytes = |size: &StorageSize| {
        let count = size
            .shape
            .iter()
            .try_fold(1u64, |count, dim| count.checked_mul(u64::try_from(dim.as_constant()?).ok()?))?;
        count.checked_mul(size.dtype.bytes())
    };
    sizes.iter().map(bytes).try_fold(0, |largest, bytes| Some(largest.max(bytes?)))
}

/// The lifetimes of the classes of registers that share memory: a union-find structure.
struct Lifetimes {
    /// By register: its parent, a member of its class. A root is its own parent.
    parents: Vec<u32>,
    /// By root: the index of the last instruction that reads a member, 0 if none does.
    last: Vec<usize>,
    /// By root: whether a member may outlive the procedure or is passed to other code.
    escapes: Vec<bool>,
}

impl Lifetimes {
    /// Analyzes a procedure.
    fn of(procedure: &Procedure) -> Lifetimes {
        let count = procedure.types.len();
        let mut lifetimes =
            Lifetimes { parents: (0..count as u32).collect(), last: vec![0; count], escapes: vec![false; count] };
        for (at, instruction) in procedure.code.iter().enumerate() {
            lifetimes.instruction(at, instruction);
        }
        lifetimes.escape(procedure.result);
        lifetimes
    }

    /// Records the reads of an instruction and the registers that escape through it, and unites the registers that
    /// share memory.
    fn instruction(&mut self, at: usize, instruction: &Instruction) {
        instruction.operation.for_each_read(&mut |register| {
            let root = self.root(register);
            self.last[root] = self.last[root].max(at);
        });
        match &instruction.operation {
            Operation::View { to, from, .. } | Operation::Copy { to, from } | Operation::Field { to, from, .. } => {
                self.join(*to, *from);
            }
            Operation::Tuple { to, fields } => fields.iter().for_each(|field| self.join(*to, *field)),
            Operation::Kernel { .. }
            | Operation::Constant { .. }
            | Operation::Shape { .. }
            | Operation::Scalar { .. }
            | Operation::String { .. }
            | Operation::Null { .. }
            // Host functions get copies of tensors.
            | Operation::Host { .. }
            | Operation::Match { .. }
            | Operation::Bound { .. } => {}
            flows @ (Operation::If { .. }
            | Operation::Call { .. }
            | Operation::Dynamic { .. }
            | Operation::Closure { .. }
            | Operation::CallClosure { .. }) => flows.for_each_read(&mut |register| self.escape(register)),
        }
    }

    /// Returns the root of a register's class.
    fn root(&self, register: Register) -> usize {
        let mut at = register.0 as usize;
        while self.parents[at] as usize != at {
            at = self.parents[at] as usize;
        }
        at
    }

    /// Unites the classes of two registers.
    fn join(&mut self, a: Register, b: Register) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a] = b as u32;
        self.last[b] = self.last[a].max(self.last[b]);
        self.escapes[b] |= self.escapes[a];
    }

    /// Records that a register's class escapes.
    fn escape(&mut self, register: Register) {
        let root = self.root(register);
        self.escapes[root] = true;
    }

    /// Returns the index of the last instruction that reads the register's memory (0 if none does), or `None` if it
    /// escapes.
    fn last_use(&self, register: Register) -> Option<usize> {
        let root = self.root(register);
        (!self.escapes[root]).then_some(self.last[root])
    }
}
