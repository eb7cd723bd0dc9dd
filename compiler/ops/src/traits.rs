//! The data-flow traits of an operator: facts about its result's values, the operands that are indices and the
//! axes that they index, and its layout rule.

use crate::arguments::MAX_WRITTEN_RANK;
use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace};
use crate::infer_layout::{self, LayoutRule};
use crate::values::{ValueCall, ValueRule};
use rx_base::{Diagnostic, Dim};
use rx_ir::StructInfo;

/// A rule that reports diagnostics about a call from the known values of its operands.
pub type FindingsRule = fn(&ValueCall<'_>) -> Vec<Diagnostic<ParamPlace>>;

/// The data-flow rules of an operator, as part of its schema.
#[derive(Clone, Copy, Debug)]
pub struct Traits {
    /// The operand (a tensor or a tuple of tensors) that supplies all elements of the result. Elements may be moved,
    /// copied, omitted or rounded to another dtype, but not computed.
    pub kept: Option<&'static str>,
    /// The rule that derives facts about the result's values.
    pub values: Option<ValueRule>,
    /// The rule that reports diagnostics from operand values, other than out-of-bounds accesses.
    pub findings: Option<FindingsRule>,
    /// The rule that lists a call's accesses by indices.
    pub sites: Option<fn(&CallInfo<'_>) -> Vec<Site>>,
    /// The layout rule. Without one, operands and result keep the layouts of their types.
    pub layout: Option<LayoutRule>,
}

impl Traits {
    /// An operator about whose values nothing is known and that has no index operands.
    pub const OPAQUE: Traits = Traits { kept: None, values: None, findings: None, sites: None, layout: None };

    /// Declares that all elements of the result come from this operand.
    pub const fn keeping(self, operand: &'static str) -> Traits {
        Traits { kept: Some(operand), ..self }
    }

    /// Sets the rule for the values of the result.
    pub const fn computing(self, rule: ValueRule) -> Traits {
        Traits { values: Some(rule), ..self }
    }

    /// Sets the rule that reports diagnostics from operand values.
    pub const fn finding(self, rule: FindingsRule) -> Traits {
        Traits { findings: Some(rule), ..self }
    }

    /// Sets the rule that lists accesses by indices.
    pub const fn indexing(self, sites: fn(&CallInfo<'_>) -> Vec<Site>) -> Traits {
        Traits { sites: Some(sites), ..self }
    }

    /// Sets the layout rule of an operator that follows the layouts of its operands.
    pub const fn laid_out(self, rule: infer_layout::Rule) -> Traits {
        self.laid_out_as(&[], rule)
    }

    /// Sets the layout rule of an operator whose layouts a program can request, by the names of its layout attributes.
    pub const fn laid_out_as(self, choices: &'static [&'static str], rule: infer_layout::Rule) -> Traits {
        Traits { layout: Some(LayoutRule { choices, rule }), ..self }
    }
}

/// An access by indices along one axis. For example, `take(data, indices, axis=1)` has one site: all of `indices` along
/// axis 1 of `data`.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The parameter that receives the indices.
    pub indices: &'static str,
    /// The part of the indices that applies to this axis.
    pub part: Part,
    /// The parameter that receives the indexed tensor; `None` if the indices refer to an axis of the result.
    pub data: Option<&'static str>,
    /// The indexed axis.
    pub axis: usize,
    /// The extent of the axis, if known.
    pub extent: Option<Dim>,
    /// Whether an index from `-extent` to -1 counts from the end.
    pub from_end: bool,
    /// Whether the operator defines the result of an index out of bounds.
    pub guarded: bool,
}

/// The part of an index operand that applies to one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole operand.
    Whole,
    /// One field of a tuple of tensors.
    Element(usize),
    /// One position along the last axis: one component of each index tuple.
    Column(usize),
}

/// Returns the extent of an axis of the tensor passed for `data`.
fn extent(call: &CallInfo<'_>, data: &str, axis: usize) -> Option<Dim> {
    let tensor = call.ty(data).as_tensor()?;
    tensor.shape.dims()?.get(axis).filter(|dim| !dim.is_error()).cloned()
}

/// Returns the access of all of `indices` along the axis that attribute `axis` names (0 if the attribute is absent).
pub(crate) fn along_axis(call: &CallInfo<'_>, indices: &'static str, data: &'static str) -> Site {
    let ndim = call.ty(data).as_tensor().and_then(|tensor| tensor.shape.ndim());
    let axis = ndim.and_then(|ndim| normalize_axis(call, "axis", ndim, call.int("axis").unwrap_or(0)).ok());
    Site {
        indices,
        part: Part::Whole,
        data: Some(data),
        axis: axis.unwrap_or(0),
        extent: axis.and_then(|axis| extent(call, data, axis)),
        from_end: false,
        guarded: false,
    }
}

/// Returns the accesses of index tuples along the last axis of `indices`, whose component 0 applies to axis `first` of
/// `data`.
pub(crate) fn by_tuples(call: &CallInfo<'_>, first: usize) -> Vec<Site> {
    let dims = call.ty("indices").as_tensor().and_then(|tensor| tensor.shape.dims());
    let width = dims.and_then(|dims| usize::try_from(dims.last()?.as_constant()?).ok());
    let ndim = call.ty("data").as_tensor().and_then(|tensor| tensor.shape.ndim());
    let columns =
        width.zip(ndim).map_or(0, |(width, ndim)| width.min(ndim.saturating_sub(first)).min(MAX_WRITTEN_RANK));
    let site = |column: usize| Site {
        indices: "indices",
        part: Part::Column(column),
        data: Some("data"),
        axis: first + column,
        extent: extent(call, "data", first + column),
        from_end: false,
        guarded: false,
    };
    match width.is_some() && ndim.is_some() {
        true => (0..columns).map(site).collect(),
        false => vec![Site { part: Part::Whole, axis: first, extent: None, ..site(0) }],
    }
}

/// Returns the accesses of a tuple with one index tensor for each leading axis of `data`.
pub(crate) fn by_axis(call: &CallInfo<'_>, from_end: bool) -> Vec<Site> {
    let count = match call.ty("indices") {
        StructInfo::Tuple(fields) => fields.len(),
        ty => usize::from(ty.as_tensor().is_some()),
    };
    let site = |axis: usize| Site {
        indices: "indices",
        part: Part::Element(axis),
        data: Some("data"),
        axis,
        extent: extent(call, "data", axis),
        from_end,
        guarded: false,
    };
    (0..count).map(site).collect()
}

#[cfg(test)]
mod tests {
    use crate::schema::ParamKind;

    #[test]
    fn kept_operand_is_a_tensor_parameter() {
        let kept: Vec<(&str, &str)> =
            crate::all().filter_map(|schema| Some((schema.name, schema.traits.kept?))).collect();
        assert!(kept.contains(&("concat", "tensors")) && kept.contains(&("strided_slice", "x")));
        for (operator, operand) in kept {
            let schema = crate::find(operator.into()).expect("it is in the registry");
            let param = schema.params.iter().find(|param| param.name == operand).expect("it has the operand");
            assert!(matches!(param.kind, ParamKind::Tensor | ParamKind::Tensors | ParamKind::Any), "{operator}");
        }
    }
}
