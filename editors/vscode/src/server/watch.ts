// Calls back when a program's file was replaced.

import * as path from "node:path";
import * as vscode from "vscode";

// The time without changes after which a file is complete. A linker writes it in several steps.
const SETTLED_MS = 1000;

export function watchFile(file: string, changed: () => void): vscode.Disposable {
  const pattern = new vscode.RelativePattern(vscode.Uri.file(path.dirname(file)), path.basename(file));
  const watcher = vscode.workspace.createFileSystemWatcher(pattern, false, false, true);
  let timer: NodeJS.Timeout | undefined;
  const again = (): void => {
    clearTimeout(timer);
    timer = setTimeout(changed, SETTLED_MS);
  };
  return vscode.Disposable.from(watcher, watcher.onDidChange(again), watcher.onDidCreate(again), {
    dispose: () => clearTimeout(timer),
  });
}
