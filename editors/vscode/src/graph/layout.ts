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
  for (const [key, { from, to, label }] of graph.edges.entries()) {
    const size = label === "" ? { width: 0, height: 0 } : { ...labelSize(cut(label)), labelpos: "c" as const };
    drawn.setEdge(String(from), String(to), size, String(key));
  }
  dagre.layout(drawn);
  const { width = 0, height = 0 } = drawn.graph();
  return { width, height, boxes: boxes(drawn, written), wires: wires(drawn, graph) };
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

function wires(drawn: Drawn, graph: Graph): Wire[] {
  return graph.edges.map(({ from, to, label }, key) => {
    const edge = drawn.edge(String(from), String(to), String(key)) as { points: Xy[]; x?: number; y?: number };
    const at = label === "" || edge.x === undefined || edge.y === undefined ? undefined : { x: edge.x, y: edge.y };
    return { from, to, points: edge.points, label: cut(label), at };
  });
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
