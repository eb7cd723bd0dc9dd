// Marks on lines that belong to what is under the cursor elsewhere.

import * as vscode from "vscode";

export function linkedLines(): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("rx.linkedBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.rangeHighlightForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Full,
  });
}

// Whole lines, first and last, as far as the document has them.
export function wholeLines(document: vscode.TextDocument, [first, last]: readonly [number, number]): vscode.Range {
  return document.validateRange(new vscode.Range(first, 0, last, Number.MAX_SAFE_INTEGER));
}

// Nothing moves while one of them is seen already.
export function revealOne(editor: vscode.TextEditor, ranges: readonly vscode.Range[]): void {
  const [first] = ranges;
  const seen = ranges.some((range) => editor.visibleRanges.some((visible) => visible.contains(range.start)));
  if (first !== undefined && !seen) {
    editor.revealRange(first, vscode.TextEditorRevealType.InCenter);
  }
}
