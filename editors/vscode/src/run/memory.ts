// The remembered arguments of each program, in the workspace's state.

import type * as vscode from "vscode";

export class Arguments {
  constructor(private readonly memory: vscode.Memento) {}

  of(program: vscode.Uri): string[] {
    return this.memory.get<string[]>(key(program), []);
  }

  async remember(program: vscode.Uri, words: readonly string[]): Promise<void> {
    await this.memory.update(key(program), words.length === 0 ? undefined : words);
  }
}

function key(program: vscode.Uri): string {
  return `rx.run.arguments:${program.toString()}`;
}
