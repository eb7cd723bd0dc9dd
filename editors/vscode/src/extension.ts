// The entry point of the extension. It starts rx-lsp and shows its results; it contains no knowledge of the language itself.

import * as vscode from "vscode";
import { ANNOTATE, annotate } from "./annotate";
import { serverCommands } from "./commands";
import { GRAPH, GraphPanel } from "./graph/panel";
import { offerHelp } from "./offer";
import { PassDocuments } from "./passes/documents";
import { announcePrograms, hasRelax } from "./programs";
import { InlineValues } from "./run/inline";
import { Panel } from "./run/panel";
import { STATEMENT } from "./run/report";
import { RUN, Runner, showStatement, STOP } from "./run/run";
import { Server } from "./server/server";
import { AT_START, serverSettings, WHILE_RUNNING } from "./settings";
import { STAGE, stageCommands, StageDocuments } from "./stage/documents";
import { statusItem } from "./status";
import { SYNTAX_TREE, SyntaxTrees } from "./syntaxTree";
import { Tasks } from "./tasks/provider";
import { Turns } from "./turns";
import { explain, WHY } from "./why/explain";

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const panel = new Panel(context.extensionUri);
  const values = new InlineValues();
  const runner = new Runner(context.workspaceState, panel, values, () => started.has(RUN));
  const started: Server = new Server(context, {
    executeCommand: (command, args, next) => {
      switch (command) {
        case RUN:
          return runner.execute(args, next);
        case STOP:
          return runner.stop(args, next);
        case WHY:
          return explain(args, next);
        case ANNOTATE:
          return annotate(args, next);
        default:
          return next(command, args);
      }
    },
    // The server requests one section. The answer also contains values that are not settings of the editor.
    workspace: { configuration: ({ items }) => items.map(() => serverSettings()) },
    // Lenses run programs, so there are none in a folder that is not trusted.
    provideCodeLenses: (document, token, next) => (vscode.workspace.isTrusted ? next(document, token) : []),
    provideDocumentLinks: async (document, token, next) => (await next(document, token))?.filter(wanted),
  });
  server = started;
  const turns = new Turns();
  const stages = new StageDocuments(started, turns, context.workspaceState);
  const trees = new SyntaxTrees(started);
  const graph = new GraphPanel(context.extensionUri, started);
  const register = vscode.commands.registerCommand;
  context.subscriptions.push(
    started,
    panel,
    values,
    runner,
    stages,
    stageCommands(stages),
    new PassDocuments(started, turns),
    graph,
    trees,
    statusItem(started),
    offerHelp(started),
    serverCommands(context, started),
    announcePrograms(),
    register("rx.runAgain", () => runner.again()),
    register("rx.runOnDevice", () => runner.onDevice()),
    register("rx.runWithArguments", () => runner.withArguments()),
    register("rx.chooseInputs", () => runner.inputs()),
    register("rx.forgetArguments", () => runner.forget()),
    register("rx.saveOutputs", () => runner.saveOutputs()),
    register("rx.clearValues", () => values.clear()),
    register("rx.showGraph", () => graph.show()),
    register("rx.showSyntaxTree", () => trees.show()),
    register(STATEMENT, showStatement),
    vscode.tasks.registerTaskProvider("rx", new Tasks(context)),
    started.onDidChange(() => announce(started)),
    vscode.workspace.onDidChangeConfiguration((change) => configurationChanged(started, change)),
    // Until the folder is trusted, no lens is shown, and the folder's settings and Python environment are not used.
    vscode.workspace.onDidGrantWorkspaceTrust(() => started.restart()),
    vscode.workspace.onDidOpenTextDocument((document) => startFor(started, [document])),
    vscode.workspace.onDidChangeTextDocument(({ document }) => startFor(started, [document])),
  );
  announce(started);
  startFor(started, vscode.workspace.textDocuments);
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

// Links of operators are off by default, because the editor underlines every link and hovers link to the same page.
function wanted({ target }: vscode.DocumentLink): boolean {
  const ofOperator = target?.path.endsWith("/operators.md") === true;
  return !ofOperator || vscode.workspace.getConfiguration("rx").get<boolean>("links.operators", false);
}

function startFor(server: Server, documents: readonly vscode.TextDocument[]): void {
  if (server.state.kind === "idle" && documents.some(hasRelax)) {
    void server.start();
  }
}

function configurationChanged(server: Server, change: vscode.ConfigurationChangeEvent): void {
  if (server.state.kind === "idle") {
    startFor(server, vscode.workspace.textDocuments);
  } else if (AT_START.some((section) => change.affectsConfiguration(section))) {
    void server.restart();
  } else if (WHILE_RUNNING.some((section) => change.affectsConfiguration(section))) {
    void server.configure();
  }
}

// Sets the context keys of the menus, so that they show only commands that the running server supports.
function announce(server: Server): void {
  const can = {
    "rx.canRun": RUN,
    "rx.canExplain": WHY,
    "rx.canAnnotate": ANNOTATE,
    "rx.canShowStages": STAGE,
    "rx.canShowGraph": GRAPH,
    "rx.canShowSyntaxTree": SYNTAX_TREE,
  };
  for (const [key, command] of Object.entries(can)) {
    void vscode.commands.executeCommand("setContext", key, server.has(command));
  }
}
