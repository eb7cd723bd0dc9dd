// "Write Inferred Annotations": chooses the document, requests the edit from the server and reports if there is nothing to write.

import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";
import { number, record } from "./json";

export const ANNOTATE = "rx.annotate";

// `given` is `[uri, position]`; the default is the whole document of the active editor.
export async function annotate(given: readonly unknown[], next: ExecuteCommandSignature): Promise<unknown> {
  const uri = vscode.window.activeTextEditor?.document.uri.toString();
  if (given.length === 0 && uri === undefined) {
    void vscode.window.showErrorMessage("rx: open a Relax file to annotate it.");
    return undefined;
  }
  const answer: unknown = await next(ANNOTATE, given.length > 0 ? [...given] : [uri]);
  if (number(record(answer)?.["edits"]) === 0) {
    void vscode.window.showInformationMessage("rx: all inferred types are already written.");
  }
  return answer;
}
