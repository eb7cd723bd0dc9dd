// Tests that the declarations of package.json match the extension's code and files.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const { contributes } = manifest;
const sources = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => readFileSync(path.join("src", name), "utf8"))
  .join("\n");
const settings: Record<string, { scope?: string; description?: string; markdownDescription?: string; default?: unknown }> = Object.assign(
  {},
  ...contributes.configuration.map((section: { properties: object }) => section.properties),
);

test("every command is registered, by the extension or by the client for the server", () => {
  const ofServer = ["rx.run", "rx.stop", "rx.why", "rx.annotate"];
  for (const { command } of contributes.commands) {
    const registered = ofServer.includes(command) || sources.includes(`register("${command}"`);
    assert.ok(registered, command);
  }
});

test("commands of the server are shown only if the server supports them", () => {
  const entries = [...Object.values(contributes.menus).flat(), ...contributes.keybindings] as { command: string; when?: string }[];
  const keys = {
    "rx.run": "rx.canRun",
    "rx.chooseInputs": "rx.canRun",
    "rx.why": "rx.canExplain",
    "rx.annotate": "rx.canAnnotate",
    "rx.showGraph": "rx.canShowGraph",
    "rx.showLoops": "rx.canShowStages",
    "rx.showCuda": "rx.canShowStages",
    "rx.showPtx": "rx.canShowStages",
    "rx.showCpu": "rx.canShowStages",
    "rx.showPasses": "rx.canShowStages",
    "rx.nextPass": "rx.canShowStages",
    "rx.showSyntaxTree": "rx.canShowSyntaxTree",
  };
  for (const [command, key] of Object.entries(keys)) {
    const places = entries.filter((entry) => entry.command === command);
    assert.ok(places.length > 0 && places.every((entry) => entry.when?.includes(key)), command);
    assert.ok(sources.includes(`"${key}"`), key);
  }
});

test("Python files with Relax in them have the commands of Relax files", () => {
  const entries = [...Object.values(contributes.menus).flat(), ...contributes.keybindings] as { when?: string }[];
  for (const when of entries.map((entry) => entry.when ?? "")) {
    assert.doesNotMatch(when, /editorLangId\s*==\s*relax/, when);
  }
  for (const menu of ["editor/title", "editor/title/run", "editor/context"]) {
    for (const { when } of contributes.menus[menu]) {
      assert.match(when, /resource in rx\.(?:programs|running)|resourceScheme == rx-pass/, when);
    }
  }
});

test("defaults of the editor's settings are changed only for Relax files", () => {
  assert.deepEqual(Object.keys(contributes.configurationDefaults), ["[relax]"]);
});

test("lists of addresses that menus compare with resources are translated in remote windows", () => {
  const whens = [...Object.values(contributes.menus).flat(), ...contributes.keybindings].map((entry) => (entry as { when?: string }).when ?? "");
  const keys = new Set(whens.flatMap((when) => [...when.matchAll(/resource (?:not )?in (rx\.\w+)/g)].map(([, key]) => key)));
  assert.deepEqual([...keys].toSorted(), ["rx.programs", "rx.running"]);
  for (const key of keys) {
    assert.ok(sources.includes(`announceAddresses("${key}"`) && !sources.includes(`"setContext", "${key}"`), key);
  }
});

test("a run in progress has a button that stops it, in place of the one that starts it", () => {
  const button = (menu: string, command: string) => contributes.menus[menu].find((entry: { command?: string }) => entry.command === command);
  assert.match(button("editor/title", "rx.stop").when, /^resource in rx\.running$/);
  assert.match(button("editor/title", "rx.stop").group, /^navigation/);
  assert.match(button("editor/title/run", "rx.run").when, /resource not in rx\.running/);
  for (const key of ["rx.running", "rx.isRunning", "rx.programs"]) {
    assert.ok(sources.includes(`"${key}"`), key);
  }
});

test("commands in menus and key bindings exist", () => {
  const commands = contributes.commands.map((entry: { command: string }) => entry.command);
  const submenus = contributes.submenus.map((entry: { id: string }) => entry.id);
  const menus = Object.values(contributes.menus).flat() as { command?: string; submenu?: string }[];
  for (const { command, submenu } of [...menus, ...contributes.keybindings]) {
    assert.ok(submenu === undefined ? commands.includes(command) : submenus.includes(submenu) && submenu in contributes.menus, command ?? submenu);
  }
});

// Settings that only affect the display of a run.
const HARMLESS = ["rx.run.gpu", "rx.run.showReport", "rx.run.reportPlacement", "rx.run.values", "rx.run.valuesPlacement"];

test("programs cannot be run or configured in a folder that is not trusted", () => {
  const restricted: string[] = manifest.capabilities.untrustedWorkspaces.restrictedConfigurations;
  for (const name of Object.keys(settings).filter((name) => /^rx\.(?:server|run)\./.test(name) && !HARMLESS.includes(name))) {
    assert.ok(restricted.includes(name), name);
  }
  for (const { command, enablement } of contributes.commands.filter((entry: { command: string }) => /rx\.(?:run|save)/.test(entry.command))) {
    assert.match(enablement, /isWorkspaceTrusted/, command);
  }
  for (const name of ["rx.server.path", "rx.server.extraArgs", "rx.run.program"]) {
    assert.equal(settings[name]?.scope, "machine", name);
  }
});

test("every setting is described, scoped, and read or documented as the client's", () => {
  for (const [name, setting] of Object.entries(settings)) {
    assert.ok(setting.scope, name);
    assert.ok(setting.markdownDescription, name);
    assert.ok(name === "rx.trace.server" || sources.includes(`"${name.slice("rx.".length)}"`) || sources.includes(`"${name}"`), name);
  }
});

test("named files exist", () => {
  const files = [
    manifest.icon,
    contributes.snippets[0].path,
    contributes.languages[0].configuration,
    ...Object.values(contributes.languages[0].icon),
    ...contributes.walkthroughs[0].steps.map((step: { media: { image?: string; markdown?: string } }) => step.media.image ?? step.media.markdown),
    "markdown.tmLanguage.json",
  ];
  for (const file of files) {
    assert.ok(existsSync(file), file);
  }
});

test("patterns are valid regular expressions and match", () => {
  const language = JSON.parse(readFileSync("language-configuration.json", "utf8"));
  const outdents = new RegExp(language.onEnterRules[0].beforeText);
  assert.match("    return gv", outdents);
  assert.match("        R.output(gv)", outdents);
  assert.doesNotMatch("    return (", outdents);
  const indents = new RegExp(language.indentationRules.increaseIndentPattern);
  assert.match("    with R.dataflow():", indents);
  assert.match("def main(x: R.Tensor((1,), \"float32\")):  # entry", indents);
  assert.doesNotMatch("    lv = R.add(x, y)", indents);
  assert.deepEqual("R.nn.conv2d(x0, 1.5)".match(new RegExp(language.wordPattern, "g")), ["R", "nn", "conv2d", "x0", "1.5"]);
  const first = new RegExp(contributes.languages[0].firstLine);
  assert.match("# from tvm.script import ir as I", first);
  assert.match("from tvm.script.parser import relax as R", first);
  assert.doesNotMatch("from tvm import relax", first);
});
