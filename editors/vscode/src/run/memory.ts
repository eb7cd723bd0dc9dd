// The remembered arguments of each function, in the workspace's state. They are kept by function, because the dims and inputs of one function
// are mistakes for another.

import type * as vscode from "vscode";

// A function to run. Without a name, the server chooses it: `main`, otherwise the only public one. The module is given if the file has several modules.
export interface Target {
  readonly uri: vscode.Uri;
  readonly function: string | undefined;
  readonly module?: string;
}

export class Arguments {
  constructor(private readonly memory: Pick<vscode.Memento, "get" | "update" | "keys">) {}

  // Those of `main` may have been remembered by version 0.1.0, which kept arguments by file.
  of(target: Target): string[] {
    const older = isMain(target) ? this.memory.get<string[]>(fileKey(target.uri), []) : [];
    return this.memory.get<string[]>(key(target), older);
  }

  // Returns the arguments of all functions of a program.
  ofAll(program: vscode.Uri): string[] {
    return this.keys(program).flatMap((key) => this.memory.get<string[]>(key, []));
  }

  async remember(target: Target, words: readonly string[]): Promise<void> {
    if (isMain(target)) {
      await this.memory.update(fileKey(target.uri), undefined);
    }
    await this.memory.update(key(target), words.length === 0 ? undefined : words);
  }

  // Forgets the arguments of all functions of a program.
  async forget(program: vscode.Uri): Promise<void> {
    for (const key of this.keys(program)) {
      await this.memory.update(key, undefined);
    }
  }

  private keys(program: vscode.Uri): readonly string[] {
    const file = fileKey(program);
    return this.memory.keys().filter((key) => key === file || key.startsWith(`${file}#`));
  }
}

function isMain({ function: name }: Target): boolean {
  return name === undefined || name === "main";
}

// The key of version 0.1.0.
function fileKey(program: vscode.Uri): string {
  return `rx.run.arguments:${program.toString()}`;
}

function key({ uri, function: name, module }: Target): string {
  return `${fileKey(uri)}#${module ?? ""}.${name ?? "main"}`;
}
