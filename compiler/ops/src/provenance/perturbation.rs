//! Knobs: the facts among a call's arguments that a provenance query can change one at a time. Finds them and writes
//! changed values into the arguments.

use super::{Facet, Fact, Input, Part};
use crate::schema::{AttrKind, ParamKind, Schema};
use rx_base::{DType, Dim};
use rx_ir::{Argument, Attr, DTensorInfo, Expr, ExprKind, PrimInfo, PrimValue, Shape, StructInfo, TensorInfo};
use std::sync::Arc;

/// The maximum number of facts considered for one call.
const MAX_KNOBS: usize = 8192;

impl Facet {
    /// Creates the facet of a type itself, outside any tuple.
    pub fn of_part(part: Part) -> Facet {
        Facet { path: Vec::new(), part }
    }

    /// Returns the value of the facet for `ty`; `None` if the type does not determine it.
    pub fn of(&self, ty: &StructInfo) -> Option<Fact> {
        let mut field = ty;
        for at in &self.path {
            field = field.as_tuple()?.get(*at)?;
        }
        match (self.part, field) {
            (Part::Dim(axis), field) => {
                super::dim_of(field, axis).filter(|dim| !dim.is_error()).cloned().map(Fact::Integer)
            }
            (Part::Rank, StructInfo::Shape(shape)) => shape.ndim().map(Fact::Rank),
            (Part::Rank, field) => field.as_tensor()?.shape.ndim().map(Fact::Rank),
            (Part::Dtype, StructInfo::Prim(prim)) => prim.dtype.map(Fact::Dtype),
            (Part::Dtype, field) => field.as_tensor()?.dtype.map(Fact::Dtype),
            (Part::Value, StructInfo::Prim(prim)) => prim.value.clone().map(Fact::Integer),
            (Part::Value, _) => None,
        }
    }
}

/// Returns the facts among `arguments` that have the same kind as `target`, with their locations.
pub(super) fn perturbations(schema: &Schema, arguments: &[Argument], target: &Fact) -> Vec<(Input, Fact)> {
    let mut found = Vec::new();
    for (param, argument) in arguments.iter().enumerate() {
        let mut facets = Vec::new();
        match argument {
            Argument::Operand(expr) => of_expr(expr, &mut Vec::new(), target, &mut facets),
            Argument::Operands(exprs) => {
                for (at, expr) in exprs.iter().enumerate() {
                    of_expr(expr, &mut vec![at], target, &mut facets);
                }
            }
            Argument::Types(types) => {
                for (at, ty) in types.iter().enumerate() {
                    of_type(ty, &mut vec![at], target, &mut facets);
                }
                found.extend(facets.drain(..).map(|(facet, fact)| (Input::Type { param, facet }, fact)));
            }
            Argument::Attr(attr) => {
                let kind = schema.params.get(param).map(|param| param.kind);
                found.extend(of_attribute(attr, kind, param, target));
            }
            Argument::Absent => {}
        }
        found.extend(facets.into_iter().map(|(facet, fact)| (Input::Operand { param, facet }, fact)));
        if found.len() > MAX_KNOBS {
            break;
        }
    }
    found.truncate(MAX_KNOBS);
    found
}

type Found = Vec<(Facet, Fact)>;

fn of_expr(expr: &Expr, path: &mut Vec<usize>, target: &Fact, found: &mut Found) {
    match (&expr.kind, target) {
        (ExprKind::Tuple(items), _) => {
            for (at, item) in items.iter().enumerate() {
                path.push(at);
                of_expr(item, path, target, found);
                path.pop();
            }
        }
        (ExprKind::DType(dtype), Fact::Dtype(_)) => {
            found.push((Facet { path: path.clone(), part: Part::Dtype }, Fact::Dtype(*dtype)));
        }
        _ => of_type(&expr.ty, path, target, found),
    }
}

fn of_type(ty: &StructInfo, path: &mut Vec<usize>, target: &Fact, found: &mut Found) {
    if found.len() > MAX_KNOBS {
        return;
    }
    let mut add = |part: Part| {
        let facet = Facet { path: Vec::new(), part };
        if let Some(fact) = facet.of(ty) {
            found.push((Facet { path: path.clone(), part }, fact));
        }
    };
    match (ty, target) {
        (StructInfo::Tuple(fields), _) => {
            for (at, field) in fields.iter().enumerate() {
                path.push(at);
                of_type(field, path, target, found);
                path.pop();
            }
        }
        (StructInfo::Prim(_), Fact::Integer(_)) => add(Part::Value),
        (_, Fact::Integer(_)) => {
            let ndim = match Facet::of_part(Part::Rank).of(ty) {
                Some(Fact::Rank(ndim)) if super::dim_of(ty, 0).is_some() => ndim,
                _ => 0,
            };
            (0..ndim).for_each(|axis| add(Part::Dim(axis)));
        }
        (_, Fact::Rank(_)) => add(Part::Rank),
        (_, Fact::Dtype(_)) => add(Part::Dtype),
    }
}

fn of_attribute(attr: &Attr, kind: Option<ParamKind>, param: usize, target: &Fact) -> Vec<(Input, Fact)> {
    let input = |element| Input::Attribute { param, element };
    match (attr, target) {
        (Attr::Int(dim), Fact::Integer(_)) => vec![(input(None), Fact::Integer(dim.clone()))],
        (Attr::List(items), Fact::Integer(_)) => {
            let integers = items.iter().enumerate().filter_map(|(at, item)| match item {
                Attr::Int(dim) => Some((input(Some(at)), Fact::Integer(dim.clone()))),
                _ => None,
            });
            integers.collect()
        }
        (Attr::Str(text), Fact::Dtype(_)) if kind == Some(ParamKind::Attr(AttrKind::DType)) => {
            DType::parse(text).map(|dtype| (input(None), Fact::Dtype(dtype))).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Replaces the fact at `input` with `fact`.
pub(super) fn write(arguments: &mut [Argument], input: &Input, fact: &Fact) {
    let Some(argument) = arguments.get_mut(input.param()) else { return };
    match (input, argument) {
        (Input::Operand { facet, .. }, Argument::Operand(expr)) => into_expr(expr, &facet.path, facet.part, fact),
        (Input::Operand { facet, .. }, Argument::Operands(exprs)) => {
            if let Some((at, path)) = facet.path.split_first()
                && let Some(expr) = exprs.get_mut(*at)
            {
                into_expr(expr, path, facet.part, fact);
            }
        }
        (Input::Type { facet, .. }, Argument::Types(types)) => {
            if let Some((at, path)) = facet.path.split_first()
                && let Some(ty) = types.get_mut(*at)
            {
                into_type(ty, path, facet.part, fact);
            }
        }
        (Input::Attribute { element, .. }, Argument::Attr(attr)) => into_attribute(attr, *element, fact),
        _ => {}
    }
}

fn into_attribute(attr: &mut Attr, element: Option<usize>, fact: &Fact) {
    let new = match fact {
        Fact::Integer(dim) => Attr::Int(dim.clone()),
        Fact::Dtype(dtype) => Attr::Str(dtype.to_string().into()),
        Fact::Rank(_) => return,
    };
    match (element, attr) {
        (None, attr) => *attr = new,
        (Some(at), Attr::List(items)) => {
            if let Some(item) = items.get_mut(at) {
                *item = new;
            }
        }
        _ => {}
    }
}

fn into_expr(expr: &mut Expr, path: &[usize], part: Part, fact: &Fact) {
    into_type(&mut expr.ty, path, part, fact);
    match (&mut expr.kind, path, part, fact) {
        (ExprKind::Tuple(items), [at, rest @ ..], ..) => {
            if let Some(item) = items.get_mut(*at) {
                into_expr(item, rest, part, fact);
            }
        }
        (ExprKind::Shape(dims), [], Part::Dim(axis), Fact::Integer(dim)) => {
            if let Some(slot) = dims.get_mut(axis) {
                *slot = dim.clone();
            }
        }
        (ExprKind::Shape(dims), [], Part::Rank, Fact::Rank(rank)) => dims.resize(*rank, Dim::constant(1)),
        (ExprKind::Prim(value), [], Part::Value, Fact::Integer(dim)) => *value = PrimValue::Int(dim.clone()),
        (ExprKind::DType(slot), [], Part::Dtype, Fact::Dtype(dtype)) => *slot = *dtype,
        _ => {}
    }
}

fn into_type(ty: &mut StructInfo, path: &[usize], part: Part, fact: &Fact) {
    match (&mut *ty, path) {
        (StructInfo::Tuple(fields), [at, rest @ ..]) => {
            let mut changed = fields.to_vec();
            if let Some(field) = changed.get_mut(*at) {
                into_type(field, rest, part, fact);
            }
            *fields = changed.into();
        }
        (StructInfo::Tensor(tensor), []) => *tensor = Arc::new(tensor_with(tensor, part, fact)),
        (StructInfo::DTensor(tensor), []) => {
            *tensor = Arc::new(DTensorInfo { tensor: tensor_with(&tensor.tensor, part, fact), ..(**tensor).clone() });
        }
        (StructInfo::Shape(shape), []) => *shape = shape_with(shape, part, fact),
        (StructInfo::Prim(prim), []) => *prim = prim_with(prim, part, fact),
        _ => {}
    }
}

fn tensor_with(tensor: &TensorInfo, part: Part, fact: &Fact) -> TensorInfo {
    let mut tensor = tensor.clone();
    match (part, fact) {
        (Part::Dtype, Fact::Dtype(dtype)) => tensor.dtype = Some(*dtype),
        _ => tensor.shape = shape_with(&tensor.shape, part, fact),
    }
    tensor
}

fn shape_with(shape: &Shape, part: Part, fact: &Fact) -> Shape {
    let replaced = |dims: &[Dim], axis: usize, dim: &Dim| {
        let mut dims = dims.to_vec();
        if let Some(slot) = dims.get_mut(axis) {
            slot.clone_from(dim);
        }
        dims
    };
    match (shape, part, fact) {
        (Shape::Known(dims), Part::Dim(axis), Fact::Integer(dim)) => Shape::known(replaced(dims, axis, dim)),
        (Shape::Var { name, ndim, dims: Some(dims) }, Part::Dim(axis), Fact::Integer(dim)) => {
            Shape::Var { name: *name, ndim: *ndim, dims: Some(replaced(dims, axis, dim).into()) }
        }
        (Shape::Known(dims), Part::Rank, Fact::Rank(rank)) => {
            let mut dims = dims.to_vec();
            dims.resize(*rank, Dim::constant(1));
            Shape::known(dims)
        }
        (_, Part::Rank, Fact::Rank(rank)) => Shape::Rank(*rank),
        (shape, ..) => shape.clone(),
    }
}

fn prim_with(prim: &PrimInfo, part: Part, fact: &Fact) -> PrimInfo {
    let mut prim = prim.clone();
    match (part, fact) {
        (Part::Dtype, Fact::Dtype(dtype)) => prim.dtype = Some(*dtype),
        (Part::Value, Fact::Integer(dim)) => prim.value = Some(dim.clone()),
        _ => {}
    }
    prim
}
