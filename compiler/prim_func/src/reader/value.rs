//! The values of expressions during translation, and views of buffers.

use rx_base::{DType, Name};
use rx_tir::{BufferId, Expr, PrimFunc};
use std::rc::Rc;

/// The value of a name or expression: a part of the IR, or a Python value known during translation.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A Python integer, which has no dtype yet.
    Int(i128),
    /// A Python float.
    Float(f64),
    /// A Python bool.
    Bool(bool),
    /// A string.
    Text(String),
    /// A dtype: `T.float32`, `A.dtype`.
    DType(DType),
    /// A scalar of the IR.
    Expr(Expr),
    /// A tensor.
    Buffer(Rc<View>),
    /// A variable that is stored to: a local buffer with one element.
    Cell(BufferId),
    /// A tensor's memory, such as `A.data`.
    Pointer(Rc<View>),
    /// A list or tuple.
    Many(Vec<Value>),
    /// A thread axis of `T.env_thread`.
    Thread(Name),
    /// A macro defined inside a function or another macro: its index in the list of definitions.
    Macro(usize),
    /// A parameter with the type handle.
    Handle(Name),
    /// `None`; in a trace also the value of a variable whose assignment could not be read.
    Nothing,
}

impl Value {
    /// Returns the items of a list; any other value as a single item.
    pub(super) fn into_items(self) -> Vec<Value> {
        match self {
            Value::Many(items) => items,
            value => vec![value],
        }
    }
}

/// A tensor in the text: a buffer of the IR, or a view of one.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Its extents.
    pub(super) shape: Vec<Expr>,
    /// Its element type.
    pub(super) dtype: DType,
    /// The mapping to its elements.
    pub(super) source: Source,
}

/// The mapping from a view's indices to the elements of its underlying tensor.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// A buffer of the IR, with the same indices.
    Buffer(BufferId),
    /// A box of another view. Index `i` of the last dims is `mins + i` there; leading dims that the view lacks are
    /// fixed at `mins`.
    Region { of: Rc<View>, mins: Vec<Expr> },
    /// Another view's memory: the element at row-major position `offset + Σ index · stride`. Without strides the view
    /// is dense.
    Flat { of: Rc<View>, offset: Option<Expr>, strides: Option<Vec<Expr>> },
}

impl View {
    /// Returns the underlying buffer of the IR.
    pub(super) fn root(&self) -> BufferId {
        match &self.source {
            Source::Buffer(buffer) => *buffer,
            Source::Region { of, .. } | Source::Flat { of, .. } => of.root(),
        }
    }

    /// Returns the same indices as [`View::element`] without the buffer; `None` if the view, or a view that
    /// it is a box of, is a [`Source::Flat`].
    pub(super) fn followed(&self, indices: Vec<Expr>) -> Option<Vec<Expr>> {
        match &self.source {
            Source::Buffer(_) => Some(indices),
            Source::Region { of, mins } => of.followed(in_region(mins, indices)),
            Source::Flat { .. } => None,
        }
    }

    /// Returns the view of a whole buffer of the IR.
    pub(super) fn of_buffer(func: &PrimFunc, buffer: BufferId) -> View {
        let declared = func.buffer(buffer);
        View { shape: declared.shape.clone(), dtype: declared.dtype, source: Source::Buffer(buffer) }
    }

    /// Returns `A.elem_offset` in elements: 0 for a buffer, the offset in the other view's memory for a
    /// [`Source::Flat`], and the [`View::position`] of the first element for a box.
    pub(super) fn offset(&self) -> Expr {
        match &self.source {
            Source::Buffer(_) => Expr::int(0),
            Source::Region { of, mins } => of.position(mins.clone()),
            Source::Flat { offset, .. } => offset.clone().unwrap_or(Expr::int(0)),
        }
    }

    /// Returns the row-major position of the element at `indices`, one index for each dim. For a box, also one of
    /// another box, it is the position in the view around all boxes. That view counts as dense and begins at 0.
    pub(super) fn position(&self, indices: Vec<Expr>) -> Expr {
        match &self.source {
            Source::Region { of, mins } => of.position(in_region(mins, indices)),
            Source::Buffer(_) | Source::Flat { .. } => row_major(indices, &self.shape),
        }
    }

    /// Returns the distances in elements between neighbours along each dim (`A.strides`). A buffer of the IR counts as
    /// dense.
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

    /// Returns the underlying buffer and the element's indices there; `indices` has one index for each dim. For
    /// example, a dense view of shape `(32,)` over a buffer of shape `(4, 8)` has the element `i` at
    /// `[i // 8, i % 8]`.
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

/// Converts indices in a box that begins at `mins` to indices of the underlying view.
fn in_region(mins: &[Expr], indices: Vec<Expr>) -> Vec<Expr> {
    let dropped = mins.len().saturating_sub(indices.len());
    let inner = mins.iter().skip(dropped).zip(indices).map(|(min, index)| sum(min.clone(), index));
    mins.iter().take(dropped).cloned().chain(inner).collect()
}

/// Returns the row-major position of `indices` in a dense tensor.
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

/// Returns the indices of the element at row-major position `linear` in a dense tensor.
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

/// Casts the narrower of two integers to the dtype of the wider; if both have the same width, `b` to that of `a`.
fn same_dtype(a: Expr, b: Expr) -> (Expr, Expr) {
    let wider = if a.dtype().bits >= b.dtype().bits { a.dtype() } else { b.dtype() };
    (a.cast(wider), b.cast(wider))
}
