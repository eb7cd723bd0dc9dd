//! Whether a kernel's work can follow another's element by element: an epilogue.

use rx_tir::func::{BufferId, PrimFunc};
use rx_tir::{Expr, Stmt};

/// For each of the first `inputs` buffers of a function without reductions, whether the function makes each element of its outputs from
/// the element of that input at the same place, and from any elements of the others. The outputs then have the input's extents.
pub(crate) fn followed_inputs(func: &PrimFunc, inputs: usize) -> Box<[bool]> {
    let follows = |input| {
        let mut epilogue = Epilogue { func, along: vec![input] };
        let mut outputs = func.buffer_params().skip(inputs);
        epilogue.statement(&func.body, false) && outputs.all(|output| epilogue.along.contains(&output))
    };
    func.buffer_params().take(inputs).map(follows).collect()
}

struct Epilogue<'f> {
    func: &'f PrimFunc,
    /// The input, and what is made of it so far.
    along: Vec<BufferId>,
}

impl Epilogue<'_> {
    /// Whether all stores of a statement, in a block that has axes or not, follow.
    fn statement(&mut self, stmt: &Stmt, in_block: bool) -> bool {
        match stmt {
            Stmt::Seq(statements) => statements.iter().all(|one| self.statement(one, in_block)),
            Stmt::For { body, .. } if !in_block => self.statement(body, false),
            Stmt::Block(block) if !in_block => self.statement(&block.body, !block.iters.is_empty()),
            Stmt::Store { buffer, indices, value, .. } => in_block && self.store(*buffer, indices, value),
            _ => false,
        }
    }

    /// Whether what is read of the input, and of what is made of it, is read where it is stored, over the same extents.
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
        // Each element once, wherever it is.
        let axes = indices.iter().enumerate().all(|(axis, index)| match index {
            Expr::Var { .. } => !indices[..axis].contains(index),
            index => index.as_int().is_some(),
        });
        follows && axes
    }
}

/// Whether an access is where the store is; an axis of one element has one place.
fn is_same_place(shape: &[Expr], at: &[Expr], stored: &[Expr]) -> bool {
    at.len() == stored.len()
        && at.iter().zip(stored).zip(shape).all(|((at, stored), extent)| at == stored || extent.as_int() == Some(1))
}
