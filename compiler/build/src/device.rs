//! The device that a program is compiled for.

use rx_cuda::rules::Target;
use rx_lower::{DefaultTargetInfo, TargetInfo};

/// The target of compilation. The device need not be present.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The interpreter, which is the reference for the others: kernels are not fused.
    Interp,
    /// The host's CPU.
    Cpu,
    /// A CUDA device with the given properties.
    Cuda(Target),
}

impl Device {
    /// Returns the device for which a text is printed, from the device's name in `rx.toml` or `--device`. `is_cuda` is
    /// whether the text comes from the CUDA back end. `interp` is the interpreter; `cuda` and `cuda-sim` are a CUDA
    /// device with the properties `target`. Any other name is that CUDA device if `is_cuda`, otherwise the CPU.
    pub fn to_print_for(word: &str, target: &Target, is_cuda: bool) -> Device {
        match word {
            "interp" => Device::Interp,
            "cuda" | "cuda-sim" => Device::Cuda(target.clone()),
            _ if is_cuda => Device::Cuda(target.clone()),
            _ => Device::Cpu,
        }
    }

    /// Returns the device's target information. `None` means that kernels are not fused.
    pub fn target_info(&self) -> Option<&dyn TargetInfo> {
        match self {
            Device::Interp => None,
            Device::Cpu => Some(&DefaultTargetInfo),
            Device::Cuda(target) => Some(target),
        }
    }
}
