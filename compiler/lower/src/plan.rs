//! The static memory plan: kernels' outputs whose lifetimes do not meet share memory.
//!
//! Lifetimes are of *classes*: a view or a tuple keeps what it is made of alive. What may outlive the procedure or flows
//! into other code (calls, closures, branches) has memory of its own, counted by references.

use crate::program::{Instruction, Operation, Procedure, Register, StorageId, StorageSize};
use rx_ir::Pool;

/// Gives every output of `procedure` that may share memory its storage.
pub fn plan(procedure: &mut Procedure) {
    let lifetimes = Lifetimes::of(procedure);
    let mut pool: Pool<Vec<StorageSize>> = Pool::default();
    // Storages by the instruction after which they are free again.
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

/// A free storage that fits `size` best, or a new one.
fn take(pool: &mut Pool<Vec<StorageSize>>, size: StorageSize) -> usize {
    let bytes = constant_bytes(std::slice::from_ref(&size));
    let fit = |_: usize, sizes: &Vec<StorageSize>| {
        Some(match (sizes.contains(&size), constant_bytes(sizes), bytes) {
            (true, ..) => (0, 0),
            // The least memory that is too much, else the least that has to be added.
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

/// The bytes of the largest, where all are known.
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

/// For every class of registers that share memory: where it is read last, and whether it stays inside.
struct Lifetimes {
    /// The class of each register, by the number of a member; roots point at themselves.
    parents: Vec<u32>,
    /// By class: the last instruction that reads a member.
    last: Vec<usize>,
    /// By class: whether a member flows out of sight.
    escapes: Vec<bool>,
}

impl Lifetimes {
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
            // It works on copies.
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

    fn root(&self, register: Register) -> usize {
        let mut at = register.0 as usize;
        while self.parents[at] as usize != at {
            at = self.parents[at] as usize;
        }
        at
    }

    fn join(&mut self, a: Register, b: Register) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a] = b as u32;
        self.last[b] = self.last[a].max(self.last[b]);
        self.escapes[b] |= self.escapes[a];
    }

    fn escape(&mut self, register: Register) {
        let root = self.root(register);
        self.escapes[root] = true;
    }

    /// The instruction that reads the register's memory last; `None` where it flows out of sight.
    fn last_use(&self, register: Register) -> Option<usize> {
        let root = self.root(register);
        (!self.escapes[root]).then_some(self.last[root])
    }
}
