// Draws a graph with its layout as SVG. The style sheet defines the colors; all text of the program is escaped.

import { escaped } from "../html";
import type { Graph, Node } from "./graph";
import { labelSize, LINE, type Box, type Layout, type Wire, type Xy } from "./layout";

export function svg(graph: Graph, { boxes, wires }: Layout): string {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const drawn = boxes.flatMap((box) => {
    const node = nodes.get(box.id);
    return node === undefined ? [] : [drawNode(node, box)];
  });
  const arrow = `<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker>`;
  return `<svg role="group" aria-label="${escaped(`Graph of ${graph.function}`)}"><defs>${arrow}</defs><g id="view">${wires.map(drawWire).join("")}${wires.map(drawLabel).join("")}${drawn.join("")}</g></svg>`;
}

function drawWire({ from, to, points }: Wire): string {
  return `<path class="edge" data-from="${from}" data-to="${to}" marker-end="url(#arrow)" d="${curve(points)}"/>`;
}

// Draws the label of a wire. Labels are drawn after all wires, so that no wire crosses the text.
function drawLabel({ label, at }: Wire): string {
  if (at === undefined) {
    return "";
  }
  const { width, height } = labelSize(label);
  const back = `<rect x="${round(at.x - width / 2)}" y="${round(at.y - height / 2)}" width="${round(width)}" height="${height}"/>`;
  return `<g class="flow">${back}<text x="${round(at.x)}" y="${round(at.y + 3.5)}">${escaped(label)}</text></g>`;
}

function drawNode(node: Node, box: Box): string {
  const { x, y, width, height } = box;
  const kinds = [node.kind, node.block, node.errors > 0 ? "wrong" : node.warnings > 0 ? "odd" : ""].filter((name) => /^\w+$/.test(name));
  const radius = node.kind === "parameter" || node.kind === "output" ? height / 2 : 4;
  const top = -height / 2 + 7 + LINE - 4;
  const lines = box.lines.map((line, at) => `<text class="${at === 0 ? "label" : "below"}" y="${top + at * LINE}">${escaped(line)}</text>`);
  return (
    `<g class="node ${kinds.join(" ")}" data-id="${node.id}" role="button" tabindex="-1" aria-label="${escaped(spoken(node))}" transform="translate(${round(x)} ${round(y)})">` +
    `<title>${escaped(told(node).join("\n"))}</title>` +
    `<rect x="${round(-width / 2)}" y="${round(-height / 2)}" width="${round(width)}" height="${height}" rx="${radius}"/>` +
    `${lines.join("")}${badges(node, width / 2, -height / 2)}</g>`
  );
}

// Draws the numbers of errors and warnings in the upper right corner, with the errors rightmost.
function badges({ errors, warnings, notes }: Node, right: number, top: number): string {
  const counts = [
    { name: "error", count: errors },
    { name: "warning", count: warnings },
  ].filter(({ count }) => count > 0);
  const one = ({ name, count }: (typeof counts)[number], at: number): string =>
    `<g class="badge ${name}" transform="translate(${round(right - 4 - at * 20)} ${round(top)})"><title>${escaped(notes.join("\n"))}</title>` +
    `<circle r="9"/><text y="4">${count > 99 ? "99+" : count}</text></g>`;
  return counts.map(one).join("");
}

// Returns the lines of the tooltip.
function told(node: Node): string[] {
  const block = node.block === "" ? "" : `in a ${node.block} block`;
  return [node.name === "" ? node.label : `${node.name} = ${node.label}`, node.structInfo, node.cost, block, ...node.notes].filter((line) => line !== "");
}

function spoken(node: Node): string {
  const count = (many: number, what: string): string => (many === 0 ? "" : `${many} ${what}${many === 1 ? "" : "s"}`);
  const parts = [node.kind, node.label, node.name, node.structInfo, count(node.errors, "error"), count(node.warnings, "warning"), ...node.notes];
  return parts.filter((part) => part !== "").join(", ");
}

// Returns a smooth path: each inner point is the control point of a bend, and the path passes through the midpoints between them.
export function curve(points: readonly Xy[]): string {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  if (first === undefined || last === undefined) {
    return "";
  }
  const inner = rest.slice(0, -1);
  const bends = inner.map((bend, at) => {
    const next = inner[at + 1];
    const end = next === undefined ? last : { x: (bend.x + next.x) / 2, y: (bend.y + next.y) / 2 };
    return `Q${xy(bend)} ${xy(end)}`;
  });
  return `M${xy(first)}${bends.length === 0 ? `L${xy(last)}` : bends.join("")}`;
}

function xy({ x, y }: Xy): string {
  return `${round(x)} ${round(y)}`;
}

function round(of: number): number {
  return Math.round(of * 10) / 10;
}
