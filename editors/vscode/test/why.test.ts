import assert from "node:assert/strict";
import test from "node:test";
import { readWhy, rows } from "../src/why/chain";

const range = (line: number) => ({ start: { line, character: 4 }, end: { line, character: 9 } });

const ANSWER = {
  subject: "`relu`",
  structInfo: 'R.Tensor((1, 64, 112, 112), dtype="float32")',
  range: range(7),
  traces: [
    {
      part: "axis 2",
      value: "112",
      steps: [
        { kind: "operator", text: "R.nn.relu keeps axis 2 of `conv`", range: range(7), unchanged: true, details: [] },
        {
          kind: "operator",
          text: "R.nn.conv2d: (224 + 3 + 3 - 1*(7 - 1) - 1) // 2 + 1 = 112",
          range: range(6),
          unchanged: false,
          details: [{ text: "strides=[2, 2]", range: range(6) }, { text: "dilation[0]=1, by default", range: null }],
        },
        { kind: "parameter", text: "parameter `x`", range: range(4), unchanged: false },
      ],
    },
    { part: "the dtype", value: "float32", steps: [{ text: "somewhere", range: null }] },
  ],
};

test("each part is a head and its steps, from the value back", () => {
  const why = readWhy(ANSWER);
  assert.ok(why);
  const shown = rows(why).map((row) => ("head" in row ? row.head : `${row.description}: ${row.label}${row.detail && ` [${row.detail}]`}`));
  assert.deepEqual(shown, [
    "axis 2 is 112",
    "line 8, unchanged: R.nn.relu keeps axis 2 of `conv`",
    "line 7: R.nn.conv2d: (224 + 3 + 3 - 1*(7 - 1) - 1) // 2 + 1 = 112 [strides=[2, 2]; dilation[0]=1, by default]",
    "line 5: parameter `x`",
    "the dtype is float32",
  ]);
});

test("a step has its place", () => {
  const row = rows(readWhy(ANSWER) ?? assert.fail())[3];
  assert.ok(row && "place" in row);
  assert.deepEqual(row.place, { line: 4, column: 4, endLine: 4, endColumn: 9 });
});

test("a missing value and invalid answers are handled", () => {
  assert.equal(readWhy(null), undefined);
  assert.deepEqual(readWhy({ traces: 7 }), { subject: "", structInfo: "", traces: [] });
});
