//! Unification of a callee's parameter types with the types of a call's arguments, which binds the callee's symbols.
//!
//! ```text
//! parameters:  A: (n, m), B: (m, n + 1)
//! arguments:   (4, k), (k, 5)
//! → n = 4 and m = k are bound by argument 0; m = k and n + 1 = 5 are proved for argument 1
//! ```
//!
//! The first occurrence of a symbol as a whole dim binds it. Every other occurrence is an equality, which is
//! *proved*, *refuted* or *open*.

use rx_base::name::NameMap;
use rx_base::symbolic::prove;
use rx_base::symbolic::{Answer, Bounds};
use rx_base::{Dim, Name};
use rx_ir::{Shape, StructInfo, TensorInfo};
use std::sync::Arc;

/// The part of an argument that gives a dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The index of the argument.
    pub argument: usize,
    /// The axis of a tensor or shape.
    pub axis: Option<usize>,
}

impl From<usize> for Given {
    fn from(argument: usize) -> Given {
        Given { argument, axis: None }
    }
}

impl std::fmt::Display for Given {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "argument {}", self.argument)?;
        self.axis.map_or(Ok(()), |axis| write!(f, ", axis {axis}"))
    }
}

/// The value of a symbol, and its source.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The value, in terms of the caller's symbols.
    pub value: Dim,
    /// The part of an argument that bound it.
    pub by: Given,
}

/// The values of a callee's symbols.
#[derive(Debug)]
pub struct Bindings<'a> {
    bound: NameMap<Bound>,
    bounds: &'a Bounds,
}

/// An equality between the dim that the callee requires and the given dim.
#[derive(Clone, Debug)]
pub struct Equality {
    /// The dim as the callee writes it.
    pub wanted: Dim,
    /// The same dim with bound symbols substituted; `None` if a symbol is unbound.
    pub wanted_here: Option<Dim>,
    /// The given dim.
    pub actual: Dim,
    /// Whether they are equal.
    pub answer: Answer,
    /// The part of an argument that bound the symbol before, if the dim is a symbol.
    pub bound_by: Option<Given>,
}

impl Equality {
    /// Returns the two dims if their equality is open: it is checked at run time, so they are equal after the call.
    pub fn to_learn(&self) -> Option<(Dim, Dim)> {
        (self.answer == Answer::Open).then(|| Some((self.wanted_here.clone()?, self.actual.clone())))?
    }
}

impl<'a> Bindings<'a> {
    /// Creates bindings without symbols.
    pub fn new(bounds: &'a Bounds) -> Bindings<'a> {
        Bindings { bound: NameMap::default(), bounds }
    }

    /// Returns the value of a symbol.
    pub fn get(&self, symbol: Name) -> Option<&Bound> {
        self.bound.get(&symbol)
    }

    /// Binds a symbol, unless it is bound.
    pub fn bind(&mut self, symbol: Name, value: Dim, by: impl Into<Given>) {
        self.bound.entry(symbol).or_insert(Bound { value, by: by.into() });
    }

    /// Describes the sources of the symbols in a dim: `n = 7 from argument 0, axis 1`.
    pub fn origins(&self, dim: &Dim) -> Vec<String> {
        let mut found: Vec<(Name, &Bound)> = Vec::new();
        dim.for_each_symbol(&mut |symbol| {
            if let Some(bound) = self.bound.get(&symbol)
                && found.iter().all(|(other, _)| *other != symbol)
            {
                found.push((symbol, bound));
            }
        });
        found.into_iter().map(|(symbol, bound)| format!("{symbol} = {} from {}", bound.value, bound.by)).collect()
    }

    /// Unifies the callee's dim `wanted` with the caller's dim `actual`, given by `by`: binds a symbol, or compares.
    pub fn meet(&mut self, wanted: &Dim, actual: &Dim, by: impl Into<Given>) -> Equality {
        if let Some(symbol) = wanted.as_symbol() {
            match self.bound.get(&symbol) {
                None => {
                    self.bind(symbol, actual.clone(), by);
                    return Equality {
                        wanted: wanted.clone(),
                        wanted_here: Some(actual.clone()),
                        actual: actual.clone(),
                        answer: Answer::Proved,
                        bound_by: None,
                    };
                }
                Some(bound) => {
                    let answer = prove::equal(&bound.value, actual, self.bounds);
                    return Equality {
                        wanted: wanted.clone(),
                        wanted_here: Some(bound.value.clone()),
                        actual: actual.clone(),
                        answer,
                        bound_by: Some(bound.by),
                    };
                }
            }
        }
        let wanted_here = self.substitute(wanted);
        let answer = wanted_here.as_ref().map_or(Answer::Open, |dim| prove::equal(dim, actual, self.bounds));
        Equality { wanted: wanted.clone(), wanted_here, actual: actual.clone(), answer, bound_by: None }
    }

    /// Returns the dim with bound symbols substituted; `None` if one is unbound.
    pub fn substitute(&self, dim: &Dim) -> Option<Dim> {
        let mut complete = true;
        dim.for_each_symbol(&mut |symbol| complete &= self.bound.contains_key(&symbol));
        complete.then(|| dim.substitute(&|symbol| self.bound.get(&symbol).map(|bound| bound.value.clone())))
    }

    /// Returns a type of the callee in terms of the caller's symbols. A shape with an unbound symbol is replaced by
    /// its rank, as in TVM's `EraseToWellDefined`.
    pub fn substitute_type(&self, ty: &StructInfo) -> StructInfo {
        self.type_with(ty, None)
    }

    /// Like [`Bindings::substitute_type`], for comparison: a dim with an unbound symbol becomes an error, which is
    /// compatible with everything, and the other dims stay.
    pub fn wanted_type(&self, ty: &StructInfo) -> StructInfo {
        self.type_with(ty, Some(&Dim::ERROR))
    }

    fn type_with(&self, ty: &StructInfo, unbound: Option<&Dim>) -> StructInfo {
        match ty {
            StructInfo::Tensor(tensor) => {
                // Readings are in terms of the callee's symbols, and their mistake has been reported in the callee.
                let shape = self.shape_with(&tensor.shape, unbound);
                TensorInfo { shape, readings: None, ..TensorInfo::clone(tensor) }.into()
            }
            StructInfo::DTensor(tensor) => {
                let mut tensor = rx_ir::DTensorInfo::clone(tensor);
                tensor.tensor.shape = self.shape_with(&tensor.tensor.shape, unbound);
                tensor.tensor.readings = None;
                StructInfo::DTensor(Arc::new(tensor))
            }
            StructInfo::Shape(shape) => StructInfo::Shape(self.shape_with(shape, unbound)),
            StructInfo::Prim(prim) => {
                let value = prim.value.as_ref().and_then(|value| self.substitute(value));
                StructInfo::Prim(rx_ir::PrimInfo { dtype: prim.dtype, value })
            }
            StructInfo::Tuple(fields) => {
                let fields: Vec<StructInfo> = fields.iter().map(|field| self.type_with(field, unbound)).collect();
                StructInfo::tuple(fields)
            }
            other => other.clone(),
        }
    }

    fn shape_with(&self, shape: &Shape, unbound: Option<&Dim>) -> Shape {
        match shape {
            Shape::Known(dims) | Shape::Var { dims: Some(dims), .. } => {
                let here = |dim| self.substitute(dim).or_else(|| unbound.cloned());
                match dims.iter().map(here).collect::<Option<Vec<Dim>>>() {
                    Some(dims) => Shape::known(dims),
                    None => Shape::Rank(dims.len()),
                }
            }
            Shape::Var { ndim, .. } => Shape::of_rank(*ndim),
            other => other.clone(),
        }
    }

    /// Unifies every dim of a callee's parameter type with the argument's; returns an equality for each pair of dims.
    /// One that binds a symbol is proved. Types of different kinds or ranks have no pairs.
    pub fn meet_types(&mut self, wanted: &StructInfo, actual: &StructInfo, argument: usize) -> Vec<Equality> {
        let mut equalities = Vec::new();
        self.walk(wanted, actual, argument, &mut equalities);
        equalities
    }

    fn walk(&mut self, wanted: &StructInfo, actual: &StructInfo, argument: usize, out: &mut Vec<Equality>) {
        match (wanted, actual) {
            (StructInfo::Shape(a), StructInfo::Shape(b)) => self.walk_shapes(a, b, argument, out),
            (StructInfo::Tuple(a), StructInfo::Tuple(b)) => {
                for (a, b) in a.iter().zip(b.iter()) {
                    self.walk(a, b, argument, out);
                }
            }
            (StructInfo::Prim(a), StructInfo::Prim(b)) => {
                if let (Some(a), Some(b)) = (&a.value, &b.value) {
                    out.push(self.meet(a, b, argument));
                }
            }
            _ => {
                if let (Some(a), Some(b)) = (wanted.as_tensor(), actual.as_tensor()) {
                    self.walk_shapes(&a.shape, &b.shape, argument, out);
                }
            }
        }
    }

    fn walk_shapes(&mut self, wanted: &Shape, actual: &Shape, argument: usize, out: &mut Vec<Equality>) {
        let (Some(wanted), Some(actual)) = (wanted.dims(), actual.dims()) else { return };
        if wanted.len() == actual.len() {
            // Whole-dim symbols bind before compound dims are compared, in any order: in `(n * 2, n)`, axis 1 comes
            // first.
            for bare in [true, false] {
                for (axis, (wanted, actual)) in wanted.iter().zip(actual).enumerate() {
                    if wanted.as_symbol().is_some() == bare {
                        out.push(self.meet(wanted, actual, Given { argument, axis: Some(axis) }));
                    }
                }
            }
        }
    }
}
