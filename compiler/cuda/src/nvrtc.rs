//! Calls NVRTC, the CUDA compiler as a library, which is loaded at the first use.
//!
//! The library is found by the environment variable `RX_NVRTC` (a path), otherwise by its usual names. The functions
//! used here are the same in versions 12 and 13. Compilation needs neither a driver nor a device.
#![allow(unsafe_code)]

use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::OnceLock;

/// The kind of code that NVRTC produces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// PTX: text that a driver compiles for its device.
    Ptx,
    /// A cubin: machine code of one architecture.
    Cubin,
}

/// An error of loading or calling NVRTC.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NvrtcError {
    /// The library could not be loaded: the names or path that were tried, each with the loader's message.
    #[error("NVRTC not found: set RX_NVRTC to the path of libnvrtc.so (tried {})", .0.join("; "))]
    NotFound(Vec<String>),
    /// The library lacks a required function.
    #[error("rx cannot use this NVRTC library: {0}")]
    Symbol(String),
    /// NVRTC rejects the text or the architecture: its log.
    #[error("NVRTC cannot compile the kernels:\n{0}")]
    Compile(String),
    /// A call of the library failed.
    #[error("{function} failed with code {code}")]
    Call {
        /// The name of the function.
        function: &'static str,
        /// The returned `nvrtcResult`.
        code: i32,
    },
    /// The text contains a zero byte.
    #[error("the text of the kernels holds a zero byte")]
    ZeroByte,
}

/// The handle type `nvrtcProgram`.
type Program = *mut c_void;
type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Contents = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;

/// The loaded library and its functions.
struct Nvrtc {
    create: Create,
    compile: Compile,
    destroy: Destroy,
    log: (Size, Contents),
    ptx: (Size, Contents),
    cubin: (Size, Contents),
    version: (i32, i32),
    // The function pointers belong to the library, which is never unloaded.
    _library: Library,
}

/// Returns the names and paths to try, in order.
fn candidates() -> Vec<OsString> {
    match std::env::var_os("RX_NVRTC").filter(|path| !path.is_empty()) {
        Some(path) => vec![path],
        None if cfg!(windows) => ["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"].map(OsString::from).to_vec(),
        // A driver may reject code of a compiler of a newer major version.
        None if crate::device::driver_version().is_some_and(|(major, _)| major < 13) => {
            ["libnvrtc.so.12", "libnvrtc.so", "libnvrtc.so.13"].map(OsString::from).to_vec()
        }
        None => ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(OsString::from).to_vec(),
    }
}

impl Nvrtc {
    /// Returns the library, which the first call loads. Its result, also an error, is final for the process.
    fn get() -> Result<&'static Nvrtc, NvrtcError> {
        static LOADED: OnceLock<Result<Nvrtc, NvrtcError>> = OnceLock::new();
        LOADED.get_or_init(Nvrtc::load).as_ref().map_err(Clone::clone)
    }

    fn load() -> Result<Nvrtc, NvrtcError> {
        let mut tried = Vec::new();
        for candidate in candidates() {
            // SAFETY: loading runs the library's initializers. The library is the one that the user named, or has a
            // name of NVIDIA's.
            match unsafe { Library::new(&candidate) } {
                Ok(library) => return Nvrtc::resolve(library),
                Err(error) => tried.push(format!("{}: {error}", candidate.to_string_lossy())),
            }
        }
        Err(NvrtcError::NotFound(tried))
    }

    fn resolve(library: Library) -> Result<Nvrtc, NvrtcError> {
        fn symbol<T: Copy>(library: &Library, function: &str) -> Result<T, NvrtcError> {
            // SAFETY: `T` is the function's type in NVRTC's header, the same in versions 12 and 13.
            let found: Result<Symbol<'_, T>, _> = unsafe { library.get(function.as_bytes()) };
            found.map(|symbol| *symbol).map_err(|error| NvrtcError::Symbol(error.to_string()))
        }
        let version: Version = symbol(&library, "nvrtcVersion")?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the function writes two integers.
        check("nvrtcVersion", unsafe { version(&mut major, &mut minor) })?;
        Ok(Nvrtc {
            create: symbol(&library, "nvrtcCreateProgram")?,
            compile: symbol(&library, "nvrtcCompileProgram")?,
            destroy: symbol(&library, "nvrtcDestroyProgram")?,
            log: (symbol(&library, "nvrtcGetProgramLogSize")?, symbol(&library, "nvrtcGetProgramLog")?),
            ptx: (symbol(&library, "nvrtcGetPTXSize")?, symbol(&library, "nvrtcGetPTX")?),
            cubin: (symbol(&library, "nvrtcGetCUBINSize")?, symbol(&library, "nvrtcGetCUBIN")?),
            version: (major, minor),
            _library: library,
        })
    }
}

fn check(function: &'static str, code: c_int) -> Result<(), NvrtcError> {
    if code == 0 { Ok(()) } else { Err(NvrtcError::Call { function, code }) }
}

/// Returns the version of NVRTC, as (major, minor).
///
/// # Errors
/// If NVRTC is not found, lacks a function or does not report its version.
pub fn probe() -> Result<(i32, i32), NvrtcError> {
    Nvrtc::get().map(|nvrtc| nvrtc.version)
}

/// The compiler options besides the architecture.
pub const OPTIONS: [&CStr; 1] = [c"--std=c++17"];

/// Returns the suffix after `sm_` of an architecture's name. For 90 it is `90a`: `sm_90a` has additional instructions,
/// and its code runs on that architecture only.
pub fn suffix(arch: u32) -> String {
    match arch {
        90 => "90a".to_owned(),
        arch => arch.to_string(),
    }
}

/// Compiles a text for an architecture, given by its number: 80 for `sm_80`, 90 for `sm_90a`. PTX is compiled for the
/// virtual architecture, for example `compute_80`.
///
/// The returned PTX has no zero byte at its end. One must be added before [`crate::device`] loads it; a cubin is loaded
/// as it is.
///
/// # Errors
/// If NVRTC is not found or lacks a function, if a call of it fails, if the text contains a zero byte, or if NVRTC
/// rejects the text; that error contains its log.
pub fn compile(source: &str, arch: u32, output: Output) -> Result<Vec<u8>, NvrtcError> {
    compile_and_tell(source, arch, output).map(|(code, _)| code)
}

/// Compiles as [`compile`] does, and also returns the compiler's log: warnings, and remarks about lost performance.
///
/// # Errors
/// As [`compile`].
pub fn compile_and_tell(source: &str, arch: u32, output: Output) -> Result<(Vec<u8>, String), NvrtcError> {
    let nvrtc = Nvrtc::get()?;
    let text = CString::new(source).map_err(|_| NvrtcError::ZeroByte)?;
    let kind = if output == Output::Ptx { "compute" } else { "sm" };
    let arch = CString::new(format!("--gpu-architecture={kind}_{}", suffix(arch))).map_err(|_| NvrtcError::ZeroByte)?;
    let options: Vec<*const c_char> = std::iter::once(arch.as_ptr()).chain(OPTIONS.map(CStr::as_ptr)).collect();
    let mut program = Handle { nvrtc, program: null_mut() };
    // SAFETY: the text and the name end in zero bytes and live through the call; there are no headers.
    let code = unsafe {
        (nvrtc.create)(&mut program.program, text.as_ptr(), c"rx.cu".as_ptr(), 0, std::ptr::null(), std::ptr::null())
    };
    check("nvrtcCreateProgram", code)?;
    // SAFETY: the program was created; the options end in zero bytes and live through the call.
    let code = unsafe { (nvrtc.compile)(program.program, options.len() as c_int, options.as_ptr()) };
    let log = program.contents("nvrtcGetProgramLog", nvrtc.log)?;
    let log = CStr::from_bytes_until_nul(&log).map_or_else(|_| String::new(), |log| log.to_string_lossy().into_owned());
    if code != 0 {
        return Err(if log.trim().is_empty() {
            NvrtcError::Call { function: "nvrtcCompileProgram", code }
        } else {
            NvrtcError::Compile(log)
        });
    }
    let code = match output {
        Output::Cubin => program.contents("nvrtcGetCUBIN", nvrtc.cubin)?,
        Output::Ptx => {
            let mut ptx = program.contents("nvrtcGetPTX", nvrtc.ptx)?;
            ptx.truncate(ptx.iter().position(|byte| *byte == 0).unwrap_or(ptx.len()));
            ptx
        }
    };
    Ok((code, log))
}

/// A program of NVRTC, destroyed on drop.
struct Handle {
    nvrtc: &'static Nvrtc,
    program: Program,
}

impl Handle {
    /// Calls a pair of functions: the first returns the size of a result, the second writes it.
    fn contents(&self, function: &'static str, (size, contents): (Size, Contents)) -> Result<Vec<u8>, NvrtcError> {
        let mut bytes = 0usize;
        // SAFETY: the program was created; the function writes one size.
        check(function, unsafe { size(self.program, &mut bytes) })?;
        let mut buffer = vec![0u8; bytes];
        // SAFETY: the buffer has the number of bytes that the library reported.
        check(function, unsafe { contents(self.program, buffer.as_mut_ptr().cast()) })?;
        Ok(buffer)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: the program was created and is destroyed only here. A failure needs no handling.
            unsafe { (self.nvrtc.destroy)(&mut self.program) };
        }
    }
}
