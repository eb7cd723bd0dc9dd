// A group of editors below the program, as wide as the program.

import * as vscode from "vscode";
import { columnWith, PASS, REPORT } from "./groups";

interface Layout {
  readonly orientation: number;
  readonly groups: readonly { readonly size?: number; readonly groups?: unknown }[];
}

const ROWS = 1;

// Returns the column of the group that has rx's report or a pass, after making it this part of the height if it is smaller. If there is only one group,
// divides it into two rows, the second with this part of the height, and returns the second one. Returns undefined if the user has already divided the
// editors.
export async function rowBelow(share: number): Promise<vscode.ViewColumn | undefined> {
  const { all } = vscode.window.tabGroups;
  const column = all.length > 1 ? columnWith([REPORT, PASS], all) : vscode.ViewColumn.Two;
  if (all.length === 1 || (all.length === 2 && column === vscode.ViewColumn.Two && isSmaller(await vscode.commands.executeCommand("vscode.getEditorLayout"), share))) {
    await vscode.commands.executeCommand("vscode.setEditorLayout", { orientation: ROWS, groups: [{ size: 1 - share }, { size: share }] });
  }
  return column;
}

// Whether a layout has two rows, of which the second has less than this part of the height.
function isSmaller({ orientation, groups }: Layout, share: number): boolean {
  const [above, below] = groups.map(({ size }) => size ?? 0);
  return orientation === ROWS && groups.length === 2 && above !== undefined && below !== undefined && below < share * (above + below) - 1;
}
