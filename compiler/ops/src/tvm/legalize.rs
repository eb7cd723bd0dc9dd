//! What `LegalizeOps` makes of a call, and what it calls the prim_funcs it makes (python/tvm/relax/transform/legalize_ops).

use crate::call::CallInfo;
use crate::compute::Compute;
use crate::tensor::elementwise;
use rx_base::name::name;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Legalized {
    /// A call of a prim_func of this name.
    Kernel(&'static str),
    /// The operand passed for this parameter: the operator says something to passes that are done.
    Operand(&'static str),
    /// The call, as it is: the run-time system does it, another pass is asked by it, or nothing computes it.
    Call,
    /// A mistake: why. What TVM refuses is not left for later.
    Refused(&'static str),
}

/// What becomes of a call, where its types say enough. rx has loops for more operators than TVM, and so makes more kernels; what
/// works on memory or between workers stays as in TVM.
pub fn legalized(call: &CallInfo<'_>) -> Legalized {
    match call.schema.compute {
        Some(Compute::Loops(_)) if call.schema.name == "matmul" && lacks_dtype(call, &["x1", "x2"]) => {
            Legalized::Refused("the dtypes of both operands must be known")
        }
        Some(Compute::Loops(_) | Compute::View(_)) => Legalized::Kernel(prim_func_name(call)),
        // `R.grad.no_grad` and its like are for `Gradient`.
        Some(Compute::Identity(param)) if call.schema.name.starts_with("grad.") => Legalized::Operand(param),
        Some(Compute::Identity(_) | Compute::Host) | None => Legalized::Call,
    }
}

/// Whether the shapes of these operands are known, and the dtype of one is not.
fn lacks_dtype(call: &CallInfo<'_>, operands: &[&'static str]) -> bool {
    let tensors: Vec<_> = operands.iter().filter_map(|operand| call.ty(operand).as_tensor()).collect();
    let are_shaped = tensors.len() == operands.len() && tensors.iter().all(|tensor| tensor.shape.dims().is_some());
    are_shaped && tensors.iter().any(|tensor| tensor.dtype.is_none())
}

/// The name of a prim_func that computes the call: the operator's or that of the TOPI function TVM calls for it. Names of C's
/// mathematical functions have `tir_` in front.
fn prim_func_name(call: &CallInfo<'_>) -> &'static str {
    let operator = call.schema.name;
    match operator {
        // TVM calls its own `erf`, and C's functions for the others.
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
        // Names with dots are no identifiers.
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
    fn what_no_kernel_computes_stays() {
        assert_eq!(of("grad.no_grad"), Legalized::Operand("input"));
        assert_eq!(of("unique"), Legalized::Call);
        assert_eq!(of("ccl.allreduce"), Legalized::Call);
        assert_eq!(of("call_tir"), Legalized::Call);
    }
}
