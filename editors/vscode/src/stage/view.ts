// One stage document. Its text is regenerated when the program or the function under the cursor changes.

import * as vscode from "vscode";
import { Latest } from "../latest";
import { editorsOf, nameOf } from "../programs";
import { position } from "../positions";
import type { Server } from "../server/server";
import type { Turns } from "../turns";
import { commented, document, KINDS, readStage, type Made, type Stage } from "./stage";

export const STAGE = "rx.stage";

export class View implements vscode.Disposable {
  text: string;
  made: Made | undefined;
  // Whether the program has changed since, so that places in it are no longer valid.
  stale = true;
  private readonly latest = new Latest();

  constructor(
    readonly uri: vscode.Uri,
    readonly program: vscode.Uri,
    readonly stage: Stage,
    // The last position of the cursor in the program.
    private cursor: vscode.Position,
    private readonly server: Server,
    // The server computes only one stage of a program at a time: a newer request cancels an older one.
    private readonly turns: Turns,
    private readonly changed: (view: View) => void,
  ) {
    this.text = commented(stage, `Generating the ${KINDS[stage].title} …`);
  }

  get name(): string {
    return nameOf(this.program);
  }

  get visible(): boolean {
    return editorsOf(this.uri).length > 0;
  }

  dispose(): void {
    this.latest.dispose();
  }

  moved(cursor: vscode.Position): void {
    this.cursor = cursor;
  }

  // Regenerates the text after a delay. The old text is shown until then.
  soon(milliseconds: number): void {
    this.latest.later(milliseconds, () => void this.make());
  }

  async make(): Promise<void> {
    // The text is generated when the server runs.
    if (this.server.isStarting) {
      return;
    }
    const asked = await this.latest.ask((token) => this.turns.take(() => this.question(token)));
    if (asked === undefined) {
      return;
    }
    const made = readStage(asked.answer);
    if (made !== undefined) {
      this.made = made;
      this.text = document(this.stage, made, this.name);
      this.stale = false;
    } else if (this.made === undefined) {
      this.text = commented(this.stage, this.nothing(asked.answer));
    }
    this.changed(this);
  }

  private async question(token: vscode.CancellationToken): Promise<unknown> {
    const args = [this.program.toString(), position(this.cursor), this.stage];
    return token.isCancellationRequested ? undefined : this.server.ask(STAGE, args, token);
  }

  private nothing(answer: unknown): string {
    return answer === null ? `Put the cursor into a function of ${this.name}.` : "The language server did not return it. See its log for the reason.";
  }
}
