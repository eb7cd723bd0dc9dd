// Places as the editor has them.

import * as vscode from "vscode";
import type { Place, Point } from "./place";

export function range({ line, column, endLine, endColumn }: Place): vscode.Range {
  return new vscode.Range(line, column, endLine, endColumn);
}

// As the protocol has it.
export function position({ line, character }: vscode.Position): { line: number; character: number } {
  return { line, character };
}

export function point({ line, character }: vscode.Position): Point {
  return { line, column: character };
}
