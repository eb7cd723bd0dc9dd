// Colours texts as VS Code does, and checks what has to be true of every one: `node test/grammar.mjs FILE…`.
//
// - where a statement starts at the margin, no rule of an earlier line is open; nor at the text's end
// - every character but blanks has a scope, and none is `invalid`
//
// FILE is a text, or JSON lines whose string fields with several lines are texts. Without one, the examples are read.
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const textmate = require("vscode-textmate");
const oniguruma = require("vscode-oniguruma");
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), "../../..");

await oniguruma.loadWASM(fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")).buffer);
const registry = new textmate.Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => {
    const file = path.join(root, "grammar/rx.tmLanguage.json");
    return textmate.parseRawGrammar(fs.readFileSync(file, "utf8"), file);
  },
});
const grammar = await registry.loadGrammar("source.relax");

const STATEMENT = /^(@|(class|def|from|import)\s|[A-Za-z_]\w*\s*(:|=)\s)/;

/** What is wrong with the colours of a text. */
function mistakes(name, text) {
  const found = [];
  let stack = textmate.INITIAL;
  let number = 0;
  for (const line of text.split(/\r\n|\n|\r/)) {
    number += 1;
    if (STATEMENT.test(line) && stack.depth > 1) found.push(`${name}:${number}: a rule is open: ${line}`);
    const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
    for (const { scopes, startIndex, endIndex } of tokens) {
      const part = line.slice(startIndex, endIndex);
      if (scopes.length === 1 && part.trim()) found.push(`${name}:${number}: no scope: ${part}`);
      if (scopes.some((scope) => scope.includes("invalid"))) found.push(`${name}:${number}: invalid: ${part}`);
    }
    stack = ruleStack;
  }
  if (stack.depth > 1) found.push(`${name}: a rule is open at the end`);
  return found;
}

/** The innermost scope of each part of a line, `part scope`. */
function colours(line) {
  const { tokens } = grammar.tokenizeLine(line, textmate.INITIAL);
  return tokens
    .map(({ scopes, startIndex, endIndex }) => [line.slice(startIndex, endIndex).trim(), scopes.at(-1)])
    .filter(([part]) => part)
    .map(([part, scope]) => `${part} ${scope.replace(/\.relax$/, "")}`);
}

const has = (line, ...wanted) => {
  const found = colours(line);
  for (const colour of wanted) assert.ok(found.includes(colour), `${line}\nwanted: ${colour}\nfound: ${found.join(" | ")}`);
};

has("    lv: R.Tensor((n, 4), dtype=\"float32\") = R.nn.relu(x)", "lv variable.other.definition", "Tensor support.type",
  "dtype variable.parameter", "nn. entity.name.namespace", "relu support.function", "x variable.other");
has("    def f(x: T.int64, *r: T.handle) -> R.Any:", "f entity.name.function", "x variable.parameter",
  "r variable.parameter", "int64 support.type", "Any support.type");
has("        with R.dataflow():", "with keyword.control", "dataflow keyword.other.structure");
has("v_i, v_j = T.axis.remap(\"SS\", [i, j])", "axis keyword.other.structure", "remap entity.name.function.member");
has("    @R.function(private=True)", "function entity.name.function.decorator", "private variable.parameter");
has("a = cls.add(x) if x.if_ else r'\\d' + 1.5e-3j", "cls variable.language", "add entity.name.function.member",
  "if_ variable.other.property", "1.5e-3j constant.numeric.float", "\\d string.quoted.single.raw");
has("x = \"a\\n", "\\n constant.character.escape");
assert.deepEqual(mistakes("an unclosed string", "x = \"abc\ny = 1\n"), []);
assert.deepEqual(mistakes("an unclosed header", "def f(x: R.Tensor((1,\ny = 1\n"), []);

function texts(file) {
  const text = fs.readFileSync(file, "utf8");
  if (!file.endsWith(".jsonl")) return [[file, text]];
  return text.split("\n").filter(Boolean).flatMap((row, at) =>
    Object.entries(JSON.parse(row))
      .filter(([field, value]) => field.startsWith("text") && typeof value === "string")
      .map(([field, value]) => [`${file}:${at + 1}:${field}`, value]));
}

const examples = path.join(root, "examples");
const given = process.argv.slice(2);
const files = given.length ? given
  : fs.readdirSync(examples).filter((name) => name.endsWith(".rx")).map((name) => path.join(examples, name));
let count = 0;
const found = [];
for (const file of files) {
  for (const [name, text] of texts(file)) {
    count += 1;
    found.push(...mistakes(name, text));
  }
}
console.log(`${count} texts, ${found.length} mistakes`);
for (const line of found.slice(0, 20)) console.log(line.slice(0, 300));
process.exitCode = found.length ? 1 : 0;
