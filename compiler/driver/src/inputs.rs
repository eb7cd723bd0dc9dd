//! The arguments of functions, and how they are drawn from a seed.

use rx_base::name::NameMap;
use rx_base::{DType, Dim, Name};
use rx_ir::StructInfo;
use rx_runtime::{Backend, Executor, RunError, Value};
use rx_tensor::{Scalar, Tensor, random};
use std::fmt;

/// An argument.
#[derive(Debug)]
pub enum Input {
    /// A tensor.
    Tensor(Tensor),
    /// The dims of a shape.
    Shape(Vec<i64>),
    /// A scalar.
    Scalar(Scalar),
    /// A tuple.
    Tuple(Vec<Input>),
}

impl Input {
    /// Copies the argument into the device's memory.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn upload<B: Backend>(&self, executor: &mut Executor<B>) -> Result<Value<B::Memory>, RunError> {
        Ok(match self {
            Input::Tensor(tensor) => executor.upload(tensor)?,
            Input::Shape(dims) => Value::Shape(dims.as_slice().into()),
            Input::Scalar(scalar) => Value::Scalar(*scalar),
            Input::Tuple(fields) => {
                let fields: Vec<_> = fields.iter().map(|field| field.upload(executor)).collect::<Result<_, _>>()?;
                Value::Tuple(fields.into())
            }
        })
    }

    /// Like [`Input::upload`], but consumes the argument: a device whose memory is the host's takes over the tensors'
    /// memory without a copy.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    pub fn give<B: Backend>(self, executor: &mut Executor<B>) -> Result<Value<B::Memory>, RunError> {
        match self {
            Input::Tensor(tensor) => executor.take(tensor),
            Input::Tuple(fields) => {
                let fields: Vec<_> = fields.into_iter().map(|field| field.give(executor)).collect::<Result<_, _>>()?;
                Ok(Value::Tuple(fields.into()))
            }
            other => other.upload(executor),
        }
    }
}

/// The reason why no argument can be drawn for a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undrawable {
    /// The type has no values that can be drawn; the message says why.
    Type(String),
    /// A dim would have this negative value.
    Negative(Dim, i64),
    /// A dim with symbols whose values are not known.
    Unknown(Dim, Vec<Name>),
}

impl fmt::Display for Undrawable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undrawable::Type(why) => f.write_str(why),
            Undrawable::Negative(dim, value) => write!(f, "the dim {dim} would be {value}"),
            Undrawable::Unknown(dim, _) => write!(f, "the dim {dim} is not known"),
        }
    }
}

/// Draws arguments from a seed. The same seed gives the same arguments, as defined in `docs/random.md`.
pub struct Drawing<'a> {
    /// The seed.
    pub seed: u64,
    /// The values of symbolic dims.
    pub symbols: &'a NameMap<i64>,
}

impl Drawing<'_> {
    /// Returns the value of a dim if its symbols have values.
    pub fn value(&self, dim: &Dim) -> Option<i64> {
        dim.substitute(&|symbol| self.symbols.get(&symbol).copied().map(Dim::constant)).as_constant()
    }

    /// Draws an argument for parameter number `at`. The elements of a tensor that index the dims `indexed` are less
    /// than the smallest of these dims whose value is known.
    ///
    /// # Errors
    /// Returns an error for a type that cannot be drawn, and for unknown or negative dims.
    pub fn draw(&self, at: usize, ty: &StructInfo, indexed: &[Dim]) -> Result<Input, Undrawable> {
        let missing = |why: &str| Err(Undrawable::Type(why.to_owned()));
        match ty {
            StructInfo::Tensor(tensor) => {
                let (Some(dims), Some(dtype)) = (tensor.shape.dims(), tensor.dtype) else {
                    return missing("its shape or dtype is not known");
                };
                let shape = self.extents(dims)?;
                let below = indexed.iter().filter_map(|dim| self.value(dim)).min();
                let drawn = random::draw(self.seed, at as u64, dtype, &shape, below);
                drawn.map(Input::Tensor).or_else(|error| missing(&error.to_string()))
            }
            StructInfo::Shape(shape) => match shape.dims() {
                Some(dims) => Ok(Input::Shape(self.extents(dims)?)),
                None => missing("its dims are not known"),
            },
            StructInfo::Prim(info) => {
                let symbol = info.value.as_ref().and_then(Dim::as_symbol);
                if let Some(value) = symbol.and_then(|symbol| self.symbols.get(&symbol)) {
                    return Ok(Input::Scalar(Scalar::Int(*value)));
                }
                let drawn = random::draw(self.seed, at as u64, info.dtype.unwrap_or(DType::INT64), &[], None);
                match drawn.map(|tensor| tensor.get(0)) {
                    Ok(Some(scalar)) => Ok(Input::Scalar(scalar)),
                    _ => missing("values of this dtype cannot be drawn"),
                }
            }
            StructInfo::Tuple(fields) => {
                let fields = fields.iter().map(|field| self.draw(at, field, &[])).collect::<Result<_, _>>()?;
                Ok(Input::Tuple(fields))
            }
            _ => missing("values of this type cannot be drawn"),
        }
    }

    /// Returns the values of dims.
    fn extents(&self, dims: &[Dim]) -> Result<Vec<i64>, Undrawable> {
        let one = |dim: &Dim| match self.value(dim) {
            Some(value) if value >= 0 => Ok(value),
            Some(value) => Err(Undrawable::Negative(dim.clone(), value)),
            None => {
                let mut unknown = Vec::new();
                dim.for_each_symbol(&mut |symbol| {
                    if !self.symbols.contains_key(&symbol) && !unknown.contains(&symbol) {
                        unknown.push(symbol);
                    }
                });
                Err(Undrawable::Unknown(dim.clone(), unknown))
            }
        };
        dims.iter().map(one).collect()
    }
}
