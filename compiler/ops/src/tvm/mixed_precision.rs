//! Mixed-precision policy per operator: which operators use 16-bit floats when a program is converted to mixed
//! precision. TVM's `TMixedPrecisionPolicy` (`src/relax/op`, taken from TVM 0.27).

/// The treatment of an operator's float operands by the mixed-precision conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Operands are always converted to 16-bit floats: matrix products and convolutions, which devices compute faster
    /// then.
    Always,
    /// 16-bit floats if all operands are 16-bit floats, otherwise 32-bit floats.
    Follow,
    /// Operands keep their dtype: the operator needs more precision, or TVM has no policy for it.
    Never,
}

/// The operators with [`Precision::Always`], sorted. TVM also lists `outer`, but `outer` has no attribute for the dtype
/// of the sum.
const ALWAYS: &str = "\
    matmul nn.attention nn.attention_bias nn.attention_var_len nn.conv1d nn.conv1d_transpose nn.conv2d \
    nn.conv2d_transpose nn.conv3d nn.conv3d_transpose";

/// The operators with [`Precision::Follow`], sorted.
const FOLLOW: &str = "\
    abs acos acosh add arange asin asinh astype atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor \
    broadcast_to ceil concat cos cosh divide dynamic_strided_slice equal erf ewise_fma exp expand_dims eye flatten \
    floor floor_divide floor_mod full full_like greater greater_equal hamming_window image.affine_grid \
    image.grid_sample image.resize2d image.resize3d isfinite isinf isnan layout_transform left_shift less less_equal \
    log log_add_exp logical_and logical_not logical_or logical_xor maximum meshgrid minimum mod multiply negative \
    nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d \
    nn.batch_flatten nn.dropout nn.gelu nn.gelu_tanh nn.group_norm nn.instance_norm nn.layer_norm nn.max_pool1d \
    nn.max_pool2d nn.max_pool3d nn.relu nn.rms_norm nn.selu nn.silu not_equal ones permute_dims power reshape \
    right_shift round rsqrt sigmoid sign sin sinh split sqrt square squeeze stack strided_slice subtract tan tanh \
    trunc vision.roi_align vision.roi_pool zeros";

/// Returns the policy of an operator, given its name without `relax.`.
pub fn precision(operator: &str) -> Precision {
    let names = |list: &'static str| list.split_whitespace().any(|known| known == operator);
    match operator {
        _ if names(ALWAYS) => Precision::Always,
        _ if names(FOLLOW) => Precision::Follow,
        _ => Precision::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::{ALWAYS, FOLLOW, Precision, precision};
    use rx_base::name::name;

    #[test]
    fn the_lists_are_in_order_and_name_operators() {
        let [always, follow] = [ALWAYS, FOLLOW].map(str::split_whitespace);
        assert!(always.clone().is_sorted() && follow.clone().is_sorted());
        let unknown: Vec<&str> = always.chain(follow).filter(|op| crate::find(name(op)).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(
            ["nn.conv2d", "add", "nn.softmax"].map(precision),
            [Precision::Always, Precision::Follow, Precision::Never]
        );
    }
}
