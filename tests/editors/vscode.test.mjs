// Visual Studio Code, as code-server in headless Chromium, with the packaged extension.
//
// RX_EDITORS, RX_PROGRAMS, RX_VSIX: see run.sh, which sets them.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import test from "node:test";
import { artefacts, capabilities, editors, environment, folder, program } from "./support.mjs";

const WAIT = 60_000;

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

// Each with what it is; all must be there.
const NEEDED = {
  "Chromium": path.join(editors, "bin/chromium"),
  "code-server": path.join(editors, "app/node_modules/code-server/out/node/entry.js"),
  "playwright-core": path.join(editors, "app/node_modules/playwright-core/index.js"),
  "a packaged extension": process.env.RX_VSIX ?? "",
};
const missing = Object.keys(NEEDED).filter((name) => !existsSync(NEEDED[name]));
const skip = missing.length > 0 && `no ${missing.join(", no ")}`;
const version = skip ? "" : JSON.parse(readFileSync(path.join(editors, "app/node_modules/code-server/lib/vscode/package.json"))).version;
const CLIENT = `VS Code ${version}:`;

// code-server with the extension, on a port of its own, for a folder of programs.
async function start(t, files, settings = {}) {
  const home = folder(t);
  const work = path.join(home, "work");
  mkdirSync(work);
  const opened = files.map((name) => program(name, work));
  const data = path.join(home, "vscode");
  mkdirSync(path.join(data, "User"), { recursive: true });
  const run = process.env.RX_RUN_ARGUMENTS === undefined ? {} : { "rx.run.arguments": process.env.RX_RUN_ARGUMENTS.split(" ") };
  writeFileSync(path.join(data, "User/settings.json"), JSON.stringify({ ...SETTINGS, ...run, ...settings }));
  // Settings of the machine that the server runs on.
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
  // The extension has its own programs; none of PATH may stand in for them.
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
  const page = await browser.newPage({ viewport: { width: 1280, height: 760 } });
  page.setDefaultTimeout(WAIT);
  await page.goto(`${address}?folder=${encodeURIComponent(work)}`);
  return { page, home, opened };
}

// Where the server listens, once it says so.
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

async function open(page, name) {
  await page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).dblclick();
  await page.locator(".tab.active", { hasText: name }).waitFor();
}

// The command palette, by the title of a command.
async function command(page, title) {
  await page.keyboard.press("F1");
  const input = page.locator(".quick-input-widget input[type=text]");
  await input.waitFor();
  await input.fill(`>${title}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().click();
}

// The middle of the first token that is `text`.
function word(page, text) {
  return page.evaluate((text) => {
    const tokens = [...document.querySelectorAll(".view-line span > span")];
    const box = tokens.find((token) => token.textContent.trim() === text)?.getBoundingClientRect();
    if (box === undefined) {
      throw new Error(`no line shows ${text}`);
    }
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }, text);
}

// A condition of the files, looked at again and again.
async function until(page, condition) {
  for (const end = Date.now() + WAIT; Date.now() < end; await page.evaluate(() => new Promise(requestAnimationFrame))) {
    if (await condition()) {
      return;
    }
  }
  assert.fail(`not within ${WAIT} ms: ${condition}`);
}

// The process of the server that came with the extension which this test installed. Linux tells.
function bundledServer(home) {
  const exe = (id) => {
    try {
      return readlinkSync(`/proc/${id}/exe`);
    } catch {
      return "";
    }
  };
  return readdirSync("/proc").find((id) => /^\d+$/.test(id) && exe(id).startsWith(home) && exe(id).endsWith("/rx-lsp"));
}

function shot(page, name) {
  return page.screenshot({ path: path.join(artefacts, `vscode-${name}.png`) });
}

test(`${CLIENT} a mistake is seen, explained and mended`, { skip, timeout: 6 * WAIT }, async (t) => {
  const can = await capabilities();
  const { page, opened } = await start(t, ["conv_relu.rx"]);
  await open(page, "conv_relu.rx");

  await t.test("the annotation is underlined", async () => {
    await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
    await page.locator(".codelens-decoration a", { hasText: "Run" }).waitFor();
    await shot(page, "check");
  });

  await t.test("the status bar names the server that came with the extension", async () => {
    await page.locator(".statusbar-item", { hasText: /^\s*rx \d+\.\d+/ }).waitFor();
  });

  await t.test("the problem comes with the places that explain it", async () => {
    await page.keyboard.press("Control+Shift+M");
    const rows = page.locator(".markers-panel .monaco-list-row");
    await rows.filter({ hasText: "RX" }).first().waitFor();
    // The file, the problem, and at least one other place.
    await rows.nth(2).waitFor();
    await shot(page, "problems");
    await page.keyboard.press("Control+J");
  });

  await t.test("a hover shows the inferred type", async () => {
    const { x, y } = await word(page, "conv");
    await page.mouse.move(x, y);
    const hover = page.locator(".monaco-hover:visible");
    await hover.filter({ hasText: "(1, 64, 112, 112)" }).first().waitFor();
    await shot(page, "hover");
    await page.keyboard.press("Escape");
    await page.mouse.move(5, 5);
  });

  await t.test("a dim's origin is traced, and the editor follows", async () => {
    assert.ok(can.executeCommandProvider?.commands.includes("rx.why"), "rx-lsp has no command rx.why");
    const { x, y } = await word(page, "conv");
    await page.mouse.click(x, y);
    await command(page, "Relax: Where Does This Dim Come From?");
    const steps = page.locator(".quick-input-list .monaco-list-row");
    await steps.filter({ hasText: "= 112" }).first().waitFor();
    await shot(page, "why");
    await steps.filter({ hasText: "parameter" }).first().click();
    await page.locator(".statusbar-item", { hasText: "Ln 5" }).waitFor();
  });

  await t.test("the light bulb mends it", async () => {
    assert.ok(can.codeActionProvider, "rx-lsp has no codeActionProvider");
    await page.locator(".view-line").first().click();
    const problem = page.locator(".marker-widget");
    await page.keyboard.press("F8");
    await problem.waitFor();
    await page.keyboard.press("Escape");
    await problem.waitFor({ state: "hidden" });
    await page.keyboard.press("Control+.");
    const actions = page.locator(".action-widget .monaco-list-row.action");
    await actions.first().waitFor();
    await shot(page, "fixes");
    await actions.first().click();
    await page.locator(".squiggly-error").first().waitFor({ state: "detached" });
    await page.keyboard.press("Control+S");
    await until(page, () => !readFileSync(opened[0], "utf8").includes("(1, 64, 224, 224)"));
    await shot(page, "mended");
  });

  await t.test("inferred types are written", async () => {
    assert.ok(can.executeCommandProvider?.commands.includes("rx.annotate"), "rx-lsp has no command rx.annotate");
    await page.locator(".view-line").first().click();
    await command(page, "Relax: Write Inferred Annotations");
    await page.locator(".view-line", { hasText: /conv:\s*R\.Tensor\(\(1,\s64,\s112,\s112\)/ }).waitFor();
    await shot(page, "annotated");
  });

  await t.test("the whole file is formatted", async () => {
    assert.ok(can.documentFormattingProvider, "rx-lsp has no documentFormattingProvider");
    const saved = async (condition) => {
      await page.keyboard.press("Control+S");
      return condition(readFileSync(opened[0], "utf8"));
    };
    const { x, y } = await word(page, "conv");
    await page.mouse.click(x, y);
    await page.keyboard.press("End");
    await page.keyboard.type("   ");
    await until(page, () => saved((text) => / {3}$/m.test(text)));
    await command(page, "Format Document");
    await until(page, () => saved((text) => !/ $/m.test(text)));
    await shot(page, "formatted");
  });
});

test(`${CLIENT} a program is run and its report is shown`, { skip, timeout: 6 * WAIT }, async (t) => {
  const { page } = await start(t, ["classifier.rx", "conv_relu.rx"]);
  await open(page, "classifier.rx");
  await page.locator(".codelens-decoration a", { hasText: "Run" }).click();
  const report = page.frameLocator("iframe.webview").frameLocator("#active-frame");

  await t.test("the values of the output are in the table", async () => {
    await report.locator("table tbody tr", { hasText: "out0" }).waitFor();
    assert.match(await report.locator(".state.ok").innerText(), /^Ran in /);
    await shot(page, "run");
  });

  await t.test("the report runs it again, with arguments", async () => {
    await report.locator("a", { hasText: "Run with arguments" }).click();
    const input = page.locator(".quick-input-widget input[type=text]");
    await input.waitFor();
    await input.fill("--seed '7'");
    await page.keyboard.press("Enter");
    await report.locator("dd", { hasText: "--seed 7" }).waitFor();
  });

  await t.test("a task checks files that are not open", async () => {
    await page.locator(".tab", { hasText: "classifier.rx" }).first().click();
    assert.equal(await page.locator(".statusbar-item", { hasText: /^\s*0\s*0\s*$/ }).count(), 1, "there are problems before the task");
    await command(page, "Tasks: Run Task");
    await page.locator(".quick-input-widget input[type=text]").fill("rx");
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "rx" }).first().click();
    await page.locator(".quick-input-list .monaco-list-row", { hasText: "check the workspace" }).first().click();
    await page.locator(".statusbar-item", { hasText: /^\s*1\s*0\s*$/ }).waitFor();
    await page.keyboard.press("Control+Shift+M");
    await page.locator(".markers-panel .monaco-list-row", { hasText: "RX0301" }).first().waitFor();
    await shot(page, "task");
  });

  await t.test("commands about the server answer", async () => {
    await command(page, "Relax: Show the Server's Version");
    await page.locator(".notification-list-item-message", { hasText: "bundled with the extension" }).first().waitFor();
    await command(page, "Relax: Stop the Server");
    await page.locator(".statusbar-item", { hasText: "rx stopped" }).waitFor();
    await command(page, "Relax: Restart the Server");
    await page.locator(".statusbar-item", { hasText: /^\s*rx \d+\.\d+/ }).waitFor();
  });
});

test(`${CLIENT} a server that ends by itself is started again`, { skip, timeout: 4 * WAIT }, async (t) => {
  const { page, home } = await start(t, ["conv_relu.rx"]);
  await open(page, "conv_relu.rx");
  await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
  const first = bundledServer(home);
  assert.ok(first, "no process of the bundled server");
  process.kill(Number(first), "SIGKILL");
  await until(page, () => ![undefined, first].includes(bundledServer(home)));
  await page.locator(".statusbar-item", { hasText: /^\s*rx \d+\.\d+/ }).waitFor();
  await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
});

test(`${CLIENT} where there is no server, it is said what can be done`, { skip, timeout: 4 * WAIT }, async (t) => {
  const { page } = await start(t, ["conv_relu.rx"], { "rx.server.path": "/nowhere/rx-lsp" });
  await open(page, "conv_relu.rx");
  const message = page.locator(".notification-list-item", { hasText: "rx.server.path names /nowhere/rx-lsp" });
  await message.first().waitFor();
  await page.locator(".statusbar-item", { hasText: "rx does not run" }).waitFor();
  await shot(page, "missing");
  await message.locator("a", { hasText: "How to Install" }).first().click();
  await page.locator(".getting-started-step", { hasText: "The server" }).first().waitFor();
  await shot(page, "walkthrough");
});

test(`${CLIENT} a folder that is not trusted is checked, and nothing of it is run`, { skip, timeout: 4 * WAIT }, async (t) => {
  const { page } = await start(t, ["conv_relu.rx"], {
    "security.workspace.trust.enabled": true,
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.untrustedFiles": "open",
  });
  await open(page, "conv_relu.rx");
  await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
  await page.locator(".statusbar-item", { hasText: "Restricted Mode" }).waitFor();
  assert.equal(await page.locator(".codelens-decoration a").count(), 0);
  await shot(page, "untrusted");
});
