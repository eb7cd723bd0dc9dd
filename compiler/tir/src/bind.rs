//! Binding of a function's scalars and symbols to the values of one call.

use crate::evaluate::evaluate_index;
use crate::expr::Expr;
use crate::func::{BufferId, PrimFunc};

/// The reason why the arguments of a call do not match a function.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// The number of shapes or of scalars differs from the number of buffer or scalar parameters.
    #[error("{passed} arguments passed, {wanted} needed")]
    ArgumentCount {
        /// The number of buffer parameters plus that of scalar parameters.
        wanted: usize,
        /// The number of shapes plus that of scalars.
        passed: usize,
    },
    /// An argument has another rank than the parameter.
    #[error("buffer {} has {wanted} dims, the argument {passed}", .buffer.0)]
    Rank {
        /// The parameter's buffer.
        buffer: BufferId,
        /// The parameter's rank.
        wanted: usize,
        /// The argument's rank.
        passed: usize,
    },
    /// An argument has another extent than the parameter requires.
    #[error("dim {axis} of buffer {} is {wanted}, the argument's {passed}", .buffer.0)]
    Extent {
        /// The parameter's buffer.
        buffer: BufferId,
        /// The axis.
        axis: usize,
        /// The extent that the parameter requires.
        wanted: i64,
        /// The argument's extent.
        passed: i64,
    },
    /// An extent of a parameter cannot be computed, for example because it does not follow from the arguments,
    /// overflows, or divides by zero.
    #[error("dim {axis} of buffer {} is not known", .buffer.0)]
    Unknown {
        /// The parameter's buffer.
        buffer: BufferId,
        /// The axis.
        axis: usize,
    },
}

/// Computes the values of a function's scalars and symbols, indexed by variable. Symbols that occur in no parameter's
/// shape, and all other variables, such as those that the body binds, are `None`.
///
/// `shapes` has one shape for each buffer parameter, and `scalars` one value for each scalar parameter, both in order.
/// For example, for a buffer of shape `[n, n * 2]` and the argument shape `[4, 8]`, `n` is 4.
///
/// # Errors
/// If the number of arguments, a rank or an extent differs from that of the parameters, or if an extent of a parameter
/// cannot be computed.
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
    // First pass: the first dim that is just a variable without value defines it. Second pass: all dims are compared.
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
