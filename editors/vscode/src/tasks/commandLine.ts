// Converts tasks of type `rx` to command lines.

export type Kind = "check" | "fix" | "watch" | "run";

export interface Task {
  readonly kind: Kind;
  readonly path: string;
  readonly args: readonly string[];
}

export interface CommandLine {
  readonly tool: "rxcheck" | "rxrun";
  readonly args: readonly string[];
  // The problem matchers for its output.
  readonly matchers: readonly string[];
}

const KINDS: readonly Kind[] = ["check", "fix", "watch", "run"];

// Parses a task of tasks.json; returns an error message if it is not valid.
export function readTask(definition: Readonly<Record<string, unknown>>): Task | string {
  const kind = KINDS.find((kind) => kind === definition["task"]);
  if (kind === undefined) {
    return `a task of type rx requires "task" to be one of ${KINDS.map((kind) => `"${kind}"`).join(", ")}`;
  }
  const path = definition["path"] ?? (kind === "run" ? "${file}" : "${workspaceFolder}");
  if (typeof path !== "string" || path === "") {
    return 'the "path" of a task of type rx is a text';
  }
  const args = definition["args"] ?? [];
  if (!Array.isArray(args) || !args.every((arg) => typeof arg === "string")) {
    return 'the "args" of a task of type rx are an array of texts';
  }
  return { kind, path, args };
}

export function commandLine(task: Task): CommandLine {
  const check = ["--format", "concise"];
  switch (task.kind) {
    case "check":
      return { tool: "rxcheck", args: [...check, ...task.args, task.path], matchers: ["$rxcheck"] };
    case "fix":
      return { tool: "rxcheck", args: [...check, "--fix", ...task.args, task.path], matchers: ["$rxcheck"] };
    case "watch":
      return { tool: "rxcheck", args: [...check, "--watch", ...task.args, task.path], matchers: ["$rxcheck-watch"] };
    case "run":
      return { tool: "rxrun", args: [task.path, ...task.args], matchers: [] };
  }
}

export function title(kind: Kind, what: string): string {
  return `${kind} ${what}`;
}
