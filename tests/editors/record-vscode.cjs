// VS Code's client library as the extension uses it, without VS Code: what it says in `initialize` depends on the library alone.
//
// usage: record-vscode.cjs SERVER

const { createRequire, Module } = require("node:module");
const path = require("node:path");

const extension = createRequire(path.join(__dirname, "../../editors/vscode/package.json"));
const library = extension(path.join(__dirname, "../../editors/vscode/node_modules/vscode-languageclient/package.json"));

// An editor that has everything and does nothing: each part of it is a class, a function and an object.
function anything(fixed = {}) {
  const part = new Proxy(class {}, {
    get: (target, key) => (key in fixed ? fixed[key] : key in target ? target[key] : (target[key] = anything())),
    apply: () => anything({ then: undefined }),
    construct: (target, args, made) => (made === part ? anything({ then: undefined }) : Reflect.construct(target, args, made)),
  });
  return part;
}

class EventEmitter {
  event = () => ({ dispose() {} });
  fire() {}
  dispose() {}
}

const editor = anything({
  EventEmitter,
  version: extension("./package.json").engines.vscode.replace("^", ""),
  env: anything({ appName: `${library.name} ${library.version}`, language: "en" }),
  workspace: anything({ textDocuments: [], notebookDocuments: [], workspaceFolders: [], isTrusted: true }),
  window: anything({ visibleTextEditors: [], activeTextEditor: undefined, tabGroups: anything({ all: [] }) }),
});
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? editor : load(name, ...rest));

const { LanguageClient } = extension("vscode-languageclient/node");
const client = new LanguageClient("rx", "rx", { command: process.argv[2], args: ["--stdio"] }, { documentSelector: [{ language: "relax" }] });
client.start().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
