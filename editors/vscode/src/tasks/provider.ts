// Provides the default tasks (check, fix, watch, run), and resolves the tasks of tasks.json.

import * as vscode from "vscode";
import { isFound } from "../server/discovery";
import { findServer, findTool } from "../server/places";
import { commandLine, readTask, title, type Kind } from "./commandLine";

const FILE: Kind[] = ["check", "fix", "run"];
const FOLDER: Kind[] = ["check", "fix", "watch"];

export class Tasks implements vscode.TaskProvider {
  constructor(private readonly context: vscode.ExtensionContext) {}

  async provideTasks(): Promise<vscode.Task[]> {
    const document = vscode.window.activeTextEditor?.document;
    const file = document?.languageId === "relax" && document.uri.scheme === "file";
    const folders = vscode.workspace.workspaceFolders ?? [];
    const several = folders.length > 1;
    const definitions = [
      ...(file ? FILE.map((kind) => ({ kind, what: "this file", path: "${file}", scope: vscode.TaskScope.Workspace as const })) : []),
      ...folders.flatMap((scope) =>
        FOLDER.map((kind) => ({ kind, what: several ? scope.name : "the workspace", path: "${workspaceFolder}", scope })),
      ),
    ];
    const tasks = definitions.map(({ kind, what, path, scope }) =>
      this.task({ type: "rx", task: kind, path }, title(kind, what), scope),
    );
    return (await Promise.all(tasks)).filter((task) => task !== undefined);
  }

  resolveTask(task: vscode.Task): Promise<vscode.Task | undefined> {
    return this.task(task.definition, task.name, task.scope ?? vscode.TaskScope.Workspace);
  }

  private async task(
    definition: vscode.TaskDefinition,
    name: string,
    scope: vscode.WorkspaceFolder | vscode.TaskScope.Global | vscode.TaskScope.Workspace,
  ): Promise<vscode.Task | undefined> {
    const read = readTask(definition);
    if (typeof read === "string") {
      void vscode.window.showErrorMessage(`rx: ${read}.`);
      return undefined;
    }
    const { tool, args, matchers } = commandLine(read);
    const program = await this.program(tool);
    const task = new vscode.Task(definition, scope, name, "rx", new vscode.ProcessExecution(program, [...args]), [...matchers]);
    task.isBackground = read.kind === "watch";
    if (read.kind === "check") {
      task.group = vscode.TaskGroup.Build;
    }
    return task;
  }

  // If a program is not found, its name is used, so that the terminal reports that it is missing.
  private async program(tool: string): Promise<string> {
    const server = await findServer(this.context);
    const found = isFound(server) ? await findTool(this.context, tool, server) : server;
    return isFound(found) ? found.path : tool;
  }
}
