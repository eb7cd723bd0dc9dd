//! Named pipelines: sequences of passes that a command line runs by one name.

use crate::pass::{PassError, Step, parse};

/// A named sequence of passes.
pub struct Sequence {
    /// The name on the command line.
    pub name: &'static str,
    /// The passes with their arguments, in the syntax of [`parse`].
    pub passes: &'static str,
    /// The purpose of the pipeline, in one sentence.
    pub doc: &'static str,
}

/// All pipelines.
pub const ALL: &[Sequence] = &[Sequence {
    name: "default",
    passes: "CanonicalizeBindings, InlinePrivateFunctions, EliminateCommonSubexpr, FoldConstant, DecomposeOps, \
             RemoveRedundantReshape, ReorderTakeAfterMatmul, CombineParallelMatmul, LiftTransformParams, KeepRawEntry, \
             DeadCodeElimination, LegalizeOps, AnnotateTIROpPattern, FuseOps, FuseTIR",
    doc: "Simplifies a program without changing its results, and then makes kernels of it like the end of TVM's `zero` pipeline.",
}];

/// Returns the passes of the pipeline called `name`, in order.
///
/// # Errors
/// No pipeline has this name.
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
