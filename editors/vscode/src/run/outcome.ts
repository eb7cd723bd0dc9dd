// What the server's command `rx.run` answers. It comes from a process, so nothing of it is taken for granted.

import { number, record, text } from "../json";

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

export interface Outcome {
  readonly ok: boolean;
  readonly cancelled: boolean;
  readonly message: string;
  // The median of the runs.
  readonly seconds: number | null;
  readonly outputs: readonly Output[];
  readonly log: string;
}

export function readOutcome(value: unknown): Outcome | undefined {
  const fields = record(value);
  if (fields === undefined || typeof fields["message"] !== "string") {
    return undefined;
  }
  const outputs = Array.isArray(fields["outputs"]) ? fields["outputs"] : [];
  return {
    ok: fields["ok"] === true,
    cancelled: fields["cancelled"] === true,
    message: fields["message"],
    seconds: number(fields["seconds"]),
    outputs: outputs.flatMap((output) => readOutput(output) ?? []),
    log: text(fields["log"]),
  };
}

function readOutput(value: unknown): Output | undefined {
  const fields = record(value);
  return (
    fields && {
      name: text(fields["name"]),
      dtype: text(fields["dtype"]),
      shape: Array.isArray(fields["shape"]) ? fields["shape"].filter((dim) => typeof dim === "number") : [],
      min: number(fields["min"]),
      mean: number(fields["mean"]),
      max: number(fields["max"]),
      nan: number(fields["nan"]) ?? 0,
    }
  );
}
