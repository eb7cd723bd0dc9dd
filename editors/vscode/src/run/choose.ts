// "Choose Inputs…": files beside the program, or values drawn from the seed.

import * as path from "node:path";
import * as vscode from "vscode";
import { chosenInputs, inputFiles, isSingle, parameters, ticked, type Chosen } from "./inputs";

interface Item extends vscode.QuickPickItem {
  // Nothing: drawn from the seed.
  readonly file?: string;
}

// Nothing when the user gives up. `words` are the arguments as they are.
export async function chooseInputs(program: vscode.Uri, words: readonly string[]): Promise<Chosen[] | undefined> {
  const now = chosenInputs(words);
  const files = program.scheme === "file" ? await filesBeside(program) : [];
  const known = new Set(now.map(({ file }) => file));
  const items: Item[] = [
    { label: "Seeded", description: "values drawn from the seed; so are those of parameters that no chosen file has" },
    ...files.map((file) => ({ label: file, file })),
    // What the user named by hand stays.
    ...[...known].filter((file) => !files.includes(file)).map((file) => ({ label: file, file })),
  ];
  const placeholder = files.length === 0 ? "There is no .npz, .npy or .safetensors file beside the program" : "Files beside the program; they are remembered";
  const picked = await pick(`Inputs of ${path.basename(program.path)}`, placeholder, items, known);
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

// Those that are ticked when the user is done; nothing when the user gives up. Files untick the seed, and it them.
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

async function filesBeside(program: vscode.Uri): Promise<string[]> {
  const entries = await vscode.workspace.fs.readDirectory(vscode.Uri.joinPath(program, ".."));
  const names = entries.filter(([, type]) => (type & vscode.FileType.File) !== 0).map(([name]) => name);
  return inputFiles(names, path.basename(program.path));
}

// The one that the file is named after, else the user says.
async function parameterOf(file: string, program: vscode.Uri): Promise<string | undefined> {
  const names = parameters((await vscode.workspace.openTextDocument(program)).getText());
  const { name } = path.parse(file);
  if (names.includes(name)) {
    return name;
  }
  return vscode.window.showQuickPick(names, { title: `The parameter that ${file} is`, ignoreFocusOut: true });
}
