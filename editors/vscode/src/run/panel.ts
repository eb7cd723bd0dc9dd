// The panel beside the program that shows the report of a run. There is only one.

import * as vscode from "vscode";
import { page, STATEMENT, type Report } from "./report";

const COMMANDS = ["rx.runAgain", "rx.runWithArguments", "rx.chooseInputs", "rx.saveOutputs", STATEMENT];

export class Panel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;

  constructor(private readonly extension: vscode.Uri) {}

  show(report: Report): void {
    const media = vscode.Uri.joinPath(this.extension, "media");
    this.panel ??= this.open(media);
    const { webview } = this.panel;
    this.panel.title = `Run: ${report.title}`;
    webview.html = page(report, webview.asWebviewUri(vscode.Uri.joinPath(media, "report.css")).toString(), webview.cspSource);
    this.panel.reveal(undefined, true);
  }

  dispose(): void {
    this.panel?.dispose();
  }

  private open(media: vscode.Uri): vscode.WebviewPanel {
    const where = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const panel = vscode.window.createWebviewPanel("rx.report", "Run", where, {
      enableScripts: false,
      enableCommandUris: COMMANDS,
      enableFindWidget: true,
      localResourceRoots: [media],
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    return panel;
  }
}
