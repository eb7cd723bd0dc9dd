//! `BindParams`: replaces parameters of a function with constants.
//!
//! ```text
//! BindParams("main", {"w": [2.0]})
//! def main(x: R.Tensor((n,), "float32"), w: R.Tensor((n,), "float32")):
//!     y = R.add(x, w)
//! →
//! def main(x: R.Tensor((1,), "float32")):
//!     y = R.add(x, metadata["ir.GenericConst"][0])      # the constant [2.0]
//! ```
//!
//! A tensor of rank 0 becomes a literal, as in `R.const(2.0, "float32")`, if a literal represents it exactly.
//!
//! Requires that no function of the module refers to the function, since its callers may pass other values. Guarantees
//! that symbolic dims that the shape of a tensor determines, such as `n`, are replaced throughout the function.
//!
//! Reference: TVM `src/relax/transform/bind_params.cc`.

mod tensors;

use crate::make::{Changed, follow_result, infer_again};
use crate::pass::{Arguments, Parameter, Pass, PassError, Step};
use crate::substitute::replace_in_sequence;
use crate::{Module, constant, walk};
use rx_base::edit_distance::nearest;
use rx_base::name::{NameMap, name};
use rx_base::{Dim, Name};
use rx_ir::{Constants, Expr, Item, RelaxFunction, StructInfo};
use rx_tensor::Tensor;
use serde_json::{Map, Value};
use std::sync::Arc;

/// The registration of the pass.
pub const PASS: Pass = Pass {
    name: "BindParams",
    parameters: &[
        Parameter { name: "func_name", default: None, doc: "The function to change." },
        Parameter {
            name: "params",
            default: None,
            doc: "Parameters by name, each with its tensor: numbers in lists; {\"__ndarray__\": \"float32\", \"shape\": [2], \
                  \"data\": [1, 2]}, zeros where data is null; {\"file\": \"w.npz\", \"entry\": \"w\"}, of .npz, .npy or .safetensors.",
        },
    ],
    doc: "Replaces parameters of a function by constants.",
    reference: "src/relax/transform/bind_params.cc",
    run,
};

fn run(mut module: Module, arguments: &Arguments) -> Result<Module, PassError> {
    let (Value::String(wanted), Value::Object(params)) = (arguments.get(0), arguments.get(1)) else {
        return Err(mistake("it takes the name of a function, and tensors by the names of its parameters"));
    };
    let wanted = name(wanted);
    if let Some(caller) = module.functions().find(|function| walk::globals(function).contains(&wanted)) {
        let caller = caller.name;
        return Err(mistake(&format!("`{caller}` calls `{wanted}`: its parameters are not the same everywhere")));
    }
    let mut constants = std::mem::take(&mut module.constants);
    let found = module.items.iter_mut().find_map(|item| match item {
        Item::Relax(function) if function.name == wanted => Some(Arc::make_mut(function)),
        _ => None,
    });
    let function = found.ok_or_else(|| mistake(&format!("the module has no Relax function `{wanted}`")))?;
    bind(function, params, &mut constants)?;
    module.constants = constants;
    Ok(module)
}

fn mistake(message: &str) -> PassError {
    PassError(format!("BindParams: {message}"))
}

/// A function, and the tensors that replace its parameters.
pub struct Bound {
    /// The name of the function.
    pub function: Name,
    /// The tensors, by parameter.
    pub tensors: NameMap<Tensor>,
}

/// Returns the tensors that a step of a pipeline binds; `None` if the step is another pass or has malformed arguments,
/// if the module has no such function, if the function has no such parameter, or if a tensor cannot be read.
pub fn bound(module: &Module, step: &Step) -> Option<Bound> {
    let (Value::String(wanted), Value::Object(params)) = (step.arguments.get(0), step.arguments.get(1)) else {
        return None;
    };
    let function =
        module.functions().find(|function| function.name.as_str() == wanted && step.pass.name == PASS.name)?;
    Some(Bound { function: function.name, tensors: tensors_of(function, params).ok()? })
}

/// Reads the given tensors, by parameter.
///
/// # Errors
/// The function has no such parameter, or a tensor cannot be read.
fn tensors_of(function: &RelaxFunction, given: &Map<String, Value>) -> Result<NameMap<Tensor>, PassError> {
    let mut tensors: NameMap<Tensor> = NameMap::default();
    for (param, value) in given {
        let declared = function.params.iter().find(|(known, _)| known.as_str() == param);
        let Some((known, ty)) = declared else {
            let near = nearest(param, function.params.iter().map(|(known, _)| known.as_str()));
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(mistake(&format!("`{}` has no parameter `{param}`{hint}", function.name)));
        };
        let read = tensors::read(value, ty).map_err(|problem| mistake(&format!("`{param}`: {problem}")))?;
        tensors.insert(*known, read);
    }
    Ok(tensors)
}

/// Replaces parameters of a function with constants.
fn bind(function: &mut RelaxFunction, given: &Map<String, Value>, constants: &mut Constants) -> Result<(), PassError> {
    let tensors = tensors_of(function, given)?;
    let dims = settled(function, &tensors)?;
    if !dims.is_empty() {
        super::bind_symbolic_vars::bind(function, &dims);
    }
    let mut values: NameMap<Expr> = NameMap::default();
    let mut changed = Changed::default();
    // The iteration follows the order of the parameters, so that constants are numbered reproducibly.
    for (param, ty) in &function.params {
        let Some(tensor) = tensors.get(param) else { continue };
        let value = constant::expression(tensor, constants);
        if value.ty != *ty {
            changed.insert(*param, value.ty.clone());
        }
        values.insert(*param, value);
    }
    let before = function.body.result.ty.clone();
    infer_again(&mut function.body, &mut changed)?;
    follow_result(function, &before);
    replace_in_sequence(&mut function.body, &values);
    function.params.retain(|(param, _)| !values.contains_key(param));
    Ok(())
}

/// Returns the values of the symbolic dims that the shapes of the tensors determine.
///
/// # Errors
/// A parameter with a tensor is not of a tensor type, a tensor's dtype or shape does not match its parameter, two
/// extents differ that belong to the same symbolic dim, or a dim of such a parameter, for example `n * 2`, has a symbol
/// that no tensor determines.
fn settled(function: &RelaxFunction, tensors: &NameMap<Tensor>) -> Result<NameMap<i64>, PassError> {
    let mut dims: NameMap<i64> = NameMap::default();
    let shapes = |visit: &mut dyn FnMut(Name, &Tensor, &StructInfo) -> Result<(), PassError>| {
        for (param, ty) in &function.params {
            if let Some(tensor) = tensors.get(param) {
                visit(*param, tensor, ty)?;
            }
        }
        Ok(())
    };
    shapes(&mut |param, tensor, ty| {
        let wrong = || mistake(&format!("`{param}` is {ty}, its tensor is {}", described(tensor)));
        let declared = ty.as_tensor().ok_or_else(wrong)?;
        let fits = declared.dtype.is_none_or(|dtype| dtype == tensor.dtype())
            && declared.shape.ndim().is_none_or(|ndim| ndim == tensor.shape().len());
        if !fits {
            return Err(wrong());
        }
        for (dim, extent) in declared.shape.dims().into_iter().flatten().zip(tensor.shape()) {
            if let Some(symbol) = dim.as_symbol()
                && *dims.entry(symbol).or_insert(*extent) != *extent
            {
                return Err(mistake(&format!(
                    "the shape of `{param}` makes `{symbol}` both {} and {extent}",
                    dims[&symbol]
                )));
            }
        }
        Ok(())
    })?;
    let value = |symbol: Name| dims.get(&symbol).map(|value| Dim::constant(*value));
    shapes(&mut |param, tensor, ty| {
        let declared = ty.as_tensor().and_then(|tensor| tensor.shape.dims());
        for (dim, extent) in declared.into_iter().flatten().zip(tensor.shape()) {
            match dim.substitute(&value).as_constant() {
                Some(known) if known == *extent => {}
                _ => {
                    let shape = described(tensor);
                    return Err(mistake(&format!("`{param}` is {ty}, its tensor is {shape}: {dim} is not {extent}")));
                }
            }
        }
        Ok(())
    })?;
    Ok(dims)
}

fn described(tensor: &Tensor) -> String {
    let extents: Vec<String> = tensor.shape().iter().map(i64::to_string).collect();
    let comma = if extents.len() == 1 { "," } else { "" };
    format!("{} ({}{comma})", tensor.dtype(), extents.join(", "))
}
