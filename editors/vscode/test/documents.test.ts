import assert from "node:assert/strict";
import test from "node:test";
import { editorSelector, selector, wantsServer } from "../src/documents";

const document = (languageId: string, text: string, scheme = "file") => ({ languageId, uri: { scheme }, head: () => text });

test("a Relax file starts the server, a Python file only if it uses TVM", () => {
  assert.ok(wantsServer(document("relax", ""), false));
  assert.ok(wantsServer(document("relax", "", "untitled"), true));
  for (const text of ["# from tvm.script import ir as I\n", "import os\nimport tvm\n", "@R.function\ndef f(): pass", "  @T.prim_func(private=True)"]) {
    assert.ok(wantsServer(document("python", text), true), text);
    assert.ok(!wantsServer(document("python", text), false), text);
  }
  for (const text of ["", "import torch\n", "x = 'import tvm'", "# see tvm"]) {
    assert.ok(!wantsServer(document("python", text), true), text);
  }
});

test("files of other schemes are ignored", () => {
  assert.ok(!wantsServer(document("relax", "", "git"), true));
  assert.deepEqual(selector(false), [{ scheme: "file", language: "relax" }, { scheme: "untitled", language: "relax" }]);
  assert.equal(selector(true).length, 5);
});

test("a Python cell of a notebook starts the server if it uses TVM", () => {
  assert.ok(wantsServer(document("python", "import tvm\n", "vscode-notebook-cell"), true));
  assert.ok(!wantsServer(document("python", "import torch\n", "vscode-notebook-cell"), true));
  assert.ok(!wantsServer(document("python", "import tvm\n", "vscode-notebook-cell"), false));
  assert.deepEqual(selector(true).at(-1), { notebook: "jupyter-notebook", language: "python" });
  assert.deepEqual(editorSelector(true).at(-1), { notebookType: "jupyter-notebook", language: "python" });
});
