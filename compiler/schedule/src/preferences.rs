//! Preferences of a device for the programs that it runs.

use rx_base::DType;
use rx_tir::PrimFunc;

/// What is worth doing to a program on one device and not on another. Whatever the answers, the program computes the same.
pub trait Preferences {
    /// Whether [`Preferences::makes_one`] is worth asking at all.
    fn joins_chains(&self) -> bool {
        false
    }

    /// Whether the device makes one kernel of a function of several reductions, so that what is between them never reaches its
    /// memory. Such functions are made for it where programs have them apart: products, softmax and weighted sums.
    fn makes_one(&self, _func: &PrimFunc) -> bool {
        false
    }

    /// How many channels of a convolution's data of this element type the device reads at once where they are neighbours in memory,
    /// if its convolutions are faster then.
    fn channels_together(&self, _dtype: DType) -> Option<i64> {
        None
    }
}

/// No wishes: those of the CPU and of the interpreter.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPreferences;

impl Preferences for NoPreferences {}
