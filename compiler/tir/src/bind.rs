//! Values of a function's scalars and symbols for one call.

use crate::evaluate::evaluate_index;
use crate::expr::Expr;
use crate::func::{BufferId, PrimFunc};

/// Why a call does not fit a function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Another number of buffers or scalars than parameters.
    #[error("{passed} arguments passed, {wanted} needed")]
    ArgumentCount {
        /// How many were wanted.
        wanted: usize,
        /// How many were passed.
        passed: usize,
    },
    /// A buffer of another rank.
    #[error("buffer {} has {wanted} dims, the argument {passed}", .buffer.0)]
    Rank {
        /// The parameter's buffer.
        buffer: BufferId,
        /// Its rank.
        wanted: usize,
        /// The argument's.
        passed: usize,
    },
    /// A buffer with another extent.
    #[error("dim {axis} of buffer {} is {wanted}, the argument's {passed}", .buffer.0)]
    Extent {
        /// The parameter's buffer.
        buffer: BufferId,
        /// Which dim.
        axis: usize,
        /// The extent it must have.
        wanted: i64,
        /// The argument's.
        passed: i64,
    },
    /// An extent or symbol whose value follows from nothing that is passed, or overflows.
    #[error("dim {axis} of buffer {} is not known", .buffer.0)]
    Unknown {
        /// The parameter's buffer.
        buffer: BufferId,
        /// Which dim.
        axis: usize,
    },
}

/// The values of a function's scalars and symbols, by variable; `None` for variables that are bound in the body.
///
/// `shapes` has one shape per buffer parameter, `scalars` one value per scalar parameter, both in order.
///
/// # Errors
/// Where the call does not fit the function.
pub fn bind_symbols(func: &PrimFunc, shapes: &[&[i64]], scalars: &[i64]) -> Result<Vec<Option<i64>>, BindError> {
    let mut values = vec![None; func.vars.len()];
    let (buffers, numbers) = (func.buffer_params().count(), func.scalar_params().count());
    if (shapes.len(), scalars.len()) != (buffers, numbers) {
        let wanted = buffers + numbers;
        return Err(BindError::ArgumentCount { wanted, passed: shapes.len() + scalars.len() });
    }
    for (var, value) in func.scalar_params().zip(scalars) {
        values[var.0 as usize] = Some(*value);
    }
    // A dim that is nothing but a symbol gives it its value, wherever it stands; the rest is compared after.
    for (buffer, shape) in func.buffer_params().zip(shapes) {
        let declared = &func.buffer(buffer).shape;
        if declared.len() != shape.len() {
            return Err(BindError::Rank { buffer, wanted: declared.len(), passed: shape.len() });
        }
        for (dim, extent) in declared.iter().zip(*shape) {
            if let Expr::Var { var, .. } = dim
                && let Some(value @ None) = values.get_mut(var.0 as usize)
            {
                *value = Some(*extent);
            }
        }
    }
    for (buffer, shape) in func.buffer_params().zip(shapes) {
        for (axis, (dim, extent)) in func.buffer(buffer).shape.iter().zip(*shape).enumerate() {
            let wanted = evaluate_index(dim, &|var| values.get(var.0 as usize).copied().flatten())
                .ok_or(BindError::Unknown { buffer, axis })?;
            if wanted != *extent {
                return Err(BindError::Extent { buffer, axis, wanted, passed: *extent });
            }
        }
    }
    Ok(values)
}
