// What the server's command `rx.stage` answers, and the document that is made of it.

import { list, number, record, text } from "../json";
import { at, places, type Place, type Point } from "../place";

export type Stage = "tir" | "cuda" | "ptx" | "cpu";

interface Kind {
  readonly title: string;
  // Of the document's name: icons and other extensions go by it.
  readonly extension: string;
  // The first one that the editor knows.
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
  // Of the answer's text; the end is not in it.
  readonly start: number;
  readonly end: number;
  // The statements it comes from.
  readonly places: readonly Place[];
}

export interface Made {
  readonly function: string;
  // Of the function; empty outside of modules.
  readonly module: string;
  // null: there is none, and `message` says why.
  readonly text: string | null;
  readonly message: string;
  readonly parts: readonly Part[];
}

// Nothing where no function stands at the position.
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

// The function's name behind its module's, as `Functions.at` has it.
export function path(made: Made): string {
  return made.module === "" || made.module === "-" ? made.function : `${made.module}.${made.function}`;
}

// How many lines `document` puts before the text.
export const HEAD = 2;

// The whole document: its first line says of what it is.
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

// Lines of the document, first and last.
export type Lines = readonly [number, number];

// What comes from the statement at a point of the program.
export function linesOf(made: Made, point: Point): Lines[] {
  const [smallest, ...others] = at(made.parts, point, (part) => part.places);
  if (smallest === undefined) {
    return [];
  }
  return [smallest, ...others].map((part): Lines => [part.start + HEAD, part.end + HEAD - 1]).sort(([one], [other]) => one - other);
}

// The statements that a line of the document comes from.
export function placesOf(made: Made, line: number): Place[] {
  const places = made.parts.filter((part) => part.start + HEAD <= line && line < part.end + HEAD).flatMap((part) => part.places);
  return places.toSorted((one, other) => one.line - other.line);
}

// The stage of that name.
export function readKind(value: unknown): Stage | undefined {
  return (Object.keys(KINDS) as Stage[]).find((stage) => stage === value);
}

// The name in the document's tab, `net.rx (CUDA C).cu`.
export function tab(stage: Stage, program: string): string {
  return `${program} (${KINDS[stage].title}).${KINDS[stage].extension}`;
}
