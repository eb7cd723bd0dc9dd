//! What goes wrong with a device, in words.

use super::driver::Room;
use crate::nvrtc::NvrtcError;
use crate::rules::OLDEST_ARCH;
use crate::source::{Fault, PlanError};
use rx_base::Name;
use rx_ir::Origin;
use std::time::Duration;

/// What goes wrong with a device.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeviceError {
    /// The driver's library is not there.
    #[error("no CUDA driver: libcuda is not found")]
    NoDriver,
    /// The driver has no device.
    #[error("the CUDA driver has no device")]
    NoDevice,
    /// The device's architecture is older than what kernels are made for.
    #[error("{name} is sm_{arch}; kernels are made for sm_{oldest} and newer", oldest = OLDEST_ARCH)]
    TooOld {
        /// Its name.
        name: String,
        /// Its architecture: 75 for `sm_75`.
        arch: u32,
    },
    /// The driver's answer to something.
    #[error("CUDA: {what}: {message}")]
    Driver {
        /// What was asked.
        what: &'static str,
        /// Its answer.
        message: String,
    },
    /// Memory that the device has not.
    #[error("the device has not enough memory: {} are wanted{}", shown(*.bytes), free(.room.as_ref()))]
    Memory {
        /// How many bytes were wanted.
        bytes: u64,
        /// What there is, where the driver says so.
        room: Option<Room>,
    },
    /// A kernel was not launched.
    #[error("kernel `{}` cannot be launched: {message}", .kernel.kernel)]
    Launch {
        /// Which.
        kernel: Launched,
        /// The driver's answer.
        message: String,
    },
    /// A kernel did what none may, or the device failed. The driver says so when the host waits: all that was launched since the last
    /// time is listed, the latest last, at most [`MOST_NAMED`].
    #[error("{} failed on the device: {message}", named(.kernels))]
    Failed {
        /// One of these did it.
        kernels: Vec<Launched>,
        /// The driver's answer.
        message: String,
    },
    /// Kernels did not end in time. They run on; nothing else does on this device before the process ends.
    #[error("{} did not end in {} s and is given up", named(.kernels), .limit.as_secs())]
    TooLong {
        /// One of these did not.
        kernels: Vec<Launched>,
        /// How long was waited.
        limit: Duration,
    },
    /// The device is of no use any more, for what failed before.
    #[error("the device cannot be used any more in this process: {0}")]
    Lost(String),
    /// The kernels are not compiled.
    #[error("{0}")]
    Nvrtc(#[from] NvrtcError),
    /// A call cannot be launched.
    #[error("{0}")]
    Plan(#[from] PlanError),
    /// A call passes another number of buffers, or one of another size.
    #[error("{0}")]
    Buffer(String),
    /// A check in a kernel failed.
    #[error("{0}")]
    Fault(Fault),
}

/// The most kernels that an error names.
pub const MOST_NAMED: usize = 8;

/// A kernel that was launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// Its name in the text.
    pub kernel: String,
    /// The function it is of.
    pub function: Name,
    /// A statement of the program that the function computes.
    pub origin: Option<Origin>,
}

impl DeviceError {
    /// The kernel that failed, or another of its function; where it is known which function that is.
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

    /// Whether nothing runs on the device after it.
    pub fn is_lasting(&self) -> bool {
        matches!(self, DeviceError::Failed { .. } | DeviceError::TooLong { .. } | DeviceError::Lost(_))
    }
}

/// `12.0 MiB`.
fn shown(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// `, 1.0 MiB of 2.0 GiB are free`, where it is known.
fn free(room: Option<&Room>) -> String {
    room.map(|room| format!(", {} of {} are free", shown(room.free), shown(room.total))).unwrap_or_default()
}

/// The kernels of which one failed.
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
