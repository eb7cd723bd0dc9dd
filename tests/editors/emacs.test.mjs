// Emacs, in batch mode, with editors/emacs/rx.el: every version that has Eglot.

import { spawnSync } from "node:child_process";
import path from "node:path";
import test from "node:test";
import { reported, versions } from "./report.mjs";
import { here } from "./support.mjs";

const load = path.join(here, "../../editors/emacs");

for (const { command, version } of versions("emacs", /GNU Emacs \S+/)) {
  const eglot = spawnSync(command, ["--batch", "-Q", "--eval", "(require 'eglot)"]).status === 0;
  if (eglot) {
    reported(version, command, ["--batch", "-Q", "-L", load, "-l", "emacs.el"]);
  } else {
    test(version, { skip: "it comes without Eglot" }, () => {});
  }
}
