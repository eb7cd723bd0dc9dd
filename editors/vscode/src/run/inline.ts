// Shows the values of a run in the editor, after the lines of their bindings: as decorations, or as inlay hints, which wrap with their lines.

import * as vscode from "vscode";
import { editorSelector } from "../documents";
import { editorsOf } from "../programs";
import { valuesWrap } from "../settings";
import type { Value } from "./outcome";
import { afterEdit, applied, briefly, difference, shown, split, whole, type Shown } from "./values";

interface Tracked {
  // The lines of the program that the values refer to.
  readonly lines: string[];
  values: readonly Shown[];
}

// A no-break space, because VS Code joins ordinary spaces in decorations.
const BLANK = "\u00a0";

export class InlineValues implements vscode.InlayHintsProvider, vscode.Disposable {
  private readonly tracked = new Map<string, Tracked>();
  private readonly plain = after("editorInlayHint.foreground");
  private readonly wrong = after("editorError.foreground");
  private readonly hinted = new vscode.EventEmitter<void>();
  readonly onDidChangeInlayHints = this.hinted.event;
  private readonly parts: vscode.Disposable;

  constructor() {
    this.parts = vscode.Disposable.from(
      this.hinted,
      vscode.languages.registerInlayHintsProvider(editorSelector(true), this),
      vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration("rx.run.valuesPlacement") && this.redraw()),
      this.plain,
      this.wrong,
      vscode.workspace.onDidChangeTextDocument((change) => this.edited(change)),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => this.tracked.delete(uri.toString()) && this.announce()),
      vscode.window.onDidChangeVisibleTextEditors((editors) => editors.forEach((editor) => this.draw(editor))),
    );
  }

  dispose(): void {
    this.parts.dispose();
  }

  // Shows the values of a run of `text`. The program may have been edited since the run started.
  show(uri: vscode.Uri, text: string, values: readonly Value[]): void {
    const now = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString())?.getText();
    if (now === undefined) {
      return;
    }
    const lines = split(now);
    const still = now === text ? shown(values) : afterEdit(shown(values), difference(split(text), lines));
    this.put(uri, { lines, values: still });
    this.hint();
  }

  clear(): void {
    for (const key of [...this.tracked.keys()]) {
      this.put(vscode.Uri.parse(key), undefined);
    }
    this.hint();
  }

  // Makes the editor request the hints again. After an edit, it does so by itself.
  private hint(): void {
    if (valuesWrap()) {
      this.hinted.fire();
    }
  }

  private put(uri: vscode.Uri, tracked: Tracked | undefined): void {
    if (tracked === undefined || tracked.values.length === 0) {
      this.tracked.delete(uri.toString());
    } else {
      this.tracked.set(uri.toString(), tracked);
    }
    editorsOf(uri).forEach((editor) => this.draw(editor));
    this.announce();
  }

  private edited({ document, contentChanges }: vscode.TextDocumentChangeEvent): void {
    const tracked = this.tracked.get(document.uri.toString());
    if (tracked === undefined || contentChanges.length === 0) {
      return;
    }
    for (const change of contentChanges) {
      tracked.values = afterEdit(tracked.values, applied(tracked.lines, change));
    }
    this.put(document.uri, tracked);
  }

  provideInlayHints(document: vscode.TextDocument, range: vscode.Range): vscode.InlayHint[] {
    const lines = valuesWrap() ? [...this.lines(document)].filter(([line]) => range.start.line <= line && line <= range.end.line) : [];
    return lines.map(([line, values]) => {
      const hint = new vscode.InlayHint(document.lineAt(Math.min(line, document.lineCount - 1)).range.end, briefly(values));
      hint.paddingLeft = true;
      hint.tooltip = new vscode.MarkdownString(values.map(whole).join("\n\n"));
      return hint;
    });
  }

  // Returns the values by line.
  private lines(document: vscode.TextDocument): ReadonlyMap<number, readonly Value[]> {
    const lines = new Map<number, Value[]>();
    for (const { line, value } of this.tracked.get(document.uri.toString())?.values ?? []) {
      lines.set(line, [...(lines.get(line) ?? []), value]);
    }
    return lines;
  }

  private redraw(): void {
    vscode.window.visibleTextEditors.forEach((editor) => this.draw(editor));
    this.hinted.fire();
  }

  private draw(editor: vscode.TextEditor): void {
    const lines = valuesWrap() ? [] : this.lines(editor.document);
    const all = [...lines].map(([line, values]) => ({ bad: values.some((value) => value.nan > 0), options: decoration(line, values) }));
    editor.setDecorations(this.plain, all.filter(({ bad }) => !bad).map(({ options }) => options));
    editor.setDecorations(this.wrong, all.filter(({ bad }) => bad).map(({ options }) => options));
  }

  private announce(): void {
    void vscode.commands.executeCommand("setContext", "rx.hasValues", this.tracked.size > 0);
  }
}

function after(color: string): vscode.TextEditorDecorationType {
  return vscode.window.createTextEditorDecorationType({
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedOpen,
    after: { margin: "0 0 0 3ch", color: new vscode.ThemeColor(color) },
  });
}

function decoration(line: number, values: readonly Value[]): vscode.DecorationOptions {
  const end = new vscode.Range(line, Number.MAX_SAFE_INTEGER, line, Number.MAX_SAFE_INTEGER);
  return {
    range: end,
    hoverMessage: values.map((value) => new vscode.MarkdownString(whole(value))),
    renderOptions: { after: { contentText: briefly(values).replaceAll(" ", BLANK) } },
  };
}
