// The message if the server cannot be started, with the actions that the user can take.

import * as vscode from "vscode";
import type { Server, State } from "./server/server";

export function offerHelp(server: Server): vscode.Disposable {
  return server.onDidChange((state) => {
    if (state.kind === "failed") {
      void offer(server, state);
    }
  });
}

async function offer(server: Server, state: State & { kind: "failed" }): Promise<void> {
  const install = "How to Install";
  const settings = "Choose Its Path";
  const log = "Show Log";
  const again = "Try Again";
  const actions = state.missing ? [install, settings, again] : [log, again, settings];
  const message = state.missing
    ? `rx: there is no language server: ${state.reason}. Relax files are highlighted but not checked.`
    : `rx: ${state.reason}.`;
  switch (await vscode.window.showErrorMessage(message, ...actions)) {
    case install:
      await vscode.commands.executeCommand("workbench.action.openWalkthrough", "rx-relax.rx-relax#rx.start", false);
      break;
    case settings:
      await vscode.commands.executeCommand("workbench.action.openSettings", "rx.server.path");
      break;
    case log:
      server.log.show();
      break;
    case again:
      await server.restart();
      break;
    default:
  }
}
