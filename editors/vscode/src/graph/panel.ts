// The panel that shows the graph of the function under the cursor. There is one panel, which follows the active program.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as vscode from "vscode";
import { number, record } from "../json";
import { Latest } from "../latest";
import { point, position, range } from "../positions";
import { activeProgram, editorsOf, isProgram, onDidSettle } from "../programs";
import type { Server } from "../server/server";
import { nodeAt, readGraph, within, type Graph } from "./graph";
import { page } from "./html";
import type { FromPage, ToPage } from "./messages";

export const GRAPH = "rx.graph";

// The time without cursor movement after which the graph of another function is drawn.
const RESTS_MS = 150;

interface Drawn {
  readonly program: vscode.Uri;
  readonly version: number;
  readonly cursor: vscode.Position;
  readonly graph: Graph;
}

const TYPE = "rx.graph";

export class GraphPanel implements vscode.Disposable, vscode.WebviewPanelSerializer {
  private panel: vscode.WebviewPanel | undefined;
  private drawn: Drawn | undefined;
  // The node that the page just requested. It is not sent back to the page, where another node may be selected by then.
  private opened: number | undefined;
  // Whether the page can receive messages.
  private ready = false;
  // The message for the page of a new panel. The server answers while the page is loaded.
  private first: ToPage | undefined;
  private readonly latest = new Latest();
  private readonly parts: vscode.Disposable;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
  ) {
    this.parts = vscode.Disposable.from(
      this.latest,
      vscode.window.onDidChangeTextEditorSelection(({ textEditor }) => this.moved(textEditor)),
      vscode.window.onDidChangeActiveTextEditor((editor) => editor && this.moved(editor)),
      onDidSettle((uri) => this.settled(uri)),
      server.onDidChange((state) => state.kind === "running" && this.settled()),
      vscode.window.registerWebviewPanelSerializer(TYPE, this),
    );
  }

  dispose(): void {
    this.panel?.dispose();
    this.parts.dispose();
  }

  show(): void {
    if (activeProgram() === undefined) {
      void vscode.window.showErrorMessage("rx: put the cursor into a function.");
    } else if (this.panel === undefined) {
      this.panel = this.open();
      void this.draw();
    } else {
      this.panel.reveal(undefined, true);
      void this.draw();
    }
  }

  // Restores the panel after a reload of the window. It shows the function under the cursor as soon as the server runs.
  deserializeWebviewPanel(panel: vscode.WebviewPanel): Promise<void> {
    this.panel?.dispose();
    this.panel = this.furnish(panel);
    return Promise.resolve();
  }

  private open(): vscode.WebviewPanel {
    const where = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    return this.furnish(vscode.window.createWebviewPanel(TYPE, "Graph", where));
  }

  private furnish(panel: vscode.WebviewPanel): vscode.WebviewPanel {
    panel.webview.options = { enableScripts: true, localResourceRoots: [] };
    panel.iconPath = vscode.Uri.joinPath(this.extension, "icons", "rx.svg");
    panel.webview.onDidReceiveMessage((message: FromPage) => this.hear(message));
    panel.onDidChangeViewState(() => {
      // VS Code discards a hidden page. The new page sends `ready` when it is shown again.
      this.ready &&= panel.visible;
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.drawn = undefined;
      this.first = undefined;
      this.ready = false;
      this.latest.dispose();
    });
    const text = (...path: string[]): string => readFileSync(join(this.extension.fsPath, ...path), "utf8");
    panel.webview.html = page({
      style: text("media", "graph.css"),
      script: text("out", "graph.js"),
      nonce: randomBytes(16).toString("base64"),
    });
    return panel;
  }

  private hear(message: FromPage): void {
    if (record(message)?.["kind"] === "ready") {
      this.ready = true;
      const first = this.first;
      this.first = undefined;
      if (first !== undefined) {
        this.tell(first);
      }
      if (first?.kind !== "graph" || this.isStale()) {
        void this.draw();
      }
      return;
    }
    const id = number(record(message)?.["id"]);
    const node = this.drawn?.graph.nodes.find((node) => node.id === id);
    if (this.drawn !== undefined && node !== undefined) {
      this.opened = node.id;
      void reveal(this.drawn.program, range(node.place));
    }
  }

  // Whether there is no graph of the active program, or the program or its cursor has changed since the graph was requested.
  private isStale(): boolean {
    const { drawn } = this;
    const editor = activeProgram();
    if (drawn === undefined || editor === undefined) {
      return true;
    }
    const { uri, version } = editor.document;
    return drawn.program.toString() !== uri.toString() || drawn.version !== version || !drawn.cursor.isEqual(editor.selection.active);
  }

  private async draw(): Promise<void> {
    const editor = activeProgram();
    if (editor === undefined) {
      return;
    }
    if (this.server.isStarting && this.drawn === undefined) {
      // The graph is drawn when the server runs.
      this.tell({ kind: "message", text: "The language server is starting." });
      return;
    }
    const { document, selection } = editor;
    const { uri, version } = document;
    const asked = await this.latest.ask((token) => this.server.ask(GRAPH, [uri.toString(), position(selection.active)], token));
    if (asked === undefined) {
      return;
    }
    const graph = readGraph(asked.answer);
    if (graph !== undefined) {
      this.drawn = { program: uri, version, cursor: selection.active, graph };
      this.title(graph.function);
      this.tell({ kind: "graph", graph, selected: nodeAt(graph, point(editor.selection.active)) });
    } else if (this.drawn === undefined) {
      const nothing = asked.answer === null ? "Put the cursor into a Relax function." : "The language server did not return a graph. See its log for the reason.";
      this.tell({ kind: "message", text: nothing });
    } else {
      this.tell({ kind: "graph", graph: this.drawn.graph, selected: undefined });
    }
  }

  private title(name: string): void {
    if (this.panel !== undefined) {
      this.panel.title = `Graph: ${name}`;
    }
  }

  private moved(editor: vscode.TextEditor): void {
    const { opened } = this;
    this.opened = undefined;
    if (!this.ready || editor !== vscode.window.activeTextEditor || !isProgram(editor.document)) {
      return;
    }
    const cursor = point(editor.selection.active);
    const { drawn } = this;
    const { uri, version } = editor.document;
    if (drawn !== undefined && drawn.program.toString() === uri.toString() && drawn.version === version && within(drawn.graph, cursor)) {
      const id = nodeAt(drawn.graph, cursor);
      if (id !== undefined && id === opened && drawn.graph.whole) {
        return;
      }
      if (id !== opened || id === undefined) {
        this.tell({ kind: "select", id });
      }
    }
    // The cursor may be in another function, which may also be a nested one, or in another part of a large one.
    this.latest.later(RESTS_MS, () => void this.draw());
  }

  private settled(uri?: vscode.Uri): void {
    if (this.ready && (uri === undefined || uri.toString() === this.drawn?.program.toString() || this.drawn === undefined)) {
      void this.draw();
    }
  }

  private tell(message: ToPage): void {
    if (this.ready) {
      void this.panel?.webview.postMessage(message);
    } else {
      this.first = message;
    }
  }
}

async function reveal(program: vscode.Uri, where: vscode.Range): Promise<void> {
  const [shown] = editorsOf(program);
  const editor = shown ?? (await vscode.window.showTextDocument(program, { viewColumn: vscode.ViewColumn.One, preserveFocus: true }));
  // The cursor is put at the start, so that a long line is not scrolled to its end.
  editor.selection = new vscode.Selection(where.end, where.start);
  editor.revealRange(new vscode.Range(where.start, where.start), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}
