// The answer of the server's command `rx.why`: for each part of a value's type, a chain of steps back to its origin.

import { list, record, text } from "../json";
import { place, type Place } from "../place";

export interface Step {
  readonly text: string;
  readonly place: Place | undefined;
  readonly details: readonly string[];
  // Whether the next step has the same value for the same reason.
  readonly unchanged: boolean;
}

export interface Trace {
  readonly part: string;
  readonly value: string;
  readonly steps: readonly Step[];
}

export interface Why {
  readonly subject: string;
  readonly structInfo: string;
  readonly traces: readonly Trace[];
}

// Returns undefined if the cursor is not on a value.
export function readWhy(value: unknown): Why | undefined {
  const fields = record(value);
  return (
    fields && {
      subject: text(fields["subject"]),
      structInfo: text(fields["structInfo"]),
      traces: list(fields["traces"]).map((trace) => ({
        part: text(trace["part"]),
        value: text(trace["value"]),
        steps: list(trace["steps"]).map((step) => ({
          text: text(step["text"]),
          place: place(step["range"]),
          details: list(step["details"]).map((detail) => text(detail["text"])),
          unchanged: step["unchanged"] === true,
        })),
      })),
    }
  );
}

// A row of the list: the head of a chain, or one of its steps.
export type Row = { readonly head: string } | { readonly label: string; readonly description: string; readonly detail: string; readonly place: Place };

export function rows(why: Why): Row[] {
  return why.traces.flatMap((trace) => [{ head: `${trace.part} is ${trace.value}` }, ...trace.steps.flatMap((step) => row(step) ?? [])]);
}

// Returns the row of a step: the value's place and the reason for its value. The last step is the origin.
function row(step: Step): Row | undefined {
  if (step.place === undefined) {
    return undefined;
  }
  const description = `line ${step.place.line + 1}${step.unchanged ? ", unchanged" : ""}`;
  return { label: step.text, description, detail: step.details.join("; "), place: step.place };
}
