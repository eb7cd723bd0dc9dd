// Bundles the extension into one file, or its unit tests into one each.
//
// usage: node scripts/build.mjs [--production | --watch | --tests]

import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build, context } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const has = (flag) => process.argv.includes(flag);

const common = { absWorkingDir: root, bundle: true, format: "cjs", platform: "node", target: "node20", logLevel: "warning" };
const extension = {
  ...common,
  entryPoints: ["src/extension.ts"],
  outfile: "out/extension.js",
  external: ["vscode"],
  minify: has("--production"),
  sourcemap: !has("--production"),
};

if (has("--tests")) {
  rmSync(`${root}/out/test`, { recursive: true, force: true });
  const entryPoints = readdirSync(`${root}/test`).filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  await build({ ...common, entryPoints, outdir: "out/test", sourcemap: "inline" });
} else if (has("--watch")) {
  await (await context({ ...extension, logLevel: "info" })).watch();
} else {
  rmSync(`${root}/out`, { recursive: true, force: true });
  await build(extension);
}
