//! Weights of a function that takes them prepared, as `LiftTransformParams` leaves it: the module has `main`, and a
//! function that computes the prepared weights from the raw ones. The given arrays may be raw or prepared. That is
//! given by `--weights` or follows from names and shapes; it is never guessed.

use crate::args::Kind;
use crate::failure::Failure;
use crate::progress;
use crate::report::{Report, Running};
use crate::session::Session;
use rx_base::name::{NameMap, name};
use rx_base::{Dim, Name};
use rx_driver::inputs::Input;
use rx_ir::function::RAW_ENTRY;
use rx_ir::{BindingKind, ExprKind, Function, StructInfo};
use rx_lower::Program;
use rx_runtime::cpu::Cpu;
use rx_runtime::{Backend, Executor, Output, RunError, Value};
use rx_tensor::Tensor;
use std::time::Instant;

/// The function that prepares the weights of another function.
pub struct Preparation {
    /// The number of parameters of the other function that are not weights.
    pub first: usize,
    /// The preparing function, with its tuple parameter replaced by one parameter per field. A field is named after the
    /// variable that the function binds it to.
    pub raw: Function,
}

impl Preparation {
    /// Finds the function that prepares the weights of `function`: `…_transform_params` or `transform_params` with
    /// matching types.
    pub fn of(session: &Session, function: &Function) -> Option<Preparation> {
        if function.is_stated(RAW_ENTRY) {
            return None;
        }
        let first = usize::try_from(function.num_input?).ok()?;
        let own = function.name;
        let names = [format!("{own}_transform_params"), "transform_params".to_owned()];
        names.iter().filter(|known| **known != own.as_str()).find_map(|known| {
            let transform = session.function(name(known))?;
            let [(param, StructInfo::Tuple(fields))] = &transform.params[..] else { return None };
            let gives = transform.ret.as_tuple()?;
            let takes = function.params.get(first..)?;
            let fits =
                gives.len() == takes.len() && takes.iter().zip(gives).all(|((_, takes), gives)| is_like(takes, gives));
            if !fits {
                return None;
            }
            let params = fields.iter().enumerate().map(|(at, ty)| (field_name(&transform, *param, at), ty.clone()));
            let params = params.collect();
            Some(Preparation { first, raw: Function { params, ..Function::clone(&transform) } })
        })
    }

    /// Whether the arrays of these names are raw weights.
    ///
    /// # Errors
    /// If they could be either, or are a mixture, and `--weights` does not say which.
    pub fn is_raw(
        &self,
        function: &Function,
        said: Option<Kind>,
        array: &dyn Fn(Name) -> Option<(Vec<i64>, rx_base::DType)>,
    ) -> Result<bool, Failure> {
        if let Some(said) = said {
            return Ok(said == Kind::Raw);
        }
        let prepared = function.params.get(self.first..).unwrap_or_default();
        let given = |params: &[(Name, StructInfo)]| -> Vec<Name> {
            params.iter().map(|(param, _)| *param).filter(|param| array(*param).is_some()).collect()
        };
        let (as_raw, as_prepared) = (given(&self.raw.params), given(prepared));
        let only_raw = as_raw.iter().find(|param| !as_prepared.contains(param));
        let only_prepared = as_prepared.iter().find(|param| !as_raw.contains(param));
        let (own, transform) = (function.name, self.raw.name);
        match (only_raw, only_prepared) {
            (Some(raw), Some(done)) => {
                let which = format!("`{raw}` is a raw weight, `{done}` one that `{transform}` has prepared");
                Err(undecided(&format!("{which}: `{own}` takes the one or the other")))
            }
            (Some(_), None) => Ok(true),
            (None, Some(_)) => Ok(false),
            // No given array is a weight: the weights are drawn for the function that is called.
            (None, None) if as_raw.is_empty() => Ok(false),
            (None, None) => match (fit(&self.raw.params, array), fit(prepared, array)) {
                (true, false) => Ok(true),
                (false, true) => Ok(false),
                _ => {
                    let names: Vec<String> = as_raw.iter().map(|param| format!("`{param}`")).collect();
                    let names = names.join(", ");
                    Err(undecided(&format!("{names} may be raw weights, or results of `{transform}`")))
                }
            },
        }
    }
}

fn undecided(why: &str) -> Failure {
    Failure::usage(format!("{why}; say --weights raw or --weights prepared"))
}

/// Whether one type may be equal to the other: dtype and rank agree, or both are the same kind of type.
fn is_like(takes: &StructInfo, gives: &StructInfo) -> bool {
    match (takes.as_tensor(), gives.as_tensor()) {
        (Some(takes), Some(gives)) => takes.dtype == gives.dtype && takes.shape.ndim() == gives.shape.ndim(),
        (None, None) => std::mem::discriminant(takes) == std::mem::discriminant(gives),
        _ => false,
    }
}

/// Whether the given arrays have the shapes and dtypes of these parameters, with consistent values of symbolic dims.
fn fit(params: &[(Name, StructInfo)], array: &dyn Fn(Name) -> Option<(Vec<i64>, rx_base::DType)>) -> bool {
    let mut dims: NameMap<i64> = NameMap::default();
    params.iter().all(|(param, ty)| {
        let (Some((shape, dtype)), Some(tensor)) = (array(*param), ty.as_tensor()) else { return true };
        let extents = tensor.shape.dims();
        tensor.dtype.is_none_or(|own| own == dtype)
            && tensor.shape.ndim().is_none_or(|ndim| ndim == shape.len())
            && extents
                .is_none_or(|extents| extents.iter().zip(&shape).all(|(dim, extent)| same(dim, *extent, &mut dims)))
    })
}

fn same(dim: &Dim, extent: i64, dims: &mut NameMap<i64>) -> bool {
    match dim.as_symbol() {
        Some(symbol) => *dims.entry(symbol).or_insert(extent) == extent,
        None => {
            let known = dim.substitute(&|symbol| dims.get(&symbol).copied().map(Dim::constant)).as_constant();
            known.is_none_or(|known| known == extent)
        }
    }
}

/// Returns the name of a tuple's field: the variable that is bound to it, otherwise `tuple.index`. For example, if the
/// body has `w = params[0]` and does not bind field 1, the names are `w` and `params.1`.
fn field_name(transform: &Function, tuple: Name, at: usize) -> Name {
    let bound = transform.body.bindings.iter().find_map(|binding| match &binding.kind {
        BindingKind::Value { variable, value, .. } => match &value.kind {
            ExprKind::TupleGet(inner, field) if *field == at && inner.as_var() == Some(tuple) => Some(*variable),
            _ => None,
        },
        _ => None,
    });
    bound.unwrap_or_else(|| name(&format!("{tuple}.{at}")))
}

/// Computes the prepared weights on the CPU, one value per parameter that takes one.
///
/// # Errors
/// If the preparing function cannot be lowered or built, or fails.
pub fn prepared(
    session: &Session,
    preparation: &Preparation,
    raw: Vec<Input>,
    symbols: &NameMap<i64>,
    report: &mut Report,
) -> Result<Vec<Input>, Failure> {
    let transform = preparation.raw.name;
    let program = session.lower(transform, &rx_build::Device::Cpu)?;
    let constants = crate::constants::of(session, &program)?;
    let start = Instant::now();
    let built = Executor::new(program.clone(), Cpu::default(), &constants, &mut |stage| {
        report.building(stage.done, stage.total, start.elapsed());
    });
    report.quiet();
    let mut executor = built.map_err(|error| crate::execute::build_failure(session, &error))?;
    executor.on_print(report.printer());
    let count = raw.len();
    let result = run(&mut executor, &program, Input::Tuple(raw), symbols, report);
    let result = result.map_err(|error| crate::execute::run_failure(session, &error))?;
    report.remark(&format!("`{transform}` prepared {count} weight{}", if count == 1 { "" } else { "s" }));
    let Output::Tuple(fields) = result else {
        return Err(Failure::usage(format!("`{transform}` gives no tuple")));
    };
    fields.into_iter().map(|field| input(field, transform)).collect()
}

fn run<B: Backend>(
    executor: &mut Executor<B>,
    program: &Program,
    weights: Input,
    symbols: &NameMap<i64>,
    report: &mut Report,
) -> Result<Output, RunError> {
    let weights: Value<B::Memory> = weights.give(executor)?;
    let result = progress::run(executor, program, vec![weights], symbols, (Running::Weights, None), report)?;
    executor.download(&result)
}

/// Converts a result of the preparing function to an argument.
fn input(value: Output, transform: Name) -> Result<Input, Failure> {
    Ok(match value {
        Output::Tensor(tensor) => Input::Tensor(tensor),
        Output::Shape(dims) => Input::Shape(dims),
        Output::Scalar(scalar) => Input::Scalar(scalar),
        Output::Tuple(fields) => {
            Input::Tuple(fields.into_iter().map(|field| input(field, transform)).collect::<Result<_, _>>()?)
        }
        Output::String(_) | Output::Null | Output::Function(_) => {
            return Err(Failure::usage(format!("`{transform}` returns a value that cannot be a weight")));
        }
    })
}

/// Returns the shape and the dtype of a tensor.
pub fn described(tensor: &Tensor) -> (Vec<i64>, rx_base::DType) {
    (tensor.shape().to_vec(), tensor.dtype())
}
