//! Traces the origin of a dim, rank or dtype of a value: a chain of steps back to the place that determined it.
//!
//! ```text
//! y = R.permute_dims(x)        # why is axis 0 of y 4?
//! → R.permute_dims: axis 0 is axis 1 of `x`
//! → parameter `x: R.Tensor((n, 4), dtype="float32")` of `main`
//! ```
//!
//! The chain runs over typed bodies, which are recorded again segment by segment, only where the chain passes. The
//! operator's rule determines the operands that a call's result depends on ([`rx_ops::provenance`]). This module
//! follows the chain between calls: through variables, tuples, branches, functions of the module, closures,
//! `match_cast`, annotations and symbolic dims.

mod calls;
mod descriptions;
mod follow;
mod spans;
mod symbols;
mod target;
mod view;

pub(crate) use calls::describe_operator;
pub(crate) use descriptions::describe_part;
pub(crate) use spans::{annotated_dim, argument_span};

use crate::function::FunctionCheck;
use rx_base::Name;
use rx_context::{FileContext, ItemPlace};
use rx_ir::{FunctionSignature, Signature, StructInfo};
use rx_ops::provenance::{Facet, Part};
use rx_syntax::Segments;
use std::str::FromStr;
use std::sync::Arc;

/// The maximal number of steps of a chain.
pub const MAX_STEPS: usize = 1_000_000;

/// The maximal number of facets traced if none is selected: a tuple of weights has thousands.
const MAX_FACETS: usize = 64;

/// The queries of a chain about the module.
pub trait World {
    /// Returns the Relax function `name`, checked.
    fn function(&self, name: Name) -> Option<FunctionText>;
    /// Returns the signature of the item `name`.
    fn signature(&self, name: Name) -> Option<Arc<Signature>>;
    /// Returns the operator `name`, including declared ones.
    fn operator(&self, name: Name) -> Option<&'static rx_ops::Schema>;
    /// Returns the maximal length of a chain. A chain with a smaller limit than [`MAX_STEPS`] has no details.
    fn most_steps(&self) -> usize {
        MAX_STEPS
    }
}

/// A Relax function: its text and the result of its check.
#[derive(Clone)]
pub struct FunctionText {
    /// The segments, the header first.
    pub segments: Segments,
    /// The result of the check of these segments.
    pub check: Arc<FunctionCheck>,
    /// The signature of the function.
    pub signature: FunctionSignature,
    /// The context of the file.
    pub file: Arc<FileContext>,
}

/// A place in one of the module's functions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TracePlace {
    /// The function.
    pub function: Name,
    /// The place, in terms of the function's segments.
    pub place: ItemPlace,
}

/// The part of a value to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// All dims, dtype and rank; at a dim of an annotation, only that dim.
    Everything,
    /// An axis of the field with this path; the path is empty for a value that is not a tuple. Negative axes count
    /// from the end.
    Axis(Vec<usize>, i64),
    /// The dtype of a field.
    Dtype(Vec<usize>),
    /// The rank of a field.
    Rank(Vec<usize>),
}

/// Parses an axis, `dtype` or `rank`, optionally after the indices of tuple fields, such as `1.dtype`.
impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Asked, String> {
        let wrong = || format!("`{text}` is no axis, `dtype` or `rank`, nor one of a field, such as `1.dtype`");
        let mut parts: Vec<&str> = text.split('.').collect();
        let last = parts.pop().ok_or_else(wrong)?;
        let path: Vec<usize> = parts.iter().map(|at| at.parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
        Ok(match last {
            "dtype" => Asked::Dtype(path),
            "rank" => Asked::Rank(path),
            axis => Asked::Axis(path, axis.parse().map_err(|_| wrong())?),
        })
    }
}

/// The answer for one position.
#[derive(Clone, Debug, PartialEq)]
pub struct Why<P = TracePlace> {
    /// A description of the value: `` `lv2` ``, `the result of R.nn.relu`.
    pub subject: String,
    /// The place of the value.
    pub place: P,
    /// The struct info of the value.
    pub ty: StructInfo,
    /// One chain per part.
    pub traces: Vec<Trace<P>>,
}

/// The explanation of one part of a value: the steps from the value back to the place that determined the part.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace<P = TracePlace> {
    /// The part of the value.
    pub facet: Facet,
    /// A description of the part: `axis 2`.
    pub part: String,
    /// The value of the part: `112`.
    pub fact: String,
    /// The steps back from the value; the last one determined the part.
    pub steps: Vec<Step<P>>,
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// A call of an operator.
    Operator,
    /// A call of a function; the chain continues in its body.
    Call,
    /// A parameter of a called function; the chain continues at the argument.
    Argument,
    /// An `if`; the chain continues in a branch.
    Branch,
    /// A `match_cast` to a type that was known.
    Cast,
    /// End: the declared type of a parameter.
    Parameter,
    /// End: an attribute of a call.
    Attribute,
    /// End: a constant tensor.
    Constant,
    /// End: a shape or scalar literal.
    Literal,
    /// End: the type of a `match_cast`, checked at run time.
    MatchCast,
    /// End: a type that a call declares, such as the `out_ty` of `call_tir`.
    OutTy,
    /// End: an annotation that is more precise than the inferred type.
    Annotation,
    /// End: the declared return type of a function whose body is not followed.
    Declared,
    /// End: a symbolic dim, at the place where it gets its value.
    Symbol,
    /// End: the operator's rule alone.
    Rule,
    /// End: the origin is unknown.
    Unknown,
}

impl StepKind {
    /// Whether a chain ends with this kind of step.
    pub fn is_end(self) -> bool {
        !matches!(self, StepKind::Operator | StepKind::Call | StepKind::Argument | StepKind::Branch | StepKind::Cast)
    }

    /// Returns the name in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Operator => "operator",
            StepKind::Call => "call",
            StepKind::Argument => "argument",
            StepKind::Branch => "branch",
            StepKind::Cast => "cast",
            StepKind::Parameter => "parameter",
            StepKind::Attribute => "attribute",
            StepKind::Constant => "constant",
            StepKind::Literal => "literal",
            StepKind::MatchCast => "match_cast",
            StepKind::OutTy => "out_ty",
            StepKind::Annotation => "annotation",
            StepKind::Declared => "declared",
            StepKind::Symbol => "symbol",
            StepKind::Rule => "rule",
            StepKind::Unknown => "unknown",
        }
    }
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<P = TracePlace> {
    /// The kind of step.
    pub kind: StepKind,
    /// The place of the step.
    pub place: P,
    /// The variable that the value is bound to.
    pub variable: Option<Name>,
    /// The operator or function.
    pub callee: Option<Name>,
    /// The part of this value: `axis 2`.
    pub part: String,
    /// The value of the part.
    pub fact: String,
    /// The formula with the numbers filled in.
    pub formula: Option<String>,
    /// The text for users: `` R.nn.relu keeps axis 2 of `x` ``.
    pub text: String,
    /// Whether the part is equal to that of the next step.
    pub unchanged: bool,
    /// Other facts that the part depends on.
    pub details: Vec<Detail<P>>,
}

/// A fact that a step depends on in addition to the chain: an attribute, or a dim of another operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail<P = TracePlace> {
    /// The text for users: `` kernel 7 = axis 2 of `w`, parameter ``.
    pub text: String,
    /// The place of the fact; none for a default.
    pub place: Option<P>,
}

impl Why {
    /// Translates every place; a place without translation becomes the default.
    pub fn map_places<Q: Default>(self, of: &dyn Fn(&TracePlace) -> Option<Q>) -> Why<Q> {
        let detail = |detail: Detail| Detail { text: detail.text, place: detail.place.as_ref().and_then(of) };
        let step = |step: Step| Step {
            kind: step.kind,
            place: of(&step.place).unwrap_or_default(),
            variable: step.variable,
            callee: step.callee,
            part: step.part,
            fact: step.fact,
            formula: step.formula,
            text: step.text,
            unchanged: step.unchanged,
            details: step.details.into_iter().map(detail).collect(),
        };
        let trace = |trace: Trace| Trace {
            facet: trace.facet,
            part: trace.part,
            fact: trace.fact,
            steps: trace.steps.into_iter().map(step).collect(),
        };
        Why {
            subject: self.subject,
            place: of(&self.place).unwrap_or_default(),
            ty: self.ty,
            traces: self.traces.into_iter().map(trace).collect(),
        }
    }
}

/// Traces the value at byte `offset` of segment `segment` of function `name`. With `line_only`, traces the value that
/// the statement at `offset` binds, wherever in it the offset is.
pub fn why(world: &dyn World, name: Name, segment: u32, offset: u32, line_only: bool, asked: &Asked) -> Option<Why> {
    let mut tracer = follow::Tracer::new(world, name)?;
    let target = target::at(&mut tracer, segment, offset, line_only)?;
    let facets = facets(&target.expr.ty, asked, target.facet.as_ref());
    let traces = facets.into_iter().filter_map(|facet| tracer.trace(&target, facet)).collect();
    Some(Why { subject: target.subject, place: target.place, ty: target.expr.ty, traces })
}

/// Returns the facets of a type that are asked for.
fn facets(ty: &StructInfo, asked: &Asked, pointed: Option<&Facet>) -> Vec<Facet> {
    let at = |path: &[usize], part| Facet { path: path.to_vec(), part };
    match (asked, pointed) {
        (Asked::Everything, Some(facet)) => vec![facet.clone()],
        (Asked::Everything, None) => {
            let mut found = Vec::new();
            every_facet(ty, &mut Vec::new(), &mut found);
            found
        }
        (Asked::Axis(path, axis), _) => {
            let rank = match at(path, Part::Rank).of(ty) {
                Some(rx_ops::provenance::Fact::Rank(rank)) => rank,
                _ => return vec![at(path, Part::Value)],
            };
            let axis = if *axis < 0 { i64::try_from(rank).unwrap_or(i64::MAX).saturating_add(*axis) } else { *axis };
            usize::try_from(axis).map(|axis| at(path, Part::Dim(axis))).into_iter().collect()
        }
        (Asked::Dtype(path), _) => vec![at(path, Part::Dtype)],
        (Asked::Rank(path), _) => vec![at(path, Part::Rank)],
    }
}

fn every_facet(ty: &StructInfo, path: &mut Vec<usize>, found: &mut Vec<Facet>) {
    let known = |part| Facet::of_part(part).of(ty).is_some();
    let mut add = |part| {
        if found.len() < MAX_FACETS {
            found.push(Facet { path: path.clone(), part });
        }
    };
    match ty {
        StructInfo::Tuple(fields) => {
            for (at, field) in fields.iter().enumerate().take(MAX_FACETS) {
                path.push(at);
                every_facet(field, path, found);
                path.pop();
            }
        }
        StructInfo::Prim(_) => add(if known(Part::Value) { Part::Value } else { Part::Dtype }),
        _ => {
            (0..MAX_FACETS).map(Part::Dim).take_while(|part| known(*part)).for_each(&mut add);
            let dims = known(Part::Dim(0));
            for part in [Part::Rank, Part::Dtype] {
                if known(part) && !(dims && part == Part::Rank) {
                    add(part);
                }
            }
        }
    }
}
