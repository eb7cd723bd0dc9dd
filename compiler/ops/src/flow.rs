//! How values go through an operator: which elements its result holds, which operands are indices into what, and how all of
//! them lie.

use crate::arguments::MAX_WRITTEN_RANK;
use crate::axes::normalize_axis;
use crate::call::{CallInfo, ParamPlace};
use crate::relayout::{self, LayoutRule};
use crate::values::{ValueCall, ValueRule};
use rx_base::{Diagnostic, Dim};
use rx_ir::StructInfo;

/// What the operands' values say of a call.
pub type FindingsRule = fn(&ValueCall<'_>) -> Vec<Diagnostic<ParamPlace>>;

/// What an operator does with elements: a part of its schema.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The operand, tensors or a tuple of them, whose elements are all that the result holds: moved, copied or left out,
    /// and at most rounded to another dtype.
    pub kept: Option<&'static str>,
    /// What is known of the result's values.
    pub values: Option<ValueRule>,
    /// What the operands' values say of a call, accesses aside.
    pub findings: Option<FindingsRule>,
    /// The accesses by indices that a call makes.
    pub sites: Option<fn(&CallInfo<'_>) -> Vec<Site>>,
    /// How the result lies where operands lie otherwise than their types say; without it they lie as typed.
    pub layout: Option<LayoutRule>,
}

impl Flow {
    /// Nothing is known of the result, and nothing is an index.
    pub const OPAQUE: Flow = Flow { kept: None, values: None, findings: None, sites: None, layout: None };

    /// The result holds elements of this operand and no others.
    pub const fn keeping(self, operand: &'static str) -> Flow {
        Flow { kept: Some(operand), ..self }
    }

    /// The result's values follow this rule.
    pub const fn computing(self, rule: ValueRule) -> Flow {
        Flow { values: Some(rule), ..self }
    }

    /// Operands' values may make a call wrong, or worth a hint.
    pub const fn finding(self, rule: FindingsRule) -> Flow {
        Flow { findings: Some(rule), ..self }
    }

    /// A call accesses elements by indices.
    pub const fn indexing(self, sites: fn(&CallInfo<'_>) -> Vec<Site>) -> Flow {
        Flow { sites: Some(sites), ..self }
    }

    /// Operands may lie otherwise than their types say: this rule says how the result lies then.
    pub const fn laid_out(self, rule: relayout::Rule) -> Flow {
        self.laid_out_as(&[], rule)
    }

    /// As [`Flow::laid_out`], of an operator that can be asked for layouts, by the attributes that say them.
    pub const fn laid_out_as(self, choices: &'static [&'static str], rule: relayout::Rule) -> Flow {
        Flow { layout: Some(LayoutRule { choices, rule }), ..self }
    }
}

/// An access by indices along one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// The parameter that takes the indices.
    pub indices: &'static str,
    /// The part of them that counts along this axis.
    pub part: Part,
    /// The parameter that takes what is indexed; an axis of the result where there is none.
    pub data: Option<&'static str>,
    /// The axis.
    pub axis: usize,
    /// Its extent, where known.
    pub extent: Option<Dim>,
    /// Whether an index from `-extent` to -1 counts from the end.
    pub from_end: bool,
    /// Whether the operator gives an index out of bounds a meaning.
    pub guarded: bool,
}

/// A part of an operand of indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A field of a tuple of tensors.
    Element(usize),
    /// A place along the last axis: a member of each index tuple.
    Column(usize),
}

/// The extent of an axis of the tensor passed for `data`.
fn extent(call: &CallInfo<'_>, data: &str, axis: usize) -> Option<Dim> {
    let tensor = call.ty(data).as_tensor()?;
    tensor.shape.dims()?.get(axis).filter(|dim| !dim.is_error()).cloned()
}

/// All of `indices` along the axis that attribute `axis` names, 0 where it is left out.
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

/// Index tuples along the last axis of `indices`, the first of them for axis `first` of `data`.
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

/// One tensor of indices for each leading axis of `data`.
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
    fn what_is_kept_is_an_operand() {
        let kept: Vec<(&str, &str)> =
            crate::all().filter_map(|schema| Some((schema.name, schema.flow.kept?))).collect();
        assert!(kept.contains(&("concat", "tensors")) && kept.contains(&("strided_slice", "x")));
        for (operator, operand) in kept {
            let schema = crate::find(operator.into()).expect("it is in the registry");
            let param = schema.params.iter().find(|param| param.name == operand).expect("it has the operand");
            assert!(matches!(param.kind, ParamKind::Tensor | ParamKind::Tensors | ParamKind::Any), "{operator}");
        }
    }
}
