//! A model of the loop nest that a TVM release generates for a sum of products (matrix product, convolution), as input
//! of the modeled schedule rules.
//!
//! ```text
//! matmul(x: [m, k], w: [k, n])  →  iters i, j, k;  reads x[i, k], w[k, j];  write out[i, j]
//! ```
//!
//! Sources: python/tvm/topi/nn (conv2d.py `conv`, conv2d_transpose.py), relax/transform/legalize_ops/linear_algebra.py.

use crate::call::CallInfo;
use crate::layout::laid_out_dims;
use crate::nn::conv_rule::{Attributes, Convolution, Direction, kernel_letters};
use crate::nn::window::{data_letters, spatial_letters};
use rx_base::{DType, Dim};
use rx_ir::{StructInfo, TensorInfo};

/// A sum of products: `write[…] += reads[0][…] * reads[1][…]`.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    /// The spatial loops in the order of the result's axes, then the reduction loops.
    pub iters: Vec<Iter>,
    /// The accesses of the two factors.
    pub reads: [Read; 2],
    /// The dtype of the factors and of the result.
    pub dtypes: (DType, DType),
}

/// A loop.
#[derive(Clone, Debug)]
pub(super) struct Iter {
    /// Whether it is a reduction loop.
    pub reduction: bool,
    /// The number of iterations.
    pub extent: Dim,
}

/// A read access of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Read {
    /// The buffer's shape.
    pub dims: Vec<Dim>,
    /// The index expression for each dim.
    pub indices: Vec<Index>,
}

/// An index expression: a sum of terms over loop variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// The terms, in source order.
    pub terms: Vec<Term>,
    /// Whether the sum also has a constant or another non-loop term.
    pub shifted: bool,
    /// Whether the index is not such a sum, for example a quotient, as for the dilated input of a transposed
    /// convolution.
    pub opaque: bool,
}

/// The term `iter // divisor * factor`.
#[derive(Clone, Debug)]
pub(super) struct Term {
    /// The loop's index in [`Nest::iters`].
    pub iter: usize,
    /// The factor.
    pub factor: Dim,
    /// The divisor.
    pub divisor: Dim,
}

impl Term {
    fn of(iter: usize) -> Term {
        Term { iter, factor: Dim::constant(1), divisor: Dim::constant(1) }
    }

    fn times(iter: usize, factor: i64) -> Term {
        Term { factor: Dim::constant(factor), ..Term::of(iter) }
    }
}

impl Index {
    fn sum(terms: Vec<Term>) -> Index {
        Index { terms, ..Index::default() }
    }

    fn shifted(self, by: i64) -> Index {
        Index { shifted: by != 0, ..self }
    }
}

/// Returns the nest of a call; `None` for other operators, and if a shape or dtype is unknown.
pub(super) fn nest(call: &CallInfo<'_>) -> Option<Nest> {
    match call.schema.name {
        "matmul" => matmul(call),
        "nn.conv1d" => convolution(call, 1, Direction::Forward),
        "nn.conv2d" => convolution(call, 2, Direction::Forward),
        "nn.conv3d" => convolution(call, 3, Direction::Forward),
        "nn.conv1d_transpose" => convolution(call, 1, Direction::Transposed),
        "nn.conv2d_transpose" => convolution(call, 2, Direction::Transposed),
        "nn.conv3d_transpose" => convolution(call, 3, Direction::Transposed),
        _ => None,
    }
}

fn known_dims(tensor: &TensorInfo) -> Option<&[Dim]> {
    tensor.shape.dims().filter(|dims| !dims.iter().any(Dim::is_error))
}

fn dtypes(call: &CallInfo<'_>, operand: &TensorInfo) -> Option<(DType, DType)> {
    let given = operand.dtype?;
    Some((given, call.dtype("out_dtype").unwrap_or(given)))
}

fn matmul(call: &CallInfo<'_>) -> Option<Nest> {
    let (left, right) = (call.tensor("x1").ok()?, call.tensor("x2").ok()?);
    let (a, b) = (known_dims(left)?, known_dims(right)?);
    let StructInfo::Tensor(result) = (call.schema.infer)(call).ok()? else { return None };
    let out = known_dims(&result)?;
    let mut iters: Vec<Iter> = out.iter().map(|dim| Iter { reduction: false, extent: dim.clone() }).collect();
    iters.push(Iter { reduction: true, extent: a.last()?.clone() });
    let k = out.len();
    let matrix = usize::from(a.len() > 1) + usize::from(b.len() > 1);
    let batch = out.len().checked_sub(matrix)?;
    // A batch dim of extent 1 that is broadcast to a larger one is read at index 0.
    let batched = |dims: &[Dim]| -> Vec<Index> {
        let own = dims.len().saturating_sub(2);
        let first = batch.saturating_sub(own);
        let index = |at: usize| match (dims.get(at).and_then(Dim::as_constant), out.get(first + at)) {
            (Some(1), Some(dim)) if dim.as_constant() != Some(1) => Index::default(),
            _ => Index::sum(vec![Term::of(first + at)]),
        };
        (0..own).map(index).collect()
    };
    let mut left_indices = batched(a);
    if a.len() > 1 {
        left_indices.push(Index::sum(vec![Term::of(batch)]));
    }
    left_indices.push(Index::sum(vec![Term::of(k)]));
    let mut right_indices = batched(b);
    right_indices.push(Index::sum(vec![Term::of(k)]));
    if b.len() > 1 {
        right_indices.push(Index::sum(vec![Term::of(k.checked_sub(1)?)]));
    }
    Some(Nest {
        iters,
        reads: [Read { dims: a.to_vec(), indices: left_indices }, Read { dims: b.to_vec(), indices: right_indices }],
        dtypes: dtypes(call, left)?,
    })
}

fn convolution(call: &CallInfo<'_>, rank: usize, direction: Direction) -> Option<Nest> {
    let attributes = Attributes::read(call, rank, direction).ok()?;
    let steps = &attributes.steps;
    let (data_layout, kernel_layout) = (&attributes.data_layout, &attributes.kernel_layout);
    let data_dims = laid_out_dims(call, "data", data_layout).ok()??;
    let kernel_dims = laid_out_dims(call, "weight", kernel_layout).ok()??;
    if [data_dims, kernel_dims].iter().any(|dims| dims.iter().any(Dim::is_error)) {
        return None;
    }
    let (letters, spatial) = (data_letters(rank), spatial_letters(rank));
    let convolution = Convolution {
        direction,
        groups: steps.groups,
        data: data_layout.plain(data_dims, letters),
        kernel: kernel_layout.plain(kernel_dims, kernel_letters(rank)),
        data_layout: data_layout.clone(),
        kernel_layout: kernel_layout.clone(),
    };
    let extents = convolution.output_extents(call, steps, spatial).ok()?;
    let groups = Dim::constant(steps.groups);
    let (in_channels, out_channels) = match direction {
        Direction::Forward => (convolution.kernel_in().clone(), convolution.kernel_out().floor_div(&groups)),
        Direction::Transposed => (convolution.in_channels().floor_div(&groups), convolution.kernel_out().clone()),
    };
    let order: Vec<char> = data_layout.letters().collect();
    let plain = |letter: char| letters.chars().position(|other| other == letter);
    let window = |letter: char| spatial.chars().position(|other| other == letter);
    let dilated = |at: usize| -> Option<Dim> {
        let extent = convolution.kernel.get(at + 2)?;
        Some(match (direction, steps.dilation.get(at)) {
            // A transposed convolution dilates its kernel first.
            (Direction::Transposed, Some(by)) => {
                &(&(extent - &Dim::constant(1)) * &Dim::constant(*by)) + &Dim::constant(1)
            }
            _ => extent.clone(),
        })
    };
    let mut iters = Vec::new();
    for letter in &order {
        iters.push(Iter { reduction: false, extent: extents.get(plain(*letter)?)?.clone() });
    }
    let mut reductions = Vec::new();
    for letter in order.iter().filter(|letter| **letter != 'N') {
        let extent = match window(*letter) {
            Some(at) => dilated(at)?,
            None => in_channels.clone(),
        };
        reductions.push(*letter);
        iters.push(Iter { reduction: true, extent });
    }
    let out = |letter: char| order.iter().position(|other| *other == letter);
    let sum = |letter: char| Some(order.len() + reductions.iter().position(|other| *other == letter)?);
    let grouped = |after: Vec<Term>| -> Option<Index> {
        let mut terms = Vec::new();
        if steps.groups > 1 {
            terms.push(Term { iter: out('C')?, factor: in_channels.clone(), divisor: out_channels.clone() });
        }
        terms.extend(after);
        Some(Index::sum(terms))
    };
    let mut data = Vec::new();
    for letter in &order {
        data.push(match window(*letter) {
            None if *letter == 'N' => Index::sum(vec![Term::of(out('N')?)]),
            None => grouped(vec![Term::of(sum('C')?)])?,
            Some(at) => {
                let (stride, dilation) = (*steps.strides.get(at)?, *steps.dilation.get(at)?);
                let (before, _) = *steps.padding.get(at)?;
                let (y, r) = (out(*letter)?, sum(*letter)?);
                match direction {
                    Direction::Forward => {
                        Index::sum(vec![Term::times(y, stride), Term::times(r, dilation)]).shifted(before)
                    }
                    Direction::Transposed => {
                        let reach = &dilated(at)? - &Dim::constant(1 + before);
                        let index = Index::sum(vec![Term::of(y), Term::of(r)]);
                        Index { opaque: stride > 1, ..index.shifted(reach.as_constant().unwrap_or(1)) }
                    }
                }
            }
        });
    }
    let mut kernel = Vec::new();
    for letter in kernel_layout.letters() {
        kernel.push(match (letter, direction) {
            ('O', _) => Index::sum(vec![Term::of(out('C')?)]),
            ('I', Direction::Forward) => Index::sum(vec![Term::of(sum('C')?)]),
            // With one input channel per group, the index over both channel axes equals the output channel. The term
            // belongs to the axis that is longer than 1.
            ('I', Direction::Transposed) if in_channels.as_constant() == Some(1) && steps.groups > 1 => {
                match out_channels.as_constant() {
                    Some(1) => Index::sum(vec![Term::of(out('C')?)]),
                    _ => Index::default(),
                }
            }
            ('I', Direction::Transposed) => grouped(vec![Term::of(sum('C')?)])?,
            (letter, _) => {
                let (at, r) = (window(letter)?, sum(letter)?);
                match direction {
                    Direction::Forward => Index::sum(vec![Term::of(r)]),
                    Direction::Transposed => {
                        let extent = dilated(at)?;
                        let flipped = Index::sum(vec![Term::times(r, -1)]);
                        let index = flipped.shifted(extent.as_constant().map_or(1, |extent| extent - 1));
                        Index { opaque: *steps.dilation.get(at)? > 1, ..index }
                    }
                }
            }
        });
    }
    Some(Nest {
        iters,
        reads: [Read { dims: data_dims.to_vec(), indices: data }, Read { dims: kernel_dims.to_vec(), indices: kernel }],
        dtypes: dtypes(call, call.tensor("data").ok()?)?,
    })
}
