//! A source as machine code: in parts that are compiled at the same time, each kept on disk for the next time.
//!
//! The key is a hash of the text, the architecture and the compiler. Failures of the cache's folder are never errors, and a file that
//! was changed is compiled again. A kernel that spills registers is compiled a second time with all registers that a thread can
//! have: the compiler otherwise reserves some for blocks that nobody asked for.

pub mod resources;

use crate::nvrtc::{self, NvrtcError, Output};
use crate::source::{CudaSource, Listing};
use resources::Resources;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::SystemTime;

/// A kernel whose text is longer is a part of its own: unrolled tiles take the compiler longer than many small kernels.
const LARGE_KERNEL: usize = 4 << 10;

/// How long a part of small kernels grows, in bytes of text: about a tenth of a second for the compiler.
const PART_BYTES: usize = 16 << 10;

/// What the folder of kept images may hold, in bytes. Beyond that those go first that were not used the longest.
const KEPT_BYTES: u64 = 1 << 30;

/// The newest architecture that is promised: devices that NVRTC does not know are newer.
const KNOWN_ARCH: u32 = 90;

/// The newest architecture whose PTX newer devices take; that of `sm_90a` is for it alone.
const LASTING_ARCH: u32 = 89;

/// A text that compiles by itself, with some of a source's kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The helpers, and the kernels.
    pub text: String,
    /// The kernels, by their function's number and their own in it.
    pub kernels: Vec<(usize, usize)>,
}

/// The machine code of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// A cubin; or PTX with a zero byte behind it, for a device that NVRTC does not know.
    pub code: Vec<u8>,
    /// The kernels in it, by their function's number and their own in it.
    pub kernels: Vec<(usize, usize)>,
    /// Whether it was on disk.
    pub was_kept: bool,
}

impl CudaSource {
    /// The source in parts that hold each kernel once.
    pub fn parts(&self) -> Vec<Part> {
        let head = self.text.get(..self.head_bytes).unwrap_or_default();
        let mut parts: Vec<Part> = Vec::new();
        let mut open: Option<Part> = None;
        for (function, info) in self.functions.iter().enumerate() {
            for (number, kernel) in info.kernels.iter().enumerate() {
                let text = self.text.get(kernel.text.clone()).unwrap_or_default();
                if text.len() > LARGE_KERNEL {
                    parts.push(Part { text: format!("{head}{text}\n"), kernels: vec![(function, number)] });
                    continue;
                }
                let part = open.get_or_insert_with(|| Part { text: head.to_owned(), kernels: Vec::new() });
                part.text.push_str(text);
                part.text.push('\n');
                part.kernels.push((function, number));
                if part.text.len() - head.len() > PART_BYTES {
                    parts.extend(open.take());
                }
            }
        }
        parts.extend(open);
        parts
    }
}

impl Listing {
    /// The kernels of functions in texts that compile by themselves, each with the numbers of its functions; of `alone` each has a text
    /// of its own.
    fn parts(&self, functions: &[usize], alone: bool) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut open: Option<Part> = None;
        for function in functions {
            let (Some(Ok(text)), Some(kernels)) = (self.functions.get(*function), self.kernels.get(*function)) else {
                continue;
            };
            let part = open.get_or_insert_with(|| Part { text: self.head.clone(), kernels: Vec::new() });
            part.text.push_str(text);
            part.kernels.extend((0..kernels.len()).map(|number| (*function, number)));
            if alone || part.text.len() - self.head.len() > PART_BYTES {
                parts.extend(open.take());
            }
        }
        parts.extend(open);
        parts
    }

    /// What the kernels need on an architecture, by their names; and why functions have no machine code, by their numbers.
    ///
    /// # Errors
    /// Where NVRTC is not found.
    pub fn resources(&self, arch: u32, kept: &Kept) -> Result<ListedResources, NvrtcError> {
        let version = nvrtc::probe()?;
        let mut listed = ListedResources::default();
        let mut functions: Vec<usize> = (0..self.functions.len()).collect();
        // What is refused in company is compiled alone, to tell who it is.
        for alone in [false, true] {
            let parts = self.parts(&functions, alone);
            let mut refused: Vec<(usize, NvrtcError)> = Vec::new();
            each(&parts, arch, version, kept, &mut |at, image| {
                let of = parts.get(at).into_iter().flat_map(|part| part.kernels.iter().map(|(function, _)| *function));
                match image {
                    Ok(image) => listed.kernels.extend(resources::of(&image.code)),
                    Err(error) => refused.extend(of.map(|function| (function, error.clone()))),
                }
                true
            });
            functions = refused.iter().map(|(function, _)| *function).collect();
            functions.dedup();
            if alone {
                listed.refused.extend(refused);
            }
        }
        kept.trim();
        Ok(listed)
    }
}

/// What the kernels of a listing need.
#[derive(Clone, Debug, Default)]
pub struct ListedResources {
    /// By the kernels' names.
    pub kernels: BTreeMap<String, Resources>,
    /// Why NVRTC makes no machine code of a function's kernels, by its number.
    pub refused: BTreeMap<usize, NvrtcError>,
}

/// The machine code of a source for an architecture, by as many threads as the machine has cores. `progress` is told how
/// many of its parts are done, of how many.
///
/// # Errors
/// Where NVRTC is not found, or refuses a part.
pub fn compile(
    source: &CudaSource,
    arch: u32,
    kept: &Kept,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Image>, NvrtcError> {
    let version = nvrtc::probe()?;
    let parts = source.parts();
    let mut images: Vec<Option<Image>> = vec![None; parts.len()];
    let (mut done, mut failed) = (0, None);
    each(&parts, arch, version, kept, &mut |at, image| {
        match (image, images.get_mut(at)) {
            (Ok(image), Some(slot)) => *slot = Some(image),
            (Ok(_), None) => {}
            (Err(error), _) => failed = Some(error),
        }
        done += 1;
        progress(done, parts.len());
        failed.is_none()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    kept.trim();
    Ok(images.into_iter().flatten().collect())
}

/// Compiles parts at the same time and gives each to `take` by its number, as it is done. Where `take` says no, the others are left.
fn each(
    parts: &[Part],
    arch: u32,
    version: (i32, i32),
    kept: &Kept,
    take: &mut dyn FnMut(usize, Result<Image, NvrtcError>) -> bool,
) {
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from).min(parts.len());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for sender in vec![sender; workers] {
            let next = &next;
            scope.spawn(move || {
                while let Some((at, part)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, parts.get(at)?)))
                {
                    // Nobody listens where another part failed.
                    if sender.send((at, image(part, arch, version, kept))).is_err() {
                        return;
                    }
                }
            });
        }
        // The receiver ends with this scope's closure, and so do the workers.
        for (at, image) in receiver {
            if !take(at, image) {
                return;
            }
        }
    });
}

fn image(part: &Part, arch: u32, version: (i32, i32), kept: &Kept) -> Result<Image, NvrtcError> {
    let key = key(&part.text, arch, version);
    if let Some(code) = kept.get(&key) {
        return Ok(Image { code, kernels: part.kernels.clone(), was_kept: true });
    }
    let code = match nvrtc::compile(&part.text, arch, Output::Cubin) {
        Ok(cubin) => without_spills(&part.text, arch, cubin),
        Err(error) => ptx(&part.text, arch, error)?,
    };
    kept.put(&key, &code);
    Ok(Image { code, kernels: part.kernels.clone(), was_kept: false })
}

/// Where kernels spill, the compiler has kept registers for more blocks than they are launched for: it is told that one is
/// enough, and what it makes then is taken where it spills less. Kernels that do not spill are left as they are, since fewer
/// registers mean more blocks at a time.
fn without_spills(text: &str, arch: u32, cubin: Vec<u8>) -> Vec<u8> {
    let spilling = |cubin: &[u8]| -> BTreeMap<String, u32> {
        resources::of(cubin)
            .into_iter()
            .filter(|(_, needs)| needs.spills > 0)
            .map(|(name, needs)| (name, needs.spills))
            .collect()
    };
    let before = spilling(&cubin);
    if before.is_empty() {
        return cubin;
    }
    let again = nvrtc::compile(&with_all_registers(text, &before), arch, Output::Cubin);
    match again {
        Ok(again) if spilling(&again).values().sum::<u32>() < before.values().sum() => again,
        _ => cubin,
    }
}

/// The text with kernels of these names launched for one block of a multiprocessor, where it does not say how many.
fn with_all_registers(text: &str, names: &BTreeMap<String, u32>) -> String {
    const BOUND: &str = "__launch_bounds__(";
    let mut changed = String::with_capacity(text.len());
    for (at, piece) in text.split(BOUND).enumerate() {
        if at > 0 {
            changed.push_str(BOUND);
        }
        let bound = piece.split_once(')').filter(|(bound, rest)| {
            let name = rest.trim_start().split('(').next().unwrap_or_default();
            at > 0 && !bound.contains(',') && names.contains_key(name)
        });
        match bound {
            Some((bound, rest)) => {
                let _ = write!(changed, "{bound}, 1){rest}");
            }
            None => changed.push_str(piece),
        }
    }
    changed
}

/// For a device newer than NVRTC: text that the driver compiles. Where that is refused too, the first error stands.
fn ptx(text: &str, arch: u32, error: NvrtcError) -> Result<Vec<u8>, NvrtcError> {
    if arch <= KNOWN_ARCH {
        return Err(error);
    }
    let mut ptx = nvrtc::compile(text, LASTING_ARCH, Output::Ptx).map_err(|_| error)?;
    ptx.push(0);
    Ok(ptx)
}

/// What an image depends on: the text, the architecture, the compiler and how it is asked ([`nvrtc::OPTIONS`]).
fn key(text: &str, arch: u32, (major, minor): (i32, i32)) -> String {
    let mut hash = Sha256::new();
    let arch = nvrtc::suffix(arch);
    hash.update(format!("rx image 2, sm_{arch}, NVRTC {major}.{minor}, {:?}\n", nvrtc::OPTIONS));
    hash.update(text);
    hash.finalize().iter().fold(String::with_capacity(64), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

/// A folder of images by key. What cannot be read there is made again, and what cannot be written is not kept: nothing that
/// goes wrong with it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    folder: Option<PathBuf>,
}

impl Kept {
    /// Nowhere: every part is compiled.
    pub fn nothing() -> Kept {
        Kept::default()
    }

    /// In a folder, which is made where it is missing.
    pub fn within(folder: PathBuf) -> Kept {
        Kept { folder: Some(folder) }
    }

    /// In the user's folder for such files: `RX_CACHE`, where it is empty nowhere; else below `XDG_CACHE_HOME`, `~/.cache`
    /// or `%LOCALAPPDATA%`.
    pub fn of_user() -> Kept {
        let var = |name: &str| std::env::var_os(name);
        let folder = match var("RX_CACHE") {
            Some(folder) => (!folder.is_empty()).then(|| PathBuf::from(folder)),
            None => {
                let given = var("XDG_CACHE_HOME").or_else(|| var("LOCALAPPDATA")).filter(|folder| !folder.is_empty());
                let home = || var("HOME").map(|home| PathBuf::from(home).join(".cache"));
                given.map(PathBuf::from).or_else(home).map(|folder| folder.join("rx"))
            }
        };
        Kept { folder: folder.map(|folder| folder.join("images")) }
    }

    fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.folder.as_ref()?.join(key);
        let bytes = std::fs::read(&path).ok()?;
        let (code, sum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
        if Sha256::digest(code).as_slice() != sum {
            return None;
        }
        // When it was used last decides how long it stays; where that cannot be written down it goes earlier.
        let _ = std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(code.to_vec())
    }

    /// Keeps an image, with its sum behind it: a file that a full disk or another program changed is not run.
    fn put(&self, key: &str, code: &[u8]) {
        let Some(folder) = &self.folder else { return };
        let _ = std::fs::create_dir_all(folder).and_then(|()| {
            rx_base::store::write(&folder.join(key), |file| {
                file.write_all(code)?;
                file.write_all(&Sha256::digest(code))
            })
        });
    }

    /// Removes the images that were not used the longest, until the others fit.
    fn trim(&self) {
        let files = self.folder.iter().flat_map(|folder| files_of(folder));
        let mut files: Vec<(SystemTime, u64, PathBuf)> = files.collect();
        files.sort_unstable();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, size, path) in files {
            if bytes <= KEPT_BYTES {
                return;
            }
            let _ = std::fs::remove_file(path);
            bytes -= size;
        }
    }
}

/// The files of a folder: when each was used, its bytes, its path.
fn files_of(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let file = |entry: std::fs::DirEntry| {
        let data = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((data.modified().ok()?, data.len(), entry.path()))
    };
    entries.filter_map(file).collect()
}

#[cfg(test)]
mod tests;
