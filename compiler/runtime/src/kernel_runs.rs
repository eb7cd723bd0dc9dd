//! How many kernels a run executes, where the program tells before it runs.

use rx_lower::{Instruction, Operation, ProcedureId, Program};

/// The most calls inside one another that are followed.
const MAX_DEPTH: usize = 256;

/// How many times a run of the program's entry executes kernels. `again`: it ran before, and what is computed once may be there.
/// `None` where values decide: branches of different counts, calls of function values, recursion.
pub fn kernel_runs(program: &Program, again: bool) -> Option<u64> {
    Count { program, again, known: vec![None; program.procedures.len()] }.procedure(ProcedureId(0), 0)
}

struct Count<'p> {
    program: &'p Program,
    again: bool,
    /// By procedure, what was found; [`Count::procedure`] keeps `Some(None)` there while it looks.
    known: Vec<Option<Option<u64>>>,
}

impl Count<'_> {
    fn procedure(&mut self, id: ProcedureId, depth: usize) -> Option<u64> {
        let at = id.0 as usize;
        if let Some(known) = *self.known.get(at)? {
            return known;
        }
        // What calls itself ends where values say so.
        *self.known.get_mut(at)? = Some(None);
        let procedure = self.program.procedures.get(at).filter(|_| depth < MAX_DEPTH)?;
        let count = self.code(&procedure.code, depth).filter(|count| !(procedure.once && self.again && *count > 0));
        *self.known.get_mut(at)? = Some(count);
        count
    }

    fn code(&mut self, code: &[Instruction], depth: usize) -> Option<u64> {
        code.iter().try_fold(0u64, |sum, instruction| sum.checked_add(self.operation(&instruction.operation, depth)?))
    }

    fn operation(&mut self, operation: &Operation, depth: usize) -> Option<u64> {
        match operation {
            Operation::Kernel { .. } => Some(1),
            Operation::Call { procedure, .. } => self.procedure(*procedure, depth + 1),
            Operation::CallClosure { .. } => None,
            Operation::If { arms, otherwise, .. } => {
                // Each way computes the conditions up to its own.
                let mut conditions = 0u64;
                let mut ways = Vec::with_capacity(arms.len() + 1);
                for (code, _, branch) in arms {
                    conditions = conditions.checked_add(self.code(code, depth)?)?;
                    ways.push(conditions.checked_add(self.code(&branch.code, depth)?)?);
                }
                ways.push(conditions.checked_add(self.code(&otherwise.code, depth)?)?);
                let first = ways.first().copied()?;
                ways.iter().all(|way| *way == first).then_some(first)
            }
            _ => Some(0),
        }
    }
}
