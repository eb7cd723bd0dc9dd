#!/usr/bin/env bash
# Prints the figure of every bar the checker is held to: conformance, then speed. Builds in release, once.
#
# usage: RX_CASES=FOLDER [RX_PYTHON=python-with-apache-tvm] tests/scripts/figures.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
export RX_CASES=${RX_CASES:-$PWD/../shared}
target=${CARGO_TARGET_DIR:-target}

echo "== Conformance (argued disagreements: docs/findings.md)"
if [[ -d $RX_CASES/cases ]]; then
    # One `name: right/all (rate)` line a bar; what is wrong is listed in files under $target/tmp/conformance.
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    status=0
    cargo test --quiet --release -p rx-tests --test conformance -- --nocapture --test-threads 1 >"$log" 2>&1 || status=$?
    # The first line of a test comes behind the dot of the one before.
    grep -E ': [0-9]+/[0-9]+ \(' "$log" | sed "s/^\.*//" | sort
    [[ $status == 0 ]] || { tail -n 40 "$log"; exit "$status"; }
else
    echo "skipped: no cases at $RX_CASES; RX_CASES names another folder"
fi

echo
echo "== Speed (bars: cold 0.6 s, edit 1 ms, peak 250 MB; all modules 2 s on two cores)"
cargo build --quiet --release -p rx-bench -p rxcheck
"$target/release/edits"
"$target/release/edits" --split 1000
if [[ -d $RX_CASES/cases ]]; then
    "$target/release/corpus" "$RX_CASES/cases/modules.jsonl"
    "${RX_PYTHON:-python3}" tests/scripts/tvm_speed.py "$target/release/rxcheck" "$RX_CASES/cases/modules.jsonl" 2>/dev/null
fi
