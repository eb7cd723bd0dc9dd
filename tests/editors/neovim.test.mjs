// Neovim, headless, with editors/neovim/rx.lua: every version that is there.

import { reported, versions } from "./report.mjs";

const args = (config, script) => ["--headless", "-u", "NONE", "-n", "-i", "NONE", "--cmd", "filetype plugin on", "-S", config, "-S", script];

for (const { command, version } of versions("nvim", /NVIM v\S+/)) {
  reported(version, command, args("neovim/rx.lua", "neovim.lua"));
}
