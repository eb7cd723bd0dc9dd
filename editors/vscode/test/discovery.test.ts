import assert from "node:assert/strict";
import test from "node:test";
import { find, findBeside, type Places } from "../src/server/discovery";

// A machine with only these programs.
function machine(programs: string[], changes: Partial<Places> = {}): Places {
  return {
    setting: { name: "rx.server.path", value: "" },
    bundled: "/ext/server",
    searchPath: ["/usr/bin", "/opt/rx"],
    python: async () => ["/home/me/net/.venv/bin"],
    home: "/home/me",
    suffix: "",
    isProgram: async (file) => programs.includes(file),
    ...changes,
  };
}

const set = (value: string) => ({ setting: { name: "rx.server.path", value } });
const everywhere = ["/mine/rx-lsp", "/ext/server/rx-lsp", "/usr/bin/rx-lsp", "/home/me/net/.venv/bin/rx-lsp"];

test("the order is: setting, bundled program, PATH, Python environment", async () => {
  const found = (programs: string[], value = "") => find("rx-lsp", machine(programs, set(value)));
  assert.deepEqual(await found(everywhere, "/mine/rx-lsp"), { path: "/mine/rx-lsp", source: "setting" });
  assert.deepEqual(await found(everywhere), { path: "/ext/server/rx-lsp", source: "bundled" });
  assert.deepEqual(await found(everywhere.slice(2)), { path: "/usr/bin/rx-lsp", source: "path" });
  assert.deepEqual(await found(everywhere.slice(3)), { path: "/home/me/net/.venv/bin/rx-lsp", source: "python" });
});

test("Python environments are searched only if the program is nowhere else", async () => {
  const python = () => Promise.reject(new Error("asked"));
  assert.ok("path" in (await find("rx-lsp", machine(["/opt/rx/rx-lsp"], { python }))));
});

test("a setting that names a missing program is an error", async () => {
  for (const value of ["/nowhere/rx-lsp", "other-lsp", "build/rx-lsp"]) {
    const missing = await find("rx-lsp", machine(everywhere, set(value)));
    assert.ok("reason" in missing && missing.reason.includes(value) && missing.reason.includes("rx.server.path"), value);
  }
});

test("a setting may be a name in PATH, or start from the home folder", async () => {
  const home = await find("rx-lsp", machine(["/home/me/bin/rx-lsp"], set("~/bin/rx-lsp")));
  assert.deepEqual(home, { path: "/home/me/bin/rx-lsp", source: "setting" });
  const name = await find("rx-lsp", machine(["/opt/rx/rx-nightly"], set(" rx-nightly ")));
  assert.deepEqual(name, { path: "/opt/rx/rx-nightly", source: "setting" });
});

test("relative folders in PATH are skipped, so the open folder cannot choose the program", async () => {
  const found = await find("rx-lsp", machine(["rx-lsp", "bin/rx-lsp"], { searchPath: [".", "bin", ""] }));
  assert.ok("reason" in found);
});

test("the error of a missing program lists the searched places", async () => {
  const found = await find("rx-lsp", machine([]));
  assert.deepEqual(found, {
    reason: "rx-lsp is not bundled with the extension and not in PATH; nor in /home/me/net/.venv/bin",
    places: ["/ext/server/rx-lsp", "/usr/bin", "/opt/rx", "/home/me/net/.venv/bin"],
  });
});

test("programs on Windows end in .exe", async () => {
  const found = await find("rx-lsp", machine(["/usr/bin/rx-lsp.exe"], { suffix: ".exe" }));
  assert.deepEqual(found, { path: "/usr/bin/rx-lsp.exe", source: "path" });
});

test("a tool is found in the server's folder, otherwise like the server", async () => {
  const machineWithTwo = machine(["/mine/rxcheck", "/usr/bin/rxcheck"]);
  assert.equal(JSON.stringify(await findBeside("rxcheck", "/mine/rx-lsp", machineWithTwo)).includes("/mine/rxcheck"), true);
  assert.deepEqual(await findBeside("rxcheck", "/other/rx-lsp", machineWithTwo), { path: "/usr/bin/rxcheck", source: "path" });
});
