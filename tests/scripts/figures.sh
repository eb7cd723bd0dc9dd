#!/usr/bin/env bash
# Prints the figure of every bar the checker is held to: conformance, then speed. Builds in release, once.
#
# usage: [RX_CASES=FOLDER] [RX_PYTHON=python-with-apache-tvm] tests/scripts/figures.sh
#
# Figures of the cases in tests/conformance need nothing else; those of RX_CASES are printed where that folder exists.
set -euo pipefail
cd "$(dirname "$0")/../.."
export RX_CASES=${RX_CASES:-$PWD/../shared}
target=${CARGO_TARGET_DIR:-target}

echo "== Conformance (argued disagreements: docs/findings.md, tests/conformance/findings.md)"
# One `name: right/all (rate)` line a bar; what is wrong is listed in files under $target/tmp/conformance.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
cargo test --quiet --release -p rx-tests --test suite conformance:: -- --nocapture --test-threads 1 >"$log" 2>&1 || status=$?
# The first line of a test follows the dot of the one before it.
grep -E ': [0-9]+/[0-9]+ \(' "$log" | sed "s/^\.*//" | sort
[[ $status == 0 ]] || { tail -n 40 "$log"; exit "$status"; }

echo
echo "== Speed (bars: cold 0.6 s, edit 1 ms, peak 250 MB; all modules 2 s on two cores)"
cargo build --quiet --release -p rx-bench -p rxcheck
"$target/release/edits"
"$target/release/edits" --split 1000
for modules in tests/conformance/modules.jsonl "$RX_CASES/cases/modules.jsonl"; do
    [[ -f $modules ]] || continue
    "$target/release/corpus" "$modules"
    "${RX_PYTHON:-python3}" tests/scripts/tvm_speed.py "$target/release/rxcheck" "$modules" 2>/dev/null
done
