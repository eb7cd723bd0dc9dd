// What the tests of editors share: the programs under test, folders of their own, a server's capabilities.

import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const here = path.dirname(fileURLToPath(import.meta.url));

// Where tests/editors/install.sh put the editors.
export const editors = path.resolve(process.env.RX_EDITORS);

// Where screenshots are kept.
export const artefacts = path.resolve(process.env.RX_ARTEFACTS ?? path.join(here, "../../target/editors"));
mkdirSync(artefacts, { recursive: true });

// rx-lsp, rxcheck and rxrun.
export const programs = path.resolve(process.env.RX_PROGRAMS);

// A folder that is gone after the test.
export function folder(test) {
  const made = mkdtempSync(path.join(tmpdir(), "rx-editors-"));
  test.after(() => rmSync(made, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 }));
  return made;
}

export function program(name, into) {
  const file = path.join(into, path.basename(name));
  copyFileSync(path.join(here, "programs", name), file);
  return file;
}

// An environment in which nothing is written under the home folder.
export function environment(home) {
  return {
    ...process.env,
    PATH: `${programs}${path.delimiter}${process.env.PATH}`,
    HOME: home,
    XDG_CONFIG_HOME: path.join(home, "config"),
    XDG_DATA_HOME: path.join(home, "data"),
    XDG_STATE_HOME: path.join(home, "state"),
    XDG_CACHE_HOME: path.join(home, "cache"),
    XDG_RUNTIME_DIR: home,
  };
}

// What rx-lsp says it can do, asked by a client without any capability of its own.
export function capabilities() {
  return new Promise((resolve, reject) => {
    const server = spawn(path.join(programs, "rx-lsp"), ["--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
    let text = "";
    server.on("error", reject);
    server.on("exit", () => reject(new Error(`rx-lsp ended before it answered: ${text}`)));
    server.stdout.on("data", (piece) => {
      text += piece;
      const body = text.slice(text.indexOf("\r\n\r\n") + 4);
      const length = Number(/Content-Length: (\d+)/.exec(text)?.[1] ?? Infinity);
      if (Buffer.byteLength(body) >= length) {
        server.stdin.end();
        resolve(JSON.parse(Buffer.from(body).subarray(0, length).toString()).result.capabilities);
      }
    });
    const message = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { capabilities: {}, processId: null, rootUri: null } });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(message)}\r\n\r\n${message}`);
  });
}
