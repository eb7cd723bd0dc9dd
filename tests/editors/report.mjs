// Editors that are driven by a script of their own language, which writes a line per feature.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { editors, environment, folder, here, program } from "./support.mjs";

const DEADLINE = 300_000;

// The programs of that name: the one install.sh made, and the system's. With none, a test that says so is skipped.
export function versions(name, pattern) {
  const found = [];
  for (const folder of [path.join(editors, "bin"), ...process.env.PATH.split(path.delimiter)]) {
    const command = path.join(folder, name);
    if (existsSync(command)) {
      const said = spawnSync(command, ["--version"], { encoding: "utf8" });
      const version = pattern.exec(said.stdout)?.[0];
      if (version !== undefined && !found.some((other) => other.version === version)) {
        found.push({ command, version });
      }
    }
  }
  if (found.length === 0) {
    test(name, { skip: `no ${name} in RX_EDITORS or PATH` }, () => {});
  }
  return found;
}

// Runs an editor; each line it reports is a test. Arguments that name a file of this project are relative to `editors` or here.
export function reported(name, command, args) {
  test(name, { timeout: DEADLINE }, async (t) => {
    const home = folder(t);
    const report = path.join(home, "report");
    for (const file of ["conv_relu.rx", "classifier.rx"]) {
      program(file, home);
    }
    const places = [here, path.join(here, "../../editors")];
    const full = (arg) => places.map((place) => path.join(place, arg)).find((file) => /\.\w+$/.test(arg) && existsSync(file)) ?? arg;
    const env = { ...environment(home), RX_WORK: home, RX_REPORT: report };
    const said = await ran(command, args.map(full), env, home);
    const lines = existsSync(report) ? readFileSync(report, "utf8").trim().split("\n") : [];
    assert.ok(lines.length > 1, `nothing was reported: ${said}`);
    for (const line of lines) {
      const [, failed, feature, why] = /^(not )?ok ([^:]*)(?:: (.*))?$/.exec(line) ?? [line, "not ", line, line];
      await t.test(feature, () => assert.equal(failed, undefined, why));
    }
    assert.ok(/^(?:not )?ok end\b/.test(lines.at(-1)), `it ended early: ${said}`);
  });
}

function ran(command, args, env, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, cwd, stdio: ["ignore", "pipe", "pipe"], timeout: DEADLINE });
    let said = "";
    child.stdout.on("data", (piece) => (said += piece));
    child.stderr.on("data", (piece) => (said += piece));
    child.on("error", reject);
    child.on("close", (status) => resolve(`status ${status}: ${said.slice(-2000)}`));
  });
}
