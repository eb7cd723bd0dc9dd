//! Arguments of a function: arrays held against the parameters that they are for, and what is drawn for the others.

use crate::arrays::{Given, listed};
use crate::failure::Failure;
use crate::session::Session;
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name, Span};
use rx_execute::indexed_dims;
use rx_execute::inputs::{Drawing, Input, Undrawable};
use rx_ir::{Function, StructInfo};
use rx_tensor::in_files::{accepts, of_file};
use rx_tensor::{Element, Tensor};

/// The arguments, and what symbolic dims are.
pub struct Inputs {
    /// One per parameter.
    pub values: Vec<Input>,
    /// Values of the symbols.
    pub symbols: NameMap<i64>,
}

/// What a function takes an array for: a parameter, or a field of one that is a tuple.
pub struct Leaf<'f> {
    /// The parameter's index.
    pub at: usize,
    /// The name of its array: the parameter's, or `t.0`, `t.1.0` of a field of `t`.
    pub path: String,
    /// Its type.
    pub ty: &'f StructInfo,
}

/// What a function takes arrays for, in order.
pub fn leaves(function: &Function) -> Vec<Leaf<'_>> {
    fn of<'f>(leaf: Leaf<'f>, leaves: &mut Vec<Leaf<'f>>) {
        let Leaf { at, path, ty } = leaf;
        match ty.as_tuple() {
            Some(fields) => {
                let field = |(field, ty)| Leaf { at, path: format!("{path}.{field}"), ty };
                fields.iter().enumerate().map(field).for_each(|leaf| of(leaf, leaves));
            }
            None => leaves.push(Leaf { at, path, ty }),
        }
    }
    let mut leaves = Vec::new();
    let params = function.params.iter().enumerate();
    params.for_each(|(at, (param, ty))| of(Leaf { at, path: param.to_string(), ty }, &mut leaves));
    leaves
}

/// The first `count` arguments of a function: arrays that are given, others drawn as the arguments from `position` on are.
pub fn taken(
    session: &Session,
    function: &Function,
    (count, position): (usize, usize),
    given: &mut Given,
) -> Result<Inputs, Failure> {
    let mut reader = Reader::of(session, function, position);
    let mut taken = Vec::with_capacity(count);
    for (at, (param, ty)) in function.params.iter().enumerate().take(count) {
        taken.push(reader.take((at, param), ty, given)?);
    }
    let limits = indexed_dims(function);
    let (mut missing, mut failure) = (Missing::default(), None);
    let mut values = Vec::with_capacity(taken.len());
    for ((at, taken), (param, ty)) in taken.into_iter().enumerate().zip(&function.params) {
        let indexed = limits.get(at).map_or(&[][..], Vec::as_slice);
        match reader.value((at, param), ty, taken, indexed, &mut missing) {
            Ok(value) => values.extend(value),
            // All dims that are missing are named at once, whatever else is wrong.
            Err(other) => failure = failure.or(Some(other)),
        }
    }
    match (missing.message(), failure) {
        (Some((message, at)), _) => Err(Failure::Input(message, reader.span(at))),
        (None, Some(failure)) => Err(failure),
        (None, None) => Ok(Inputs { values, symbols: reader.symbols }),
    }
}

/// What is given for a parameter, or for a field of one.
enum Taken {
    Array(Tensor),
    Fields(Vec<Taken>),
    Nothing,
}

/// A parameter's index, and its name; of a field of a tuple the name is that of its array.
type Place<'p> = (usize, &'p str);

/// Dims without values, and the parameters that have them.
#[derive(Default)]
struct Missing {
    dims: Vec<Dim>,
    symbols: Vec<Name>,
    params: Vec<String>,
    first: usize,
}

impl Missing {
    fn add(&mut self, (at, path): Place<'_>, dims: Vec<Dim>) {
        if self.params.is_empty() {
            self.first = at;
        }
        self.params.push(path.to_owned());
        for dim in dims {
            dim.for_each_symbol(&mut |symbol| {
                if !self.symbols.contains(&symbol) {
                    self.symbols.push(symbol);
                }
            });
            if !self.dims.contains(&dim) {
                self.dims.push(dim);
            }
        }
    }

    /// What is to be said of them, and the first parameter that has one. The editor reads the flags.
    fn message(&self) -> Option<(String, usize)> {
        if self.params.is_empty() {
            return None;
        }
        let several = |items: &[String], word: &str| match items {
            [one] => format!("{word} {one}"),
            items => format!("{word}s {}", listed(items, ", ")),
        };
        let dims: Vec<String> = self.dims.iter().map(ToString::to_string).collect();
        let params: Vec<String> = self.params.iter().map(|param| format!("`{param}`")).collect();
        let flags: Vec<String> = self.symbols.iter().map(|symbol| format!("--dim {symbol}=…")).collect();
        let (are, arrays) = (
            if dims.len() == 1 { "is" } else { "are" },
            if params.len() == 1 { "the parameter an array" } else { "the parameters arrays" },
        );
        let message = format!(
            "the {} of {} {are} not known: say {}, or give {arrays}",
            several(&dims, "dim"),
            several(&params, "parameter"),
            flags.join(" ")
        );
        Some((message, self.first))
    }
}

/// Reads and draws the arguments of a function.
pub struct Reader<'s> {
    session: &'s Session,
    function: &'s Function,
    symbols: NameMap<i64>,
    seed: u64,
    /// The position of the first argument among those that are drawn.
    position: usize,
}

impl<'s> Reader<'s> {
    /// One that knows the dims that were said.
    pub fn of(session: &'s Session, function: &'s Function, position: usize) -> Reader<'s> {
        let dims = session.choices.dims.iter().map(|(symbol, value)| (name(symbol), *value));
        Reader { session, function, symbols: dims.collect(), seed: session.choices.seed, position }
    }

    fn span(&self, param: usize) -> Option<Span> {
        self.session.workspace.param_span(self.session.module, self.function.name, param)
    }

    /// The array for a parameter, or those for its fields, each of which it fits.
    fn take(&mut self, place: Place<'_>, ty: &StructInfo, given: &mut Given) -> Result<Taken, Failure> {
        let (at, path) = place;
        let array = given.take(path);
        if let (None, Some(fields)) = (&array, ty.as_tuple()) {
            let mut taken = Vec::with_capacity(fields.len());
            for (field, ty) in fields.iter().enumerate() {
                taken.push(self.take((at, &format!("{path}.{field}")), ty, given)?);
            }
            return Ok(Taken::Fields(taken));
        }
        let Some((source, array)) = array else { return Ok(Taken::Nothing) };
        self.fits(place, ty, &array, &source)?;
        Ok(Taken::Array(array))
    }

    /// Checks that an array is what the parameter takes, and gives symbols their values from it.
    pub fn fits(
        &mut self,
        (at, path): Place<'_>,
        ty: &StructInfo,
        array: &Tensor,
        source: &str,
    ) -> Result<(), Failure> {
        let fault = match ty {
            StructInfo::Object => Ok(()),
            StructInfo::Shape(shape) => shape_of(array).and_then(|extents| {
                let wanted = shape.ndim().filter(|ndim| *ndim != extents.len());
                let dims = shape.dims().unwrap_or_default();
                wanted.map_or(Ok(()), |ndim| Err(format!("it must have {ndim} elements")))?;
                self.bind(dims, &extents, "element")
            }),
            StructInfo::Prim(info) => match info.dtype {
                Some(dtype) if dtype != array.dtype() => Err(format!("the dtype must be {dtype}")),
                _ if array.len() != 1 => Err("it must be one number".to_owned()),
                _ => match (&info.value, array.get(0).and_then(rx_tensor::Scalar::as_int)) {
                    (Some(dim), Some(value)) => self.bind(std::slice::from_ref(dim), &[value], "number"),
                    _ => Ok(()),
                },
            },
            StructInfo::Tuple(fields) => Err(match fields.len() {
                0 => "it has no fields, and takes no array".to_owned(),
                count => format!("give an array for each of its {count} fields: `{path}.0`, …"),
            }),
            ty => match ty.as_tensor() {
                None => Err("it takes no array".to_owned()),
                Some(tensor) => {
                    let (dtype, ndim) = (tensor.dtype, tensor.shape.ndim());
                    match (dtype, ndim) {
                        (Some(dtype), _) if !accepts(dtype, array.dtype()) => {
                            Err(match Element::of(dtype).and_then(Element::in_files) {
                                Some(held) => format!("give its values as {held}"),
                                None => format!("the dtype must be {dtype}"),
                            })
                        }
                        (_, Some(ndim)) if ndim != array.shape().len() => Err(format!("it must have {ndim} dims")),
                        _ => self.bind(tensor.shape.dims().unwrap_or_default(), array.shape(), "axis"),
                    }
                }
            },
        };
        fault.map_err(|what| {
            let comma = if array.shape().len() == 1 { "," } else { "" };
            let shape = array.shape().iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let dtype = array.dtype();
            let is = format!("the array for `{path}` is {dtype} ({shape}{comma}), the parameter is {ty}");
            Failure::Input(format!("{source}: {is}: {what}"), self.span(at))
        })
    }

    /// Gives symbols their values.
    ///
    /// # Errors
    /// A dim that has another value. `unit` is what an extent is of.
    fn bind(&mut self, dims: &[Dim], extents: &[i64], unit: &str) -> Result<(), String> {
        for (at, (dim, extent)) in dims.iter().zip(extents).enumerate() {
            let of = if unit == "number" { "it".to_owned() } else { format!("{unit} {at}") };
            if let Some(symbol) = dim.as_symbol() {
                let known = *self.symbols.entry(symbol).or_insert(*extent);
                if known != *extent {
                    return Err(format!("{of} must be {known}: that is what `{symbol}` is elsewhere"));
                }
            } else if let Some(wanted) = self.drawing().value(dim)
                && wanted != *extent
            {
                return Err(format!("{of} must be {wanted}"));
            }
        }
        Ok(())
    }

    fn drawing(&self) -> Drawing<'_> {
        Drawing { seed: self.seed, symbols: &self.symbols }
    }

    /// An argument, from what is given for it, else from the seed; `None` where dims are missing.
    fn value(
        &self,
        place: Place<'_>,
        ty: &StructInfo,
        taken: Taken,
        indexed: &[Dim],
        missing: &mut Missing,
    ) -> Result<Option<Input>, Failure> {
        let (at, path) = place;
        let fields = match taken {
            Taken::Array(array) => {
                let failed = |why| Failure::Input(format!("the array for `{path}` is no {ty}: {why}"), self.span(at));
                return argument(array, ty).map(Some).map_err(failed);
            }
            Taken::Nothing => return self.drawn(place, ty, indexed, missing),
            Taken::Fields(fields) => fields,
        };
        let types = ty.as_tuple().unwrap_or_default();
        let mut values = Vec::with_capacity(fields.len());
        for (field, (taken, ty)) in fields.into_iter().zip(types).enumerate() {
            values.push(self.value((at, &format!("{path}.{field}")), ty, taken, &[], missing)?);
        }
        Ok(values.into_iter().collect::<Option<Vec<Input>>>().map(Input::Tuple))
    }

    /// An argument from the seed.
    fn drawn(
        &self,
        (at, path): Place<'_>,
        ty: &StructInfo,
        indexed: &[Dim],
        missing: &mut Missing,
    ) -> Result<Option<Input>, Failure> {
        let unknown = self.unknown(ty);
        if !unknown.is_empty() {
            missing.add((at, path), unknown);
            return Ok(None);
        }
        let message = match self.drawing().draw(self.position + at, ty, indexed) {
            Ok(input) => return Ok(Some(input)),
            Err(Undrawable::Negative(dim, value)) => format!("the dim {dim} of parameter `{path}` would be {value}"),
            Err(why) => format!("the parameter `{path}` is {ty}: {why}{}", advice(path, ty)),
        };
        Err(Failure::Input(message, self.span(at)))
    }

    /// The dims of a tensor or a shape that have no value.
    fn unknown(&self, ty: &StructInfo) -> Vec<Dim> {
        let dims = match ty {
            StructInfo::Shape(shape) => shape.dims(),
            // Where the dtype is not known either, only an array helps.
            ty => ty.as_tensor().filter(|tensor| tensor.dtype.is_some()).and_then(|tensor| tensor.shape.dims()),
        };
        let is_open = |dim: &&Dim| self.drawing().value(dim).is_none() && !dim.is_error();
        dims.unwrap_or_default().iter().filter(is_open).cloned().collect()
    }
}

/// How a parameter of this type is given.
fn advice(path: &str, ty: &StructInfo) -> String {
    let give = format!("; give it with --input {path}=FILE.npy");
    match ty {
        StructInfo::Shape(shape) => match shape.ndim() {
            Some(ndim) => format!("{give}, {ndim} integers (int64)"),
            None => format!("{give}, a vector of integers (int64)"),
        },
        StructInfo::Tensor(tensor) if tensor.dtype.is_some_and(|dtype| Element::of(dtype).is_none()) => String::new(),
        StructInfo::Tensor(_) | StructInfo::DTensor(_) | StructInfo::Prim(_) | StructInfo::Object => give,
        _ => String::new(),
    }
}

/// The extents that a vector of integers is.
fn shape_of(array: &Tensor) -> Result<Vec<i64>, String> {
    if array.shape().len() != 1 || array.element().is_float() || array.dtype() == DType::BOOL {
        return Err("it must be a vector of integers (int64), one for each dim".to_owned());
    }
    let extents: Vec<i64> = (0..array.len()).filter_map(|at| array.get(at)?.as_int()).collect();
    match extents.iter().find(|extent| **extent < 0) {
        Some(extent) => Err(format!("{extent} is no extent")),
        None => Ok(extents),
    }
}

/// An array that fits as an argument of this type.
fn argument(array: Tensor, ty: &StructInfo) -> Result<Input, String> {
    match (ty, array.get(0)) {
        (StructInfo::Prim(_), Some(scalar)) => Ok(Input::Scalar(scalar)),
        (StructInfo::Shape(_), _) => shape_of(&array).map(Input::Shape),
        _ => {
            let wanted = ty.as_tensor().and_then(|tensor| tensor.dtype).unwrap_or(array.dtype());
            let converted = of_file(&array, wanted).map_err(|error| error.to_string())?;
            Ok(Input::Tensor(converted.unwrap_or(array)))
        }
    }
}
