// The status bar item: the server's state and path. A click shows its log.

import * as vscode from "vscode";
import type { Server } from "./server/server";
import { shown } from "./statusText";

export function statusItem(server: Server): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("rx.server", vscode.StatusBarAlignment.Right, 100);
  item.name = "Relax (rx)";
  item.command = "rx.showLog";
  const update = (): void => {
    const now = shown(server.state);
    item.text = now.busy ? `$(loading~spin) ${now.text}` : now.text;
    item.tooltip = `${now.detail}\n\nClick to show the server's log`;
    item.backgroundColor =
      now.severity === "information" ? undefined : new vscode.ThemeColor(`statusBarItem.${now.severity}Background`);
    const language = vscode.window.activeTextEditor?.document.languageId;
    if (language === "relax" || (language === "python" && server.state.kind !== "idle")) {
      item.show();
    } else {
      item.hide();
    }
  };
  update();
  return vscode.Disposable.from(item, server.onDidChange(update), vscode.window.onDidChangeActiveTextEditor(update));
}
