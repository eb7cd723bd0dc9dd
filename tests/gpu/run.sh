#!/usr/bin/env bash
# Everything on a GPU, in one command and under 8 minutes: the kernels' and operators' tests against the interpreter, the kernel table
# against its floors and PyTorch, and the models. Writes FOLDER/report.json and FOLDER/report.txt, a table; docs/gpu.md says what is in them.
#
# usage: tests/gpu/run.sh [FOLDER]        FOLDER is target/gpu by default; paths are read from the checkout
# RX_NVRTC   the path of NVRTC's library; where it is not set and not found by its name, torch's is taken, else one is fetched
# RX_MODELS  a folder of models (*.rx, some beside *.npz); without it the models are left out
# RX_RXRUN   a built rxrun, RX_KERNEL_TESTS the built test `kernels` of rx-cuda; what is not given is built
# RX_TORCH   a Python with torch, for its times [default: python3; left out where it has none]
#
# Ends with 0 where all agree, 1 where something does not or was not run, 2 where there is no device.
set -uo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-target/gpu}
mkdir -p "$folder" && folder=$(cd "$folder" && pwd) || exit 1
# Programs and what is compiled; FOLDER has what is kept.
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
lines=$folder/lines.jsonl
: >"$lines"
status=0

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
    # What does not need one is tried all the same.
    python3 tests/gpu/measure.py programs "$scratch" ${RX_MODELS:+"$RX_MODELS"} || exit 1
    echo "no CUDA device: nothing was run"
    exit 2
fi
# Not by a pipe: grep ends it at the first line it finds, which pipefail takes for a failure.
if [[ -z ${RX_NVRTC:-} ]] && ! grep -q libnvrtc.so <<<"$(ldconfig -p 2>/dev/null)"; then
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader)
    if found=$("${RX_TORCH:-python3}" tests/gpu/nvrtc.py "${driver%%.*}" || timeout -k 5 120 tests/scripts/fetch_nvrtc.sh); then
        export RX_NVRTC=$found
    else
        # rxrun and the tests say what they miss.
        status=1
    fi
fi
# The time that is left for running is not for building.
rxrun=${RX_RXRUN:-}
if [[ -z $rxrun ]]; then
    rxrun=${CARGO_TARGET_DIR:-target}/release/rxrun
    cargo build --quiet --release --bin rxrun || status=1
fi
tests=(cargo test --quiet -p rx-cuda --test kernels --)
if [[ -n ${RX_KERNEL_TESTS:-} ]]; then
    tests=("$RX_KERNEL_TESTS")
else
    cargo test --quiet -p rx-cuda --test kernels --no-run || status=1
fi

# One at a time, so that times on the device are of one kernel.
agree() {
    RX_GPU_REPORT=$lines RX_CACHE=$scratch/cache-tests timeout -k 5 "$1" "${tests[@]}" --nocapture --test-threads=1 "device::$2" >"$folder/$2.log" 2>&1 ||
        { status=1; tail -n 40 "$folder/$2.log"; }
    # A test that was skipped has run nothing, which is no success on a machine with a device.
    if grep 'skipped: ' "$folder/$2.log"; then status=1; fi
    # Who is cut off may leave half a line: the next one's begin behind it.
    echo >>"$lines"
}
echo "== kernels and operators"
agree 95 kernels_agree
agree 45 operators_agree

echo "== the kernel table"
timeout -k 5 120 python3 tests/gpu/measure.py kernels "$rxrun" "$scratch" >>"$lines" || status=1
echo >>"$lines"

if [[ -n ${RX_MODELS:-} ]]; then
    echo "== models"
    [[ -d $RX_MODELS ]] || { echo "RX_MODELS names no folder: $RX_MODELS"; status=1; }
    timeout -k 5 110 python3 tests/gpu/measure.py models "$rxrun" "$scratch" "$RX_MODELS" >>"$lines" || status=1
    echo >>"$lines"
fi

echo "== PyTorch"
TORCHINDUCTOR_CACHE_DIR=$scratch/inductor TRITON_CACHE_DIR=$scratch/triton \
    timeout -k 5 100 "${RX_TORCH:-python3}" tests/gpu/peers.py 45 40 >>"$lines"
case $? in
0) ;;
2) echo "no times of PyTorch" ;;
*) echo "not all times of PyTorch" ;;
esac

python3 tests/gpu/table.py "$lines" "$folder/report.json" | tee "$folder/report.txt"
[[ ${PIPESTATUS[0]} == 0 ]] || status=1
exit $status
