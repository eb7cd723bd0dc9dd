//! The device a program is made for and runs on.

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
    /// The interpreter, which judges the others: it has each operator as a kernel.
    Interp,
    /// The CPU, and what the user should know of why it is no other.
    Cpu(Option<String>),
    /// CUDA, simulated.
    Simulated(Box<Simulated>),
    /// CUDA.
    Cuda(Box<Cuda>),
}

impl Device {
    /// The device asked for, to run on.
    ///
    /// # Errors
    /// Where it is not there.
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

    /// The device that a text is made for; none is needed for it. `is_cuda`: the text is CUDA's.
    pub fn to_print_for(session: &Session, args: &Args, is_cuda: bool) -> rx_build::Device {
        let word = session.choices.device.to_possible_value();
        rx_build::Device::to_print_for(word.as_ref().map_or("", |word| word.get_name()), &args.target(), is_cuda)
    }

    /// The same device again.
    pub fn another(&self) -> Device {
        match self {
            Device::Interp => Device::Interp,
            Device::Cpu(_) => Device::Cpu(None),
            Device::Simulated(device) => Device::Simulated(Box::new(device.another())),
            Device::Cuda(device) => Device::Cuda(Box::new(device.another())),
        }
    }

    /// The device that programs are made for.
    pub fn made_for(&self) -> rx_build::Device {
        match self {
            Device::Interp => rx_build::Device::Interp,
            Device::Cpu(_) => rx_build::Device::Cpu,
            Device::Simulated(device) => rx_build::Device::Cuda(device.target().clone()),
            Device::Cuda(device) => rx_build::Device::Cuda(device.target().clone()),
        }
    }
}

/// A CUDA device and what compiles for it; else why there is none, but where there is no driver: a machine without one is no
/// surprise to its user, one whose GPU is not used is.
fn found() -> Result<Cuda, Option<String>> {
    let device = Cuda::probe().map_err(|error| match error {
        DeviceError::NoDriver => None,
        other => Some(other.to_string()),
    })?;
    rx_cuda::nvrtc::probe().map_err(|error| Some(error.to_string()))?;
    Ok(device)
}
