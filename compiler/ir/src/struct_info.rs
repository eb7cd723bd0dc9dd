//! Struct info: what is known of a value before it runs (TVM 0.27 says *type*).

use rx_base::{DType, Dim, Name};
use std::fmt;
use std::sync::Arc;

/// What is known of a Relax value. Cheap to clone; equality is structural.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StructInfo {
    /// `R.Any` (`R.Object` in the classic spelling): any value.
    Object,
    /// `R.Tensor(…)`.
    Tensor(Arc<TensorInfo>),
    /// `R.Shape(…)`: a value that is a shape. `Shape::Var` never occurs here.
    Shape(Shape),
    /// `R.Prim(…)`, printed `T.int64` and the like: a scalar.
    Prim(PrimInfo),
    /// `R.Tuple(…)`.
    Tuple(Arc<[StructInfo]>),
    /// `R.Callable(…)`, or the type of a function.
    Function(Arc<FunctionInfo>),
    /// `R.DTensor(…)`: a tensor over a device mesh.
    DTensor(Arc<DTensorInfo>),
    /// `I.StringType`, and what `R.str` makes.
    String,
    /// What a reported contradiction leaves behind: agrees with everything.
    Error,
}

/// The most parts a type may have, dims included: tuples of thousands of weights are real, those of millions are not.
pub const MAX_PARTS: usize = 1 << 16;

/// The deepest a type may nest, like brackets.
pub const MAX_DEPTH: usize = 256;

/// What is known of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorInfo {
    /// Its shape, or as much of it as is known.
    pub shape: Shape,
    /// Its element type; `None` when unknown.
    pub dtype: Option<DType>,
    /// Where it lives; `None` when not said.
    pub vdevice: Option<VDevice>,
    /// The dtype is an error part: a contradiction in it was reported, it agrees with everything (`dtype` is `None`).
    pub dtype_error: bool,
    /// Where parts are in error because what was declared contradicts what was inferred: both.
    pub readings: Option<Arc<Readings>>,
}

/// The two types of a tensor whose annotation contradicts its value. Neither has readings of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Readings {
    /// What was written.
    pub declared: TensorInfo,
    /// What its value is.
    pub inferred: TensorInfo,
}

/// As much of a shape as is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Nothing, not even the number of dimensions.
    Unknown,
    /// The number of dimensions.
    Rank(usize),
    /// Every dim, possibly symbolic. One may be [`Dim::ERROR`].
    Known(Arc<[Dim]>),
    /// The shape is the value of a shape-typed variable: `R.Tensor(s, …)`.
    Var {
        /// The variable.
        name: Name,
        /// Its number of dimensions, where known.
        ndim: Option<usize>,
        /// Its dims, where known.
        dims: Option<Arc<[Dim]>>,
    },
    /// A contradiction in rank was reported; agrees with everything.
    Error,
}

impl Shape {
    /// The shape with these dims.
    pub fn known(dims: impl Into<Arc<[Dim]>>) -> Shape {
        Shape::Known(dims.into())
    }

    /// A shape of which at most the rank is known.
    pub fn of_rank(ndim: Option<usize>) -> Shape {
        ndim.map_or(Shape::Unknown, Shape::Rank)
    }

    /// The number of dimensions, where known.
    pub fn ndim(&self) -> Option<usize> {
        match self {
            Shape::Unknown | Shape::Error => None,
            Shape::Rank(ndim) => Some(*ndim),
            Shape::Known(dims) => Some(dims.len()),
            Shape::Var { ndim, .. } => *ndim,
        }
    }

    /// The shape that is the value of variable `name`, of type `R.Shape` as `value` says.
    pub fn variable(name: Name, value: &Shape) -> Shape {
        let dims = match value {
            Shape::Known(dims) => Some(dims.clone()),
            _ => None,
        };
        Shape::Var { name, ndim: value.ndim(), dims }
    }

    /// Every dim, where known, be it by way of a variable.
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            Shape::Known(dims) | Shape::Var { dims: Some(dims), .. } => Some(dims),
            _ => None,
        }
    }

    /// As [`Shape::dims`], shared.
    pub fn shared_dims(&self) -> Option<&Arc<[Dim]>> {
        match self {
            Shape::Known(dims) | Shape::Var { dims: Some(dims), .. } => Some(dims),
            _ => None,
        }
    }

    /// Every dim, where written out. Rules that compute a shape from another ask for this: as in TVM, what is made of a
    /// variable's dims has a known rank only.
    pub fn written_dims(&self) -> Option<&[Dim]> {
        match self {
            Shape::Known(dims) => Some(dims),
            _ => None,
        }
    }
}

/// What is known of a scalar: its dtype, and its value where that is a symbolic integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrimInfo {
    /// The dtype; `None` for a literal that takes its dtype from where it is used.
    pub dtype: Option<DType>,
    /// The value, for integers that are known.
    pub value: Option<Dim>,
}

/// What is known of a function value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionInfo {
    /// Parameter types; `None` when any arguments are taken (`R.Callable` bare, an external function).
    pub params: Option<Vec<StructInfo>>,
    /// What a call gives.
    pub ret: StructInfo,
    /// Whether a call has no effect but its value.
    pub pure: bool,
}

/// What is known of a distributed tensor (TVM: `relax/distributed`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DTensorInfo {
    /// The tensor as a whole.
    pub tensor: TensorInfo,
    /// The device mesh, as written: `mesh[0]`.
    pub device_mesh: Name,
    /// How it is laid over the mesh.
    pub placement: Placement,
}

/// A placement such as `S[0], R`: for each axis of the mesh, cut along an axis of the tensor or replicated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placement(pub Name);

impl Placement {
    /// Reads a placement; `None` where the text is none (TVM `src/relax/distributed/type.cc`, `Placement::FromText`).
    pub fn parse(text: &str) -> Option<Placement> {
        let parts: Option<Vec<String>> = text.split(',').map(|part| Placement::part(part.trim())).collect();
        Some(Placement(Name::from(&parts?.join(", "))))
    }

    fn part(text: &str) -> Option<String> {
        if text == "R" {
            return Some(text.to_owned());
        }
        let axis = text.strip_prefix('S')?.trim_start().strip_prefix('[')?.strip_suffix(']')?;
        let axis: i32 = axis.trim().parse().ok()?;
        Some(format!("S[{axis}]"))
    }

    /// For how many axes of a mesh it says something.
    pub fn mesh_ndim(&self) -> usize {
        self.0.as_str().split(',').count()
    }

    /// The first axis it cuts that a tensor of `ndim` dimensions has not.
    pub fn axis_beyond(&self, ndim: usize) -> Option<usize> {
        let axis = |part: &str| part.strip_prefix("S[")?.strip_suffix(']')?.parse().ok();
        self.0.as_str().split(", ").filter_map(axis).find(|axis| *axis >= ndim)
    }

    /// The placement of a value that sharding propagation has not reached.
    pub fn unknown() -> Placement {
        Placement(Name::from("?"))
    }
}

/// A virtual device as a type names it: `llvm:0:global`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VDevice(pub Name);

impl StructInfo {
    /// A tensor of known shape and dtype.
    pub fn tensor(dims: impl Into<Arc<[Dim]>>, dtype: Option<DType>) -> StructInfo {
        StructInfo::tensor_of(Shape::known(dims), dtype)
    }

    /// A tensor without a virtual device.
    pub fn tensor_of(shape: Shape, dtype: Option<DType>) -> StructInfo {
        TensorInfo { shape, dtype, vdevice: None, dtype_error: false, readings: None }.into()
    }

    /// A shape value of known dims.
    pub fn shape(dims: impl Into<Arc<[Dim]>>) -> StructInfo {
        StructInfo::Shape(Shape::known(dims))
    }

    /// A scalar of unknown value.
    pub fn prim(dtype: DType) -> StructInfo {
        StructInfo::Prim(PrimInfo { dtype: Some(dtype), value: None })
    }

    /// A tuple.
    pub fn tuple(fields: impl Into<Arc<[StructInfo]>>) -> StructInfo {
        StructInfo::Tuple(fields.into())
    }

    /// A function of which nothing is known: any arguments, any result, effects. Prim_funcs as values are such.
    pub fn callable() -> StructInfo {
        StructInfo::Function(Arc::new(FunctionInfo { params: None, ret: StructInfo::Object, pure: false }))
    }

    /// The empty tuple, which statements give.
    pub fn void() -> StructInfo {
        StructInfo::Tuple(Arc::from([]))
    }

    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&TensorInfo> {
        match self {
            StructInfo::Tensor(tensor) => Some(tensor),
            StructInfo::DTensor(tensor) => Some(&tensor.tensor),
            _ => None,
        }
    }

    /// The fields, if it is a tuple.
    pub fn as_tuple(&self) -> Option<&[StructInfo]> {
        match self {
            StructInfo::Tuple(fields) => Some(fields),
            _ => None,
        }
    }

    /// Whether the type, written out, has more than [`MAX_PARTS`] parts or nests deeper than [`MAX_DEPTH`]. Fields are
    /// shared, so that `t = (t, t)` doubles what a type says at the cost of one line: whoever makes a type of types asks.
    pub fn is_too_large(&self) -> bool {
        let compound = matches!(self, StructInfo::Tuple(_) | StructInfo::Function(_));
        compound && count_parts(self, MAX_DEPTH, &mut MAX_PARTS.clone()).is_none()
    }

    /// Whether it says something of a value that `known` does not. Dims are compared as they are written: equal forms are
    /// equal, others may be.
    pub fn says_more_than(&self, known: &StructInfo) -> bool {
        match (known, self) {
            (_, StructInfo::Object | StructInfo::Error) => false,
            (StructInfo::Tensor(known), StructInfo::Tensor(own)) => {
                (own.dtype.is_some() && known.dtype != own.dtype)
                    || (own.shape.ndim().is_some() && known.shape.ndim() != own.shape.ndim())
                    || (own.shape.dims().is_some() && known.shape.dims() != own.shape.dims())
            }
            (StructInfo::Tuple(known), StructInfo::Tuple(own)) => {
                known.len() != own.len() || known.iter().zip(&**own).any(|(known, own)| own.says_more_than(known))
            }
            (StructInfo::Shape(known), StructInfo::Shape(own)) => own.dims().is_some() && known.dims() != own.dims(),
            (known, own) => std::mem::discriminant(known) != std::mem::discriminant(own),
        }
    }

    /// Whether this is the error part, at the top.
    pub fn is_error(&self) -> bool {
        matches!(self, StructInfo::Error)
    }
}

/// Takes the parts of `info` off `left`; `None` when they do not fit or nest deeper than `depth`.
fn count_parts(info: &StructInfo, depth: usize, left: &mut usize) -> Option<()> {
    let inner = depth.checked_sub(1)?;
    let dims = |shape: &Shape| shape.dims().map_or(0, |dims| dims.iter().map(|dim| dim.atoms() + 1).sum());
    let own = match info {
        StructInfo::Tensor(tensor) => dims(&tensor.shape),
        StructInfo::DTensor(tensor) => dims(&tensor.tensor.shape),
        StructInfo::Shape(shape) => dims(shape),
        StructInfo::Prim(prim) => prim.value.as_ref().map_or(0, Dim::atoms),
        _ => 0,
    };
    *left = left.checked_sub(own + 1)?;
    match info {
        StructInfo::Tuple(fields) => fields.iter().try_for_each(|field| count_parts(field, inner, left)),
        StructInfo::Function(function) => {
            function.params.iter().flatten().try_for_each(|param| count_parts(param, inner, left))?;
            count_parts(&function.ret, inner, left)
        }
        _ => Some(()),
    }
}

impl From<TensorInfo> for StructInfo {
    fn from(tensor: TensorInfo) -> StructInfo {
        StructInfo::Tensor(Arc::new(tensor))
    }
}

/// How a text spells types: what it calls them, and how it writes dims.
pub struct Spelling<'a> {
    /// The spelling of a name that TVM 0.27 spells `R.Any`, `T.int64`.
    pub path: &'a dyn Fn(&str) -> String,
    /// The spelling of a dim.
    pub dim: &'a dyn Fn(&Dim) -> String,
}

/// The `tvm-0.27` spelling, compound dims bare, as in a body.
impl fmt::Display for StructInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spell(&Spelling { path: &str::to_owned, dim: &Dim::to_string }))
    }
}

impl StructInfo {
    /// The type as an annotation of a text that spells types so.
    pub fn spell(&self, spelling: &Spelling<'_>) -> String {
        let mut text = String::new();
        spelling.write(self, &mut text);
        text
    }
}

impl Spelling<'_> {
    fn write(&self, info: &StructInfo, out: &mut String) {
        match info {
            StructInfo::Object | StructInfo::Error => out.push_str(&(self.path)("R.Any")),
            StructInfo::String => out.push_str(&(self.path)("I.StringType")),
            StructInfo::Tensor(tensor) => self.write_tensor(tensor, "R.Tensor", None, out),
            StructInfo::DTensor(tensor) => self.write_tensor(&tensor.tensor, "R.DTensor", Some(tensor), out),
            StructInfo::Prim(prim) => {
                out.push_str(&(self.path)(&format!("T.{}", prim.dtype.unwrap_or(DType::INT64))));
            }
            StructInfo::Shape(shape) => {
                let arguments = match shape {
                    Shape::Known(dims) => Some(format!("([{}])", self.dims(dims))),
                    other => other.ndim().map(|ndim| format!("(ndim={ndim})")),
                };
                out.push_str(&(self.path)("R.Shape"));
                out.push_str(&arguments.unwrap_or_default());
            }
            StructInfo::Tuple(fields) => {
                out.push_str(&(self.path)("R.Tuple"));
                if !fields.is_empty() {
                    self.write_list(fields, "(", ")", out);
                }
            }
            StructInfo::Function(function) => self.write_function(function, out),
        }
    }

    fn write_function(&self, function: &FunctionInfo, out: &mut String) {
        out.push_str(&(self.path)("R.Callable"));
        match &function.params {
            None if function.ret == StructInfo::Object => return,
            None => out.push_str("(None"),
            Some(params) => self.write_list(params, "((", if params.len() == 1 { ",)" } else { ")" }, out),
        }
        out.push_str(", ");
        self.write(&function.ret, out);
        out.push_str(if function.pure { ", True)" } else { ", False)" });
    }

    fn write_list(&self, items: &[StructInfo], open: &str, close: &str, out: &mut String) {
        out.push_str(open);
        for (at, item) in items.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { ", " });
            self.write(item, out);
        }
        out.push_str(close);
    }

    fn dims(&self, dims: &[Dim]) -> String {
        dims.iter().map(self.dim).collect::<Vec<_>>().join(", ")
    }

    fn write_tensor(&self, tensor: &TensorInfo, head: &str, distributed: Option<&DTensorInfo>, out: &mut String) {
        let mut arguments: Vec<String> = Vec::new();
        match &tensor.shape {
            Shape::Known(dims) => {
                let comma = if dims.len() == 1 { "," } else { "" };
                arguments.push(format!("({}{comma})", self.dims(dims)));
            }
            Shape::Var { name, .. } => arguments.push(name.to_string()),
            _ => {}
        }
        if let Some(dtype) = tensor.dtype {
            arguments.push(format!("dtype=\"{dtype}\""));
        }
        if let Shape::Rank(ndim) = &tensor.shape {
            arguments.push(format!("ndim={ndim}"));
        }
        if let Some(vdevice) = tensor.vdevice {
            arguments.push(format!("vdevice=\"{}\"", vdevice.0));
        }
        if let Some(distributed) = distributed {
            arguments.push(format!("device_mesh=\"{}\"", distributed.device_mesh));
            arguments.push(format!("placement=\"{}\"", distributed.placement.0));
        }
        out.push_str(&(self.path)(head));
        if !arguments.is_empty() {
            out.push_str(&format!("({})", arguments.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_DEPTH, StructInfo};

    #[test]
    fn types_that_double_or_nest_grow_too_large() {
        let mut doubled = StructInfo::Object;
        let mut nested = StructInfo::Object;
        for step in 0..MAX_DEPTH {
            assert_eq!(doubled.is_too_large(), step > 15);
            assert!(!nested.is_too_large());
            if !doubled.is_too_large() {
                doubled = StructInfo::tuple([doubled.clone(), doubled]);
            }
            nested = StructInfo::tuple([nested]);
        }
        assert!(nested.is_too_large());
    }
}
