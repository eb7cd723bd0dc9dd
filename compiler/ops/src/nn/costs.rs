//! Cost formulas of convolution, pooling and attention.

use super::conv_rule::{Attributes, Direction};
use super::window::{data_letters, per_axis};
use crate::call::CallInfo;
use crate::cost::{elements, multiply_adds, operand_dims, product};
use rx_base::Dim;
use rx_ir::StructInfo;

/// Counts a convolution: one multiply-add per weight, image and output position, `2·N·O·H·W·(I/groups)·kh·kw`.
pub(super) fn conv<const RANK: usize>(call: &CallInfo<'_>, result: &StructInfo) -> Option<Dim> {
    let layout = Attributes::read(call, RANK, Direction::Forward).ok()?.out_layout;
    let extents = layout.plain(result.as_tensor()?.shape.dims()?, data_letters(RANK));
    weights_at(call, &extents)
}

/// Counts a transposed convolution: one multiply-add per weight, image and input position.
pub(super) fn conv_transpose<const RANK: usize>(call: &CallInfo<'_>, _result: &StructInfo) -> Option<Dim> {
    let layout = Attributes::read(call, RANK, Direction::Transposed).ok()?.data_layout;
    let extents = layout.plain(operand_dims(call, "data")?, data_letters(RANK));
    weights_at(call, &extents)
}

/// Counts one multiply-add per weight, image and position. `extents` are N, C and the spatial extents; C is not used.
fn weights_at(call: &CallInfo<'_>, extents: &[Dim]) -> Option<Dim> {
    let positions = extents.iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, extent)| extent);
    Some(multiply_adds(positions.chain(operand_dims(call, "weight")?)))
}

/// Counts one operation per element of the window and element of the result.
pub(super) fn pool<const RANK: usize>(call: &CallInfo<'_>, result: &StructInfo) -> Option<Dim> {
    let sizes = per_axis(call, "pool_size", RANK, 1).ok()?;
    let window: Vec<Dim> = sizes.into_iter().map(Dim::constant).collect();
    Some(&elements(result)? * &product(&window))
}

/// Counts `2·B·H·S·T·(D + E)` for the two matrix products, and five operations per score for the softmax.
pub(super) fn attention(call: &CallInfo<'_>, _result: &StructInfo) -> Option<Dim> {
    let [batch, sequence, heads, head_dim] = operand_dims(call, "query")? else { return None };
    let [_, keys, _, _] = operand_dims(call, "key")? else { return None };
    let [_, _, _, value_dim] = operand_dims(call, "value")? else { return None };
    let scores = product([batch, heads, sequence, keys]);
    let each = &(&(head_dim + value_dim) * &Dim::constant(2)) + &Dim::constant(5);
    Some(&scores * &each)
}
