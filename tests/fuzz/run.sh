#!/usr/bin/env bash
# Builds and runs a fuzz target on stable Rust: tests/fuzz/run.sh parse|check|edits|emit|passes SECONDS [libFuzzer options…]
# The corpus grows under the target folder; what breaks a target is written beside it as crash-*, timeout-* or oom-*.
# A finding becomes a file in found/TARGET once it is fixed, and a test replays it from then on.
set -euo pipefail
target=${1:?target: parse, check, edits, emit or passes}
seconds=${2:?seconds}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
# Overflow checks stay on: a wrapped number is a finding too.
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$here/../../target}/fuzz
# With a target named, build scripts and macros are built without the coverage that only libFuzzer's runtime can take.
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares" \
    cargo build --release --manifest-path "$here/Cargo.toml" --features libfuzzer \
    --target "$host" --bin "fuzz-$target"
corpus=$CARGO_TARGET_DIR/corpus/$target
mkdir -p "$corpus" "$here/found/$target"
cd "$CARGO_TARGET_DIR"
# The main thread's stack is what rx gives its own workers.
ulimit -S -s 65536 2>/dev/null || true
exec "$host/release/fuzz-$target" "$corpus" "$here/seeds" "$here/../../examples" "$here/found/$target" \
    -dict="$here/tvmscript.dict" -max_len=65536 -timeout=1 -rss_limit_mb=1024 -max_total_time="$seconds" \
    -print_final_stats=1 "$@"
