// The layout of a graph by dagre: in layers, with the parameters at the top. It uses no DOM, so text widths are estimated from their lengths.

import dagre from "@dagrejs/dagre";
import type { Graph, Node } from "./graph";

export interface Xy {
  readonly x: number;
  readonly y: number;
}

// A node's box; x and y are its center.
export interface Box extends Xy {
  readonly id: number;
  readonly width: number;
  readonly height: number;
  // The lines of text in it.
  readonly lines: readonly string[];
}

export interface Wire {
  readonly from: number;
  readonly to: number;
  readonly points: readonly Xy[];
  readonly label: string;
  // The position of the label.
  readonly at: Xy | undefined;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: readonly Box[];
  readonly wires: readonly Wire[];
}

// The width of a letter, for fonts of 12 and 10 pixels; a little more than in the widest editor font.
const LETTER = 7.4;
const SMALL_LETTER = 6.2;
export const LINE = 16;
const LONGEST = 40;
// The number of nodes above which the faster ranker is used: the best layers of larger graphs take three times as long to find as good ones.
const MANY = 200;
// The number of layers that an edge may cross if all edges together cross more than `CROSSED`. dagre places an edge in every layer that it crosses: 200
// uses of one value over 400 layers take half a minute.
const FAR = 16;
const CROSSED = 1000;

export function layout(graph: Graph): Layout {
  const { Graph: Dagre } = dagre.graphlib;
  const drawn = new Dagre({ multigraph: true });
  const ranker = graph.nodes.length > MANY ? "tight-tree" : "network-simplex";
  drawn.setGraph({ rankdir: "TB", nodesep: 24, edgesep: 12, ranksep: 44, marginx: 16, marginy: 16, ranker });
  const written = new Map(graph.nodes.map((node) => [node.id, lines(node)]));
  for (const [id, text] of written) {
    const width = Math.max(...text.map((line) => line.length)) * LETTER + 24;
    drawn.setNode(String(id), { width, height: text.length * LINE + 14 });
  }
  const far = farEdges(graph);
  for (const [key, { from, to, label }] of graph.edges.entries()) {
    if (far.has(key)) {
      continue;
    }
    const size = label === "" ? { width: 0, height: 0 } : { ...labelSize(cut(label)), labelpos: "c" as const };
    drawn.setEdge(String(from), String(to), size, String(key));
  }
  dagre.layout(drawn, { customOrder: ordered });
  const { width = 0, height = 0 } = drawn.graph();
  const placed = boxes(drawn, written);
  return { width, height, boxes: placed, wires: wires(drawn, graph, placed) };
}

// Orders the nodes of each layer. dagre's search for fewer crossings takes half of the layout's time, so it is left out where the order in which a
// depth-first search finds the nodes has none. dagre begins with the same order.
const ordered: NonNullable<NonNullable<Parameters<typeof dagre.layout>[1]>["customOrder"]> = (graph, order) => {
  searchOrder(graph);
  if (hasCrossings(graph)) {
    order(graph, {});
  }
};

// A node's layer and its place in it.
interface Place {
  readonly rank: number;
  order: number;
}

function places(graph: Drawn): (id: string) => Place {
  return (id) => graph.node(id) as Place;
}

function searchOrder(graph: Drawn): void {
  const place = places(graph);
  const counts = new Map<number, number>();
  const found = new Set<string>();
  const open = graph.nodes().toSorted((one, other) => place(one).rank - place(other).rank).toReversed();
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (!found.has(id)) {
      found.add(id);
      const { rank } = place(id);
      place(id).order = counts.get(rank) ?? 0;
      counts.set(rank, place(id).order + 1);
      open.push(...(graph.successors(id) ?? []).map(String).toReversed());
    }
  }
}

// Whether two edges cross between neighbouring layers. Each edge leads to the next layer.
function hasCrossings(graph: Drawn): boolean {
  const place = places(graph);
  const edges = graph.edges().map(({ v, w }) => ({ layer: place(v).rank, from: place(v).order, to: place(w).order }));
  edges.sort((one, other) => one.layer - other.layer || one.from - other.from || one.to - other.to);
  let last = { layer: -1, from: -1 };
  // The largest ends in the layer: of edges from nodes before the last one, and of all.
  let [before, all] = [-1, -1];
  for (const { layer, from, to } of edges) {
    if (layer !== last.layer) {
      [before, all] = [-1, -1];
    } else if (from !== last.from) {
      before = all;
    }
    if (to < before) {
      return true;
    }
    all = Math.max(all, to);
    last = { layer, from };
  }
  return false;
}

// Returns the edges that are too long to be laid out, by index. The target has another edge, which keeps it in its place.
function farEdges({ edges }: Graph): Set<number> {
  const far = new Set<number>();
  const layers = new Map<number, number>();
  const layer = (id: number): number => layers.get(id) ?? 0;
  for (const { from, to } of edges.toSorted((one, other) => one.to - other.to)) {
    layers.set(to, Math.max(layer(to), layer(from) + 1));
  }
  const crossed = ({ from, to }: Graph["edges"][number]): number => Math.max(layer(to) - layer(from) - 1, 0);
  if (edges.reduce((sum, edge) => sum + crossed(edge), 0) <= CROSSED) {
    return far;
  }
  const isFar = (edge: Graph["edges"][number]): boolean => crossed(edge) > FAR;
  const near = new Set(edges.filter((edge) => !isFar(edge)).map(({ to }) => to));
  for (const [key, edge] of edges.entries()) {
    if (isFar(edge) && near.has(edge.to)) {
      far.add(key);
    }
  }
  return far;
}

export function labelSize(label: string): { readonly width: number; readonly height: number } {
  return { width: label.length * SMALL_LETTER + 6, height: 14 };
}

type Drawn = InstanceType<typeof dagre.graphlib.Graph>;

function boxes(drawn: Drawn, written: ReadonlyMap<number, readonly string[]>): Box[] {
  return [...written].map(([id, lines]) => {
    const { x, y, width, height } = drawn.node(String(id)) as Omit<Box, "id" | "lines">;
    return { id, x, y, width, height, lines };
  });
}

function wires(drawn: Drawn, graph: Graph, placed: readonly Box[]): Wire[] {
  return graph.edges.flatMap((edge, key) => {
    const { from, to, label } = edge;
    const points = drawn.edge(String(from), String(to), String(key)) as { points: Xy[]; x?: number; y?: number } | undefined;
    if (points === undefined) {
      return stub(graph, edge, placed);
    }
    const at = label === "" || points.x === undefined || points.y === undefined ? undefined : { x: points.x, y: points.y };
    return [{ from, to, points: points.points, label: cut(label), at }];
  });
}

// Draws an edge that was not laid out as a short line to its target, labelled with the name of the value.
function stub(graph: Graph, { from, to, label }: Graph["edges"][number], placed: readonly Box[]): Wire[] {
  const box = placed.find(({ id }) => id === to);
  const source = graph.nodes.find(({ id }) => id === from);
  if (box === undefined || source === undefined) {
    return [];
  }
  const written = cut([source.name || source.label, label].join(" ").trim());
  const top = box.y - box.height / 2;
  const start = { x: box.x - box.width / 2 - 12, y: top - 22 };
  const at = { x: start.x - labelSize(written).width / 2, y: start.y };
  return [{ from, to, points: [start, { x: box.x - box.width / 3, y: top }], label: written, at }];
}

// Returns the lines of a box: the operator, the variable, and the arithmetic operations of the call. The tooltip shows the rest of its cost.
function lines(node: Node): string[] {
  const name = node.name === node.label ? "" : node.name;
  const [computed = ""] = node.cost.split(",");
  const below = [name, /^0\b/.test(computed) ? "" : computed].filter((part) => part !== "").join(" · ");
  return [cut(node.label || node.name || node.kind), ...(below === "" ? [] : [cut(below)])];
}

function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`;
}

// Whether two graphs have the same layout, and differ only in things that the layout does not depend on, such as errors.
export function sameShape(one: Graph, other: Graph): boolean {
  const shape = ({ nodes, edges }: Graph): string => JSON.stringify([nodes.map((node) => [node.id, lines(node)]), edges]);
  return shape(one) === shape(other);
}
