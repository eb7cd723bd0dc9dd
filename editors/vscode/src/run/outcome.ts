// The answer of the server's command `rx.run`. It comes from another process, so the types of all fields are checked.

import { list, number, record, text } from "../json";
import { place, places, type Place } from "../place";

export interface Output {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  // null if the number is not finite, because JSON has neither NaN nor infinity.
  readonly min: number | null;
  readonly mean: number | null;
  readonly max: number | null;
  readonly nan: number;
}

// The value of a binding of the function.
export interface Value extends Omit<Output, "shape"> {
  readonly place: Place;
  // Undefined if the value is not a tensor; `text` then describes it.
  readonly shape: readonly number[] | undefined;
  readonly text: string;
  // The time of the binding's kernels, without fusion.
  readonly seconds: number | null;
}

export interface Kernel {
  readonly name: string;
  readonly calls: number;
  // The total time of all calls.
  readonly seconds: number;
  // The statements that the kernel computes.
  readonly places: readonly Place[];
}

// The values that a run lacks: dims for `--dim`; parameters, and fields of tuples, for `--input`.
export interface Missing {
  readonly dims: readonly string[];
  readonly inputs: readonly string[];
}

export interface Outcome {
  readonly ok: boolean;
  readonly cancelled: boolean;
  readonly message: string;
  // The median time of the runs.
  readonly seconds: number | null;
  readonly outputs: readonly Output[];
  // The modules to choose from, if the program has several and none was named.
  readonly modules: readonly string[];
  readonly missing: Missing;
  readonly log: string;
  readonly values: readonly Value[];
  readonly kernels: readonly Kernel[];
}

export function readOutcome(value: unknown): Outcome | undefined {
  const fields = record(value);
  if (fields === undefined || typeof fields["message"] !== "string") {
    return undefined;
  }
  return {
    ok: fields["ok"] === true,
    cancelled: fields["cancelled"] === true,
    message: fields["message"],
    seconds: number(fields["seconds"]),
    outputs: list(fields["outputs"]).map(readOutput),
    modules: strings(fields["modules"]),
    missing: readMissing(fields["missing"]),
    log: text(fields["log"]),
    values: list(fields["values"]).flatMap((value) => readValue(value) ?? []),
    kernels: list(fields["kernels"]).map(readKernel),
  };
}

function readMissing(value: unknown): Missing {
  const fields = record(value);
  return { dims: strings(fields?.["dims"]), inputs: strings(fields?.["inputs"]) };
}

function readOutput(fields: Record<string, unknown>): Output {
  return {
    name: text(fields["name"]),
    dtype: text(fields["dtype"]),
    shape: dims(fields["shape"]) ?? [],
    min: number(fields["min"]),
    mean: number(fields["mean"]),
    max: number(fields["max"]),
    nan: number(fields["nan"]) ?? 0,
  };
}

function readValue(fields: Record<string, unknown>): Value | undefined {
  const where = place(fields["range"]);
  return where && { ...readOutput(fields), shape: dims(fields["shape"]), text: text(fields["text"]), place: where, seconds: number(fields["seconds"]) };
}

function readKernel(fields: Record<string, unknown>): Kernel {
  return {
    name: text(fields["name"]),
    calls: number(fields["calls"]) ?? 0,
    seconds: number(fields["seconds"]) ?? 0,
    places: places(fields["ranges"]),
  };
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

function dims(value: unknown): number[] | undefined {
  return Array.isArray(value) ? value.filter((dim) => typeof dim === "number") : undefined;
}
