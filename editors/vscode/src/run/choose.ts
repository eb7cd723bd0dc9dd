// "Choose Inputs…": files in the program's folder, or random values drawn from the seed.

import * as path from "node:path";
import * as vscode from "vscode";
import { nameOf } from "../programs";
import { chosenInputs, inputFiles, isSingle, parameters, ticked, type Chosen } from "./inputs";

interface Item extends vscode.QuickPickItem {
  // If undefined, the values are drawn from the seed.
  readonly file?: string;
}

// Returns undefined if the user cancels. `words` are the current arguments.
export async function chooseInputs(program: vscode.Uri, words: readonly string[]): Promise<Chosen[] | undefined> {
  const now = chosenInputs(words);
  const files = await filesBeside(program);
  const known = new Set(now.map(({ file }) => file));
  const items: Item[] = [
    { label: "Seeded", description: "random values drawn from the seed; also used for parameters that are in no chosen file" },
    ...files.map((file) => ({ label: file, file })),
    // Files that the user entered by hand are kept.
    ...[...known].filter((file) => !files.includes(file)).map((file) => ({ label: file, file })),
  ];
  const placeholder = files.length === 0 ? "There is no .npz, .npy or .safetensors file in the program's folder" : "Files in the program's folder; the choice is remembered";
  const picked = await pick(`Inputs of ${nameOf(program)}`, placeholder, items, known);
  const chosen: Chosen[] = [];
  for (const { file } of picked ?? []) {
    if (file !== undefined) {
      const parameter = isSingle(file) ? (now.find((one) => one.file === file)?.parameter ?? (await parameterOf(file, program))) : undefined;
      if (isSingle(file) && parameter === undefined) {
        return undefined;
      }
      chosen.push({ file, ...(parameter !== undefined && { parameter }) });
    }
  }
  return picked && chosen;
}

// Returns the selected items; undefined if the user cancels. Selecting a file deselects the seed, and the reverse.
function pick(title: string, placeholder: string, items: readonly Item[], known: ReadonlySet<string>): Promise<readonly Item[] | undefined> {
  const quick = vscode.window.createQuickPick<Item>();
  Object.assign(quick, { title, placeholder, items, canSelectMany: true, ignoreFocusOut: true });
  const select = (files: readonly (string | undefined)[]): void => {
    quick.selectedItems = items.filter(({ file }) => files.includes(file));
  };
  let now = ticked([], [...known]);
  select(now);
  return new Promise((resolve) => {
    quick.onDidChangeSelection((selected) => {
      const wanted = ticked(now, selected.map(({ file }) => file));
      now = wanted;
      if (wanted.length !== selected.length || selected.some(({ file }) => !wanted.includes(file))) {
        select(wanted);
      }
    });
    quick.onDidAccept(() => {
      resolve(quick.selectedItems);
      quick.hide();
    });
    quick.onDidHide(() => {
      resolve(undefined);
      quick.dispose();
    });
    quick.show();
  });
}

// Returns the files in the program's folder that can be inputs; none if the program was never saved.
export async function filesBeside(program: vscode.Uri): Promise<string[]> {
  if (program.scheme !== "file") {
    return [];
  }
  const entries = await vscode.workspace.fs.readDirectory(vscode.Uri.joinPath(program, ".."));
  const names = entries.filter(([, type]) => (type & vscode.FileType.File) !== 0).map(([name]) => name);
  return inputFiles(names, nameOf(program));
}

// Returns the parameter with the file's name, otherwise asks the user.
async function parameterOf(file: string, program: vscode.Uri): Promise<string | undefined> {
  const names = parameters((await vscode.workspace.openTextDocument(program)).getText());
  const { name } = path.parse(file);
  if (names.includes(name)) {
    return name;
  }
  return vscode.window.showQuickPick(names, { title: `The parameter to read from ${file}`, ignoreFocusOut: true });
}
