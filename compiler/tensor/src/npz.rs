//! NumPy's `.npz` format: a zip archive of `.npy` files, one per array.

use crate::file::{Arrays, FileError, FileProblem, Progress, write_atomically};
use crate::npy;
use crate::tensor::Tensor;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

pub use crate::npy::{read_file as read_npy, write_file as write_npy};

/// The largest compression ratio of deflate, rounded up.
const LARGEST_RATIO: u64 = 1040;

/// An open `.npz` file. Arrays are read one at a time, on request.
#[derive(Debug)]
pub struct Npz {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
    length: u64,
    names: Vec<String>,
}

impl Npz {
    /// Opens a file and reads its directory.
    ///
    /// # Errors
    /// If the file cannot be read or is not a zip archive.
    pub fn open(path: &Path) -> Result<Npz, FileError> {
        let open = || -> Result<Npz, FileProblem> {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            let archive = ZipArchive::new(BufReader::new(file)).map_err(problem)?;
            let mut names = Vec::with_capacity(archive.len());
            for name in archive.file_names() {
                names.extend(name.map_err(problem)?.strip_suffix(".npy").map(str::to_owned));
            }
            Ok(Npz { path: path.to_owned(), archive, length, names })
        };
        open().map_err(|problem| FileError::new(path, problem))
    }

    /// The arrays' names, in the file's order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The uncompressed size of an array's file in bytes, according to the directory.
    fn length_of(&mut self, name: &str) -> u64 {
        self.archive.by_name(&format!("{name}.npy")).map_or(0, |entry| entry.size())
    }

    /// Reads an array. Allocates no more memory than the file's length allows.
    ///
    /// # Errors
    /// If there is no such array, or its type is not known.
    pub fn read(&mut self, name: &str) -> Result<Tensor, FileError> {
        let mut read = || -> Result<Tensor, FileProblem> {
            let mut entry = self.archive.by_name(&format!("{name}.npy")).map_err(problem)?;
            let (stored, length) = (entry.compressed_size(), entry.size());
            let ratio = if entry.compression() == CompressionMethod::Stored { 1 } else { LARGEST_RATIO };
            if stored > self.length || length > stored.saturating_mul(ratio) {
                return Err(FileProblem::Corrupt(format!("{length} bytes do not fit in {stored} of the file")));
            }
            npy::read(&mut entry, length)
        };
        read().map_err(|problem| FileError::of_array(&self.path, name, problem))
    }
}

/// Reads the arrays of a file whose names are wanted, in the file's order. Calls `progress` after each array.
///
/// # Errors
/// Like [`Npz::open`] and [`Npz::read`].
pub fn read_wanted(
    path: &Path,
    wanted: &dyn Fn(&str) -> bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Arrays, FileError> {
    let mut file = Npz::open(path)?;
    let (names, others): (Vec<_>, Vec<_>) = file.names().to_vec().into_iter().partition(|name| wanted(name));
    let mut reported =
        Progress { done: 0, total: names.iter().map(|name| file.length_of(name)).fold(0, u64::saturating_add) };
    let mut arrays = Vec::with_capacity(names.len());
    for name in names {
        let array = file.read(&name)?;
        reported.done = reported.done.saturating_add(file.length_of(&name));
        progress(reported);
        arrays.push((name, array));
    }
    Ok(Arrays { arrays, others })
}

/// Reads all arrays of a file, in the file's order.
///
/// # Errors
/// Like [`Npz::open`] and [`Npz::read`].
pub fn read(path: &Path) -> Result<Vec<(String, Tensor)>, FileError> {
    let mut file = Npz::open(path)?;
    let names = file.names().to_vec();
    names.into_iter().map(|name| file.read(&name).map(|array| (name, array))).collect()
}

/// Writes a file of arrays, uncompressed as NumPy does, completely or not at all.
///
/// # Errors
/// Errors of the file system.
pub fn write(path: &Path, arrays: &[(impl AsRef<str>, &Tensor)]) -> Result<(), FileError> {
    write_atomically(path, |writer| {
        let mut kept = KeptError { writer, position: 0, error: None };
        let mut archive = ZipWriter::new(&mut kept);
        for (name, tensor) in arrays {
            // Use 64-bit sizes for all files, as NumPy does, so that readers need only one form.
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
            archive.start_file(format!("{}.npy", name.as_ref()), options).map_err(problem)?;
            npy::write(tensor, &mut archive)?;
        }
        archive.finish().map_err(problem)?;
        kept.error.map_or(Ok(()), |error| Err(error.into()))
    })
}

/// A writer that keeps its first error and then pretends to succeed, because a `ZipWriter` that meets an error prints
/// another one when it is dropped.
struct KeptError<W> {
    writer: W,
    position: u64,
    error: Option<io::Error>,
}

impl<W> KeptError<W> {
    /// Returns the result of `made`. If it fails, or an earlier call failed, returns `otherwise` instead.
    fn keep<T>(&mut self, made: impl FnOnce(&mut W) -> io::Result<T>, otherwise: T) -> io::Result<T> {
        if self.error.is_some() {
            return Ok(otherwise);
        }
        match made(&mut self.writer) {
            Err(error) if error.kind() != ErrorKind::Interrupted => {
                self.error = Some(error);
                Ok(otherwise)
            }
            made => made,
        }
    }
}

impl<W: Write> Write for KeptError<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.keep(|writer| writer.write(bytes), bytes.len())?;
        self.position += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.keep(Write::flush, ())
    }
}

impl<W: Seek> Seek for KeptError<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => place,
            SeekFrom::Current(by) => self.position.saturating_add_signed(by),
            SeekFrom::End(_) => self.position,
        };
        self.position = self.keep(|writer| writer.seek(to), place)?;
        Ok(self.position)
    }
}

fn problem(error: ZipError) -> FileProblem {
    match error {
        ZipError::Io(error) => error.into(),
        ZipError::FileNotFound => FileProblem::NoSuchArray,
        ZipError::UnsupportedArchive(reason) => FileProblem::Corrupt(format!("zip archive: {reason}")),
        error => FileProblem::Corrupt(format!("zip archive: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rx_base::DType;
    use std::fs;

    /// A temporary directory, removed when dropped.
    struct Directory(PathBuf);

    impl Directory {
        fn new(test: &str) -> Directory {
            let path = std::env::temp_dir().join(format!("rx-tensor-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a directory");
            Directory(path)
        }

        fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn sample() -> Tensor {
        Tensor::from_f32s(&[2, 2], [1.0, 2.0, 3.0, 4.0]).expect("a tensor")
    }

    fn deflated(path: &Path, entry: &str, contents: &[u8]) {
        let mut archive = ZipWriter::new(File::create(path).expect("a file"));
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        archive.start_file(entry, options).expect("an entry");
        archive.write_all(contents).expect("its contents");
        archive.finish().expect("an archive");
    }

    /// A writer that fails after a given number of bytes.
    struct Full(std::io::Cursor<Vec<u8>>, u64);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.0.position() + bytes.len() as u64 > self.1 {
                true => Err(ErrorKind::StorageFull.into()),
                false => self.0.write(bytes),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for Full {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn archive_that_cannot_be_written_is_dropped_silently() {
        let tensor = Tensor::from_f32s(&[4], [1.0; 4]).expect("a tensor");
        for room in [0, 40, 120, 200] {
            let mut kept = KeptError { writer: Full(std::io::Cursor::default(), room), position: 0, error: None };
            let mut archive = ZipWriter::new(&mut kept);
            for name in ["a.npy", "b.npy"] {
                let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
                archive.start_file(name, options).expect("no error yet");
                npy::write(&tensor, &mut archive).expect("no error yet");
            }
            // Without `KeptError`, the destructor would print an error here.
            archive.finish().expect("no error yet");
            assert_eq!(kept.error.map(|error| error.kind()), Some(ErrorKind::StorageFull), "{room}");
        }
    }

    #[test]
    fn written_arrays_are_read_with_their_names_in_order() {
        let directory = Directory::new("written");
        let path = directory.file("out.npz");
        let integers = Tensor::zeros(DType::INT64, &[3]).expect("a tensor");
        write(&path, &[("out1", &sample()), ("out0", &integers)]).expect("a file");
        let arrays = read(&path).expect("what was written");
        let names: Vec<&str> = arrays.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["out1", "out0"]);
        assert_eq!(arrays[0].1.as_slice::<f32>(), sample().as_slice::<f32>());
        assert_eq!((arrays[1].1.dtype(), arrays[1].1.shape()), (DType::INT64, &[3][..]));
        let missing = Npz::open(&path).and_then(|mut file| file.read("x")).expect_err("no such array");
        assert!(matches!(missing.problem, FileProblem::NoSuchArray), "{missing}");
        write_npy(&directory.file("x.npy"), &sample()).expect("a file");
        assert_eq!(read_npy(&directory.file("x.npy")).expect("an array").shape(), [2, 2]);
    }

    #[test]
    fn compressed_arrays_are_read() {
        let directory = Directory::new("compressed");
        let mut array = Vec::new();
        let zeros = Tensor::zeros(DType::FLOAT32, &[1 << 18]).expect("a tensor");
        npy::write(&zeros, &mut array).expect("memory");
        deflated(&directory.file("a.npz"), "a.npy", &array);
        let arrays = read(&directory.file("a.npz")).expect("an archive");
        assert_eq!(arrays[0].1.shape(), [1 << 18]);
    }

    #[test]
    fn broken_archives_are_errors() {
        let directory = Directory::new("broken");
        let path = directory.file("x.npz");
        write(&path, &[("x", &sample())]).expect("a file");
        let good = fs::read(&path).expect("the file");
        let broken = directory.file("broken.npz");
        for end in (0..good.len()).step_by(3) {
            fs::write(&broken, &good[..end]).expect("a file");
            assert!(read(&broken).is_err(), "cut at {end}");
        }
        for at in (0..good.len()).step_by(2) {
            let mut bytes = good.clone();
            bytes[at] ^= 0x81;
            fs::write(&broken, &bytes).expect("a file");
            // A damaged archive is either rejected, or the damage is outside the data that the checksum covers.
            if let Ok(arrays) = read(&broken) {
                assert!(arrays.iter().all(|(_, array)| array.as_slice::<f32>() == sample().as_slice::<f32>()), "{at}");
            }
        }
        deflated(&broken, "x.npy", b"not an array");
        assert!(matches!(read(&broken).map_err(|error| error.problem), Err(FileProblem::Corrupt(_))));
        assert!(matches!(read(&directory.file("none")).map_err(|error| error.problem), Err(FileProblem::Io(_))));
    }
}
