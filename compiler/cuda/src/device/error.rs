//! Errors of a device, and their messages.

use super::driver::MemInfo;
use crate::nvrtc::NvrtcError;
use crate::rules::OLDEST_ARCH;
use crate::source::{Fault, PlanError};
use rx_base::Name;
use rx_ir::Origin;
use std::time::Duration;

/// An error of a device.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeviceError {
    /// The driver's library could not be loaded.
    #[error("no CUDA driver: libcuda is not found")]
    NoDriver,
    /// The driver reports no device.
    #[error("the CUDA driver has no device")]
    NoDevice,
    /// The device's architecture is older than [`OLDEST_ARCH`].
    #[error("{name} is sm_{arch}; kernels are made for sm_{oldest} and newer", oldest = OLDEST_ARCH)]
    TooOld {
        /// The name of the device.
        name: String,
        /// The architecture: 75 for `sm_75`.
        arch: u32,
    },
    /// Another error of the driver, or a kernel that is in no image.
    #[error("CUDA: {operation}: {message}")]
    Driver {
        /// The operation, such as "loading the kernels".
        operation: &'static str,
        /// The message, usually the driver's.
        message: String,
    },
    /// The device does not have enough free memory.
    #[error("the device has not enough memory: {} are needed{}", shown(*.bytes), free(.mem_info.as_ref()))]
    Memory {
        /// The requested size in bytes; 0 if it is not known.
        bytes: u64,
        /// The free and the total memory, if they are known.
        mem_info: Option<MemInfo>,
    },
    /// The driver rejected a launch.
    #[error("kernel `{}` cannot be launched: {message}", .kernel.kernel)]
    Launch {
        /// The kernel of the last launch. If launches before it were delayed, the rejected one may be among them.
        kernel: Launched,
        /// The message, usually the driver's.
        message: String,
    },
    /// A kernel failed, for example by an illegal address, or the device did. The driver reports the error in a later
    /// call, without the kernel: `kernels` are the last ones launched since the previous wait, at most [`MOST_NAMED`],
    /// in order.
    #[error("{} failed on the device: {message}", named(.kernels))]
    Failed {
        /// These kernels. The one that failed may also be an earlier one.
        kernels: Vec<Launched>,
        /// The driver's message.
        message: String,
    },
    /// The device's work did not end within the time limit. It may continue to run, and the device is lost.
    #[error("{} did not end in {} s and is given up", named(.kernels), .limit.as_secs())]
    TooLong {
        /// The kernels launched since the previous wait, in launch order; only the last [`MOST_NAMED`] if there were
        /// more. The kernel that runs too long is one of these or an earlier one.
        kernels: Vec<Launched>,
        /// The time limit.
        limit: Duration,
    },
    /// The device is lost because of an earlier error, whose message this is.
    #[error("the device cannot be used any more in this process: {0}")]
    Lost(String),
    /// An error of NVRTC: for example, it was not found, or could not compile the kernels.
    #[error("{0}")]
    Nvrtc(#[from] NvrtcError),
    /// A call cannot be launched.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// A call does not match the source: for example, it names no function of it, or passes a buffer that is too small.
    #[error("{0}")]
    Buffer(String),
    /// A check in a kernel failed.
    #[error("{0}")]
    Fault(Fault),
}

/// The maximum number of kernels in [`DeviceError::Failed`] and [`DeviceError::TooLong`].
pub const MOST_NAMED: usize = 8;

/// A launched kernel, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The kernel's name in the CUDA C text.
    pub kernel: String,
    /// The function that the kernel belongs to.
    pub function: Name,
    /// One of the Relax statements that the function computes, if there is one.
    pub origin: Option<Origin>,
}

impl DeviceError {
    /// Returns the kernel of [`DeviceError::Launch`], or the first kernel of [`DeviceError::Failed`] or
    /// [`DeviceError::TooLong`] if all of its kernels are of one function. That kernel need not be the one that failed.
    pub fn kernel(&self) -> Option<&Launched> {
        match self {
            DeviceError::Launch { kernel, .. } => Some(kernel),
            DeviceError::Failed { kernels, .. } | DeviceError::TooLong { kernels, .. } => {
                let (first, others) = kernels.split_first()?;
                let is_same = |other: &Launched| (other.function, other.origin) == (first.function, first.origin);
                others.iter().all(is_same).then_some(first)
            }
            _ => None,
        }
    }

    /// Whether the device is lost after this error.
    pub fn is_lasting(&self) -> bool {
        matches!(self, DeviceError::Failed { .. } | DeviceError::TooLong { .. } | DeviceError::Lost(_))
    }
}

/// Formats a size: `12.0 MiB`.
fn shown(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// Formats the free memory: `, 1.0 MiB of 2.0 GiB are free`. The text is empty if it is not known.
fn free(mem_info: Option<&MemInfo>) -> String {
    mem_info
        .map(|mem_info| format!(", {} of {} are free", shown(mem_info.free), shown(mem_info.total)))
        .unwrap_or_default()
}

/// Formats a list of kernels as the subject of a message.
fn named(kernels: &[Launched]) -> String {
    match kernels {
        [] => "a kernel".to_owned(),
        [only] => format!("kernel `{}`", only.kernel),
        several => {
            let names: Vec<String> = several.iter().map(|one| format!("`{}`", one.kernel)).collect();
            format!("one of the kernels {}", names.join(", "))
        }
    }
}
