// Packages the extension for one platform, with the programs it starts.
//
// usage: npm run package -- --binaries FOLDER [--target linux-x64] [--out FILE.vsix]
//
// FOLDER has rx-lsp, rxcheck and rxrun, as `cargo build --release --bins` leaves them in target/release. `--binaries none` packages
// none of them: the extension then looks for those that are installed. Needs node 22 or later (@vscode/vsce does).

import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { parseArgs } from "node:util";

const PROGRAMS = ["rx-lsp", "rxcheck", "rxrun"];

// VS Code's names of platforms. Alpine is Linux to node: it is named with --target.
const TARGETS = ["linux-x64", "linux-arm64", "linux-armhf", "alpine-x64", "alpine-arm64", "darwin-x64", "darwin-arm64", "win32-x64", "win32-arm64"];

const root = fileURLToPath(new URL("..", import.meta.url));
process.exitCode = main();

function main() {
  let options;
  try {
    options = parseArgs({ options: { binaries: { type: "string" }, target: { type: "string" }, out: { type: "string" } } }).values;
  } catch (error) {
    return fail(error.message);
  }
  if (options.binaries === undefined) {
    return fail("name the folder of rx-lsp, rxcheck and rxrun: --binaries FOLDER (or none)");
  }
  if (Number(process.versions.node.split(".")[0]) < 22) {
    return fail(`@vscode/vsce needs node 22 or later, this is ${process.versions.node}`);
  }
  const bundled = options.binaries !== "none";
  const target = options.target ?? `${process.platform}-${process.arch}`;
  if (bundled && !TARGETS.includes(target)) {
    return fail(`${target} is no platform of VS Code: ${TARGETS.join(", ")}`);
  }
  const problem = bundle(bundled ? path.resolve(options.binaries) : undefined, target);
  if (problem !== undefined) {
    return fail(problem);
  }
  const vsce = createRequire(import.meta.url).resolve("@vscode/vsce/vsce");
  const args = ["package", "--no-dependencies"];
  if (bundled) {
    args.push("--target", target);
  }
  if (options.out !== undefined) {
    args.push("--out", path.resolve(options.out));
  }
  return spawnSync(process.execPath, [vsce, ...args], { cwd: root, stdio: "inherit" }).status ?? 1;
}

// Puts the programs into `server`; a sentence when one is missing.
function bundle(folder, target) {
  const into = path.join(root, "server");
  rmSync(into, { recursive: true, force: true });
  if (folder === undefined) {
    return undefined;
  }
  mkdirSync(into);
  for (const program of PROGRAMS) {
    const name = target.startsWith("win32") ? `${program}.exe` : program;
    const source = path.join(folder, name);
    if (!statSync(source, { throwIfNoEntry: false })?.isFile()) {
      return `${source} is not there; \`cargo build --release --bins\` makes it`;
    }
    copyFileSync(source, path.join(into, name));
    chmodSync(path.join(into, name), 0o755);
  }
  return undefined;
}

function fail(sentence) {
  console.error(`package: ${sentence}`);
  return 2;
}
