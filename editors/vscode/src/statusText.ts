// Short descriptions of the server's state.

import type { Source } from "./server/discovery";
import type { State } from "./server/server";

const WHERE: Record<Source, string> = {
  setting: "chosen by rx.server.path",
  bundled: "bundled with the extension",
  path: "found in PATH",
  python: "found in a Python environment",
};

export interface Shown {
  readonly text: string;
  readonly detail: string;
  readonly severity: "information" | "warning" | "error";
  readonly busy: boolean;
}

export function shown(state: State): Shown {
  const line = (text: string, detail: string, severity: Shown["severity"] = "information", busy = false): Shown => ({
    text,
    detail,
    severity,
    busy,
  });
  switch (state.kind) {
    case "idle":
      return line("rx", "not started");
    case "starting":
      return line("rx", `starting ${state.program?.path ?? ""}`, "information", true);
    case "running":
      return line(`rx ${state.version}`, `${state.program.path}, ${WHERE[state.program.source]}`);
    case "stopped":
      return line("rx stopped", "Use “Relax: Restart the Server” to start it", "warning");
    case "waiting":
      return line("rx restarting", `The server stopped unexpectedly and restarts in ${state.seconds} s`, "warning", true);
    case "failed":
      return line("rx not running", state.reason, "error");
  }
}
