// Requests of which only the latest one matters: a newer request cancels the older one, whose answer is dropped.

import * as vscode from "vscode";

export class Latest implements vscode.Disposable {
  private source: vscode.CancellationTokenSource | undefined;
  private timer: NodeJS.Timeout | undefined;

  // Returns the answer to `question`; undefined if a newer question was asked in the meantime.
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

  // Calls `act` after a delay, unless something else is requested before.
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
