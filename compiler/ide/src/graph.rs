//! A Relax function as the graph of its values.
//!
//! What is drawn: a node for each call, however deep it stands in another; for constants, tuples that are bound, and other
//! values; for each `if`, behind both its branches; for each nested function, whose own graph is that of a place in it. What is not:
//! names for a value or for a tuple's field (`b = a`, `b = t[0]`), which lead to what they name, and tuples written as an
//! argument, whose fields lead to the call. A statement with a mistake is always drawn.
//!
//! Of a large function only the segments around the place are read.

mod builder;
mod labels;

use builder::Builder;
use rx_base::{Diagnostic, Name, Severity, Span};
use rx_db::FileView;
use rx_ir::StructInfo;
use rx_syntax::document::{FunctionKind, ItemKind};
use std::ops::Range;

/// The most nodes of a graph.
pub const MOST_NODES: usize = 400;

/// How many bindings are read on either side of the place: more than nodes are shown, since some bindings have none.
const READ_AROUND: usize = 2 * MOST_NODES;

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A parameter of the function.
    Parameter,
    /// A call of an operator.
    Operator,
    /// A call of a function: of the module, external, or a value.
    Call,
    /// A tensor that is written down.
    Constant,
    /// Any other value: a tuple, a shape, an `if`, a function, what could not be read.
    Value,
    /// What the function returns.
    Output,
}

impl NodeKind {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            NodeKind::Parameter => "parameter",
            NodeKind::Operator => "operator",
            NodeKind::Call => "call",
            NodeKind::Constant => "constant",
            NodeKind::Value => "value",
            NodeKind::Output => "output",
        }
    }
}

/// A value of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphNode {
    /// What it stands for.
    pub kind: NodeKind,
    /// The operator, the function that is called, or the text.
    pub label: String,
    /// The variable it is bound to.
    pub name: Option<Name>,
    /// What is known of it.
    pub ty: Option<StructInfo>,
    /// The variable, or the expression where there is none; in bytes of the file.
    pub span: Span,
    /// How many errors stand in its statement.
    pub errors: usize,
    /// How many warnings.
    pub warnings: usize,
    /// What they say.
    pub notes: Vec<String>,
    /// What the call costs.
    pub cost: Option<String>,
    /// Whether it stands in a dataflow block.
    pub dataflow: bool,
}

/// A value that another is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// The index of the node that gives the value.
    pub from: usize,
    /// The index of the node that takes it.
    pub to: usize,
    /// The value's type, short; behind `condition`, `then`, `else` at an `if`.
    pub label: Option<String>,
}

/// A function, or the part of it around a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Its name.
    pub function: Name,
    /// The name in its header, in bytes of the file.
    pub span: Span,
    /// How many nodes are left out; of statements far from the place each binding counts as one.
    pub hidden: usize,
    /// The nodes, in the order of the text.
    pub nodes: Vec<GraphNode>,
    /// The edges between them.
    pub edges: Vec<GraphEdge>,
}

/// The graph of the innermost Relax function around byte `offset`. `diagnostics` are the file's mistakes, as they are shown.
pub fn graph(view: &FileView<'_>, offset: usize, diagnostics: &[Diagnostic<Span>]) -> Option<Graph> {
    let location = view.document().locate(offset)?;
    let item = view.document().items().get(location.item)?;
    if item.kind != ItemKind::Function(FunctionKind::Relax) {
        return None;
    }
    let at = u32::try_from(offset).ok()?;
    let header = item.segments.first()?.function_name()?;
    let base = u32::try_from(view.document().item_start(location.item)).ok()?;
    let (segments, mut hidden) = window(view, location.item, location.segment)?;
    let mistakes = mistakes(view, location.item, &segments, diagnostics);
    let mut builder = Builder::new(view, location.item, &mistakes);
    let nested = location.segment.checked_sub(1).and_then(|_| builder.nested(location.segment, at));
    let (function, span) = match nested {
        Some(found) => {
            hidden = 0;
            found
        }
        None => {
            segments.for_each(|segment| builder.segment(segment));
            (item.name?, header.shift(base))
        }
    };
    let (nodes, edges, left_out) = builder.finish(at);
    Some(Graph { function, span, hidden: hidden + left_out, nodes, edges })
}

/// The segments of item `item` that are read for a place in segment `at`, and how many rows the others have.
fn window(view: &FileView<'_>, item: usize, at: usize) -> Option<(Range<usize>, usize)> {
    let check = view.check(item)?;
    let rows = |segment: usize| check.segments.get(segment).map_or(0, |result| result.rows.len());
    let count = check.segments.len();
    let (mut start, mut end) = (at.min(count.saturating_sub(1)), (at + 1).min(count));
    let (mut before, mut behind) = (0, 0);
    while start > 0 && before < READ_AROUND {
        start -= 1;
        before += rows(start);
    }
    while end < count && behind < READ_AROUND {
        behind += rows(end);
        end += 1;
    }
    let hidden = (0..start).chain(end..count).map(rows).sum();
    Some((start..end, hidden))
}

/// An error or warning in a statement of the function.
pub(super) struct Mistake<'d> {
    /// Where it stands, in bytes of the file.
    at: u32,
    /// Where its statement starts.
    statement: u32,
    diagnostic: &'d Diagnostic<Span>,
}

/// The errors and warnings that stand in these segments.
fn mistakes<'d>(
    view: &FileView<'_>,
    item: usize,
    segments: &Range<usize>,
    diagnostics: &'d [Diagnostic<Span>],
) -> Vec<Mistake<'d>> {
    let document = view.document();
    let (start, end) = (document.segment_start(item, segments.start), document.segment_start(item, segments.end));
    let inside = |it: &&Diagnostic<Span>| {
        matches!(it.severity, Severity::Error | Severity::Warning)
            && (start..end).contains(&(it.primary.start as usize))
    };
    let place = |diagnostic: &'d Diagnostic<Span>| {
        let at = diagnostic.primary.start;
        let location = document.locate(at as usize)?;
        let segment = document.segment(location)?;
        let (_, statement) = segment.statement_before(u32::try_from(location.offset).ok()?)?;
        let base = u32::try_from(document.segment_start(location.item, location.segment)).ok()?;
        Some(Mistake { at, statement: base + statement.span.start, diagnostic })
    };
    diagnostics.iter().filter(inside).filter_map(place).collect()
}
