// The module before and behind a pass, side by side; what is under the cursor is followed from the program through every pass.

import * as vscode from "vscode";
import { Latest } from "../latest";
import { linkedLines, revealOne, wholeLines } from "../linked";
import { point, position, range } from "../positions";
import { activeProgram, editorsOf, onDidSettle } from "../programs";
import type { Server } from "../server/server";
import { STAGE } from "../stage/view";
import type { Turns } from "../turns";
import { linesOf, neighbour, placesOf, readAddress, readPasses, summary, tab, title, type Address, type Passes, type Step } from "./passes";

export const SCHEME = "rx-pass";

interface Shown {
  readonly program: vscode.Uri;
  passes: Passes;
  // Whether the program has changed since, so that places in it do not hold.
  stale: boolean;
  readonly latest: Latest;
}

export class PassDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly shown = new Map<string, Shown>();
  private readonly linked = linkedLines();
  private readonly parts: vscode.Disposable;

  constructor(
    private readonly server: Server,
    // The server makes one stage of a program at a time.
    private readonly turns: Turns,
  ) {
    const register = vscode.commands.registerCommand;
    this.parts = vscode.Disposable.from(
      this.changed,
      this.linked,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => contentChanges.length > 0 && this.edited(document.uri)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.moved(textEditor)),
      vscode.window.onDidChangeVisibleTextEditors(() => this.seen()),
      onDidSettle((uri) => void this.settled(uri)),
      register("rx.showPasses", () => this.show()),
      register("rx.nextPass", () => this.step(1)),
      register("rx.previousPass", () => this.step(-1)),
    );
  }

  dispose(): void {
    this.shown.forEach(({ latest }) => latest.dispose());
    this.parts.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.of(uri)?.step.text ?? "# The program was closed. Show its passes again.\n";
  }

  // Asks which pass, and shows what it did beside the program.
  private async show(): Promise<void> {
    const editor = activeProgram();
    if (editor === undefined) {
      void vscode.window.showErrorMessage("rx: put the cursor into a function of a program.");
      return;
    }
    const program = editor.document.uri;
    const passes = await this.ask(program, editor.selection.active, this.known(program).latest);
    if (passes === undefined || passes.steps.length < 2) {
      void vscode.window.showErrorMessage(`rx: ${passes?.message || "put the cursor into a function of the program"}`);
      return;
    }
    Object.assign(this.known(program), { passes, stale: false });
    this.refresh(program);
    const items = passes.steps.slice(1).map((step, at) => ({
      label: `${step.problem !== "" ? "$(error)" : step.changed ? "$(edit)" : "$(dash)"} ${title(step)}`,
      description: summary(passes.steps, at + 1),
      index: at + 1,
    }));
    const picked = await vscode.window.showQuickPick(items, { title: "Passes", placeHolder: "What did this pass change?", matchOnDescription: true });
    if (picked !== undefined) {
      await this.open(program, picked.index);
    }
  }

  // The neighbour of the pass that is shown.
  private async step(direction: 1 | -1): Promise<void> {
    const here = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors.find((editor) => editor.document.uri.scheme === SCHEME);
    const address = here && readAddress(here.document.uri.query);
    // The document of the right side has the larger number.
    const indices = vscode.window.visibleTextEditors.map(({ document }) => readAddress(document.uri.query)).filter((other) => other?.program === address?.program);
    const index = Math.max(...indices.map((other) => other?.index ?? 0));
    const shown = address && this.shown.get(address.program);
    const next = shown && neighbour(shown.passes.steps, index, direction);
    if (shown === undefined || next === undefined) {
      void vscode.window.setStatusBarMessage(`rx: no ${direction === 1 ? "later" : "earlier"} pass changes the module`, 3000);
      return;
    }
    await this.open(shown.program, next);
  }

  private async open(program: vscode.Uri, index: number): Promise<void> {
    const { steps } = this.known(program).passes;
    const [before, after] = [this.address(program, index - 1), this.address(program, index)];
    const [step] = steps.slice(index);
    if (before === undefined || after === undefined || step === undefined) {
      return;
    }
    const name = program.path.slice(program.path.lastIndexOf("/") + 1);
    const shown = vscode.window.visibleTextEditors.find(({ document }) => document.uri.scheme === SCHEME);
    const options = { viewColumn: shown?.viewColumn ?? vscode.ViewColumn.Beside, preview: true, preserveFocus: true };
    await vscode.commands.executeCommand("vscode.diff", before, after, `${title(step)} (${name})`, options);
    for (const uri of [before, after]) {
      const document = await vscode.workspace.openTextDocument(uri);
      if (document.languageId !== "relax") {
        await vscode.languages.setTextDocumentLanguage(document, "relax");
      }
    }
    this.link(program);
  }

  private address(program: vscode.Uri, index: number): vscode.Uri | undefined {
    const step = this.known(program).passes.steps[index];
    const name = program.path.slice(program.path.lastIndexOf("/") + 1);
    const address: Address = { program: program.toString(), index };
    return step && vscode.Uri.from({ scheme: SCHEME, path: `/${tab(name, index, step)}`, query: JSON.stringify(address) });
  }

  private known(program: vscode.Uri): Shown {
    const key = program.toString();
    const known = this.shown.get(key) ?? { program, passes: { steps: [], message: "" }, stale: true, latest: new Latest() };
    this.shown.set(key, known);
    return known;
  }

  // What a document shows.
  private of(uri: vscode.Uri): { readonly shown: Shown; readonly step: Step } | undefined {
    const address = uri.scheme === SCHEME ? readAddress(uri.query) : undefined;
    const shown = address && this.shown.get(address.program);
    const step = address && shown?.passes.steps[address.index];
    return shown && step && { shown, step };
  }

  private editors(program: vscode.Uri): vscode.TextEditor[] {
    return vscode.window.visibleTextEditors.filter(({ document }) => this.of(document.uri)?.shown.program.toString() === program.toString());
  }

  private async ask(program: vscode.Uri, cursor: vscode.Position, latest: Latest): Promise<Passes | undefined> {
    const args = [program.toString(), position(cursor), "passes"];
    const question = (token: vscode.CancellationToken): Promise<unknown> =>
      this.turns.take(async () => (token.isCancellationRequested ? undefined : this.server.ask(STAGE, args, token)));
    const asked = await latest.ask(question);
    return asked && readPasses(asked.answer);
  }

  private edited(uri: vscode.Uri): void {
    const shown = this.shown.get(uri.toString());
    if (shown !== undefined) {
      shown.stale = true;
    }
    this.link(this.of(uri)?.shown.program);
  }

  // A program that has come to rest: what is shown of it is made anew, unless it has mistakes now.
  private async settled(uri: vscode.Uri): Promise<void> {
    const shown = this.shown.get(uri.toString());
    const [editor] = editorsOf(uri);
    if (shown === undefined || !shown.stale || editor === undefined || this.editors(uri).length === 0) {
      return;
    }
    const passes = await this.ask(uri, editor.selection.active, shown.latest);
    if (passes !== undefined && passes.steps.length > 1) {
      shown.passes = passes;
      shown.stale = false;
      this.refresh(uri);
    }
  }

  private refresh(program: vscode.Uri): void {
    for (const { uri } of vscode.workspace.textDocuments) {
      if (this.of(uri)?.shown.program.toString() === program.toString()) {
        this.changed.fire(uri);
      }
    }
  }

  private seen(): void {
    for (const { program } of this.shown.values()) {
      this.link(program);
    }
  }

  private moved(editor: vscode.TextEditor): void {
    const { uri } = editor.document;
    const made = this.of(uri);
    if (made === undefined) {
      this.link(this.shown.get(uri.toString())?.program);
      return;
    }
    if (made.shown.stale) {
      return;
    }
    const places = placesOf(made.step, editor.selection.active.line);
    const ranges = places.map(range);
    for (const program of editorsOf(made.shown.program)) {
      program.setDecorations(this.linked, ranges);
      revealOne(program, ranges);
    }
    const [first] = places;
    if (first !== undefined) {
      this.mark(made.shown.program, new vscode.Position(first.line, first.column), editor);
    }
  }

  // Marks and reveals what comes from the statement under the program's cursor.
  private link(program: vscode.Uri | undefined): void {
    const shown = program && this.shown.get(program.toString());
    const cursor = program && editorsOf(program)[0]?.selection.active;
    if (shown?.stale === false && program !== undefined && cursor !== undefined) {
      this.mark(program, cursor);
    }
  }

  private mark(program: vscode.Uri, cursor: vscode.Position, except?: vscode.TextEditor): void {
    for (const editor of this.editors(program)) {
      const made = this.of(editor.document.uri);
      const ranges = made ? linesOf(made.step, point(cursor)).map((lines) => wholeLines(editor.document, lines)) : [];
      editor.setDecorations(this.linked, ranges);
      if (editor !== except) {
        revealOne(editor, ranges);
      }
    }
  }
}
