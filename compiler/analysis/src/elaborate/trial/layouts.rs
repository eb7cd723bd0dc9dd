//! Layouts to try for a convolution: another layout of the data or the weight, or the weight permuted to the layout
//! that the call states.

use super::{Candidate, derived, operand};
use crate::elaborate::bound_call::BoundCall;
use rx_base::Dim;
use rx_ir::{Argument, Attr, Expr as IrExpr};

/// A parameter that takes a layout: its index, the given layout, and the other usual layouts of such an operand.
struct LayoutParam<'a> {
    at: usize,
    given: &'a str,
    usual: Vec<String>,
}

impl<'a> LayoutParam<'a> {
    fn of(bound: &'a BoundCall, name: &str) -> Option<LayoutParam<'a>> {
        let at = bound.position(name)?;
        let Some(Argument::Attr(Attr::Str(given))) = bound.slots.get(at) else { return None };
        // Whatever text is given is meant as a layout of this operand.
        let like = if name == "data_layout" { format!("N{given}") } else { format!("O{}", given.replace('N', "")) };
        let mut usual = rx_ops::usual_layouts(&like);
        usual.retain(|layout| **layout != **given);
        Some(LayoutParam { at, given, usual })
    }

    fn change(&self, layout: &str) -> (usize, Argument, String) {
        (self.at, Argument::Attr(Attr::Str(layout.into())), format!("\"{layout}\""))
    }
}

/// Adds the usual other layouts of the weight, each followed by the permutation of the weight from that layout, then
/// those of the data, and both together.
pub(super) fn add(bound: &BoundCall, found: &mut Vec<Candidate>) {
    let (Some(data), Some(mut kernel)) =
        (LayoutParam::of(bound, "data_layout"), LayoutParam::of(bound, "kernel_layout"))
    else {
        return;
    };
    let weight = bound.position("weight").and_then(|at| Some((at, bound.slots.get(at).and_then(operand)?)));
    let dims = weight.and_then(|(_, weight)| weight.ty.as_tensor()?.shape.dims());
    kernel.usual.retain(|layout| is_plausible(dims, kernel.given, layout));
    let titled = |changes: Vec<(usize, Argument, String)>| {
        let says = |(at, _, text): &(usize, Argument, String)| {
            let param = bound.schema.params.get(*at).map_or("", |param| param.name);
            format!("{param}={text}")
        };
        let title = format!("use {}", changes.iter().map(says).collect::<Vec<_>>().join(", "));
        Candidate { title, changes }
    };
    for layout in &kernel.usual {
        found.push(titled(vec![kernel.change(layout)]));
        permuted(weight, layout, kernel.given, found);
    }
    data.usual.iter().for_each(|layout| found.push(titled(vec![data.change(layout)])));
    for data_layout in &data.usual {
        for layout in &kernel.usual {
            found.push(titled(vec![data.change(data_layout), kernel.change(layout)]));
        }
    }
}

/// Adds the weight, whose layout is `from`, permuted to the layout `to`.
fn permuted(weight: Option<(usize, &IrExpr)>, from: &str, to: &str, found: &mut Vec<Candidate>) {
    let axis = |letter: char| i64::try_from(from.chars().position(|other| other == letter)?).ok();
    let (Some((at, weight)), Some(axes)) = (weight, to.chars().map(axis).collect::<Option<Vec<i64>>>()) else {
        return;
    };
    let text = format!("axes={axes:?}");
    let axes = Attr::List(axes.into_iter().map(|axis| Attr::Int(axis.into())).collect());
    derived(weight, at, "permute_dims", vec![Argument::Attr(axes)], &text, found);
}

/// Whether a weight of shape `dims` has no larger window in the layout `other` than in the layout `given`.
///
/// A larger window speaks against a layout although its channels may fit. For example, the weight `(64, 4, 3, 3)`,
/// read as `OHWI` instead of `OIHW`, has three input channels, but a window of 4x3.
fn is_plausible(dims: Option<&[Dim]>, given: &str, other: &str) -> bool {
    let largest = |layout: &str| {
        let dims = dims.filter(|dims| dims.len() == layout.len())?;
        let spatial = layout.chars().zip(dims).filter(|(letter, _)| matches!(letter, 'D' | 'H' | 'W'));
        spatial.map(|(_, dim)| dim.as_constant()).try_fold(0, |largest: i64, extent| Some(largest.max(extent?)))
    };
    match (largest(given), largest(other)) {
        (Some(given), Some(other)) => other <= given,
        _ => true,
    }
}
