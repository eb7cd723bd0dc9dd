// Shows the syntax tree of a program in a document beside it, for developers of rx and to understand syntax errors.

import * as vscode from "vscode";
import { query, readAddress, type Address } from "./address";
import { Latest } from "./latest";
import { activeProgram, editorsOf, nameOf, onDidSettle } from "./programs";
import { position } from "./positions";
import type { Server } from "./server/server";

export const SYNTAX_TREE = "rx.syntaxTree";
const SCHEME = "rx-syntax";

export class SyntaxTrees implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly latest = new Latest();
  private readonly parts: vscode.Disposable;

  constructor(private readonly server: Server) {
    this.parts = vscode.Disposable.from(
      this.changed,
      this.latest,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      onDidSettle((uri) => this.settled(uri)),
    );
  }

  dispose(): void {
    this.parts.dispose();
  }

  // Shows the tree of the selection, or of the whole program if nothing is selected.
  async show(): Promise<void> {
    const program = activeProgram();
    if (program === undefined) {
      void vscode.window.showErrorMessage("rx: open a Relax file to show its syntax tree.");
      return;
    }
    const { document, selection } = program;
    const range = selection.isEmpty ? null : { start: position(selection.start), end: position(selection.end) };
    const address = vscode.Uri.from({ scheme: SCHEME, path: `/${nameOf(document.uri)} (syntax tree)`, query: query(document.uri.toString(), range) });
    const tree = await vscode.workspace.openTextDocument(address);
    await vscode.window.showTextDocument(tree, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true });
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string | undefined> {
    const of = address(uri);
    const asked = of && (await this.latest.ask((token) => this.server.ask(SYNTAX_TREE, [of.program, of.what], token)));
    return typeof asked?.answer === "string" ? asked.answer : "There is no syntax tree, because the program is not open in the language server.\n";
  }

  private settled(program: vscode.Uri): void {
    for (const { uri } of vscode.workspace.textDocuments) {
      if (uri.scheme === SCHEME && address(uri)?.program === program.toString() && editorsOf(uri).length > 0) {
        this.changed.fire(uri);
      }
    }
  }
}

// Parses the address of such a document. The range is that of the server; null is the whole program.
function address(uri: vscode.Uri): Address<object | null> | undefined {
  return readAddress(uri.query, (range) => (typeof range === "object" ? range : undefined));
}
