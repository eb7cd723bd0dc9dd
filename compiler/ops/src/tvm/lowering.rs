//! How the default pipelines of a release lower an operator.

use crate::call::{Arg, CallInfo};
use rx_base::{DType, TvmVersion};
use rx_ir::Attr;

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// A kernel is generated, from the shapes and dtypes of operands and result.
    Kernel,
    /// A kernel is generated from the shapes of the operands; that of the result is computed when the program runs.
    DataDependent,
    /// A kernel is generated from the dtype of the result and the rank of its shape; of the operand called so, all must be known,
    /// unless it is a constant.
    Filled(&'static str),
    /// A kernel is generated, which the CPU runs and a CUDA kernel cannot: why.
    HostOnly(&'static str),
    /// A run-time function does it, whatever is known.
    Builtin,
    /// Nothing: why, and what to write instead, if it can be said in a few words.
    Never(&'static str, Option<Instead>),
}

/// What to write instead of a call that is not lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instead {
    /// The operand passed for this parameter.
    Operand(&'static str),
    /// `R.outer(R.inner(first, second), third)`.
    Composed {
        /// Applied to the inner call and the third operand.
        outer: &'static str,
        /// Applied to the first two operands.
        inner: &'static str,
    },
}

/// What `R.scatter_elements` may do with several updates of an element (python/tvm/topi/scatter_elements.py).
const SCATTERED: &[&str] = &["update", "add", "mul", "mean", "min", "max"];

const NO_KERNEL: &str = "it has no legalization, and the code generator does not know it";

/// How `version` lowers a call.
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
            Lowering::Never("its legalization knows no sliding window (`window_size`)", None)
        }
        "scatter_elements" if !call.str("reduction").is_none_or(|it| SCATTERED.contains(&it)) => {
            Lowering::Never("its legalization knows no such `reduction`", None)
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
            Lowering::Never("its legalization knows no `dilation`", None)
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

/// Whether the operand called `data` may have a dtype that kernels of normalisations are written for.
fn normalised(call: &CallInfo<'_>) -> bool {
    let dtype = call.tensor("data").ok().and_then(|data| data.dtype);
    dtype.is_none_or(|dtype| [DType::FLOAT32, DType::FLOAT16].contains(&dtype))
}

/// Whether a convolution is in groups, and its channels are not all constants.
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

/// Whether the operand called so may be of integers.
fn is_integer(call: &CallInfo<'_>, operand: &'static str) -> bool {
    call.tensor(operand).ok().and_then(|tensor| tensor.dtype).is_none_or(DType::is_int)
}

/// Whether an attribute or operand is left out or `None`.
fn is_none(arg: &Arg<'_>) -> bool {
    matches!(arg, Arg::Absent | Arg::Attr(Attr::None))
}

/// The operand of the operator called `name` that must be written as `R.shape([…])`, in the call or in a binding of the function: a
/// kernel is generated for these dims. Where a shape is not known, no kernel is asked for.
pub fn written_shape(version: TvmVersion, name: &str) -> Option<&'static str> {
    let (TvmVersion::V0_25 | TvmVersion::V0_26 | TvmVersion::V0_27) = version;
    matches!(name, "reshape" | "broadcast_to" | "collapse_sum_to").then_some("shape")
}

/// The operand of the operator called `name` that must be written as a tuple, not as a variable that holds one.
pub fn written_tuple(version: TvmVersion, name: &str) -> Option<&'static str> {
    let (TvmVersion::V0_25 | TvmVersion::V0_26 | TvmVersion::V0_27) = version;
    matches!(name, "call_tir" | "call_tir_inplace" | "call_tir_with_grad" | "call_dps_packed").then_some("args")
}

/// Whether a release joins a call of the operator called `name` to the kernel that made its operand: each element of the
/// result is made of the operand's elements at one place.
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

/// A keyword of an operator that rx reads and the parser of a release does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedKeyword {
    /// The release prints it; without it the call means the same.
    Printed(&'static str),
    /// Another release has it; without it the call means nearly the same.
    Unknown(&'static str),
    /// Another release has it: what to write instead.
    Foreign(&'static str, &'static str),
}

impl RefusedKeyword {
    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            RefusedKeyword::Printed(name) | RefusedKeyword::Unknown(name) | RefusedKeyword::Foreign(name, _) => name,
        }
    }
}

const TIR_VARS: &str =
    "pass the scalars among the arguments, and move the prim_func's parameters for them in front of its outputs";

/// Keywords of the operator called `name` that rx reads and the parser of `version` does not take.
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
