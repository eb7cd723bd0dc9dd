// A group of editors below the program, as wide as the program.

import * as vscode from "vscode";

// Divides the editors into two rows, the second with this part of the height, and returns the second one. Returns undefined if the user has already
// divided them.
export async function rowBelow(share: number): Promise<vscode.ViewColumn | undefined> {
  if (vscode.window.tabGroups.all.length > 1) {
    return undefined;
  }
  await vscode.commands.executeCommand("vscode.setEditorLayout", { orientation: 1, groups: [{ size: 1 - share }, { size: share }] });
  return vscode.ViewColumn.Two;
}
