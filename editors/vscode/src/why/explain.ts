// "Where Does This Dim Come From?": shows a list of steps; the editor reveals the highlighted step.

import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";
import type { Place } from "../place";
import { position, range } from "../positions";
import { readWhy, rows, type Why } from "./chain";

export const WHY = "rx.why";

interface Item extends vscode.QuickPickItem {
  readonly place?: Place;
}

// `given` is `[uri, position, part]`; the default is the position of the cursor.
export async function explain(given: readonly unknown[], next: ExecuteCommandSignature): Promise<unknown> {
  const editor = vscode.window.activeTextEditor;
  if (given.length === 0 && editor === undefined) {
    void vscode.window.showErrorMessage("rx: put the cursor on a value.");
    return undefined;
  }
  const asked = given.length > 0 || editor === undefined ? [...given] : [editor.document.uri.toString(), position(editor.selection.active)];
  const answer: unknown = await next(WHY, asked);
  const why = readWhy(answer);
  if (why === undefined || why.traces.length === 0) {
    void vscode.window.showInformationMessage("rx: there is no value with a shape or dtype here.");
  } else {
    await show(why, vscode.Uri.parse(String(asked[0])));
  }
  return answer;
}

async function show(why: Why, uri: vscode.Uri): Promise<void> {
  const editor = await vscode.window.showTextDocument(uri, { preserveFocus: true });
  const before = editor.selection;
  const pick = vscode.window.createQuickPick<Item>();
  pick.title = `Where ${why.subject}: ${why.structInfo} comes from`;
  pick.placeholder = "The editor shows the highlighted step; press Enter to go there";
  pick.matchOnDescription = true;
  pick.matchOnDetail = true;
  pick.items = rows(why).map(item);
  let there = false;
  pick.onDidChangeActive(([active]) => active?.place && reveal(editor, range(active.place)));
  pick.onDidAccept(() => {
    there = pick.activeItems[0]?.place !== undefined;
    pick.hide();
  });
  pick.onDidHide(() => {
    if (!there) {
      reveal(editor, before);
    }
    pick.dispose();
  });
  pick.show();
}

function item(row: ReturnType<typeof rows>[number]): Item {
  if ("head" in row) {
    return { label: row.head, kind: vscode.QuickPickItemKind.Separator };
  }
  const { label, description, detail, place } = row;
  return { label, description, place, ...(detail !== "" && { detail }) };
}

function reveal(editor: vscode.TextEditor, range: vscode.Range): void {
  editor.selection = new vscode.Selection(range.start, range.end);
  editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
