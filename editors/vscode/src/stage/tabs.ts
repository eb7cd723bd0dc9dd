// Remembers the tabs of stage documents, because VS Code does not restore them after a reload of the window.

import * as vscode from "vscode";
import { list, number, text } from "../json";

const OPEN = "rx.stages";

interface Tab {
  readonly uri: string;
  readonly column: number;
}

type Show = (uri: vscode.Uri, column: vscode.ViewColumn) => Promise<void>;

// Reopens the documents of the last session, and records changes from then on.
export function tabs(scheme: string, memory: vscode.Memento, show: Show): vscode.Disposable {
  const before = list(memory.get(OPEN));
  const open = before.map((tab) => ({ uri: text(tab["uri"]), column: number(tab["column"]) ?? vscode.ViewColumn.Beside }));
  void reopen(scheme, open, show);
  return vscode.window.tabGroups.onDidChangeTabs(() => void memory.update(OPEN, now(scheme)));
}

function now(scheme: string): Tab[] {
  return vscode.window.tabGroups.all.flatMap(({ tabs, viewColumn }) =>
    tabs.flatMap(({ input }) => (input instanceof vscode.TabInputText && input.uri.scheme === scheme ? [{ uri: input.uri.toString(), column: viewColumn }] : [])),
  );
}

async function reopen(scheme: string, tabs: readonly Tab[], show: Show): Promise<void> {
  // After a restart of only the extension, the tabs are still open.
  const there = new Set(now(scheme).map(({ uri }) => uri));
  for (const { uri, column } of tabs) {
    if (!there.has(uri) && vscode.Uri.parse(uri).scheme === scheme) {
      await show(vscode.Uri.parse(uri), column);
    }
  }
}
