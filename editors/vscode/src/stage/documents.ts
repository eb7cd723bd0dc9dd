// Stage documents, which show generated code beside a program. Commands open them. Their lines and the program's statements are linked both ways.

import * as vscode from "vscode";
import { query, readAddress } from "../address";
import { linkedLines, revealOne, wholeLines } from "../linked";
import { point, range } from "../positions";
import { activeProgram, editorsOf, isProgram, nameOf, onDidSettle } from "../programs";
import type { Server } from "../server/server";
import type { Turns } from "../turns";
import { Functions } from "./functions";
import { KINDS, linesOf, path, placesOf, readKind, tab, type Stage } from "./stage";
import { tabs } from "./tabs";
import { STAGE, View } from "./view";

export const SCHEME = "rx-stage";

// The time without cursor movement after which the stage of another function is generated.
const RESTS_MS = 150;

export class StageDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly views = new Map<string, View>();
  private readonly functions = new Functions();
  private readonly linked = linkedLines();
  private readonly parts: vscode.Disposable;

  constructor(
    private readonly server: Server,
    private readonly turns: Turns,
    memory: vscode.Memento,
  ) {
    this.parts = vscode.Disposable.from(
      this.changed,
      this.linked,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      tabs(SCHEME, memory, (uri, column) => this.open(uri, column)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.closed(uri)),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => contentChanges.length > 0 && this.edited(document.uri)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => void this.moved(textEditor)),
      vscode.window.onDidChangeVisibleTextEditors((editors) => this.shown(editors)),
      onDidSettle((uri) => this.settled(uri)),
      server.onDidChange((state) => state.kind === "running" && this.settled()),
    );
  }

  dispose(): void {
    this.views.forEach((view) => view.dispose());
    this.parts.dispose();
  }

  // Shows a stage beside the program, and keeps the cursor in the program.
  async show(stage: Stage): Promise<void> {
    const program = activeProgram();
    if (program === undefined) {
      void vscode.window.showErrorMessage("rx: put the cursor into a function.");
      return;
    }
    const { uri } = program.document;
    const address = vscode.Uri.from({ scheme: SCHEME, path: `/${tab(stage, nameOf(uri))}`, query: query(uri.toString(), stage) });
    this.view(address)?.moved(program.selection.active);
    await this.open(address, vscode.ViewColumn.Beside);
  }

  private async open(address: vscode.Uri, viewColumn: vscode.ViewColumn): Promise<void> {
    const stage = readAddress(address.query, readKind)?.what;
    if (stage === undefined) {
      return;
    }
    let document = await vscode.workspace.openTextDocument(address);
    const known = await vscode.languages.getLanguages();
    const language = KINDS[stage].languages.find((language) => known.includes(language));
    if (language !== undefined && document.languageId !== language) {
      document = await vscode.languages.setTextDocumentLanguage(document, language);
    }
    await vscode.window.showTextDocument(document, { viewColumn, preserveFocus: true, preview: false });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.view(uri)?.text ?? "";
  }

  private view(uri: vscode.Uri): View | undefined {
    const known = this.views.get(uri.toString());
    const address = readAddress(uri.query, readKind);
    if (known !== undefined || address === undefined) {
      return known;
    }
    const program = vscode.Uri.parse(address.program);
    const cursor = editorsOf(program)[0]?.selection.active ?? new vscode.Position(0, 0);
    const view = new View(uri, program, address.what, cursor, this.server, this.turns, (view) => this.made(view));
    this.views.set(uri.toString(), view);
    return view;
  }

  private of(program: vscode.Uri | undefined): View[] {
    return [...this.views.values()].filter((view) => program === undefined || view.program.toString() === program.toString());
  }

  private made(view: View): void {
    this.changed.fire(view.uri);
    this.link(view);
  }

  private closed(uri: vscode.Uri): void {
    // If a document's language changes, VS Code reports that it was closed although it is still open.
    if (vscode.workspace.textDocuments.some((document) => document.uri.toString() === uri.toString())) {
      return;
    }
    this.views.get(uri.toString())?.dispose();
    this.views.delete(uri.toString());
  }

  // Handles a changed document. If it is a program, its places are no longer valid. If it is a stage with new text, the links are marked again.
  private edited(uri: vscode.Uri): void {
    const view = this.views.get(uri.toString());
    if (view !== undefined) {
      this.link(view);
    }
    for (const view of this.views.size === 0 ? [] : this.of(uri)) {
      view.stale = true;
    }
  }

  private settled(uri?: vscode.Uri): void {
    for (const view of this.of(uri)) {
      view.stale = true;
      if (view.visible) {
        view.soon(0);
      }
    }
  }

  // Generates the text of stages that became visible again.
  private shown(editors: readonly vscode.TextEditor[]): void {
    for (const editor of editors) {
      const view = this.views.get(editor.document.uri.toString());
      if (view?.stale === true) {
        view.soon(0);
      } else if (view !== undefined) {
        this.link(view);
      }
    }
  }

  private async moved(editor: vscode.TextEditor): Promise<void> {
    const view = this.views.get(editor.document.uri.toString());
    if (view !== undefined) {
      this.linkBack(view, editor.selection.active.line);
      return;
    }
    const views = this.views.size > 0 && isProgram(editor.document) ? this.of(editor.document.uri) : [];
    if (views.length === 0) {
      return;
    }
    editor.setDecorations(this.linked, []);
    const cursor = editor.selection.active;
    views.forEach((view) => view.moved(cursor));
    const name = await this.functions.at(editor.document, cursor);
    for (const view of views) {
      if (name === undefined || (view.made !== undefined && name === path(view.made))) {
        this.link(view);
      } else if (view.visible) {
        view.soon(RESTS_MS);
      } else {
        view.stale = true;
      }
    }
  }

  // Marks and reveals the lines that come from the statement under the program's cursor.
  private link(view: View): void {
    const cursor = editorsOf(view.program)[0]?.selection.active;
    if (view.stale || view.made === undefined || cursor === undefined) {
      return;
    }
    const lines = linesOf(view.made, point(cursor));
    for (const editor of editorsOf(view.uri)) {
      const ranges = lines.map((lines) => wholeLines(editor.document, lines));
      editor.setDecorations(this.linked, ranges);
      revealOne(editor, ranges);
    }
  }

  // Marks and reveals the statements that a line of the stage comes from.
  private linkBack(view: View, line: number): void {
    if (view.stale || view.made === undefined) {
      return;
    }
    const ranges = placesOf(view.made, line).map(range);
    for (const editor of editorsOf(view.program)) {
      editor.setDecorations(this.linked, ranges);
      revealOne(editor, ranges);
    }
  }
}

export function stageCommands(documents: StageDocuments): vscode.Disposable {
  const register = vscode.commands.registerCommand;
  return vscode.Disposable.from(
    register("rx.showLoops", () => documents.show("tir")),
    register("rx.showCuda", () => documents.show("cuda")),
    register("rx.showPtx", () => documents.show("ptx")),
    register("rx.showCpu", () => documents.show("cpu")),
  );
}

export { STAGE };
