//! The device that a program is made for.

use rx_cuda::rules::Target;
use rx_lower::{NoPreferences, Preferences};

/// The device that a program is made for, whether it is there or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The interpreter, the reference of the others: each operator stays a kernel.
    Interp,
    /// The host.
    Cpu,
    /// CUDA.
    Cuda(Target),
}

impl Device {
    /// The device that a text is made for, by its word in `rx.toml` and of `--device`. CUDA's texts (`is_cuda`) are made for CUDA
    /// where the word is none of a device's own.
    pub fn to_print_for(word: &str, target: &Target, is_cuda: bool) -> Device {
        match word {
            "interp" => Device::Interp,
            "cuda" | "cuda-sim" => Device::Cuda(target.clone()),
            _ if is_cuda => Device::Cuda(target.clone()),
            _ => Device::Cpu,
        }
    }

    /// The wishes of the device for its programs; `None`: each operator stays a kernel.
    pub fn preferences(&self) -> Option<&dyn Preferences> {
        match self {
            Device::Interp => None,
            Device::Cpu => Some(&NoPreferences),
            Device::Cuda(target) => Some(target),
        }
    }
}
