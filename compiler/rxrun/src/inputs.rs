//! The entry's arguments: from files, else drawn from the seed.

use crate::args::Args;
use crate::choices::{Choices, Source};
use crate::failure::Failure;
use crate::report::Report;
use crate::session::Session;
use crate::weights::{self, Preparation};
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name, Span};
use rx_execute::indexed_dims;
use rx_execute::inputs::{Drawing, Input, Undrawable};
use rx_ir::{Function, StructInfo};
use rx_tensor::{FileError, Tensor, npy, npz, safetensors};
use std::collections::HashMap;
use std::path::Path;

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
            preparation.is_raw(function, args.weights, &|param| given.find(&param).map(weights::described))?
        }
        None if args.weights.is_some() => {
            let function = function.name;
            let what = format!("--weights: no function of the module prepares the weights of `{function}`");
            return Err(Failure::usage(what));
        }
        None => false,
    };
    let preparation = preparation.filter(|_| raw);
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
    let mut inputs = Reader { session, function, symbols: NameMap::default(), seed: session.choices.seed, position };
    for (symbol, value) in &session.choices.dims {
        inputs.symbols.insert(name(symbol), *value);
    }
    let mut taken: Vec<Option<Tensor>> = Vec::with_capacity(count);
    for (at, (param, ty)) in function.params.iter().enumerate().take(count) {
        let array = take(given, param);
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

/// Arrays by name, as files have them.
struct Given {
    exact: HashMap<String, (String, Tensor)>,
}

/// A parameter's array, taken out: by its name, else by its name with what no identifier has replaced.
fn take(given: &mut Given, param: &str) -> Option<(String, Tensor)> {
    if let Some(found) = given.exact.remove(param) {
        return Some(found);
    }
    let key = given.exact.keys().find(|key| is_of(key, param))?.clone();
    given.exact.remove(&key)
}

/// Whether an array of this name is for a parameter.
fn is_of(array: &str, param: &str) -> bool {
    array == param || identifier(array) == param
}

/// The name with every character that no identifier has replaced by `_`.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

impl Given {
    /// The array for a parameter.
    fn find(&self, param: &str) -> Option<&Tensor> {
        let exact = self.exact.get(param);
        let array = exact.or_else(|| self.exact.iter().find(|(name, _)| is_of(name, param)).map(|(_, array)| array));
        array.map(|(_, array)| array)
    }

    /// Complains of an array that was named on the command line and is no parameter's.
    fn unused(&self, args: &Args) -> Option<String> {
        let named = args.input.iter().map(|(name, _)| name).find(|name| self.exact.contains_key(*name))?;
        Some(format!("--input {named}: the function has no parameter of this name"))
    }
}

/// Reads the arrays. What `rx.toml` names is meant for every function of its files: what this one does not need is left out,
/// and said to be.
fn arrays(
    choices: &Choices,
    function: &Function,
    preparation: Option<&Preparation>,
    report: &mut Report,
) -> Result<Given, Failure> {
    let weights = preparation.map(|preparation| &preparation.raw.params[..]).unwrap_or_default();
    let has = |name: &str| function.params.iter().chain(weights).any(|(param, _)| is_of(name, param));
    let mut exact = HashMap::new();
    let mut unread = None;
    for (at, source) in choices.arrays.iter().enumerate() {
        let (Source::Many(path) | Source::One(_, path)) = source;
        let (shown, settled) = (path.display().to_string(), at < choices.settled);
        let read = match source {
            Source::Many(path) => many(path),
            Source::One(name, _) if settled && !has(name) => {
                let function = function.name;
                let why = format!("`{name}`, for which rx.toml names it, is no parameter of `{function}`");
                report.remark(&format!("{shown} is not read: {why}"));
                continue;
            }
            Source::One(name, _) if settled && is_given(choices, name) => continue,
            Source::One(name, path) => npy::read_file(path).map(|array| vec![(name.clone(), array)]),
        };
        match read.map_err(|error| format!("{shown}: {error}")) {
            Ok(arrays) => exact.extend(arrays.into_iter().map(|(name, array)| (name, (shown.clone(), array)))),
            // What it holds may stand elsewhere, too.
            Err(why) if settled && matches!(source, Source::Many(_)) => unread = unread.or(Some(why)),
            Err(why) => return Err(Failure::usage(why)),
        }
    }
    let given = |param: &Name| exact.keys().any(|name: &String| is_of(name, param));
    match unread {
        Some(why) if function.params.iter().all(|(param, _)| given(param)) => {
            report.remark(&format!("{why}; nothing of it is needed"));
        }
        Some(why) => return Err(Failure::usage(why)),
        None => {}
    }
    Ok(Given { exact })
}

/// Whether the command line gives the array of this name.
fn is_given(choices: &Choices, name: &str) -> bool {
    choices.arrays.iter().skip(choices.settled).any(|source| matches!(source, Source::One(other, _) if other == name))
}

/// The arrays of a file, without the results that stand beside them.
fn many(path: &Path) -> Result<Vec<(String, Tensor)>, FileError> {
    let is_safetensors = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"));
    let mut arrays = if is_safetensors { safetensors::read(path)? } else { npz::read(path)? };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    arrays.retain(|(name, _)| !name.strip_prefix("out").is_some_and(is_number));
    Ok(arrays)
}

struct Reader<'s> {
    session: &'s Session,
    function: &'s Function,
    symbols: NameMap<i64>,
    seed: u64,
    /// The position of the first argument among those that are drawn.
    position: usize,
}

impl Reader<'_> {
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
