#!/usr/bin/env bash
# Keeps what editors say in `initialize` as server/tests/lsp/clients/*.json, which the server's sessions read. The editors are those of
# tests/editors/install.sh and, as Neovim 0.7, Debian's; one that is not there keeps its file. VS Code is its client library in editors/vscode.
#
# usage: RX_EDITORS=FOLDER tests/editors/record.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
project=$PWD clients=$PWD/server/tests/lsp/clients
editors=$(cd "$RX_EDITORS" && pwd)
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT

mkdir -p "$home/bin" "$home/config/helix" "$clients"
install -m 755 tests/editors/record.mjs "$home/bin/rx-lsp"
cp tests/editors/programs/classifier.rx "$home"
cp editors/helix/languages.toml "$home/config/helix"
export PATH=$home/bin:$editors/bin:$PATH HOME=$home XDG_CONFIG_HOME=$home/config
cd "$home"

# Runs an editor until the recorder has written.
record() {
    command -v "$2" >/dev/null || { echo "no $2: $1.json stays as it is"; return; }
    export RX_RECORD=$clients/$1.json
    rm -f "$RX_RECORD"
    timeout 60 "${@:2}" >"$home/said" 2>&1 || true
    [[ -s $RX_RECORD ]] || { echo "$1: nothing was recorded" >&2; cat "$home/said" >&2; exit 1; }
    node -p 'const { name, version } = require(process.env.RX_RECORD).clientInfo; `${name} ${version}`'
}

recorded='vim.wait(20000, function() return vim.fn.filereadable(vim.env.RX_RECORD) == 1 end)'
neovim=(--headless -u NONE -n -i NONE --cmd "filetype plugin on" -S "$project/editors/neovim/rx.lua"
    +"edit! classifier.rx" +"lua $recorded" +qall!)
record neovim nvim "${neovim[@]}"
[[ ! -x /usr/bin/nvim ]] || ! /usr/bin/nvim --version | grep -q 'NVIM v0\.7' || record neovim-0.7 /usr/bin/nvim "${neovim[@]}"
record eglot emacs --batch -Q -L "$project/editors/emacs" --eval "(progn
    (require 'relax)
    (setq eglot-sync-connect 20)
    (remove-hook 'relax-mode-hook #'eglot-ensure)
    (switch-to-buffer (find-file-noselect \"classifier.rx\"))
    (call-interactively #'eglot)
    (kill-emacs 0))"
# Helix wants a terminal, and ends with it.
record helix script -qfc 'hx classifier.rx & until [ -s "$RX_RECORD" ]; do sleep 0.1; done; kill $!' /dev/null
record vscode node "$project/tests/editors/record-vscode.cjs" "$home/bin/rx-lsp"
