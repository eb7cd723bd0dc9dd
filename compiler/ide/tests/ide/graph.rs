//! Graphs of functions: their nodes and edges.

use crate::fixture::{Fixture, in_module};
use rx_ide::{Graph, MOST_NODES, NodeKind};

fn graph(fixture: &Fixture) -> Option<Graph> {
    let diagnostics = fixture.workspace.diagnostics(fixture.file);
    rx_ide::graph(&fixture.view(), fixture.cursor, &diagnostics)
}

/// Returns the nodes with their operands: `label <- label, label`.
fn drawn(graph: &Graph) -> Vec<String> {
    let lines = graph.nodes.iter().enumerate().map(|(at, node)| {
        let from = graph.edges.iter().filter(|edge| edge.to == at);
        let from: Vec<&str> = from.map(|edge| graph.nodes[edge.from].label.as_str()).collect();
        if from.is_empty() { node.label.clone() } else { format!("{} <- {}", node.label, from.join(", ")) }
    });
    lines.collect()
}

fn of(body: &str) -> Graph {
    graph(&Fixture::new(&in_module(body))).expect("a graph")
}

#[test]
fn calls_are_nodes_and_names_are_edges() {
    let graph = of("with R.dataflow():
    y = R.nn.conv2d(x, w, strides=[2, 2], padding=[3, 3, 3, 3])$0
    z = R.add(R.nn.relu(y), R.const(1.0, \"float32\"))
    t = (z, y)
    a = t[0]
    b = a
    R.output(b)
k = R.call_tir(cls.relu, (s,), out_ty=R.Tensor((4, 8), \"float32\"))
return (b, k)");
    assert_eq!((graph.function.as_str(), graph.hidden), ("main", 0));
    let wanted = [
        "x",
        "w",
        "s",
        "nn.conv2d <- x, w",
        "nn.relu <- nn.conv2d",
        "R.const(1.0, \"float32\")",
        "add <- nn.relu, R.const(1.0, \"float32\")",
        "tuple <- add, nn.conv2d",
        "relu <- s",
        "return <- tuple, relu",
    ];
    assert_eq!(drawn(&graph), wanted);
    let node = |label: &str| graph.nodes.iter().find(|node| node.label == label).expect(label);
    assert_eq!(node("nn.conv2d").cost.as_deref(), Some("236.03 M operations, 3.67 MiB moved"));
    assert_eq!((node("nn.conv2d").kind, node("relu").kind), (NodeKind::Operator, NodeKind::Call));
    assert_eq!((node("x").kind, node("return").kind), (NodeKind::Parameter, NodeKind::Output));
    assert_eq!((node("add").name.map(|name| name.to_string()), node("nn.relu").name), (Some("z".to_owned()), None));
    assert!(node("add").dataflow && !node("relu").dataflow);
    let into_relu = graph.edges.iter().find(|edge| graph.nodes[edge.to].label == "nn.relu").expect("an edge");
    assert_eq!(into_relu.label.as_deref(), Some("(1, 64, 112, 112) float32"));
}

#[test]
fn mistakes_are_attached_to_their_statement() {
    let graph = of("y = R.nn.relo(x)
z = R.add(x, R.nn.conv2d(x, s))$0
q = z
u = R.matmul(y, q
return R.abs(z)");
    let marked: Vec<(&str, usize)> =
        graph.nodes.iter().filter(|node| node.errors > 0).map(|node| (node.label.as_str(), node.errors)).collect();
    assert!(marked.contains(&("R.nn.relo(x)", 1)) && marked.contains(&("nn.conv2d", 1)), "{marked:?}");
    assert!(drawn(&graph).contains(&"R.nn.relo(x) <- x".to_owned()), "{:?}", drawn(&graph));
    assert!(drawn(&graph).contains(&"return <- abs".to_owned()), "{:?}", drawn(&graph));
    assert!(graph.nodes.iter().all(|node| node.notes.len() == node.errors + node.warnings));
    let torn = graph.nodes.iter().find(|node| node.name.is_some_and(|name| name.as_str() == "u"));
    assert!(torn.is_some_and(|node| node.errors > 0), "{:?}", drawn(&graph));
}

#[test]
fn mistakes_of_headers_are_attached_to_the_result() {
    let text = "@R.function
def main(x: R.Tensor((4,), \"float32\")) -> R.Tensr((4,), \"float32\"):
    h = R.abs(x)$0
    with R.dataflow():
        y = R.cos(h)
        with R.dataflow():
            z = R.sin(y)
            R.output(z)
    return z
";
    let graph = graph(&Fixture::new(text)).expect("a graph");
    let marked: Vec<&str> = graph.nodes.iter().filter(|node| node.errors > 0).map(|node| node.label.as_str()).collect();
    assert_eq!(marked, ["sin", "return"], "{:?}", drawn(&graph));
}

const BRANCHES: &str = "@R.function
def main(x: R.Tensor((4,), \"float32\"), c: R.Tensor((), \"bool\")):
    h = R.abs(x)
    @R.function
    def inner(v: R.Tensor((4,), \"float32\")) -> R.Tensor((4,), \"float32\"):
        u = R.add(v, h)IN
        return u
    if c:
        a = R.sin(h)
        y = R.cos(a)
    else:
        y = R.tan(x)OUT
    z = inner(y)
    return z
";

#[test]
fn branches_join_in_their_if_and_nested_functions_have_own_graphs() {
    let outer = graph(&Fixture::new(&BRANCHES.replace("IN", "").replace("OUT", "$0"))).expect("a graph");
    let wanted = [
        "x",
        "c",
        "abs <- x",
        "function inner <- abs",
        "sin <- abs",
        "cos <- sin",
        "tan <- x",
        "if <- c, cos, tan",
        "inner <- function inner, if",
        "return <- inner",
    ];
    assert_eq!(drawn(&outer), wanted);
    let labels: Vec<&str> =
        outer.edges.iter().filter(|edge| edge.to == 7).filter_map(|edge| edge.label.as_deref()).collect();
    assert_eq!(labels, ["condition: () bool", "then: (4,) float32", "else: (4,) float32"]);
    let inner = graph(&Fixture::new(&BRANCHES.replace("OUT", "").replace("IN", "$0"))).expect("a graph");
    assert_eq!(inner.function.as_str(), "inner");
    assert_eq!(drawn(&inner), ["v", "add <- v", "return <- add"]);
}

#[test]
fn of_a_large_function_the_nearest_nodes_are_sent() {
    let lines: String = (0..5000).map(|at| format!("v{} = R.abs(v{at})\n", at + 1)).collect();
    let marked =
        format!("v0 = R.abs(x)\n{lines}return v5000").replace("v2500 = R.abs(v2499)", "v2500 = R.abs($0v2499)");
    let graph = of(&marked);
    assert_eq!((graph.nodes.len(), graph.nodes.len() + graph.hidden), (MOST_NODES, 5001 + 3 + 1));
    assert_eq!(graph.edges.len(), MOST_NODES - 1);
    let names: Vec<String> = graph.nodes.iter().filter_map(|node| Some(node.name?.to_string())).collect();
    assert!(names.contains(&"v2400".to_owned()) && names.contains(&"v2600".to_owned()));
}

#[test]
fn only_relax_functions_have_one() {
    let text = "@T.prim_func\ndef f(a: T.Buffer((4,), \"int8\")):\n    for i in range(4):\n        $0a[i] = a[i]\n";
    assert_eq!(graph(&Fixture::new(text)), None);
    assert_eq!(graph(&Fixture::new("$0")), None);
}
