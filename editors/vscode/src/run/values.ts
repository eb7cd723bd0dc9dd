// Values of a run beside their bindings. A value stays with its line, and goes when its line or one above is changed: what it says of
// the program may hold no more. Blanks and comments change nothing.

import type { Value } from "./outcome";
import { seconds, shape, shortly, value as number } from "./words";

export interface Shown {
  readonly value: Value;
  // Where its variable stands now.
  readonly line: number;
  readonly column: number;
}

// Lines from `start` on were `before` and are `after`.
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

// Strings, comments, blanks, names and numbers, signs.
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

// A change as an editor tells of it, in the lines of a text; these are changed, too.
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

// What is between the first and the last line in which two texts differ.
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

// What stands behind the line.
export function brief(value: Value): string {
  const kind = value.shape === undefined ? `${value.text} ${value.dtype}` : `${shape(value.shape)} ${value.dtype}`;
  const numbers = [
    ["min", value.min],
    ["mean", value.mean],
    ["max", value.max],
  ] as const;
  const known = numbers.some(([, of]) => of !== null) ? numbers.map(([name, of]) => `${name} ${shortly(of)}`) : [];
  const nan = value.nan > 0 ? [`${value.nan} NaN`] : [];
  const time = value.seconds === null ? [] : [`· ${seconds(value.seconds)}`];
  return [kind.trim(), ...known, ...nan, ...time].filter((part) => part !== "").join("  ");
}

// The whole, as Markdown.
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
