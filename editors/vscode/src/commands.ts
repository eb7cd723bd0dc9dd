// Commands that manage the server, and the example file.

import * as vscode from "vscode";
import { debugInfo } from "./debugInfo";
import type { Server } from "./server/server";
import { shown } from "./statusText";

const EXAMPLE = `# from tvm.script import relax as R

@R.function
def main(x: R.Tensor((1, 3, 224, 224), "float32"), w: R.Tensor((64, 3, 7, 7), "float32")):
    with R.dataflow():
        conv = R.nn.conv2d(x, w, strides=[2, 2], padding=[3, 3, 3, 3])
        relu: R.Tensor((1, 64, 224, 224), "float32") = R.nn.relu(conv)
        R.output(relu)
    return relu
`;

export function serverCommands(context: vscode.ExtensionContext, server: Server): vscode.Disposable {
  const register = vscode.commands.registerCommand;
  return vscode.Disposable.from(
    register("rx.restartServer", () => server.restart()),
    register("rx.stopServer", () => server.stop()),
    register("rx.showLog", () => server.log.show()),
    register("rx.serverVersion", () => {
      const { text, detail } = shown(server.state);
      void vscode.window.showInformationMessage(`${text}: ${detail}`);
    }),
    register("rx.copyDebugInfo", async () => {
      await vscode.env.clipboard.writeText(debugInfo(facts(context, server)));
      void vscode.window.showInformationMessage("rx: debug info copied. It contains paths, but no text of your files.");
    }),
    // Opens a program with a mistake in a new editor, to try the extension.
    register("rx.newExample", async () => {
      await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: "relax", content: EXAMPLE }));
    }),
  );
}

function facts(context: vscode.ExtensionContext, server: Server): Parameters<typeof debugInfo>[0] {
  const manifest: { version: string; contributes: { configuration: { properties: Record<string, unknown> } } } =
    context.extension.packageJSON;
  const { text, detail } = shown(server.state);
  const state = server.state;
  return {
    extension: `${context.extension.id} ${manifest.version}`,
    editor: `${vscode.env.appName} ${vscode.version} (${vscode.env.appHost}${vscode.env.remoteName ? `, ${vscode.env.remoteName}` : ""})`,
    platform: `${process.platform} ${process.arch}`,
    trusted: vscode.workspace.isTrusted,
    state: text,
    server: detail,
    capabilities: state.kind === "running" ? Object.keys(state.capabilities).sort() : [],
    settings: changedSettings(Object.keys(manifest.contributes.configuration.properties)),
  };
}

function changedSettings(names: readonly string[]): Record<string, unknown> {
  const changed: Record<string, unknown> = {};
  for (const name of names) {
    const found = vscode.workspace.getConfiguration().inspect(name);
    const value = found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
    if (value !== undefined) {
      changed[name] = value;
    }
  }
  return changed;
}
