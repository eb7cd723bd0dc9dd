// Makes the pictures of the README: the mistake of examples/conv_relu_mismatch.rx in VS Code, and the run of its fixed twin.
//
// usage: RX_EDITORS=FOLDER node tests/editors/stills.mjs [OUT]      OUT is docs/images by default
// RX_EDITORS    the folder that tests/editors/install.sh filled
// RX_PROGRAMS   a folder with rx-lsp, rxcheck and rxrun; target/release by default
// RX_VSIX       a packaged extension; without it one is made, which needs `npm ci` in editors/vscode
//
// The fonts are JetBrains Mono and Inter (Debian's fonts-jetbrains-mono and fonts-inter), or DejaVu where these are not installed.
// pngquant, where installed, makes the files smaller.

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const out = path.resolve(process.argv[2] ?? path.join(root, "docs/images"));
mkdirSync(out, { recursive: true });
const made = mkdtempSync(path.join(tmpdir(), "rx-stills-"));
process.on("exit", () => rmSync(made, { recursive: true, force: true }));

process.env.FONTCONFIG_FILE = fonts();
process.env.RX_PROGRAMS ??= path.join(root, "target/release");
process.env.RX_ARTEFACTS ??= made;
process.env.RX_VSIX ??= packaged();
// vscode.mjs reads the environment when it is loaded.
const { open, rest, skip, start } = await import("./vscode.mjs");

// Breaks the calls before `dtype=`, so that their values fit into the window.
const WRAPPED = { "editor.wordWrap": "wordWrapColumn", "editor.wordWrapColumn": 94, "editor.wrappingIndent": "same" };

// The height of a line, in pixels.
const LINE = 20;

// An editor without the parts of the window that the pictures do not need.
const PLAIN = {
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.activityBar.location": "hidden",
  "workbench.layoutControl.enabled": false,
  "workbench.navigationControl.enabled": false,
  "workbench.editor.empty.hint": "hidden",
  "window.commandCenter": false,
  "window.menuBarVisibility": "hidden",
  "window.customTitleBarVisibility": "never",
  "breadcrumbs.enabled": false,
  "remote.autoForwardPorts": false,
  "editor.fontFamily": "'JetBrains Mono', 'DejaVu Sans Mono', monospace",
  "editor.fontSize": 13,
  "editor.lineHeight": LINE,
  "editor.lineNumbersMinChars": 3,
  "editor.folding": false,
  "editor.glyphMargin": false,
  "editor.stickyScroll.enabled": false,
  "editor.inlayHints.enabled": "offUnlessPressed",
  "editor.padding.top": 4,
  "editor.scrollbar.horizontal": "hidden",
  "editor.scrollbar.vertical": "hidden",
  "editor.overviewRulerBorder": false,
  "editor.cursorBlinking": "solid",
  "editor.hideCursorInOverviewRuler": true,
  "editor.renderLineHighlight": "none",
};

// Entries of the status bar that code-server adds.
const HIDDEN = ["status.host", "status.forwardedPorts", "status.workbench.keyboardLayout"];

const afterwards = [];
try {
  if (skip) {
    throw new Error(skip);
  }
  await mistake();
  await run();
} finally {
  for (const end of afterwards.reverse()) {
    await end();
  }
}

// The squiggle under `lv`, and the hover with the message.
async function mistake() {
  const page = await editor("conv_relu_mismatch.rx", 650, { "editor.hover.above": false });
  await scroll(page, 27);
  const squiggle = page.locator(".squiggly-error").first();
  await squiggle.waitFor({ state: "attached" });
  const { x, y, width, height } = await squiggle.boundingBox();
  await page.mouse.move(x + width / 2, y + height / 2);
  await page.locator(".monaco-hover:visible", { hasText: "argument 0" }).first().waitFor();
  await shot(page, "editor-mistake");
}

// The values after the bindings, and the report of the run below. A single run is a cold one, so there are twenty.
async function run() {
  const page = await editor("conv_relu_fixed.rx", 696, { ...WRAPPED, "rx.run.arguments": ["--repeat", "20"] });
  await scroll(page, 24);
  await page.locator(".codelens-decoration a", { hasText: "Run" }).first().click();
  const report = page.frameLocator("iframe.webview").frameLocator("#active-frame");
  await report.locator("table", { hasText: "Kernel" }).waitFor();
  await page.keyboard.press("Control+End");
  await page.locator(".view-line", { hasText: /return\sgv/ }).waitFor();
  await rest(page);
  await shot(page, "editor-run");
}

// Shows an example in an editor that fills the window.
async function editor(example, height, settings) {
  const { page } = await start({ after: (end) => afterwards.push(end) }, [`../../../examples/${example}`], { ...PLAIN, ...settings }, {
    viewport: { width: 900, height },
    deviceScaleFactor: 1.5,
  });
  await open(page, example);
  // Code lenses take space, so they must be there before anything is scrolled.
  await page.locator(".codelens-decoration").nth(1).waitFor({ state: "attached" });
  await page.addStyleTag({ content: `${HIDDEN.map((id) => `[id="${id}"]`)} { display: none !important }` });
  await page.keyboard.press("Control+B");
  await page.locator(".explorer-folders-view").waitFor({ state: "hidden" });
  await rest(page);
  return page;
}

// Scrolls by a number of lines, without moving the cursor.
async function scroll(page, lines) {
  for (let line = 0; line < lines; line += 1) {
    await page.keyboard.press("Control+ArrowDown");
  }
}

// Writes a picture, once fades and scrolling have ended.
async function shot(page, name) {
  const file = path.join(out, `${name}.png`);
  await page.waitForTimeout(1500);
  await page.screenshot({ path: file });
  spawnSync("pngquant", ["--force", "--skip-if-larger", "--strip", "--speed", "1", "--output", file, "256", file]);
}

// A configuration of fontconfig that makes Inter the font of menus, tabs and reports. DejaVu Sans is Chromium's usual `system-ui`.
function fonts() {
  const file = path.join(made, "fonts.conf");
  const inter = '<edit name="family" mode="prepend_first" binding="strong"><string>Inter</string></edit>';
  const rule = (family) => `<match><test qual="first" name="family"><string>${family}</string></test>${inter}</match>`;
  const rules = ["sans-serif", "sans", "DejaVu Sans"].map(rule);
  const system = '<include ignore_missing="yes">/etc/fonts/fonts.conf</include>';
  writeFileSync(file, `<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>${system}${rules.join("")}</fontconfig>\n`);
  return file;
}

// Packages the extension; returns the file.
function packaged() {
  const file = path.join(made, "rx.vsix");
  const node = path.join(process.env.RX_EDITORS, "bin");
  const arguments_ = ["--prefix", "editors/vscode", "run", "--silent", "package", "--", "--binaries", path.resolve(process.env.RX_PROGRAMS), "--out", file];
  const env = { ...process.env, PATH: `${path.resolve(node)}${path.delimiter}${process.env.PATH}` };
  const { status, stdout, stderr } = spawnSync("npm", arguments_, { cwd: root, env, encoding: "utf8" });
  if (status !== 0) {
    throw new Error(`the extension was not packaged: ${stdout}${stderr}`);
  }
  return file;
}
