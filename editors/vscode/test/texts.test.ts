import assert from "node:assert/strict";
import test from "node:test";
import { debugInfo } from "../src/debugInfo";
import { shown } from "../src/statusText";

test("the status bar shows the version and errors", () => {
  const program = { path: "/ext/server/rx-lsp", source: "bundled" } as const;
  const running = shown({ kind: "running", program, version: "0.1.0", capabilities: {} });
  assert.deepEqual(running, { text: "rx 0.1.0", detail: "/ext/server/rx-lsp, bundled with the extension", severity: "information", busy: false });
  assert.equal(shown({ kind: "starting", program }).busy, true);
  assert.equal(shown({ kind: "stopped" }).severity, "warning");
  const failed = shown({ kind: "failed", reason: "no rx-lsp", missing: true });
  assert.deepEqual([failed.severity, failed.detail], ["error", "no rx-lsp"]);
});

test("debug info is a list that includes only changed settings", () => {
  const facts = {
    extension: "rx-relax.rx-relax 0.1.0",
    editor: "Visual Studio Code 1.139.1 (desktop)",
    platform: "linux x64",
    trusted: true,
    state: "rx 0.1.0",
    server: "/usr/bin/rx-lsp, found in PATH",
    capabilities: ["hoverProvider"],
    settings: {},
  };
  assert.match(debugInfo(facts), /- settings: all defaults\n$/);
  assert.match(debugInfo({ ...facts, settings: { "rx.run.arguments": ["--seed", "7"] } }), /`rx\.run\.arguments`: `\["--seed","7"\]`\n$/);
  assert.match(debugInfo({ ...facts, capabilities: [] }), /capabilities: none/);
});
