// The programs in editors: where the user is in one, and when one has come to rest.

import * as vscode from "vscode";
import { selector } from "./documents";
import { pythonEnabled } from "./settings";

// Long enough that nothing is made anew while somebody types.
const SETTLED_MS = 300;

export function isProgram(document: vscode.TextDocument): boolean {
  return vscode.languages.match(selector(pythonEnabled()), document) > 0;
}

// The name of a program's file.
export function nameOf({ path }: vscode.Uri): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

// The editor of the program that the user is in; beside a stage or a graph, the one that is shown.
export function activeProgram(): vscode.TextEditor | undefined {
  const active = vscode.window.activeTextEditor;
  const editors = active === undefined ? vscode.window.visibleTextEditors : [active, ...vscode.window.visibleTextEditors];
  return editors.find((editor) => isProgram(editor.document));
}

// The editors that show a document.
export function editorsOf(uri: vscode.Uri): vscode.TextEditor[] {
  return vscode.window.visibleTextEditors.filter((editor) => editor.document.uri.toString() === uri.toString());
}

// Tells of a program whose text or diagnostics changed, once both have been quiet for a while.
export function onDidSettle(tell: (uri: vscode.Uri) => void): vscode.Disposable {
  const timers = new Map<string, NodeJS.Timeout>();
  const again = (uri: vscode.Uri): void => {
    const key = uri.toString();
    clearTimeout(timers.get(key));
    timers.set(
      key,
      setTimeout(() => {
        timers.delete(key);
        tell(uri);
      }, SETTLED_MS),
    );
  };
  return vscode.Disposable.from(
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length > 0 && isProgram(document)) {
        again(document.uri);
      }
    }),
    vscode.languages.onDidChangeDiagnostics(({ uris }) => uris.forEach(again)),
    { dispose: () => timers.forEach((timer) => clearTimeout(timer)) },
  );
}
