//! Detects whether this machine has a GPU, so that code actions can offer runs on it.

use std::path::Path;

/// Files of NVIDIA's driver: the device on Linux, the device in WSL, the library on Windows.
const TRACES: [&str; 3] = ["/dev/nvidiactl", "/dev/dxg", r"C:\Windows\System32\nvcuda.dll"];

/// Whether NVIDIA's driver is installed. The driver is not queried: if the device is too old, `rxrun` reports it at the
/// run.
pub fn has_driver() -> bool {
    TRACES.iter().any(|trace| Path::new(trace).exists())
}
