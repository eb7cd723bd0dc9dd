//! What `[run]` says: what a run of a program takes where the command line says nothing.

use std::path::PathBuf;

/// What a run takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Files with values of parameters, by name, as written.
    pub inputs: Option<Vec<PathBuf>>,
    /// Parameters with the file of each one's value, as written.
    pub input: Vec<(String, PathBuf)>,
    /// The seed of the values of parameters without one.
    pub seed: Option<u64>,
    /// Values of symbolic dims, 0 or more.
    pub dims: Vec<(String, i64)>,
    /// Where it runs: one of [`crate::keys::DEVICES`].
    pub device: Option<&'static str>,
}

impl Run {
    /// This, with what `other` says in place of what is said here of the same.
    #[must_use]
    pub fn with(mut self, other: &Run) -> Run {
        replace(&mut self.input, &other.input);
        replace(&mut self.dims, &other.dims);
        Run {
            inputs: other.inputs.clone().or(self.inputs),
            seed: other.seed.or(self.seed),
            device: other.device.or(self.device),
            ..self
        }
    }
}

/// The entries of `new`, and those of `known` with other names.
fn replace<T: Clone>(known: &mut Vec<(String, T)>, new: &[(String, T)]) {
    known.retain(|(name, _)| !new.iter().any(|(other, _)| other == name));
    known.extend_from_slice(new);
}
