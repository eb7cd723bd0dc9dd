//! Rewrites of a kernel's function. A [`Rewrite`] is a key of the query cache: its result depends on its fields only.

use super::chain::{united, view_kernel};
use super::dead::without_outputs;
use super::reshape::{Group, reshaped};
use super::sink::sunk;
use crate::loops::Loops;
use crate::program::Scalar;
use rx_base::{DType, Dim};
use rx_tir::func::BufferId;
use std::sync::Arc;

/// A rewrite of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rewrite {
    /// Marks the indices that cannot be proved in range, so that they are checked at run time.
    Guard {
        /// The function.
        loops: Loops,
        /// The number of leading buffer parameters that are inputs; the others are outputs.
        inputs: usize,
    },
    /// Removes the outputs that nothing reads.
    WithoutOutputs {
        /// The function.
        loops: Loops,
        /// The number of leading buffer parameters that are inputs; the others are outputs.
        inputs: usize,
        /// For each output, whether it is removed.
        dead: Vec<bool>,
    },
    /// Makes the function read an input under its shape before a view.
    Reshape {
        /// The function.
        loops: Loops,
        /// The input buffer.
        buffer: BufferId,
        /// The shape before the view.
        from: Arc<[Dim]>,
        /// The shape after the view, which the function reads now.
        to: Arc<[Dim]>,
        /// Whether one dim of the tensor may correspond to several dims of the view.
        is_cut: bool,
    },
    /// Makes an elementwise function run over the shape that an input has before a view.
    Sink {
        /// The function.
        loops: Loops,
        /// The input buffer.
        buffer: BufferId,
        /// The shape before the view.
        before: Arc<[Dim]>,
        /// The groups of dims that correspond to each other before and after the view.
        groups: Vec<Group>,
    },
    /// Builds a kernel that copies a tensor to another shape, with loops over the common factors of both shapes.
    View {
        /// The shape of the tensor.
        from: Arc<[Dim]>,
        /// The shape of the view.
        to: Arc<[Dim]>,
        /// The element type.
        dtype: DType,
    },
    /// Splits the loops of a merged function along common axes, and inlines temporaries where that is possible.
    Unite {
        /// The function.
        loops: Loops,
    },
    /// Simplifies a function, and inlines temporaries where this repeats no expensive work (`rx_loops::inline`).
    Simplify {
        /// The function.
        loops: Loops,
    },
}

/// The result of a [`Rewrite`].
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The rewritten function.
    pub(crate) loops: Loops,
    /// For [`Rewrite::Sink`]: the buffers whose shape changed to the shape before the view.
    pub(super) changed: Vec<BufferId>,
    /// For [`Rewrite::View`]: the values of the scalar parameters.
    pub(super) scalars: Vec<Scalar>,
}

impl Rewrite {
    /// Computes the rewritten function. Returns `None` where the rewrite is not possible.
    pub fn rewritten(&self) -> Option<Rewritten> {
        let plain = |loops| Rewritten { loops, changed: Vec::new(), scalars: Vec::new() };
        Some(match self {
            Rewrite::Guard { loops, inputs } => plain(Loops::ordered(rx_loops::guards(loops).0, *inputs)),
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
                plain(Loops::new(rx_loops::simplify(&rx_loops::inline(&rx_loops::simplify(loops)))))
            }
        })
    }
}
