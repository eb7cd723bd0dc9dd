// A group of editors below the program, as wide as the program.

import * as vscode from "vscode";
import { columnWith, PASS, REPORT } from "./groups";

// Returns the column of the group that has rx's report or a pass. If there is only one group, divides it into two rows, the second with this part of
// the height, and returns the second one. Returns undefined if the user has already divided the editors.
export async function rowBelow(share: number): Promise<vscode.ViewColumn | undefined> {
  const { all } = vscode.window.tabGroups;
  if (all.length > 1) {
    return columnWith([REPORT, PASS], all);
  }
  await vscode.commands.executeCommand("vscode.setEditorLayout", { orientation: 1, groups: [{ size: 1 - share }, { size: share }] });
  return vscode.ViewColumn.Two;
}
