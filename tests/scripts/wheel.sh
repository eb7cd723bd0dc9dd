#!/usr/bin/env bash
# Builds the Python wheel, installs it into a clean virtual environment and uses its programs from there.
# Says `skipped: wheel: why` where Python or maturin cannot be had. The wheel stays in target/wheels.
#
# usage: tests/scripts/wheel.sh [PROFILE]      PROFILE is release by default; CI builds with its own profile, dev
set -euo pipefail
cd "$(dirname "$0")/../.."
profile=${1:-release}

skip() {
    echo "skipped: wheel: $1"
    exit 0
}

python=$(command -v python3) || skip "no python3"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/build" 2>/dev/null || skip "python3 makes no virtual environments (package python3-venv)"
"$folder/build/bin/pip" install --quiet --disable-pip-version-check "maturin>=1.9,<2" 2>"$folder/pip.log" ||
    skip "maturin cannot be installed: $(tail -n 1 "$folder/pip.log")"

"$folder/build/bin/maturin" build --quiet --profile "$profile" --out "$folder/wheels"
wheel=$(ls "$folder"/wheels/*.whl)

# What is in it: three programs, no library.
"$python" - "$wheel" <<'PYTHON'
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
scripts = sorted(name.rsplit("/", 1)[1].removesuffix(".exe") for name in names if "/scripts/" in name)
assert scripts == ["rx-lsp", "rxcheck", "rxfmt"], scripts
PYTHON

"$python" -m venv "$folder/clean"
"$folder/clean/bin/pip" install --quiet --disable-pip-version-check --no-index "$wheel"
programs=$folder/clean/bin

"$programs/rxcheck" --quiet examples/resnet18.rx
found=$("$programs/rxcheck" --quiet --format concise examples/conv_relu_mismatch.rx) && {
    echo "wheel: rxcheck found nothing in examples/conv_relu_mismatch.rx"
    exit 1
}
[[ $found == *RX0501* ]] || { echo "wheel: rxcheck said: $found"; exit 1; }
"$programs/rxfmt" --check examples/convnet.rx
"$python" - "$programs/rx-lsp" <<'PYTHON'
import json, subprocess, sys
def frame(message):
    body = json.dumps({"jsonrpc": "2.0", **message})
    return f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
session = [
    {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}},
    {"method": "initialized", "params": {}},
    {"id": 2, "method": "shutdown"},
    {"method": "exit"},
]
done = subprocess.run([sys.argv[1]], input=b"".join(map(frame, session)), capture_output=True, timeout=60)
assert done.returncode == 0 and b'"hoverProvider"' in done.stdout, (done.returncode, done.stdout, done.stderr)
PYTHON

mkdir -p target/wheels
cp "$wheel" target/wheels/
echo "wheel: $(basename "$wheel"), $(du -k "$wheel" | cut -f 1) KiB, built ($profile), installed, used"
