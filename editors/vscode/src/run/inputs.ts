// The input files of a run. They are stored only in the remembered arguments of the program.

import path from "node:path";
import { assignments, optionValues, without } from "./arguments";

export interface Chosen {
  // The path for rxrun, relative to the program's folder.
  readonly file: string;
  // Only for `.npy`, which contains one array without a name.
  readonly parameter?: string;
}

const NAMED = [".npz", ".safetensors"];
const SINGLE = ".npy";

// Returns the files of a folder that can be inputs. Files named after the program (`net.npz` or `net.inputs.npz` for `net.rx`) are first.
export function inputFiles(names: readonly string[], program: string): string[] {
  const stem = path.parse(program).name;
  const own = (name: string): boolean => path.parse(name).name === stem || name.startsWith(`${stem}.`);
  const order = (one: string, other: string): number => Number(own(other)) - Number(own(one)) || (one < other ? -1 : 1);
  return names.filter((name) => [...NAMED, SINGLE].includes(path.extname(name).toLowerCase())).toSorted(order);
}

export function isSingle(file: string): boolean {
  return path.extname(file).toLowerCase() === SINGLE;
}

// Replaces the inputs in the arguments. Values of dims are removed, because the new arrays may have other dims; missing ones are asked for later.
export function withInputs(words: readonly string[], chosen: readonly Chosen[]): string[] {
  const others = without("--input", without("--inputs", words));
  const kept = chosen.length === 0 ? others : without("--dim", others);
  return [...kept, ...chosen.flatMap(({ file, parameter }) => (parameter === undefined ? ["--inputs", file] : ["--input", `${parameter}=${file}`]))];
}

export function chosenInputs(words: readonly string[]): Chosen[] {
  const named = assignments("--input", words).map(([parameter, file]) => ({ file, parameter }));
  return [...optionValues("--inputs", words).map((file) => ({ file })), ...named];
}

// Returns the items that remain selected: either files or only the seed (undefined), whichever was selected last.
export function ticked(before: readonly (string | undefined)[], now: readonly (string | undefined)[]): (string | undefined)[] {
  const files = now.filter((file) => file !== undefined);
  const seeded = now.length > files.length && !before.includes(undefined);
  return seeded || files.length === 0 ? [undefined] : files;
}

// Returns the names of the parameters of all functions of a program, in order.
export function parameters(program: string): string[] {
  const heads = [...program.matchAll(/^[ \t]*def[ \t]+\w+[ \t]*\(/gm)];
  return [...new Set(heads.flatMap((head) => names(program.slice(head.index + head[0].length, head.index + 100_000))))];
}

// Returns the parameters' names in `x: R.Tensor((1, n)), y: …)`: the words before a colon outside of inner brackets.
function names(text: string): string[] {
  const found: string[] = [];
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#.*|\w+\s*:|[()[\]{}]|\w+|[^]/g)) {
    if ("([{".includes(token)) {
      depth += 1;
    } else if (")]}".includes(token)) {
      depth -= 1;
      if (depth < 0) {
        break;
      }
    } else if (depth === 0 && /^[A-Za-z_]\w*\s*:$/.test(token)) {
      found.push(token.slice(0, -1).trim());
    }
  }
  return found;
}
