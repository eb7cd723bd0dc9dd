// The report of a run as a page. It has no script: what can be done is links to commands.

import type { Outcome, Output } from "./outcome";
import { seconds, shape, value } from "./words";

export interface Report {
  // What ran, in the user's words.
  readonly title: string;
  readonly arguments: readonly string[];
  readonly outcome: Outcome;
}

// `style` is the address of the style sheet, `source` who may give one.
export function page(report: Report, style: string, source: string): string {
  const { outcome } = report;
  const state = outcome.ok ? "ok" : outcome.cancelled ? "cancelled" : "failed";
  const sections = [
    `<h1>${escaped(report.title)}</h1>`,
    `<p class="state ${state}">${escaped(headline(outcome))}</p>`,
    facts(report),
    outputs(outcome.outputs),
    outcome.log.trim() === "" ? "" : `<h2>Log</h2><pre>${escaped(outcome.log.trimEnd())}</pre>`,
    links(outcome),
  ];
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${escaped(source)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${escaped(style)}">
<title>${escaped(report.title)}</title>
</head>
<body>
${sections.filter((section) => section !== "").join("\n")}
</body>
</html>
`;
}

// The server's message names the outputs, which the table does better.
function headline({ ok, message, outputs, seconds: time }: Outcome): string {
  return ok && time !== null && outputs.length > 0 ? `Ran in ${seconds(time)} (the median of the runs)` : message;
}

function facts(report: Report): string {
  const given = report.arguments.join(" ");
  return given === "" ? "" : `<dl><dt>Arguments</dt><dd>${escaped(given)}</dd></dl>`;
}

function outputs(all: readonly Output[]): string {
  if (all.length === 0) {
    return "";
  }
  const head = ["Output", "dtype", "Shape", "Min", "Mean", "Max", "NaN"].map((name) => `<th scope="col">${name}</th>`);
  const row = (output: Output): string => {
    const cells = [output.dtype, shape(output.shape)].map((cell) => `<td>${escaped(cell)}</td>`);
    const numbers = [output.min, output.mean, output.max].map((cell) => `<td class="number">${value(cell)}</td>`);
    const nan = `<td class="number${output.nan > 0 ? " bad" : ""}">${output.nan}</td>`;
    return `<tr><th scope="row">${escaped(output.name)}</th>${cells.join("")}${numbers.join("")}${nan}</tr>`;
  };
  return `<h2>Outputs</h2><div class="wide"><table><thead><tr>${head.join("")}</tr></thead><tbody>${all.map(row).join("")}</tbody></table></div>`;
}

function links(outcome: Outcome): string {
  const all = [link("rx.runAgain", "Run again"), link("rx.runWithArguments", "Run with arguments…")];
  if (outcome.ok && outcome.outputs.length > 0) {
    all.push(link("rx.saveOutputs", "Save the outputs…"));
  }
  return `<p class="links">${all.join(" ")}</p>`;
}

function link(command: string, text: string): string {
  return `<a href="command:${command}">${text}</a>`;
}

export function escaped(text: string): string {
  const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => names[character] ?? character);
}
