//! Operators that the host computes: those whose result depends on values in a way that loops cannot express (for
//! example `unique`, whose output length depends on the data), those that return a property of a tensor (`inspect.*`,
//! `shape_of`), and those that print or may fail (`print`, `assert_op`).
//!
//! A function takes one value for each parameter of its operator (`Compute::Host` in rx-ops), including the attributes,
//! and returns a value. An error message is a sentence without a full stop. The functions do not access the device and
//! keep no state between calls.

mod boxes;
mod format;
mod show;
mod slices;
mod unique;

use crate::value::Output;
use rx_base::dtype::TypeCode;
use rx_base::{DType, Name};
use rx_tensor::{Scalar, Tensor, TensorError};

/// The result of a host function.
pub(crate) enum Answer {
    /// The value of the operator.
    Value(Output),
    /// A text to be printed by the executor.
    Printed(String),
}

type Pure = fn(&Arguments) -> Result<Output, String>;

const PURE: &[(&str, Pure)] = &[
    ("assert_op", format::assert_op),
    ("dynamic_strided_slice", slices::dynamic_strided_slice),
    ("inspect.tensor_byte_offset", |arguments| arguments.tensor(0).map(|_| integer(0))),
    ("inspect.tensor_dtype_bits", |arguments| {
        let dtype = arguments.tensor(0)?.dtype();
        Ok(integer(if dtype.is_bool() { 8 } else { i64::from(dtype.bits) }))
    }),
    ("inspect.tensor_dtype_code", |arguments| Ok(integer(dlpack_code(arguments.tensor(0)?.dtype())))),
    ("inspect.tensor_dtype_lanes", |arguments| Ok(integer(i64::from(arguments.tensor(0)?.dtype().lanes)))),
    ("inspect.tensor_elem_offset", |arguments| arguments.tensor(0).map(|_| integer(0))),
    ("inspect.tensor_ndim", |arguments| Ok(integer(arguments.tensor(0)?.shape().len() as i64))),
    ("inspect.tensor_shape_i", |arguments| from_axis(arguments).map(|(extent, _)| integer(extent))),
    ("inspect.tensor_stride_i", |arguments| from_axis(arguments).map(|(_, inner)| integer(inner.iter().product()))),
    ("memory.view", slices::memory_view),
    ("nonzero", unique::nonzero),
    ("shape_of", |arguments| Ok(Output::Shape(arguments.tensor(0)?.shape().to_vec()))),
    ("tensor_to_shape", |arguments| integers(arguments.tensor(0)?).map(Output::Shape)),
    ("unique", unique::unique),
    ("vision.all_class_non_max_suppression", boxes::all_class_non_max_suppression),
    ("vision.get_valid_counts", boxes::get_valid_counts),
    ("vision.non_max_suppression", boxes::non_max_suppression),
];

/// Returns the names of all host functions.
pub fn functions() -> impl Iterator<Item = &'static str> {
    PURE.iter().map(|(name, _)| *name).chain(["print"])
}

/// Calls the host function named `function`.
///
/// # Errors
/// If no function has this name, or it cannot be computed for these arguments.
pub(crate) fn call(function: Name, arguments: Vec<Output>) -> Result<Answer, String> {
    let arguments = Arguments(arguments);
    if function.as_str() == "print" {
        return format::print(&arguments).map(Answer::Printed);
    }
    match PURE.iter().find(|(name, _)| *name == function.as_str()) {
        Some((_, compute)) => compute(&arguments).map(Answer::Value),
        None => Err("the runtime has no function of this name".to_owned()),
    }
}

/// The arguments of a call, in the order of the operator's parameters.
pub(crate) struct Arguments(Vec<Output>);

impl Arguments {
    fn at(&self, at: usize) -> &Output {
        self.0.get(at).unwrap_or(&Output::Null)
    }

    fn tensor(&self, at: usize) -> Result<&Tensor, String> {
        match self.at(at) {
            Output::Tensor(tensor) => Ok(tensor),
            _ => Err(format!("argument {at} is no tensor")),
        }
    }

    /// Returns an integer argument: a scalar, or a tensor of one element. Returns `None` for anything else, such as an
    /// omitted argument or a float.
    fn int(&self, at: usize) -> Option<i64> {
        match self.at(at) {
            Output::Scalar(scalar) => scalar.as_int(),
            Output::Tensor(tensor) if tensor.len() == 1 => tensor.get(0)?.as_int(),
            _ => None,
        }
    }

    fn float(&self, at: usize) -> Option<f64> {
        match self.at(at) {
            Output::Scalar(scalar) => Some(scalar.as_float()),
            Output::Tensor(tensor) if tensor.len() == 1 => tensor.get(0).map(Scalar::as_float),
            _ => None,
        }
    }

    fn flag(&self, at: usize) -> bool {
        self.int(at).is_some_and(|value| value != 0)
    }

    fn text(&self, at: usize) -> &str {
        match self.at(at) {
            Output::String(text) => text,
            _ => "",
        }
    }
}

fn integer(value: i64) -> Output {
    Output::Scalar(Scalar::Int(value))
}

/// Converts a tensor error to a message.
fn said(error: TensorError) -> String {
    error.to_string()
}

/// Returns the elements of an integer tensor.
fn integers(tensor: &Tensor) -> Result<Vec<i64>, String> {
    let element = |at| tensor.get(at).and_then(Scalar::as_int);
    (0..tensor.len()).map(element).collect::<Option<_>>().ok_or_else(|| "a tensor of integers is needed".to_owned())
}

/// Returns the extent of the axis that an `inspect` operator refers to, and the extents of the axes after it.
fn from_axis(arguments: &Arguments) -> Result<(i64, &[i64]), String> {
    let shape = arguments.tensor(0)?.shape();
    let axis = arguments.int(1).and_then(|axis| usize::try_from(axis).ok());
    let found = axis.and_then(|axis| shape.get(axis..)?.split_first());
    found
        .map(|(extent, inner)| (*extent, inner))
        .ok_or_else(|| format!("the axis is not one of the tensor's {}", shape.len()))
}

/// Returns the code of a dtype in DLPack's `DLDataTypeCode`.
fn dlpack_code(dtype: DType) -> i64 {
    match dtype.code {
        TypeCode::Int => 0,
        TypeCode::UInt => 1,
        TypeCode::Float => 2,
        TypeCode::Handle => 3,
        TypeCode::BFloat => 4,
        TypeCode::Bool => 6,
        TypeCode::Float8E3M4 => 7,
        TypeCode::Float8E4M3 => 8,
        TypeCode::Float8E4M3B11Fnuz => 9,
        TypeCode::Float8E4M3Fn => 10,
        TypeCode::Float8E4M3Fnuz => 11,
        TypeCode::Float8E5M2 => 12,
        TypeCode::Float8E5M2Fnuz => 13,
        TypeCode::Float8E8M0Fnu => 14,
        TypeCode::Float6E2M3Fn => 15,
        TypeCode::Float6E3M2Fn => 16,
        TypeCode::Float4E2M1Fn => 17,
        // The first code that TVM reserves for dtypes registered at run time.
        TypeCode::Custom => 129,
    }
}
