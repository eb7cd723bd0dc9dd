//! Lowering of operators by the default pipelines of a TVM release: whether each call becomes a kernel, a runtime call,
//! or an error. The portability checks use it.

use crate::call::{Arg, CallInfo};
use rx_base::{DType, TvmVersion};
use rx_ir::Attr;

/// The outcome of lowering a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// A kernel is generated. The shapes and dtypes of operands and result must be known.
    Kernel,
    /// A kernel is generated from the shapes of the operands. The shape of the result is computed at run time.
    DataDependent,
    /// A kernel is generated from the dtype and rank of the result. Shape and dtype of the operand of this parameter
    /// must be known, unless it is a constant.
    Filled(&'static str),
    /// A kernel is generated that works on the CPU but not on CUDA, for this reason.
    HostOnly(&'static str),
    /// A runtime function executes the call, whatever its types are.
    Builtin,
    /// The call is not lowered, for this reason, with a replacement if a short one exists.
    Never(&'static str, Option<Instead>),
}

/// The replacement for a call that is not lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The operand of this parameter.
    Operand(&'static str),
    /// `R.outer(R.inner(first, second), third)`.
    Composed {
        /// The operator applied to the inner call and the third operand.
        outer: &'static str,
        /// The operator applied to the first two operands.
        inner: &'static str,
    },
}

/// The reductions that `R.scatter_elements` supports for several updates of an element
/// (python/tvm/topi/scatter_elements.py).
const SCATTERED: &[&str] = &["update", "add", "mul", "mean", "min", "max"];

const NO_KERNEL: &str = "it has no legalization, and the code generator does not know it";

/// Returns the outcome of lowering a call with `version`.
pub fn lowering(version: TvmVersion, call: &CallInfo<'_>) -> Lowering {
    let given = |name: &str| call.schema.params.iter().any(|it| it.name == name) && !is_none(call.arg(name));
    match call.schema.name {
        "builtin.stop_lift_params" => {
            Lowering::Never("only LiftTransformParams removes it, and it was not run", Some(Instead::Operand("x")))
        }
        "hint_on_device" => {
            Lowering::Never("only RealizeVDevice removes it, and it was not run", Some(Instead::Operand("data")))
        }
        "ewise_fma" => Lowering::Never(NO_KERNEL, Some(Instead::Composed { outer: "add", inner: "multiply" })),
        "wrap_param" => Lowering::Never(NO_KERNEL, None),
        "nn.pixel_shuffle" => Lowering::Never("its legalization calls a TOPI function that does not exist", None),
        "nn.attention_var_len" => Lowering::Never("its legalization is not written", None),
        "nn.attention" | "nn.attention_bias" if given("window_size") => {
            Lowering::Never("its legalization does not support a sliding window (`window_size`)", None)
        }
        "scatter_elements" if !call.str("reduction").is_none_or(|it| SCATTERED.contains(&it)) => {
            Lowering::Never("its legalization does not support this `reduction`", None)
        }
        "nn.adaptive_avg_pool1d" if !given("output_size") => {
            Lowering::Never("its legalization needs `output_size`: the extent of the data keeps it", None)
        }
        "nn.conv1d" | "nn.conv2d" | "nn.conv3d" if version == TvmVersion::V0_25 && symbolic_groups(call) => {
            Lowering::Never("its legalization wants the channels of a convolution in groups as constants", None)
        }
        "nn.conv1d_transpose" | "nn.conv2d_transpose" | "nn.conv3d_transpose"
            if version == TvmVersion::V0_25 && dilates(call) =>
        {
            Lowering::Never("its legalization does not support `dilation`", None)
        }
        "nn.layer_norm" | "nn.group_norm" | "nn.instance_norm" if !normalised(call) => {
            Lowering::Never("its kernel is written for float32 and float16", None)
        }
        "median" | "vision.non_max_suppression" | "vision.all_class_non_max_suppression" => {
            Lowering::HostOnly("its kernel calls a sort that runs on the host")
        }
        "nn.dropout" if version == TvmVersion::V0_25 => Lowering::Never("its legalization leaves it alone", None),
        "bucketize" if version == TvmVersion::V0_25 && !is_integer(call, "input_tensor") => {
            Lowering::Never("its legalization gives the positions the dtype of the input, which is no integer", None)
        }
        "full" => Lowering::Filled("fill_value"),
        "dynamic_strided_slice" => Lowering::DataDependent,
        "grad.nll_loss_backward" | "grad.max_pool2d_backward" | "grad.avg_pool2d_backward" | "grad.take_backward" => {
            Lowering::Kernel
        }
        "call_tir"
        | "call_tir_inplace"
        | "call_tir_with_grad"
        | "call_dps_packed"
        | "call_pure_packed"
        | "call_packed"
        | "call_inplace_packed"
        | "call_builtin_with_ctx"
        | "call_py_func"
        | "invoke_closure"
        | "invoke_pure_closure"
        | "make_closure"
        | "shape_of"
        | "tensor_to_shape"
        | "shape_to_tensor"
        | "null_value"
        | "print"
        | "assert_op"
        | "nonzero"
        | "unique"
        | "to_vdevice"
        | "nn.dropout"
        | "reshape" => Lowering::Builtin,
        name if ["builtin.", "memory.", "vm.", "inspect.", "dist.", "ccl.", "grad."]
            .iter()
            .any(|it| name.starts_with(it)) =>
        {
            Lowering::Builtin
        }
        _ => Lowering::Kernel,
    }
}

/// Whether the operand `data` has, or may have, a dtype that the normalization kernels support.
fn normalised(call: &CallInfo<'_>) -> bool {
    let dtype = call.tensor("data").ok().and_then(|data| data.dtype);
    dtype.is_none_or(|dtype| [DType::FLOAT32, DType::FLOAT16].contains(&dtype))
}

/// Whether a convolution has groups and a channel count that is not constant.
fn symbolic_groups(call: &CallInfo<'_>) -> bool {
    let constant = |operand: &'static str, layout: &str, letter: char| {
        let dims = call.tensor(operand).ok().and_then(|tensor| tensor.shape.dims());
        let at = call.str(layout).and_then(|layout| layout.find(letter));
        dims.zip(at).and_then(|(dims, at)| dims.get(at)).is_none_or(|dim| dim.as_constant().is_some())
    };
    call.int("groups").is_some_and(|groups| groups != 1)
        && !(constant("data", "data_layout", 'C') && constant("weight", "kernel_layout", 'O'))
}

/// Whether a convolution has a dilation other than 1.
fn dilates(call: &CallInfo<'_>) -> bool {
    call.ints("dilation").is_some_and(|dilation| dilation.iter().any(|it| *it != 1))
}

/// Whether the operand has an integer dtype or an unknown dtype.
fn is_integer(call: &CallInfo<'_>, operand: &'static str) -> bool {
    call.tensor(operand).ok().and_then(|tensor| tensor.dtype).is_none_or(DType::is_int)
}

/// Whether an attribute or operand is absent or `None`.
fn is_none(arg: &Arg<'_>) -> bool {
    matches!(arg, Arg::Absent | Arg::Attr(Attr::None))
}

/// Returns the parameter of operator `name` that must be written as `R.shape([…])`, in the call or in a binding of the
/// function, because the kernel is generated for these dims. Returns `None` if any shape value works.
pub fn written_shape(version: TvmVersion, name: &str) -> Option<&'static str> {
    let (TvmVersion::V0_25 | TvmVersion::V0_26 | TvmVersion::V0_27) = version;
    matches!(name, "reshape" | "broadcast_to" | "collapse_sum_to").then_some("shape")
}

/// Returns the parameter of operator `name` that must be written as a tuple, not as a variable that holds a tuple.
pub fn written_tuple(version: TvmVersion, name: &str) -> Option<&'static str> {
    let (TvmVersion::V0_25 | TvmVersion::V0_26 | TvmVersion::V0_27) = version;
    matches!(name, "call_tir" | "call_tir_inplace" | "call_tir_with_grad" | "call_dps_packed").then_some("args")
}

/// Whether a release fuses a call of operator `name` into the kernel of its operand: each result element depends only
/// on the operands' elements at the same position.
pub fn is_elementwise(name: &str) -> bool {
    let tables =
        [crate::tensor::elementwise::OPERATORS, crate::tensor::binary::OPERATORS, crate::tensor::ternary::OPERATORS];
    let activation = ["nn.relu", "nn.gelu", "nn.gelu_tanh", "nn.silu", "nn.leakyrelu", "nn.selu", "nn.softplus"];
    tables.iter().flat_map(|table| table.iter()).any(|schema| schema.name == name)
        || activation.contains(&name)
        || name == "astype"
}

/// Whether the parser of `version` knows `R.name`.
pub fn is_readable(version: TvmVersion, name: &str) -> bool {
    match name {
        "reverse_sequence" => version >= TvmVersion::V0_26,
        _ => !name.starts_with("inspect."),
    }
}

/// A keyword argument that rx accepts and the parser of a release rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedKeyword {
    /// The release prints the keyword but cannot parse it. Without it, the call has the same meaning.
    Printed(&'static str),
    /// Another release has the keyword. Without it, the call has nearly the same meaning.
    Unknown(&'static str),
    /// Another release has the keyword; the second field gives the replacement.
    Foreign(&'static str, &'static str),
}

impl RefusedKeyword {
    /// Returns the keyword.
    pub fn name(self) -> &'static str {
        match self {
            RefusedKeyword::Printed(name) | RefusedKeyword::Unknown(name) | RefusedKeyword::Foreign(name, _) => name,
        }
    }
}

const TIR_VARS: &str =
    "pass the scalars among the arguments, and move the prim_func's parameters for them before its outputs";

/// Returns the keywords of operator `name` that rx accepts and the parser of `version` rejects.
pub fn refused_keywords(version: TvmVersion, name: &str) -> &'static [RefusedKeyword] {
    use RefusedKeyword::{Foreign, Printed, Unknown};
    match name {
        "builtin.alloc_tensor" => &[Printed("ty_args"), Printed("sinfo_args")],
        "grad.take_backward" => &[Printed("mode")],
        "call_tir" | "call_tir_inplace" | "call_tir_with_grad" | "dist.call_tir" | "dist.call_tir_local_view"
            if version >= TvmVersion::V0_26 =>
        {
            &[Foreign("tir_vars", TIR_VARS)]
        }
        "layout_transform" if version >= TvmVersion::V0_26 => {
            &[Unknown("axis_separators"), Unknown("input_axis_separators")]
        }
        "image.affine_grid" if version == TvmVersion::V0_25 => {
            &[Foreign("align_corners", "leave it out where it is `True`, as 0.25 computes it")]
        }
        "vision.multibox_transform_loc" if version <= TvmVersion::V0_26 => {
            &[Foreign("apply_softmax", "apply `R.nn.softmax` to the predictions and leave it out")]
        }
        _ => &[],
    }
}
