// Bundles the extension into one file and the script of a graph's page into another, or each unit test into one file.
//
// usage: node scripts/build.mjs [--production | --watch | --tests]

import { readdirSync, readFileSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build, context } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const has = (flag) => process.argv.includes(flag);

const common = { absWorkingDir: root, bundle: true, format: "cjs", platform: "node", target: "node20", logLevel: "warning" };
const made = { ...common, minify: has("--production"), sourcemap: !has("--production") };
const licence = readFileSync(`${root}/node_modules/@dagrejs/dagre/LICENSE`, "utf8");
const bundles = [
  { ...made, entryPoints: ["src/extension.ts"], outfile: "out/extension.js", external: ["vscode"] },
  // The script of a graph's page.
  {
    ...made,
    entryPoints: ["src/graph/page/script.ts"],
    outfile: "out/graph.js",
    format: "iife",
    platform: "browser",
    target: "es2023",
    legalComments: "none",
    banner: { js: `/*! With @dagrejs/dagre.\n${licence}*/` },
  },
];

if (has("--tests")) {
  rmSync(`${root}/out/test`, { recursive: true, force: true });
  const entryPoints = readdirSync(`${root}/test`).filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  await build({ ...common, entryPoints, outdir: "out/test", sourcemap: "inline" });
} else if (has("--watch")) {
  await Promise.all(bundles.map(async (bundle) => (await context({ ...bundle, logLevel: "info" })).watch()));
} else {
  rmSync(`${root}/out`, { recursive: true, force: true });
  await Promise.all(bundles.map((bundle) => build(bundle)));
}
