// Where a program of rx is found. Pure but for the questions it is given, so that it is tested without an editor.

import * as path from "node:path";

export type Source = "setting" | "bundled" | "path" | "python";

export interface Found {
  readonly path: string;
  readonly source: Source;
}

// Why there is none, in words for the user; `places` are those that were looked at.
export interface Missing {
  readonly reason: string;
  readonly places: readonly string[];
}

export interface Places {
  // The setting: a path, a name to look up in PATH, or nothing.
  readonly setting: { readonly name: string; readonly value: string };
  // Where the extension keeps what it came with.
  readonly bundled: string;
  readonly searchPath: readonly string[];
  // Folders of programs of Python environments. Asked for only when nothing else has it.
  readonly python: () => Promise<readonly string[]>;
  readonly home: string;
  // `.exe` on Windows.
  readonly suffix: string;
  readonly isProgram: (file: string) => Promise<boolean>;
}

export function isFound(result: Found | Missing): result is Found {
  return "path" in result;
}

// The first of: the setting, the bundled program, PATH, a Python environment. A setting that names nothing is an error, not a
// reason to run something else.
export async function find(program: string, places: Places): Promise<Found | Missing> {
  const set = places.setting.value.trim();
  if (set !== "") {
    return fromSetting(set, places);
  }
  const file = program + places.suffix;
  const bundled = path.join(places.bundled, file);
  if (await places.isProgram(bundled)) {
    return { path: bundled, source: "bundled" };
  }
  const inPath = await firstIn(places.searchPath, file, places);
  if (inPath !== undefined) {
    return { path: inPath, source: "path" };
  }
  const python = await places.python();
  const inPython = await firstIn(python, file, places);
  if (inPython !== undefined) {
    return { path: inPython, source: "python" };
  }
  const environments = python.length === 0 ? "no Python environment is known" : `nor in ${python.join(", ")}`;
  return {
    reason: `${program} is not bundled with the extension and not in PATH; ${environments}`,
    places: [bundled, ...places.searchPath, ...python],
  };
}

// A program that belongs to a found one: beside it, else where programs are found.
export async function findBeside(program: string, beside: string, places: Places): Promise<Found | Missing> {
  const sibling = path.join(path.dirname(beside), program + places.suffix);
  return (await places.isProgram(sibling)) ? { path: sibling, source: "bundled" } : find(program, places);
}

async function fromSetting(value: string, places: Places): Promise<Found | Missing> {
  const named = value === "~" || /^~[\\/]/.test(value) ? path.join(places.home, value.slice(1)) : value;
  if (path.isAbsolute(named)) {
    return (await places.isProgram(named))
      ? { path: named, source: "setting" }
      : { reason: `the setting ${places.setting.name} names ${named}, which is no program`, places: [named] };
  }
  if (/[\\/]/.test(named)) {
    return { reason: `the setting ${places.setting.name} is ${named}: write the whole path, or a name in PATH`, places: [] };
  }
  const found =
    (await firstIn(places.searchPath, named, places)) ?? (await firstIn(places.searchPath, named + places.suffix, places));
  return found !== undefined
    ? { path: found, source: "setting" }
    : { reason: `the setting ${places.setting.name} names ${named}, which is not in PATH`, places: places.searchPath };
}

// A relative folder in PATH would make the folder that is open choose what runs.
async function firstIn(folders: readonly string[], file: string, places: Places): Promise<string | undefined> {
  for (const folder of folders) {
    const candidate = path.join(folder, file);
    if (path.isAbsolute(folder) && (await places.isProgram(candidate))) {
      return candidate;
    }
  }
  return undefined;
}
