// "Write inferred annotations": the server sends the edit; here is which document, and what is said when there is none.

import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";
import { number, record } from "./json";

export const ANNOTATE = "rx.annotate";

// `[uri, position]`; the whole document of the active editor where nothing is given.
export async function annotate(given: readonly unknown[], next: ExecuteCommandSignature): Promise<unknown> {
  const uri = vscode.window.activeTextEditor?.document.uri.toString();
  if (given.length === 0 && uri === undefined) {
    void vscode.window.showErrorMessage("rx: open the program that is to be annotated.");
    return undefined;
  }
  const answer: unknown = await next(ANNOTATE, given.length > 0 ? [...given] : [uri]);
  if (number(record(answer)?.["edits"]) === 0) {
    void vscode.window.showInformationMessage("rx: every type that is known is written already.");
  }
  return answer;
}
