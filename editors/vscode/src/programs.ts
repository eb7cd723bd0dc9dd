// The programs in editors: the active one, and notification after a program has stopped changing.

import * as vscode from "vscode";
import { editorSelector, wantsServer } from "./documents";
import { pythonEnabled } from "./settings";

// The pause after a change; long enough that nothing is regenerated while the user types.
const SETTLED_MS = 300;

// The lines of a Python file that are searched for TVM's imports and decorators.
const FIRST_LINES = new vscode.Range(0, 0, 500, 0);

// Whether a document has Relax in it: most Python files have none.
export function hasRelax(document: vscode.TextDocument): boolean {
  const { languageId, uri } = document;
  return wantsServer({ languageId, uri, head: () => document.getText(FIRST_LINES) }, pythonEnabled());
}

// Keeps the context key with the addresses of the open documents that have Relax in them: their menus have the commands of programs, in Relax
// and in Python files alike.
export function announcePrograms(): vscode.Disposable {
  const programs = new Map<string, vscode.Uri>();
  const announce = (): void => announceAddresses("rx.programs", [...programs.values()]);
  // Only documents that changed are searched again.
  const update = (documents: readonly vscode.TextDocument[]): void => {
    const changed = documents.filter((document) => hasRelax(document) !== programs.has(document.uri.toString()));
    for (const { uri } of changed) {
      if (!programs.delete(uri.toString())) {
        programs.set(uri.toString(), uri);
      }
    }
    if (changed.length > 0) {
      announce();
    }
  };
  update(vscode.workspace.textDocuments);
  return vscode.Disposable.from(
    vscode.workspace.onDidOpenTextDocument((document) => update([document])),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => programs.delete(uri.toString()) && announce()),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("rx.python") && update(vscode.workspace.textDocuments)),
    onDidSettle((uri) => update(vscode.workspace.textDocuments.filter((document) => document.uri.toString() === uri.toString()))),
  );
}

// Sets a context key to addresses. They are not strings, because VS Code translates only `Uri`s into the addresses of a remote window: there,
// `file:///net.rx` is `vscode-remote://host/net.rx`.
export function announceAddresses(key: string, addresses: readonly vscode.Uri[]): void {
  void vscode.commands.executeCommand("setContext", key, addresses);
}

export function isProgram(document: vscode.TextDocument): boolean {
  return vscode.languages.match(editorSelector(pythonEnabled()), document) > 0;
}

// Returns the name of a program's file.
export function nameOf({ path }: vscode.Uri): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

// Returns the editor of the active program; if a stage or a graph is active, the visible program beside it.
export function activeProgram(): vscode.TextEditor | undefined {
  const active = vscode.window.activeTextEditor;
  const editors = active === undefined ? vscode.window.visibleTextEditors : [active, ...vscode.window.visibleTextEditors];
  return editors.find((editor) => isProgram(editor.document));
}

// Returns the visible editors of a document.
export function editorsOf(uri: vscode.Uri): vscode.TextEditor[] {
  return vscode.window.visibleTextEditors.filter((editor) => editor.document.uri.toString() === uri.toString());
}

// Calls `tell` for a program whose text or diagnostics changed, once neither has changed for a while.
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
