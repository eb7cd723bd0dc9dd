//! Passes in a row under one name.

use crate::pass::{PassError, Step, parse};

/// Passes in a row.
pub struct Sequence {
    /// Its name on a command line.
    pub name: &'static str,
    /// Its passes with their arguments, as [`parse`] reads them.
    pub passes: &'static str,
    /// What it is for, in a sentence.
    pub doc: &'static str,
}

/// The sequences, by name.
pub const ALL: &[Sequence] = &[Sequence {
    name: "default",
    passes: "CanonicalizeBindings, InlinePrivateFunctions, EliminateCommonSubexpr, FoldConstant, DecomposeOps, \
             RemoveRedundantReshape, ReorderTakeAfterMatmul, CombineParallelMatmul, LiftTransformParams, KeepRawEntry, \
             DeadCodeElimination, LegalizeOps, AnnotateTIROpPattern, FuseOps, FuseTIR",
    doc: "What makes a program smaller and keeps what it computes, and then makes kernels of it, as TVM's `zero` pipeline ends.",
}];

/// The passes of the sequence called `name`.
///
/// # Errors
/// A name that no sequence has.
pub fn steps(name: &str) -> Result<Vec<Step>, PassError> {
    match ALL.iter().find(|sequence| sequence.name == name) {
        Some(sequence) => parse(sequence.passes),
        None => {
            let names: Vec<&str> = ALL.iter().map(|sequence| sequence.name).collect();
            Err(PassError(format!("there is no pipeline `{name}`; there is {}", names.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, steps};

    #[test]
    fn sequences_name_passes_there_are() {
        for sequence in ALL {
            assert!(steps(sequence.name).is_ok_and(|steps| !steps.is_empty()), "{}", sequence.name);
        }
        let message = steps("zero").err().map(|error| error.0);
        assert_eq!(message.as_deref(), Some("there is no pipeline `zero`; there is default"));
    }
}
