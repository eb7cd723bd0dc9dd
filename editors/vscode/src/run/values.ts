// The values of a run, shown at their bindings while the program is edited. A value moves with its line. It is removed if its line or a line
// above changes in more than blanks and comments, because it may no longer be the value of the program.

import type { Value } from "./outcome";
import { seconds, shape, shortly, value as number } from "./words";

export interface Shown {
  readonly value: Value;
  // The current position of the variable.
  readonly line: number;
  readonly column: number;
}

// A change of lines: from line `start`, the lines `before` were replaced by `after`.
export interface Edit {
  readonly start: number;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export function shown(values: readonly Value[]): Shown[] {
  return values.map((value) => ({ value, line: value.place.line, column: value.place.column }));
}

export function afterEdit(values: readonly Shown[], { start, before, after }: Edit): Shown[] {
  const [old, now] = [words(before), words(after)];
  const changed = old.length !== now.length || old.some((word, at) => word.text !== now[at]?.text);
  const more = after.length - before.length;
  return values.flatMap((shown) => {
    if (shown.line < start) {
      return [shown];
    }
    if (changed) {
      return [];
    }
    if (shown.line >= start + before.length) {
      return [{ ...shown, line: shown.line + more }];
    }
    const at = old.findIndex((word) => word.line === shown.line - start && word.column >= shown.column);
    const word = now[at];
    return word === undefined ? [] : [{ ...shown, line: start + word.line, column: word.column }];
  });
}

interface Word {
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

// Tokens: strings, comments, blanks, names and numbers, other characters.
const WORD = /"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|#.*|\s+|[\w.]+|./gu;

function words(lines: readonly string[]): Word[] {
  return lines.flatMap((text, line) =>
    [...text.matchAll(WORD)]
      .filter(([word]) => !/^(?:#|\s)/.test(word))
      .map((match) => ({ text: match[0], line, column: match.index })),
  );
}

interface Change {
  readonly range: { readonly start: { readonly line: number; readonly character: number }; readonly end: { readonly line: number; readonly character: number } };
  readonly text: string;
}

// Applies a change from the editor to `lines`, and returns it as an edit of whole lines.
export function applied(lines: string[], { range: { start, end }, text }: Change): Edit {
  const before = lines.slice(start.line, end.line + 1);
  const head = (before[0] ?? "").slice(0, start.character);
  const tail = (before.at(-1) ?? "").slice(end.character);
  const after = split(head + text + tail);
  lines.splice(start.line, before.length, ...after);
  return { start: start.line, before, after };
}

export function split(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}

// Returns the edit between two texts: the lines from the first to the last difference.
export function difference(before: readonly string[], after: readonly string[]): Edit {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) {
    start += 1;
  }
  let same = 0;
  while (same < shorter - start && before[before.length - 1 - same] === after[after.length - 1 - same]) {
    same += 1;
  }
  return { start, before: before.slice(start, before.length - same), after: after.slice(start, after.length - same) };
}

// Formats a value for the end of its line.
export function brief(value: Value): string {
  const time = value.seconds === null ? [] : [seconds(value.seconds)];
  if (value.shape === undefined) {
    return [`${value.text} ${value.dtype}`.trim(), ...time].join("  · ");
  }
  const numbers = [
    ["min", value.min],
    ["mean", value.mean],
    ["max", value.max],
  ] as const;
  const known = numbers.some(([, of]) => of !== null) ? numbers.map(([name, of]) => `${name} ${shortly(of)}`) : [];
  const nan = value.nan > 0 ? [`${value.nan} NaN`] : [];
  // The type comes last: it is also in the annotation or the inlay hint, and the end of a long line may be out of view.
  return [[...known, ...nan].join("  "), ...time, `${shape(value.shape)} ${value.dtype}`].filter((part) => part !== "").join("  · ");
}

// Formats the values of a line. If it has several bindings (`a, b = …`), each value has the name of its variable.
export function briefly(values: readonly Value[]): string {
  return values.map((value) => (values.length > 1 ? `${value.name}: ${brief(value)}` : brief(value))).join("   ");
}

// Formats all facts about a value as Markdown, for the hover.
export function whole(value: Value): string {
  const numbers = [
    ["shape", value.shape === undefined ? "" : shape(value.shape)],
    ["min", number(value.min)],
    ["mean", number(value.mean)],
    ["max", number(value.max)],
    ["NaN", String(value.nan)],
  ];
  const rows = [
    ["value", value.text],
    ["dtype", value.dtype],
    ...(value.shape === undefined ? [] : numbers),
    ["time of its kernels", value.seconds === null ? "" : seconds(value.seconds)],
  ].filter(([, text]) => text !== "");
  return [`\`${value.name}\` in the last run`, "", "| | |", "|---|---|", ...rows.map(([name, text]) => `| ${name} | \`${text}\` |`)].join("\n");
}
