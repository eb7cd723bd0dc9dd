// Programs typed key by key in Visual Studio Code, in Relax and in Python files: completions, signature help, formatting, code actions.
//
// RX_EDITORS, RX_PROGRAMS, RX_VSIX: see run.sh, which sets them.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { CLIENT, WAIT, actions, command, onto, open, skip, start, until } from "./vscode.mjs";

const IMPORTS = "from tvm.script import ir as I\nfrom tvm.script import relax as R\nfrom tvm.script import tir as T\n\n\n";
const HEAD = '@R.function\ndef main(x: R.Tensor((1, 3, 32, 32), dtype="float32"), w: R.Tensor((8, 3, 3, 3), dtype="float32")):\n    ';
const MODULE = `@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), dtype="float32"), w: R.Tensor((8, 4), dtype="float32")):
        cls = Module
        a = R.exp(x)
        b = R.matmul(a, w)
        c = R.add(R.abs(b), b)
        return c
`;
// Two mistakes that have a safe fix each: a tuple without its comma, and a comment that ignores nothing.
const MISTAKES = `@R.function
def main(x: R.Tensor((4), dtype="float32")):
    y = R.nn.relu(x)  # rx: ignore
    return y
`;

// Creates a file, opens it and puts the cursor at its end.
async function create(page, file, text) {
  writeFileSync(file, path.extname(file) === ".py" ? IMPORTS + text : text);
  await open(page, path.basename(file));
  await page.locator(".statusbar-item", { hasText: /^\s*rx \d+\.\d+/ }).waitFor();
  await page.locator(".editor-instance .view-lines").first().click();
  await page.keyboard.press("Control+End");
}

// Types a new body after `HEAD`, key by key.
async function body(page, text) {
  const lines = (await page.locator(".tab.active", { hasText: ".py" }).count()) > 0 ? 6 : 1;
  for (const key of ["Escape", "Escape", "Control+Home", ...Array(lines).fill("ArrowDown"), "End", "Control+Shift+End", "Enter"]) {
    await page.keyboard.press(key);
  }
  await type(page, text);
}

function type(page, text) {
  return page.keyboard.type(text, { delay: 30 });
}

async function saved(page, file) {
  await page.keyboard.press("Control+S");
  return readFileSync(file, "utf8");
}

// Returns the labels of the completions that are shown, from the top. Asks for them if typing has not, or if another answer closed them.
async function offered(page) {
  const row = page.locator(".suggest-widget.visible .monaco-list-row").first();
  if (!(await row.waitFor({ timeout: 3000 }).then(() => true, () => false))) {
    await page.keyboard.press("Control+Space");
  }
  return page.evaluate(() => {
    const rows = [...document.querySelectorAll(".suggest-widget.visible .monaco-list-row")];
    return rows.toSorted((one, other) => one.dataset.index - other.dataset.index).map((row) => row.querySelector(".label-name").textContent);
  });
}

// Waits until the first completions are these.
function first(page, ...labels) {
  return until(page, async () => JSON.stringify((await offered(page)).slice(0, labels.length)) === JSON.stringify(labels));
}

// Waits until one completion comes before another.
function before(page, one, other) {
  return until(page, async () => {
    const labels = await offered(page);
    return labels.includes(one) && labels.includes(other) && labels.indexOf(one) < labels.indexOf(other);
  });
}

function signature(page, text, active) {
  const help = page.locator(".parameter-hints-widget.visible .signature", { hasText: text });
  return help.locator(".parameter.active", { hasText: active }).first().waitFor();
}

async function titles(page) {
  return (await (await actions(page)).allTextContents()).map((title) => title.trim());
}

async function act(page, title) {
  // The first menu may be that of the cursor's last position.
  await until(page, async () => (await titles(page)).includes(title) || page.keyboard.press("Escape").then(() => false));
  await page.locator(".action-widget .monaco-list-row.action", { hasText: title }).first().click();
}

// Puts the cursor before the first character of a line's text.
async function lineOf(page, text) {
  await page.locator(".view-line", { hasText: text }).first().click();
  await page.keyboard.press("Home");
}

for (const extension of ["rx", "py"]) {
  test(`${CLIENT} a .${extension} file is typed`, { skip, timeout: 10 * WAIT }, async (t) => {
    const { page, opened } = await start(t, ["conv_relu.rx"]);
    const file = (name) => path.join(path.dirname(opened[0]), `${name}.${extension}`);
    await page.setViewportSize({ width: 1600, height: 900 });

    await t.test("`@` offers the decorators, and accepting one writes a definition", async () => {
      await create(page, file("decorator"), "");
      await type(page, "@");
      await first(page, "@R.function", "@I.ir_module", "@T.prim_func");
      await type(page, "R.fu");
      await first(page, "function");
      await page.keyboard.press("Tab");
      await until(page, async () => /@R\.function\ndef main\(x: R\.Tensor\(\("n",\), dtype="float32"\)\):\n {4}\n {4}return x/.test(await saved(page, file("decorator"))));
      // The name of the function is selected; then its parameter.
      await type(page, "first");
      await page.keyboard.press("Tab");
      await type(page, "data");
      await until(page, async () => /def first\(data: [^]*return data/.test(await saved(page, file("decorator"))));
    });

    await t.test("operators in the order of their use, and signature help after one is accepted", async () => {
      await create(page, file("operator"), HEAD);
      await type(page, "y = R.so");
      await before(page, "nn.softmax", "nn.softplus");
      await body(page, "y = R.nn.conv2");
      await first(page, "conv2d", "conv2d_transpose");
      await page.keyboard.press("Tab");
      await signature(page, "R.nn.conv2d(data, weight, strides=[1, 1]", "data");
      await until(page, async () => (await saved(page, file("operator"))).endsWith("y = R.nn.conv2d(data, weight)"));
      await page.keyboard.press("Tab");
      await signature(page, "R.nn.conv2d(", "weight");
    });

    await t.test("arguments that fit come first", async () => {
      await body(page, "y = R.nn.conv2d(x, ");
      await first(page, "w", "x");
      await body(page, "y = R.nn.conv2d(x, w, data_l");
      await first(page, "data_layout=");
    });

    await t.test("types and forms have signature help", async () => {
      await body(page, "y: R.Tensor(");
      await signature(page, "R.Tensor(shape=None, dtype=None", "shape");
      await body(page, "y = R.match_cast(");
      await signature(page, "R.match_cast(value, ty)", "value");
      await type(page, "x, ");
      await signature(page, "R.match_cast(value, ty)", "ty");
    });

    await t.test("quotes offer the values of dtypes, layouts and other attributes", async () => {
      for (const [text, ...values] of [
        ['y: R.Tensor((4,), dtype="', "float32", "int32"],
        ['y = R.astype(x, "', "float32", "int32"],
        ['y = R.nn.conv2d(x, w, data_layout="', "NCHW", "NHWC"],
        ['y = R.image.resize2d(x, (2, 2), method="', "linear", "nearest_neighbor", "cubic"],
      ]) {
        await body(page, text);
        await first(page, ...values);
      }
      await type(page, "cub");
      await first(page, "cubic");
      await page.keyboard.press("Tab");
      await until(page, async () => (await saved(page, file("operator"))).includes('method="cubic"'));
    });

    await t.test("statements have one snippet each", async () => {
      await body(page, "call_t");
      await first(page, "call_tir");
      assert.deepEqual(await offered(page), ["call_tir"]);
      await page.keyboard.press("Tab");
      await until(page, async () => (await saved(page, file("operator"))).includes("y = R.call_tir(cls.f, (x,), out_ty=R.Tensor((n,), dtype="));
      await body(page, "if");
      await first(page, "if");
      assert.equal((await offered(page)).filter((label) => label === "if").length, 1);
      await page.keyboard.press("Tab");
      await until(page, async () => / {4}if condition:\n {8}y = x\n {4}else:\n {8}y = /.test(await saved(page, file("operator"))));
    });

    await t.test("a buffer of a prim_func has signature help", async () => {
      await create(page, file("kernel"), "@T.prim_func\ndef f(A: T.Buffer");
      await type(page, "(");
      await signature(page, "T.Buffer(shape, dtype=", "shape");
    });

    await t.test("statements are formatted after a closing bracket and after Enter, if the setting is on", async () => {
      await create(page, file("format"), HEAD);
      await type(page, "y=R.add( x,x");
      await page.keyboard.press("Escape");
      await type(page, ")");
      const formatted = extension === "rx";
      await until(page, async () => (await saved(page, file("format"))).endsWith(formatted ? "    y = R.add(x, x)" : "    y=R.add( x,x)"));
      await body(page, "z=x");
      await first(page, "x");
      await page.keyboard.press("Escape");
      await page.locator(".suggest-widget.visible").waitFor({ state: "hidden" });
      await page.keyboard.press("Enter");
      await until(page, async () => (await saved(page, file("format"))).trimEnd().endsWith(formatted ? "    z = x" : "    z=x"));
    });

    await t.test("an intermediate value is named, and a variable is inlined", async () => {
      await create(page, file("refactor"), MODULE);
      await onto(page, "abs");
      await act(page, "Extract `abs` into a variable");
      await until(page, async () => (await saved(page, file("refactor"))).includes("abs = R.abs(b)\n        c = R.add(abs, b)"));
      await lineOf(page, /R\.exp/);
      await act(page, "Inline `a`");
      await until(page, async () => (await saved(page, file("refactor"))).includes("cls = Module\n        b = R.matmul(R.exp(x), w)"));
    });

    await t.test("bindings are extracted into a function, and its types are written", async () => {
      await create(page, file("extract"), MODULE);
      await lineOf(page, /R\.exp/);
      await page.keyboard.press("Shift+ArrowDown");
      await page.keyboard.press("Shift+End");
      await act(page, "Extract 2 statements into a function");
      await until(page, async () => /b = cls\.main_part\(x, w\)[^]*@R\.function\(private=True\)\n {4}def main_part\(x: /.test(await saved(page, file("extract"))));
      await lineOf(page, /R\.abs/);
      await act(page, "Write the inferred types of `main`");
      await until(page, async () => (await saved(page, file("extract"))).includes('c: R.Tensor((4, 4), dtype="float32") = R.add(R.abs(b), b)'));
    });

    await t.test("all fixes of a file are applied at once", async () => {
      await create(page, file("mistakes"), MISTAKES);
      await page.locator(".squiggly-error, .squiggly-warning").nth(1).waitFor({ state: "attached" });
      await command(page, "Fix All");
      await until(page, async () => /R\.Tensor\(\(4,\), [^]*R\.nn\.relu\(x\)\n/.test(await saved(page, file("mistakes"))));
      await page.locator(".squiggly-error, .squiggly-warning").first().waitFor({ state: "detached" });
    });

    await t.test("a wrong annotation has several fixes, the most plausible first", async () => {
      await create(page, file("conv"), readFileSync(opened[0], "utf8"));
      await page.locator(".squiggly-error").first().waitFor({ state: "attached" });
      await page.keyboard.press("Control+Home");
      await page.keyboard.press("F8");
      await page.locator(".marker-widget").waitFor();
      await page.keyboard.press("Escape");
      await page.locator(".marker-widget").waitFor({ state: "hidden" });
      assert.deepEqual((await titles(page)).slice(0, 3), ["Write the inferred type", "Use strides=[1, 1] in `conv`", "Ignore RX0301 here"]);
      await page.locator(".action-widget .monaco-list-row.action", { hasText: "strides" }).click();
      await until(page, async () => (await saved(page, file("conv"))).includes("strides=[1, 1], padding=[3, 3, 3, 3]"));
      await page.locator(".squiggly-error").first().waitFor({ state: "detached" });
    });
  });
}
