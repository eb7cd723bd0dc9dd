// Packages the extension for one platform, with the programs that it starts.
//
// usage: npm run package -- --binaries FOLDER [--target linux-x64] [--out FILE.vsix]
//
// FOLDER contains rx-lsp, rxcheck and rxrun; `cargo build --release --bins` builds them in target/release. With `--binaries none`, no
// programs are packaged, and the extension searches for installed ones. Requires node 22 or later, for @vscode/vsce.

import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { parseArgs } from "node:util";

const PROGRAMS = ["rx-lsp", "rxcheck", "rxrun"];

// VS Code's names of platforms. Node reports Alpine as Linux, so it must be given with --target.
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
    return fail("give the folder of rx-lsp, rxcheck and rxrun: --binaries FOLDER (or none)");
  }
  if (Number(process.versions.node.split(".")[0]) < 22) {
    return fail(`@vscode/vsce requires node 22 or later; found ${process.versions.node}`);
  }
  const bundled = options.binaries !== "none";
  const target = options.target ?? `${process.platform}-${process.arch}`;
  if (bundled && !TARGETS.includes(target)) {
    return fail(`${target} is not a platform of VS Code; the platforms are ${TARGETS.join(", ")}`);
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

// Copies the programs to `server`. Returns an error message if one is missing.
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
      return `${source} does not exist; \`cargo build --release --bins\` builds it`;
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
