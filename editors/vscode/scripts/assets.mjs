// Copies what has its one source elsewhere in the project: the grammar, the licences.

import { cpSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

mkdirSync(here("syntaxes"), { recursive: true });
cpSync(here("../../grammar/rx.tmLanguage.json"), here("syntaxes/rx.tmLanguage.json"));
for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) {
  cpSync(here(`../../${licence}`), here(licence));
}
