// Starts Visual Studio Code, as code-server in headless Chromium, with the packaged extension, and operates it.
//
// RX_EDITORS, RX_PROGRAMS, RX_VSIX: see run.sh, which sets them.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { editors, environment, folder, program } from "./support.mjs";

// How long a locator or a condition is waited for, in ms.
export const WAIT = 60_000;

const SETTINGS = {
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.colorTheme": "Default Light Modern",
  "chat.disableAIFeatures": true,
  "telemetry.telemetryLevel": "off",
  "update.mode": "none",
  "extensions.autoUpdate": false,
  "editor.hover.delay": 100,
  "editor.minimap.enabled": false,
  "files.simpleDialog.enable": true,
  "git.enabled": false,
  "security.workspace.trust.enabled": false,
};

// The files that driving VS Code needs, by name.
const NEEDED = {
  "Chromium": path.join(editors, "bin/chromium"),
  "code-server": path.join(editors, "app/node_modules/code-server/out/node/entry.js"),
  "playwright-core": path.join(editors, "app/node_modules/playwright-core/index.js"),
  "a packaged extension": process.env.RX_VSIX ?? "",
};
const missing = Object.keys(NEEDED).filter((name) => !existsSync(NEEDED[name]));
export const skip = missing.length > 0 && `no ${missing.join(", no ")}`;
const version = skip ? "" : JSON.parse(readFileSync(path.join(editors, "app/node_modules/code-server/lib/vscode/package.json"))).version;
export const CLIENT = `VS Code ${version}:`;

// Starts code-server with the extension on a free port, and a page of Chromium that shows a folder with copies of `files`, which are
// paths relative to tests/editors/programs. `view` are options of the page, such as `deviceScaleFactor`.
export async function start(t, files, settings = {}, view = {}) {
  const home = folder(t);
  const work = path.join(home, "work");
  mkdirSync(work);
  const opened = files.map((name) => program(name, work));
  const data = path.join(home, "vscode");
  mkdirSync(path.join(data, "User"), { recursive: true });
  const run = process.env.RX_RUN_ARGUMENTS === undefined ? {} : { "rx.run.arguments": process.env.RX_RUN_ARGUMENTS.split(" ") };
  writeFileSync(path.join(data, "User/settings.json"), JSON.stringify({ ...SETTINGS, ...run, ...settings }));
  // Settings of scope "machine" are read from a separate file.
  mkdirSync(path.join(data, "Machine"));
  writeFileSync(path.join(data, "Machine/settings.json"), JSON.stringify(settings));
  writeFileSync(path.join(home, "config.yaml"), "auth: none\n");
  const common = [
    NEEDED["code-server"],
    "--config", path.join(home, "config.yaml"),
    "--user-data-dir", data,
    "--extensions-dir", path.join(home, "extensions"),
  ];
  const env = environment(home);
  // The extension must use the programs that it bundles, so those of PATH are left out.
  env.PATH = process.env.PATH;
  const installed = spawnSync(process.execPath, [...common, "--install-extension", process.env.RX_VSIX, "--force"], { env, encoding: "utf8" });
  assert.equal(installed.status, 0, installed.stdout + installed.stderr);

  const arguments_ = [...common, "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"];
  if (settings["security.workspace.trust.enabled"] === true) {
    arguments_.pop();
  }
  const server = spawn(process.execPath, arguments_, { env, stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => ended(server));
  const address = await listening(server);
  const { chromium } = createRequire(import.meta.url)(NEEDED["playwright-core"]);
  const browser = await chromium.launch({ executablePath: NEEDED["Chromium"], args: ["--no-sandbox"], env: { ...env, TMPDIR: home } });
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 1280, height: 760 }, ...view });
  page.setDefaultTimeout(WAIT);
  await page.goto(`${address}?folder=${encodeURIComponent(work)}`);
  return { page, home, opened };
}

// The address that the server prints when it is ready.
function listening(server) {
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (piece) => {
      said += piece;
      const address = /HTTP server listening on (http:\S+)/.exec(said)?.[1];
      if (address !== undefined) {
        resolve(address.endsWith("/") ? address : `${address}/`);
      }
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    server.on("exit", (status) => reject(new Error(`code-server ended with ${status}: ${said}`)));
  });
}

function ended(child) {
  return new Promise((resolve) => {
    child.on("exit", resolve);
    child.kill();
  });
}

// Opens a file of the explorer.
export async function open(page, name) {
  await page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).dblclick();
  await page.locator(".tab.active", { hasText: name }).waitFor();
}

// Runs a command from the command palette, by its title.
export async function command(page, title) {
  await page.keyboard.press("F1");
  const input = page.locator(".quick-input-widget input[type=text]");
  await input.waitFor();
  await input.fill(`>${title}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
}

// The middle of the first token that equals `text`.
export function word(page, text) {
  return page.evaluate((text) => {
    const tokens = [...document.querySelectorAll(".view-line span > span")];
    const box = tokens.find((token) => token.textContent.trim() === text)?.getBoundingClientRect();
    if (box === undefined) {
      throw new Error(`no line shows ${text}`);
    }
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }, text);
}

// Waits for a condition, which is evaluated once per frame of the page.
export async function until(page, condition) {
  for (const end = Date.now() + WAIT; Date.now() < end; await page.evaluate(() => new Promise(requestAnimationFrame))) {
    if (await condition()) {
      return;
    }
  }
  assert.fail(`not within ${WAIT} ms: ${condition}`);
}

// Opens the menu of code actions at the cursor, and returns its rows. VS Code drops a request that comes soon after the cursor moved, so it is
// repeated.
export async function actions(page) {
  const rows = page.locator(".action-widget .monaco-list-row.action");
  const opens = () => rows.first().waitFor({ timeout: 3000 }).then(() => true, () => false);
  await until(page, () => page.keyboard.press("Control+.").then(opens));
  return rows;
}

// Moves the pointer away from everything that shows a hover.
export async function rest(page) {
  await page.mouse.move(5, 5);
  await page.locator(".workbench-hover").first().waitFor({ state: "hidden" });
}

// Puts the cursor on the first token that equals `text`.
export async function onto(page, text) {
  await page.locator(".view-line span > span", { hasText: new RegExp(`^\\s*${text}\\s*$`) }).first().waitFor();
  const { x, y } = await word(page, text);
  await page.mouse.click(x, y);
}

// Switches to a colour theme.
export async function theme(page, name) {
  await command(page, "Preferences: Color Theme");
  await page.locator(".quick-input-widget input[type=text]").fill(name);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
  await page.locator(".quick-input-widget").waitFor({ state: "hidden" });
}
