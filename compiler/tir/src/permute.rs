//! *Layout permutation*: changes the order of the axes of buffers, with all accesses.
//!
//! ```text
//! B[i, j, k] = A[i, j, k]   ->   B[i, j, k] = A[i, k, j]      for the order [0, 2, 1] of A
//! ```

use crate::expr::Expr;
use crate::func::{Buffer, BufferId, PrimFunc};
use crate::rewrite::{map_expr, map_stmt_shallow};
use crate::stmt::Stmt;

/// Permutes the axes of each buffer that has an order: axis `i` of the new buffer is axis `order[i]` of the old one.
/// All accesses are permuted, so the function computes the same from buffers with the permuted layout. An order must be
/// a permutation of the buffer's axes, and the buffer must have no strides; otherwise the buffer does not change.
pub fn permuted(func: &PrimFunc, order_of: &dyn Fn(BufferId) -> Option<Vec<usize>>) -> PrimFunc {
    let orders: Vec<Option<Vec<usize>>> =
        func.buffers.iter().enumerate().map(|(at, buffer)| fitting(buffer, order_of(BufferId(at as u32)))).collect();
    let order = |buffer: BufferId| orders.get(buffer.0 as usize).and_then(Option::as_ref);
    let mut result = func.clone();
    for (buffer, order) in result.buffers.iter_mut().zip(&orders) {
        if let Some(order) = order {
            let axes = order.iter().map(|axis| buffer.axis_of_tensor(*axis)).collect();
            buffer.shape = reordered(&buffer.shape, order);
            buffer.order = Some(axes);
        }
    }
    result.body = statement(&func.body, &order);
    result
}

/// Returns the elements in the given order.
pub fn reordered<T: Clone>(elements: &[T], order: &[usize]) -> Vec<T> {
    order.iter().filter_map(|at| elements.get(*at).cloned()).collect()
}

fn fitting(buffer: &Buffer, order: Option<Vec<usize>>) -> Option<Vec<usize>> {
    let order = order?;
    let mut axes = order.clone();
    axes.sort_unstable();
    (buffer.strides.is_none() && axes.iter().copied().eq(0..buffer.shape.len())).then_some(order)
}

fn statement<'o>(stmt: &Stmt, order: &dyn Fn(BufferId) -> Option<&'o Vec<usize>>) -> Stmt {
    let mut expr = |expr: &Expr| {
        map_expr(expr, &mut |part| match part {
            Expr::Load { buffer, dtype, indices } => Expr::Load {
                buffer,
                dtype,
                indices: order(buffer).map_or_else(|| indices.clone(), |order| reordered(&indices, order)),
            },
            part => part,
        })
    };
    match map_stmt_shallow(stmt, &mut expr, &mut |child| statement(child, order)) {
        Stmt::Store { buffer, indices, value, site } => {
            let indices = order(buffer).map_or_else(|| indices.clone(), |order| reordered(&indices, order));
            Stmt::Store { buffer, indices, value, site }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::permuted;
    use crate::print::script;
    use crate::{BufferId, Expr, KernelBuilder};
    use rx_base::name::name;
    use rx_base::{DType, Dim};

    #[test]
    fn accesses_follow_the_order_of_a_buffer() {
        let mut builder = KernelBuilder::new(name("f"));
        let shape = [2, 3, 5].map(Dim::constant);
        let input = builder.param("x", &shape, DType::FLOAT32);
        let output = builder.param("y", &shape, DType::FLOAT32);
        builder.compute(output, |builder, axes| builder.load(input, axes) * Expr::number(2.0, DType::FLOAT32));
        let func = permuted(&builder.finish(), &|buffer| (buffer == BufferId(0)).then(|| vec![0, 2, 1]));
        let text = script(&func);
        assert!(text.contains("x: T.Buffer((T.int64(2), T.int64(5), T.int64(3)), \"float32\")"), "{text}");
        assert!(text.contains("# x lies in memory by axes 0, 2, 1 of the tensor"), "{text}");
        assert!(text.contains("y[v_ax0, v_ax1, v_ax2] = x[v_ax0, v_ax2, v_ax1]"), "{text}");
        assert_eq!(permuted(&func, &|_| Some(vec![0, 0, 1])), func, "that is no order");
    }
}
