import assert from "node:assert/strict";
import test from "node:test";
import { document, HEAD, linesOf, path, placesOf, readStage, tab } from "../src/stage/stage";

const range = (line: number, column = 8, endColumn = 40) => ({ start: { line, character: column }, end: { line, character: endColumn } });

// A convolution fused with its relu, then a kernel of one statement that is also part of the first.
const ANSWER = {
  function: "main",
  stage: "cuda",
  language: "cuda-cpp",
  text: "void fused_conv2d_relu() {\n}\n\nvoid add() {\n}\n",
  message: null,
  parts: [
    { name: "fused_conv2d_relu", lines: [0, 2], ranges: [range(5), range(6)] },
    { name: "add", lines: [3, 5], ranges: [range(8)] },
    { name: "odd", lines: ["a"], ranges: [] },
    { name: "empty", lines: [4, 4], ranges: [] },
  ],
};

const made = readStage(ANSWER) ?? assert.fail();

test("the document begins with the function and stage, then has the unchanged text", () => {
  const lines = document("cuda", made, "net.rx").split("\n");
  assert.deepEqual(lines.slice(0, HEAD + 1), ["// main in net.rx: CUDA C", "", "void fused_conv2d_relu() {"]);
});

test("without text, the document is the message, as comments", () => {
  const none = readStage({ ...ANSWER, text: null, message: "RX0301: the annotation is wrong\nsee line 7", parts: [] }) ?? assert.fail();
  assert.equal(document("tir", none, "net.rx"), "# main in net.rx: loop-level IR\n\n# RX0301: the annotation is wrong\n# see line 7\n");
});

test("a statement leads to the lines that come from it", () => {
  assert.deepEqual(linesOf(made, { line: 6, column: 20 }), [[HEAD, HEAD + 1]]);
  assert.deepEqual(linesOf(made, { line: 8, column: 0 }), [[HEAD + 3, HEAD + 4]], "the whole line of a statement counts");
  assert.deepEqual(linesOf(made, { line: 7, column: 0 }), []);
});

test("a line leads to its statements", () => {
  assert.deepEqual(placesOf(made, HEAD + 1).map((place) => place.line), [5, 6]);
  assert.deepEqual(placesOf(made, HEAD + 2), []);
  assert.deepEqual(placesOf(made, 0), []);
});

test("a missing function and invalid answers are handled", () => {
  assert.equal(readStage(null), undefined);
  assert.deepEqual(readStage({ text: 7, parts: "none" }), { function: "", module: "", text: null, message: "", parts: [] });
});

test("functions of equal name are distinguished by their modules", () => {
  assert.equal(path(made), "main");
  assert.equal(path({ ...made, module: "Net" }), "Net.main");
  assert.equal(path({ ...made, module: "-" }), "main");
});

test("a tab names the program and the stage", () => {
  assert.equal(tab("cuda", "net.rx"), "net.rx (CUDA C).cu");
});
