// The report of a run as an HTML page. It has no script; its actions are links to commands.

import { escaped } from "../html";
import type { Place } from "../place";
import { chosenInputs } from "./inputs";
import type { Kernel, Outcome, Output } from "./outcome";
import { seconds, shape, value } from "./words";

export interface Report {
  // The name of the function that ran, for the user.
  readonly title: string;
  // The program's address.
  readonly uri: string;
  readonly arguments: readonly string[];
  readonly outcome: Outcome;
}

// `style` is the address of the style sheet, `source` the source that the content security policy allows for it.
export function page(report: Report, style: string, source: string): string {
  const { outcome } = report;
  const state = outcome.ok ? "ok" : outcome.cancelled ? "cancelled" : "failed";
  const sections = [
    `<h1>${escaped(report.title)}</h1>`,
    `<p class="state ${state}">${escaped(headline(outcome))}</p>`,
    facts(report),
    outputs(outcome.outputs),
    kernels(outcome.kernels, report.uri),
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

// The server's message lists the outputs, which the table already shows, so it is shortened.
function headline({ ok, message, outputs, seconds: time }: Outcome): string {
  return ok && time !== null && outputs.length > 0 ? `Ran in ${seconds(time)} (the median of the runs)` : message;
}

function facts(report: Report): string {
  const inputs = chosenInputs(report.arguments).map(({ file }) => file);
  const rows = [
    ["Arguments", report.arguments.join(" ")],
    ["Inputs", inputs.join(", ")],
  ] as const;
  const given = rows.filter(([, text]) => text !== "").map(([name, text]) => `<dt>${name}</dt><dd>${escaped(text)}</dd>`);
  return given.length === 0 ? "" : `<dl>${given.join("")}</dl>`;
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
  return table("Outputs", head, all.map(row));
}

// Returns the table of times, with one row per kernel.
function kernels(all: readonly Kernel[], uri: string): string {
  if (all.length === 0) {
    return "";
  }
  // The times come first, so that long names and lists of statements do not push them out of view.
  const head = ["Kernel", "Time", "Share", "Calls", "Statements"].map((name) => `<th scope="col">${name}</th>`);
  const total = all.reduce((sum, kernel) => sum + kernel.seconds, 0);
  const row = ({ name, calls, seconds: time, places }: Kernel): string => {
    const lines = places.map((place) => `<a href="${statement(uri, place)}">${place.line + 1}</a>`).join(", ");
    const [first] = places;
    const named = first === undefined ? escaped(name) : `<a href="${statement(uri, first)}">${escaped(name)}</a>`;
    const share = total > 0 ? `${((time / total) * 100).toFixed(1)} %` : "";
    const numbers = [seconds(time), share, String(calls)].map((cell) => `<td class="number">${cell}</td>`);
    return `<tr><th scope="row">${named}</th>${numbers.join("")}<td class="lines">${lines && `line ${lines}`}</td></tr>`;
  };
  return table("Kernels", head, all.map(row));
}

function table(title: string, head: readonly string[], rows: readonly string[]): string {
  return `<h2>${title}</h2><div class="wide"><table><thead><tr>${head.join("")}</tr></thead><tbody>${rows.join("")}</tbody></table></div>`;
}

// The command that shows a statement of the program.
export const STATEMENT = "rx.showStatement";

function statement(uri: string, place: Place): string {
  return escaped(`command:${STATEMENT}?${encodeURIComponent(JSON.stringify([uri, place]))}`);
}

function links(outcome: Outcome): string {
  const all = [link("rx.runAgain", "Run again"), link("rx.runWithArguments", "Run with arguments…"), link("rx.chooseInputs", "Choose inputs…")];
  if (outcome.ok && outcome.outputs.length > 0) {
    all.push(link("rx.saveOutputs", "Save the outputs…"));
  }
  return `<p class="links">${all.join(" ")}</p>`;
}

function link(command: string, text: string): string {
  return `<a href="command:${command}">${text}</a>`;
}
