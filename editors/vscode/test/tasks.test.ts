import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { commandLine, readTask, type Task } from "../src/tasks/commandLine";

const read = (definition: Record<string, unknown>): Task => {
  const task = readTask({ type: "rx", ...definition });
  assert.ok(typeof task !== "string", String(task));
  return task;
};

test("each kind of task has its command line", () => {
  const args = (definition: Record<string, unknown>) => {
    const { tool, args } = commandLine(read(definition));
    return [tool, ...args].join(" ");
  };
  assert.equal(args({ task: "check" }), "rxcheck --format concise ${workspaceFolder}");
  assert.equal(args({ task: "check", path: "a.rx", args: ["--hints"] }), "rxcheck --format concise --hints a.rx");
  assert.equal(args({ task: "fix", path: "${file}" }), "rxcheck --format concise --fix ${file}");
  assert.equal(args({ task: "watch" }), "rxcheck --format concise --watch ${workspaceFolder}");
  assert.equal(args({ task: "run", args: ["--dim", "n=4"] }), "rxrun ${file} --dim n=4");
});

test("an invalid task is reported with the reason", () => {
  for (const [definition, word] of [
    [{}, '"check", "fix", "watch", "run"'],
    [{ task: "destroy" }, '"check"'],
    [{ task: "check", path: 7 }, '"path"'],
    [{ task: "check", args: "--hints" }, '"args"'],
  ] as const) {
    const problem = readTask({ ...definition });
    assert.ok(typeof problem === "string" && problem.includes(word), String(problem));
  }
});

test("the problem matcher matches rxcheck's output", () => {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  const [pattern] = manifest.contributes.problemPatterns;
  const written = readFileSync("../../compiler/rxcheck/tests/formats/concise.txt", "utf8").trimEnd().split("\n");
  const found = written.map((line) => new RegExp(pattern.regexp).exec(line));
  assert.ok(found.length > 0);
  for (const match of found) {
    assert.equal(match?.[pattern.file], "net.rx");
    assert.match(match?.[pattern.line] ?? "", /^\d+$/);
    assert.equal(match?.[pattern.severity], "error");
    assert.match(match?.[pattern.code] ?? "", /^RX\d{4}$/);
  }
});

test("every matcher of a task is contributed", () => {
  const manifest = JSON.parse(readFileSync("package.json", "utf8"));
  const contributed = manifest.contributes.problemMatchers.map((matcher: { name: string }) => `$${matcher.name}`);
  for (const kind of ["check", "fix", "watch", "run"]) {
    for (const matcher of commandLine(read({ task: kind })).matchers) {
      assert.ok(contributed.includes(matcher), matcher);
    }
  }
});
