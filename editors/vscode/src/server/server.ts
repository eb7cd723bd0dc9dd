// Manages one language server: starts, watches, restarts and stops it, and reports its state.

import * as vscode from "vscode";
import {
  CloseAction,
  DidChangeConfigurationNotification,
  ErrorAction,
  ExecuteCommandRequest,
  LanguageClient,
  RevealOutputChannelOn,
  type Middleware,
  type ServerCapabilities,
  type StaticFeature,
} from "vscode-languageclient/node";
import { selector } from "../documents";
import { pythonEnabled, serverSettings } from "../settings";
import { isFound, type Found } from "./discovery";
import { findServer } from "./places";
import { Restarts } from "./restarts";
import { watchFile } from "./watch";

export type State =
  | { readonly kind: "idle" }
  | { readonly kind: "starting"; readonly program?: Found }
  | { readonly kind: "running"; readonly program: Found; readonly version: string; readonly capabilities: ServerCapabilities }
  | { readonly kind: "stopped" }
  | { readonly kind: "waiting"; readonly seconds: number }
  | { readonly kind: "failed"; readonly reason: string; readonly missing: boolean };

// Tells the server that completions may open signature help.
const editorCommands: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    capabilities.experimental = { commands: { commands: ["editor.action.triggerParameterHints"] } };
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};

export class Server implements vscode.Disposable {
  readonly log = vscode.window.createOutputChannel("Relax (rx)", { log: true });
  private readonly changed = new vscode.EventEmitter<State>();
  readonly onDidChange = this.changed.event;
  private readonly restarts = new Restarts();
  private client: LanguageClient | undefined;
  private watcher: vscode.Disposable | undefined;
  private timer: NodeJS.Timeout | undefined;
  private current: State = { kind: "idle" };
  // Starts and stops are executed one after the other, however quickly they are requested.
  private queue: Promise<void> = Promise.resolve();

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly middleware: Middleware,
  ) {}

  get state(): State {
    return this.current;
  }

  // Whether the server is starting or waiting to be restarted.
  get isStarting(): boolean {
    return this.current.kind === "starting" || this.current.kind === "waiting";
  }

  // Starts the server, unless it is running.
  start(): Promise<void> {
    return this.enqueue(() => (this.client === undefined ? this.launch() : Promise.resolve()));
  }

  // Restarts the server, at the user's request or because its configuration changed.
  restart(): Promise<void> {
    this.restarts.forget();
    return this.enqueue(async () => {
      await this.end();
      await this.launch();
    });
  }

  stop(): Promise<void> {
    return this.enqueue(async () => {
      await this.end();
      this.become({ kind: "stopped" });
    });
  }

  async configure(): Promise<void> {
    await this.client?.sendNotification(DidChangeConfigurationNotification.type, { settings: serverSettings() });
  }

  has(command: string): boolean {
    return (
      this.current.kind === "running" &&
      (this.current.capabilities.executeCommandProvider?.commands.includes(command) ?? false)
    );
  }

  // Executes a command of the server and returns its answer. Returns undefined on failure, which is logged.
  async ask(command: string, args: readonly unknown[], token: vscode.CancellationToken): Promise<unknown> {
    const client = this.client;
    if (client === undefined || !this.has(command)) {
      return undefined;
    }
    try {
      return await client.sendRequest(ExecuteCommandRequest.type, { command, arguments: [...args] }, token);
    } catch (error) {
      if (!token.isCancellationRequested) {
        this.log.warn(`${command}: ${String(error)}`);
      }
      return undefined;
    }
  }

  dispose(): void {
    void this.enqueue(() => this.end()).finally(() => {
      this.changed.dispose();
      this.log.dispose();
    });
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(step, step);
    return this.queue;
  }

  private async launch(): Promise<void> {
    clearTimeout(this.timer);
    this.become({ kind: "starting" });
    const program = await findServer(this.context);
    if (!isFound(program)) {
      this.log.error(`${program.reason}. Searched: ${program.places.join(", ") || "nothing else"}`);
      this.become({ kind: "failed", reason: program.reason, missing: true });
      return;
    }
    this.become({ kind: "starting", program });
    this.log.info(`starting ${program.path} (${program.source})`);
    const client = this.connect(program);
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      if (this.client === client) {
        this.client = undefined;
        await client.dispose().catch(() => undefined);
        const reason = error instanceof Error ? error.message : String(error);
        this.log.error(reason);
        this.become({ kind: "failed", reason: `${program.path} cannot be started: ${reason}`, missing: false });
      }
      return;
    }
    const answer = client.initializeResult;
    const version = answer?.serverInfo?.version ?? "(unknown version)";
    // A rebuilt or updated server replaces the running one.
    this.watcher = watchFile(program.path, () => {
      this.log.info(`${program.path} has changed`);
      void this.restart();
    });
    this.become({ kind: "running", program, version, capabilities: answer?.capabilities ?? {} });
  }

  private connect(program: Found): LanguageClient {
    const rx = vscode.workspace.getConfiguration("rx");
    const args = ["--stdio", ...rx.get<string[]>("server.extraArgs", [])];
    const client: LanguageClient = new LanguageClient(
      "rx",
      "Relax (rx)",
      { command: program.path, args },
      {
        documentSelector: selector(pythonEnabled()),
        outputChannel: this.log,
        revealOutputChannelOn: RevealOutputChannelOn.Never,
        initializationOptions: serverSettings,
        middleware: this.middleware,
        errorHandler: {
          error: () => ({ action: ErrorAction.Continue, handled: true }),
          closed: () => {
            this.crashed(client);
            return { action: CloseAction.DoNotRestart, handled: true };
          },
        },
      },
    );
    client.registerFeature(editorCommands);
    return client;
  }

  // Handles the end of a running server. A server that ends earlier is a failed start.
  private crashed(client: LanguageClient): void {
    if (this.client !== client || this.current.kind !== "running") {
      return;
    }
    this.client = undefined;
    this.watcher?.dispose();
    const wait = this.restarts.next(Date.now());
    if (wait === undefined) {
      this.become({ kind: "failed", reason: "the language server crashed five times in three minutes", missing: false });
      return;
    }
    this.log.warn(`the language server stopped unexpectedly; it is restarted${wait > 0 ? ` in ${wait / 1000} s` : ""}`);
    this.become({ kind: "waiting", seconds: wait / 1000 });
    this.timer = setTimeout(() => void this.start(), wait);
  }

  private async end(): Promise<void> {
    clearTimeout(this.timer);
    this.watcher?.dispose();
    const client = this.client;
    this.client = undefined;
    // The client fails if the server has already exited, which is the wanted state.
    await client?.dispose().catch(() => undefined);
  }

  private become(state: State): void {
    this.current = state;
    this.changed.fire(state);
  }
}
