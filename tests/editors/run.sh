#!/usr/bin/env bash
# Drives real editors against rx-lsp: VS Code with the packaged extension, Neovim, Emacs, Helix, each with its files of editors/.
# An editor that is not there is skipped by name; a feature that the server does not have is a failure.
#
# usage: RX_EDITORS=FOLDER tests/editors/run.sh [NAME…]      NAME is vscode, vscode-run, vscode-typing, vscode-notebook, vscode-looks,
#                                                            neovim, emacs or helix; all by default
# RX_EDITORS    the folder that tests/editors/install.sh filled; without it everything is skipped
# RX_PROGRAMS   a folder with rx-lsp, rxcheck and rxrun; target/debug or target/release by default, the newer one. Where it has no
#               rxrun, the stand-in of the server's tests (examples/rxrun-stand-in) runs programs
# RX_ARTEFACTS  where screenshots are kept; target/editors by default
set -euo pipefail
cd "$(dirname "$0")/../.."

if [[ -z ${RX_EDITORS:-} ]]; then
    echo "skipped: editors: RX_EDITORS names no folder (tests/editors/install.sh fills one)"
    exit 0
fi
RX_EDITORS=$(cd "$RX_EDITORS" && pwd)
node=$RX_EDITORS/bin/node
[[ -x $node ]] || { echo "skipped: editors: $RX_EDITORS has no node (tests/editors/install.sh)"; exit 0; }

newest=$(ls -t target/debug/rx-lsp target/release/rx-lsp 2>/dev/null | head -n 1 || true)
built=${RX_PROGRAMS:-${newest%/*}}
[[ -n $built ]] || { echo "editors: nothing is built: cargo build --bins, or RX_PROGRAMS names a folder" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for name in rx-lsp rxcheck; do
    cp "$built/$name" "$folder/" 2>/dev/null || { echo "editors: no $name in $built: cargo build --bins makes it" >&2; exit 2; }
done
if [[ -x $built/rxrun ]]; then
    cp "$built/rxrun" "$folder/"
else
    cp "$built/examples/rxrun-stand-in" "$folder/rxrun" 2>/dev/null || { echo "editors: neither rxrun nor its stand-in in $built" >&2; exit 2; }
    export RX_RUN_ARGUMENTS=--behave=run
    echo "editors: the stand-in of the server's tests runs programs"
fi
export RX_EDITORS RX_PROGRAMS=$folder RX_ARTEFACTS=${RX_ARTEFACTS:-$PWD/target/editors}

names=("$@")
[[ $# -gt 0 ]] || names=(vscode vscode-run vscode-typing vscode-notebook vscode-looks neovim emacs helix)
if [[ " ${names[*]} " == *" vscode"* ]]; then
    if [[ -d editors/vscode/node_modules ]]; then
        export RX_VSIX=$folder/rx.vsix
        PATH=$RX_EDITORS/bin:$PATH npm --prefix editors/vscode run --silent package -- --binaries "$folder" --out "$RX_VSIX" >"$folder/log" 2>&1 ||
            { cat "$folder/log" >&2; exit 1; }
    else
        echo "the extension is not packaged: npm ci in editors/vscode has not been run"
    fi
fi
# One after the other: several editors at once would wait for each other.
files=("${names[@]/#/tests/editors/}")
"$node" --test --test-concurrency=1 "${files[@]/%/.test.mjs}"
