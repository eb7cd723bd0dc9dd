// Runs in Visual Studio Code that need values, and runs that are stopped, in Relax and in Python files.
//
// RX_EDITORS, RX_PROGRAMS, RX_VSIX: see run.sh, which sets them.

import assert from "node:assert/strict";
import path from "node:path";
import test from "node:test";
import { artefacts } from "./support.mjs";
import { CLIENT, WAIT, command, open, skip as absent, start } from "./vscode.mjs";

// The stand-in of rxrun lacks no values.
const skip = absent || (process.env.RX_RUN_ARGUMENTS !== undefined && "no rxrun");

const LONG = { "rx.run.arguments": ["--device", "interp", "--repeat", "1000000"] };

const lens = (page, text) => page.locator(".codelens-decoration a", { hasText: text }).first();
const button = (page, title) => page.locator(`.editor-actions [aria-label^="${title}"]`).first();
const input = (page) => page.locator(".quick-input-widget input[type=text]");

for (const file of ["symbolic.rx", "symbolic.py"]) {
  test(`${CLIENT} ${file}: missing dims are asked for in one line before a report`, { skip, timeout: 4 * WAIT }, async (t) => {
    const { page } = await start(t, [file], { "rx.run.arguments": ["--device", "interp"] });
    await open(page, file);
    await lens(page, "Run `main`").click();
    await page.locator(".quick-input-widget", { hasText: "the dims n, m" }).waitFor();
    assert.equal(await page.locator("iframe.webview").count(), 0, "there is a report before the question");
    await page.screenshot({ path: path.join(artefacts, `vscode-ask-${path.extname(file).slice(1)}.png`) });

    await input(page).fill("4");
    await page.keyboard.press("Enter");
    await page.locator(".quick-input-widget", { hasText: "m requires a whole number" }).waitFor();
    await input(page).fill("4 10");
    await page.keyboard.press("Enter");
    const report = page.frameLocator("iframe.webview").frameLocator("#active-frame");
    await report.locator("table tbody tr", { hasText: "(4, 10)" }).first().waitFor();
    await report.locator(".state.ok").waitFor();

    // The answers are remembered, also by the button in the title.
    await page.locator(".tab", { hasText: file }).first().click();
    await button(page, "Run main").click();
    await report.locator("dd", { hasText: "--dim n=4 --dim m=10" }).waitFor();
    assert.equal(await input(page).isVisible(), false, "the values are asked for again");
  });

  test(`${CLIENT} ${file}: a run is stopped by its lens, its button, a command and the end of its file`, { skip, timeout: 6 * WAIT }, async (t) => {
    const { page } = await start(t, [file], LONG);
    await open(page, file);
    await lens(page, "Run `main`").click();
    await input(page).waitFor();
    await input(page).fill("4 10");
    await page.keyboard.press("Enter");

    await lens(page, "Stop `main`").waitFor();
    await page.screenshot({ path: path.join(artefacts, `vscode-stop-${path.extname(file).slice(1)}.png`) });
    await lens(page, "Stop `main`").click();
    await lens(page, "Run `main`").click();
    await lens(page, "Stop `main`").waitFor();
    await button(page, "Stop the Run").click();
    await lens(page, "Run `main`").click();
    await lens(page, "Stop `main`").waitFor();
    await command(page, "Relax: Stop the Run");
    await lens(page, "Run `main`").click();
    await lens(page, "Stop `main`").waitFor();
    await command(page, "View: Close Editor");
    await page.locator(".tab", { hasText: file }).waitFor({ state: "detached" });
    await open(page, file);
    await lens(page, "Run `main`").waitFor();
    assert.equal(await page.locator("iframe.webview").count(), 0, "a stopped run has a report");
  });
}
