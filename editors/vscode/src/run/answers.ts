// The values that a run lacks, as one line that the user types: `4 16`, or `n=4 m=16 s=shape.npy`.

import { assignments, line, words } from "./arguments";
import type { Missing } from "./outcome";

// Whether a run lacks values.
export function lacks({ dims, inputs }: Missing): boolean {
  return dims.length + inputs.length > 0;
}

// Returns the options of rxrun for the user's line. Values without a name are those of the names that have none yet, in order.
export function answered(text: string, { dims, inputs }: Missing, windows?: boolean): string[] | { readonly problem: string } {
  const typed = words(text.replaceAll(/,\s+|(?<=\d),(?=\d|\w+=)/g, " "), windows);
  if (!Array.isArray(typed)) {
    return typed;
  }
  const names = [...dims, ...inputs];
  const values = new Map<string, string>();
  for (const word of typed) {
    const at = word.indexOf("=");
    const name = at > 0 ? word.slice(0, at) : names.find((name) => !values.has(name));
    if (name === undefined || !names.includes(name)) {
      return { problem: `requires values of ${names.join(", ")}; found ${word}` };
    }
    values.set(name, word.slice(at > 0 ? at + 1 : 0));
  }
  const of = (name: string): string => values.get(name) ?? "";
  const wrong = dims.find((dim) => !/^\d+$/.test(of(dim)));
  if (wrong !== undefined) {
    return { problem: `${wrong} requires a whole number, such as 4; found ${of(wrong) || "nothing"}` };
  }
  const empty = inputs.find((input) => of(input) === "");
  if (empty !== undefined) {
    return { problem: `${empty} requires an .npy file; found nothing` };
  }
  return [...dims.flatMap((dim) => ["--dim", `${dim}=${of(dim)}`]), ...inputs.flatMap((input) => ["--input", `${input}=${of(input)}`])];
}

// Returns the line with the values of earlier answers and of files named after their parameters; empty if there are none.
export function suggested({ dims, inputs }: Missing, remembered: readonly string[], files: readonly string[]): string {
  const [known, given] = [new Map(assignments("--dim", remembered)), new Map(assignments("--input", remembered))];
  const parts = [
    ...dims.map((dim) => [dim, known.get(dim) ?? ""]),
    ...inputs.map((input) => [input, given.get(input) ?? files.find((file) => file === `${input}.npy`) ?? ""]),
  ];
  return parts.some(([, value]) => value !== "") ? line(parts.map(([name, value]) => `${name}=${value}`)) : "";
}

// Describes the line: the example of a value for each name.
export function example({ dims, inputs }: Missing): string {
  return [...dims.map((dim) => `${dim}=4`), ...inputs.map((input) => `${input}=${input}.npy`)].join(" ");
}

// Names the missing values: `the dims n, m and the input s`.
export function named({ dims, inputs }: Missing): string {
  const all = ([one, ...more]: readonly string[], word: string): string[] =>
    one === undefined ? [] : [`the ${word}${more.length > 0 ? "s" : ""} ${[one, ...more].join(", ")}`];
  return [...all(dims, "dim"), ...all(inputs, "input")].join(" and ");
}
