// The answer of the server's command `rx.stage`, and the document that shows it.

import { list, number, record, text } from "../json";
import { at, places, type Place, type Point } from "../place";

export type Stage = "tir" | "cuda" | "ptx" | "cpu";

interface Kind {
  readonly title: string;
  // The extension of the document's name, which determines its icon and the extensions that handle it.
  readonly extension: string;
  // Language ids, of which the first one that the editor knows is used.
  readonly languages: readonly string[];
  readonly comment: string;
}

export const KINDS: Readonly<Record<Stage, Kind>> = {
  tir: { title: "loop-level IR", extension: "rx", languages: ["relax", "python"], comment: "#" },
  cuda: { title: "CUDA C", extension: "cu", languages: ["cuda-cpp", "cpp"], comment: "//" },
  ptx: { title: "PTX", extension: "ptx", languages: ["ptx", "plaintext"], comment: "//" },
  cpu: { title: "CPU code", extension: "txt", languages: ["plaintext"], comment: ";" },
};

export interface Part {
  readonly name: string;
  // The range of lines in the answer's text; the end is exclusive.
  readonly start: number;
  readonly end: number;
  // The source statements of these lines.
  readonly places: readonly Place[];
}

export interface Made {
  readonly function: string;
  // The module of the function; empty outside of modules.
  readonly module: string;
  // If null, `message` is the reason.
  readonly text: string | null;
  readonly message: string;
  readonly parts: readonly Part[];
}

// Returns undefined if there is no function at the position.
export function readStage(value: unknown): Made | undefined {
  const fields = record(value);
  if (fields === undefined) {
    return undefined;
  }
  return {
    function: text(fields["function"]),
    module: text(fields["module"]),
    text: typeof fields["text"] === "string" ? fields["text"] : null,
    message: text(fields["message"]),
    parts: list(fields["parts"]).flatMap((part) => readPart(part) ?? []),
  };
}

function readPart(fields: Record<string, unknown>): Part | undefined {
  const lines: unknown[] = Array.isArray(fields["lines"]) ? fields["lines"] : [];
  const [start, end] = [number(lines[0]), number(lines[1])];
  if (start === null || end === null || end <= start) {
    return undefined;
  }
  return { name: text(fields["name"]), start, end, places: places(fields["ranges"]) };
}

// Returns the function's name after the name of its module, as `Functions.at` does.
export function path(made: Made): string {
  return made.module === "" || made.module === "-" ? made.function : `${made.module}.${made.function}`;
}

// The number of lines that `document` adds before the text.
export const HEAD = 2;

// Returns the text of the document. Its first line names the function and the stage.
export function document(stage: Stage, made: Made, program: string): string {
  const { comment, title } = KINDS[stage];
  const head = `${comment} ${made.function} in ${program}: ${title}\n\n`;
  return made.text === null ? `${head}${commented(stage, made.message || "There is no text.")}` : `${head}${made.text}`;
}

export function commented(stage: Stage, message: string): string {
  const { comment } = KINDS[stage];
  return message
    .trimEnd()
    .split("\n")
    .map((line) => `${comment} ${line}`.trimEnd())
    .join("\n")
    .concat("\n");
}

// The first and last lines of a range in the document.
export type Lines = readonly [number, number];

// Returns the lines that come from the statement at a point of the program.
export function linesOf(made: Made, point: Point): Lines[] {
  const [smallest, ...others] = at(made.parts, point, (part) => part.places);
  if (smallest === undefined) {
    return [];
  }
  return [smallest, ...others].map((part): Lines => [part.start + HEAD, part.end + HEAD - 1]).sort(([one], [other]) => one - other);
}

// Returns the source statements of a line of the document.
export function placesOf(made: Made, line: number): Place[] {
  const places = made.parts.filter((part) => part.start + HEAD <= line && line < part.end + HEAD).flatMap((part) => part.places);
  return places.toSorted((one, other) => one.line - other.line);
}

// Returns the stage of that name.
export function readKind(value: unknown): Stage | undefined {
  return (Object.keys(KINDS) as Stage[]).find((stage) => stage === value);
}

// Returns the name in the document's tab, `net.rx (CUDA C).cu`.
export function tab(stage: Stage, program: string): string {
  return `${program} (${KINDS[stage].title}).${KINDS[stage].extension}`;
}
