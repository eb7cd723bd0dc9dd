// "Run": checks that the workspace is trusted, collects the arguments, requests the run from the server and shows its answer.

import * as path from "node:path";
import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";
import type { Place } from "../place";
import { range } from "../positions";
import { activeProgram, editorsOf, isProgram } from "../programs";
import { showsReport } from "../settings";
import { beside, line, missingDims, runArguments, withModule, words } from "./arguments";
import { chooseInputs } from "./choose";
import type { InlineValues } from "./inline";
import { withInputs } from "./inputs";
import { Arguments } from "./memory";
import { readOutcome, type Outcome } from "./outcome";
import type { Panel } from "./panel";
import { lines } from "./words";

export const RUN = "rx.run";

// The function to run. If it has no name, the server chooses it.
interface Target {
  readonly uri: vscode.Uri;
  readonly function: string | undefined;
  // The module of the function, if the file has several modules.
  readonly module?: string;
}

interface Device extends vscode.QuickPickItem {
  readonly device: string;
}

const DEVICES: Device[] = [
  { device: "auto", label: "Best device", description: "a GPU if there is one, otherwise the CPU" },
  { device: "cpu", label: "CPU", description: "kernels compiled for this machine" },
  { device: "cuda", label: "CUDA", description: "a GPU" },
  { device: "cuda-sim", label: "CUDA, simulated", description: "CUDA C compiled by a C++ compiler and run on the CPU" },
  { device: "interp", label: "Interpreter", description: "the reference implementation: slow, with every index checked" },
];

export class Runner implements vscode.Disposable {
  private readonly channel = vscode.window.createOutputChannel("rx run");
  private readonly arguments: Arguments;
  private last: Target | undefined;

  constructor(
    memory: vscode.Memento,
    private readonly panel: Panel,
    private readonly values: InlineValues,
    // Whether the server can run programs. Its command exists only while the server runs.
    private readonly available: () => boolean,
  ) {
    this.arguments = new Arguments(memory);
  }

  dispose(): void {
    this.channel.dispose();
  }

  // Handles a request for a run by a lens or a command: `given` is `[uri, function, arguments, module]`, each of which may be missing.
  async execute(given: readonly unknown[], next: ExecuteCommandSignature): Promise<unknown> {
    if (!vscode.workspace.isTrusted) {
      void vscode.window.showErrorMessage("rx: programs are not run in a folder that is not trusted.");
      return undefined;
    }
    const target = this.target(given);
    if (target === undefined) {
      void vscode.window.showErrorMessage("rx: open a Relax file to run it.");
      return undefined;
    }
    this.last = target;
    const more = Array.isArray(given[2]) ? given[2].filter((word) => typeof word === "string") : [];
    let words = beside(this.arguments.of(target.uri), more);
    let outcome = await this.once(target, words, next);
    // The user is asked for a module only once, if there are several.
    const module = await askModule(outcome?.modules ?? []);
    if (module !== undefined) {
      await this.arguments.remember(target.uri, withModule(this.arguments.of(target.uri), module));
      words = withModule(words, module);
      outcome = await this.once(target, words, next);
    }
    if (outcome === undefined || outcome.cancelled) {
      return outcome;
    }
    // The user is asked for the value of a symbolic dim only once.
    const dims = await ask(missingDims(outcome.message));
    if (dims.length === 0) {
      return outcome;
    }
    await this.arguments.remember(target.uri, [...this.arguments.of(target.uri), ...dims]);
    return this.once(target, [...words, ...dims], next);
  }

  async again(): Promise<void> {
    const target = this.last ?? this.target([]);
    await this.order(target);
  }

  async onDevice(): Promise<void> {
    const choice = await vscode.window.showQuickPick(DEVICES, { title: "Run on", placeHolder: "The device" });
    const target = this.target([]);
    if (choice !== undefined && target !== undefined) {
      await this.order(target, ["--device", choice.device]);
    }
  }

  async withArguments(): Promise<void> {
    const target = this.current();
    if (target === undefined) {
      return;
    }
    const text = await vscode.window.showInputBox({
      title: `Arguments of rxrun for ${path.basename(target.uri.path)}`,
      prompt: "The arguments are remembered for this file. Leave empty to use only those of the settings.",
      placeHolder: "--dim n=4 --inputs data.npz --seed 7",
      value: line(this.arguments.of(target.uri)),
      ignoreFocusOut: true,
      validateInput: (text) => {
        const read = split(text);
        return Array.isArray(read) ? undefined : read.problem;
      },
    });
    const read = text === undefined ? undefined : split(text);
    if (Array.isArray(read)) {
      await this.arguments.remember(target.uri, read);
      await this.order(target);
    }
  }

  async inputs(): Promise<void> {
    const target = this.current();
    if (target === undefined) {
      return;
    }
    const words = this.arguments.of(target.uri);
    const chosen = await chooseInputs(target.uri, words);
    if (chosen !== undefined) {
      await this.arguments.remember(target.uri, withInputs(words, chosen));
      await this.order(target);
    }
  }

  // Forgets the arguments and answers, so that the next run asks again.
  async forget(): Promise<void> {
    const target = this.current();
    if (target !== undefined) {
      await this.arguments.remember(target.uri, []);
      void vscode.window.showInformationMessage(`rx: ${path.basename(target.uri.path)} now has no arguments or inputs of its own; runs use only the settings.`);
    }
  }

  // Runs the program again to write its outputs, since a run does not keep them. With the same seed, the outputs are the same.
  async saveOutputs(): Promise<void> {
    const target = this.last;
    if (target === undefined) {
      return;
    }
    const beside = target.uri.scheme === "file" ? vscode.Uri.file(`${withoutExtension(target.uri.fsPath)}.out.npz`) : undefined;
    const file = await vscode.window.showSaveDialog({
      title: "Run again and save the outputs",
      filters: { "NumPy archive": ["npz"] },
      ...(beside && { defaultUri: beside }),
    });
    if (file !== undefined) {
      await this.order(target, [`--output=${file.fsPath}`]);
    }
  }

  // Executes the same command as a lens, so that the client shows progress and allows cancellation.
  private async order(target: Target | undefined, more?: readonly string[]): Promise<void> {
    if (this.available()) {
      await vscode.commands.executeCommand(RUN, target?.uri.toString(), target?.function, more, target?.module);
    } else {
      void vscode.window.showErrorMessage("rx: programs cannot be run, because the language server is not running.");
    }
  }

  private async once(target: Target, words: readonly string[], next: ExecuteCommandSignature): Promise<Outcome | undefined> {
    const program = editorsOf(target.uri)[0]?.document.getText();
    const outcome = readOutcome(await next(RUN, runArguments(target.uri.toString(), target.function, words, target.module)));
    if (outcome === undefined) {
      return undefined;
    }
    if (!outcome.cancelled && program !== undefined) {
      this.values.show(target.uri, program, outcome.values);
    }
    this.channel.appendLine(`${new Date().toLocaleTimeString()}  ${lines(outcome).join("\n")}`);
    if (!outcome.cancelled && showsReport()) {
      const name = path.basename(target.uri.path);
      const title = target.function === undefined ? name : `${target.function} in ${name}`;
      this.panel.show({ title, uri: target.uri.toString(), arguments: words, outcome });
    }
    return outcome;
  }

  // Returns the target of the last run, which the report shows; if the active editor has another program, that program.
  private current(): Target | undefined {
    const active = vscode.window.activeTextEditor?.document;
    const another = active !== undefined && isProgram(active) && active.uri.toString() !== this.last?.uri.toString();
    return another || this.last === undefined ? this.target([]) : this.last;
  }

  private target(given: readonly unknown[]): Target | undefined {
    const name = typeof given[1] === "string" ? given[1] : undefined;
    if (typeof given[0] === "string") {
      const module = typeof given[3] === "string" ? { module: given[3] } : {};
      return { uri: vscode.Uri.parse(given[0]), function: name, ...module };
    }
    const document = activeProgram()?.document ?? vscode.window.activeTextEditor?.document;
    return document && { uri: document.uri, function: name };
  }
}

function split(text: string): ReturnType<typeof words> {
  return words(text, process.platform === "win32");
}

function withoutExtension(file: string): string {
  return file.slice(0, file.length - path.extname(file).length);
}

// Shows a statement that the report links to.
export async function showStatement(program: string, place: Place): Promise<void> {
  const uri = vscode.Uri.parse(program);
  const shown = editorsOf(uri)[0];
  const viewColumn = shown?.viewColumn ?? vscode.ViewColumn.One;
  await vscode.window.showTextDocument(uri, { viewColumn, selection: range(place) });
}

// Asks for the module, if there are several. Returns undefined if there is no choice or the user cancels.
function askModule(modules: readonly string[]): Thenable<string | undefined> {
  const title = "Module";
  const placeHolder = "The module to run. It is remembered for this file; “Run with Arguments…” changes it.";
  return modules.length === 0 ? Promise.resolve(undefined) : vscode.window.showQuickPick([...modules], { title, placeHolder, ignoreFocusOut: true });
}

// Asks for the values of symbolic dims, one by one. Returns an empty list if the user cancels.
async function ask(dims: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const [at, dim] of dims.entries()) {
    const value = await vscode.window.showInputBox({
      title: dims.length > 1 ? `Symbolic dim ${at + 1} of ${dims.length}` : "Symbolic dim",
      prompt: `The value of ${dim} in runs of this file. “Run with Arguments…” changes it.`,
      ignoreFocusOut: true,
      validateInput: (text) => (/^\d+$/.test(text.trim()) ? undefined : "a whole number, such as 4"),
    });
    if (value === undefined) {
      return [];
    }
    found.push("--dim", `${dim}=${value.trim()}`);
  }
  return found;
}
