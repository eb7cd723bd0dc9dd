// Pictures of the extension in Visual Studio Code, in a light and in a dark theme. Each shows its subject whole. Look at them after a change of
// the appearance. The second test prints how long a large file takes.
//
// RX_EDITORS, RX_PROGRAMS, RX_VSIX: see run.sh, which sets them.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { artefacts } from "./support.mjs";
import { CLIENT, WAIT, command, onto, open, rest, skip, start, until } from "./vscode.mjs";

const WINDOW = { width: 1440, height: 900 };
const COST = /^[\d.]+ [kMGT]? ?operations · [\d.]+ (?:[KMGT]i)?B$/;

// Asserts that all of an element is inside a box: the window, by default.
async function whole(locator, { x, y, width, height } = { x: 0, y: 0, ...WINDOW }) {
  const box = await locator.boundingBox();
  assert.ok(box !== null && box.width > 0 && box.height > 0, `${locator} is not visible`);
  const inside = box.x >= x - 1 && box.y >= y - 1 && box.x + box.width <= x + width + 1 && box.y + box.height <= y + height + 1;
  assert.ok(inside, `${locator} is cut off: ${JSON.stringify(box)}`);
}

// Whether the text of an element is wider than the element.
function cut(locator) {
  return locator.evaluate((element) => element.scrollWidth > element.clientWidth + 1);
}

for (const [look, theme] of [["light", "Default Light Modern"], ["dark", "Default Dark Modern"]]) {
  test(`${CLIENT} in a ${look} theme nothing is cut off`, { skip, timeout: 10 * WAIT }, async (t) => {
    const settings = { "workbench.colorTheme": theme, "workbench.editorAssociations": { "*.ipynb": "jupyter-notebook" } };
    const { page, opened } = await start(t, ["conv_relu.rx", "two_layers.rx", "cells.ipynb"], settings, { viewport: WINDOW });
    const head = '@R.function\ndef main(x: R.Tensor((1, 3, 32, 32), dtype="float32"), w: R.Tensor((8, 3, 3, 3), dtype="float32")):\n    ';
    writeFileSync(path.join(path.dirname(opened[0]), "typed.rx"), head);
    const shot = (name) => page.screenshot({ path: path.join(artefacts, `vscode-look-${name}-${look}.png`) });
    const frame = () => page.frameLocator("iframe.webview").frameLocator("#active-frame");
    await open(page, "conv_relu.rx");

    await t.test("a mistake with its hover", async () => {
      await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
      const hover = page.locator(".monaco-hover:visible", { hasText: "axis 2 is 112, not 224" }).first();
      const opens = () => hover.waitFor({ timeout: 3000 }).then(() => true, () => false);
      // Lenses may move the line meanwhile.
      await until(page, async () => {
        const marked = await page.locator(".squiggly-error").first().boundingBox();
        if (marked === null) {
          return false;
        }
        await page.mouse.move(5, 5);
        await page.mouse.move(marked.x + marked.width / 2, marked.y + marked.height / 2, { steps: 3 });
        return opens();
      });
      await hover.filter({ hasText: "Quick Fix" }).waitFor();
      await whole(hover);
      await shot("mistake");
      await page.keyboard.press("Escape");
      await rest(page);
    });

    await t.test("the code lenses: run and cost", async () => {
      const lenses = page.locator(".codelens-decoration").first();
      await lenses.locator("a", { hasText: "Run `main`" }).waitFor();
      await until(page, async () => (await lenses.locator("> *").allTextContents()).some((text) => COST.test(text)));
      await whole(lenses);
    });

    await t.test("the list of problems", async () => {
      await page.keyboard.press("Control+Shift+M");
      const row = page.locator(".markers-panel .monaco-list-row", { hasText: "RX0301" }).first();
      await row.waitFor();
      await whole(row);
      await shot("problems");
      await page.keyboard.press("Control+J");
    });

    await t.test("completion with its page, and signature help", async () => {
      await open(page, "typed.rx");
      await page.locator(".editor-instance .view-lines").first().click();
      await page.keyboard.press("Control+End");
      await page.keyboard.type("y = R.nn.conv", { delay: 30 });
      await page.locator(".suggest-widget.visible .monaco-list-row", { hasText: "conv2d" }).first().waitFor();
      await page.keyboard.press("Control+Space");
      const details = page.locator(".suggest-details", { hasText: "R.nn.conv2d(data, weight" });
      await details.waitFor();
      await whole(page.locator(".suggest-widget.visible"));
      await whole(details);
      await shot("completion");
      await page.keyboard.press("Tab");
      const help = page.locator(".parameter-hints-widget.visible");
      await help.locator(".parameter.active", { hasText: "data" }).first().waitFor();
      await whole(help);
      await shot("signature");
      await page.keyboard.press("Escape");
      await page.keyboard.press("Escape");
      await page.locator(".tab", { hasText: "conv_relu.rx" }).click();
    });

    await t.test("the graph", async () => {
      await page.keyboard.press("Control+B");
      await onto(page, "conv");
      await command(page, "Relax: Show Graph");
      await frame().locator(".node.selected", { hasText: "conv2d" }).waitFor();
      await rest(page);
      const pane = await page.locator("iframe.webview").boundingBox();
      for (const label of ["conv2d", "relu", "return"]) {
        await whole(frame().locator(".node", { hasText: label }).first(), pane);
      }
      await shot("graph");
      await command(page, "View: Close All Editors");
    });

    await t.test("values, and the report with its table of kernels", async () => {
      await page.keyboard.press("Control+B");
      await open(page, "two_layers.rx");
      await page.keyboard.press("Control+B");
      await page.locator(".codelens-decoration a", { hasText: "Run `main`" }).click();
      const kernels = frame().locator("table", { hasText: "Kernel" });
      await kernels.locator("tbody tr", { hasText: "matmul" }).first().waitFor();
      await rest(page);
      await shot("values");
      const width = await frame().locator("body").evaluate((body) => body.ownerDocument.documentElement.clientWidth);
      const right = await kernels.locator("th, td").evaluateAll((cells) => Math.max(...cells.map((cell) => cell.getBoundingClientRect().right)));
      assert.ok(right <= width, `the table of kernels ends at ${right} of ${width} pixels`);
      await kernels.scrollIntoViewIfNeeded();
      await shot("kernels");
    });

    await t.test("the changes of a pass have 12 lines on each side", async () => {
      await command(page, "Relax: Clear Values");
      await onto(page, "gv");
      await command(page, "Relax: Show Changes by Pass");
      const passes = page.locator(".quick-input-list .monaco-list-row", { hasText: "LegalizeOps" });
      await passes.first().waitFor();
      await whole(passes.first());
      await shot("passes");
      await passes.first().click();
      await page.locator(".editor.modified .view-line", { hasText: /R\.function|T\.prim_func/ }).first().waitFor();
      await rest(page);
      await shot("diff");
      for (const side of [".editor.original", ".editor.modified"]) {
        const { height } = await page.locator(side).first().boundingBox();
        const { height: line } = await page.locator(`${side} .view-line`).first().boundingBox();
        assert.ok(height / line >= 12, `${side} shows ${height / line} lines`);
      }
      await command(page, "View: Close All Editors");
    });

    await t.test("the generated code beside the program", async () => {
      await page.keyboard.press("Control+B");
      await open(page, "two_layers.rx");
      await page.keyboard.press("Control+B");
      await onto(page, "lv");
      for (const [title, tab, name] of [["Relax: Show Loop-Level IR", "loop-level IR", "loops"], ["Relax: Show CUDA C", "CUDA C", "cuda"]]) {
        await command(page, title);
        await page.locator(".tab", { hasText: tab }).waitFor();
        await page.locator(".view-line", { hasText: /matmul/ }).nth(1).waitFor();
        await until(page, async () => (await page.locator('.cdr[class*="TextEditorDecorationType"]').count()) > 0);
        await rest(page);
        await whole(page.locator(".tab", { hasText: tab }));
        await shot(name);
      }
      await command(page, "View: Close All Editors");
    });

    await t.test("a notebook", async () => {
      await page.keyboard.press("Control+B");
      await open(page, "cells.ipynb");
      const cell = page.locator(".cell-list-container .monaco-list-row", { hasText: "matmul" }).first();
      await cell.locator(".squiggly-error").first().waitFor({ state: "attached" });
      await cell.locator(".codelens-decoration a", { hasText: "Run `main`" }).waitFor();
      await whole(cell);
      assert.equal(await cut(cell.locator(".codelens-decoration").first()), false);
      await rest(page);
      await shot("notebook");
    });
  });
}

// The graph of the short function shows how long VS Code takes to load a page.
for (const count of [30, 3000]) {
  test(`${CLIENT} a function of ${count} bindings opens, and its graph is drawn`, { skip, timeout: 10 * WAIT }, async (t) => {
    const { page, opened } = await start(t, ["classifier.rx"]);
    const body = Array.from({ length: count }, (_, at) => `    v${at + 1} = ${at % 2 === 0 ? `R.nn.relu(v${at})` : `R.add(v${at}, v0)`}\n`);
    const type = 'R.Tensor((64, 64), dtype="float32")';
    writeFileSync(path.join(path.dirname(opened[0]), "chain.rx"), `@R.function\ndef main(v0: ${type}) -> ${type}:\n${body.join("")}    return v${count}\n`);
    // The server is running before the large file is opened.
    await open(page, "classifier.rx");
    await page.locator(".codelens-decoration a", { hasText: "Run" }).first().waitFor();

    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "chain.rx" }).dblclick();
    await page.locator(".view-line", { hasText: "v2" }).first().waitFor();
    const shown = performance.now();
    await page.locator(".codelens-decoration a", { hasText: "Run `main`" }).filter({ visible: true }).first().waitFor();
    const lens = performance.now() - shown;

    await onto(page, "v5");
    await page.keyboard.press("F1");
    await page.locator(".quick-input-widget input[type=text]").fill(">Relax: Show Graph");
    const row = page.locator(".quick-input-list .monaco-list-row", { hasText: "Relax: Show Graph" }).first();
    await row.waitFor();
    const asked = performance.now();
    await row.click();
    const graph = page.frameLocator("iframe.webview").frameLocator("#active-frame");
    await graph.locator("#fit").waitFor();
    const loaded = performance.now() - asked;
    const node = graph.locator(".node");
    await node.filter({ hasText: "add" }).first().waitFor();
    const drawn = performance.now() - asked;
    const [lensMs, loadedMs, drawnMs] = [lens, loaded, drawn].map(Math.round);
    t.diagnostic(`${count} bindings: first code lens ${lensMs} ms after the text; graph ${drawnMs} ms after its command, of which its page takes ${loadedMs} ms`);
    assert.ok((await node.count()) >= Math.min(count, 100), "the graph has the nodes near the cursor");
  });
}
