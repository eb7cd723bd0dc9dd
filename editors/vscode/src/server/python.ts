// Finds the folders of Python environments that contain programs: `pip install rx-relax` installs rx-lsp there.

import * as path from "node:path";
import * as vscode from "vscode";

// The used part of the API of the extension ms-python.python.
interface PythonApi {
  readonly environments?: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(path: unknown): Promise<{ readonly executable?: { readonly uri?: vscode.Uri } } | undefined>;
  };
}

// Returns the folder of the selected interpreter, then those of the workspace. An environment can be part of the workspace, so in a workspace that
// is not trusted no environment is used.
export async function pythonFolders(): Promise<readonly string[]> {
  if (!vscode.workspace.isTrusted) {
    return [];
  }
  const selected = await selectedInterpreter();
  const folder = process.platform === "win32" ? "Scripts" : "bin";
  const own = (vscode.workspace.workspaceFolders ?? [])
    .filter((root) => root.uri.scheme === "file")
    .flatMap((root) => [".venv", "venv"].map((name) => path.join(root.uri.fsPath, name, folder)));
  const active = process.env["VIRTUAL_ENV"];
  return [
    ...(selected === undefined ? [] : [path.dirname(selected)]),
    ...(active === undefined ? [] : [path.join(active, folder)]),
    ...own,
  ];
}

async function selectedInterpreter(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  try {
    const environments = (await extension?.activate())?.environments;
    const active = environments?.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    return (await environments?.resolveEnvironment(active))?.executable?.uri?.fsPath;
  } catch {
    // An error of the Python extension means that no interpreter is known.
    return undefined;
  }
}
