import assert from "node:assert/strict";
import test from "node:test";
import { columnWith, PASS, REPORT } from "../src/groups";
import { choices, linesOf, neighbour, placesOf, readPasses, summary, tab, title, unchanged } from "../src/passes/passes";

const range = (line: number) => ({ start: { line, character: 8 }, end: { line, character: 40 } });

// A module of two bindings, and three passes: one without changes, one that removes a binding, one that cannot be applied.
const ANSWER = {
  function: "main",
  stage: "passes",
  text: "# ----- the module -----\n\na = R.exp(x)\nb = R.exp(x)\n\n# ----- A: no change -----\n\n# ----- B -----\n\nb = R.exp(x)\n\n# ----- no -----\n",
  message: null,
  parts: [
    { name: "a", lines: [2, 3], ranges: [range(5)] },
    { name: "b", lines: [3, 4], ranges: [range(6)] },
    { name: "b", lines: [9, 10], ranges: [range(6), range(5)] },
    { name: "odd", lines: ["a"], ranges: [] },
  ],
  passes: [
    { pass: null, changed: true, problem: null, lines: [2, 4] },
    { pass: "A", changed: false, problem: null, lines: [2, 4] },
    { pass: "B", changed: true, problem: null, lines: [9, 10] },
    { pass: "C", changed: false, problem: "C takes a name", lines: [9, 10] },
    { pass: "D", lines: [] },
  ],
};

const passes = readPasses(ANSWER) ?? assert.fail();
const step = (index: number) => passes.steps[index] ?? assert.fail();

test("each step has its own text, with lines counted from its start", () => {
  assert.deepEqual(
    passes.steps.map(({ pass, text }) => [pass, text]),
    [
      [null, "a = R.exp(x)\nb = R.exp(x)\n"],
      ["A", "a = R.exp(x)\nb = R.exp(x)\n"],
      ["B", "b = R.exp(x)\n"],
      ["C", "b = R.exp(x)\n"],
    ],
  );
  assert.deepEqual(linesOf(step(0), { line: 6, column: 10 }), [[1, 1]]);
  assert.deepEqual(linesOf(step(2), { line: 6, column: 10 }), [[0, 0]]);
});

test("a binding is followed through passes in both directions", () => {
  assert.deepEqual(linesOf(step(2), { line: 5, column: 0 }), [[0, 0]], "the whole line of a statement counts");
  assert.deepEqual(linesOf(step(2), { line: 9, column: 0 }), []);
  assert.deepEqual(placesOf(step(2), 0).map(({ line }) => line), [5, 6]);
  assert.deepEqual(placesOf(step(2), 1), []);
});

test("the next pass is one with changes", () => {
  assert.equal(neighbour(passes.steps, 0, 1), 2);
  assert.equal(neighbour(passes.steps, 2, 1), undefined);
  assert.equal(neighbour(passes.steps, 2, -1), undefined, "the module itself is no pass");
});

test("a pass without a visible change has no diff, and says why", () => {
  assert.deepEqual(passes.steps.map(unchanged), [undefined, "A does not change the module", undefined, "C cannot be applied: C takes a name"]);
  // The server compares modules; what the text does not show is no change here.
  const [first, , second] = ANSWER.passes;
  const hidden = readPasses({ ...ANSWER, passes: [first, { ...first, pass: "attributes" }, second] }) ?? assert.fail();
  assert.deepEqual(hidden.steps.map(({ changed }) => changed), [true, false, true]);
  assert.equal(neighbour(hidden.steps, 0, 1), 2);
});

test("passes with changes are offered first", () => {
  assert.deepEqual(choices(passes.steps), [
    { label: "with changes" },
    { label: "B", index: 2 },
    { label: "C", index: 3 },
    { label: "without changes" },
    { label: "A", index: 1 },
  ]);
  assert.deepEqual(choices(passes.steps.slice(0, 1)), []);
});

test("a step is summarized in a few words", () => {
  const said = passes.steps.map((_, index) => summary(passes.steps, index));
  assert.deepEqual(said, ["the original module", "no change", "1 line fewer", "C takes a name"]);
  assert.equal(title(step(0)), "the module");
});

test("a tab names the program and the pass", () => {
  assert.equal(tab("net.rx", 2, step(2)), "net.rx 02 B.rx");
});

test("a missing function and invalid answers are handled", () => {
  assert.equal(readPasses(null), undefined);
  assert.deepEqual(readPasses({ text: 7, passes: "none", message: "why" }), { steps: [], message: "why" });
});

test("the group of a diff of passes or of the report is found again", () => {
  const tab = (input: unknown) => ({ input });
  const uri = (scheme: string) => ({ scheme });
  const program = { viewColumn: 1, tabs: [tab({ uri: uri("file") }), tab(undefined), tab({ original: uri("git"), modified: uri("file") })] };
  const report = { viewColumn: 2, tabs: [tab({ uri: uri("file") }), tab({ viewType: "mainThreadWebview-rx.report" })] };
  const diff = { viewColumn: 3, tabs: [tab({ original: uri("rx-pass"), modified: uri("rx-pass") })] };
  const unchanged = { viewColumn: 3, tabs: [tab({ uri: uri("rx-pass") })] };
  assert.equal(columnWith([PASS], [program, report, diff]), 3);
  assert.equal(columnWith([PASS], [program, report, unchanged]), 3);
  assert.equal(columnWith([REPORT, PASS], [program, report, diff]), 2);
  assert.equal(columnWith([REPORT, PASS], [program, { viewColumn: 2, tabs: [tab({ viewType: "mainThreadWebview-rx.graph" })] }]), undefined);
  assert.equal(columnWith([PASS], [program, report]), undefined);
});
