// Helix, in a terminal of its own, with editors/helix/languages.toml: every version that is there.

import { existsSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { reported, versions } from "./report.mjs";
import { editors, here } from "./support.mjs";

const python = path.join(editors, "python/bin/python");

for (const { command, version } of versions("hx", /helix \S+/)) {
  if (existsSync(python)) {
    reported(version, python, [path.join(here, "helix.py"), command]);
  } else {
    test(version, { skip: "no Python with pyte in RX_EDITORS" }, () => {});
  }
}
