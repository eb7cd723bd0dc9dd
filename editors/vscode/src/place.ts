// Ranges in a program, as in the server's answers. Lines and columns are counted from 0, as in the editor.

import { number, record } from "./json";

export interface Place {
  readonly line: number;
  readonly column: number;
  readonly endLine: number;
  readonly endColumn: number;
}

export interface Point {
  readonly line: number;
  readonly column: number;
}

// Parses a range of the protocol.
export function place(value: unknown): Place | undefined {
  const [start, end] = [record(record(value)?.["start"]), record(record(value)?.["end"])];
  const [line, column] = [number(start?.["line"]), number(start?.["character"])];
  const [endLine, endColumn] = [number(end?.["line"]), number(end?.["character"])];
  return line === null || column === null || endLine === null || endColumn === null ? undefined : { line, column, endLine, endColumn };
}

export function places(value: unknown): Place[] {
  return Array.isArray(value) ? value.flatMap((range) => place(range) ?? []) : [];
}

export function contains(place: Place, { line, column }: Point): boolean {
  const after = line > place.line || (line === place.line && column >= place.column);
  const before = line < place.endLine || (line === place.endLine && column <= place.endColumn);
  return after && before;
}

export function onLines(place: Place, line: number): boolean {
  return place.line <= line && line <= place.endLine;
}

// Returns the items whose ranges contain a point, the smallest range first; if there are none, the items on the point's line.
export function at<T>(all: readonly T[], point: Point, of: (item: T) => readonly Place[]): T[] {
  const inside = all.filter((item) => of(item).some((place) => contains(place, point)));
  const found = inside.length > 0 ? inside : all.filter((item) => of(item).some((place) => onLines(place, point.line)));
  const size = (item: T): number => Math.min(...of(item).map(length));
  return found.toSorted((one, other) => size(one) - size(other));
}

// The size of a range, for comparison: one line is more than any number of columns.
function length({ line, column, endLine, endColumn }: Place): number {
  return (endLine - line) * 100_000 + endColumn - column;
}
