//! TVM's `LegalizeOps` per operator: its outcome for a call, and the names of the prim_funcs that it generates
//! (python/tvm/relax/transform/legalize_ops).

use crate::call::CallInfo;
use crate::compute::Compute;
use crate::tensor::elementwise;
use rx_base::name::name;

/// The outcome of `LegalizeOps` for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Legalized {
    /// The call becomes a `call_tir` of a prim_func with this name.
    Kernel(&'static str),
    /// The call is replaced by the operand of this parameter: the operator is only an annotation for earlier passes.
    Operand(&'static str),
    /// The call is kept: the runtime executes it, another pass handles it, or it cannot be computed.
    Call,
    /// The call is an error with this reason, because TVM rejects it here.
    Refused(&'static str),
}

/// Returns the outcome for a call whose types are sufficiently known. rx has loops for more operators than TVM, so it
/// generates kernels for some calls that TVM keeps. Operators on memory and between workers are kept, as in TVM.
pub fn legalized(call: &CallInfo<'_>) -> Legalized {
    match call.schema.compute {
        Some(Compute::Loops(_)) if call.schema.name == "matmul" && lacks_dtype(call, &["x1", "x2"]) => {
            Legalized::Refused("the dtypes of both operands must be known")
        }
        Some(Compute::Loops(_) | Compute::View(_)) => Legalized::Kernel(prim_func_name(call)),
        // `R.grad.no_grad` and similar operators are only read by the `Gradient` pass.
        Some(Compute::Identity(param)) if call.schema.name.starts_with("grad.") => Legalized::Operand(param),
        Some(Compute::Identity(_) | Compute::Host) | None => Legalized::Call,
    }
}

/// Whether the shapes of all these operands are known, but the dtype of at least one is not.
fn lacks_dtype(call: &CallInfo<'_>, operands: &[&'static str]) -> bool {
    let tensors: Vec<_> = operands.iter().filter_map(|operand| call.ty(operand).as_tensor()).collect();
    let are_shaped = tensors.len() == operands.len() && tensors.iter().all(|tensor| tensor.shape.dims().is_some());
    are_shaped && tensors.iter().any(|tensor| tensor.dtype.is_none())
}

/// Returns the name of the prim_func for the call: the operator's name, or the name of the TOPI function that TVM calls
/// for it. Elementwise math functions get the prefix `tir_`.
fn prim_func_name(call: &CallInfo<'_>) -> &'static str {
    let operator = call.schema.name;
    match operator {
        // TVM has a separate `erf` in TOPI and uses C's functions for the others.
        "erf" => "erf",
        _ if elementwise::OPERATORS.iter().any(|schema| schema.name == operator) => {
            name(&format!("tir_{operator}")).as_str()
        }
        "astype" => "cast",
        "bucketize" => "searchsorted",
        "collapse_sum_like" | "collapse_sum_to" => "collapse_sum",
        "concat" => "concatenate",
        "flatten" | "nn.batch_flatten" => "reshape",
        "full_like" => "full",
        "gather_elements" => "gather",
        "gather_nd" => "te_gather_nd",
        "layout_transform" => "te_layout_transform",
        "nn.leakyrelu" => "leaky_relu",
        "nn.pad" => match call.str("pad_mode") {
            Some("reflect") => "reflect_pad",
            Some("replicate") => "replicate_pad",
            Some("circular") => "circular_pad",
            _ => "pad",
        },
        "ones_like" => "ones",
        "permute_dims" => "transpose",
        "zeros_like" => "zeros",
        // A name with a dot is not an identifier.
        _ => operator.rsplit('.').next().unwrap_or(operator),
    }
}

#[cfg(test)]
mod tests {
    use super::{Legalized, legalized};
    use crate::call::{Arg, CallInfo};
    use rx_base::name::name;
    use rx_base::symbolic::Bounds;

    fn of(operator: &str) -> Legalized {
        let schema = crate::find(name(operator)).expect("an operator");
        let args = vec![Arg::Absent; schema.params.len()];
        legalized(&CallInfo::new(schema, &args, &Bounds::default()))
    }

    #[test]
    fn kernels_are_called_as_tvm_calls_them() {
        assert_eq!(of("add"), Legalized::Kernel("add"));
        assert_eq!(of("nn.conv2d"), Legalized::Kernel("conv2d"));
        assert_eq!(of("exp"), Legalized::Kernel("tir_exp"));
        assert_eq!(of("reshape"), Legalized::Kernel("reshape"));
        assert_eq!(of("nn.pad"), Legalized::Kernel("pad"));
    }

    #[test]
    fn operators_without_a_kernel_are_not_lowered() {
        assert_eq!(of("grad.no_grad"), Legalized::Operand("input"));
        assert_eq!(of("unique"), Legalized::Call);
        assert_eq!(of("ccl.allreduce"), Legalized::Call);
        assert_eq!(of("call_tir"), Legalized::Call);
    }
}
