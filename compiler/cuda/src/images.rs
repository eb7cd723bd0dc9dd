//! Compiles a source with NVRTC: splits it into parts, compiles them in parallel, and caches each result on disk.
//!
//! The cache key is a hash of the text, the architecture, the compiler version and the options. A failure of the cache
//! folder is never an error, and a part whose file is corrupted is compiled again. A part with kernels that spill
//! registers is compiled a second time, with more registers for these kernels (`without_spills`).

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

/// The text size in bytes above which a kernel of a [`CudaSource`] is a separate part: unrolled tiles take the compiler
/// longer than many small kernels.
const LARGE_KERNEL: usize = 4 << 10;

/// The size above which a part of small kernels is complete, in bytes of text: about a tenth of a second of
/// compilation.
const PART_BYTES: usize = 16 << 10;

/// The size of the cache folder, in bytes, above which a compilation ends by removing the least recently used images.
const KEPT_BYTES: u64 = 1 << 30;

/// The newest architecture that every supported NVRTC knows. A device that NVRTC does not know is newer.
const KNOWN_ARCH: u32 = 90;

/// The architecture of the PTX that is compiled for devices that NVRTC does not know: they accept PTX of older
/// architectures. It is not 90, for which PTX is compiled as `compute_90a` ([`nvrtc::suffix`]): that runs on `sm_90`
/// only.
const LASTING_ARCH: u32 = 89;

/// A compilation unit: a text that compiles by itself, with some of a source's kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The helpers, followed by the kernels.
    pub text: String,
    /// The kernels, each as (number of the function, number of the kernel in it).
    pub kernels: Vec<(usize, usize)>,
}

/// The compiled code of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// A cubin. If NVRTC cannot make one for an architecture newer than `sm_90`: PTX with a zero byte at the end.
    pub code: Vec<u8>,
    /// The kernels in it, each as (number of the function, number of the kernel in it).
    pub kernels: Vec<(usize, usize)>,
    /// Whether the code was found in the cache.
    pub was_kept: bool,
}

impl CudaSource {
    /// Splits the source into parts, so that each kernel is in exactly one part.
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
    /// Splits the kernels of `functions` into parts, without functions that have no text. If `alone`, each function is
    /// a separate part.
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

    /// Compiles the kernels for an architecture and returns their resource usage by name, and the compiler errors by
    /// function number.
    ///
    /// # Errors
    /// The errors of [`nvrtc::probe`].
    pub fn resources(&self, arch: u32, cache: &ImageCache) -> Result<ListedResources, NvrtcError> {
        let version = nvrtc::probe()?;
        let mut listed = ListedResources::default();
        let mut functions: Vec<usize> = (0..self.functions.len()).collect();
        // If a part is rejected, its functions are compiled one by one, to find those that cause the errors.
        for alone in [false, true] {
            let parts = self.parts(&functions, alone);
            let mut refused: Vec<(usize, NvrtcError)> = Vec::new();
            each(&parts, arch, version, cache, &mut |at, image| {
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
        cache.trim();
        Ok(listed)
    }
}

/// The resource usage of a listing's kernels.
#[derive(Clone, Debug, Default)]
pub struct ListedResources {
    /// The resource usage by kernel name, without kernels that are rejected or compiled to PTX.
    pub kernels: BTreeMap<String, Resources>,
    /// The errors of NVRTC, by the number of the function whose kernels it does not compile.
    pub refused: BTreeMap<usize, NvrtcError>,
}

/// Compiles a source for an architecture in parallel. `progress` is called with the number of finished parts (compiled,
/// cached or rejected) and the number of all parts. After a rejected part, the remaining parts are skipped.
///
/// # Errors
/// The errors of [`nvrtc::probe`], or that of [`nvrtc::compile`] for a part.
pub fn compile(
    source: &CudaSource,
    arch: u32,
    cache: &ImageCache,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Image>, NvrtcError> {
    let version = nvrtc::probe()?;
    let parts = source.parts();
    let mut images: Vec<Option<Image>> = vec![None; parts.len()];
    let (mut done, mut failed) = (0, None);
    each(&parts, arch, version, cache, &mut |at, image| {
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
    cache.trim();
    Ok(images.into_iter().flatten().collect())
}

/// Compiles parts in parallel. Calls `take` with the number of each part and its result, in order of completion; if
/// `take` returns false, the remaining parts are skipped.
fn each(
    parts: &[Part],
    arch: u32,
    version: (i32, i32),
    cache: &ImageCache,
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
                    // Sending fails if the receiver is gone, because `take` returned false.
                    if sender.send((at, image(part, arch, version, cache))).is_err() {
                        return;
                    }
                }
            });
        }
        // This loop owns the receiver. A return drops it, which ends the workers.
        for (at, image) in receiver {
            if !take(at, image) {
                return;
            }
        }
    });
}

fn image(part: &Part, arch: u32, version: (i32, i32), cache: &ImageCache) -> Result<Image, NvrtcError> {
    let key = key(&part.text, arch, version);
    if let Some(code) = cache.get(&key) {
        return Ok(Image { code, kernels: part.kernels.clone(), was_kept: true });
    }
    let code = match nvrtc::compile(&part.text, arch, Output::Cubin) {
        Ok(cubin) => without_spills(&part.text, arch, cubin),
        Err(error) => ptx(&part.text, arch, error)?,
    };
    cache.put(&key, &code);
    Ok(Image { code, kernels: part.kernels.clone(), was_kept: false })
}

/// Recompiles a text with more registers for its kernels that spill, if there are any. Returns the new code if it
/// spills less in total, otherwise `cubin`.
///
/// By default, the compiler limits the registers of a kernel so that several blocks fit on a multiprocessor. In the new
/// text, the launch bounds of each kernel that spills ask for only one block per multiprocessor, unless they give a
/// minimum already. The other kernels keep the limit, since fewer registers allow more blocks to run at the same time.
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

/// Adds the minimum of one block per multiprocessor to the launch bounds of the named kernels, unless they give a
/// minimum. For example, `__launch_bounds__(256)` becomes `__launch_bounds__(256, 1)`.
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

/// Compiles a text to PTX for a device that NVRTC may not know; the driver compiles it further. `error` is that of the
/// compilation to machine code: it is returned if the device is not newer than [`KNOWN_ARCH`], or if this compilation
/// fails, too.
fn ptx(text: &str, arch: u32, error: NvrtcError) -> Result<Vec<u8>, NvrtcError> {
    if arch <= KNOWN_ARCH {
        return Err(error);
    }
    let mut ptx = nvrtc::compile(text, LASTING_ARCH, Output::Ptx).map_err(|_| error)?;
    ptx.push(0);
    Ok(ptx)
}

/// Returns the cache key of an image: a hash of the text, the architecture, the compiler version and
/// [`nvrtc::OPTIONS`].
fn key(text: &str, arch: u32, (major, minor): (i32, i32)) -> String {
    let arch = nvrtc::suffix(arch);
    hash([&format!("rx image 2, sm_{arch}, NVRTC {major}.{minor}, {:?}\n", nvrtc::OPTIONS), text])
}

/// Returns the hash of texts as a cache key: 64 hexadecimal digits.
pub(crate) fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    texts.into_iter().for_each(|text| hash.update(text));
    hash.finalize().iter().fold(String::with_capacity(64), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

/// A cache of images and of the simulator's object files: a folder with one file per key. An image that cannot be read
/// is compiled again, and one that cannot be written is not cached: no failure of the folder is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImageCache {
    folder: Option<PathBuf>,
}

impl ImageCache {
    /// Returns a cache without a folder: every part is compiled.
    pub fn nothing() -> ImageCache {
        ImageCache::default()
    }

    /// Returns a cache in a folder, which is created when the first image is written.
    pub fn within(folder: PathBuf) -> ImageCache {
        ImageCache { folder: Some(folder) }
    }

    /// Returns the cache of the user, in the first of these folders:
    ///
    /// - `$RX_CACHE/images`, if the variable is set; there is no cache if it is set to an empty name,
    /// - `$XDG_CACHE_HOME/rx/images` or `$LOCALAPPDATA/rx/images`, if the variable is set and not empty,
    /// - `$HOME/.cache/rx/images`, if the variable is set; otherwise there is no cache.
    pub fn of_user() -> ImageCache {
        let var = |name: &str| std::env::var_os(name);
        let folder = match var("RX_CACHE") {
            Some(folder) => (!folder.is_empty()).then(|| PathBuf::from(folder)),
            None => {
                let given = ["XDG_CACHE_HOME", "LOCALAPPDATA"]
                    .into_iter()
                    .find_map(|name| var(name).filter(|folder| !folder.is_empty()));
                let home = || var("HOME").map(|home| PathBuf::from(home).join(".cache"));
                given.map(PathBuf::from).or_else(home).map(|folder| folder.join("rx"))
            }
        };
        ImageCache { folder: folder.map(|folder| folder.join("images")) }
    }

    /// Returns an image that was put with this key, unless its file is missing or corrupted.
    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.folder.as_ref()?.join(key);
        let bytes = std::fs::read(&path).ok()?;
        let (code, sum) = bytes.split_at_checked(bytes.len().checked_sub(32)?)?;
        if Sha256::digest(code).as_slice() != sum {
            return None;
        }
        // The modification time records the last use. If it cannot be written, the image is only removed earlier.
        let _ = std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(code.to_vec())
    }

    /// Writes an image followed by its SHA-256 sum, so that a file that a full disk truncated or another program
    /// changed is not loaded.
    pub(crate) fn put(&self, key: &str, code: &[u8]) {
        let Some(folder) = &self.folder else { return };
        let _ = std::fs::create_dir_all(folder).and_then(|()| {
            rx_base::store::write(&folder.join(key), |file| {
                file.write_all(code)?;
                file.write_all(&Sha256::digest(code))
            })
        });
    }

    /// Removes the least recently used images until the others fit [`KEPT_BYTES`].
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

/// Returns the files of a folder, each as (last use, size in bytes, path).
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
