#!/usr/bin/env bash
# Everything numeric on a GPU, in one command: the kernels' and operators' tests against the interpreter, and the models
# against their recorded results. Writes FOLDER/report.jsonl, one case a line, and FOLDER/report.txt, a table.
#
# usage: tests/gpu/run.sh [FOLDER]        FOLDER is target/gpu by default
# RX_NVRTC   the path of NVRTC's library; fetched where it is not set and not found by its name
# RX_MODELS  a folder of models (*.rx beside *.npz); without it the models are left out
# RX_RXRUN   a built rxrun; without it one is built
#
# Ends with 0 where all agree, 1 where one does not, 2 where there is no device.
set -uo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-target/gpu}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
report=$folder/report.jsonl
: >"$report"
status=0

if ! command -v nvidia-smi >/dev/null || ! nvidia-smi --query-gpu=name --format=csv,noheader; then
    echo "no CUDA device: nothing was run"
    exit 2
fi
if [[ -z ${RX_NVRTC:-} ]] && ! ldconfig -p 2>/dev/null | grep -q libnvrtc.so; then
    RX_NVRTC=$(tests/scripts/fetch_nvrtc.sh) || exit 2
    export RX_NVRTC
fi

echo "== kernels and operators"
# One at a time, so that times on the device are of one kernel.
RX_GPU_REPORT=$report timeout 240 cargo test --quiet -p rx-cuda --test kernels -- --nocapture --test-threads=1 device:: \
    >"$folder/kernels.log" 2>&1 || { status=1; tail -n 40 "$folder/kernels.log"; }
# A test that was skipped has run nothing, which is no success on a machine with a device.
if grep '^skipped' "$folder/kernels.log"; then status=1; fi

if [[ -n ${RX_MODELS:-} ]]; then
    echo "== models"
    rxrun=${RX_RXRUN:-}
    if [[ -z $rxrun ]] && cargo build --quiet --release --bin rxrun; then rxrun=target/release/rxrun; fi
    for model in s_resnet s_resnet_dyn s_mobilenet_v2 s_unet s_dcgan s_bert s_vit s_gpt2_dyn s_llama_dyn s_lstm onnx_s_resnet; do
        program=$RX_MODELS/$model.rx values=$RX_MODELS/$model.npz
        [[ -e $program && -e $values ]] || continue
        python3 tests/gpu/model.py "${rxrun:-rxrun}" "$program" "$values" "$folder/$model.npz" >>"$report" || status=1
    done
fi

python3 tests/gpu/table.py "$report" | tee "$folder/report.txt"
exit $status
