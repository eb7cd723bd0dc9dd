// Shows the module before and after a pass, side by side. The statement under the cursor is marked in both.

import * as vscode from "vscode";
import { query, readAddress, type Address } from "../address";
import { rowBelow } from "../below";
import { columnWith, PASS } from "../groups";
import { Latest } from "../latest";
import { linkedLines, revealOne, wholeLines } from "../linked";
import { point, position, range } from "../positions";
import { activeProgram, editorsOf, nameOf, onDidSettle } from "../programs";
import type { Server } from "../server/server";
import { STAGE } from "../stage/view";
import type { Turns } from "../turns";
import { choices, linesOf, neighbour, nothing, placesOf, readIndex, readPasses, summary, tab, title, unchanged, type Passes, type Step } from "./passes";

const { Keyboard: KEYS, Mouse: POINTER } = vscode.TextEditorSelectionChangeKind;

// The part of the height for passes below the program: both sides of a diff and the program are read together, and the diff is longer.
const SHARE = 0.6;

interface Shown {
  readonly program: vscode.Uri;
  passes: Passes;
  // Whether the program has changed since, so that places in it are no longer valid.
  stale: boolean;
  // The statement that the user selected in a module of a pass; if undefined, the program's cursor is followed.
  chosen?: vscode.Position | undefined;
  readonly latest: Latest;
}

export class PassDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly shown = new Map<string, Shown>();
  private readonly linked = linkedLines();
  // Whether a pass is visible, so that the commands for the next and previous pass are available.
  private visible = false;
  private readonly parts: vscode.Disposable;

  constructor(
    private readonly server: Server,
    // The server computes only one stage of a program at a time.
    private readonly turns: Turns,
  ) {
    const register = vscode.commands.registerCommand;
    this.parts = vscode.Disposable.from(
      this.changed,
      this.linked,
      vscode.workspace.registerTextDocumentContentProvider(PASS, this),
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => contentChanges.length > 0 && this.edited(document.uri)),
      vscode.window.onDidChangeTextEditorSelection(({ textEditor, kind }) => this.moved(textEditor, kind === KEYS || kind === POINTER)),
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
    return this.of(uri)?.step.text ?? "# This pass is not known. Show the passes of the program again.\n";
  }

  // Lets the user choose a pass, and shows its changes below the program.
  private async show(): Promise<void> {
    const editor = activeProgram();
    if (editor === undefined) {
      void vscode.window.showErrorMessage("rx: open a Relax file to show its passes.");
      return;
    }
    const program = editor.document.uri;
    const options = { location: vscode.ProgressLocation.Window, title: "rx: running passes" };
    const asked = await vscode.window.withProgress(options, () => this.ask(program, editor.selection.active, this.known(program).latest));
    if (asked === undefined) {
      // The user ran the command again in the meantime.
      return;
    }
    const read = readPasses(asked.answer);
    const passes = this.take(program, read);
    if (passes === undefined) {
      void vscode.window.showErrorMessage(`rx: ${read?.message || nothing(asked.answer, nameOf(program))}`);
      return;
    }
    const items = choices(passes.steps).map(({ label, index }): vscode.QuickPickItem & { readonly index?: number } => {
      const step = index === undefined ? undefined : passes.steps[index];
      if (index === undefined || step === undefined) {
        return { label, kind: vscode.QuickPickItemKind.Separator };
      }
      const icon = step.problem !== "" ? "error" : step.changed ? "edit" : "dash";
      return { label: `$(${icon}) ${label}`, description: summary(passes.steps, index), index };
    });
    const asking = { title: `Changes by Pass in ${nameOf(program)}`, placeHolder: "Choose a pass to compare the module before and after it", matchOnDescription: true };
    const picked = await vscode.window.showQuickPick(items, asking);
    if (picked?.index !== undefined) {
      await this.open(program, picked.index);
    }
  }

  // Shows the next or previous pass that changes the module.
  private async step(direction: 1 | -1): Promise<void> {
    const { activeTextEditor: active, visibleTextEditors: visible } = vscode.window;
    const addresses = [...(active ? [active] : []), ...visible].flatMap(({ document }) => this.addressOf(document.uri) ?? []);
    const [address] = addresses;
    // The document on the right side has the larger index.
    const index = Math.max(...addresses.filter(({ program }) => program === address?.program).map(({ what }) => what));
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
    // Below the program, there is enough width for both sides. A group that is split again would be too small. The column of a diff is that of its tab,
    // because the editors of its sides have none.
    const viewColumn = columnWith([PASS], vscode.window.tabGroups.all) ?? (await rowBelow(SHARE)) ?? vscode.ViewColumn.Beside;
    const options = { viewColumn, preview: true, preserveFocus: true };
    const reason = unchanged(step);
    if (reason === undefined) {
      await vscode.commands.executeCommand("vscode.diff", before, after, `${title(step)} (${nameOf(program)})`, options);
    } else {
      await vscode.window.showTextDocument(after, options);
      void (step.problem === "" ? vscode.window.showInformationMessage : vscode.window.showWarningMessage)(`rx: ${reason}.`);
    }
    // The program may have become lower.
    for (const editor of editorsOf(program)) {
      editor.revealRange(editor.selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    }
    for (const uri of reason === undefined ? [before, after] : [after]) {
      const document = await vscode.workspace.openTextDocument(uri);
      if (document.languageId !== "relax") {
        await vscode.languages.setTextDocumentLanguage(document, "relax");
      }
    }
    this.link(program);
  }

  private address(program: vscode.Uri, index: number): vscode.Uri | undefined {
    const step = this.known(program).passes.steps[index];
    return step && vscode.Uri.from({ scheme: PASS, path: `/${tab(nameOf(program), index, step)}`, query: query(program.toString(), index) });
  }

  private known(program: vscode.Uri): Shown {
    const key = program.toString();
    const known = this.shown.get(key) ?? { program, passes: { steps: [], message: "" }, stale: true, latest: new Latest() };
    this.shown.set(key, known);
    return known;
  }

  private addressOf(uri: vscode.Uri): Address<number> | undefined {
    return uri.scheme === PASS ? readAddress(uri.query, readIndex) : undefined;
  }

  // Returns the step that a document shows.
  private of(uri: vscode.Uri): { readonly shown: Shown; readonly step: Step } | undefined {
    const address = this.addressOf(uri);
    const shown = address && this.shown.get(address.program);
    const step = address && shown?.passes.steps[address.what];
    return shown && step && { shown, step };
  }

  private editors(program: vscode.Uri): vscode.TextEditor[] {
    return vscode.window.visibleTextEditors.filter(({ document }) => this.of(document.uri)?.shown.program.toString() === program.toString());
  }

  private ask(program: vscode.Uri, cursor: vscode.Position, latest: Latest): Promise<{ readonly answer: unknown } | undefined> {
    const args = [program.toString(), position(cursor), "passes"];
    const question = (token: vscode.CancellationToken): Promise<unknown> =>
      this.turns.take(async () => (token.isCancellationRequested ? undefined : this.server.ask(STAGE, args, token)));
    return latest.ask(question);
  }

  private edited(uri: vscode.Uri): void {
    const shown = this.shown.get(uri.toString());
    if (shown !== undefined) {
      shown.stale = true;
      shown.chosen = undefined;
    }
    this.link(this.of(uri)?.shown.program);
  }

  // Updates the documents of a program that has stopped changing, unless it now has errors.
  private async settled(uri: vscode.Uri): Promise<void> {
    const shown = this.shown.get(uri.toString());
    const [editor] = editorsOf(uri);
    if (shown === undefined || !shown.stale || editor === undefined || this.editors(uri).length === 0) {
      return;
    }
    const asked = await this.ask(uri, editor.selection.active, shown.latest);
    this.take(uri, asked && readPasses(asked.answer));
  }

  // Shows the passes of an answer, and returns them. If there are none, because the program has errors, the earlier ones stay.
  private take(program: vscode.Uri, passes: Passes | undefined): Passes | undefined {
    if (passes === undefined || passes.steps.length < 2) {
      return undefined;
    }
    Object.assign(this.known(program), { passes, stale: false });
    this.refresh(program);
    return passes;
  }

  private refresh(program: vscode.Uri): void {
    for (const { uri } of vscode.workspace.textDocuments) {
      if (this.of(uri)?.shown.program.toString() === program.toString()) {
        this.changed.fire(uri);
      }
    }
  }

  private seen(): void {
    const visible = vscode.window.visibleTextEditors.some(({ document }) => document.uri.scheme === PASS);
    if (visible !== this.visible) {
      this.visible = visible;
      void vscode.commands.executeCommand("setContext", "rx.showsPasses", visible);
    }
    for (const { program } of this.shown.values()) {
      this.link(program);
    }
  }

  // `byUser`: whether the user moved the cursor, as opposed to an editor being opened.
  private moved(editor: vscode.TextEditor, byUser: boolean): void {
    const { uri } = editor.document;
    const made = this.of(uri);
    if (made === undefined) {
      const shown = this.shown.get(uri.toString());
      if (shown !== undefined) {
        shown.chosen = undefined;
        editor.setDecorations(this.linked, []);
      }
      this.link(shown?.program);
      return;
    }
    if (made.shown.stale || !byUser) {
      return;
    }
    const places = placesOf(made.step, editor.selection.active.line);
    const [first] = places;
    if (first === undefined) {
      return;
    }
    const ranges = places.map(range);
    for (const program of editorsOf(made.shown.program)) {
      program.setDecorations(this.linked, ranges);
      revealOne(program, ranges);
    }
    made.shown.chosen = new vscode.Position(first.line, first.column);
    this.mark(made.shown.program, made.shown.chosen, editor);
  }

  // Marks and reveals the lines of the selected statement, otherwise those of the statement under the program's cursor.
  private link(program: vscode.Uri | undefined): void {
    const shown = program && this.shown.get(program.toString());
    const cursor = shown?.chosen ?? (program && editorsOf(program)[0]?.selection.active);
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
        // The statement is after its prim_funcs, and both sides have it.
        revealOne(editor, ranges.toReversed());
      }
    }
  }
}
