// Questions of which only the last one counts: a newer one cancels it, and its answer is dropped.

import * as vscode from "vscode";

export class Latest implements vscode.Disposable {
  private source: vscode.CancellationTokenSource | undefined;
  private timer: NodeJS.Timeout | undefined;

  // What `question` answers; nothing when a newer one has been asked meanwhile.
  async ask(question: (token: vscode.CancellationToken) => Promise<unknown>): Promise<{ readonly answer: unknown } | undefined> {
    this.dispose();
    const source = new vscode.CancellationTokenSource();
    this.source = source;
    const answer = await question(source.token);
    if (source.token.isCancellationRequested) {
      return undefined;
    }
    source.dispose();
    this.source = undefined;
    return { answer };
  }

  // Does something in a while, unless something else is asked for before.
  later(milliseconds: number, act: () => void): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(act, milliseconds);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.source?.cancel();
    this.source?.dispose();
    this.source = undefined;
  }
}
