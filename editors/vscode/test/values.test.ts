import assert from "node:assert/strict";
import test from "node:test";
import type { Value } from "../src/run/outcome";
import { afterEdit, applied, brief, briefly, difference, shown, split, whole, type Shown } from "../src/run/values";

const PROGRAM = `@R.function
def main(x: R.Tensor((4,), "float32")):
    lv = R.exp(x)  # the first
    gv = R.add(
        lv, x)
    return gv
`;

const value = (name: string, line: number, column = 4): Value => ({
  name,
  dtype: "float32",
  shape: [1, 64, 56, 56],
  text: "",
  min: -1.2345,
  mean: 0.03,
  max: 4.1,
  nan: 0,
  place: { line, column, endLine: line, endColumn: column + name.length },
  seconds: 0.0008,
});

const VALUES = shown([value("lv", 2), value("gv", 3)]);

// The positions of the values after `text` replaces the range between two places of the program.
function edited(start: [number, number], end: [number, number], text: string, values: readonly Shown[] = VALUES): string[] {
  const lines = split(PROGRAM);
  const range = { start: { line: start[0], character: start[1] }, end: { line: end[0], character: end[1] } };
  return places(afterEdit(values, applied(lines, { range, text })));
}

const places = (values: readonly Shown[]) => values.map(({ value, line, column }) => `${value.name} ${line}:${column}`);

test("a value moves with its line", () => {
  assert.deepEqual(edited([0, 0], [0, 0], "\n# a note\n"), ["lv 4:4", "gv 5:4"]);
  assert.deepEqual(edited([3, 4], [3, 4], "\n    "), ["lv 2:4", "gv 4:4"], "a line broken before the variable");
  assert.deepEqual(edited([2, 4], [2, 4], "    "), ["lv 2:8", "gv 3:4"]);
});

test("changes of blanks and comments keep all values", () => {
  assert.deepEqual(edited([2, 17], [2, 28], "# another"), ["lv 2:4", "gv 3:4"]);
  assert.deepEqual(edited([3, 15], [4, 8], ""), ["lv 2:4", "gv 3:4"], "the statement on one line");
  assert.deepEqual(edited([1, 40], [3, 0], '\n    lv = R.exp( x )\n\n'), ["lv 2:4", "gv 4:4"], "what a formatter does");
});

test("changed code removes the values of its line and of the lines below", () => {
  assert.deepEqual(edited([3, 9], [3, 14], "R.multiply"), ["lv 2:4"]);
  assert.deepEqual(edited([2, 9], [2, 14], "R.log"), []);
  assert.deepEqual(edited([5, 11], [5, 13], "lv"), ["lv 2:4", "gv 3:4"], "an edit below changes nothing above");
  assert.deepEqual(edited([2, 0], [3, 0], ""), [], "a line that is gone");
  assert.deepEqual(edited([2, 4], [2, 4], "# "), [], "code that became a comment");
  assert.deepEqual(edited([1, 26], [1, 27], "5"), [], "another shape");
});

test("blanks in a string count as code", () => {
  const edit = { start: 0, before: [`y = f("a b")`], after: [`y = f("a  b")`] };
  assert.deepEqual(afterEdit(shown([value("y", 0, 0)]), edit), []);
});

test("edits during the run are applied to the values", () => {
  const edit = difference(split(PROGRAM), split(PROGRAM.replace("@R.function", "# new\n\n@R.function")));
  assert.deepEqual(places(afterEdit(VALUES, edit)), ["lv 4:4", "gv 5:4"]);
  assert.deepEqual(difference(["a", "a"], ["a", "a", "a"]), { start: 2, before: [], after: ["a"] });
  assert.deepEqual(difference(["a"], ["a"]), { start: 1, before: [], after: [] });
});

test("changes of several lines are applied in the editor's order", () => {
  const lines = split("one\ntwo\nthree");
  const range = { start: { line: 0, character: 1 }, end: { line: 1, character: 2 } };
  assert.deepEqual(applied(lines, { range, text: "X\r\nY" }), { start: 0, before: ["one", "two"], after: ["oX", "Yo"] });
  assert.deepEqual(lines, ["oX", "Yo", "three"]);
});

test("the text after a line is brief", () => {
  assert.equal(brief(value("lv", 2)), "min -1.23  mean 0.03  max 4.1  · 800 µs  · (1, 64, 56, 56) float32");
  const broken = { ...value("lv", 2), min: null, mean: null, max: null, nan: 7, seconds: null };
  assert.equal(brief(broken), "7 NaN  · (1, 64, 56, 56) float32");
  assert.equal(brief({ ...broken, dtype: "int64", shape: [], min: 3e9, mean: 3e9, max: 3e9, nan: 0 }), "min 3.00e+9  mean 3.00e+9  max 3.00e+9  · () int64");
});

test("values of one line have the names of their variables", () => {
  const short = { ...value("a", 2), shape: undefined, text: "4", dtype: "int64", seconds: null };
  assert.equal(briefly([short]), "4 int64");
  assert.equal(briefly([short, { ...short, name: "b", text: "5" }]), "a: 4 int64   b: 5 int64");
});

test("a value that is not a tensor is shown as its text", () => {
  const dims = { ...value("s", 2), shape: undefined, text: "R.shape([4, 16])", dtype: "", min: null, mean: null, max: null, seconds: null };
  assert.equal(brief(dims), "R.shape([4, 16])");
  assert.match(whole(dims), /\| value \| `R\.shape\(\[4, 16\]\)` \|/);
  assert.doesNotMatch(whole(dims), /min|shape \|/);
});

test("the hover has all facts", () => {
  const text = whole(value("lv", 2));
  for (const part of ["`lv`", "| min | `-1.23450` |", "| shape | `(1, 64, 56, 56)` |", "| NaN | `0` |", "`800 µs`"]) {
    assert.ok(text.includes(part), part);
  }
});
