//! Commands that are answered from the database: `rx.why` (the origin of a dim), `rx.annotate` (write inferred types),
//! `rx.graph` (a function as a graph), `rx.syntaxTree`.

mod graph;

use crate::lsp::{Point, Uri, actions, edits};
use crate::reads::Subject;
use rx_base::Span;
use rx_db::{Asked, Detail, Step, Trace, Why};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::ls_types as proto;

/// Explains the origin of a dim, a rank or a dtype.
pub const WHY: &str = "rx.why";
/// Writes inferred types into the text.
pub const ANNOTATE: &str = "rx.annotate";
/// Shows the syntax tree.
pub const SYNTAX_TREE: &str = "rx.syntaxTree";
/// Returns a function as a graph of its values.
pub const GRAPH: &str = "rx.graph";

/// A command about a document, parsed from its arguments (`docs/lsp-extensions.md`).
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `rx.why`.
    Why(Uri, Point, Asked),
    /// `rx.annotate`: of the function at the position, or of all functions.
    Annotate(Uri, Option<Point>),
    /// `rx.syntaxTree`: of the range, or of the whole document.
    SyntaxTree(Uri, Option<(Point, Point)>),
    /// `rx.graph`: of the function at the position.
    Graph(Uri, Point),
}

impl Command {
    /// Returns the document that the command is about.
    pub fn uri(&self) -> &Uri {
        match self {
            Command::Why(uri, ..)
            | Command::Annotate(uri, _)
            | Command::SyntaxTree(uri, _)
            | Command::Graph(uri, _) => uri,
        }
    }

    /// Parses a command. `None` if it is not one of these commands.
    ///
    /// # Errors
    /// The invalid argument: a sentence for the client's log.
    pub fn read(params: &proto::ExecuteCommandParams) -> Option<Result<Command, &'static str>> {
        let mut arguments = params.arguments.iter();
        let mut next = || arguments.next().cloned().unwrap_or_default();
        match params.command.as_str() {
            WHY => Some(why_arguments(next(), next(), next())),
            ANNOTATE => Some(annotate_arguments(next(), next())),
            SYNTAX_TREE => Some(syntax_tree_arguments(next(), next())),
            GRAPH => Some(graph_arguments(next(), next())),
            _ => None,
        }
    }
}

fn why_arguments(uri: Value, position: Value, part: Value) -> Result<Command, &'static str> {
    let uri = Uri::deserialize(uri).map_err(|_| "rx.why: the first argument is the URI of a document")?;
    let at = point(position).ok_or("rx.why: the second argument is a position")?;
    let wrong = "rx.why: the third argument is an axis, \"rank\", \"dtype\", or one of these after a field: \"0.rank\"";
    let asked = match part {
        Value::Null => Asked::Everything,
        Value::Number(axis) => Asked::Axis(Vec::new(), axis.as_i64().ok_or(wrong)?),
        Value::String(part) => part.parse().map_err(|_| wrong)?,
        _ => return Err(wrong),
    };
    Ok(Command::Why(uri, at, asked))
}

fn annotate_arguments(uri: Value, position: Value) -> Result<Command, &'static str> {
    let uri = Uri::deserialize(uri).map_err(|_| "rx.annotate: the first argument is the URI of a document")?;
    let at = match position {
        Value::Null => None,
        position => Some(point(position).ok_or("rx.annotate: the second argument is a position")?),
    };
    Ok(Command::Annotate(uri, at))
}

fn syntax_tree_arguments(uri: Value, range: Value) -> Result<Command, &'static str> {
    let uri = Uri::deserialize(uri).map_err(|_| "rx.syntaxTree: the first argument is the URI of a document")?;
    let range =
        Option::<proto::Range>::deserialize(range).map_err(|_| "rx.syntaxTree: the second argument is a range")?;
    Ok(Command::SyntaxTree(uri, range.map(actions::points)))
}

fn graph_arguments(uri: Value, position: Value) -> Result<Command, &'static str> {
    let uri = Uri::deserialize(uri).map_err(|_| "rx.graph: the first argument is the URI of a document")?;
    let at = point(position).ok_or("rx.graph: the second argument is a position")?;
    Ok(Command::Graph(uri, at))
}

/// Parses a position. `None` if the value has another form.
pub fn point(value: Value) -> Option<Point> {
    let position = proto::Position::deserialize(value).ok()?;
    Some(Point { line: position.line, column: position.character })
}

/// The result of a command: its response, and an edit to apply in the client.
pub type Outcome = (Value, Option<proto::WorkspaceEdit>);

/// Executes a command.
pub fn outcome(subject: &Subject<'_>, command: &Command) -> Outcome {
    match command {
        Command::Why(_, at, asked) => {
            let found = subject.view.workspace().why(subject.view.file(), subject.offset(*at), asked);
            (found.map_or(Value::Null, |why| why_value(subject, &why)), None)
        }
        Command::SyntaxTree(_, range) => (syntax_tree(subject, *range), None),
        Command::Annotate(_, at) => {
            let found = rx_ide::annotate(&subject.view, at.map(|at| subject.offset(at)));
            let answer = json!({ "edits": found.len() });
            (answer, (!found.is_empty()).then(|| edits::workspace_edit(subject, found)))
        }
        Command::Graph(_, at) => {
            let found = rx_ide::graph(&subject.view, subject.offset(*at), &subject.diagnostics());
            (found.map_or(Value::Null, |graph| graph::value(subject, &graph)), None)
        }
    }
}

/// Returns the syntax tree as text.
fn syntax_tree(subject: &Subject<'_>, range: Option<(Point, Point)>) -> Value {
    rx_ide::syntax_tree(&subject.view, range.map(|(start, end)| subject.span(start, end))).into()
}

fn why_value(subject: &Subject<'_>, why: &Why<Span>) -> Value {
    let place = |span: Span| json!(subject.range(span));
    let detail = |detail: &Detail<Span>| json!({"text": detail.text, "range": detail.place.map(place)});
    let step = |step: &Step<Span>| {
        json!({
            "kind": step.kind.name(),
            "text": step.text,
            "range": place(step.place),
            "variable": step.variable.map(|name| name.as_str()),
            "callee": step.callee.map(|name| name.as_str()),
            "part": step.part,
            "value": step.fact,
            "formula": step.formula,
            "unchanged": step.unchanged,
            "details": step.details.iter().map(detail).collect::<Vec<_>>(),
        })
    };
    let trace = |trace: &Trace<Span>| {
        let steps: Vec<Value> = trace.steps.iter().map(step).collect();
        json!({"part": trace.part, "value": trace.fact, "steps": steps})
    };
    json!({
        "subject": why.subject,
        "range": place(why.place),
        "structInfo": why.ty.to_string(),
        "traces": why.traces.iter().map(trace).collect::<Vec<_>>(),
    })
}
