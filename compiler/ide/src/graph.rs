//! The dataflow graph of a Relax function.
//!
//! There is a node for each call (also for a call nested in another call), constant, bound tuple and other value, for
//! each `if` (after the nodes of its branches), and for each nested function, whose own graph is shown at a position
//! inside it. There is no node for an alias of a value or of a tuple's field (`b = a`, `b = t[0]`): its uses lead to
//! the original value. A tuple written as an argument has no node either: edges lead from its fields to the call. For
//! example:
//!
//! ```text
//! y = R.matmul(x, w)
//! z = R.nn.relu(R.add(y, b))
//!
//! x, w -> matmul;  matmul, b -> add;  add -> nn.relu
//! ```
//!
//! A statement with an error or a warning always has a node. Of a large function, only the segments around the position
//! are read.

mod builder;
mod labels;

use builder::Builder;
use rx_base::{Diagnostic, Name, Severity, Span};
use rx_db::FileView;
use rx_ir::StructInfo;
use rx_syntax::document::{FunctionKind, ItemKind};
use std::ops::Range;

/// The maximal number of nodes of a graph.
pub const MOST_NODES: usize = 400;

/// The number of bindings that are read before and after the position. It exceeds the number of nodes, because some
/// bindings have none.
const READ_AROUND: usize = 2 * MOST_NODES;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// A parameter of the function.
    Parameter,
    /// A call of an operator.
    Operator,
    /// A call of a function: of the module, external, or a value.
    Call,
    /// A constant tensor in the text.
    Constant,
    /// Any other value: a tuple, a shape, an `if`, a function, an expression that the check could not analyze.
    Value,
    /// The return value of the function.
    Output,
}

impl NodeKind {
    /// Returns its name in the JSON response.
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
    /// The kind.
    pub kind: NodeKind,
    /// The name of the operator or of the called function; otherwise the source text.
    pub label: String,
    /// The variable that it is bound to.
    pub name: Option<Name>,
    /// Its type, if known.
    pub ty: Option<StructInfo>,
    /// The variable, or the expression if there is none, in bytes of the file.
    pub span: Span,
    /// The number of errors in its statement.
    pub errors: usize,
    /// The number of warnings in its statement.
    pub warnings: usize,
    /// The messages of these errors and warnings.
    pub notes: Vec<String>,
    /// The cost of the call.
    pub cost: Option<String>,
    /// Whether it is in a dataflow block.
    pub dataflow: bool,
}

/// A use of one value as an operand of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    /// The index of the node that produces the value.
    pub from: usize,
    /// The index of the node that uses it.
    pub to: usize,
    /// The short form of the value's type. For an operand of an `if`, preceded by `condition`, `then` or `else`.
    pub label: Option<String>,
}

/// The graph of a function, or the part of it around a position.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The name of the function.
    pub function: Name,
    /// The name in its header, in bytes of the file.
    pub span: Span,
    /// The number of nodes that are not shown. For statements far from the position, each binding counts as one.
    pub hidden: usize,
    /// The nodes, in the order of the text.
    pub nodes: Vec<GraphNode>,
    /// The edges.
    pub edges: Vec<GraphEdge>,
}

/// Returns the graph of the innermost Relax function that contains the byte `offset`. `diagnostics` are the diagnostics
/// of the file as they are shown to the user.
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

/// Returns the segments of item `item` that are read for a position in segment `at`, and the number of bindings in the
/// others.
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
    /// Its start, in bytes of the file.
    at: u32,
    /// The start of its statement, in bytes of the file.
    statement: u32,
    diagnostic: &'d Diagnostic<Span>,
}

/// Returns the errors and warnings in these segments.
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
