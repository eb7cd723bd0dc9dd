// The user's settings in the form that the server expects.

import * as vscode from "vscode";

export interface ServerSettings {
  readonly run: { readonly program: string; readonly arguments: readonly string[]; readonly timeoutSeconds: number; readonly values: boolean; readonly gpu: boolean | null; readonly message: boolean };
  readonly check: { readonly select: readonly string[]; readonly ignore: readonly string[] };
  readonly inlayHints: { readonly shapes: boolean; readonly dtypes: boolean };
}

export function serverSettings(): ServerSettings {
  const rx = vscode.workspace.getConfiguration("rx");
  return {
    run: {
      program: rx.get<string>("run.program", ""),
      arguments: rx.get<string[]>("run.arguments", []),
      timeoutSeconds: rx.get<number>("run.timeoutSeconds", 600),
      values: rx.get<boolean>("run.values", true),
      gpu: rx.get<boolean | null>("run.gpu", null),
      // The extension shows the result of a run: nothing is shown if values are missing, for which it asks.
      message: false,
    },
    check: { select: rx.get<string[]>("check.select", []), ignore: rx.get<string[]>("check.ignore", []) },
    inlayHints: { shapes: rx.get<boolean>("inlayHints.shapes", true), dtypes: rx.get<boolean>("inlayHints.dtypes", true) },
  };
}

export function showsReport(): boolean {
  return vscode.workspace.getConfiguration("rx").get<boolean>("run.showReport", true);
}

export type Placement = "below" | "beside";

// Returns where the report opens: below the program, where the values at the ends of its lines stay visible, or beside it.
export function reportPlacement(): Placement {
  return vscode.workspace.getConfiguration("rx").get<string>("run.reportPlacement") === "beside" ? "beside" : "below";
}

// Whether values are inlay hints, which wrap with their lines.
export function valuesWrap(): boolean {
  return vscode.workspace.getConfiguration("rx").get<string>("run.valuesPlacement") === "wrapped";
}

export function pythonEnabled(): boolean {
  return vscode.workspace.getConfiguration("rx").get<boolean>("python.enabled", true);
}

// Settings that are read when the server starts, and those that are sent to the running server.
export const AT_START = ["rx.server", "rx.python"];
export const WHILE_RUNNING = ["rx.run", "rx.check", "rx.inlayHints"];
