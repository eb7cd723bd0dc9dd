// Puts the parts together. No rule of the language lives in the extension: it starts rx-lsp and shows what that says.

import * as vscode from "vscode";
import { ANNOTATE, annotate } from "./annotate";
import { serverCommands } from "./commands";
import { wantsServer } from "./documents";
import { GRAPH, GraphPanel } from "./graph/panel";
import { offerHelp } from "./offer";
import { PassDocuments } from "./passes/documents";
import { InlineValues } from "./run/inline";
import { Panel } from "./run/panel";
import { STATEMENT } from "./run/report";
import { RUN, Runner, showStatement } from "./run/run";
import { Server } from "./server/server";
import { AT_START, pythonEnabled, serverSettings, WHILE_RUNNING } from "./settings";
import { STAGE, stageCommands, StageDocuments } from "./stage/documents";
import { statusItem } from "./status";
import { SYNTAX_TREE, SyntaxTrees } from "./syntaxTree";
import { Tasks } from "./tasks/provider";
import { Turns } from "./turns";
import { explain, WHY } from "./why/explain";

let server: Server | undefined;

// How much of a Python file says whether it is one of TVM's.
const FIRST_LINES = new vscode.Range(0, 0, 500, 0);

export function activate(context: vscode.ExtensionContext): void {
  const panel = new Panel(context.extensionUri);
  const values = new InlineValues();
  const runner = new Runner(context.workspaceState, panel, values, () => started.has(RUN));
  const started: Server = new Server(context, {
    executeCommand: (command, args, next) => {
      switch (command) {
        case RUN:
          return runner.execute(args, next);
        case WHY:
          return explain(args, next);
        case ANNOTATE:
          return annotate(args, next);
        default:
          return next(command, args);
      }
    },
    // The server asks for one section, the extension's own; not all that it has to know of is a setting.
    workspace: { configuration: ({ items }) => items.map(() => serverSettings()) },
    // Lenses run programs; a folder that is not trusted has none.
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
    // Until then no lens is shown, the folder's settings do not count, and its Python environment is not looked at.
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

// The editor underlines every link. A page of operators without its underline is in every hover.
function wanted({ target }: vscode.DocumentLink): boolean {
  const ofOperator = target?.path.endsWith("/operators.md") === true;
  return !ofOperator || vscode.workspace.getConfiguration("rx").get<boolean>("links.operators", false);
}

function startFor(server: Server, documents: readonly vscode.TextDocument[]): void {
  const wants = (document: vscode.TextDocument): boolean => {
    const { languageId, uri } = document;
    return wantsServer({ languageId, uri, head: () => document.getText(FIRST_LINES) }, pythonEnabled());
  };
  if (server.state.kind === "idle" && documents.some(wants)) {
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

// Menus show what the server that runs can do, and nothing else.
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
