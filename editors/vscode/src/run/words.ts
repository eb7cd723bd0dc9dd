// Formats values for the report and the log.

import type { Outcome, Output } from "./outcome";

// Formats a shape as TVM does, as a Python tuple: `(4,)`.
export function shape(dims: readonly number[]): string {
  return dims.length === 1 ? `(${dims[0]},)` : `(${dims.join(", ")})`;
}

export function value(of: number | null): string {
  if (of === null) {
    return "not finite";
  }
  const size = Math.abs(of);
  if (Number.isInteger(of) && size < 1e9) {
    return String(of);
  }
  return size >= 1e-3 && size < 1e6 ? of.toPrecision(6) : of.toExponential(4);
}

// Formats a number briefly, for the end of a program's line.
export function shortly(of: number | null): string {
  if (of === null) {
    return "not finite";
  }
  const size = Math.abs(of);
  return size >= 1e6 ? of.toExponential(2) : String(Number(of.toPrecision(3)));
}

export function seconds(of: number): string {
  if (of < 1e-3) {
    return `${(of * 1e6).toFixed(0)} µs`;
  }
  return of < 1 ? `${(of * 1e3).toFixed(1)} ms` : `${of.toFixed(2)} s`;
}

export function lines(outcome: Outcome): string[] {
  return [outcome.message, ...outcome.outputs.map(line), ...(outcome.log === "" ? [] : [outcome.log.trimEnd()])];
}

function line(output: Output): string {
  const values = `min ${value(output.min)}  mean ${value(output.mean)}  max ${value(output.max)}  nan ${output.nan}`;
  return `  ${output.name}: ${output.dtype} ${shape(output.shape)}  ${values}`;
}
