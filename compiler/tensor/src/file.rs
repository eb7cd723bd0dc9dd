//! Files of arrays: errors, progress, and atomic writing.

use crate::error::TensorError;
use crate::tensor::Tensor;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// The result of reading some of a file's arrays.
#[derive(Debug, Default)]
pub struct Arrays {
    /// The wanted arrays with their names, in the file's order.
    pub arrays: Vec<(String, Tensor)>,
    /// The names of the other arrays.
    pub others: Vec<String>,
}

/// The progress of reading a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of bytes read of the wanted arrays.
    pub done: u64,
    /// The number of bytes of all wanted arrays.
    pub total: u64,
}

/// The error for a file that cannot be read or written. Its text does not contain the path, which the caller adds.
#[derive(Debug)]
pub struct FileError {
    /// The path of the file.
    pub path: PathBuf,
    /// The array in the file that has the error, if it concerns one.
    pub array: Option<String>,
    /// The error.
    pub problem: FileProblem,
}

/// An error in reading or writing a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// An error of the system.
    #[error("{0}")]
    Io(io::Error),
    /// The contents do not have the expected format.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Arrays of this type, in the file's notation, are not supported.
    #[error("arrays of type {0} are not read")]
    UnsupportedType(String),
    /// The tensor cannot be created.
    #[error("{0}")]
    Tensor(#[from] TensorError),
    /// The file has no array of this name.
    #[error("there is no such array in the file")]
    NoSuchArray,
}

impl FileError {
    /// Creates an error that concerns the whole file.
    pub(crate) fn new(path: &Path, problem: impl Into<FileProblem>) -> FileError {
        FileError { path: path.to_owned(), array: None, problem: problem.into() }
    }

    /// Creates an error that concerns one array.
    pub(crate) fn of_array(path: &Path, array: &str, problem: impl Into<FileProblem>) -> FileError {
        FileError { path: path.to_owned(), array: Some(array.to_owned()), problem: problem.into() }
    }
}

impl FileProblem {
    pub(crate) fn corrupt(reason: impl Into<String>) -> FileProblem {
        FileProblem::Corrupt(reason.into())
    }
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> FileProblem {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => FileProblem::corrupt("the file ends early"),
            // Decoders of compressed data report bad input with these kinds.
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => FileProblem::corrupt(error.to_string()),
            _ => FileProblem::Io(error),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(array) = &self.array {
            write!(f, "array {array}: ")?;
        }
        write!(f, "{}", self.problem)
    }
}

impl std::error::Error for FileError {}

/// Writes a file completely or not at all ([`rx_base::store::write`]).
///
/// # Errors
/// Errors of `write` or of the file system; no partial file is left then.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), FileProblem>,
) -> Result<(), FileError> {
    rx_base::store::write(path, write).map_err(|problem| FileError::new(path, problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let directory = std::env::temp_dir().join(format!("rx-tensor-file-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("out");
        let failed = write_atomically(&path, |writer| {
            writer.write_all(b"half")?;
            Err(FileProblem::corrupt("no more"))
        });
        assert!(failed.is_err() && !path.exists());
        write_atomically(&path, |writer| Ok(writer.write_all(b"whole")?)).expect("a file");
        let failed = write_atomically(&path, |_| Err(FileProblem::corrupt("nothing")));
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).ok().as_deref(), Some(&b"whole"[..]));
        assert!(write_atomically(&directory, |_| Ok(())).is_err());
        assert!(write_atomically(&directory.join("none/out"), |_| Ok(())).is_err());
        // No temporary file is left.
        assert_eq!(fs::read_dir(&directory).map(Iterator::count).ok(), Some(1));
        fs::remove_dir_all(&directory).expect("what was made");
    }
}
