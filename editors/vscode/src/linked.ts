// Marks the lines that correspond to the statement under the cursor in another editor.

import * as vscode from "vscode";

export function linkedLines(): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("rx.linkedBackground"),
    overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.rangeHighlightForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Full,
  });
}

// Returns the range of the lines from the first to the last, clipped to the document.
export function wholeLines(document: vscode.TextDocument, [first, last]: readonly [number, number]): vscode.Range {
  return document.validateRange(new vscode.Range(first, 0, last, Number.MAX_SAFE_INTEGER));
}

// Scrolls to the first range, unless one of them is already visible.
export function revealOne(editor: vscode.TextEditor, ranges: readonly vscode.Range[]): void {
  const [first] = ranges;
  const seen = ranges.some((range) => editor.visibleRanges.some((visible) => visible.contains(range.start)));
  if (first !== undefined && !seen) {
    editor.revealRange(first, vscode.TextEditorRevealType.InCenter);
  }
}
