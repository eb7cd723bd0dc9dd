#!/usr/bin/env bash
# Compares the time of a cold release build of rxrun between two revisions.
#
#   tests/bench/build_time.sh BASE [REVISION]
#
# Clones the repository twice (BASE and REVISION, HEAD if absent), fetches the
# dependencies, builds one after the other with an empty target folder and
# prints for each the wall time and the CPU time in seconds, then the ratios
# REVISION / BASE. Other work on the machine changes the wall times.
set -euo pipefail

base=${1:?usage: build_time.sh BASE [REVISION]}
revision=${2:-HEAD}
repository=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset CARGO_TARGET_DIR

# Prints the wall time and the CPU time of a cold build of revision $1.
build() {
  local commit clone=$work/clone
  commit=$(git -C "$repository" rev-parse "$1^{commit}")
  rm -rf "$clone"
  git clone --quiet --no-checkout "$repository" "$clone"
  git -C "$clone" checkout --quiet "$commit"
  (
    cd "$clone"
    cargo fetch --locked --quiet >&2
    local TIMEFORMAT='%R %U %S'
    { time cargo build --release --locked --bin rxrun --quiet >&2; } 2>"$work/time" 3>&2 ||
      { cat "$work/time" >&2; exit 1; }
    tail -n 1 "$work/time"
  )
}

for name in "$base" "$revision"; do
  read -r wall user system < <(build "$name")
  printf '%-12s %7.1f s wall, %7.1f s CPU\n' "$name" "$wall" \
    "$(awk "BEGIN { print $user + $system }")"
  walls+=("$wall")
  cpus+=("$(awk "BEGIN { print $user + $system }")")
done
awk "BEGIN { printf \"ratio        %7.3f wall    %7.3f CPU\n\", \
  ${walls[1]} / ${walls[0]}, ${cpus[1]} / ${cpus[0]} }"
