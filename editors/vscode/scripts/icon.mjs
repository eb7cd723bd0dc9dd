// Renders icons/rx.svg, the source, to icons/rx.png, 128 pixels wide.
//
// usage: RX_EDITORS=FOLDER node scripts/icon.mjs        FOLDER is the folder that tests/editors/install.sh filled

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import path from "node:path";

const programs = process.env.RX_EDITORS;
if (programs === undefined) {
  console.error("icon: set RX_EDITORS to the folder that tests/editors/install.sh filled");
  process.exit(2);
}
const { chromium } = createRequire(path.resolve(programs, "app/package.json"))("playwright-core");
const icon = (name) => fileURLToPath(new URL(`../icons/${name}`, import.meta.url));

const browser = await chromium.launch({ executablePath: path.resolve(programs, "bin/chromium"), args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 128, height: 128 } });
await page.setContent(`<style>body { margin: 0; background: transparent }</style>${readFileSync(icon("rx.svg"), "utf8")}`);
await page.screenshot({ path: icon("rx.png"), omitBackground: true });
await browser.close();
