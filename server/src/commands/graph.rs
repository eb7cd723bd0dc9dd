//! The response to `rx.graph`.

use crate::reads::Subject;
use rx_ide::{Graph, GraphEdge, GraphNode};
use serde_json::{Value, json};

/// Converts a function's graph to the JSON that `docs/lsp-extensions.md` specifies.
pub fn value(subject: &Subject<'_>, graph: &Graph) -> Value {
    let node = |(id, node): (usize, &GraphNode)| {
        json!({
            "id": id,
            "kind": node.kind.name(),
            "label": node.label,
            "name": node.name.map(|name| name.as_str()),
            "structInfo": node.ty.as_ref().map(ToString::to_string),
            "range": subject.range(node.span),
            "errors": node.errors,
            "warnings": node.warnings,
            "notes": node.notes,
            "cost": node.cost,
            "block": node.dataflow.then_some("dataflow"),
        })
    };
    let edge = |edge: &GraphEdge| json!({"from": edge.from, "to": edge.to, "label": edge.label});
    json!({
        "function": graph.function.as_str(),
        "range": subject.range(graph.span),
        "whole": graph.hidden == 0,
        "hidden": graph.hidden,
        "nodes": graph.nodes.iter().enumerate().map(node).collect::<Vec<_>>(),
        "edges": graph.edges.iter().map(edge).collect::<Vec<_>>(),
    })
}
