//! Struct info: the static description of a Relax value, which TVM 0.27 calls its *type*.

use rx_base::{DType, Dim, Name};
use std::fmt;
use std::sync::Arc;

/// The static description of a Relax value. Cheap to clone; equality is structural.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StructInfo {
    /// `R.Any` (`R.Object` in the classic spelling): any value.
    Object,
    /// `R.Tensor(…)`.
    Tensor(Arc<TensorInfo>),
    /// `R.Shape(…)`: a value that is a shape. Never [`Shape::Var`].
    Shape(Shape),
    /// A scalar: `R.Prim(…)`, in current spelling `T.int64` and the like.
    Prim(PrimInfo),
    /// `R.Tuple(…)`.
    Tuple(Arc<[StructInfo]>),
    /// `R.Callable(…)`, or the type of a function.
    Function(Arc<FunctionInfo>),
    /// `R.DTensor(…)`: a tensor distributed over a device mesh.
    DTensor(Arc<DTensorInfo>),
    /// `I.StringType`, the type of `R.str`.
    String,
    /// The type of a value for which a contradiction was reported. It is compatible with every type, so that no further
    /// error follows.
    Error,
}

/// The largest number of parts of a type, dims included. Tuples of thousands of weights occur, tuples of millions do
/// not.
pub const MAX_PARTS: usize = 1 << 16;

/// The largest nesting depth of a type, the same as that of brackets.
pub const MAX_DEPTH: usize = 256;

/// The static description of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorInfo {
    /// The shape, as far as it is known.
    pub shape: Shape,
    /// The element type; `None` if unknown.
    pub dtype: Option<DType>,
    /// The virtual device; `None` if not specified.
    pub vdevice: Option<VDevice>,
    /// Whether a contradiction in the dtype was reported. `dtype` is then `None` and is compatible with every dtype.
    pub dtype_error: bool,
    /// If parts are erroneous because the declared type contradicts the inferred one: both types.
    pub readings: Option<Arc<Readings>>,
}

/// The two types of a tensor whose annotation contradicts its value. In both, `readings` is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Readings {
    /// The type in the annotation.
    pub declared: TensorInfo,
    /// The type of the value.
    pub inferred: TensorInfo,
}

/// A shape, as far as it is known.
#[derive(Clone, Debug, Eq, Hash)]
#[expect(clippy::derived_hash_with_manual_eq, reason = "the comparison is the derived one, with a shortcut")]
pub enum Shape {
    /// A shape of unknown rank.
    Unknown,
    /// A shape of which only the rank is known.
    Rank(usize),
    /// A shape with all dims known, possibly symbolic. A dim may be [`Dim::ERROR`].
    Known(Arc<[Dim]>),
    /// The value of a shape variable `s`: `R.Tensor(s, …)`.
    Var {
        /// The variable.
        name: Name,
        /// The rank, if known.
        ndim: Option<usize>,
        /// The dims, if known.
        dims: Option<Arc<[Dim]>>,
    },
    /// A shape for which a contradiction in rank was reported. It is compatible with every shape.
    Error,
}

/// Types share their dims where they can, so that most equal shapes are the same allocation.
impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        match (self, other) {
            (Shape::Known(dims), Shape::Known(others)) => Arc::ptr_eq(dims, others) || dims == others,
            (Shape::Rank(ndim), Shape::Rank(other)) => ndim == other,
            (Shape::Var { name, ndim, dims }, Shape::Var { name: other, ndim: other_ndim, dims: other_dims }) => {
                (name, ndim, dims) == (other, other_ndim, other_dims)
            }
            (Shape::Unknown, Shape::Unknown) | (Shape::Error, Shape::Error) => true,
            _ => false,
        }
    }
}

impl Shape {
    /// Creates a shape with these dims.
    pub fn known(dims: impl Into<Arc<[Dim]>>) -> Shape {
        Shape::Known(dims.into())
    }

    /// Creates a shape of known or unknown rank.
    pub fn of_rank(ndim: Option<usize>) -> Shape {
        ndim.map_or(Shape::Unknown, Shape::Rank)
    }

    /// The rank, if known.
    pub fn ndim(&self) -> Option<usize> {
        match self {
            Shape::Unknown | Shape::Error => None,
            Shape::Rank(ndim) => Some(*ndim),
            Shape::Known(dims) => Some(dims.len()),
            Shape::Var { ndim, .. } => *ndim,
        }
    }

    /// Creates the shape that is the value of the shape variable `name`, whose type is `R.Shape` with `value`.
    pub fn variable(name: Name, value: &Shape) -> Shape {
        let dims = match value {
            Shape::Known(dims) => Some(dims.clone()),
            _ => None,
        };
        Shape::Var { name, ndim: value.ndim(), dims }
    }

    /// The dims, if known, also through a variable.
    pub fn dims(&self) -> Option<&[Dim]> {
        match self {
            Shape::Known(dims) | Shape::Var { dims: Some(dims), .. } => Some(dims),
            _ => None,
        }
    }

    /// The dims as in [`Shape::dims`], shared.
    pub fn shared_dims(&self) -> Option<&Arc<[Dim]>> {
        match self {
            Shape::Known(dims) | Shape::Var { dims: Some(dims), .. } => Some(dims),
            _ => None,
        }
    }

    /// The dims, if they are explicit and not those of a variable. Rules that compute a shape from another use these:
    /// as in TVM, of a shape computed from a shape variable only the rank is known.
    pub fn written_dims(&self) -> Option<&[Dim]> {
        match self {
            Shape::Known(dims) => Some(dims),
            _ => None,
        }
    }
}

/// The static description of a scalar: its dtype, and its value if that is a symbolic or constant integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrimInfo {
    /// The dtype; `None` for a literal whose dtype depends on its use.
    pub dtype: Option<DType>,
    /// The value of an integer, if known.
    pub value: Option<Dim>,
}

/// The static description of a function value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FunctionInfo {
    /// The parameter types; `None` if any arguments are accepted (a bare `R.Callable`, an external function).
    pub params: Option<Vec<StructInfo>>,
    /// The return type.
    pub ret: StructInfo,
    /// Whether a call has no side effects.
    pub pure: bool,
}

/// The static description of a distributed tensor (TVM: `relax/distributed`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DTensorInfo {
    /// The whole tensor.
    pub tensor: TensorInfo,
    /// The text of the device mesh: `mesh[0]`.
    pub device_mesh: Name,
    /// The distribution over the mesh.
    pub placement: Placement,
}

/// A placement such as `S[0], R`. For each axis of the mesh, the tensor is either sharded along one of its axes
/// (`S[0]`) or replicated (`R`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placement(pub Name);

impl Placement {
    /// Parses a placement; `None` if the text is invalid (TVM `src/relax/distributed/type.cc`, `Placement::FromText`).
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

    /// The number of mesh axes in the placement.
    pub fn mesh_ndim(&self) -> usize {
        self.0.as_str().split(',').count()
    }

    /// The first sharded axis that does not exist in a tensor of `ndim` dimensions.
    pub fn axis_beyond(&self, ndim: usize) -> Option<usize> {
        let axis = |part: &str| part.strip_prefix("S[")?.strip_suffix(']')?.parse().ok();
        self.0.as_str().split(", ").filter_map(axis).find(|axis| *axis >= ndim)
    }

    /// The placement of a value that sharding propagation has not reached.
    pub fn unknown() -> Placement {
        Placement(Name::from("?"))
    }
}

/// A virtual device by its name in a type: `llvm:0:global`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VDevice(pub Name);

impl StructInfo {
    /// Creates a tensor type of known shape and dtype.
    pub fn tensor(dims: impl Into<Arc<[Dim]>>, dtype: Option<DType>) -> StructInfo {
        StructInfo::tensor_of(Shape::known(dims), dtype)
    }

    /// Creates a tensor type without a virtual device.
    pub fn tensor_of(shape: Shape, dtype: Option<DType>) -> StructInfo {
        TensorInfo { shape, dtype, vdevice: None, dtype_error: false, readings: None }.into()
    }

    /// Creates the type of a shape value with known dims.
    pub fn shape(dims: impl Into<Arc<[Dim]>>) -> StructInfo {
        StructInfo::Shape(Shape::known(dims))
    }

    /// Creates the type of a scalar of unknown value.
    pub fn prim(dtype: DType) -> StructInfo {
        StructInfo::Prim(PrimInfo { dtype: Some(dtype), value: None })
    }

    /// Creates a tuple type.
    pub fn tuple(fields: impl Into<Arc<[StructInfo]>>) -> StructInfo {
        StructInfo::Tuple(fields.into())
    }

    /// Creates the type of a function about which nothing is known: any arguments, any result, and side effects.
    /// Prim_funcs used as values have it.
    pub fn callable() -> StructInfo {
        StructInfo::Function(Arc::new(FunctionInfo { params: None, ret: StructInfo::Object, pure: false }))
    }

    /// The empty tuple, which is the type of statements without a value.
    pub fn void() -> StructInfo {
        StructInfo::Tuple(Arc::from([]))
    }

    /// The tensor, if the type is one.
    pub fn as_tensor(&self) -> Option<&TensorInfo> {
        match self {
            StructInfo::Tensor(tensor) => Some(tensor),
            StructInfo::DTensor(tensor) => Some(&tensor.tensor),
            _ => None,
        }
    }

    /// The fields, if the type is a tuple.
    pub fn as_tuple(&self) -> Option<&[StructInfo]> {
        match self {
            StructInfo::Tuple(fields) => Some(fields),
            _ => None,
        }
    }

    /// Whether the type, if printed, has more than [`MAX_PARTS`] parts or nests deeper than [`MAX_DEPTH`]. Fields are
    /// shared in memory, so each line `t = (t, t)` doubles the printed size; code that builds a type from other types
    /// must check this.
    pub fn is_too_large(&self) -> bool {
        let compound = matches!(self, StructInfo::Tuple(_) | StructInfo::Function(_));
        compound && count_parts(self, MAX_DEPTH, &mut MAX_PARTS.clone()).is_none()
    }

    /// Whether this type states a fact about a value that `known` does not. Dims are compared structurally: equal forms
    /// are equal, and different forms count as different.
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

    /// Whether this is [`StructInfo::Error`] itself; parts are not examined.
    pub fn is_error(&self) -> bool {
        matches!(self, StructInfo::Error)
    }
}

/// Subtracts the number of parts of `info` from `left`; `None` if there are too many, or if they nest deeper than
/// `depth`.
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

/// The dialect-dependent spelling of types: names and dims.
pub struct Spelling<'a> {
    /// Spells a name that in TVM 0.27 is `R.Any`, `T.int64` and the like.
    pub path: &'a dyn Fn(&str) -> String,
    /// Spells a dim.
    pub dim: &'a dyn Fn(&Dim) -> String,
}

/// Formats the type in the spelling of `tvm-0.27`, with compound dims unquoted, as in a body.
impl fmt::Display for StructInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spell(&Spelling { path: &str::to_owned, dim: &Dim::to_string }))
    }
}

impl StructInfo {
    /// Formats the type as an annotation in the given spelling.
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
