// The answer of the server's command `rx.graph`: the operators of a function and the values that flow between them.

import { list, number, record, text } from "../json";
import { at, place, type Place, type Point } from "../place";

export const NODE_KINDS = ["parameter", "operator", "call", "constant", "value", "output"] as const;
export type NodeKind = (typeof NODE_KINDS)[number];

export interface Node {
  readonly id: number;
  readonly kind: NodeKind;
  readonly label: string;
  readonly name: string;
  readonly structInfo: string;
  readonly place: Place;
  readonly errors: number;
  readonly warnings: number;
  // The messages of the errors and warnings.
  readonly notes: readonly string[];
  readonly cost: string;
  readonly block: string;
}

export interface Edge {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

export interface Graph {
  readonly function: string;
  readonly place: Place;
  readonly whole: boolean;
  // The number of nodes that were left out.
  readonly hidden: number;
  readonly nodes: readonly Node[];
  readonly edges: readonly Edge[];
}

// Returns undefined if there is no Relax function at the position.
export function readGraph(value: unknown): Graph | undefined {
  const fields = record(value);
  const where = place(fields?.["range"]);
  if (fields === undefined || where === undefined) {
    return undefined;
  }
  const nodes = list(fields["nodes"]).flatMap((node) => readNode(node) ?? []);
  const ids = new Set(nodes.map((node) => node.id));
  const edges = list(fields["edges"]).flatMap((edge) => {
    const [from, to] = [number(edge["from"]), number(edge["to"])];
    return from === null || to === null || !ids.has(from) || !ids.has(to) ? [] : [{ from, to, label: text(edge["label"]) }];
  });
  return { function: text(fields["function"]), place: where, whole: fields["whole"] !== false, hidden: number(fields["hidden"]) ?? 0, nodes, edges };
}

function readNode(fields: Record<string, unknown>): Node | undefined {
  const [id, where] = [number(fields["id"]), place(fields["range"])];
  if (id === null || where === undefined) {
    return undefined;
  }
  const notes: unknown[] = Array.isArray(fields["notes"]) ? fields["notes"] : [];
  return {
    id,
    kind: NODE_KINDS.find((kind) => kind === fields["kind"]) ?? "value",
    label: text(fields["label"]),
    name: text(fields["name"]),
    structInfo: text(fields["structInfo"]),
    place: where,
    errors: number(fields["errors"]) ?? 0,
    warnings: number(fields["warnings"]) ?? 0,
    notes: notes.filter((note) => typeof note === "string"),
    cost: text(fields["cost"]),
    block: text(fields["block"]),
  };
}

// Returns the node at a point of the program: the innermost one, otherwise the first one of the line, otherwise the one whose binding continues
// there. A node's place is only its variable, so the later lines of a call of several lines are not part of it.
export function nodeAt(graph: Graph, point: Point): number | undefined {
  const [here] = at(graph.nodes, point, (node) => [node.place]);
  const above = graph.nodes.filter(({ kind, place }) => kind !== "parameter" && place.line < point.line);
  return (here ?? above.toSorted((one, other) => other.place.line - one.place.line)[0])?.id;
}

// Whether a line is one of the function's, from its name to its last node. The place of a graph is only the function's name.
export function within(graph: Graph, { line }: Point): boolean {
  return graph.place.line <= line && graph.nodes.some(({ place }) => line <= place.endLine);
}
