//! The device that a program is compiled for and runs on.

use crate::args::{self, Args};
use crate::failure::Failure;
use crate::session::Session;
use clap::ValueEnum;
use rx_cuda::device::DeviceError;
use rx_runtime::Backend;
use rx_runtime::cuda::{Cuda, Simulated};
use std::time::Duration;

/// A device.
pub enum Device {
    /// The reference interpreter, which the other devices are checked against: each operator is a separate kernel.
    Interp,
    /// The CPU; the text is a remark on why no GPU is used.
    Cpu(Option<String>),
    /// CUDA, simulated on the CPU.
    Simulated(Box<Simulated>),
    /// A CUDA GPU.
    Cuda(Box<Cuda>),
}

impl Device {
    /// Returns the device to run on, as `--device` selects it.
    ///
    /// # Errors
    /// If the device is not available.
    pub fn to_run_on(session: &Session, args: &Args) -> Result<Device, Failure> {
        let with_choices = |cuda: Cuda| {
            let cuda = cuda.with_rules(args.rules()).with_tf32(args.tf32).within(Duration::from_secs(args.max_seconds));
            Device::Cuda(Box::new(cuda))
        };
        Ok(match session.choices.device {
            args::Device::Interp => Device::Interp,
            args::Device::Cpu => Device::Cpu(None),
            args::Device::CudaSim => {
                let device = Simulated::of(args.target());
                Device::Simulated(Box::new(if args.sanitize { device.strict() } else { device }))
            }
            args::Device::Cuda => with_choices(Cuda::probe().map_err(|error| Failure::usage(error.to_string()))?),
            args::Device::Auto => match found() {
                Ok(device) => with_choices(device),
                Err(why) => Device::Cpu(why),
            },
        })
    }

    /// The device that a printed stage is compiled for; the machine need not have it. `is_cuda`: the printed text is
    /// CUDA C, PTX, SASS or a CUDA schedule.
    pub fn to_print_for(session: &Session, args: &Args, is_cuda: bool) -> rx_build::Device {
        let word = session.choices.device.to_possible_value();
        rx_build::Device::to_print_for(word.as_ref().map_or("", |word| word.get_name()), &args.target(), is_cuda)
    }

    /// Creates another instance of the same device.
    pub fn new_instance(&self) -> Device {
        match self {
            Device::Interp => Device::Interp,
            Device::Cpu(_) => Device::Cpu(None),
            Device::Simulated(device) => Device::Simulated(Box::new(device.new_instance())),
            Device::Cuda(device) => Device::Cuda(Box::new(device.new_instance())),
        }
    }

    /// The target that programs are compiled for.
    pub fn made_for(&self) -> rx_build::Device {
        match self {
            Device::Interp => rx_build::Device::Interp,
            Device::Cpu(_) => rx_build::Device::Cpu,
            Device::Simulated(device) => rx_build::Device::Cuda(device.target().clone()),
            Device::Cuda(device) => rx_build::Device::Cuda(device.target().clone()),
        }
    }
}

/// Finds a CUDA device and NVRTC. The error is the reason to report if there is none. It is `None` on a machine without
/// a CUDA driver, where running on the CPU is no surprise; an unused GPU is one.
fn found() -> Result<Cuda, Option<String>> {
    let device = Cuda::probe().map_err(|error| match error {
        DeviceError::NoDriver => None,
        other => Some(other.to_string()),
    })?;
    rx_cuda::nvrtc::probe().map_err(|error| Some(error.to_string()))?;
    Ok(device)
}
