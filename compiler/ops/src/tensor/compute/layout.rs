//! *Layout transform* (`layout_transform`): writes each element to the index that the index map gives.
//!
//! ```text
//! lambda i: (i // 4, i % 4), x: [10]
//! fill out: [3, 4] with pad_value;  for i in range(10): out[i // 4, i % 4] = x[i]
//! ```
//!
//! Requires: a parsed index map that is injective.
//! Reference: TVM include/tvm/topi/transform.h (`layout_transform`).

use crate::compute::{Lowering, Unsupported};
use crate::tensor::index_map::{Index, IndexMap};
use crate::tensor::operands::{agree, element_count};
use rx_base::DType;
use rx_ir::Attr;
use rx_tir::Expr;

/// Emits `layout_transform`. Fills the result first if no element is moved to some position: with the pad value, or
/// with 0 as in TVM.
pub(crate) fn layout_transform(lowering: &mut Lowering<'_>) -> Result<(), Unsupported> {
    let x = lowering.tensor("x")?;
    let unknown = || Unsupported::because("the index map is not known");
    let map = match lowering.call.attr("index_map") {
        Some(Attr::Opaque(text) | Attr::Str(text)) => IndexMap::parse(text).ok_or_else(unknown)?,
        _ => return Err(unknown()),
    };
    let indices: Vec<Index> = map.indices.into_iter().collect::<Option<_>>().ok_or_else(unknown)?;
    let out = lowering.output(0);
    let filled = agree(lowering.call, &element_count(&x.shape), &element_count(lowering.output_shape(0)));
    if !filled {
        let padding = pad_value(lowering, x.dtype)?;
        lowering.builder.compute(out, |_, _| padding);
    }
    let extents = x.extents(&mut lowering.builder);
    lowering.builder.map(out, &extents, |builder, axes| {
        let places = indices.iter().map(|index| place(index, axes)).collect();
        (places, x.at(builder, axes))
    });
    Ok(())
}

/// Returns an index of the result, given the indices of the data.
fn place(index: &Index, axes: &[Expr]) -> Expr {
    match index {
        // INVARIANT: the map has one parameter per axis of the data, by the struct-info rule.
        Index::Param(at) => axes.get(*at).cloned().unwrap_or(Expr::int(0)),
        Index::Add(a, b) => place(a, axes) + place(b, axes),
        Index::Scale(inner, by) => place(inner, axes) * Expr::int(*by),
        Index::Div(inner, by) => place(inner, axes).floor_div(Expr::int(*by)),
        Index::Mod(inner, by) => place(inner, axes).floor_mod(Expr::int(*by)),
        Index::Zero => Expr::int(0),
    }
}

fn pad_value(lowering: &Lowering<'_>, dtype: DType) -> Result<Expr, Unsupported> {
    let value = match lowering.call.attr("pad_value") {
        None => Some(0.0),
        Some(attr) => crate::arguments::attr_number(attr),
    };
    match value {
        Some(value) => Ok(Expr::number(value, dtype)),
        None => Err(Unsupported::because("the value of `pad_value` is not known")),
    }
}
