//! Where a dim, rank or dtype of a value comes from: a chain of steps back to what fixed it.
//!
//! The chain runs over typed bodies, which are recorded again segment by segment and only where it passes. What a call's
//! result depends on is read off the operator's rule ([`rx_ops::provenance`]); what this module adds is the way between
//! calls: variables, tuples, branches, functions of the module and closures, `match_cast`, annotations, symbolic dims.

mod calls;
mod follow;
mod symbols;
mod target;
mod view;
mod words;
mod written;

pub(crate) use calls::operator_words;
pub(crate) use words::part_words;

use crate::function::FunctionCheck;
use rx_base::Name;
use rx_context::{FileContext, ItemPlace};
use rx_ir::{FunctionSignature, Signature, StructInfo};
use rx_ops::provenance::{Facet, Part};
use rx_syntax::Segment;
use std::str::FromStr;
use std::sync::Arc;

/// Steps of one chain; what is farther away is not followed.
pub const MAX_STEPS: usize = 1_000_000;

/// Facets traced at once where none is asked for: a tuple of weights has thousands.
const MAX_FACETS: usize = 64;

/// What a chain asks of the module.
pub trait World {
    /// The Relax function called `name`, checked.
    fn function(&self, name: Name) -> Option<FunctionText>;
    /// What callers see of the item called `name`.
    fn signature(&self, name: Name) -> Option<Arc<Signature>>;
    /// The operator called `name`, declared ones included.
    fn operator(&self, name: Name) -> Option<&'static rx_ops::Schema>;
    /// How far a chain is followed at most; one that is cut short tells no facts beside it.
    fn most_steps(&self) -> usize {
        MAX_STEPS
    }
}

/// A Relax function: its text and what its check found.
#[derive(Clone)]
pub struct FunctionText {
    /// Its segments, the header first.
    pub segments: Arc<[Arc<Segment>]>,
    /// What the check of these segments found.
    pub check: Arc<FunctionCheck>,
    /// Its parameters.
    pub signature: FunctionSignature,
    /// What the file says to it.
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

/// What is asked of the value at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Every dim, briefly; of a dim of an annotation, that one.
    Everything,
    /// One part of a field of a tuple; the path is empty for a value that is none. Negative axes count from the end.
    Axis(Vec<usize>, i64),
    /// The dtype of a field.
    Dtype(Vec<usize>),
    /// The rank of a field.
    Rank(Vec<usize>),
}

/// An axis, `dtype` or `rank`; of a field of a tuple, behind its index and a dot.
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
    /// What the value is called: `` `lv2` ``, `the result of R.nn.relu`.
    pub subject: String,
    /// Where it stands.
    pub place: P,
    /// Its struct info.
    pub ty: StructInfo,
    /// One chain per part asked for.
    pub traces: Vec<Trace<P>>,
}

/// The chain of one part of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace<P = TracePlace> {
    /// The part of the value.
    pub facet: Facet,
    /// `axis 2`.
    pub part: String,
    /// What it is: `112`.
    pub fact: String,
    /// From the value back; the last is what fixed the part.
    pub steps: Vec<Step<P>>,
}

/// What kind of thing a step goes through or ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// A call of an operator.
    Operator,
    /// A call of a function: the chain goes on in its body.
    Call,
    /// A parameter of a called function: the chain goes on at the argument.
    Argument,
    /// An `if`: the chain goes on in a branch.
    Branch,
    /// A `match_cast` that says what was known.
    Cast,
    /// End: a parameter's declared type.
    Parameter,
    /// End: an attribute of a call.
    Attribute,
    /// End: a constant tensor.
    Constant,
    /// End: a shape or scalar written in the text.
    Literal,
    /// End: the type of a `match_cast`, checked when the program runs.
    MatchCast,
    /// End: a type a call declares, `out_ty` of `call_tir` for one.
    OutTy,
    /// End: an annotation that says more than was inferred.
    Annotation,
    /// End: the declared type of a function that is not looked into.
    Declared,
    /// End: a symbolic dim, where it gets its value.
    Symbol,
    /// End: the operator alone decides.
    Rule,
    /// End: nothing says where it comes from.
    Unknown,
}

impl StepKind {
    /// Whether a chain ends here.
    pub fn is_end(self) -> bool {
        !matches!(self, StepKind::Operator | StepKind::Call | StepKind::Argument | StepKind::Branch | StepKind::Cast)
    }

    /// As JSON spells it.
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
    /// What it is.
    pub kind: StepKind,
    /// Where.
    pub place: P,
    /// The variable the value is bound to.
    pub variable: Option<Name>,
    /// The operator or function.
    pub callee: Option<Name>,
    /// The part of this value: `axis 2`.
    pub part: String,
    /// What it is here.
    pub fact: String,
    /// The formula with the numbers put in.
    pub formula: Option<String>,
    /// Said to people: `` R.nn.relu keeps axis 2 of `x` ``.
    pub text: String,
    /// Whether it is the next step's, unchanged.
    pub unchanged: bool,
    /// Other facts that had a say.
    pub details: Vec<Detail<P>>,
}

/// A fact beside the chain: an attribute, a dim of another operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail<P = TracePlace> {
    /// `` kernel 7 = axis 2 of `w`, parameter ``.
    pub text: String,
    /// Where it stands; of a default, nowhere.
    pub place: Option<P>,
}

impl Why {
    /// The same with every place translated; one that has no translation becomes the default.
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

/// Traces the value at byte `offset` of segment `segment` of function `name`. With `line_only`, the value bound by the
/// statement there, whatever the offset.
pub fn why(world: &dyn World, name: Name, segment: u32, offset: u32, line_only: bool, asked: &Asked) -> Option<Why> {
    let mut tracer = follow::Tracer::new(world, name)?;
    let target = target::at(&mut tracer, segment, offset, line_only)?;
    let facets = facets(&target.expr.ty, asked, target.facet.as_ref());
    let traces = facets.into_iter().filter_map(|facet| tracer.trace(&target, facet)).collect();
    Some(Why { subject: target.subject, place: target.place, ty: target.expr.ty, traces })
}

/// The facets of a type that are meant.
fn facets(ty: &StructInfo, asked: &Asked, written: Option<&Facet>) -> Vec<Facet> {
    let at = |path: &[usize], part| Facet { path: path.to_vec(), part };
    match (asked, written) {
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
