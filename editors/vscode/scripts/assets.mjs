// Copies files whose source is elsewhere in the repository: the grammar and the licenses.

import { cpSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

mkdirSync(here("syntaxes"), { recursive: true });
cpSync(here("../../grammar/rx.tmLanguage.json"), here("syntaxes/rx.tmLanguage.json"));
for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) {
  cpSync(here(`../../${licence}`), here(licence));
}
