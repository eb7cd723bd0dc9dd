//! Whether this machine seems to have a GPU that runs can be offered on.

use std::path::Path;

/// What NVIDIA's driver leaves on a machine: its devices on Linux, that of WSL, its library on Windows.
const TRACES: [&str; 3] = ["/dev/nvidiactl", "/dev/dxg", r"C:\Windows\System32\nvcuda.dll"];

/// Whether NVIDIA's driver is installed. The driver itself is not asked: whether the device is new enough, `rxrun` says when it is told
/// to run there.
pub fn has_driver() -> bool {
    TRACES.iter().any(|trace| Path::new(trace).exists())
}
