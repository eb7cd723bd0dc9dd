//! Changes of one kernel's function, as keys of a cache: each depends on nothing but what it says.

use super::chain::{united, view_kernel};
use super::dead::without_outputs;
use super::reshape::{Group, reshaped};
use super::sink::sunk;
use crate::loops::Loops;
use crate::program::Scalar;
use rx_base::{DType, Dim};
use rx_tir::func::BufferId;
use std::sync::Arc;

/// A change of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rewrite {
    /// Indices that nothing proves in range are marked. The first `inputs` buffers are inputs.
    Guard {
        /// The function.
        loops: Loops,
        /// How many of its buffers are inputs.
        inputs: usize,
    },
    /// Without the outputs that are dead.
    WithoutOutputs {
        /// The function.
        loops: Loops,
        /// How many of its buffers are inputs.
        inputs: usize,
        /// For each output, whether nothing reads it.
        dead: Vec<bool>,
    },
    /// Reads an input as it is before a view.
    Reshape {
        /// The function.
        loops: Loops,
        /// The input.
        buffer: BufferId,
        /// The extents before the view.
        from: Arc<[Dim]>,
        /// The extents that the function reads.
        to: Arc<[Dim]>,
        /// Whether dims of the tensor may be several of the view's.
        is_cut: bool,
    },
    /// Runs over the extents before a view of an input.
    Sink {
        /// The function.
        loops: Loops,
        /// The input.
        buffer: BufferId,
        /// The extents before the view.
        before: Arc<[Dim]>,
        /// The dims that are together dims of the view.
        groups: Vec<Group>,
    },
    /// A view as a kernel that moves elements, along the loops of both shapes.
    View {
        /// The extents of the tensor.
        from: Arc<[Dim]>,
        /// The extents of the view.
        to: Arc<[Dim]>,
        /// The element type.
        dtype: DType,
    },
    /// Loops of several kernels by the same axes, and temporaries computed where they are read.
    Unite {
        /// The function.
        loops: Loops,
    },
    /// Simplified, and temporaries of one reader computed where they are read.
    Simplify {
        /// The function.
        loops: Loops,
    },
}

/// A function that a [`Rewrite`] made.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The function.
    pub(crate) loops: Loops,
    /// Of [`Rewrite::Sink`] the buffers that have the extents before the view then.
    pub(super) changed: Vec<BufferId>,
    /// Of [`Rewrite::View`] what is passed for its scalars.
    pub(super) scalars: Vec<Scalar>,
}

impl Rewrite {
    /// The changed function, where the change is possible.
    pub fn rewritten(&self) -> Option<Rewritten> {
        let plain = |loops| Rewritten { loops, changed: Vec::new(), scalars: Vec::new() };
        Some(match self {
            Rewrite::Guard { loops, inputs } => plain(Loops::ordered(rx_schedule::guards(loops).0, *inputs)),
            Rewrite::WithoutOutputs { loops, inputs, dead } => {
                plain(Loops::new(without_outputs(loops, *inputs, dead)?))
            }
            Rewrite::Reshape { loops, buffer, from, to, is_cut } => {
                plain(Loops::new(reshaped(loops, *buffer, (from, to), *is_cut)?))
            }
            Rewrite::Sink { loops, buffer, before, groups } => {
                let (func, changed) = sunk(loops, *buffer, before, groups)?;
                Rewritten { changed, ..plain(Loops::new(func)) }
            }
            Rewrite::View { from, to, dtype } => {
                let (func, scalars) = view_kernel(from, to, *dtype)?;
                Rewritten { scalars, ..plain(Loops::ordered(func, 1)) }
            }
            Rewrite::Unite { loops } => plain(Loops::new(united(loops))),
            Rewrite::Simplify { loops } => {
                plain(Loops::new(rx_schedule::simplify(&rx_schedule::inline(&rx_schedule::simplify(loops)))))
            }
        })
    }
}
