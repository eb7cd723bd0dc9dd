//! The entry's arguments: from files, else drawn from the seed.

use crate::args::Args;
use crate::arrays::{Given, arrays, listed};
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use crate::weights::{self, Preparation};
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name, Span};
use rx_execute::indexed_dims;
use rx_execute::inputs::{Drawing, Input, Undrawable};
use rx_ir::{Function, StructInfo};
use rx_tensor::{Tensor, TensorError};

/// The arguments, and what symbolic dims are.
pub struct Inputs {
    /// One per parameter.
    pub values: Vec<Input>,
    /// Values of the symbols.
    pub symbols: NameMap<i64>,
}

/// Reads and draws the arguments of `function`. Raw weights are prepared where the module has a function that does.
pub fn inputs(session: &Session, function: &Function, args: &Args, report: &mut Report) -> Result<Inputs, Failure> {
    let preparation = Preparation::of(session, function);
    let mut given = arrays(&session.choices, function, preparation.as_ref(), report)?;
    let raw = match &preparation {
        Some(preparation) => {
            let array = |param: Name| given.find(&param).map(weights::described);
            preparation.is_raw(function, args.kind_of_weights(), &array)?
        }
        None if args.kind_of_weights().is_some() => {
            let function = function.name;
            let what = format!("--weights: no function of the module prepares the weights of `{function}`");
            return Err(Failure::usage(what));
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
    let mut inputs = taken(session, function, (own, 0), &mut given)?;
    let weights = match &preparation {
        Some(preparation) => {
            let raw = &preparation.raw;
            // Drawn as they would be for the function that prepared its weights itself.
            Some(taken(session, raw, (raw.params.len(), preparation.first), &mut given)?)
        }
        None => None,
    };
    if let Some(unused) = given.unused(args) {
        return Err(Failure::usage(unused));
    }
    if let (Some(preparation), Some(weights)) = (&preparation, weights) {
        let prepared = weights::prepared(session, preparation, weights.values, &weights.symbols, report)?;
        inputs.values.extend(prepared);
    }
    Ok(inputs)
}

/// The first `count` arguments of a function: arrays that are given, others drawn as the arguments from `position` on are.
fn taken(
    session: &Session,
    function: &Function,
    (count, position): (usize, usize),
    given: &mut Given,
) -> Result<Inputs, Failure> {
    let mut inputs = Reader::of(session, function, position);
    let mut taken: Vec<Option<Tensor>> = Vec::with_capacity(count);
    for (at, (param, ty)) in function.params.iter().enumerate().take(count) {
        let array = given.take(param);
        if let Some((source, array)) = &array {
            inputs.fits(at, ty, array, source)?;
        }
        taken.push(array.map(|(_, array)| array));
    }
    let limits = indexed_dims(function);
    let mut values = Vec::with_capacity(taken.len());
    for ((at, array), (_, ty)) in taken.into_iter().enumerate().zip(&function.params) {
        values.push(match array {
            Some(array) => match (ty, array.get(0)) {
                (StructInfo::Prim(_), Some(scalar)) => Input::Scalar(scalar),
                _ => Input::Tensor(converted(array, ty)?),
            },
            None => inputs.draw(at, ty, limits.get(at).map_or(&[][..], Vec::as_slice))?,
        });
    }
    Ok(Inputs { values, symbols: inputs.symbols })
}

/// Holds the weights of `function`, its parameters from `first` on, against the arrays that there are: every one must
/// have an array of its type, after conversion where that is asked for.
///
/// # Errors
/// All that are missing or of another type, in one.
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
    for (at, (param, ty)) in function.params.iter().enumerate() {
        let Some((key, (source, array))) = given.get_mut(param) else {
            match at >= first {
                true => wrong.push(format!("`{param}`, {ty}, is missing")),
                false => drawn.push(format!("`{param}`")),
            }
            continue;
        };
        if let Some(dtype) = ty.as_tensor().and_then(|tensor| tensor.dtype)
            && args.convert_weights
            && !accepts(dtype, array.dtype())
        {
            let failed = |error: TensorError| Failure::usage(format!("{source}: `{key}`: {error}"));
            *array = cast(array, dtype).map_err(failed)?;
        }
        if let Err(Failure::Input(message, _)) = reader.fits(at, ty, array, source) {
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

/// The elements as another dtype has them: integers wrap, floats round.
fn cast(array: &Tensor, dtype: DType) -> Result<Tensor, TensorError> {
    let mut cast = Tensor::zeros(dtype, array.shape())?;
    for at in 0..array.len() {
        if let Some(value) = array.get(at) {
            cast.set(at, value);
        }
    }
    Ok(cast)
}

struct Reader<'s> {
    session: &'s Session,
    function: &'s Function,
    symbols: NameMap<i64>,
    seed: u64,
    /// The position of the first argument among those that are drawn.
    position: usize,
}

impl<'s> Reader<'s> {
    /// One that knows the dims that were said.
    fn of(session: &'s Session, function: &'s Function, position: usize) -> Reader<'s> {
        let dims = session.choices.dims.iter().map(|(symbol, value)| (name(symbol), *value));
        Reader { session, function, symbols: dims.collect(), seed: session.choices.seed, position }
    }

    fn span(&self, param: usize) -> Option<Span> {
        self.session.workspace.param_span(self.session.file, self.function.name, param)
    }

    /// Checks that an array is what the parameter takes, and gives symbols their values from it.
    fn fits(&mut self, at: usize, ty: &StructInfo, array: &Tensor, source: &str) -> Result<(), Failure> {
        let param = self.function.params[at].0;
        let wrong = |what: String| {
            let comma = if array.shape().len() == 1 { "," } else { "" };
            let shape = array.shape().iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let message = format!(
                "{source}: the array for `{param}` is {} ({shape}{comma}), the parameter is {ty}: {what}",
                array.dtype()
            );
            Err(Failure::Input(message, self.session.workspace.param_span(self.session.file, self.function.name, at)))
        };
        let tensor = match ty {
            StructInfo::Object => return Ok(()),
            StructInfo::Prim(info) => {
                return match info.dtype {
                    Some(dtype) if dtype != array.dtype() => wrong(format!("the dtype must be {dtype}")),
                    _ if array.len() != 1 => wrong("it must be one number".to_owned()),
                    _ => Ok(()),
                };
            }
            ty => match ty.as_tensor() {
                Some(tensor) => tensor,
                None => return wrong("it takes no array".to_owned()),
            },
        };
        if let Some(dtype) = tensor.dtype
            && !accepts(dtype, array.dtype())
        {
            return wrong(format!("the dtype must be {dtype}"));
        }
        if let Some(ndim) = tensor.shape.ndim()
            && ndim != array.shape().len()
        {
            return wrong(format!("it must have {ndim} dims"));
        }
        let Some(dims) = tensor.shape.dims() else { return Ok(()) };
        for (axis, (dim, extent)) in dims.iter().zip(array.shape()).enumerate() {
            if let Some(symbol) = dim.as_symbol() {
                let known = *self.symbols.entry(symbol).or_insert(*extent);
                if known != *extent {
                    return wrong(format!("axis {axis} must be {known}: that is what `{symbol}` is elsewhere"));
                }
            } else if let Some(wanted) = self.value(dim)
                && wanted != *extent
            {
                return wrong(format!("axis {axis} must be {wanted}"));
            }
        }
        Ok(())
    }

    fn drawing(&self) -> Drawing<'_> {
        Drawing { seed: self.seed, symbols: &self.symbols }
    }

    fn value(&self, dim: &Dim) -> Option<i64> {
        self.drawing().value(dim)
    }

    /// An argument from the seed.
    fn draw(&self, at: usize, ty: &StructInfo, indexed: &[Dim]) -> Result<Input, Failure> {
        let param = self.function.params[at].0;
        let message = match self.drawing().draw(self.position + at, ty, indexed) {
            Ok(input) => return Ok(input),
            Err(Undrawable::Type(why)) => {
                format!("the parameter `{param}` is {ty}: {why}; give it with --input {param}=FILE.npy")
            }
            Err(Undrawable::Negative(dim, value)) => format!("the dim {dim} of parameter `{param}` would be {value}"),
            Err(Undrawable::Unknown(dim, unknown)) => {
                let flags: Vec<String> = unknown.iter().map(|symbol| format!("--dim {symbol}=…")).collect();
                format!(
                    "the dim {dim} of parameter `{param}` is not known: say {}, or give the parameter an array",
                    flags.join(" ")
                )
            }
        };
        Err(Failure::Input(message, self.span(at)))
    }
}

/// Whether an array of dtype `have` may be passed for `wanted`. Numpy has no bfloat16, which files keep as its bits.
fn accepts(wanted: DType, have: DType) -> bool {
    wanted == have || (wanted == DType::BFLOAT16 && have == DType::UINT16)
}

/// A file's array as a tensor of `wanted`, where it has the bits of one; nothing where it is another array.
///
/// # Errors
/// Where there is no memory for it.
pub(crate) fn of_bits(array: &Tensor, wanted: DType) -> Result<Option<Tensor>, rx_tensor::TensorError> {
    let is_bits = wanted != array.dtype() && accepts(wanted, array.dtype());
    is_bits.then(|| Tensor::from_bytes(wanted, array.shape(), array.bytes())).transpose()
}

/// The array with the parameter's dtype, where that has the same bits.
fn converted(array: Tensor, ty: &StructInfo) -> Result<Tensor, Failure> {
    let wanted = ty.as_tensor().and_then(|tensor| tensor.dtype);
    match wanted {
        Some(wanted) if wanted != array.dtype() => {
            Tensor::from_bytes(wanted, array.shape(), array.bytes()).map_err(|error| Failure::usage(error.to_string()))
        }
        _ => Ok(array),
    }
}
