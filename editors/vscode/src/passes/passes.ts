// The answer of the server's command `rx.stage` for passes: the module before the first and after each pass, with the source of its lines.

import { list, number, record, text } from "../json";
import { at, places, type Place, type Point } from "../place";

export interface Step {
  // The name of the pass; null for the module before the first pass.
  readonly pass: string | null;
  readonly changed: boolean;
  // The reason that the pass could not be applied; empty if it was applied.
  readonly problem: string;
  // The module after the pass.
  readonly text: string;
  // The source of the lines of `text`.
  readonly parts: readonly Part[];
}

export interface Part {
  // The range of lines in the step's text; the end is exclusive.
  readonly start: number;
  readonly end: number;
  // The source statements of these lines.
  readonly places: readonly Place[];
}

export interface Passes {
  // If empty, `message` is the reason.
  readonly steps: readonly Step[];
  readonly message: string;
}

// Returns undefined if there is no function at the position.
export function readPasses(value: unknown): Passes | undefined {
  const fields = record(value);
  if (fields === undefined) {
    return undefined;
  }
  const lines = text(fields["text"]).split("\n");
  const parts = list(fields["parts"]).flatMap((part) => readPart(part) ?? []);
  const read = list(fields["passes"]).flatMap((step) => readStep(step, lines, parts) ?? []);
  // A pass may change what the text does not show; a diff of it would be empty.
  const steps = read.map((step, at) => ({ ...step, changed: step.changed && step.text !== read[at - 1]?.text }));
  return { steps, message: text(fields["message"]) };
}

function readPart(fields: Record<string, unknown>): Part | undefined {
  const lines = readLines(fields["lines"]);
  return lines && { ...lines, places: places(fields["ranges"]) };
}

function readLines(value: unknown): { readonly start: number; readonly end: number } | undefined {
  const lines: unknown[] = Array.isArray(value) ? value : [];
  const [start, end] = [number(lines[0]), number(lines[1])];
  return start === null || end === null || end <= start ? undefined : { start, end };
}

function readStep(fields: Record<string, unknown>, lines: readonly string[], parts: readonly Part[]): Step | undefined {
  const own = readLines(fields["lines"]);
  if (own === undefined) {
    return undefined;
  }
  const inside = parts.filter(({ start, end }) => own.start <= start && end <= own.end);
  return {
    pass: typeof fields["pass"] === "string" ? fields["pass"] : null,
    changed: fields["changed"] === true,
    problem: text(fields["problem"]),
    text: `${lines.slice(own.start, own.end).join("\n")}\n`,
    parts: inside.map(({ start, end, places }) => ({ start: start - own.start, end: end - own.start, places })),
  };
}

// Returns the first and last lines that come from the statement at a point of the program.
export function linesOf(step: Step, point: Point): (readonly [number, number])[] {
  const found = at(step.parts, point, (part) => part.places);
  return found.map(({ start, end }) => [start, end - 1] as const).sort(([one], [other]) => one - other);
}

// Returns the source statements of a line.
export function placesOf(step: Step, line: number): Place[] {
  const found = step.parts.filter(({ start, end }) => start <= line && line < end).flatMap((part) => part.places);
  return found.toSorted((one, other) => one.line - other.line);
}

// Returns the next step in a direction that changed the module; undefined if there is none.
export function neighbour(steps: readonly Step[], from: number, direction: 1 | -1): number | undefined {
  for (let index = from + direction; index > 0 && index < steps.length; index += direction) {
    if (steps[index]?.changed === true) {
      return index;
    }
  }
  return undefined;
}

// Returns the reason that a step has no diff; undefined if it changed the module.
export function unchanged(step: Step): string | undefined {
  if (step.problem !== "") {
    return `${title(step)} cannot be applied: ${step.problem}`;
  }
  return step.changed ? undefined : `${title(step)} does not change the module`;
}

export function title(step: Step): string {
  return step.pass ?? "the module";
}

// Returns the items of the list of passes: those with changes, then the others, each group under a heading without an index.
export function choices(steps: readonly Step[]): { readonly label: string; readonly index?: number }[] {
  const all = steps.map((step, index) => ({ label: title(step), index, idle: step.problem === "" && !step.changed })).slice(1);
  const under = (heading: string, idle: boolean): { readonly label: string; readonly index?: number }[] => {
    const found = all.filter((choice) => choice.idle === idle).map(({ label, index }) => ({ label, index }));
    return found.length === 0 ? [] : [{ label: heading }, ...found];
  };
  return [...under("with changes", false), ...under("without changes", true)];
}

// Summarizes a step in a few words.
export function summary(steps: readonly Step[], index: number): string {
  const [before, step] = [steps[index - 1], steps[index]];
  if (step === undefined || before === undefined) {
    return "the original module";
  }
  if (step.problem !== "") {
    return step.problem;
  }
  if (!step.changed) {
    return "no change";
  }
  const count = (text: string): number => text.split("\n").length - 1;
  const more = count(step.text) - count(before.text);
  return more === 0 ? "the same number of lines" : `${Math.abs(more)} ${Math.abs(more) === 1 ? "line" : "lines"} ${more > 0 ? "more" : "fewer"}`;
}

// Parses the step's index in a document's address.
export function readIndex(value: unknown): number | undefined {
  return number(value) ?? undefined;
}

// Returns the reason that there is nothing to show, from the server's answer.
export function nothing(answer: unknown, program: string): string {
  return answer === null ? `${program} has no function to run passes on.` : "the language server did not return passes. See its log for the reason.";
}

// Returns the name in a document's tab: `net.rx 03 FoldConstant.rx`.
export function tab(program: string, index: number, step: Step): string {
  return `${program} ${String(index).padStart(2, "0")} ${title(step)}.rx`;
}
