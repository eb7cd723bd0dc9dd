//! Arguments of a function: matches the given arrays with its parameters, checks them, and draws the other arguments
//! from the seed.

use crate::arrays::{Given, listed};
use crate::failure::{Failure, Missing};
use crate::session::Session;
use rx_base::name::{NameMap, name};
use rx_base::{DType, Dim, Name, Span};
use rx_driver::indexed_dims;
use rx_driver::inputs::{Drawing, Input, Undrawable};
use rx_ir::{Function, StructInfo};
use rx_tensor::in_files::{accepts, of_file};
use rx_tensor::{Element, Tensor};

/// The arguments of a function and the values of its symbolic dims.
pub struct Inputs {
    /// The arguments, one per parameter.
    pub values: Vec<Input>,
    /// Values of the symbolic dims, by name.
    pub symbols: NameMap<i64>,
}

/// A place that one array can fill: a parameter, or a field of a parameter that is a tuple.
pub struct Leaf<'f> {
    /// The index of the parameter.
    pub at: usize,
    /// The name of the array: the parameter's name, with the indices of tuple fields, for example `t.1.0`.
    pub path: String,
    /// The type of the parameter or field.
    pub ty: &'f StructInfo,
}

/// Returns all parameters of a function in order, with tuples expanded into their fields. For example, a parameter `t`
/// of type `R.Tuple(A, R.Tuple(B, C))`, where `A`, `B` and `C` are tensors, gives `t.0`, `t.1.0` and `t.1.1`.
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

/// Returns the first `count` arguments of a function: the given arrays, and the others drawn at random. The argument at
/// index `i` is drawn as number `position + i` of the random sequence.
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
    let (mut unknown, mut failure) = (Unknown::default(), None);
    let mut values = Vec::with_capacity(taken.len());
    for ((at, taken), (param, ty)) in taken.into_iter().enumerate().zip(&function.params) {
        let indexed = limits.get(at).map_or(&[][..], Vec::as_slice);
        match reader.value((at, param), ty, taken, indexed, &mut unknown) {
            Ok(value) => values.extend(value),
            // Report all missing values in one message, even where another argument is wrong too.
            Err(other) => failure = failure.or(Some(other)),
        }
    }
    match (unknown.message(), failure) {
        (Some(message), _) => Err(Failure::Missing(message, reader.span(unknown.first), unknown.missing())),
        (None, Some(failure)) => Err(failure),
        (None, None) => Ok(Inputs { values, symbols: reader.symbols }),
    }
}

/// The arrays given for a parameter or for a field of one.
enum Taken {
    Array(Tensor),
    Fields(Vec<Taken>),
    Nothing,
}

/// The index of a parameter, and the name of its array; for a field of a tuple the name includes the field's index, as
/// in [`Leaf::path`].
type Place<'p> = (usize, &'p str);

/// Symbolic dims without a value, the parameters whose shapes need them, and the parameters that need an array for
/// another reason.
#[derive(Default)]
struct Unknown {
    dims: Vec<Dim>,
    symbols: Vec<Name>,
    params: Vec<String>,
    /// Parameters that need an array, each with its error message.
    inputs: Vec<(String, String)>,
    /// The index of the first of all these parameters.
    first: usize,
}

impl Unknown {
    fn begin(&mut self, at: usize) {
        if self.params.is_empty() && self.inputs.is_empty() {
            self.first = at;
        }
    }

    fn add_input(&mut self, (at, path): Place<'_>, message: String) {
        self.begin(at);
        self.inputs.push((path.to_owned(), message));
    }

    fn add_dims(&mut self, (at, path): Place<'_>, dims: Vec<Dim>) {
        self.begin(at);
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

    /// The missing values, as the user gives them.
    fn missing(&self) -> Missing {
        Missing {
            dims: self.symbols.iter().map(ToString::to_string).collect(),
            inputs: self.inputs.iter().map(|(path, _)| path.clone()).collect(),
        }
    }

    /// The error message; `None` if nothing is missing.
    fn message(&self) -> Option<String> {
        let inputs = self.inputs.iter().map(|(_, message)| message.clone());
        let messages: Vec<String> = self.dims_message().into_iter().chain(inputs).collect();
        (!messages.is_empty()).then(|| messages.join("; "))
    }

    /// The error message for the missing dims, for example:
    ///
    /// ```text
    /// the dim n of parameter `x` is not known: say --dim n=…, or give the parameter an array
    /// ```
    fn dims_message(&self) -> Option<String> {
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
        Some(format!(
            "the {} of {} {are} not known: say {}, or give {arrays}",
            several(&dims, "dim"),
            several(&params, "parameter"),
            flags.join(" ")
        ))
    }
}

/// Reads or draws the arguments of one function, and collects the values of its symbolic dims on the way.
pub struct Reader<'s> {
    session: &'s Session,
    function: &'s Function,
    symbols: NameMap<i64>,
    seed: u64,
    /// The number of the first argument in the random sequence.
    position: usize,
}

impl<'s> Reader<'s> {
    /// Creates a reader that knows the dims given by `--dim` and `rx.toml`.
    pub fn of(session: &'s Session, function: &'s Function, position: usize) -> Reader<'s> {
        let dims = session.choices.dims.iter().map(|(symbol, value)| (name(symbol), *value));
        Reader { session, function, symbols: dims.collect(), seed: session.choices.seed, position }
    }

    fn span(&self, param: usize) -> Option<Span> {
        self.session.workspace.param_span(self.session.module, self.function.name, param)
    }

    /// Takes the array of a parameter out of `given`, or the arrays of its tuple fields, and checks each against its
    /// type.
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

    /// Checks that an array fits the type of a parameter, and binds symbolic dims to the array's extents.
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
        fault.map_err(|message| {
            let comma = if array.shape().len() == 1 { "," } else { "" };
            let shape = array.shape().iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let dtype = array.dtype();
            let is = format!("the array for `{path}` is {dtype} ({shape}{comma}), the parameter is {ty}");
            Failure::Input(format!("{source}: {is}: {message}"), self.span(at))
        })
    }

    /// Binds symbolic dims to `extents`; `unit` is the word for an extent in messages ("axis", "number"). For example,
    /// the dims `(n, 4)` and the extents `[2, 4]` bind `n` to 2; the extents `[2, 5]` give the error
    /// `axis 1 must be 4`.
    ///
    /// # Errors
    /// If a dim already has another value, or is a constant that differs.
    fn bind(&mut self, dims: &[Dim], extents: &[i64], unit: &str) -> Result<(), String> {
        for (at, (dim, extent)) in dims.iter().zip(extents).enumerate() {
            let of = if unit == "number" { "it".to_owned() } else { format!("{unit} {at}") };
            if let Some(symbol) = dim.as_symbol() {
                let known = *self.symbols.entry(symbol).or_insert(*extent);
                if known != *extent {
                    return Err(format!("{of} must be {known}, the value of `{symbol}` elsewhere"));
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

    /// Converts the given arrays of an argument, or draws it from the seed; returns `None` if that requires values that
    /// the user has to give, which are added to `unknown`.
    fn value(
        &self,
        place: Place<'_>,
        ty: &StructInfo,
        taken: Taken,
        indexed: &[Dim],
        unknown: &mut Unknown,
    ) -> Result<Option<Input>, Failure> {
        let (at, path) = place;
        let fields = match taken {
            Taken::Array(array) => {
                let failed = |why| Failure::Input(format!("the array for `{path}` is no {ty}: {why}"), self.span(at));
                return argument(array, ty).map(Some).map_err(failed);
            }
            Taken::Nothing => return self.drawn(place, ty, indexed, unknown),
            Taken::Fields(fields) => fields,
        };
        let types = ty.as_tuple().unwrap_or_default();
        let mut values = Vec::with_capacity(fields.len());
        for (field, (taken, ty)) in fields.into_iter().zip(types).enumerate() {
            values.push(self.value((at, &format!("{path}.{field}")), ty, taken, &[], unknown)?);
        }
        Ok(values.into_iter().collect::<Option<Vec<Input>>>().map(Input::Tuple))
    }

    /// Draws an argument from the seed.
    fn drawn(
        &self,
        (at, path): Place<'_>,
        ty: &StructInfo,
        indexed: &[Dim],
        unknown: &mut Unknown,
    ) -> Result<Option<Input>, Failure> {
        let dims = self.unknown_dims(ty);
        if !dims.is_empty() {
            unknown.add_dims((at, path), dims);
            return Ok(None);
        }
        let message = match self.drawing().draw(self.position + at, ty, indexed) {
            Ok(input) => return Ok(Some(input)),
            Err(Undrawable::Negative(dim, value)) => format!("the dim {dim} of parameter `{path}` would be {value}"),
            Err(why) => {
                let message = format!("the parameter `{path}` is {ty}: {why}");
                if let Some(advice) = advice(path, ty) {
                    unknown.add_input((at, path), message + &advice);
                    return Ok(None);
                }
                message
            }
        };
        Err(Failure::Input(message, self.span(at)))
    }

    /// Returns the dims of a tensor or shape that have no value yet.
    fn unknown_dims(&self, ty: &StructInfo) -> Vec<Dim> {
        let dims = match ty {
            StructInfo::Shape(shape) => shape.dims(),
            // If the dtype is unknown as well, values of dims do not help: only an array does.
            ty => ty.as_tensor().filter(|tensor| tensor.dtype.is_some()).and_then(|tensor| tensor.shape.dims()),
        };
        let is_open = |dim: &&Dim| self.drawing().value(dim).is_none() && !dim.is_error();
        dims.unwrap_or_default().iter().filter(is_open).cloned().collect()
    }
}

/// Returns the end of an error message: how the user can give a parameter of this type; `None` if no array can be one.
fn advice(path: &str, ty: &StructInfo) -> Option<String> {
    let give = format!("; give it with --input {path}=FILE.npy");
    match ty {
        StructInfo::Shape(shape) => Some(match shape.ndim() {
            Some(ndim) => format!("{give}, {ndim} integers (int64)"),
            None => format!("{give}, a vector of integers (int64)"),
        }),
        StructInfo::Tensor(tensor) if tensor.dtype.is_some_and(|dtype| Element::of(dtype).is_none()) => None,
        StructInfo::Tensor(_) | StructInfo::DTensor(_) | StructInfo::Prim(_) | StructInfo::Object => Some(give),
        _ => None,
    }
}

/// Converts a vector of integers to a shape.
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

/// Converts an array that fits to an argument of this type.
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
