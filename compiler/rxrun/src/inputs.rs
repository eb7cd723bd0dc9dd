//! The arguments of the function to run: read from files, otherwise drawn from the seed.

use crate::args::Args;
use crate::arguments::{Inputs, Leaf, Reader, leaves, taken};
use crate::arrays::{Given, arrays, listed};
use crate::dims;
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use crate::weights::{self, Preparation};
use rx_base::{DType, Name};
use rx_ir::Function;
use rx_tensor::in_files::has_bits;
use rx_tensor::{Tensor, TensorError};

/// Reads and draws the arguments of `function`. Raw weights are first prepared by the module's function for that.
pub fn inputs(session: &Session, function: &Function, args: &Args, report: &mut Report) -> Result<Inputs, Failure> {
    let preparation = Preparation::of(session, function);
    let mut known = dims::of_function(function);
    known.extend(preparation.iter().flat_map(|preparation| dims::of_function(&preparation.raw)));
    dims::check(args, &known, &format!("`{}`", function.name))?;
    let mut given = arrays(&session.choices, function, preparation.as_ref(), report)?;
    let raw = match &preparation {
        Some(preparation) => {
            let array = |param: Name| given.find(&param).map(weights::described);
            preparation.is_raw(function, args.kind_of_weights(), &array)?
        }
        None if args.kind_of_weights().is_some() => {
            let function = function.name;
            let message = format!("--weights: no function of the module prepares the weights of `{function}`");
            return Err(Failure::usage(message));
        }
        None => false,
    };
    let preparation = preparation.filter(|_| raw);
    if args.weight_files().next().is_some() {
        match &preparation {
            Some(preparation) => complete(&mut given, session, &preparation.raw, 0, args, report)?,
            None => {
                let first = function.num_input.and_then(|count| usize::try_from(count).ok());
                complete(&mut given, session, function, first.unwrap_or(usize::MAX), args, report)?;
            }
        }
    }
    let own = preparation.as_ref().map_or(function.params.len(), |preparation| preparation.first);
    let inputs = taken(session, function, (own, 0), &mut given);
    let weights = preparation.as_ref().map(|Preparation { raw, first }| {
        // Number them as if the function prepared its weights itself, so that the same seed draws the same values.
        taken(session, raw, (raw.params.len(), *first), &mut given)
    });
    let (mut inputs, weights) = match (inputs, weights.transpose()) {
        (Ok(inputs), Ok(weights)) => (inputs, weights),
        (Err(failure), Err(other)) => return Err(failure.with(other)),
        (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
    };
    if let Some(unused) = given.unused(args, function) {
        return Err(Failure::usage(unused));
    }
    if let (Some(preparation), Some(weights)) = (&preparation, weights) {
        let prepared = weights::prepared(session, preparation, weights.values, &weights.symbols, report)?;
        inputs.values.extend(prepared);
    }
    Ok(inputs)
}

/// Checks the given arrays against the weights of `function`, which are its parameters from index `first` on. Every
/// weight must have an array of its type, after conversion if `--convert-weights` is given.
///
/// # Errors
/// Lists all weights that are missing or of another type in one message.
fn complete(
    given: &mut Given,
    session: &Session,
    function: &Function,
    first: usize,
    args: &Args,
    report: &mut Report,
) -> Result<(), Failure> {
    let own = function.name;
    for (file, names) in &given.unused {
        if !names.is_empty() {
            report.remark(&format!("{file}: no parameters of `{own}`, and not read: {}", listed(names, ", ")));
        }
    }
    let mut reader = Reader::of(session, function, 0);
    let (mut wrong, mut drawn) = (Vec::new(), Vec::new());
    for Leaf { at, path, ty } in leaves(function) {
        let Some((key, (source, array))) = given.get_mut(&path) else {
            match at >= first {
                true => wrong.push(format!("`{path}`, {ty}, is missing")),
                false => drawn.push(format!("`{path}`")),
            }
            continue;
        };
        if let Some(dtype) = ty.as_tensor().and_then(|tensor| tensor.dtype)
            && args.convert_weights
            && dtype != array.dtype()
            && !has_bits(dtype, array.dtype())
        {
            let failed = |error: TensorError| Failure::usage(format!("{source}: `{key}`: {error}"));
            *array = cast(array, dtype).map_err(failed)?;
        }
        if let Err(Failure::Input(message, _)) = reader.fits((at, &path), ty, array, source) {
            wrong.push(message);
        }
    }
    if !drawn.is_empty() && first == usize::MAX {
        let why = "the function does not say which of its parameters are weights (`num_input`)";
        report.remark(&format!("drawn from the seed: {}; {why}", listed(&drawn, ", ")));
    }
    match wrong.len() {
        0 => Ok(()),
        1 => Err(Failure::Input(format!("an argument of `{own}` does not fit: {}", wrong.concat()), None)),
        count => {
            let message = format!("{count} arguments of `{own}` do not fit:\n  {}", listed(&wrong, "\n  "));
            Err(Failure::Input(message, None))
        }
    }
}

/// Converts the elements to another dtype: integers wrap, floats are rounded.
fn cast(array: &Tensor, dtype: DType) -> Result<Tensor, TensorError> {
    let mut cast = Tensor::zeros(dtype, array.shape())?;
    for at in 0..array.len() {
        if let Some(value) = array.get(at) {
            cast.set(at, value);
        }
    }
    Ok(cast)
}
