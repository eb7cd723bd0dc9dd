// The panel with the report of a run. There is only one.

import * as vscode from "vscode";
import { rowBelow } from "../below";
import { REPORT } from "../groups";
import { reportPlacement } from "../settings";
import { Turns } from "../turns";
import { page, STATEMENT, type Report } from "./report";

const COMMANDS = ["rx.runAgain", "rx.runWithArguments", "rx.chooseInputs", "rx.saveOutputs", STATEMENT];

// The part of the height for a report below the program.
const SHARE = 0.4;

export class Panel implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  // Reports are shown one after the other, so that two do not open two panels.
  private readonly turns = new Turns();

  constructor(private readonly extension: vscode.Uri) {}

  show(report: Report): Promise<void> {
    return this.turns.take(async () => {
      const media = vscode.Uri.joinPath(this.extension, "media");
      const panel = this.panel ?? (await this.open(media));
      panel.title = `Run: ${report.title}`;
      panel.webview.html = page(report, panel.webview.asWebviewUri(vscode.Uri.joinPath(media, "report.css")).toString(), panel.webview.cspSource);
      panel.reveal(undefined, true);
    });
  }

  dispose(): void {
    this.panel?.dispose();
  }

  private async open(media: vscode.Uri): Promise<vscode.WebviewPanel> {
    const below = reportPlacement() === "below" ? await rowBelow(SHARE) : undefined;
    const where = { viewColumn: below ?? vscode.ViewColumn.Beside, preserveFocus: true };
    const panel = vscode.window.createWebviewPanel(REPORT, "Run", where, {
      enableScripts: false,
      enableCommandUris: COMMANDS,
      enableFindWidget: true,
      localResourceRoots: [media],
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    this.panel = panel;
    return panel;
  }
}
