// Asks the user for what a run lacks: the module, if a file has several; the values of dims and inputs, all in one line.

import * as vscode from "vscode";
import { nameOf } from "../programs";
import { answered, example, named, suggested } from "./answers";
import { filesBeside } from "./choose";
import type { Missing } from "./outcome";

// The user prefers to choose files of arrays, from which the dims follow.
export const CHOOSE = "choose";

// Returns undefined if the user cancels.
export function askModule(modules: readonly string[]): Thenable<string | undefined> {
  const title = "Module";
  const placeHolder = "The module to run. It is remembered; “Run with Arguments…” changes it.";
  return vscode.window.showQuickPick([...modules], { title, placeHolder, ignoreFocusOut: true });
}

// Returns the options of rxrun for the missing values; undefined if the user cancels. `remembered` are the arguments of earlier runs of the program.
export async function askValues(program: vscode.Uri, title: string, missing: Missing, remembered: readonly string[]): Promise<string[] | typeof CHOOSE | undefined> {
  const files = missing.inputs.length > 0 ? await filesBeside(program) : [];
  const box = vscode.window.createInputBox();
  box.title = `Values for ${title}`;
  box.prompt = `Enter ${named(missing)}, in this order or by name. They are remembered; “Run with Arguments…” changes them.`;
  box.placeholder = example(missing);
  box.value = suggested(missing, remembered, files);
  box.ignoreFocusOut = true;
  box.buttons = [{ iconPath: new vscode.ThemeIcon("folder-opened"), tooltip: `Choose Inputs of ${nameOf(program)}…` }];
  return new Promise((resolve) => {
    box.onDidChangeValue(() => {
      box.validationMessage = undefined;
    });
    box.onDidTriggerButton(() => {
      resolve(CHOOSE);
      box.hide();
    });
    box.onDidAccept(() => {
      const values = answered(box.value, missing);
      if (Array.isArray(values)) {
        resolve(values);
        box.hide();
      } else {
        box.validationMessage = values.problem;
      }
    });
    box.onDidHide(() => {
      resolve(undefined);
      box.dispose();
    });
    box.show();
  });
}
