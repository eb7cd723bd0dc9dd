// The messages between the extension and the page of a graph.

import type { Graph } from "./graph";

export type ToPage =
  | { readonly kind: "graph"; readonly graph: Graph; readonly selected: number | undefined }
  | { readonly kind: "select"; readonly id: number | undefined }
  | { readonly kind: "message"; readonly text: string };

export type FromPage = { readonly kind: "ready" } | { readonly kind: "open"; readonly id: number };
