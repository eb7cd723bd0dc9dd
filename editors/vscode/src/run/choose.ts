// "Choose Inputs…": files beside the program, or values drawn from the seed.

import * as path from "node:path";
import * as vscode from "vscode";
import { chosenInputs, inputFiles, isSingle, parameters, type Chosen } from "./inputs";

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
    { label: "Seeded", description: "values drawn from the seed, for every parameter that no chosen file has", picked: known.size === 0 },
    ...files.map((file) => ({ label: file, file, picked: known.has(file) })),
    // What the user named by hand stays.
    ...[...known].filter((file) => !files.includes(file)).map((file) => ({ label: file, file, picked: true })),
  ];
  const picked = await vscode.window.showQuickPick(items, {
    title: `Inputs of ${path.basename(program.path)}`,
    placeHolder: files.length === 0 ? "There is no .npz, .npy or .safetensors file beside the program" : "Files beside the program; they are remembered",
    canPickMany: true,
    ignoreFocusOut: true,
  });
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
