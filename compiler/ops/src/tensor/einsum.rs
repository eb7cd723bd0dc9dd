//! `R.einsum`: parses the equation and infers the shape of the result (TVM `src/topi/einsum.cc`). For example,
//! `ij,jk->ik` for `[2, 3]` and `[3, 4]` gives `[2, 4]`.

use super::operands::{common_vdevice, tensors};
use crate::broadcast::never_together;
use crate::call::{CallInfo, ParamPlace, Problem};
use crate::operands::{Element, computed_from, tensor_type};
use rx_base::{Code, Dim};
use rx_ir::{Shape, StructInfo, TensorInfo};
use std::collections::BTreeMap;

/// A label of an equation: a letter for one axis, or the ellipsis for several. The ellipsis sorts first, as in an
/// implicit result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Label {
    /// `...`.
    Ellipsis,
    /// A letter.
    Axis(char),
}

/// An equation: the labels of each operand and of the result.
#[derive(Debug, PartialEq)]
pub(crate) struct Equation {
    /// The labels of each operand.
    pub inputs: Vec<Vec<Label>>,
    /// The labels of the result.
    pub output: Vec<Label>,
}

/// One axis of the iteration space of an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// The axis of a letter.
    Named(char),
    /// An axis covered by the ellipsis, counted from the last (0).
    Covered(usize),
}

/// The extents of an equation's axes.
pub(crate) struct Extents {
    named: BTreeMap<char, Dim>,
    /// The extents of the axes covered by the ellipsis, last axis first.
    covered: Vec<Dim>,
}

impl Extents {
    /// Returns the extent of an axis.
    pub(crate) fn dim(&self, axis: Axis) -> &Dim {
        let dim = match axis {
            Axis::Named(label) => self.named.get(&label),
            Axis::Covered(from_end) => self.covered.get(from_end),
        };
        dim.unwrap_or(&Dim::ERROR)
    }

    /// Returns the axes of `labels`, where the ellipsis covers the maximum number of axes over all operands.
    pub(crate) fn axes_of(&self, labels: &[Label]) -> Vec<Axis> {
        Extents::expand(labels, self.covered.len())
    }

    /// Returns the axes of an operand of rank `ndim`.
    pub(crate) fn axes_of_operand(&self, labels: &[Label], ndim: usize) -> Vec<Axis> {
        Extents::expand(labels, (ndim + 1).saturating_sub(labels.len()))
    }

    fn expand(labels: &[Label], covered: usize) -> Vec<Axis> {
        let axes = |label: &Label| match label {
            Label::Axis(label) => vec![Axis::Named(*label)],
            Label::Ellipsis => (0..covered).rev().map(Axis::Covered).collect(),
        };
        labels.iter().flat_map(axes).collect()
    }
}

impl Equation {
    /// Parses an equation such as `ij,jk->ik`. Without an arrow, the result has the labels that occur once, in
    /// alphabetical order.
    ///
    /// # Errors
    /// Returns a description of the fault.
    pub(crate) fn parse(text: &str) -> Result<Equation, String> {
        let text: String = text.chars().filter(|c| *c != ' ').collect();
        let (inputs, output) = match text.split_once("->") {
            Some((inputs, output)) => (inputs, Some(output)),
            None => (text.as_str(), None),
        };
        let inputs = inputs.split(',').map(labels).collect::<Result<Vec<_>, _>>()?;
        let output = match output {
            Some(output) => labels(output)?,
            None => implicit_output(&inputs),
        };
        match output.iter().find(|label| !inputs.iter().any(|input| input.contains(label))) {
            Some(Label::Axis(label)) => Err(format!("the result names `{label}`, which no operand has")),
            _ => Ok(Equation { inputs, output }),
        }
    }
}

fn labels(text: &str) -> Result<Vec<Label>, String> {
    let mut labels = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if labels.contains(&Label::Ellipsis) {
                return Err(format!("`{text}` has two ellipses"));
            }
            labels.push(Label::Ellipsis);
            rest = after;
        } else if first.is_ascii_alphabetic() {
            labels.push(Label::Axis(first));
            // INVARIANT: an ASCII letter is one byte.
            rest = &rest[1..];
        } else {
            return Err(format!("`{first}` names no axis; letters do"));
        }
    }
    Ok(labels)
}

fn implicit_output(inputs: &[Vec<Label>]) -> Vec<Label> {
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    for label in inputs.iter().flatten() {
        *counts.entry(*label).or_default() += 1;
    }
    counts
        .into_iter()
        .filter(|(label, count)| *label == Label::Ellipsis || *count == 1)
        .map(|(label, _)| label)
        .collect()
}

/// Infers the type of `einsum` (TVM's `InferTypeEinsum`). If some operand's dims are unknown, TVM uses that operand's
/// rank for the result; this rule computes the rank of the result.
pub(super) fn einsum(call: &CallInfo<'_>) -> Result<StructInfo, Problem> {
    let operands = tensors(call, "operands")?;
    let Some(first) = operands.first() else {
        let message = format_args!("`operands` must hold at least one tensor");
        return Err(call.error(Code::ArgumentType, ParamPlace::Param("operands"), message).into());
    };
    let text = call.str("subscripts").ok_or(Problem::Propagate)?;
    let bad = |why: String| -> Problem {
        call.error(Code::AttrBadValue, ParamPlace::Param("subscripts"), format_args!("{why}")).into()
    };
    let equation = Equation::parse(text).map_err(bad)?;
    if equation.inputs.len() != operands.len() {
        let (named, given) = (equation.inputs.len(), operands.len());
        return Err(bad(format!("the equation has {named} operands, the call passes {given}")));
    }
    for (at, (labels, tensor)) in std::iter::zip(&equation.inputs, &operands).enumerate() {
        check_rank(call, at, labels, tensor)?;
        check_dtype(call, at, first, tensor)?;
    }
    let error = operands.iter().any(|tensor| tensor.dtype_error);
    let known = !error && operands.iter().all(|tensor| tensor.dtype.is_some());
    let element = Element { dtype: if known { first.dtype } else { None }, error };
    let shapes: Option<Vec<&[Dim]>> = operands.iter().map(|tensor| tensor.shape.dims()).collect();
    let shape = match shapes {
        Some(shapes) => Shape::known(output_dims(call, &equation, &shapes)?),
        None if operands.iter().any(|tensor| tensor.shape == Shape::Error) => Shape::Error,
        None => Shape::of_rank(output_rank(&equation, &operands)),
    };
    Ok(tensor_type(computed_from(&operands, shape), element, common_vdevice(operands)))
}

/// Returns the rank of the result when not all dims are known; `None` if an operand's rank is unknown, as in TVM.
fn output_rank(equation: &Equation, operands: &[&TensorInfo]) -> Option<usize> {
    let ranks: Vec<usize> = operands.iter().map(|tensor| tensor.shape.ndim()).collect::<Option<_>>()?;
    if !equation.output.contains(&Label::Ellipsis) {
        return Some(equation.output.len());
    }
    // The numbers of axes that the ellipsis covers in each operand; the result has the largest number.
    let hidden = std::iter::zip(&equation.inputs, ranks)
        .filter(|(labels, _)| labels.contains(&Label::Ellipsis))
        .map(|(labels, rank)| (rank + 1).saturating_sub(labels.len()));
    Some(equation.output.len() - 1 + hidden.max().unwrap_or(0))
}

/// Counts the operations: for each point of the iteration space, one multiplication per operand except the first, and
/// one addition. A single operand only has the additions.
pub(super) fn operations(call: &CallInfo<'_>, _result: &StructInfo) -> Option<Dim> {
    let operands = tensors(call, "operands").ok()?;
    let equation = Equation::parse(call.str("subscripts")?).ok()?;
    let mut space: BTreeMap<(Option<char>, usize), Dim> = BTreeMap::new();
    for (labels, tensor) in equation.inputs.iter().zip(&operands) {
        let dims = tensor.shape.dims()?;
        let covered = (dims.len() + 1).checked_sub(labels.len());
        let mut keys = Vec::new();
        for label in labels {
            match label {
                Label::Axis(letter) => keys.push((Some(*letter), 0)),
                Label::Ellipsis => keys.extend((0..covered?).rev().map(|from_end| (None, from_end))),
            }
        }
        for (key, dim) in keys.into_iter().zip(dims) {
            let extent = space.entry(key).or_insert_with(|| dim.clone());
            if extent.as_constant() == Some(1) {
                extent.clone_from(dim);
            }
        }
    }
    let each = i64::try_from(equation.inputs.len()).ok()?;
    Some(&crate::cost::product(space.values()) * &Dim::constant(each))
}

fn check_rank(call: &CallInfo<'_>, at: usize, labels: &[Label], tensor: &TensorInfo) -> Result<(), Problem> {
    let Some(ndim) = tensor.shape.ndim() else { return Ok(()) };
    let (named, more) = match labels.contains(&Label::Ellipsis) {
        true => (labels.len() - 1, " or more"),
        false => (labels.len(), ""),
    };
    if ndim == named || (ndim > named && !more.is_empty()) {
        return Ok(());
    }
    let message = format_args!("the equation names {named}{more} axes of `operands[{at}]`, it has {ndim}");
    Err(call.error(Code::TensorNdimMismatch, ParamPlace::Element("operands", at), message).into())
}

fn check_dtype(call: &CallInfo<'_>, at: usize, first: &TensorInfo, tensor: &TensorInfo) -> Result<(), Problem> {
    match (first.dtype, tensor.dtype) {
        (Some(a), Some(b)) if a != b => {
            let message = format_args!("`operands[0]` has dtype {a}, `operands[{at}]` has dtype {b}");
            let report = call.error(Code::DtypeMismatch, ParamPlace::Element("operands", at), message);
            Err(report.with_help(format!("convert one of them: `R.astype(…, \"{a}\")`")).into())
        }
        _ => Ok(()),
    }
}

impl Equation {
    /// Returns the extents of the equation's axes. Requires that every operand has the rank that its labels state.
    ///
    /// # Errors
    /// Reports axes with the same label whose extents can never be equal or broadcast.
    pub(crate) fn extents(&self, call: &CallInfo<'_>, shapes: &[&[Dim]]) -> Result<Extents, Problem> {
        let mut extents = Extents { named: BTreeMap::new(), covered: Vec::new() };
        for (at, (labels, dims)) in std::iter::zip(&self.inputs, shapes).enumerate() {
            let axes = extents.axes_of_operand(labels, dims.len());
            // Axes under the ellipsis are visited from the last, so that extents can be appended.
            let under = |(axis, _): &(Axis, &Dim)| matches!(axis, Axis::Covered(_));
            let (covered, named): (Vec<_>, Vec<_>) = axes.into_iter().zip(*dims).partition(under);
            for (axis, dim) in named.into_iter().chain(covered.into_iter().rev()) {
                let (known, subject, kept) = match axis {
                    Axis::Named(label) => {
                        let known = extents.named.entry(label).or_insert_with(|| dim.clone());
                        (known, format!("axis `{label}`"), Kept::Symbol)
                    }
                    Axis::Covered(from_end) => {
                        if from_end == extents.covered.len() {
                            extents.covered.push(dim.clone());
                        }
                        let Some(known) = extents.covered.get_mut(from_end) else { continue };
                        (known, "an axis under `...`".to_owned(), Kept::Constant)
                    }
                };
                check_together(call, at, &subject, known, dim)?;
                *known = together(known, dim, kept);
            }
        }
        Ok(extents)
    }
}

/// Returns the dims of the result.
fn output_dims(call: &CallInfo<'_>, equation: &Equation, shapes: &[&[Dim]]) -> Result<Vec<Dim>, Problem> {
    let extents = equation.extents(call, shapes)?;
    Ok(extents.axes_of(&equation.output).into_iter().map(|axis| extents.dim(axis).clone()).collect())
}

fn check_together(call: &CallInfo<'_>, at: usize, subject: &str, extent: &Dim, dim: &Dim) -> Result<(), Problem> {
    if !never_together(call, extent, dim) {
        return Ok(());
    }
    let message = format_args!("{subject} is {extent} in one operand and {dim} in `operands[{at}]`");
    Err(call.error(Code::ShapeMismatch, ParamPlace::Element("operands", at), message).into())
}

/// The extent that wins when a constant is combined with a symbol. TVM differs here between letters and the ellipsis.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Symbol,
    Constant,
}

/// Returns the extent of two axes that are combined. Of two symbolic extents it is the maximum, since one of them may
/// be 1.
fn together(a: &Dim, b: &Dim, kept: Kept) -> Dim {
    match (a.as_constant(), b.as_constant()) {
        (Some(x), Some(y)) => if x == 1 { y } else { x }.into(),
        (Some(1), None) => b.clone(),
        (None, Some(1)) => a.clone(),
        (Some(_), None) if !b.is_error() => if kept == Kept::Symbol { b } else { a }.clone(),
        (None, Some(_)) if !a.is_error() => if kept == Kept::Symbol { a } else { b }.clone(),
        _ => a.maximum(b),
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{infer, text, tuple, ty};
    use rx_base::Code;
    use rx_ir::StructInfo;

    fn einsum(equation: &str, operands: &[&str]) -> Result<StructInfo, Option<Code>> {
        infer("einsum", &[("operands", tuple(operands)), ("subscripts", text(equation))])
    }

    #[test]
    fn equations_name_the_axes_of_the_result() {
        for (equation, operands, wanted) in [
            ("ij,jk->ik", &["a b:int8", "b c:int8"][..], "a c:int8"),
            ("ii->i", &["a a:int8"], "a:int8"),
            ("ii", &["3 3:int8"], ":int8"),
            ("kj,ji", &["2 3:int8", "3 4:int8"], "4 2:int8"),
            ("...ij,...jk->...ik", &["7 1 2 3:int8", "5 3 4:int8"], "7 5 2 4:int8"),
            ("ij,jk->ik", &["?2:int8", "b c:int8"], "?2:int8"),
            (" i j -> j i ", &["2 3:?"], "3 2:?"),
            ("i,i->i", &["1:int8", "4:int8"], "4:int8"),
        ] {
            assert_eq!(einsum(equation, operands), Ok(ty(wanted)), "{equation}");
        }
    }

    #[test]
    fn impossible_equations_are_reported() {
        for (equation, operands, code) in [
            ("ij,jk->ik", &["2 3:int8"][..], Code::AttrBadValue),
            ("i1->i", &["2 3:int8"], Code::AttrBadValue),
            ("ij->k", &["2 3:int8"], Code::AttrBadValue),
            ("......->i", &["2 3:int8"], Code::AttrBadValue),
            ("ijk->i", &["2 3:int8"], Code::TensorNdimMismatch),
            ("ij,jk->ik", &["2 3:int8", "4 5:int8"], Code::ShapeMismatch),
            ("i,i->i", &["3:int8", "3:int32"], Code::DtypeMismatch),
            ("i->i", &[], Code::ArgumentType),
        ] {
            assert_eq!(einsum(equation, operands), Err(Some(code)), "{equation}");
        }
    }
}
