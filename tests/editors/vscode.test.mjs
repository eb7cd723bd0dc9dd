// Visual Studio Code, as code-server in headless Chromium, with the packaged extension.
//
// RX_EDITORS, RX_PROGRAMS, RX_VSIX: see run.sh, which sets them.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { artefacts, capabilities } from "./support.mjs";
import { CLIENT, WAIT, actions, command, onto, open, rest, skip, start, theme, until, word } from "./vscode.mjs";

// Returns the process of the server bundled with the extension that this test installed. Linux only.
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

test(`${CLIENT} a mistake is shown, explained and fixed`, { skip, timeout: 6 * WAIT }, async (t) => {
  const can = await capabilities();
  const { page, opened } = await start(t, ["conv_relu.rx"]);
  await open(page, "conv_relu.rx");

  await t.test("the annotation is underlined", async () => {
    await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
    await page.locator(".codelens-decoration a", { hasText: "Run" }).waitFor();
    await shot(page, "check");
  });

  await t.test("the status bar names the bundled server", async () => {
    await page.locator(".statusbar-item", { hasText: /^\s*rx \d+\.\d+/ }).waitFor();
  });

  await t.test("the problem has its related places", async () => {
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

  await t.test("the light bulb fixes it", async () => {
    assert.ok(can.codeActionProvider, "rx-lsp has no codeActionProvider");
    await page.locator(".view-line").first().click();
    const problem = page.locator(".marker-widget");
    await page.keyboard.press("F8");
    await problem.waitFor();
    await page.keyboard.press("Escape");
    await problem.waitFor({ state: "hidden" });
    const fixes = await actions(page);
    await shot(page, "fixes");
    await fixes.first().click();
    await page.locator(".squiggly-error").first().waitFor({ state: "detached" });
    await page.keyboard.press("Control+S");
    await until(page, () => !readFileSync(opened[0], "utf8").includes("(1, 64, 224, 224)"));
    await shot(page, "fixed");
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

// Reloads the window with its open editors.
async function reload(page) {
  const loaded = page.waitForEvent("load");
  await command(page, "Developer: Reload Window");
  await loaded;
}

// A layout with space for two documents side by side.
const NARROW = { "editor.inlayHints.enabled": "offUnlessPressed", "editor.lineNumbersMinChars": 3, "editor.fontSize": 12 };

// Returns the text of the linked lines of an editor. `name` is the name of the editor's document, or a
// selector of the editor's element.
function linked(page, name) {
  return page.evaluate((name) => {
    const editors = [...document.querySelectorAll(".editor-instance")];
    const named = (editor) => editor.getAttribute("aria-label")?.includes(name) || editor.querySelector(`[aria-label*="${name}"]`);
    const editor = name.startsWith(".") ? document.querySelector(name) : editors.find(named);
    const rows = [...(editor?.querySelectorAll(".view-overlays > div") ?? [])].filter((row) => row.querySelector('.cdr[class*="TextEditorDecorationType"]'));
    const tops = new Set(rows.map((row) => row.style.top));
    const lines = [...(editor?.querySelectorAll(".view-line") ?? [])].filter((line) => tops.has(line.style.top));
    return lines.toSorted((one, other) => parseFloat(one.style.top) - parseFloat(other.style.top)).map((line) => line.textContent.replaceAll("\u00a0", " "));
  }, name);
}

test(`${CLIENT} generated code is shown beside the program and follows the cursor`, { skip, timeout: 6 * WAIT }, async (t) => {
  const can = await capabilities();
  assert.ok(can.executeCommandProvider?.commands.includes("rx.stage"), "rx-lsp has no command rx.stage");
  const { page } = await start(t, ["two_layers.rx"], NARROW);
  await open(page, "two_layers.rx");
  await page.keyboard.press("Control+B");
  await page.locator(".codelens-decoration a", { hasText: "Run" }).first().waitFor();
  await onto(page, "lv");
  const [loops, cuda] = ["two_layers.rx (loop-level IR).rx", "two_layers.rx (CUDA C).cu"];

  await t.test("the loop-level IR of the function", async () => {
    await command(page, "Relax: Show Loop-Level IR");
    await page.locator(".tab", { hasText: loops }).waitFor();
    await page.locator(".view-line", { hasText: /main\sin\stwo_layers\.rx:\sloop-level\sIR/ }).waitFor();
    await until(page, async () => (await linked(page, loops)).some((line) => /def \w*matmul/.test(line)));
    await rest(page);
    await shot(page, "loops");
  });

  await t.test("another statement links to other loops", async () => {
    await onto(page, "gv");
    await until(page, async () => {
      const lines = await linked(page, loops);
      return lines.some((line) => /softmax/.test(line)) && !lines.some((line) => /def \w*matmul/.test(line));
    });
  });

  await t.test("a line of the loops links back to its statement", async () => {
    await page.locator(".view-line", { hasText: /def\s\w*softmax/ }).first().click();
    await until(page, async () => (await linked(page, "two_layers.rx,")).some((line) => line.includes("softmax")));
    await shot(page, "loops-back");
  });

  await t.test("another stage opens beside, and both follow to another function", async () => {
    await onto(page, "lv");
    await command(page, "Relax: Show CUDA C");
    await page.locator(".tab", { hasText: cuda }).waitFor();
    await until(page, async () => (await linked(page, cuda)).some((line) => /matmul/.test(line)));
    await theme(page, "Dark Modern");
    await onto(page, "lv");
    await rest(page);
    await shot(page, "cuda-dark");
    await onto(page, "doubled");
    await page.locator(".view-line", { hasText: /twice\sin\stwo_layers\.rx:\sCUDA\sC/ }).waitFor();
    await page.locator(".tab", { hasText: loops }).click();
    await page.locator(".view-line", { hasText: /twice\sin\stwo_layers\.rx:\sloop-level\sIR/ }).waitFor();
  });

  await t.test("an edit regenerates it; a mistake is reported in it", async () => {
    await page.locator(".view-line", { hasText: /doubled\s=/ }).click();
    await page.keyboard.press("End");
    await page.keyboard.type(" + nothing");
    await page.locator(".view-line", { hasText: /^#\s.*nothing/ }).waitFor();
    for (const _ of " + nothing") {
      await page.keyboard.press("Backspace");
    }
    await page.locator(".view-line", { hasText: /def\s\w*(?:add|multiply)/ }).first().waitFor();
  });

  await t.test("both are restored after a reload of the window", async () => {
    await reload(page);
    await page.locator(".tab", { hasText: cuda }).click();
    await page.locator(".view-line", { hasText: /\w+\sin\stwo_layers\.rx:\sCUDA\sC/ }).waitFor();
    await page.locator(".tab", { hasText: loops }).click();
    await page.locator(".view-line", { hasText: /\w+\sin\stwo_layers\.rx:\sloop-level\sIR/ }).waitFor();
  });
});

test(`${CLIENT} a function is run on the GPU`, { skip, timeout: 6 * WAIT }, async (t) => {
  const { page } = await start(t, ["two_layers.rx"], { "rx.run.gpu": true });

  await t.test("it is offered as a code action", async () => {
    await open(page, "two_layers.rx");
    await page.locator(".codelens-decoration a", { hasText: "Run" }).first().waitFor();
    await page.locator('.editor-actions [aria-label^="Run main"]').first().waitFor();
    // In the head of the function.
    await onto(page, "main");
    await (await actions(page)).filter({ hasText: /^Compile and run `\w+` on the GPU/ }).waitFor();
    await shot(page, "gpu-action");
  });

  await t.test("its results are shown, or the reason that it cannot run", async () => {
    await page.locator(".action-widget .monaco-list-row.action", { hasText: "on the GPU" }).click();
    const report = page.frameLocator("iframe.webview").frameLocator("#active-frame");
    await report.getByText(/CUDA|NVRTC|ms/).first().waitFor();
    await rest(page);
    await shot(page, "gpu-run");
  });
});

test(`${CLIENT} the changes of a pass are shown side by side and follow the cursor`, { skip, timeout: 6 * WAIT }, async (t) => {
  const can = await capabilities();
  assert.ok(can.executeCommandProvider?.commands.includes("rx.stage"), "rx-lsp has no command rx.stage");
  const { page, opened } = await start(t, ["two_layers.rx", "conv_relu.rx"], NARROW);
  await page.setViewportSize({ width: 1600, height: 900 });
  writeFileSync(path.join(path.dirname(opened[0]), "empty.rx"), "");
  const show = () => command(page, "Relax: Show Changes by Pass");
  const said = (text) => page.locator(".notification-list-item-message", { hasText: text }).first();
  const [before, after] = [".editor.original", ".editor.modified"];
  const text = '.editor-instance[aria-label*="two_layers.rx"]:not(:has(.monaco-diff-editor))';
  const line = (side, says) => page.locator(`${side} .view-line`, { hasText: says }).first();
  const marks = (side, says) => until(page, async () => (await linked(page, side)).some((line) => says.test(line)));

  await t.test("a file without a function is reported", async () => {
    await open(page, "empty.rx");
    await page.locator(".statusbar-item", { hasText: /^\s*rx \d+\.\d+/ }).waitFor();
    await show();
    await said("empty.rx has no function").waitFor();
    await rest(page);
    await shot(page, "passes-empty");
    await command(page, "Notifications: Clear All Notifications");
  });

  await t.test("the place of a program's mistake is reported", async () => {
    await open(page, "conv_relu.rx");
    await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
    await show();
    await said(/passes cannot be shown: conv_relu\.rx:8: /).waitFor();
    await rest(page);
    await shot(page, "passes-mistake");
    await command(page, "Notifications: Clear All Notifications");
    assert.equal(await page.locator(".monaco-diff-editor").count(), 0);
  });

  await t.test("each pass has a summary", async () => {
    await open(page, "two_layers.rx");
    await page.keyboard.press("Control+B");
    await page.locator(".codelens-decoration a", { hasText: "Run" }).first().waitFor();
    // The steps are those of the function under the cursor.
    await onto(page, "gv");
    await show();
    const passes = page.locator(".quick-input-list .monaco-list-row");
    await passes.filter({ hasText: "DeadCodeElimination" }).filter({ hasText: "no change" }).waitFor();
    // Passes with changes come first.
    assert.match(await passes.first().innerText(), /LegalizeOps[^]*lines/);
    await shot(page, "passes");
    await passes.first().click();
  });

  await t.test("the module before and after it is shown", async () => {
    await page.locator(".tab", { hasText: "LegalizeOps (two_layers.rx)" }).waitFor();
    await line(before, /R\.nn\.softmax/).waitFor();
    await line(after, /cls\.softmax/).waitFor();
    // The program still has the keyboard focus.
    await page.locator(".tab.active", { hasText: /^two_layers\.rx/ }).first().waitFor();
    await rest(page);
    await shot(page, "passes-diff");
  });

  await t.test("the statement under the cursor is marked on both sides", async () => {
    await onto(page, "gv");
    await marks(before, /R\.nn\.softmax/);
    await marks(after, /R\.call_tir\(cls\.softmax/);
    assert.ok(!(await linked(page, before)).some((line) => /matmul/.test(line)));
    await rest(page);
    await shot(page, "passes-linked");
  });

  await t.test("either side links back to its statement", async () => {
    await line(after, /R\.call_tir\(cls\.matmul/).click();
    await marks(text, /lv = R\.matmul/);
    await marks(before, /R\.matmul/);
    await line(before, /R\.nn\.relu/).click();
    await marks(text, /lv1 = R\.nn\.relu/);
    await marks(after, /cls\.relu/);
    await rest(page);
    await shot(page, "passes-back");
  });

  await t.test("the next and previous passes with changes are shown", async () => {
    await page.locator('.editor-actions a[aria-label^="Next Pass"]').click();
    await page.locator(".tab", { hasText: "FuseEpilogues (two_layers.rx)" }).waitFor();
    // The statement that was selected last is followed, and stays marked in the program.
    await marks(text, /lv1 = R\.nn\.relu/);
    await marks(before, /relu/);
    await marks(after, /fused_matmul_relu/);
    await theme(page, "Dark Modern");
    await rest(page);
    await shot(page, "passes-dark");
    await page.locator('.editor-actions a[aria-label^="Previous Pass"]').click();
    await page.locator(".tab", { hasText: "LegalizeOps (two_layers.rx)" }).waitFor();
    assert.equal(await page.locator(".tab", { hasText: "(two_layers.rx)" }).count(), 1, "a pass takes the place of the one before");
  });

  await t.test("an edit regenerates them", async () => {
    await onto(page, "lv1");
    await page.keyboard.press("End");
    await page.keyboard.press("Shift+Home");
    await page.keyboard.type("lv1 = R.nn.gelu(lv)");
    await line(before, /R\.nn\.gelu/).waitFor();
    await line(after, /gelu/).waitFor();
  });
});

test(`${CLIENT} a graph is linked to the text both ways`, { skip, timeout: 6 * WAIT }, async (t) => {
  const can = await capabilities();
  assert.ok(can.executeCommandProvider?.commands.includes("rx.graph"), "rx-lsp has no command rx.graph");
  const { page } = await start(t, ["conv_relu.rx"], NARROW);
  await open(page, "conv_relu.rx");
  await page.keyboard.press("Control+B");
  await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
  await onto(page, "conv");
  await command(page, "Relax: Show Graph");
  const graph = page.frameLocator("iframe.webview").frameLocator("#active-frame");
  const node = (label) => graph.locator(".node", { hasText: label });
  const place = (line) => page.locator(".line-numbers.active-line-number", { hasText: String(line) });

  await t.test("operators are shown, and the mistake at its node", async () => {
    await node("conv2d").waitFor();
    await graph.locator(".node.selected", { hasText: "conv2d" }).waitFor();
    await node("relu").locator(".badge.error").waitFor();
    assert.match((await node("relu").locator("title").first().textContent()) ?? "", /224/);
    assert.ok((await graph.locator(".flow text").allTextContents()).some((text) => text.includes("(1, 3, 224, 224)")));
    await rest(page);
    await shot(page, "graph");
  });

  await t.test("the cursor's node is selected", async () => {
    await onto(page, "relu");
    await graph.locator(".node.selected", { hasText: "relu" }).waitFor();
  });

  await t.test("a node's statement is selected, by pointer and by keys", async () => {
    await node("conv2d").locator(".label").click();
    await place(7).waitFor();
    await page.keyboard.press("ArrowDown");
    await graph.locator(".node.selected", { hasText: "relu" }).waitFor();
    await page.keyboard.press("Enter");
    await place(8).waitFor();
  });

  await t.test("an edit removes the mistake from the graph", async () => {
    await theme(page, "Dark Modern");
    await node("conv2d").waitFor();
    await rest(page);
    await shot(page, "graph-dark");
    await theme(page, "Dark High Contrast");
    await shot(page, "graph-contrast");
    await page.locator(".view-line", { hasText: /relu:/ }).click();
    await page.keyboard.press("Home");
    await page.keyboard.press("Shift+End");
    await page.keyboard.type("relu = R.nn.gelu(conv)");
    await node("gelu").waitFor();
    await graph.locator(".badge").first().waitFor({ state: "detached" });
  });

  await t.test("it is restored after a reload of the window", async () => {
    await page.keyboard.press("Control+S");
    await page.locator(".tab.dirty").first().waitFor({ state: "detached" });
    await reload(page);
    await node("gelu").waitFor();
  });
});

// Returns the lines of the editor from the top, with the decorations after them, which are not text of the page.
function lines(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll(".view-line")].toSorted((one, other) => parseFloat(one.style.top) - parseFloat(other.style.top)).map((line) => {
      const behind = [...line.querySelectorAll("span")].map((part) => getComputedStyle(part, "::after").content);
      return [line.textContent, ...behind.filter((content) => content.startsWith('"'))].join(" ").replaceAll("\u00a0", " ");
    }),
  );
}

test(`${CLIENT} values are shown after their bindings after a run, and the report has the times of kernels`, { skip, timeout: 6 * WAIT }, async (t) => {
  const { page } = await start(t, ["two_layers.rx"], NARROW);
  await open(page, "two_layers.rx");
  await page.setViewportSize({ width: 1600, height: 1100 });
  await page.keyboard.press("Control+B");
  await page.locator(".codelens-decoration a", { hasText: "Run `main`" }).click();
  const report = page.frameLocator("iframe.webview").frameLocator("#active-frame");
  const kernel = (name) => report.locator("table", { hasText: "Kernel" }).locator("tbody tr", { hasText: name }).first();
  const VALUE = /min \S+ {2}mean \S+ {2}max .* · \(4, 10\) float32/;
  // Returns the variables whose lines end with a value.
  const valued = async () => (await lines(page)).filter((line) => VALUE.test(line)).map((line) => /\w+/.exec(line)[0]);
  const show = (...variables) => until(page, async () => JSON.stringify(await valued()) === JSON.stringify(variables));

  await t.test("a line per binding", async () => {
    await show("lv", "lv1", "gv");
    await kernel("matmul").waitFor();
    await rest(page);
    await shot(page, "values");
  });

  await t.test("the hover has all facts", async () => {
    const box = await page.locator(".view-line", { hasText: /lv\s=/ }).locator("> span > span").last().boundingBox();
    await page.mouse.move(box.x + 60, box.y + box.height / 2);
    await page.locator(".monaco-hover:visible", { hasText: "in the last run" }).first().waitFor();
    await shot(page, "values-hover");
    await page.keyboard.press("Escape");
    await rest(page);
  });

  await t.test("kernels link to their statements", async () => {
    await theme(page, "Dark Modern");
    await kernel("softmax").waitFor();
    await rest(page);
    await shot(page, "values-dark");
    await kernel("softmax").locator("td a").last().click();
    await page.locator(".statusbar-item", { hasText: /Ln 1[34],/ }).waitFor();
  });

  await t.test("an edited comment keeps values, edited code removes those after it", async () => {
    await onto(page, "lv1");
    await page.keyboard.press("End");
    await page.keyboard.type("  # at most zero");
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.type("# clipped");
    await page.locator(".view-line", { hasText: "clipped" }).waitFor();
    await show("lv", "lv1", "gv");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Home");
    await page.keyboard.type("x");
    await show("lv");
    await command(page, "Relax: Clear Values");
    await show();
  });
});

test(`${CLIENT} a program is run and its report is shown`, { skip, timeout: 6 * WAIT }, async (t) => {
  const { page, opened } = await start(t, ["classifier.rx", "conv_relu.rx"]);
  await open(page, "classifier.rx");
  await page.locator(".codelens-decoration a", { hasText: "Run" }).click();
  const report = page.frameLocator("iframe.webview").frameLocator("#active-frame");

  await t.test("the values of the output are in the table", async () => {
    await report.locator("table tbody tr", { hasText: "out0" }).waitFor();
    assert.match(await report.locator(".state.ok").innerText(), /^Ran in /);
    // The report shows the result; a message would have been shown before it.
    assert.equal(await page.locator(".notification-list-item-message", { hasText: "ran in" }).count(), 0);
    await shot(page, "run");
  });

  await t.test("the report's link runs it again with arguments", async () => {
    await report.locator("a", { hasText: "Run with arguments" }).click();
    const input = page.locator(".quick-input-widget input[type=text]");
    await input.waitFor();
    await input.fill("--seed '7'");
    await page.keyboard.press("Enter");
    await report.locator("dd", { hasText: "--seed 7" }).waitFor();
  });

  await t.test("inputs are chosen from files in the program's folder, and remembered", async () => {
    const values = Buffer.alloc(4 * 16 * 4);
    const head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 16), }".padEnd(117) + "\n";
    writeFileSync(path.join(path.dirname(opened[0]), "x.npy"), Buffer.concat([Buffer.from("\x93NUMPY\x01\x00\x76\x00", "latin1"), Buffer.from(head), values]));
    await report.locator("a", { hasText: "Choose inputs" }).click();
    const files = page.locator(".quick-input-list .monaco-list-row");
    await files.filter({ hasText: "Seeded" }).waitFor();
    await files.filter({ hasText: "x.npy" }).locator("input[type=checkbox], .monaco-checkbox").first().click();
    await page.locator('.quick-input-list .monaco-list-row[aria-checked="false"]', { hasText: "Seeded" }).waitFor();
    await shot(page, "inputs");
    await page.locator(".quick-input-widget a.monaco-button", { hasText: "OK" }).click();
    await report.locator("dd", { hasText: /^x\.npy$/ }).waitFor();
    await report.locator(".state.ok").waitFor();
    await report.locator("table tbody tr", { hasText: "0.1" }).first().waitFor();
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

  await t.test("commands that manage the server work", async () => {
    await command(page, "Relax: Show the Server's Version");
    await page.locator(".notification-list-item-message", { hasText: "bundled with the extension" }).first().waitFor();
    await command(page, "Relax: Stop the Server");
    await page.locator(".statusbar-item", { hasText: "rx stopped" }).waitFor();
    await command(page, "Relax: Restart the Server");
    await page.locator(".statusbar-item", { hasText: /^\s*rx \d+\.\d+/ }).waitFor();
  });
});

test(`${CLIENT} a server that exits unexpectedly is restarted`, { skip, timeout: 4 * WAIT }, async (t) => {
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

test(`${CLIENT} without a server, the possible actions are offered`, { skip, timeout: 4 * WAIT }, async (t) => {
  const { page } = await start(t, ["conv_relu.rx"], { "rx.server.path": "/nowhere/rx-lsp" });
  await open(page, "conv_relu.rx");
  const message = page.locator(".notification-list-item", { hasText: "rx.server.path names /nowhere/rx-lsp" });
  await message.first().waitFor();
  await page.locator(".statusbar-item", { hasText: "rx not running" }).waitFor();
  await shot(page, "missing");
  await message.locator("a", { hasText: "How to Install" }).first().click();
  await page.locator(".getting-started-step", { hasText: "The server" }).first().waitFor();
  await shot(page, "walkthrough");
});

test(`${CLIENT} a folder that is not trusted is checked, but its programs are not run`, { skip, timeout: 4 * WAIT }, async (t) => {
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
