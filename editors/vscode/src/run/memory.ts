// The remembered arguments of each function, in the workspace's state. They are kept by function, because the dims and inputs of one function
// are mistakes for another.

import type * as vscode from "vscode";

// A function of a program. Without a name it is `main`, which runs choose by default.
export interface Owner {
  readonly uri: vscode.Uri;
  readonly function: string | undefined;
  readonly module?: string;
}

export class Arguments {
  constructor(private readonly memory: Pick<vscode.Memento, "get" | "update" | "keys">) {}

  of(owner: Owner): string[] {
    return this.memory.get<string[]>(key(owner), []);
  }

  // Returns the arguments of all functions of a program.
  ofAll(program: vscode.Uri): string[] {
    return this.keys(program).flatMap((key) => this.memory.get<string[]>(key, []));
  }

  async remember(owner: Owner, words: readonly string[]): Promise<void> {
    await this.memory.update(key(owner), words.length === 0 ? undefined : words);
  }

  // Forgets the arguments of all functions of a program.
  async forget(program: vscode.Uri): Promise<void> {
    for (const key of this.keys(program)) {
      await this.memory.update(key, undefined);
    }
  }

  private keys(program: vscode.Uri): readonly string[] {
    return this.memory.keys().filter((key) => key.startsWith(prefix(program)));
  }
}

function prefix(program: vscode.Uri): string {
  return `rx.run.arguments:${program.toString()}#`;
}

function key({ uri, function: name, module }: Owner): string {
  return `${prefix(uri)}${module ?? ""}.${name ?? "main"}`;
}
