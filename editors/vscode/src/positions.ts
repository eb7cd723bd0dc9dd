// Conversions between places, the editor's ranges and the protocol's positions.

import * as vscode from "vscode";
import type { Place, Point } from "./place";

export function range({ line, column, endLine, endColumn }: Place): vscode.Range {
  return new vscode.Range(line, column, endLine, endColumn);
}

// Converts to a position of the protocol.
export function position({ line, character }: vscode.Position): { line: number; character: number } {
  return { line, character };
}

export function point({ line, character }: vscode.Position): Point {
  return { line, column: character };
}
