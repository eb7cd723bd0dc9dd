//! Reconciles declared types with inferred types.
//!
//! ```text
//! declared               inferred               result
//! R.Tensor((n, 4))       R.Tensor((n, 4))       proved equal
//! R.Tensor(ndim=2)       R.Tensor((n, 4))       declared is wider: the declared type
//! R.Tensor((n, 4))       R.Tensor((n, m))       open: the declared type, with a run-time check
//! R.Tensor((n, 4))       R.Tensor((n, 5))       clash on axis 1: an error dim, and two readings
//! ```
//!
//! If the types clash, the dim, dtype or rank that clashes becomes an error part, and a tensor keeps both types as
//! readings: a later annotation is correct if it agrees with either. So each mistake gives one diagnostic, and a
//! second mistake in the same value is still reported.

use crate::readings::{self, Reading};
use rx_base::symbolic::prove;
use rx_base::symbolic::{Answer, Bounds};
use rx_base::{DType, Dim, counted};
use rx_ir::{DTensorInfo, FunctionInfo, PrimInfo, Readings, Shape, StructInfo, TensorInfo};
use std::sync::Arc;

/// The property in which two types clash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClashKind {
    /// A dim, or the number of dimensions.
    Shape,
    /// The dtype.
    Dtype,
    /// The kind of type: a tensor and a tuple, tuples of different lengths, and the like.
    Kind,
    /// The virtual device.
    VDevice,
}

/// The first place where two types contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The property that clashes.
    pub kind: ClashKind,
    /// The indices of tuple fields that lead to the place, outermost first.
    pub path: Vec<usize>,
    /// The axis, if one dim clashes.
    pub axis: Option<usize>,
    /// A description of the value there: `axis 0 is 1`.
    pub actual: String,
    /// The declared property there: `64`.
    pub wanted: String,
    /// The declared and the inferred dim, if dims clash.
    pub pair: Option<(Dim, Dim)>,
}

impl Clash {
    /// Describes the value with its field: `in field 1 axis 0 is 1`.
    pub fn actual_at_path(&self) -> String {
        match &self.path[..] {
            [] => self.actual.clone(),
            _ => format!("in {} {}", self.field(), self.actual),
        }
    }

    /// Describes the field that contains the clash: `field 1`, `field 0 of field 1`.
    pub fn field(&self) -> String {
        let fields: Vec<String> = self.path.iter().rev().map(|index| format!("field {index}")).collect();
        fields.join(" of ")
    }

    /// Returns the part of a type that [`Clash::path`] leads to.
    pub fn part<'t>(&self, ty: &'t StructInfo) -> &'t StructInfo {
        let step =
            |ty: &'t StructInfo, index: &usize| ty.as_tuple().and_then(|fields| fields.get(*index)).unwrap_or(ty);
        self.path.iter().fold(ty, step)
    }

    /// Returns the two dims, if dims clash.
    pub fn dims(&self) -> Vec<&Dim> {
        self.pair.iter().flat_map(|(a, b)| [a, b]).collect()
    }
}

/// A declared type reconciled with an inferred one.
#[derive(Clone, Debug)]
pub struct Reconciled {
    /// The type that uses of the value see.
    pub ty: StructInfo,
    /// The first contradiction.
    pub clash: Option<Clash>,
    /// Whether a part must be checked at run time.
    pub open: bool,
}

impl Reconciled {
    /// Whether the value certainly has the declared type.
    pub fn is_proved(&self) -> bool {
        self.clash.is_none() && !self.open
    }
}

/// Reconciles `declared` with `inferred`.
pub fn reconcile(declared: &StructInfo, inferred: &StructInfo, bounds: &Bounds) -> Reconciled {
    let mut walk = Walk::new(bounds);
    let ty = walk.types(declared, inferred);
    Reconciled { ty, clash: walk.clash, open: walk.open }
}

/// Whether `ty` is more precise than the compatible type `than`.
pub fn says_more(ty: &StructInfo, than: &StructInfo, bounds: &Bounds) -> bool {
    if *than == StructInfo::Object {
        return *ty != StructInfo::Object;
    }
    let reconciled = reconcile(ty, than, bounds);
    reconciled.clash.is_none() && reconciled.open
}

struct Walk<'a> {
    bounds: &'a Bounds,
    /// Whether the types are parts of function types, whose symbols are local to them: then only constants are
    /// compared.
    own_symbols: bool,
    clash: Option<Clash>,
    open: bool,
    path: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn new(bounds: &'a Bounds) -> Walk<'a> {
        Walk { bounds, own_symbols: false, clash: None, open: false, path: Vec::new() }
    }

    fn clash(&mut self, kind: ClashKind, axis: Option<usize>, actual: String, wanted: String) {
        if self.clash.is_none() {
            self.clash = Some(Clash { kind, path: self.path.clone(), axis, actual, wanted, pair: None });
        }
    }

    fn dim_clash(&mut self, axis: Option<usize>, subject: String, wanted: &Dim, actual: &Dim) {
        let first = self.clash.is_none();
        self.clash(ClashKind::Shape, axis, subject, wanted.to_string());
        if let Some(clash) = self.clash.as_mut().filter(|_| first) {
            clash.pair = Some((wanted.clone(), actual.clone()));
        }
    }

    fn types(&mut self, declared: &StructInfo, inferred: &StructInfo) -> StructInfo {
        match (declared, inferred) {
            (StructInfo::Object, _) | (_, StructInfo::Error) => declared.clone(),
            (StructInfo::Error, _) => inferred.clone(),
            (_, StructInfo::Object) => {
                self.open = true;
                declared.clone()
            }
            (StructInfo::Tensor(wanted), StructInfo::Tensor(actual)) => match Arc::ptr_eq(wanted, actual) {
                true => declared.clone(),
                false => match self.tensors(wanted, actual) {
                    // Keep the declared allocation if nothing differs: a large program declares the type of every
                    // binding.
                    tensor if tensor == **wanted => declared.clone(),
                    tensor => tensor.into(),
                },
            },
            (StructInfo::DTensor(wanted), StructInfo::DTensor(actual)) => {
                let tensor = self.tensors(&wanted.tensor, &actual.tensor);
                StructInfo::DTensor(Arc::new(DTensorInfo { tensor, ..DTensorInfo::clone(wanted) }))
            }
            (StructInfo::Shape(wanted), StructInfo::Shape(actual)) => StructInfo::Shape(self.shapes(wanted, actual)),
            (StructInfo::Prim(wanted), StructInfo::Prim(actual)) => StructInfo::Prim(self.scalars(wanted, actual)),
            (StructInfo::String, StructInfo::String) => StructInfo::String,
            (StructInfo::Tuple(wanted), StructInfo::Tuple(actual)) if wanted.len() == actual.len() => {
                let fields: Vec<StructInfo> = wanted
                    .iter()
                    .zip(actual.iter())
                    .enumerate()
                    .map(|(index, (wanted, actual))| {
                        self.path.push(index);
                        let field = self.types(wanted, actual);
                        self.path.pop();
                        field
                    })
                    .collect();
                StructInfo::tuple(fields)
            }
            (StructInfo::Tuple(wanted), StructInfo::Tuple(actual)) => {
                self.clash(
                    ClashKind::Kind,
                    None,
                    format!("the tuple has {}", counted(actual.len(), "field")),
                    format!("{}", wanted.len()),
                );
                StructInfo::Error
            }
            (StructInfo::Function(wanted), StructInfo::Function(actual)) => self.functions(wanted, actual, declared),
            _ => {
                self.clash(ClashKind::Kind, None, format!("the value is {inferred}"), declared.to_string());
                StructInfo::Error
            }
        }
    }

    /// Reconciles tensors; one with two readings fits if either reading does.
    fn tensors(&mut self, wanted: &TensorInfo, actual: &TensorInfo) -> TensorInfo {
        for reading in [Reading::Declared, Reading::Inferred].into_iter().filter(|_| actual.readings.is_some()) {
            let mut walk = Walk { own_symbols: self.own_symbols, ..Walk::new(self.bounds) };
            let tensor = walk.plain_tensors(wanted, readings::tensor(actual, reading));
            if walk.clash.is_none() {
                self.open |= walk.open;
                return tensor;
            }
        }
        self.plain_tensors(wanted, readings::tensor(actual, Reading::Inferred))
    }

    fn plain_tensors(&mut self, wanted: &TensorInfo, actual: &TensorInfo) -> TensorInfo {
        let before = self.clash.take();
        let mut tensor = self.parts(wanted, actual);
        if self.clash.is_some() {
            tensor.readings = Some(Arc::new(Readings { declared: wanted.clone(), inferred: actual.clone() }));
        }
        self.clash = before.or(self.clash.take());
        tensor
    }

    fn parts(&mut self, wanted: &TensorInfo, actual: &TensorInfo) -> TensorInfo {
        let shape = self.shapes(&wanted.shape, &actual.shape);
        let (dtype, dtype_error) = self.dtypes(wanted, actual);
        if let (Some(a), Some(b)) = (wanted.vdevice, actual.vdevice)
            && a != b
        {
            self.clash(ClashKind::VDevice, None, format!("the value lives on {}", b.0), a.0.to_string());
        }
        TensorInfo { shape, dtype, vdevice: wanted.vdevice, dtype_error, readings: None }
    }

    fn dtypes(&mut self, wanted: &TensorInfo, actual: &TensorInfo) -> (Option<DType>, bool) {
        match (wanted.dtype, actual.dtype) {
            (Some(a), Some(b)) if a != b => {
                self.clash(ClashKind::Dtype, None, format!("its dtype is {b}"), a.to_string());
                (None, true)
            }
            (Some(_), None) if !actual.dtype_error => {
                self.open = true;
                (wanted.dtype, false)
            }
            (None, _) => (None, wanted.dtype_error),
            (dtype, _) => (dtype, false),
        }
    }

    fn shapes(&mut self, wanted: &Shape, actual: &Shape) -> Shape {
        if matches!(actual, Shape::Error) {
            return wanted.clone();
        }
        if let (Some(a), Some(b)) = (wanted.ndim(), actual.ndim())
            && a != b
        {
            self.clash(ClashKind::Shape, None, format!("it has {}", counted(b, "dimension")), a.to_string());
            return Shape::Error;
        }
        if let (Some(a), Some(b)) = (wanted.dims(), actual.dims()) {
            if a == b {
                return wanted.clone();
            }
            let dims: Vec<Dim> =
                a.iter().zip(b.iter()).enumerate().map(|(axis, (a, b))| self.dims(axis, a, b)).collect();
            return if dims == a { wanted.clone() } else { Shape::known(dims) };
        }
        match (wanted, actual) {
            (Shape::Known(_) | Shape::Var { .. }, Shape::Rank(_) | Shape::Unknown)
            | (Shape::Rank(_), Shape::Unknown) => {
                self.open = true;
                wanted.clone()
            }
            _ => wanted.clone(),
        }
    }

    fn equal(&self, a: &Dim, b: &Dim) -> Answer {
        let numbers = a.as_constant().is_some() && b.as_constant().is_some();
        if self.own_symbols && !numbers { Answer::Open } else { prove::equal(a, b, self.bounds) }
    }

    fn dims(&mut self, axis: usize, wanted: &Dim, actual: &Dim) -> Dim {
        match self.equal(wanted, actual) {
            Answer::Proved => wanted.clone(),
            Answer::Open => {
                self.open = true;
                wanted.clone()
            }
            Answer::Refuted => {
                self.dim_clash(Some(axis), format!("axis {axis} is {actual}"), wanted, actual);
                Dim::ERROR
            }
        }
    }

    fn scalars(&mut self, wanted: &PrimInfo, actual: &PrimInfo) -> PrimInfo {
        let mut result = wanted.clone();
        if let (Some(a), Some(b)) = (wanted.dtype, actual.dtype)
            && a != b
        {
            self.clash(ClashKind::Dtype, None, format!("its dtype is {b}"), a.to_string());
            result.dtype = None;
        }
        if let (Some(a), Some(b)) = (&wanted.value, &actual.value)
            && self.equal(a, b) == Answer::Refuted
        {
            self.dim_clash(None, format!("the value is {b}"), a, b);
            result.value = None;
        }
        if result.value.is_none() {
            result.value = actual.value.clone();
        }
        result
    }

    fn functions(&mut self, wanted: &FunctionInfo, actual: &FunctionInfo, declared: &StructInfo) -> StructInfo {
        if let (Some(a), Some(b)) = (&wanted.params, &actual.params)
            && a.len() != b.len()
        {
            self.clash(
                ClashKind::Kind,
                None,
                format!("the function takes {}", counted(b.len(), "argument")),
                a.len().to_string(),
            );
            return StructInfo::Error;
        }
        if let (Some(a), Some(b)) = (&wanted.params, &actual.params) {
            if wanted.pure && !actual.pure {
                self.clash(ClashKind::Kind, None, "the function has effects".to_owned(), "a pure one".to_owned());
            }
            for (index, (a, b)) in a.iter().zip(b.iter()).enumerate() {
                self.signature_part(&format!("parameter {index}"), a, b);
            }
        }
        self.signature_part("the result", &wanted.ret, &actual.ret);
        declared.clone()
    }

    /// Compares a parameter or the result of two function types, which fit if one value may have both types.
    fn signature_part(&mut self, part: &str, wanted: &StructInfo, actual: &StructInfo) {
        let mut walk = Walk::new(self.bounds);
        walk.own_symbols = true;
        walk.types(wanted, actual);
        if let Some(clash) = walk.clash {
            let actual = format!("of {part} of the function, {}", clash.actual_at_path());
            self.clash(clash.kind, None, actual, clash.wanted);
        }
    }
}

/// Returns the most precise type that both `a` and `b` fit, which a variable has after an `if` whose branches give
/// `a` and `b` (TVM `src/relax/analysis/type_analysis.cc`, least common ancestor).
pub fn join(a: &StructInfo, b: &StructInfo, bounds: &Bounds) -> StructInfo {
    match (a, b) {
        (StructInfo::Error, other) | (other, StructInfo::Error) => other.clone(),
        (StructInfo::Tensor(x), StructInfo::Tensor(y)) => TensorInfo {
            shape: join_shapes(&x.shape, &y.shape, bounds),
            dtype: if x.dtype == y.dtype { x.dtype } else { None },
            vdevice: if x.vdevice == y.vdevice { x.vdevice } else { None },
            dtype_error: x.dtype_error || y.dtype_error,
            readings: if x.readings == y.readings { x.readings.clone() } else { None },
        }
        .into(),
        (StructInfo::Shape(x), StructInfo::Shape(y)) => StructInfo::Shape(join_shapes(x, y, bounds)),
        (StructInfo::Prim(x), StructInfo::Prim(y)) if x.dtype == y.dtype => {
            let value = if x.value == y.value { x.value.clone() } else { None };
            StructInfo::Prim(PrimInfo { dtype: x.dtype, value })
        }
        (StructInfo::Tuple(x), StructInfo::Tuple(y)) if x.len() == y.len() => {
            let fields: Vec<StructInfo> = x.iter().zip(y.iter()).map(|(x, y)| join(x, y, bounds)).collect();
            StructInfo::tuple(fields)
        }
        _ if a == b => a.clone(),
        (StructInfo::Function(x), StructInfo::Function(y)) => StructInfo::Function(Arc::new(FunctionInfo {
            params: if x.params == y.params { x.params.clone() } else { None },
            ret: join(&x.ret, &y.ret, bounds),
            pure: x.pure && y.pure,
        })),
        _ => StructInfo::Object,
    }
}

fn join_shapes(a: &Shape, b: &Shape, bounds: &Bounds) -> Shape {
    match (a, b) {
        (Shape::Error, other) | (other, Shape::Error) => other.clone(),
        (Shape::Known(x), Shape::Known(y)) if x.len() == y.len() => {
            let same = x.iter().zip(y.iter()).all(|(x, y)| prove::equal(x, y, bounds) == Answer::Proved);
            if same { a.clone() } else { Shape::Rank(x.len()) }
        }
        _ if a == b => a.clone(),
        _ => match (a.ndim(), b.ndim()) {
            (Some(x), Some(y)) if x == y => Shape::Rank(x),
            _ => Shape::Unknown,
        },
    }
}
