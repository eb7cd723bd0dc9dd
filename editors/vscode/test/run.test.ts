import assert from "node:assert/strict";
import test from "node:test";
import { answered, example, lacks, named, suggested } from "../src/run/answers";
import { assignments, beside, line, onlyFunction, runArguments, stopArguments, withModule, without, words } from "../src/run/arguments";
import { Arguments } from "../src/run/memory";
import { readOutcome, type Outcome } from "../src/run/outcome";
import { escaped } from "../src/html";
import { page } from "../src/run/report";
import { lines, seconds, shape, value } from "../src/run/words";

const ran: Outcome = {
  ok: true,
  cancelled: false,
  message: "`main` ran in 1.9 ms",
  seconds: 0.0019,
  outputs: [
    { name: "out0", dtype: "float32", shape: [1, 10], min: -1.5, mean: 0.25, max: 2, nan: 0 },
    { name: "out1", dtype: "float16", shape: [3], min: null, mean: null, max: null, nan: 3 },
  ],
  modules: [],
  missing: { dims: [], inputs: [] },
  log: "",
  values: [],
  kernels: [],
};

const of = (outcome: Outcome, args: string[] = []) =>
  page({ title: "main in net.rx", uri: "file:///net.rx", arguments: args, outcome }, "webview:/media/report.css", "webview:");

test("the server's answer is parsed; missing and invalid fields are dropped", () => {
  assert.deepEqual(readOutcome({ ...ran, later: 1 }), ran);
  const odd = readOutcome({ ok: "yes", message: "m", seconds: "fast", outputs: [7, { shape: ["n", 4] }], log: null });
  assert.deepEqual(odd, {
    ok: false,
    cancelled: false,
    message: "m",
    seconds: null,
    outputs: [{ name: "", dtype: "", shape: [4], min: null, mean: null, max: null, nan: 0 }],
    modules: [],
    missing: { dims: [], inputs: [] },
    log: "",
    values: [],
    kernels: [],
  });
  for (const nothing of [undefined, null, 7, "ran", {}, { message: 1 }]) {
    assert.equal(readOutcome(nothing), undefined);
  }
});

test("values are formatted briefly, as in a program", () => {
  assert.deepEqual([[], [4], [1, 10]].map(shape), ["()", "(4,)", "(1, 10)"]);
  assert.deepEqual([2, -1.5, 0.1234567, 1e-7, 2.5e9, null].map(value), ["2", "-1.50000", "0.123457", "1.0000e-7", "2.5000e+9", "not finite"]);
  assert.deepEqual([2e-5, 0.0019, 1.234].map(seconds), ["20 µs", "1.9 ms", "1.23 s"]);
});

test("the report has a row per output, the time, the arguments and actions", () => {
  const html = of(ran, ["--dim", "n=4"]);
  assert.match(html, /<th scope="row">out0<\/th><td>float32<\/td><td>\(1, 10\)<\/td><td class="number">-1\.50000<\/td>/);
  assert.match(html, /<td class="number bad">3<\/td>/);
  assert.match(html, /class="state ok">Ran in 1\.9 ms/);
  assert.match(html, /<dd>--dim n=4<\/dd>/);
  assert.deepEqual(html.match(/command:rx\.\w+/g), ["command:rx.runAgain", "command:rx.runWithArguments", "command:rx.chooseInputs", "command:rx.saveOutputs"]);
});

test("the times of kernels are a table with links to the statements", () => {
  const where = (line: number) => ({ line, column: 4, endLine: line, endColumn: 6 });
  const kernels = [
    { name: "fused_conv2d_relu", calls: 3, seconds: 0.003, places: [where(6), where(7)] },
    { name: "copy", calls: 1, seconds: 0.001, places: [] },
  ];
  const html = of({ ...ran, kernels });
  const link = (line: number) => `command:rx.showStatement?${encodeURIComponent(JSON.stringify(["file:///net.rx", where(line)]))}`.replaceAll("'", "&#39;");
  assert.ok(html.includes(`<th scope="row"><a href="${link(6)}">fused_conv2d_relu</a></th>`));
  assert.ok(html.includes(`line <a href="${link(6)}">7</a>, <a href="${link(7)}">8</a>`));
  // Time and share are next to the name, so that they are visible in a narrow panel.
  assert.match(html, /fused_conv2d_relu<\/a><\/th><td class="number">3\.0 ms<\/td><td class="number">75\.0 %<\/td><td class="number">3<\/td><td class="lines">/);
  assert.match(html, /<th scope="row">copy<\/th>.*<td class="lines"><\/td><\/tr>/);
});

test("values of bindings and times of kernels are parsed", () => {
  const range = { start: { line: 2, character: 4 }, end: { line: 2, character: 6 } };
  const values = [{ name: "lv", range, dtype: "float32", shape: [4], min: 1, mean: null, max: 2, nan: 1, seconds: 0.5 }, { name: "nowhere" }];
  const read = readOutcome({ message: "", values, kernels: [{ name: "k", calls: 2, seconds: 0.25, ranges: [range, null] }] });
  const place = { line: 2, column: 4, endLine: 2, endColumn: 6 };
  assert.deepEqual(read?.values, [{ name: "lv", place, dtype: "float32", shape: [4], text: "", min: 1, mean: null, max: 2, nan: 1, seconds: 0.5 }]);
  assert.deepEqual(read?.kernels, [{ name: "k", calls: 2, seconds: 0.25, places: [place] }]);
});

test("the report names the input files", () => {
  const html = of(ran, ["--inputs", "data.npz", "--input", "x=x.npy"]);
  assert.match(html, /<dt>Inputs<\/dt><dd>data\.npz, x\.npy<\/dd>/);
});

test("the report of a failed run has a message and a log, but no table and no outputs to save", () => {
  const html = of({ ...ran, ok: false, seconds: null, outputs: [], message: "`main` failed: index 9", log: "line 1\nline 2\n" });
  assert.match(html, /class="state failed">`main` failed: index 9</);
  assert.match(html, /<pre>line 1\nline 2<\/pre>/);
  assert.doesNotMatch(html, /<table>|saveOutputs/);
});

test("the report allows no scripts and escapes the program's text", () => {
  const html = of({ ...ran, ok: false, message: `<script>alert("x")</script>`, log: "<img src=x onerror=y>" }, [`"'&`]);
  assert.match(html, /Content-Security-Policy" content="default-src 'none'; style-src webview:"/);
  assert.doesNotMatch(html, /<script|<img/);
  assert.equal(escaped(`<a href="x">&'`), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
});

test("the log has the same facts as the report", () => {
  assert.deepEqual(lines({ ...ran, log: "built\n" }), [
    "`main` ran in 1.9 ms",
    "  out0: float32 (1, 10)  min -1.50000  mean 0.250000  max 2  nan 0",
    "  out1: float16 (3,)  min not finite  mean not finite  max not finite  nan 3",
    "built",
  ]);
});

test("arguments are split as in a shell, and quoted so that they split the same", () => {
  assert.deepEqual(words(`--dim n=4  --inputs "my data.npz" --input x='a b'.npy a\\ b ''`, false), [
    "--dim", "n=4", "--inputs", "my data.npz", "--input", "x=a b.npy", "a b", "",
  ]);
  assert.deepEqual(words(`--inputs C:\\data\\x.npz`, true), ["--inputs", "C:\\data\\x.npz"]);
  assert.deepEqual(words(`"open`, false), { problem: `the quote " is not closed` });
  for (const given of [[], ["--dim", "n=4"], ["a b", `it's "so"`, "back\\slash", ""]]) {
    assert.deepEqual(words(line(given), false), given);
  }
});

const missing = { dims: ["n", "m"], inputs: ["s", "t.1"] };

test("missing values are parsed; invalid ones are dropped", () => {
  assert.deepEqual(readOutcome({ message: "", missing: { dims: ["n", "m", 7], inputs: ["s", "t.1"] } })?.missing, missing);
  assert.deepEqual(readOutcome({ message: "", missing: "n" })?.missing, { dims: [], inputs: [] });
  assert.deepEqual([lacks(missing), lacks({ dims: [], inputs: ["s"] }), lacks({ dims: [], inputs: [] })], [true, true, false]);
});

test("all missing values are answered in one line, in order or by name", () => {
  const options = ["--dim", "n=4", "--dim", "m=16", "--input", "s=s.npy", "--input", "t.1=my data.npy"];
  for (const text of ["4 16 s.npy 'my data.npy'", "4, 16, s.npy, 'my data.npy'", "4,16 s=s.npy t.1='my data.npy'", "m=16 s=s.npy 4 't.1=my data.npy'"]) {
    assert.deepEqual(answered(text, missing, false), options, text);
  }
  assert.deepEqual(answered("8", { dims: ["n"], inputs: [] }, false), ["--dim", "n=8"]);
});

test("an answer without a value, or with a wrong one, is refused", () => {
  const problem = (text: string) => {
    const answer = answered(text, missing, false);
    return Array.isArray(answer) ? "" : answer.problem;
  };
  assert.equal(problem(""), "n requires a whole number, such as 4; found nothing");
  assert.equal(problem("4 m=-1"), "m requires a whole number, such as 4; found -1");
  assert.equal(problem("4 16 s.npy"), "t.1 requires an .npy file; found nothing");
  assert.equal(problem("4 16 k=3"), "requires values of n, m, s, t.1; found k=3");
  assert.equal(problem("4 16 a.npy b.npy c.npy"), "requires values of n, m, s, t.1; found c.npy");
  assert.equal(problem("'4"), "the quote ' is not closed");
});

test("earlier answers and files named after their parameters are suggested", () => {
  const files = ["data.npz", "s.npy"];
  assert.equal(suggested(missing, ["--dim", "n=4", "--dim=k=2", "--input", "t.1=a b.npy"], files), "n=4 m= s=s.npy 't.1=a b.npy'");
  assert.equal(suggested({ dims: ["n"], inputs: [] }, ["--seed", "7"], files), "");
  // A suggested line is an answer, once it is complete.
  assert.deepEqual(answered(suggested(missing, ["--dim", "n=4", "--dim=m=2", "--input=t.1=a b.npy"], files), missing, false), [
    "--dim", "n=4", "--dim", "m=2", "--input", "s=s.npy", "--input", "t.1=a b.npy",
  ]);
});

test("the question names the missing values", () => {
  assert.equal(named(missing), "the dims n, m and the inputs s, t.1");
  assert.equal(named({ dims: ["n"], inputs: [] }), "the dim n");
  assert.equal(example(missing), "n=4 m=4 s=s.npy t.1=t.1.npy");
});

const uri = (name: string) => ({ toString: () => `file:///${name}` }) as Parameters<Arguments["ofAll"]>[0];

function remembered(stored: Map<string, unknown>): Arguments {
  return new Arguments({
    keys: () => [...stored.keys()],
    get: (key: string, otherwise?: unknown) => stored.get(key) ?? otherwise,
    update: async (key: string, value: unknown) => void (value === undefined ? stored.delete(key) : stored.set(key, value)),
  } as ConstructorParameters<typeof Arguments>[0]);
}

test("arguments are remembered by function, and forgotten by file", async () => {
  const memory = remembered(new Map());
  const [net, other] = [uri("net.rx"), uri("net.rx.py")];
  await memory.remember({ uri: net, function: "main" }, ["--dim", "n=4"]);
  await memory.remember({ uri: net, function: "step", module: "A" }, ["--dim", "k=2"]);
  await memory.remember({ uri: other, function: "main" }, ["--seed", "7"]);
  // A run without a name is one of `main`. The dims of one function are no dims of another.
  assert.deepEqual(memory.of({ uri: net, function: undefined }), ["--dim", "n=4"]);
  assert.deepEqual(memory.of({ uri: net, function: "step" }), []);
  assert.deepEqual(memory.ofAll(net), ["--dim", "n=4", "--dim", "k=2"]);
  await memory.forget(net);
  assert.deepEqual([memory.ofAll(net), memory.ofAll(other)], [[], ["--seed", "7"]]);
});

test("arguments that version 0.1.0 remembered by file are those of main, and are forgotten", async () => {
  const net = uri("net.rx");
  const before = (): Map<string, unknown> => new Map([["rx.run.arguments:file:///net.rx", ["--dim", "n=4"]]]);
  const memory = remembered(before());
  assert.deepEqual(memory.of({ uri: net, function: undefined }), ["--dim", "n=4"]);
  assert.deepEqual(memory.of({ uri: net, function: "main" }), ["--dim", "n=4"]);
  assert.deepEqual(memory.of({ uri: net, function: "step" }), []);
  assert.deepEqual(memory.ofAll(net), ["--dim", "n=4"]);
  await memory.remember({ uri: net, function: "main" }, []);
  assert.deepEqual(memory.of({ uri: net, function: "main" }), [], "the user removed them");
  const forgotten = remembered(before());
  await forgotten.forget(net);
  assert.deepEqual(forgotten.of({ uri: net, function: "main" }), []);
});

test("a run without a name is one of the only function", () => {
  const lens = (...call: unknown[]) => ["file:///a.rx", ...call];
  assert.deepEqual(onlyFunction([lens("step")]), { function: "step" });
  assert.deepEqual(onlyFunction([lens("step", null, "A")]), { function: "step", module: "A" });
  for (const lenses of [[], [lens("main")], [lens("main"), lens("step")], [lens("one"), lens("step")], [lens(null)]]) {
    assert.equal(onlyFunction(lenses), undefined);
  }
});

test("assignments are found in every spelling", () => {
  const words = ["--dim", "n=4", "--dim=m=a=b", "--dim", "odd", "--dim==7", "--dim=k=", "--input=x=x.npy", "--dim"];
  assert.deepEqual(assignments("--dim", words), [["n", "4"], ["m", "a=b"]]);
});

test("a remembered module replaces another, and is sent if it is known", () => {
  assert.deepEqual(withModule(["--module", "A", "--dim", "n=4"], "B"), ["--dim", "n=4", "--module=B"]);
  assert.deepEqual(withModule(["--module=A"], "A#2"), ["--module=A#2"]);
  assert.deepEqual(runArguments("file:///a.rx", undefined, [], undefined), ["file:///a.rx", null, []]);
  assert.deepEqual(runArguments("file:///a.rx", "main", ["--seed", "1"], "B"), ["file:///a.rx", "main", ["--seed", "1"], "B"]);
});

test("stop ends only the run of the named or active program, otherwise all runs", () => {
  const runs = (program: string) => program === "file:///a.rx";
  assert.deepEqual(stopArguments("file:///a.rx", "file:///b.rx", runs), ["file:///a.rx"]);
  assert.deepEqual(stopArguments("file:///b.rx", "file:///a.rx", runs), ["file:///b.rx"], "its run has just ended");
  assert.deepEqual(stopArguments(undefined, "file:///a.rx", runs), ["file:///a.rx"]);
  assert.deepEqual(stopArguments(undefined, "file:///b.rx", runs), []);
  assert.deepEqual(stopArguments(undefined, undefined, runs), []);
});

test("the modules to choose from are parsed", () => {
  assert.deepEqual(readOutcome({ message: "choose", modules: ["A", 7, "B"] })?.modules, ["A", "B"]);
  assert.deepEqual(readOutcome({ message: "ran" })?.modules, []);
});

test("a command's arguments are combined with the remembered ones", () => {
  const remembered = ["--device", "cpu", "--dim", "n=4"];
  assert.deepEqual(beside(remembered, []), remembered);
  assert.deepEqual(beside(remembered, ["--device", "cuda"]), ["--dim", "n=4", "--device", "cuda"]);
  assert.deepEqual(beside(["--output", "old.npz"], ["--output=new.npz"]), ["--output=new.npz"]);
});

test("an option can be removed", () => {
  assert.deepEqual(without("--device", ["--device", "cpu", "--seed", "7", "--device=cuda"]), ["--seed", "7"]);
});
