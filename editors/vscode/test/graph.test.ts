import assert from "node:assert/strict";
import test from "node:test";
import { nodeAt, readGraph, within, type Graph } from "../src/graph/graph";
import { page } from "../src/graph/html";
import { layout, sameShape, type Box, type Layout } from "../src/graph/layout";
import { curve, svg } from "../src/graph/svg";
import { centred, fitted, neighbour, shows, zoomed } from "../src/graph/viewport";

const range = (line: number, column: number, endColumn: number, endLine = line) => ({
  start: { line, character: column },
  end: { line: endLine, character: endColumn },
});

const node = (id: number, kind: string, label: string, line: number, more: object = {}) => ({
  id,
  kind,
  label,
  name: `v${id}`,
  structInfo: 'R.Tensor((4,), dtype="float32")',
  range: range(line, 8, 40),
  errors: 0,
  warnings: 0,
  notes: [],
  cost: null,
  block: "dataflow",
  ...more,
});

// A convolution of two parameters, its relu with a wrong annotation, the output.
const ANSWER = {
  function: "main",
  range: range(4, 0, 20, 9),
  whole: true,
  hidden: 0,
  nodes: [
    node(0, "parameter", "x", 4, { name: "x", range: range(4, 9, 10), block: null }),
    node(1, "parameter", "w", 4, { name: "w", range: range(4, 30, 31), block: null }),
    node(2, "operator", "nn.conv2d", 6, { cost: "236 MFLOP, 4 MiB moved" }),
    node(3, "operator", "nn.relu", 7, { errors: 1, warnings: 2, notes: ["224 is not 112 <here>"] }),
    node(4, "output", "return", 9, { name: null, block: null }),
  ],
  edges: [
    { from: 0, to: 2, label: "(1, 3, 224, 224) float32" },
    { from: 1, to: 2, label: null },
    { from: 2, to: 3, label: null },
    { from: 3, to: 4, label: null },
  ],
};

const graph = readGraph(ANSWER) ?? assert.fail();

// A long network: a chain of layers, each with its own weight and a value that is added two layers later.
function network(layers: number): Graph {
  const nodes = [node(0, "parameter", "x", 0)];
  const edges: { from: number; to: number; label: string }[] = [];
  const edge = (from: number, to: number) => edges.push({ from, to, label: "(64,) float32" });
  let [last, skipped] = [0, 0];
  for (let layer = 0; layer < layers; layer += 1) {
    const [weight, conv, add, relu] = [1, 2, 3, 4].map((more) => layer * 4 + more) as [number, number, number, number];
    nodes.push(node(weight, "parameter", "w", layer), node(conv, "operator", "nn.conv2d", layer), node(add, "operator", "add", layer), node(relu, "operator", "nn.relu", layer));
    [[last, conv], [weight, conv], [conv, add], [skipped, add], [add, relu]].forEach(([from, to]) => edge(from ?? 0, to ?? 0));
    [skipped, last] = [last, relu];
  }
  return readGraph({ ...ANSWER, nodes, edges }) ?? assert.fail();
}

const box = ({ boxes }: Layout, id: number): Box => boxes.find((box) => box.id === id) ?? assert.fail(String(id));

const apart = (one: Box, other: Box): boolean =>
  Math.abs(one.x - other.x) >= (one.width + other.width) / 2 || Math.abs(one.y - other.y) >= (one.height + other.height) / 2;

test("the server's answer is parsed; edges without a target and nodes without a place are dropped", () => {
  const odd = readGraph({
    ...ANSWER,
    whole: false,
    hidden: 12,
    nodes: [...ANSWER.nodes, { id: 9 }, { ...node(7, "wonder", "z", 3) }],
    edges: [...ANSWER.edges, { from: 0, to: 9 }, { from: "0", to: 2 }],
  });
  assert.deepEqual([odd?.nodes.length, odd?.nodes[5]?.kind, odd?.edges.length, odd?.whole, odd?.hidden], [6, "value", 4, false, 12]);
  assert.equal(graph.nodes[4]?.name, "");
  assert.equal(readGraph(null), undefined);
});

test("the node at the cursor is the innermost, otherwise the one of its line", () => {
  assert.equal(nodeAt(graph, { line: 4, column: 30 }), 1);
  assert.equal(nodeAt(graph, { line: 7, column: 0 }), 3);
  assert.equal(nodeAt(graph, { line: 5, column: 0 }), undefined);
  assert.equal(nodeAt(graph, { line: 8, column: 12 }), 3, "a call over several lines");
  const inner = readGraph({ ...ANSWER, nodes: [...ANSWER.nodes, node(5, "operator", "exp", 7, { range: range(7, 20, 30) })] }) ?? assert.fail();
  assert.equal(nodeAt(inner, { line: 7, column: 25 }), 5, "a call inside another");
  assert.ok(within(graph, { line: 9, column: 0 }) && !within(graph, { line: 10, column: 0 }));
});

test("layers are below the parameters, and no boxes overlap", () => {
  for (const drawn of [graph, network(12)]) {
    const places = layout(drawn);
    for (const { from, to } of drawn.edges) {
      assert.ok(box(places, from).y < box(places, to).y, `${from} is above ${to}`);
    }
    places.boxes.forEach((one, at) => places.boxes.slice(at + 1).forEach((other) => assert.ok(apart(one, other), `${one.id} and ${other.id}`)));
  }
});

test("edges do not cross where another order of a layer avoids it", () => {
  const nodes = [0, 1, 2, 3].map((id) => node(id, "operator", "abs", id));
  // Found from 0 first, the second layer is 2, 3; then the edges 0 → 3 and 1 → 2 cross.
  const edges = [[0, 2], [0, 3], [1, 2]].map(([from, to]) => ({ from, to, label: null }));
  const places = layout(readGraph({ ...ANSWER, nodes, edges }) ?? assert.fail());
  const [zero, one, two, three] = [0, 1, 2, 3].map((id) => box(places, id).x) as [number, number, number, number];
  assert.ok((zero < one) === (three < two), `${zero} ${one} ${two} ${three}`);
});

test("the maximal number of nodes is laid out", () => {
  const places = layout(network(99));
  assert.equal(places.boxes.length, 397);
  assert.ok(places.width > 0 && places.height > 0);
});

test("changed mistakes and places keep the layout, a changed operator does not", () => {
  const elsewhere = { ...graph, nodes: graph.nodes.map((node) => ({ ...node, errors: 0, place: { ...node.place, line: 1 } })) };
  assert.ok(sameShape(graph, elsewhere));
  assert.ok(!sameShape(graph, { ...graph, nodes: graph.nodes.map((node) => ({ ...node, label: "add" })) }));
});

test("nodes are drawn with name and cost, edges with the type of their value", () => {
  const drawn = svg(graph, layout(graph));
  assert.match(drawn, /<text class="label"[^>]*>nn\.conv2d<\/text><text class="below"[^>]*>v2 · 236 MFLOP<\/text>/);
  assert.match(drawn, /<title>v2 = nn\.conv2d\n[^<]*\n236 MFLOP, 4 MiB moved\nin a dataflow block<\/title>/);
  assert.match(drawn, /class="edge" data-from="0" data-to="2"/);
  assert.match(drawn, /class="flow"><rect[^>]*\/><text[^>]*>\(1, 3, 224, 224\) float32<\/text>/);
  assert.equal(drawn.match(/class="edge"/g)?.length, 4);
  assert.equal(drawn.match(/class="node parameter"/g)?.length, 2);
});

test("mistakes are badges with their escaped messages", () => {
  const drawn = svg(graph, layout(graph));
  assert.match(drawn, /class="badge error"[^>]*><title>224 is not 112 &lt;here&gt;<\/title><circle[^>]*\/><text[^>]*>1<\/text>/);
  assert.match(drawn, /class="badge warning".*?<text[^>]*>2<\/text>/);
  assert.match(drawn, /aria-label="operator, nn\.relu, v3, [^"]*, 1 error, 2 warnings, 224 is not 112 &lt;here&gt;"/);
  assert.doesNotMatch(drawn, /NaN|undefined|<here>/);
});

test("an edge is a curve between its ends", () => {
  assert.equal(curve([{ x: 0, y: 0 }, { x: 0, y: 9 }]), "M0 0L0 9");
  assert.equal(curve([{ x: 0, y: 0 }, { x: 4, y: 4 }, { x: 8, y: 8 }, { x: 9, y: 9 }]), "M0 0Q4 4 6 6Q8 8 9 9");
  assert.equal(curve([]), "");
});

test("the page allows only its own style sheet and script", () => {
  const html = page({ style: "p { color: red }", script: 'print("</script><!--")', nonce: "n0nce" });
  assert.match(html, /content="default-src 'none'; style-src 'nonce-n0nce'; script-src 'nonce-n0nce'"/);
  assert.match(html, /<style nonce="n0nce">p { color: red }<\/style>/);
  assert.match(html, /<script nonce="n0nce">print\("<\\\/script><\\!--"\)<\/script>/);
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.doesNotMatch(html, / on\w+=| style=/);
});

test("uses of one value in many later layers of a large graph are short lines with its name", () => {
  const nodes = [node(0, "parameter", "x", 0), ...Array.from({ length: 300 }, (_, at) => node(at + 1, "operator", "multiply", at + 1))];
  const edges = nodes.slice(1).flatMap(({ id }) => [{ from: id - 1, to: id, label: "() float32" }, { from: 0, to: id, label: "() float32" }]);
  const placed = layout(readGraph({ ...ANSWER, nodes, edges }) ?? assert.fail());
  assert.equal(placed.wires.length, edges.length);
  const [near, far] = [2, 300].map((id) => placed.wires.find(({ from, to }) => from === 0 && to === id) ?? assert.fail());
  assert.equal(near?.label, "() float32");
  assert.deepEqual([far?.points.length, far?.label], [2, "v0 () float32"]);
  const target = box(placed, 300);
  assert.equal(far?.points[1]?.y, target.y - target.height / 2);
  assert.ok(placed.width < 3000, `${placed.width}`);
});

test("zooming keeps the point under the pointer, within limits", () => {
  const view = zoomed({ x: 10, y: 20, scale: 1 }, 2, { x: 110, y: 120 });
  assert.deepEqual(view, { x: -90, y: -80, scale: 2 });
  assert.equal(zoomed(view, 1000, { x: 0, y: 0 }).scale, 4);
});

test("a drawing is fitted without enlarging it; a box can be centered", () => {
  const window = { width: 400, height: 300 };
  assert.deepEqual(fitted({ width: 800, height: 300 }, window), { scale: 0.5, x: 0, y: 75 });
  assert.equal(fitted({ width: 10, height: 10 }, window).scale, 1);
  const far = { id: 0, x: 1000, y: 1000, width: 50, height: 20, lines: [] };
  const start = { x: 0, y: 0, scale: 1 };
  assert.deepEqual([shows(start, far, window), shows(centred(start, far, window), far, window)], [false, true]);
});

test("arrow keys move along edges and within a layer", () => {
  const places = layout(graph);
  assert.equal(neighbour(places, 2, "down"), 3);
  assert.ok([0, 1].includes(neighbour(places, 2, "up") ?? -1));
  const [left, right] = box(places, 0).x < box(places, 1).x ? [0, 1] : [1, 0];
  assert.deepEqual([neighbour(places, left, "right"), neighbour(places, right, "left")], [right, left]);
  assert.equal(neighbour(places, 4, "down"), undefined);
});
