//! Counts how many kernels a run executes, without running the program, if the number does not depend on values. A
//! kernel counts once, even if the device needs several launches for it.

use rx_lower::{Instruction, Operation, ProcedureId, Program};

/// The nesting depth from which on calls are not followed.
const MAX_DEPTH: usize = 256;

/// Returns how many kernels one run of the program's entry executes, not counting those of calls that are lowered at
/// run time. With `again`, the program ran before, so results of `once` procedures may be cached.
///
/// Returns `None` if the number may depend on values: for branches with different counts, calls of function values,
/// recursion, and, with `again`, `once` procedures that run kernels. Returns `None` also, for example, if calls are
/// nested 256 deep. An `if` whose branches both run two kernels is counted; one whose branches run two and three
/// kernels is not.
pub fn kernel_runs(program: &Program, again: bool) -> Option<u64> {
    Count { program, again, known: vec![None; program.procedures.len()] }.procedure(ProcedureId(0), 0)
}

struct Count<'p> {
    program: &'p Program,
    again: bool,
    /// The result of each procedure; `None` if not computed yet. While [`Count::procedure`] works on a procedure its
    /// entry is `Some(None)`, which is the result for recursion.
    known: Vec<Option<Option<u64>>>,
}

impl Count<'_> {
    fn procedure(&mut self, id: ProcedureId, depth: usize) -> Option<u64> {
        let at = id.0 as usize;
        if let Some(known) = *self.known.get(at)? {
            return known;
        }
        // The number of recursive calls depends on values: a call back to this procedure finds `None` as its result.
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
                // Each branch first evaluates all conditions up to its own.
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
