// Finds the programs of rx. All access to the machine goes through `Places`, so that it can be tested without an editor.

import * as path from "node:path";

export type Source = "setting" | "bundled" | "path" | "python";

export interface Found {
  readonly path: string;
  readonly source: Source;
}

// The reason that no program was found, for the user; `places` are the places that were searched.
export interface Missing {
  readonly reason: string;
  readonly places: readonly string[];
}

export interface Places {
  // The setting: a path, a name to look up in PATH, or empty.
  readonly setting: { readonly name: string; readonly value: string };
  // The folder of the programs that are bundled with the extension.
  readonly bundled: string;
  readonly searchPath: readonly string[];
  // The folders with the programs of Python environments. Called only if the program is found nowhere else.
  readonly python: () => Promise<readonly string[]>;
  readonly home: string;
  // The suffix of programs: `.exe` on Windows.
  readonly suffix: string;
  readonly isProgram: (file: string) => Promise<boolean>;
}

export function isFound(result: Found | Missing): result is Found {
  return "path" in result;
}

// Returns the first of: the setting, the bundled program, PATH, a Python environment. If the setting names a missing program, that is an error;
// no other program is used instead.
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

// Finds a program that belongs to another one: in the same folder, otherwise as in `find`.
export async function findBeside(program: string, beside: string, places: Places): Promise<Found | Missing> {
  const sibling = path.join(path.dirname(beside), program + places.suffix);
  return (await places.isProgram(sibling)) ? { path: sibling, source: "bundled" } : find(program, places);
}

async function fromSetting(value: string, places: Places): Promise<Found | Missing> {
  const named = value === "~" || /^~[\\/]/.test(value) ? path.join(places.home, value.slice(1)) : value;
  if (path.isAbsolute(named)) {
    return (await places.isProgram(named))
      ? { path: named, source: "setting" }
      : { reason: `the setting ${places.setting.name} names ${named}, which is not a program`, places: [named] };
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

// Relative folders in PATH are skipped, because with them the open folder could choose the program that is run.
async function firstIn(folders: readonly string[], file: string, places: Places): Promise<string | undefined> {
  for (const folder of folders) {
    const candidate = path.join(folder, file);
    if (path.isAbsolute(folder) && (await places.isProgram(candidate))) {
      return candidate;
    }
  }
  return undefined;
}
