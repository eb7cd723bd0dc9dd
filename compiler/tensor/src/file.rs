//! Files of arrays: what goes wrong with them, and writing them whole or not at all.

use crate::error::TensorError;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

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
#[derive(Debug)]
pub enum FileProblem {
    /// The system says no.
    Io(io::Error),
    /// The contents are not what such a file has.
    Corrupt(String),
    /// Arrays of this NumPy type code are not read.
    UnsupportedType(String),
    /// Arrays of this size or dtype cannot be held.
    Tensor(TensorError),
    /// There is no array of this name.
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

impl From<TensorError> for FileProblem {
    fn from(error: TensorError) -> FileProblem {
        FileProblem::Tensor(error)
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileProblem::Io(error) => write!(f, "{error}"),
            FileProblem::Corrupt(reason) => write!(f, "corrupt: {reason}"),
            FileProblem::UnsupportedType(code) => write!(f, "arrays of NumPy type {code} are not read"),
            FileProblem::Tensor(error) => write!(f, "{error}"),
            FileProblem::NoSuchArray => write!(f, "there is no such array in the file"),
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

/// Writes a file so that it is there whole or not at all: beside it first, under a name of its own, and renamed when done.
/// What was there before stays until then. A device or pipe is written to, not replaced.
///
/// # Errors
/// What `write` or the system says; nothing is left behind then.
pub fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), FileProblem>,
) -> Result<(), FileError> {
    replace(path, write).map_err(|problem| FileError::new(path, problem))
}

fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), FileProblem>,
) -> Result<(), FileProblem> {
    let special = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(FileProblem::Io(io::ErrorKind::IsADirectory.into())),
        Ok(metadata) => !metadata.is_file(),
        Err(_) => false,
    };
    let directory = match path.parent() {
        _ if special => std::env::temp_dir(),
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let mut temporary = Temporary::create(&directory)?;
    write(&mut temporary.writer)?;
    temporary.writer.flush()?;
    if special {
        let mut target = OpenOptions::new().write(true).open(path)?;
        io::copy(&mut File::open(&temporary.path)?, &mut target)?;
        return Ok(());
    }
    temporary.writer.get_ref().sync_all()?;
    fs::rename(&temporary.path, path)?;
    temporary.renamed = true;
    Ok(())
}

/// A file that is removed again unless it was renamed.
struct Temporary {
    path: PathBuf,
    writer: BufWriter<File>,
    renamed: bool,
}

impl Temporary {
    fn create(directory: &Path) -> io::Result<Temporary> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!(".rx-{}-{count}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Temporary { path, writer: BufWriter::new(file), renamed: false }),
                // Left behind by a process of the same number that was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // Nothing more can be done about a file that cannot be removed.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
