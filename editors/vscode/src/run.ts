// "Run `main`": the server starts the child; here is who may ask for it, and where the result is written down.

import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";

const COMMAND = "rx.run";

// An `output` event of rxrun (docs/json.md). What comes from a process is not taken for granted.
interface Output {
  name?: string;
  dtype?: string;
  shape?: number[];
  min?: number | null;
  mean?: number | null;
  max?: number | null;
  nan?: number;
}

interface Outcome {
  ok: boolean;
  message: string;
  outputs?: Output[];
  log?: string;
}

// What the server has to know about runs.
export function runSettings(): object {
  const settings = vscode.workspace.getConfiguration("rx.run");
  return {
    run: {
      program: settings.get<string>("program", ""),
      arguments: settings.get<string[]>("arguments", []),
      timeoutSeconds: settings.get<number>("timeoutSeconds", 600),
    },
  };
}

// Runs the server's commands: "Run" only where the user trusts the folder, and for the active editor when it comes without
// arguments, from the command palette. The server itself shows progress and how it ended.
export function runCommands(channel: vscode.OutputChannel) {
  return async (command: string, args: unknown[], next: ExecuteCommandSignature): Promise<unknown> => {
    if (command !== COMMAND) {
      return next(command, args);
    }
    if (!vscode.workspace.isTrusted) {
      void vscode.window.showErrorMessage("rx: programs are not run in a folder you do not trust.");
      return undefined;
    }
    const target = args.length > 0 ? args : activeDocument();
    if (target === undefined) {
      void vscode.window.showErrorMessage("rx: open the program that is to be run.");
      return undefined;
    }
    const outcome: Outcome | null | undefined = await next(command, target);
    if (outcome) {
      write(channel, outcome);
    }
    return outcome;
  };
}

function activeDocument(): string[] | undefined {
  const editor = vscode.window.activeTextEditor;
  return editor && [editor.document.uri.toString()];
}

function write(channel: vscode.OutputChannel, outcome: Outcome): void {
  channel.appendLine(`${new Date().toLocaleTimeString()}  ${outcome.message}`);
  for (const output of outcome.outputs ?? []) {
    const shape = `(${(output.shape ?? []).join(", ")})`;
    const values = `min ${shown(output.min)}  mean ${shown(output.mean)}  max ${shown(output.max)}  nan ${output.nan ?? 0}`;
    channel.appendLine(`  ${output.name}: ${output.dtype} ${shape}  ${values}`);
  }
  if (outcome.log) {
    channel.appendLine(outcome.log.trimEnd());
  }
}

function shown(value: number | null | undefined): string {
  return typeof value === "number" ? value.toPrecision(6) : "not finite";
}
