// The implementation of discovery's `Places` with the editor and the machine.

import * as fs from "node:fs/promises";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { find, findBeside, type Found, type Missing, type Places } from "./discovery";
import { pythonFolders } from "./python";

export function findServer(context: vscode.ExtensionContext): Promise<Found | Missing> {
  return find("rx-lsp", places(context, "rx.server.path"));
}

// Finds rxcheck or rxrun for tasks, preferably in the folder of the server.
export function findTool(context: vscode.ExtensionContext, tool: string, server: Found): Promise<Found | Missing> {
  return findBeside(tool, server.path, places(context, tool === "rxrun" ? "rx.run.program" : undefined));
}

function places(context: vscode.ExtensionContext, setting: string | undefined): Places {
  const value = setting === undefined ? "" : vscode.workspace.getConfiguration().get<string>(setting, "");
  return {
    setting: { name: setting ?? "", value },
    bundled: context.asAbsolutePath("server"),
    searchPath: (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== ""),
    python: pythonFolders,
    home: os.homedir(),
    suffix: process.platform === "win32" ? ".exe" : "",
    isProgram,
  };
}

async function isProgram(file: string): Promise<boolean> {
  try {
    await fs.access(file, fs.constants.X_OK);
    return (await fs.stat(file)).isFile();
  } catch {
    return false;
  }
}
