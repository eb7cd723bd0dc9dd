//! Recognizes epilogues: kernels that compute each element from the element of an input at the same indices.
//!
//! ```text
//! y[i, j] = max(s[i, j] + b[j], 0)      # follows s, but not b
//! ```
//!
//! Such a kernel can be merged into the reduction that computes the input (see `fuse`), because a schedule can apply it
//! to each element as soon as the element is complete.

use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::{Expr, Stmt};

/// For each of the first `inputs` buffers of a function without reductions: returns whether the function computes its
/// outputs from that input's elements at the same indices, and from arbitrary elements of the other inputs. The outputs
/// then have the input's shape.
pub(crate) fn followed_inputs(func: &PrimFunc, inputs: usize) -> Box<[bool]> {
    let follows = |input| {
        let mut epilogue = Epilogue { func, along: vec![input] };
        let mut outputs = func.buffer_params().skip(inputs);
        epilogue.statement(&func.body, false) && outputs.all(|output| epilogue.along.contains(&output))
    };
    func.buffer_params().take(inputs).map(follows).collect()
}

/// The check of one input.
struct Epilogue<'f> {
    func: &'f PrimFunc,
    /// The input, and the buffers that have been computed from it so far.
    along: Vec<BufferId>,
}

impl Epilogue<'_> {
    /// Whether a statement consists of loops around blocks with axes, and these blocks of stores that satisfy
    /// [`Epilogue::store`]. `in_block` is whether the statement is in a block with axes.
    fn statement(&mut self, stmt: &Stmt, in_block: bool) -> bool {
        match stmt {
            Stmt::Seq(statements) => statements.iter().all(|one| self.statement(one, in_block)),
            Stmt::For { body, .. } if !in_block => self.statement(body, false),
            Stmt::Block(block) if !in_block => self.statement(&block.body, !block.iters.is_empty()),
            Stmt::Store { buffer, indices, value, .. } => in_block && self.store(*buffer, indices, value),
            _ => false,
        }
    }

    /// Whether the loads of `along` buffers are at the store's indices, from buffers of the same shape, and the store's
    /// indices are distinct variables or constants. Adds the stored buffer to `along` if the value loads from an
    /// `along` buffer.
    fn store(&mut self, buffer: BufferId, indices: &[Expr], value: &Expr) -> bool {
        let (mut reads, mut follows) = (false, true);
        value.walk(&mut |part| {
            if let Expr::Load { buffer: of, indices: at, .. } = part
                && self.along.contains(of)
            {
                reads = true;
                let shape = &self.func.buffer(*of).shape;
                follows &= *shape == self.func.buffer(buffer).shape && is_same_place(shape, at, indices);
            }
        });
        if reads && !self.along.contains(&buffer) {
            self.along.push(buffer);
        }
        // Usually each element is then stored once.
        let axes = indices.iter().enumerate().all(|(axis, index)| match index {
            Expr::Var { .. } => !indices[..axis].contains(index),
            index => index.as_int().is_some(),
        });
        follows && axes
    }
}

/// Whether a load's indices equal the store's. On an axis of extent 1 all indices are equal.
fn is_same_place(shape: &[Expr], at: &[Expr], stored: &[Expr]) -> bool {
    at.len() == stored.len()
        && at.iter().zip(stored).zip(shape).all(|((at, stored), extent)| at == stored || extent.as_int() == Some(1))
}
