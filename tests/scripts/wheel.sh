#!/usr/bin/env bash
# Builds the Python wheel and takes it from file to first diagnostic and first run in a clean virtual environment.
# Prints `skipped: wheel: why` where Python or maturin cannot be had. The wheel stays in target/wheels.
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
# On Windows a virtual environment has its programs in Scripts.
programs=$folder/build/bin
[[ -d $programs ]] || programs=$folder/build/Scripts
"$programs/python" -m pip install --quiet --disable-pip-version-check "maturin>=1.9,<2" 2>"$folder/pip.log" ||
    skip "maturin cannot be installed: $(tail -n 1 "$folder/pip.log")"

"$programs/maturin" build --quiet --profile "$profile" --out "$folder/wheels"
"$python" tests/packages/check.py "$folder"/wheels/*.whl
mkdir -p target/wheels
cp "$folder"/wheels/*.whl target/wheels/
echo "wheel: built ($profile), $(du -k "$folder"/wheels/*.whl | cut -f 1) KiB"
