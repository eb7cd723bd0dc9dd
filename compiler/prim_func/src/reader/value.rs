//! What an expression of the text stands for while it is read.

use rx_base::{DType, Name};
use rx_tir::{BufferId, Expr, PrimFunc};
use std::rc::Rc;

/// The value of a name or expression: of the IR, or of the Python around it.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A Python integer, without a dtype of its own.
    Int(i128),
    /// A Python float.
    Float(f64),
    /// A Python truth value.
    Bool(bool),
    /// A string.
    Text(String),
    /// A dtype: `T.float32`, `A.dtype`.
    DType(DType),
    /// A scalar of the IR.
    Expr(Expr),
    /// A tensor.
    Buffer(Rc<View>),
    /// A variable that is stored to: a local buffer of one element.
    Cell(BufferId),
    /// A tensor's memory: `A.data`.
    Pointer(Rc<View>),
    /// A list or tuple.
    Many(Vec<Value>),
    /// A thread axis of `T.env_thread`.
    Thread(Name),
    /// A macro that the function defines, by its number.
    Macro(usize),
    /// A parameter that is a handle.
    Handle(Name),
    /// Nothing: `None`, and what has no meaning here.
    Nothing,
}

impl Value {
    /// The items of a list; another value alone.
    pub(super) fn into_items(self) -> Vec<Value> {
        match self {
            Value::Many(items) => items,
            value => vec![value],
        }
    }
}

/// A tensor as the text sees it: a buffer of the IR, or a window into another.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Its extents.
    pub(super) shape: Vec<Expr>,
    /// Its element type.
    pub(super) dtype: DType,
    /// Where its elements lie.
    pub(super) source: Source,
}

/// Where a view's elements lie.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// In a buffer of the IR, at the same indices.
    Buffer(BufferId),
    /// In a box of another view: index `i` of the last dims is at `mins + i`; dims in front have one value.
    Region { of: Rc<View>, mins: Vec<Expr> },
    /// In another view's memory: at `offset + Σ index · stride`, counted row by row.
    Flat { of: Rc<View>, offset: Option<Expr>, strides: Option<Vec<Expr>> },
}

impl View {
    /// The buffer behind it.
    pub(super) fn root(&self) -> BufferId {
        match &self.source {
            Source::Buffer(buffer) => *buffer,
            Source::Region { of, .. } | Source::Flat { of, .. } => of.root(),
        }
    }

    /// As [`View::element`], without the buffer; `None` where memory is counted row by row.
    pub(super) fn followed(&self, indices: Vec<Expr>) -> Option<Vec<Expr>> {
        match &self.source {
            Source::Buffer(_) => Some(indices),
            Source::Region { of, mins } => of.followed(in_region(mins, indices)),
            Source::Flat { .. } => None,
        }
    }

    /// A buffer of the IR.
    pub(super) fn of_buffer(func: &PrimFunc, buffer: BufferId) -> View {
        let declared = func.buffer(buffer);
        View { shape: declared.shape.clone(), dtype: declared.dtype, source: Source::Buffer(buffer) }
    }

    /// Elements of the memory behind it in front of its first (`A.elem_offset`).
    pub(super) fn offset(&self) -> Expr {
        match &self.source {
            Source::Buffer(_) => Expr::int(0),
            Source::Region { of, mins } => of.position(mins.clone()),
            Source::Flat { offset, .. } => offset.clone().unwrap_or(Expr::int(0)),
        }
    }

    /// Elements of the memory behind it in front of that at `indices`, as many as its dims.
    pub(super) fn position(&self, indices: Vec<Expr>) -> Expr {
        match &self.source {
            Source::Region { of, mins } => of.position(in_region(mins, indices)),
            Source::Buffer(_) | Source::Flat { .. } => row_major(indices, &self.shape),
        }
    }

    /// Elements between neighbours along each of its dims (`A.strides`).
    pub(super) fn strides(&self) -> Vec<Expr> {
        match &self.source {
            Source::Region { of, .. } => of.strides().split_off(of.shape.len().saturating_sub(self.shape.len())),
            Source::Flat { strides: Some(strides), .. } => strides.clone(),
            Source::Buffer(_) | Source::Flat { .. } => {
                let mut strides = vec![Expr::int(1); self.shape.len()];
                for at in (1..strides.len()).rev() {
                    strides[at - 1] = product(strides[at].clone(), self.shape[at].clone());
                }
                strides
            }
        }
    }

    /// The element of the buffer behind it that is its own at `indices`, as many as its dims.
    pub(super) fn element(&self, indices: Vec<Expr>) -> (BufferId, Vec<Expr>) {
        match &self.source {
            Source::Buffer(buffer) => (*buffer, indices),
            Source::Region { of, mins } => of.element(in_region(mins, indices)),
            Source::Flat { of, offset, strides } => {
                if offset.is_none() && strides.is_none() && of.shape == self.shape {
                    return of.element(indices);
                }
                let mut linear = match strides {
                    Some(strides) => indices
                        .into_iter()
                        .zip(strides)
                        .map(|(index, stride)| product(index, stride.clone()))
                        .reduce(sum)
                        .unwrap_or(Expr::int(0)),
                    None => row_major(indices, &self.shape),
                };
                if let Some(offset) = offset {
                    linear = sum(offset.clone(), linear);
                }
                of.element(unravel(linear, &of.shape))
            }
        }
    }
}

/// Indices into a box that begins at `mins`, as indices of what it is a box of.
fn in_region(mins: &[Expr], indices: Vec<Expr>) -> Vec<Expr> {
    let dropped = mins.len().saturating_sub(indices.len());
    let inner = mins.iter().skip(dropped).zip(indices).map(|(min, index)| sum(min.clone(), index));
    mins.iter().take(dropped).cloned().chain(inner).collect()
}

/// The position of `indices` in a dense tensor.
fn row_major(indices: Vec<Expr>, shape: &[Expr]) -> Expr {
    let mut linear: Option<Expr> = None;
    for (index, extent) in indices.into_iter().zip(shape) {
        linear = Some(match linear {
            None => index,
            Some(outer) => sum(product(outer, extent.clone()), index),
        });
    }
    linear.unwrap_or(Expr::int(0))
}

/// The indices of a dense tensor's element at position `linear`.
fn unravel(linear: Expr, shape: &[Expr]) -> Vec<Expr> {
    let mut rest = linear;
    let mut indices = Vec::with_capacity(shape.len());
    for extent in shape.iter().skip(1).rev() {
        let (position, extent) = same_dtype(rest, extent.clone());
        indices.push(position.clone().floor_mod(extent.clone()));
        rest = position.floor_div(extent);
    }
    if !shape.is_empty() {
        indices.push(rest);
    }
    indices.reverse();
    indices
}

fn sum(a: Expr, b: Expr) -> Expr {
    let (a, b) = same_dtype(a, b);
    a + b
}

fn product(a: Expr, b: Expr) -> Expr {
    let (a, b) = same_dtype(a, b);
    a * b
}

/// Two integers, the narrower widened.
fn same_dtype(a: Expr, b: Expr) -> (Expr, Expr) {
    let wider = if a.dtype().bits >= b.dtype().bits { a.dtype() } else { b.dtype() };
    (a.cast(wider), b.cast(wider))
}
