//! Atomic replacement of files: the new contents are written to a temporary file in the same folder, which is then
//! renamed. On Linux the temporary file has no name while it is written (`O_TMPFILE`), so a killed process leaves no
//! file. Other systems use a hidden name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Replaces the file at `path` atomically with the output of `write`: no reader sees a partial file, and a failure
/// loses nothing. Permissions are preserved. If `path` is a symbolic link, the file that it refers to is replaced.
///
/// # Errors
/// The errors of `write` and of the system, and an error for a read-only file. The file is then unchanged, and no
/// temporary file remains.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    // A rename would replace the link itself.
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "no regular file, which cannot be replaced").into());
    }
    if metadata.permissions().readonly() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "the file is read-only").into());
    }
    let mut temporary = Temporary::beside(&path)?;
    write(&mut temporary.writer)?;
    temporary.writer.get_ref().set_permissions(metadata.permissions())?;
    Ok(temporary.put(&path)?)
}

/// Writes a file as [`replace`] does, whether or not it exists. A device or pipe is written only after `write` has
/// succeeded.
///
/// # Errors
/// Those of [`replace`].
pub fn write<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => replace(path, write),
        Ok(metadata) if metadata.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory).into()),
        Ok(_) => {
            let mut temporary = Temporary::beside(&std::env::temp_dir().join("device"))?;
            write(&mut temporary.writer)?;
            temporary.writer.flush()?;
            let mut target = OpenOptions::new().write(true).open(path)?;
            let mut written = temporary.writer.get_ref();
            written.rewind()?;
            io::copy(&mut written, &mut target)?;
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let mut temporary = Temporary::beside(path)?;
            write(&mut temporary.writer)?;
            Ok(temporary.put(path)?)
        }
        Err(error) => Err(error.into()),
    }
}

/// A temporary file. It is removed when the value is dropped, unless it was moved to its final path.
struct Temporary {
    writer: BufWriter<File>,
    /// Its name; `None` while it has none.
    path: Option<PathBuf>,
}

impl Temporary {
    fn beside(path: &Path) -> io::Result<Temporary> {
        match nameless::open(path) {
            Some(file) => Ok(Temporary { writer: BufWriter::new(file), path: None }),
            None => {
                let make = |path: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(path);
                let (file, path) = under_hidden_name(path, make)?;
                Ok(Temporary { writer: BufWriter::new(file), path: Some(path) })
            }
        }
    }

    /// Moves the file to `path`.
    fn put(mut self, path: &Path) -> io::Result<()> {
        self.writer.flush()?;
        let file = self.writer.get_ref();
        file.sync_all()?;
        let hidden = match &self.path {
            Some(hidden) => hidden.clone(),
            None => {
                let ((), hidden) = under_hidden_name(path, |hidden| nameless::link(file, hidden))?;
                self.path.insert(hidden).clone()
            }
        };
        fs::rename(hidden, path)?;
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // If the file cannot be removed, nothing more can be done.
            let _ = fs::remove_file(path);
        }
    }
}

/// Creates a file in the folder of `path` under an unused hidden name; returns that name.
fn under_hidden_name<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let own = path.file_name().unwrap_or_default();
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut name = std::ffi::OsString::from(".");
        name.push(own);
        name.push(format!(".rx-{}-{count}", std::process::id()));
        let path = path.with_file_name(name);
        match make(&path) {
            Ok(made) => return Ok((made, path)),
            // A killed process with the same process number left this file.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Temporary files without a name.
#[cfg(target_os = "linux")]
mod nameless {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    /// Opens a nameless file on the file system of `path`. `None` if the file system does not support this, or if
    /// `/proc`, which [`link`] needs, is not mounted.
    pub(super) fn open(path: &Path) -> Option<File> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = File::from(openat(CWD, folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        Path::new(&place(&file)).exists().then_some(file)
    }

    /// Gives the file an unused name.
    pub(super) fn link(file: &File, path: &Path) -> io::Result<()> {
        Ok(linkat(CWD, place(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }

    fn place(file: &File) -> String {
        format!("/proc/self/fd/{}", file.as_raw_fd())
    }
}

/// The fallback for systems without nameless files.
#[cfg(not(target_os = "linux"))]
mod nameless {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn open(_path: &Path) -> Option<File> {
        None
    }

    pub(super) fn link(_file: &File, _path: &Path) -> io::Result<()> {
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }
}

#[cfg(test)]
mod tests {
    use super::{replace, write};
    use std::fs;
    use std::io::{self, Write};
    use std::path::{Path, PathBuf};

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rx-base-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn put(path: &Path, text: &str) -> io::Result<()> {
        write(path, |writer| writer.write_all(text.as_bytes()))
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = folder("store");
        let path = folder.join("a.rx");
        put(&path, "new").expect("a new file");
        put(&path, "newer").expect("a written file");
        let failed = replace(&path, |writer| {
            writer.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.expect_err("what the writer says").to_string(), "no more");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), Some("newer"));
        assert!(replace::<io::Error>(&folder, |_| Ok(())).is_err());
        assert!(replace::<io::Error>(&folder.join("none.rx"), |_| Ok(())).is_err());
        let mut permissions = fs::metadata(&path).expect("a file").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).expect("a read-only file");
        assert_eq!(put(&path, "newest").expect_err("a read-only file stays").to_string(), "the file is read-only");
        assert!(put(&folder.join("none/b.rx"), "new").is_err() && put(&folder, "new").is_err());
        // No temporary file remains.
        assert_eq!(fs::read_dir(&folder).map(Iterator::count).ok(), Some(1));
        fs::remove_dir_all(&folder).expect("what was made");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_is_being_written_has_no_name() {
        let folder = folder("nameless");
        let path = folder.join("a.rx");
        let written = write(&path, |writer| {
            writer.write_all(b"half")?;
            writer.flush()?;
            // The state of the folder if the process were killed now.
            let names = fs::read_dir(&folder)?.count();
            if names == 0 { Ok(()) } else { Err(io::Error::other(format!("{names} names"))) }
        });
        written.expect("a written file");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), Some("half"));
        assert_eq!(fs::read_dir(&folder).map(Iterator::count).ok(), Some(1));
        fs::remove_dir_all(&folder).expect("what was made");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_device_is_an_error() {
        let full = put(Path::new("/dev/full"), "text").expect_err("nothing can be written there");
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = folder("link");
        let (file, link) = (folder.join("a.rx"), folder.join("b.rx"));
        fs::write(&file, "old").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).expect("permissions");
        symlink("a.rx", &link).expect("a link");
        put(&link, "new").expect("a written file");
        assert!(fs::symlink_metadata(&link).is_ok_and(|it| it.is_symlink()));
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), Some("new"));
        assert_eq!(fs::metadata(&file).map(|it| it.permissions().mode() & 0o777).ok(), Some(0o751));
        fs::remove_dir_all(&folder).expect("what was made");
    }
}
