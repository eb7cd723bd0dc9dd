// "Run": checks that the workspace is trusted, collects the arguments, requests the run from the server and shows its answer.

import * as path from "node:path";
import * as vscode from "vscode";
import type { ExecuteCommandSignature } from "vscode-languageclient/node";
import type { Place } from "../place";
import { range } from "../positions";
import { activeProgram, announceAddresses, editorsOf, isProgram, nameOf } from "../programs";
import { showsReport } from "../settings";
import { lacks } from "./answers";
import { beside, line, onlyFunction, runArguments, stopArguments, withModule, words } from "./arguments";
import { askModule, askValues, CHOOSE } from "./ask";
import { chooseInputs } from "./choose";
import type { InlineValues } from "./inline";
import { withInputs } from "./inputs";
import { Arguments, type Target } from "./memory";
import { readOutcome, type Outcome } from "./outcome";
import type { Panel } from "./panel";
import { lines } from "./words";

export const RUN = "rx.run";
export const STOP = "rx.stop";

// The outcome of a run with these arguments, and the text that was run.
interface Attempt {
  readonly outcome: Outcome;
  readonly words: readonly string[];
  readonly program: string | undefined;
}

// The module, files of inputs, and the values that are then still missing.
const MOST_QUESTIONS = 3;

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
  // The programs that run, and the number of runs of each.
  private readonly running = new Map<string, number>();

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
    const target = await this.target(given);
    if (target === undefined) {
      void vscode.window.showErrorMessage("rx: open a Relax file to run it.");
      return undefined;
    }
    this.last = target;
    const more = Array.isArray(given[2]) ? given[2].filter((word) => typeof word === "string") : [];
    return this.run(target, more, next);
  }

  // Stops the run of a program: `given` is `[uri]`. The default is the active program, otherwise all programs that run.
  async stop(given: readonly unknown[], next: ExecuteCommandSignature): Promise<unknown> {
    const active = activeProgram()?.document.uri.toString();
    return next(STOP, stopArguments(address(given[0]), active, (program) => this.running.has(program)));
  }

  async again(): Promise<void> {
    const target = this.last ?? (await this.target([]));
    await this.order(target);
  }

  async onDevice(): Promise<void> {
    const choice = await vscode.window.showQuickPick(DEVICES, { title: "Run on", placeHolder: "The device" });
    const target = await this.target([]);
    if (choice !== undefined && target !== undefined) {
      await this.order(target, ["--device", choice.device]);
    }
  }

  async withArguments(): Promise<void> {
    const target = await this.current();
    if (target === undefined) {
      return;
    }
    const text = await vscode.window.showInputBox({
      title: `Arguments of rxrun for ${named(target)}`,
      prompt: "The arguments are remembered for this function. Leave empty to use only those of the settings.",
      placeHolder: "--dim n=4 --inputs data.npz --seed 7",
      value: line(this.arguments.of(target)),
      ignoreFocusOut: true,
      validateInput: (text) => {
        const read = words(text);
        return Array.isArray(read) ? undefined : read.problem;
      },
    });
    const read = text === undefined ? undefined : words(text);
    if (Array.isArray(read)) {
      await this.arguments.remember(target, read);
      await this.order(target);
    }
  }

  async inputs(): Promise<void> {
    const target = await this.current();
    if (target === undefined) {
      return;
    }
    const words = this.arguments.of(target);
    const chosen = await chooseInputs(target.uri, words);
    if (chosen !== undefined) {
      await this.arguments.remember(target, withInputs(words, chosen));
      await this.order(target);
    }
  }

  // Forgets the arguments and answers, so that the next run asks again.
  async forget(): Promise<void> {
    const target = await this.current();
    if (target !== undefined) {
      await this.arguments.forget(target.uri);
      void vscode.window.showInformationMessage(`rx: ${nameOf(target.uri)} now has no arguments or inputs of its own; runs use only the settings.`);
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

  // Runs a function and shows the result. If the run lacks a module, dims or inputs, nothing has been run: the user is asked for them, and nothing
  // is shown before. The answers are remembered.
  private async run(target: Target, more: readonly string[], next: ExecuteCommandSignature): Promise<Outcome | undefined> {
    const attempt = (): Promise<Attempt | undefined> => this.once(target, beside(this.arguments.of(target), more), next);
    let made = await attempt();
    for (let asked = 0; made !== undefined && wants(made.outcome) && asked < MOST_QUESTIONS; asked += 1) {
      const words = await this.ask(target, made.outcome);
      if (words === undefined) {
        void vscode.window.setStatusBarMessage("rx: nothing was run, because values are missing", 5000);
        return made.outcome;
      }
      await this.arguments.remember(target, words);
      made = await attempt();
    }
    if (made !== undefined) {
      this.show(target, made);
    }
    return made?.outcome;
  }

  private async once(target: Target, words: readonly string[], next: ExecuteCommandSignature): Promise<Attempt | undefined> {
    const program = editorsOf(target.uri)[0]?.document.getText();
    const end = this.begin(target.uri.toString());
    try {
      const outcome = readOutcome(await next(RUN, runArguments(target.uri.toString(), target.function, words, target.module)));
      return outcome && { outcome, words, program };
    } finally {
      end();
    }
  }

  // Marks a program as running, for the buttons in its title. Returns the function that ends this.
  private begin(uri: string): () => void {
    const change = (by: number): void => {
      const runs = (this.running.get(uri) ?? 0) + by;
      if (runs > 0) {
        this.running.set(uri, runs);
      } else {
        this.running.delete(uri);
      }
      announceAddresses("rx.running", [...this.running.keys()].map((key) => vscode.Uri.parse(key)));
      void vscode.commands.executeCommand("setContext", "rx.isRunning", this.running.size > 0);
    };
    change(1);
    return () => change(-1);
  }

  // Returns the remembered arguments with what the run lacks, as the user gives it; undefined if the user cancels.
  private async ask(target: Target, { modules, missing }: Outcome): Promise<readonly string[] | undefined> {
    const words = this.arguments.of(target);
    if (modules.length > 0) {
      const module = await askModule(modules);
      return module === undefined ? undefined : withModule(words, module);
    }
    const values = await askValues(target.uri, named(target), missing, this.arguments.ofAll(target.uri));
    if (values === CHOOSE) {
      const chosen = await chooseInputs(target.uri, words);
      return chosen && withInputs(words, chosen);
    }
    return values && [...words, ...values];
  }

  private show(target: Target, { outcome, words, program }: Attempt): void {
    this.channel.appendLine(`${new Date().toLocaleTimeString()}  ${lines(outcome).join("\n")}`);
    if (outcome.cancelled) {
      return;
    }
    if (program !== undefined) {
      this.values.show(target.uri, program, outcome.values);
    }
    if (showsReport()) {
      void this.panel.show({ title: named(target), uri: target.uri.toString(), arguments: words, outcome });
    } else if (outcome.ok) {
      void vscode.window.showInformationMessage(outcome.message);
    } else {
      void vscode.window.showErrorMessage(outcome.message);
    }
  }

  // Returns the target of the last run, which the report shows; if the active editor has another program, that program.
  private async current(): Promise<Target | undefined> {
    const active = vscode.window.activeTextEditor?.document;
    const another = active !== undefined && isProgram(active) && active.uri.toString() !== this.last?.uri.toString();
    return another || this.last === undefined ? this.target([]) : this.last;
  }

  private async target(given: readonly unknown[]): Promise<Target | undefined> {
    const program = address(given[0]);
    const uri = program === undefined ? (activeProgram() ?? vscode.window.activeTextEditor)?.document.uri : vscode.Uri.parse(program);
    if (uri === undefined) {
      return undefined;
    }
    const name = typeof given[1] === "string" ? given[1] : undefined;
    const module = typeof given[3] === "string" ? given[3] : undefined;
    // Arguments are remembered by function, so the one that the server would choose is named.
    const only = name === undefined && module === undefined ? onlyFunction(await runLenses(uri)) : undefined;
    return { uri, function: name, ...(module !== undefined && { module }), ...only };
  }
}

// Returns the arguments of the lenses that run functions. Their module is given if the file has several.
async function runLenses(uri: vscode.Uri): Promise<unknown[][]> {
  try {
    const lenses = await vscode.commands.executeCommand<vscode.CodeLens[] | undefined>("vscode.executeCodeLensProvider", uri);
    return (lenses ?? []).flatMap(({ command }) => (command?.command === RUN ? [command.arguments ?? []] : []));
  } catch {
    // The document is not open.
    return [];
  }
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

// Whether nothing was run because the user has to choose a module or give values.
function wants({ modules, missing }: Outcome): boolean {
  return modules.length > 0 || lacks(missing);
}

// Names a function for the user: `main in net.rx`.
function named({ uri, function: name }: Target): string {
  const file = nameOf(uri);
  return name === undefined ? file : `${name} in ${file}`;
}

// Returns the address in a command's argument: a string from the server, a Uri from a menu of the editor.
function address(value: unknown): string | undefined {
  return typeof value === "string" ? value : value instanceof vscode.Uri ? value.toString() : undefined;
}
