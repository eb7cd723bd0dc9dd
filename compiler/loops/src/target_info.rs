//! Target information for the passes before scheduling: which rewrites are profitable on a device.

use rx_base::DType;
use rx_tir::PrimFunc;

/// The rewrites that are profitable on a device. They change the results of a program at most by rounding.
pub trait TargetInfo {
    /// Whether [`TargetInfo::can_schedule_as_one_kernel`] can return `true` for some function. If not, the lowering
    /// builds no candidates for it.
    fn joins_chains(&self) -> bool {
        false
    }

    /// Whether one schedule of the device takes all of `func`, a function of several reductions, and keeps its
    /// temporaries out of device memory. The lowering fuses separate statements into such functions for it. For
    /// example, a product, a softmax and a weighted sum become attention.
    fn can_schedule_as_one_kernel(&self, _func: &PrimFunc) -> bool {
        false
    }

    /// Returns the number of channels of a convolution's data that the device loads as one vector if they are
    /// contiguous in memory, for this element type. Returns `None` if a channels-innermost layout is not faster.
    fn channel_vector_width(&self, _dtype: DType) -> Option<i64> {
        None
    }
}

/// The target information of the CPU and of the interpreter: no rewrite is profitable.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefaultTargetInfo;

impl TargetInfo for DefaultTargetInfo {}
