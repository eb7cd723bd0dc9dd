//! Facts about TVM releases per operator: lowering in the default pipelines, legalization, supported layouts, mixed
//! precision, failures of schedule rules.
//!
//! Operators that TVM lowers for all attributes need no entry. Sources: python/tvm/relax/transform/legalize_ops and
//! src/relax/transform/legalize_ops.cc of the release.

mod convert;
mod legalize;
mod lowering;
mod mixed_precision;
mod nest;
mod schedule;

pub use convert::{Conversion, convert, plain};
pub use legalize::{Legalized, legalized};
pub use lowering::{
    Instead, Lowering, RefusedKeyword, is_elementwise, is_readable, lowering, refused_keywords, written_shape,
    written_tuple,
};
pub use mixed_precision::{Precision, precision};
pub use schedule::{ScheduleFailure, schedule_failure};

use rx_base::TvmVersion;

/// The layouts for which a release can lower an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutLimit {
    /// The operands that have a layout: parameter, layout attribute, and the only supported layout, if there is just
    /// one.
    pub operands: &'static [(&'static str, &'static str, Option<&'static str>)],
    /// Whether layouts must be plain, without split axes as in `NCHW4c`.
    pub plain: bool,
    /// The attribute with the layout of the result, which must equal the layout of the first operand.
    pub result: &'static str,
}

const CONVOLUTION: LayoutLimit = LayoutLimit {
    operands: &[("data", "data_layout", None), ("weight", "kernel_layout", None)],
    plain: true,
    result: "out_layout",
};

const POOLING: LayoutLimit = LayoutLimit { operands: &[("data", "layout", None)], plain: false, result: "out_layout" };

const fn transposed(operands: &'static [(&'static str, &'static str, Option<&'static str>)]) -> LayoutLimit {
    LayoutLimit { operands, plain: true, result: "out_layout" }
}

/// Returns the layouts for which `version` lowers the operator called `name` (without `relax.`); `None` if all are
/// supported.
pub fn layouts(version: TvmVersion, name: &str) -> Option<LayoutLimit> {
    let (TvmVersion::V0_25 | TvmVersion::V0_26 | TvmVersion::V0_27) = version;
    Some(match name {
        "nn.conv1d" | "nn.conv2d" | "nn.conv3d" => CONVOLUTION,
        "nn.conv1d_transpose" => {
            transposed(&[("data", "data_layout", Some("NCW")), ("weight", "kernel_layout", Some("IOW"))])
        }
        "nn.conv2d_transpose" => {
            transposed(&[("data", "data_layout", Some("NCHW")), ("weight", "kernel_layout", Some("IOHW"))])
        }
        "nn.conv3d_transpose" => {
            transposed(&[("data", "data_layout", Some("NCDHW")), ("weight", "kernel_layout", Some("IODHW"))])
        }
        "nn.max_pool1d"
        | "nn.max_pool2d"
        | "nn.max_pool3d"
        | "nn.avg_pool1d"
        | "nn.avg_pool2d"
        | "nn.avg_pool3d"
        | "nn.adaptive_avg_pool1d"
        | "nn.adaptive_avg_pool2d"
        | "nn.adaptive_avg_pool3d" => POOLING,
        _ => return None,
    })
}
