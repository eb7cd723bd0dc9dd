//! Files of arrays: what goes wrong with them, and writing them whole or not at all.

use crate::error::TensorError;
use crate::tensor::Tensor;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// What is read of a file of which not all is wanted.
#[derive(Debug, Default)]
pub struct Arrays {
    /// The arrays that are wanted, with their names, in the file's order.
    pub arrays: Vec<(String, Tensor)>,
    /// The names of the others.
    pub others: Vec<String>,
}

/// How far reading a file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the wanted arrays that are read.
    pub done: u64,
    /// Bytes of all wanted arrays.
    pub total: u64,
}

/// A file that cannot be read or written. Its text leaves the path to whoever named the file.
#[derive(Debug)]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The array in it, where it is one's fault.
    pub array: Option<String>,
    /// What is wrong.
    pub problem: FileProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// The system says no.
    #[error("{0}")]
    Io(io::Error),
    /// The contents are not what such a file has.
    #[error("corrupt: {0}")]
    Corrupt(String),
    /// Arrays of this type, in the file's words, are not read.
    #[error("arrays of type {0} are not read")]
    UnsupportedType(String),
    /// Arrays of this size or dtype cannot be held.
    #[error("{0}")]
    Tensor(#[from] TensorError),
    /// There is no array of this name.
    #[error("there is no such array in the file")]
    NoSuchArray,
}

impl FileError {
    /// A problem of the file.
    pub(crate) fn new(path: &Path, problem: impl Into<FileProblem>) -> FileError {
        FileError { path: path.to_owned(), array: None, problem: problem.into() }
    }

    /// A problem of an array in it.
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
            // What a decoder of compressed data says of its input.
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

/// Writes a file so that it is there whole or not at all ([`rx_base::store::write`]).
///
/// # Errors
/// What `write` or the system says; nothing is left behind then.
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
        // Nothing is left beside it.
        assert_eq!(fs::read_dir(&directory).map(Iterator::count).ok(), Some(1));
        fs::remove_dir_all(&directory).expect("what was made");
    }
}
