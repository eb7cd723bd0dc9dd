//! What goes wrong with a device, in words.

use super::driver::Room;
use crate::nvrtc::NvrtcError;
use crate::rules::OLDEST_ARCH;
use crate::source::{Fault, PlanError};
use rx_base::Name;
use rx_ir::Origin;
use std::fmt;
use std::time::Duration;

/// What goes wrong with a device.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceError {
    /// The driver's library is not there.
    NoDriver,
    /// The driver has no device.
    NoDevice,
    /// The device's architecture is older than what kernels are made for.
    TooOld {
        /// Its name.
        name: String,
        /// Its architecture: 75 for `sm_75`.
        arch: u32,
    },
    /// The driver's answer to something.
    Driver {
        /// What was asked.
        what: &'static str,
        /// Its answer.
        message: String,
    },
    /// Memory that the device has not.
    Memory {
        /// How many bytes were wanted.
        bytes: u64,
        /// What there is, where the driver says so.
        room: Option<Room>,
    },
    /// A kernel was not launched.
    Launch {
        /// Which.
        kernel: Launched,
        /// The driver's answer.
        message: String,
    },
    /// A kernel did what none may, or the device failed. The driver says so when the host waits: all that was launched since the last
    /// time is listed, the latest last, at most [`MOST_NAMED`].
    Failed {
        /// One of these did it.
        kernels: Vec<Launched>,
        /// The driver's answer.
        message: String,
    },
    /// Kernels did not end in time. They run on; nothing else does on this device before the process ends.
    TooLong {
        /// One of these did not.
        kernels: Vec<Launched>,
        /// How long was waited.
        limit: Duration,
    },
    /// The device is of no use any more, for what failed before.
    Lost(String),
    /// The kernels are not compiled.
    Nvrtc(NvrtcError),
    /// A call cannot be launched.
    Plan(PlanError),
    /// A call passes another number of buffers, or one of another size.
    Buffer(String),
    /// A check in a kernel failed.
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

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::NoDriver => f.write_str("no CUDA driver: libcuda is not found"),
            DeviceError::NoDevice => f.write_str("the CUDA driver has no device"),
            DeviceError::TooOld { name, arch } => {
                write!(f, "{name} is sm_{arch}; kernels are made for sm_{OLDEST_ARCH} and newer")
            }
            DeviceError::Driver { what, message } => write!(f, "CUDA: {what}: {message}"),
            DeviceError::Memory { bytes, room: None } => {
                write!(f, "the device has not enough memory: {} are wanted", shown(*bytes))
            }
            DeviceError::Memory { bytes, room: Some(Room { free, total }) } => {
                let [bytes, free, total] = [*bytes, *free, *total].map(shown);
                write!(f, "the device has not enough memory: {bytes} are wanted, {free} of {total} are free")
            }
            DeviceError::Launch { kernel, message } => {
                write!(f, "kernel `{}` cannot be launched: {message}", kernel.kernel)
            }
            DeviceError::Failed { kernels, message } => write!(f, "{} failed on the device: {message}", named(kernels)),
            DeviceError::TooLong { kernels, limit } => {
                write!(f, "{} did not end in {} s and is given up", named(kernels), limit.as_secs())
            }
            DeviceError::Lost(why) => write!(f, "the device cannot be used any more in this process: {why}"),
            DeviceError::Nvrtc(error) => error.fmt(f),
            DeviceError::Plan(error) => error.fmt(f),
            DeviceError::Buffer(what) => f.write_str(what),
            DeviceError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl std::error::Error for DeviceError {}

impl From<NvrtcError> for DeviceError {
    fn from(error: NvrtcError) -> DeviceError {
        DeviceError::Nvrtc(error)
    }
}

impl From<PlanError> for DeviceError {
    fn from(error: PlanError) -> DeviceError {
        DeviceError::Plan(error)
    }
}
