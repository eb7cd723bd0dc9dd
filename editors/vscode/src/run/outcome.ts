// What the server's command `rx.run` answers. It comes from a process, so nothing of it is taken for granted.

import { list, number, record, text } from "../json";
import { place, places, type Place } from "../place";

export interface Output {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  // null: no finite number. JSON has neither NaN nor infinity.
  readonly min: number | null;
  readonly mean: number | null;
  readonly max: number | null;
  readonly nan: number;
}

// What a binding of the function was.
export interface Value extends Omit<Output, "shape"> {
  readonly place: Place;
  // Nothing: it is no tensor, and `text` is what it is.
  readonly shape: readonly number[] | undefined;
  readonly text: string;
  // What the binding's own kernels took, where kernels are not joined.
  readonly seconds: number | null;
}

export interface Kernel {
  readonly name: string;
  readonly calls: number;
  // Of all calls together.
  readonly seconds: number;
  // The statements it computes.
  readonly places: readonly Place[];
}

export interface Outcome {
  readonly ok: boolean;
  readonly cancelled: boolean;
  readonly message: string;
  // The median of the runs.
  readonly seconds: number | null;
  readonly outputs: readonly Output[];
  // What there is to choose from, where it is not known which module is meant.
  readonly modules: readonly string[];
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
    log: text(fields["log"]),
    values: list(fields["values"]).flatMap((value) => readValue(value) ?? []),
    kernels: list(fields["kernels"]).map(readKernel),
  };
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
