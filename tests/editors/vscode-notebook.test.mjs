// A Jupyter notebook in Visual Studio Code, whose cells have Relax in Python. No kernel is needed.
//
// RX_EDITORS, RX_PROGRAMS, RX_VSIX: see run.sh, which sets them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { artefacts } from "./support.mjs";
import { CLIENT, WAIT, actions, open, rest, skip, start, until, word } from "./vscode.mjs";

test(`${CLIENT} the cells of a notebook are checked, completed, fixed and run`, { skip, timeout: 6 * WAIT }, async (t) => {
  // Without the association, a notebook that is opened before VS Code's extension for notebooks has started is shown as JSON.
  const settings = { "workbench.editorAssociations": { "*.ipynb": "jupyter-notebook" } };
  const { page, opened } = await start(t, ["cells.ipynb"], settings, { viewport: { width: 1280, height: 1000 } });
  await open(page, "cells.ipynb");
  const cell = (text) => page.locator(".cell-list-container .monaco-list-row", { hasText: text }).first();
  const [layer, twice] = [cell("matmul"), cell("doubled")];
  const source = (index) => JSON.parse(readFileSync(opened[0], "utf8")).cells[index].source;
  const saved = async (index) => {
    await page.keyboard.press("Control+S");
    return [source(index)].flat().join("");
  };

  await t.test("a mistake is underlined in its cell, and listed with the cell", async () => {
    await layer.locator(".squiggly-error").first().waitFor({ state: "attached" });
    assert.equal(await twice.locator(".squiggly-error").count(), 0);
    await layer.locator(".codelens-decoration a", { hasText: "Run `main`" }).waitFor();
    await twice.locator(".codelens-decoration a", { hasText: "Run `twice`" }).waitFor();
    await page.screenshot({ path: path.join(artefacts, "vscode-notebook.png") });
    await page.keyboard.press("Control+Shift+M");
    const rows = page.locator(".markers-panel .monaco-list-row");
    await rows.filter({ hasText: "RX0301" }).first().waitFor();
    assert.match(await rows.first().innerText(), /cells\.ipynb/);
    await page.keyboard.press("Control+J");
  });

  await t.test("a hover shows the type of a value", async () => {
    const { x, y } = await word(page, "matmul");
    await page.mouse.move(x, y);
    await page.locator(".monaco-hover:visible", { hasText: "R.matmul(" }).first().waitFor();
    await page.screenshot({ path: path.join(artefacts, "vscode-notebook-hover.png") });
    await rest(page);
  });

  await t.test("names that another cell imports are completed", async () => {
    await twice.locator(".view-line", { hasText: "doubled" }).first().click();
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.keyboard.type("y = R.nn.sof", { delay: 30 });
    await page.locator(".suggest-widget.visible .monaco-list-row", { hasText: "softmax" }).first().waitFor();
    await page.keyboard.press("Tab");
    await page.locator(".parameter-hints-widget.visible .signature", { hasText: "R.nn.softmax(data" }).waitFor();
    await page.keyboard.type("x");
    await page.keyboard.press("Escape");
    await until(page, async () => /R\.add\(x, x\)\n {4}y = R\.nn\.softmax\(x\)\n/.test(await saved(2)));
  });

  await t.test("a fix changes its cell only", async () => {
    const [first, third] = [source(0), source(2)];
    await layer.locator(".view-line", { hasText: "softmax" }).first().click();
    await page.keyboard.press("Home");
    await page.keyboard.press("F8");
    await page.locator(".marker-widget").waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".marker-widget").waitFor({ state: "hidden" });
    await (await actions(page)).filter({ hasText: "Write the inferred type" }).first().click();
    await until(page, async () => /gv: R\.Tensor\(\(4, 10\), dtype="float32"\) = R\.nn\.softmax/.test(await saved(1)));
    await layer.locator(".squiggly-error").first().waitFor({ state: "detached" });
    assert.deepEqual([source(0), source(2)], [first, third]);
  });

  await t.test("a cell's function is run, and its report is shown", async () => {
    await layer.locator(".codelens-decoration a", { hasText: "Run `main`" }).click();
    // The notebook has a web view, too.
    const report = page.frameLocator("iframe.webview").last().frameLocator("#active-frame");
    await report.locator("table tbody tr", { hasText: "(4, 10)" }).first().waitFor();
    await report.locator(".state.ok", { hasText: /^Ran in / }).waitFor();
    await report.locator("table", { hasText: "Kernel" }).locator("tbody tr", { hasText: "matmul" }).first().waitFor();
    await page.screenshot({ path: path.join(artefacts, "vscode-notebook-run.png") });
  });
});
