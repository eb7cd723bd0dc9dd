//! The `[run]` table: defaults of `rxrun` for options that the command line does not give.

use std::path::PathBuf;

/// The defaults of `rxrun`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Files with values of parameters, matched by name; paths as written.
    pub inputs: Option<Vec<PathBuf>>,
    /// Parameters with a file for each one's value; paths as written.
    pub input: Vec<(String, PathBuf)>,
    /// The seed of the values of parameters without a file.
    pub seed: Option<u64>,
    /// Values of symbolic dims, 0 or more.
    pub dims: Vec<(String, i64)>,
    /// The device: one of [`crate::keys::DEVICES`].
    pub device: Option<&'static str>,
}

impl Run {
    /// Returns these defaults with those of `other` taking precedence.
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

/// Replaces entries of the same names by those of `new`.
fn replace<T: Clone>(known: &mut Vec<(String, T)>, new: &[(String, T)]) {
    known.retain(|(name, _)| !new.iter().any(|(other, _)| other == name));
    known.extend_from_slice(new);
}
