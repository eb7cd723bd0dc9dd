//! Writing one text.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Puts `text` in the place of the file at `path` at once, so that no reader sees half of it and nothing is lost on the
/// way: beside it first, then renamed. Permissions stay; a link stays one and leads to the new text.
///
/// # Errors
/// What the system says, and a file that is read-only; the file is as it was then, and nothing is left beside it.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A rename would put a file in the place of the link.
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    if !metadata.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "no regular file, which cannot be replaced"));
    }
    if metadata.permissions().readonly() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let mut temporary = Temporary::beside(&path)?;
    temporary.file.write_all(text.as_bytes())?;
    fs::set_permissions(&temporary.path, metadata.permissions())?;
    temporary.file.sync_all()?;
    fs::rename(&temporary.path, &path)?;
    temporary.renamed = true;
    Ok(())
}

/// Writes `text` to `path` so that it is there whole or not at all, whether there was a file before or not. A device or pipe
/// is written to.
///
/// # Errors
/// As of [`replace`].
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => return replace(path, text),
        Ok(metadata) if metadata.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(_) => return File::options().write(true).open(path)?.write_all(text.as_bytes()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut temporary = Temporary::beside(path)?;
    temporary.file.write_all(text.as_bytes())?;
    temporary.file.sync_all()?;
    fs::rename(&temporary.path, path)?;
    temporary.renamed = true;
    Ok(())
}

/// A file that is removed again unless it was renamed.
struct Temporary {
    path: PathBuf,
    file: File,
    renamed: bool,
}

impl Temporary {
    fn beside(path: &Path) -> io::Result<Temporary> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let own = path.file_name().unwrap_or_default();
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let mut name = std::ffi::OsString::from(".");
            name.push(own);
            name.push(format!(".rx-{}-{count}", std::process::id()));
            let path = path.with_file_name(name);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Temporary { path, file, renamed: false }),
                // Left behind by a process of the same number that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
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
    use super::{replace, write};
    use std::fs;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("rx-report-store-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.rx");
        fs::write(&path, "old").expect("a file");
        replace(&path, "new").expect("a written file");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), Some("new"));
        write(&path, "newer").expect("a written file");
        write(&folder.join("b.rx"), "first").expect("a new file");
        assert_eq!(fs::read_to_string(folder.join("b.rx")).ok().as_deref(), Some("first"));
        fs::remove_file(folder.join("b.rx")).expect("what was made");
        assert!(replace(&folder, "new").is_err() && replace(&folder.join("none.rx"), "new").is_err());
        let mut permissions = fs::metadata(&path).expect("a file").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).expect("a read-only file");
        let refused = replace(&path, "newer").expect_err("a read-only file stays");
        assert_eq!(refused.to_string(), "the file is read-only");
        assert!(write(&folder.join("none/b.rx"), "new").is_err() && write(&folder, "new").is_err());
        // Nothing is left beside it.
        assert_eq!(fs::read_dir(&folder).map(Iterator::count).ok(), Some(1));
        fs::remove_dir_all(&folder).expect("what was made");
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = std::env::temp_dir().join(format!("rx-report-link-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (file, link) = (folder.join("a.rx"), folder.join("b.rx"));
        fs::write(&file, "old").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).expect("permissions");
        symlink("a.rx", &link).expect("a link");
        replace(&link, "new").expect("a written file");
        assert!(fs::symlink_metadata(&link).is_ok_and(|it| it.is_symlink()));
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), Some("new"));
        assert_eq!(fs::metadata(&file).map(|it| it.permissions().mode() & 0o777).ok(), Some(0o751));
        fs::remove_dir_all(&folder).expect("what was made");
    }
}
