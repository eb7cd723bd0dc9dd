// Finds the groups of editors in which rx has tabs.

import { record, text } from "./json";

// The type of the report's webview, and the scheme of documents of passes.
export const REPORT = "rx.report";
export const PASS = "rx-pass";

interface Group {
  readonly viewColumn: number;
  readonly tabs: readonly { readonly input: unknown }[];
}

// Returns the column of the first group that has a tab of one of these kinds.
export function columnWith(kinds: readonly string[], groups: readonly Group[]): number | undefined {
  return groups.find(({ tabs }) => tabs.some(({ input }) => kinds.includes(kindOf(input))))?.viewColumn;
}

// Returns the type of a tab's webview, or the scheme of its document; of a diff, the scheme of its right side.
function kindOf(input: unknown): string {
  const fields = record(input);
  const uri = record(fields?.["modified"] ?? fields?.["uri"]);
  // VS Code prepends its own name to the type: `mainThreadWebview-rx.report`.
  return uri === undefined ? text(fields?.["viewType"]).replace(/^mainThreadWebview-/, "") : text(uri["scheme"]);
}
