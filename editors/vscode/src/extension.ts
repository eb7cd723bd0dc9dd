// Starts `rx-lsp` and connects it to the editor. No rule of the language lives here.

import * as vscode from "vscode";
import {
  DidChangeConfigurationNotification,
  LanguageClient,
  type LanguageClientOptions,
  type ServerOptions,
} from "vscode-languageclient/node";
import { runCommands, runSettings } from "./run";

let client: LanguageClient | undefined;
let results: vscode.OutputChannel;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  results = vscode.window.createOutputChannel("rx run");
  context.subscriptions.push(
    results,
    vscode.commands.registerCommand("rx.restartServer", restart),
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("rx.server") || change.affectsConfiguration("rx.python")) {
        await restart();
      } else if (change.affectsConfiguration("rx.run")) {
        await client?.sendNotification(DidChangeConfigurationNotification.type, { settings: runSettings() });
      }
    }),
    // Until then no lens is shown and the folder's settings do not count.
    vscode.workspace.onDidGrantWorkspaceTrust(restart),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}

async function restart(): Promise<void> {
  await stop();
  await start();
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  // A server that is already gone is what we want.
  await running?.dispose().catch(() => undefined);
}

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("rx");
  const command = settings.get<string>("server.path", "rx-lsp");
  const server: ServerOptions = { command, args: ["--stdio"] };
  const options: LanguageClientOptions = {
    documentSelector: selector(settings.get<boolean>("python.enabled", true)),
    initializationOptions: runSettings(),
    middleware: {
      executeCommand: runCommands(results),
      provideCodeLenses: (document, token, next) => (vscode.workspace.isTrusted ? next(document, token) : []),
    },
  };
  client = new LanguageClient("rx", "Relax (rx)", server, options);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    await reportNoServer(command, error);
  }
}

function selector(python: boolean): { scheme: string; language: string }[] {
  const languages = python ? ["relax", "python"] : ["relax"];
  // `untitled`: text pasted into a new editor is checked before it is saved.
  return languages.flatMap((language) => ["file", "untitled"].map((scheme) => ({ scheme, language })));
}

async function reportNoServer(command: string, error: unknown): Promise<void> {
  const reason = error instanceof Error ? error.message : String(error);
  const open = "Open settings";
  const message = `rx: cannot start the language server \`${command}\` (${reason}). Build it with \`cargo install --path server\` in rx's folder, or set rx.server.path.`;
  if ((await vscode.window.showErrorMessage(message, open)) === open) {
    await vscode.commands.executeCommand("workbench.action.openSettings", "rx.server.path");
  }
}
