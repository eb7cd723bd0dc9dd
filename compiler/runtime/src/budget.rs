//! What a run may take before it is ended.

use crate::error::RunError;

/// What ends a run that would go on. The default is nothing: a program that never ends runs for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many rounds all loops may take, and how many instructions: compiled code is counted before it runs, where its
    /// arguments tell.
    pub rounds: Option<u64>,
    /// How many bytes the results of kernels and of the host's functions may have, all together; those that kernels
    /// compute on the way may have as many again, each time.
    pub bytes: Option<u64>,
}

/// What is left of a run's limits.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Rounds of loops.
    pub rounds: u64,
    /// Bytes of memory.
    pub bytes: u64,
}

impl Budget {
    /// Of a run that has not begun.
    pub fn of(limits: Limits) -> Budget {
        Budget { rounds: limits.rounds.unwrap_or(u64::MAX), bytes: limits.bytes.unwrap_or(u64::MAX) }
    }

    /// Takes rounds.
    ///
    /// # Errors
    /// Where fewer are left.
    pub fn take_rounds(&mut self, rounds: u64) -> Result<(), RunError> {
        self.rounds = self.rounds.checked_sub(rounds).ok_or_else(out_of_rounds)?;
        Ok(())
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// Where fewer are left.
    pub fn take_bytes(&mut self, bytes: usize) -> Result<(), RunError> {
        let left = self.bytes.checked_sub(bytes as u64);
        self.bytes = left.ok_or_else(|| RunError::other("stopped: it needs more memory than is allowed"))?;
        Ok(())
    }
}

/// The end of a run whose loops took what they may.
pub(crate) fn out_of_rounds() -> RunError {
    RunError::other("stopped after the rounds allowed: its loops and calls take more")
}
